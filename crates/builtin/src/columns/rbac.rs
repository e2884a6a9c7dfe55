//! Cells of the group `rbac.authorization.k8s.io`.

use super::text::{age, name};
use super::{Printer, Printing};
use scantling_value::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    (GROUP, "ClusterRoleBinding", binding),
    (GROUP, "RoleBinding", binding),
];

fn binding(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let role = ["kind", "name"].map(|field| object.str_at(["roleRef", field]));
    let subjects = |kind: &str| {
        let subjects = object
            .list("subjects")
            .iter()
            .filter(|s| s.get_str("kind") == kind);
        let texts: Vec<String> = subjects
            .map(|s| match kind {
                "ServiceAccount" => format!("{}/{}", s.get_str("namespace"), s.get_str("name")),
                _ => s.get_str("name").to_owned(),
            })
            .collect();
        Value::from(texts.join(", "))
    };
    vec![
        name(object),
        role.join("/").into(),
        age(object, printing),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
