//! The paths of a kind, with their operations, and the schema of its lists.

use super::{
    API_VERSION, KIND, LIST_META, META, SCALE, SHARED, gvk_list, object, path_of, reference, schema_name,
    string_schema,
};
use crate::kinds::kind::{Kind, Version};
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
        let group = match kind.group.as_str() {
            "" => "core",
            group => group.strip_suffix(".k8s.io").unwrap_or(group),
        };
        let of = |first| (word(group, first), word(&version.name, first));
        let ((large_group, large_version), (group, version_word)) = (of(First::Large), of(First::AsItIs));
        Writer {
            kind,
            version,
            name: schema_name(&kind.group, &version.name, &kind.kind),
            word: format!("{large_group}{large_version}"),
            tag: format!("{group}_{version_word}"),
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

    pub(super) fn paths(&self) -> Map {
        let mut out = Map::new();
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
            format!("create {}", with_article(kind)),
            "",
            WRITE,
            whole,
            Answer::Object,
            &["200", "201", "202"],
        );
        if self.kind.review.is_some() {
            self.path(&mut out, base, collection, scope, vec![create]);
            return out;
        }
        if *namespaced {
            let all: Vec<&str> = {
                let mut all = LIST.to_vec();
                all.push("pretty");
                all.sort_unstable();
                all
            };
            self.path(
                &mut out,
                format!("{root}/{plural}"),
                &all,
                "",
                vec![list("ForAllNamespaces", &[])],
            );
        }
        let mut collection_ops = vec![list("", LIST), create];
        if self.kind.has_verb("deletecollection") {
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
        self.path(&mut out, base.clone(), collection, scope, collection_ops);
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
            format!("delete {}", with_article(kind)),
            "",
            DELETE,
            Some(options),
            Answer::Status,
            &["200", "202"],
        ));
        self.path(&mut out, format!("{base}/{{name}}"), item, scope, ops);
        if self.version.subresource("finalize").is_some() {
            let mut ops = three("finalize of ", "Finalize", Answer::Object);
            ops.retain(|o| o.method == "put");
            self.path(&mut out, format!("{base}/{{name}}/finalize"), item, scope, ops);
        }
        if self.version.scale.is_some() {
            let ops = three("scale of ", "Scale", Answer::Scale);
            self.path(&mut out, format!("{base}/{{name}}/scale"), item, scope, ops);
        }
        if self.version.has_status() {
            let ops = three("status of ", "Status", Answer::Object);
            self.path(&mut out, format!("{base}/{{name}}/status"), item, scope, ops);
        }
        out
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
            let what = format!("{collection}{scope}{}{}", self.kind.kind, o.suffix);
            let id = format!("{}{}{}", o.action, self.word, word(&what, First::Large));
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
            ("apiVersion", string_schema(API_VERSION)),
            ("kind", string_schema(KIND)),
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

/// A name as a word: `s5-162.example.com` is `S5162ExampleCom`, or begins with a small letter.
pub(super) fn word(name: &str, first: First) -> String {
    let mut out = String::new();
    let mut large = first == First::Large;
    for (i, c) in name.chars().enumerate() {
        match c {
            _ if !(c.is_alphabetic() || c == '_' || (i > 0 && c.is_numeric())) => large = true,
            _ if large => {
                out.extend(c.to_uppercase());
                large = false;
            }
            _ => out.push(c),
        }
    }
    out
}

/// The letter that a word begins with.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum First {
    Large,
    AsItIs,
}

/// A kind with its article. Plurals, or what ends as if it were one, have none.
fn with_article(kind: &str) -> String {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return kind.to_owned();
    }
    let is_vowel = |c: char| "aeiou".contains(c.to_ascii_lowercase());
    let article = if kind.starts_with(is_vowel) { "an" } else { "a" };
    format!("{article} {kind}")
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
        for (name, large, as_it_is) in [
            ("s5-162.example.com", "S5162ExampleCom", "s5162ExampleCom"),
            ("chaos-mesh.org", "ChaosMeshOrg", "chaosMeshOrg"),
            ("1st.example.com", "StExampleCom", "StExampleCom"),
            ("v1beta1", "V1beta1", "v1beta1"),
        ] {
            assert_eq!(word(name, First::Large), large);
            assert_eq!(word(name, First::AsItIs), as_it_is);
        }
        for (kind, shown) in [
            ("Widget", "a Widget"),
            ("IAMRole", "an IAMRole"),
            ("DHCPOptions", "DHCPOptions"),
            ("Class", "a Class"),
        ] {
            assert_eq!(with_article(kind), shown);
        }
    }
}
