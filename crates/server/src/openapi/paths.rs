//! The paths of a kind, with their operations, and the schema of its lists.

use super::names::{First, GroupVersionWords, word};
use super::operations::{Action, Operation, content, path_item};
use super::{
    API_VERSION, KIND, LIST_META, META, SCALE, gvk, gvk_list, object, parameter, path_of, reference,
    schema_name, string_schema,
};
use crate::codec::media::Encoding;
use crate::kinds::kind::{Kind, Version};
use scantling_apitypes::TypeTable;
use scantling_value::{Map, Value};
use std::collections::BTreeMap;

/// Writes the paths of a kind, and the schema of its lists.
pub(super) struct PathsWriter<'a> {
    kind: &'a Kind,
    version: &'a Version,
    /// The name of the kind's schema.
    pub(super) name: String,
    words: GroupVersionWords,
}

/// The target of operations: the objects of a kind, or one of their subresources.
struct Endpoint<'a> {
    /// The name of the subresource; empty for the objects themselves.
    subresource: &'a str,
    /// The group, version and kind of request and response bodies.
    gvk: [&'a str; 3],
    /// The name of their schema.
    model: String,
    verbs: &'a [&'static str],
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
/// The methods that a proxy passes on.
const PROXIED: &[&str] = &["delete", "get", "head", "options", "patch", "post", "put"];

impl<'a> PathsWriter<'a> {
    pub(super) fn new(kind: &'a Kind, version: &'a Version) -> Self {
        PathsWriter {
            kind,
            version,
            name: schema_name(&kind.group, &version.name, &kind.kind),
            words: GroupVersionWords::new(&kind.group, Some(&version.name)),
        }
    }

    /// The items of all paths, by path.
    pub(super) fn paths(&self) -> Map {
        let mut operations = self.resource();
        for endpoint in self.subresources() {
            self.subresource(&endpoint, &mut operations);
        }
        let mut by_path: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
        for operation in operations {
            by_path.entry(operation.path.clone()).or_default().push(operation);
        }
        let items = by_path.into_iter();
        items
            .map(|(path, operations)| (path, path_item(operations)))
            .collect()
    }

    /// The operations on objects and on lists of them.
    fn resource(&self) -> Vec<Operation> {
        let Kind {
            group,
            plural,
            namespaced,
            ..
        } = self.kind;
        let endpoint = Endpoint {
            subresource: "",
            gvk: [group, &self.version.name, &self.kind.kind],
            model: self.name.clone(),
            verbs: &self.kind.verbs,
        };
        // The paths of custom resources do not depend on whether their definition is being deleted.
        let has = |verb: &str| !self.kind.built_in || endpoint.verbs.contains(&verb);
        let root = format!("/{}", path_of(group, &self.version.name));
        let under = if *namespaced {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        let mut out = Vec::new();
        let mut add = |verb: &str, action: Action, path: String| {
            if has(verb) {
                out.push(self.operation(&endpoint, action, path));
            }
        };
        let item = format!("{under}/{plural}/{{name}}");
        add("list", Action::List, format!("{root}{under}/{plural}"));
        add("create", Action::Create, format!("{root}{under}/{plural}"));
        add(
            "deletecollection",
            Action::DeleteCollection,
            format!("{root}{under}/{plural}"),
        );
        add("get", Action::Get, format!("{root}{item}"));
        add("update", Action::Update, format!("{root}{item}"));
        add("patch", Action::Patch, format!("{root}{item}"));
        add("delete", Action::Delete, format!("{root}{item}"));
        if *namespaced {
            add("list", Action::List, format!("{root}/{plural}"));
        }
        // kube-apiserver publishes the old watch paths only for kinds with Go types, though it serves them for all.
        if self.kind.built_in {
            add(
                "watch",
                Action::WatchList,
                format!("{root}/watch{under}/{plural}"),
            );
            add("watch", Action::Watch, format!("{root}/watch{item}"));
            if *namespaced {
                add("watch", Action::WatchList, format!("{root}/watch/{plural}"));
            }
        }
        out
    }

    /// The subresources of the version.
    fn subresources(&self) -> Vec<Endpoint<'a>> {
        let Kind { group, kind, .. } = self.kind;
        let own = [group.as_str(), &self.version.name, kind];
        if !self.kind.built_in {
            let status = self.version.has_status().then(|| ("status", self.name.clone()));
            let scale = self.version.scale.is_some().then(|| ("scale", SCALE.to_owned()));
            let endpoint = |(subresource, model)| Endpoint {
                subresource,
                // kube-apiserver gives the subresources of a custom resource its own kind, even the scale.
                gvk: own,
                model,
                verbs: &["get", "patch", "update"],
            };
            return status.into_iter().chain(scale).map(endpoint).collect();
        }
        let listed = self.version.subresources.iter();
        listed
            .map(|s| {
                let (group, version) = (s.group.unwrap_or(own[0]), s.version.unwrap_or(own[1]));
                Endpoint {
                    subresource: s.name,
                    gvk: [group, version, &s.kind],
                    model: schema_name(group, version, &s.kind),
                    verbs: &s.verbs,
                }
            })
            .collect()
    }

