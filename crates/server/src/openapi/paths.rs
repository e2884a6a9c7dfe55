//! The paths of a kind, with their operations, and the schema of its lists.

use super::{
    API_VERSION, KIND, LIST_META, META, SCALE, SHARED, gvk_list, object, path_of, reference, schema_name,
    text,
};
use crate::kind::{Kind, Version};
use scantling_value::{Map, Value};

/// Writes what is documented of a kind beside its schema.
pub(super) struct Writer<'a> {
    kind: &'a Kind,
    version: &'a Version,
    /// The name of the kind's schema.
    pub(super) name: String,
    /// The middle of operation names: `S5162ExampleComV1`.
    word: String,
    tag: String,
}

/// What an operation answers with.
#[derive(Clone, Copy)]
enum Answer {
    Object,
    List,
    Status,
    Scale,
}

/// One operation of a path.
struct Operation<'a> {
    method: &'a str,
    action: &'a str,
    verb: &'a str,
    description: String,
    /// What follows the kind in the operation's name.
    suffix: &'a str,
    parameters: &'a [&'a str],
    body: Option<Value>,
    answer: Answer,
    codes: &'a [&'a str],
}

const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const PATCH: &[&str] = &["dryRun", "fieldManager of a patch", "fieldValidation", "force"];
const DELETE: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];

impl<'a> Writer<'a> {
    pub(super) fn new(kind: &'a Kind, version: &'a Version) -> Self {
        let (group, version_name) = (group_name(&kind.group), &version.name);
        Writer {
            kind,
            version,
            name: schema_name(&kind.group, &version.name, &kind.kind),
            word: capital(&joined(group)) + &capital(&joined(version_name)),
            tag: format!("{}_{}", joined(group), joined(version_name)),
        }
    }

    fn content(&self, answer: Answer) -> Value {
        let schema = reference(&match answer {
            Answer::Object => self.name.clone(),
            Answer::List => self.list_name(),
            Answer::Status => format!("{META}.Status"),
            Answer::Scale => SCALE.to_owned(),
        });
        both(&schema)
    }

    pub(super) fn paths(&self, out: &mut Map) {
        let Kind {
            group,
            plural,
            kind,
            namespaced,
            ..
        } = self.kind;
        let root = format!("/{}", path_of(group, &self.version.name));
        let base = if *namespaced {
            format!("{root}/namespaces/{{namespace}}/{plural}")
        } else {
            format!("{root}/{plural}")
        };
        let scope = if *namespaced { "Namespaced" } else { "" };
        let whole = Some(object([
            ("content", self.content(Answer::Object)),
            ("required", true.into()),
        ]));
        let item: &[&str] = if *namespaced {
            &["name", "namespace", "pretty"]
        } else {
            &["name", "pretty"]
        };
        let collection: &[&str] = if *namespaced {
            &["namespace", "pretty"]
        } else {
            &["pretty"]
        };
        let operation =
            |method, action, verb, description: String, suffix, parameters, body, answer, codes| Operation {
                method,
                action,
                verb,
                description,
                suffix,
                parameters,
                body,
                answer,
                codes,
            };
        let list = |suffix, parameters| {
            let what = format!("list objects of kind {kind}");
            operation(
                "get",
                "list",
                "list",
                what,
                suffix,
                parameters,
                None,
                Answer::List,
                &["200"][..],
            )
        };
        let create = operation(
            "post",
            "create",
            "post",
            format!("create a {kind}"),
            "",
            WRITE,
            whole,
            Answer::Object,
            &["200", "201", "202"],
        );
        if self.kind.question.is_some() {
            self.path(out, base, collection, scope, vec![create]);
            return;
        }
        if *namespaced {
            let all: Vec<&str> = {
                let mut all = LIST.to_vec();
                all.push("pretty");
                all.sort_unstable();
                all
            };
            self.path(
                out,
                format!("{root}/{plural}"),
                &all,
                "",
                vec![list("ForAllNamespaces", &[])],
            );
        }
        let mut collection_ops = vec![list("", LIST), create];
        if self.kind.strategy.deletes_collections() {
            collection_ops.push(operation(
                "delete",
                "delete",
                "deletecollection",
                format!("delete collection of {kind}"),
                "",
                LIST,
                None,
                Answer::Status,
                &["200"],
            ));
        }
        self.path(out, base.clone(), collection, scope, collection_ops);
        let three = |of: &str, suffix, answer: Answer| {
            let body = Some(object([
                ("content", self.content(answer)),
                ("required", true.into()),
            ]));
            vec![
                operation(
                    "get",
                    "read",
                    "get",
                    format!("read {of}the specified {kind}"),
                    suffix,
                    &["resourceVersion"][..],
                    None,
                    answer,
                    &["200"][..],
                ),
                operation(
                    "put",
                    "replace",
                    "put",
                    format!("replace {of}the specified {kind}"),
                    suffix,
                    WRITE,
                    body,
                    answer,
                    &["200", "201"],
                ),
                operation(
                    "patch",
                    "patch",
                    "patch",
                    format!("partially update {of}the specified {kind}"),
                    suffix,
                    PATCH,
                    Some(patch_body(self.kind)),
                    answer,
                    &["200"],
                ),
            ]
        };
        let mut ops = three("", "", Answer::Object);
        let options = object([("content", both(&reference(&format!("{META}.DeleteOptions"))))]);
        ops.push(operation(
            "delete",
            "delete",
            "delete",
            format!("delete a {kind}"),
            "",
            DELETE,
            Some(options),
            Answer::Status,
            &["200", "202"],
        ));
        self.path(out, format!("{base}/{{name}}"), item, scope, ops);
        if self.version.finalize {
            let mut ops = three("finalize of ", "Finalize", Answer::Object);
            ops.retain(|o| o.method == "put");
            self.path(out, format!("{base}/{{name}}/finalize"), item, scope, ops);
        }
        if self.version.scale.is_some() {
            let ops = three("scale of ", "Scale", Answer::Scale);
            self.path(out, format!("{base}/{{name}}/scale"), item, scope, ops);
        }
        if self.version.has_status() {
            let ops = three("status of ", "Status", Answer::Object);
            self.path(out, format!("{base}/{{name}}/status"), item, scope, ops);
        }
    }

