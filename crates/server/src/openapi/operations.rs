//! Operations: the effect of an HTTP method at a path.

use super::object;
use scantling_value::{Map, Value};
use std::collections::BTreeMap;

/// The action of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    List,
    Create,
    DeleteCollection,
    WatchList,
    Get,
    Update,
    Patch,
    Delete,
    Watch,
    /// An HTTP method that is passed on.
    Connect(&'static str),
}

/// An operation of a path.
pub(super) struct Operation {
    pub(super) path: String,
    pub(super) method: &'static str,
    pub(super) parameters: Vec<Value>,
    /// The operation without its parameters.
    pub(super) members: Map,
}

impl Action {
    /// The HTTP method, the first word of the operation's name, and `x-kubernetes-action`.
    pub(super) fn words(self) -> [&'static str; 3] {
        match self {
            Action::List => ["get", "list", "list"],
            Action::Create => ["post", "create", "post"],
            Action::DeleteCollection => ["delete", "delete", "deletecollection"],
            Action::WatchList => ["get", "watch", "watchlist"],
            Action::Get => ["get", "read", "get"],
            Action::Update => ["put", "replace", "put"],
            Action::Patch => ["patch", "patch", "patch"],
            Action::Delete => ["delete", "delete", "delete"],
            Action::Watch => ["get", "watch", "watch"],
            Action::Connect(method) => [method, "connect", "connect"],
        }
    }

    /// The status codes of success.
    pub(super) fn codes(self, is_built_in: bool) -> &'static [&'static str] {
        match self {
            Action::Create => &["200", "201", "202"],
            Action::Update => &["200", "201"],
            Action::Patch if is_built_in => &["200", "201"],
            Action::Delete => &["200", "202"],
            _ => &["200"],
        }
    }

    pub(super) fn description(self, subresource: &str, kind: &str, is_watched: bool) -> String {
        let of = match subresource {
            "" => String::new(),
            name => format!("{name} of "),
        };
        let article = with_article(kind);
        match self {
            Action::List if is_watched => format!("list or watch objects of kind {kind}"),
            Action::List => format!("list objects of kind {kind}"),
            Action::Create => format!("create {of}{article}"),
            Action::DeleteCollection => format!("delete collection of {kind}"),
            Action::WatchList => format!(
                "watch individual changes to a list of {kind}. deprecated: use the 'watch' parameter with a list \
                 operation instead."
            ),
            Action::Get => format!("read {of}the specified {kind}"),
            Action::Update => format!("replace {of}the specified {kind}"),
            Action::Patch => format!("partially update {of}the specified {kind}"),
            Action::Delete => format!("delete {of}{article}"),
            Action::Watch => format!(
                "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter with a list \
                 operation instead, filtered to a single item with the 'fieldSelector' parameter."
            ),
            Action::Connect(method) => {
                format!("connect {} requests to {of}{kind}", method.to_ascii_uppercase())
            }
        }
    }
}

/// A kind with its article. Plurals, and words that look like plurals, have none.
fn with_article(kind: &str) -> String {
    // As in kube-apiserver: `create Endpoints`, but `create an Ingress`.
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return kind.to_owned();
    }
    let is_vowel = |c: char| "aeiou".contains(c.to_ascii_lowercase());
    let article = if kind.starts_with(is_vowel) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// The media types of a body, all with the same schema.
pub(super) fn content(types: Vec<&str>, schema: &Value) -> Value {
    let media = object([("schema", schema.clone())]);
    Value::Object(types.into_iter().map(|ty| (ty, media.clone())).collect())
}

/// A path with its operations. Parameters that all operations have belong to the path.
pub(super) fn path_item(operations: Vec<Operation>) -> Value {
    let count = operations.len();
    let key = |p: &Value| (p.get_str("name").to_owned(), p.get_str("in").to_owned());
    let mut uses: BTreeMap<(String, String), usize> = BTreeMap::new();
    for parameter in operations.iter().flat_map(|o| &o.parameters) {
        *uses.entry(key(parameter)).or_default() += 1;
    }
    let is_common = |p: &Value| uses.get(&key(p)) == Some(&count);
    let common = operations
        .first()
        .map(|o| o.parameters.iter().filter(|p| is_common(p)).cloned());
    let mut item = Map::from_iter([("parameters", Value::Array(common.into_iter().flatten().collect()))]);
    for mut operation in operations {
        operation.parameters.retain(|p| !is_common(p));
        if !operation.parameters.is_empty() {
            operation
                .members
                .insert("parameters", Value::Array(operation.parameters));
        }
        item.insert(operation.method, operation.members.into());
    }
    item.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_before_kinds() {
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