    fn subresource(&self, endpoint: &Endpoint<'_>, out: &mut Vec<Operation>) {
        let Kind {
            group,
            plural,
            namespaced,
            ..
        } = self.kind;
        let under = if *namespaced {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        let root = path_of(group, &self.version.name);
        let path = format!("/{root}{under}/{plural}/{{name}}/{}", endpoint.subresource);
        let [_, _, kind] = endpoint.gvk;
        if kind.ends_with("ProxyOptions") {
            for method in PROXIED {
                out.push(self.operation(endpoint, Action::Connect(method), path.clone()));
                out.push(self.operation(endpoint, Action::Connect(method), format!("{path}/{{path}}")));
            }
            return;
        }
        for verb in endpoint.verbs {
            let action = match *verb {
                // Options as the kind of a subresource mark a connection that is upgraded.
                "get" if kind.ends_with("Options") => Action::Connect("get"),
                "create" if kind.ends_with("Options") => Action::Connect("post"),
                "get" => Action::Get,
                "create" => Action::Create,
                "update" => Action::Update,
                "patch" => Action::Patch,
                "delete" => Action::Delete,
                // Subresources have no verb that lists or watches.
                _ => continue,
            };
            out.push(self.operation(endpoint, action, path.clone()));
        }
    }

    fn operation(&self, endpoint: &Endpoint<'_>, action: Action, path: String) -> Operation {
        let kind = self.kind;
        let [method, first, said] = action.words();
        let [group, version, target] = endpoint.gvk;
        let is_log = is_log(endpoint);
        let response = match action {
            Action::Connect(_) => string(),
            Action::Get if is_log => string(),
            Action::List => reference(&self.list_name()),
            Action::Watch | Action::WatchList => reference(&format!("{META}.WatchEvent")),
            Action::Delete if kind.built_in && kind.behavior.facts.delete_returns_object => {
                reference(&endpoint.model)
            }
            Action::Delete | Action::DeleteCollection => reference(&format!("{META}.Status")),
            _ => reference(&endpoint.model),
        };
        let content = content(self.produced(action, is_log), &response);
        let mut responses = Map::from_iter([("401", object([("description", "Unauthorized".into())]))]);
        for code in action.codes(kind.built_in) {
            let text = match *code {
                "200" => "OK",
                "201" => "Created",
                _ => "Accepted",
            };
            responses.insert(
                *code,
                object([("description", text.into()), ("content", content.clone())]),
            );
        }
        let is_watched = kind.built_in && kind.has_verb("watch");
        let description = action.description(endpoint.subresource, &kind.kind, is_watched);
        let mut members = Map::from_iter([
            ("tags", Value::from(vec![self.words.tag.as_str()])),
            ("description", description.into()),
            (
                "operationId",
                self.operation_id(first, action, endpoint, &path).into(),
            ),
            ("responses", responses.into()),
            ("x-kubernetes-action", said.into()),
            ("x-kubernetes-group-version-kind", gvk(group, version, target)),
        ]);
        if let Some(body) = self.request_body(action, endpoint) {
            members.insert("requestBody", body);
        }
        Operation {
            parameters: self.parameters(action, endpoint, &path),
            path,
            method,
            members,
        }
    }

    /// The name of an operation: `listCoreV1PodForAllNamespaces`.
    fn operation_id(&self, first: &str, action: Action, endpoint: &Endpoint<'_>, path: &str) -> String {
        let before = match action {
            Action::DeleteCollection => "Collection".to_owned(),
            Action::Connect(method) => word(method, First::Large),
            _ => String::new(),
        };
        let is_in_namespace = path.contains("/{namespace}/");
        let scope = if is_in_namespace { "Namespaced" } else { "" };
        let subresource = word(endpoint.subresource, First::Large);
        let list = if action == Action::WatchList { "List" } else { "" };
        let after = match self.kind.namespaced && !is_in_namespace {
            true => "ForAllNamespaces",
            false if path.ends_with("/{path}") => "WithPath",
            false => "",
        };
        let what = format!("{before}{scope}{}{subresource}{list}{after}", self.kind.kind);
        format!("{first}{}{}", self.words.word, word(&what, First::Large))
    }

    /// The parameters of an operation, by name.
    fn parameters(&self, action: Action, endpoint: &Endpoint<'_>, path: &str) -> Vec<Value> {
        let options = |name: &str| {
            let table = TypeTable::latest();
            let fields = table
                .kind(&self.kind.group, &self.version.name, name)
                .map(scantling_apitypes::TypeDef::members);
            let fields = fields
                .into_iter()
                .flatten()
                .map(|field| (field.name, table.codec_of(&field.ty)));
            let fields =
                fields.filter(|(name, codec)| codec.is_none() && !matches!(*name, "kind" | "apiVersion"));
            fields.map(|(name, _)| name).collect::<Vec<_>>()
        };
        let [_, _, kind] = endpoint.gvk;
        let mut names: Vec<&str> = match action {
            Action::Connect(_) => options(kind),
            Action::Get if is_log(endpoint) => options("PodLogOptions"),
            Action::Get if self.kind.built_in => Vec::new(),
            Action::Get => vec!["resourceVersion"],
            Action::List | Action::Watch | Action::WatchList => LIST.to_vec(),
            Action::Create | Action::Update => WRITE.to_vec(),
            Action::Patch => PATCH.to_vec(),
            Action::Delete => DELETE.to_vec(),
            Action::DeleteCollection if self.kind.built_in => {
                let list = LIST
                    .iter()
                    .filter(|name| !matches!(**name, "watch" | "allowWatchBookmarks"));
                DELETE.iter().chain(list).copied().collect()
            }
            Action::DeleteCollection => LIST.to_vec(),
        };
        if !matches!(action, Action::Connect(_)) {
            names.push("pretty");
        }
        for (part, name) in [
            ("/{name}", "name"),
            // With the slash behind it: `/namespaces/{name}` is a namespace itself.
            ("/{namespace}/", "namespace"),
            ("/{path}", "path of a proxy"),
        ] {
            if path.contains(part) {
                names.push(name);
            }
        }
        let mut parameters: Vec<Value> = names.into_iter().map(|name| parameter(name, kind)).collect();
        parameters.sort_by_cached_key(|p| (p.get_str("name").to_owned(), p.get_str("in").to_owned()));
        parameters
    }

    /// The media types of a response.
    fn produced(&self, action: Action, is_log: bool) -> Vec<&'static str> {
        if matches!(action, Action::Connect(_)) {
            return vec!["*/*"];
        }
        let encodings = match self.kind.built_in {
            true => Encoding::USUAL,
            false => &[Encoding::Json, Encoding::Yaml],
        };
        let mut out: Vec<&str> = encodings.iter().map(|e| e.content_type()).collect();
        if is_log {
            out.push("text/plain");
        }
        if self.kind.built_in && matches!(action, Action::List | Action::Watch | Action::WatchList) {
            out.push("application/json;stream=watch");
            out.push("application/vnd.kubernetes.protobuf;stream=watch");
        }
        out
    }

    fn request_body(&self, action: Action, endpoint: &Endpoint<'_>) -> Option<Value> {
        let consumed = || match self.kind.built_in {
            true => vec!["*/*"],
            false => vec!["application/json", "application/yaml"],
        };
        let (types, model, is_required) = match action {
            Action::Create | Action::Update => (consumed(), endpoint.model.clone(), true),
            Action::Patch => (self.kind.patch_types.to_vec(), format!("{META}.Patch"), true),
            Action::Delete => (consumed(), format!("{META}.DeleteOptions"), false),
            Action::DeleteCollection if self.kind.built_in => {
                (consumed(), format!("{META}.DeleteOptions"), false)
            }
            _ => return None,
        };
        let mut body = Map::from_iter([("content", content(types, &reference(&model)))]);
        if is_required {
            body.insert("required", true.into());
        }
        Some(body.into())
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

/// Returns whether an endpoint returns the log of a pod.
fn is_log(endpoint: &Endpoint<'_>) -> bool {
    endpoint.subresource == "log"
}

fn string() -> Value {
    object([("type", "string".into())])
}