    fn parameters(&self, names: &[&str]) -> Value {
        let one = |name: &&str| {
            let mut p = SHARED.parameters.get(name).cloned().unwrap_or_default();
            if let Some(m) = p.as_object_mut()
                && *name == "name"
            {
                m.insert("description", format!("name of the {}", self.kind.kind).into());
            }
            p
        };
        Value::Array(names.iter().map(one).collect())
    }

    fn path(
        &self,
        out: &mut Map,
        path: String,
        shared: &[&str],
        scope: &str,
        operations: Vec<Operation<'_>>,
    ) {
        let mut item = Map::new();
        item.insert("parameters", self.parameters(shared));
        for o in operations {
            let collection = if o.verb == "deletecollection" {
                "Collection"
            } else {
                ""
            };
            let id = format!(
                "{}{}{collection}{scope}{}{}",
                o.action,
                self.word,
                joined(&self.kind.kind),
                o.suffix
            );
            let mut responses = Map::from_iter([("401", object([("description", "Unauthorized".into())]))]);
            for code in o.codes {
                let said = match *code {
                    "200" => "OK",
                    "201" => "Created",
                    _ => "Accepted",
                };
                responses.insert(
                    *code,
                    object([("description", said.into()), ("content", self.content(o.answer))]),
                );
            }
            let gvk = object([
                ("group", self.kind.group.as_str().into()),
                ("version", self.version.name.as_str().into()),
                ("kind", self.kind.kind.as_str().into()),
            ]);
            let mut op = Map::from_iter([
                ("tags", Value::from(vec![self.tag.as_str()])),
                ("description", o.description.into()),
                ("operationId", id.into()),
                ("responses", responses.into()),
                ("x-kubernetes-action", o.verb.into()),
                ("x-kubernetes-group-version-kind", gvk),
            ]);
            if !o.parameters.is_empty() {
                op.insert("parameters", self.parameters(o.parameters));
            }
            if let Some(body) = o.body {
                op.insert("requestBody", body);
            }
            item.insert(o.method, op.into());
        }
        out.insert(path, item.into());
    }

    /// The name of the list's schema.
    pub(super) fn list_name(&self) -> String {
        schema_name(&self.kind.group, &self.version.name, &self.kind.list_kind)
    }

    pub(super) fn list_schema(&self) -> Value {
        let Kind {
            group,
            plural,
            kind,
            list_kind,
            ..
        } = self.kind;
        let items = object([
            ("type", "array".into()),
            (
                "description",
                format!(
                    "List of {plural}. More info: \
                     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
                )
                .into(),
            ),
            ("items", reference(&self.name)),
        ]);
        let metadata = object([
            (
                "allOf",
                Value::Array(vec![reference(&format!("{META}.ListMeta"))]),
            ),
            ("description", LIST_META.into()),
        ]);
        let properties = [
            ("apiVersion", text(API_VERSION)),
            ("kind", text(KIND)),
            ("metadata", metadata),
            ("items", items),
        ];
        let mut schema = Map::from_iter([
            ("type", "object".into()),
            ("description", format!("{list_kind} is a list of {kind}").into()),
            ("required", Value::from(vec!["items"])),
            ("properties", Value::Object(properties.into_iter().collect())),
            (
                "x-kubernetes-group-version-kind",
                gvk_list(group, &self.version.name, list_kind),
            ),
        ]);
        let selectable = self.version.selectable.iter();
        let selectable: Vec<Value> = selectable
            .map(|f| object([("fieldPath", f.as_str().into())]))
            .collect();
        if !selectable.is_empty() {
            schema.insert("x-kubernetes-selectable-fields", Value::Array(selectable));
        }
        schema.into()
    }
}

/// What a group is called in words: those of Kubernetes go by their first name.
fn group_name(group: &str) -> &str {
    if group.is_empty() {
        return "core";
    }
    group.strip_suffix(".k8s.io").unwrap_or(group)
}

/// The words of a name as one: `my-group.example.com` is `myGroupExampleCom`. No word begins with a digit.
fn joined(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut begins = false;
    for (i, c) in name.chars().enumerate() {
        if !(c.is_alphabetic() || c == '_' || (i > 0 && c.is_numeric())) {
            begins = true;
        } else if std::mem::take(&mut begins) {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
    }
    out
}

pub(super) fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map(|c| c.to_ascii_uppercase().to_string() + chars.as_str())
        .unwrap_or_default()
}

fn both(schema: &Value) -> Value {
    let media = object([("schema", schema.clone())]);
    object([("application/json", media.clone()), ("application/yaml", media)])
}

fn patch_body(kind: &Kind) -> Value {
    let media = object([("schema", reference(&format!("{META}.Patch")))]);
    let types = kind.strategy.patch_types();
    let content: Map = types.iter().map(|ty| (*ty, media.clone())).collect();
    object([("content", content.into()), ("required", true.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(joined("s5-162.example.com"), "s5162ExampleCom");
        assert_eq!(joined("my-group.1x.example.com"), "myGroup1xExampleCom");
        assert_eq!(joined("1a-b"), "AB");
        assert_eq!(group_name("apiextensions.k8s.io"), "apiextensions");
    }
}
