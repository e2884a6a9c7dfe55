//! IP addresses of services.

use super::GROUP;
use super::ingress::path_segment;
use crate::checks::update::{IMMUTABLE, same_of};
use crate::checks::{Report, Rule, check_fields, ip, names};
use crate::{BuiltinKind, Cursor, KindFacts, Write};
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{ErrorList, Value};

/// An IP address.
#[derive(Debug)]
pub(super) struct IPAddress;

const FACTS: KindFacts = KindFacts {
    scope: Scope::Cluster,
    // The name is the address itself, which `validate` checks.
    names: NameRule::Own,
    selectable: &["metadata.name"],
    validates_name_on_update: true,
    ..KindFacts::new(GROUP, "IPAddress")
};

const PARENT: &[(&str, Rule)] = &[
    ("group", Rule::Form(names::dns1123_subdomain)),
    ("resource", Rule::RequiredForm(path_segment)),
    ("name", Rule::RequiredForm(path_segment)),
    ("namespace", Rule::Form(path_segment)),
];

impl BuiltinKind for IPAddress {
    fn facts(&self) -> &'static KindFacts {
        &FACTS
    }

    fn validate(&self, object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
        let root = Cursor::root(object);
        let metadata = root.field("metadata");
        // Kubernetes also runs the check of names on the prefix of generated names.
        for name in [metadata.field("generateName"), metadata.field("name")] {
            if !name.str().is_empty() {
                ip::check_canonical(&name, errors);
            }
        }
        let spec = root.field("spec");
        let parent = spec.field("parentRef");
        match parent.is_set() {
            true => check_fields(PARENT, &parent, errors),
            false => errors.required(&parent, ""),
        }
        if let Some(old) = write.old()
            && !same_of(
                "networking/v1",
                "ParentReference",
                parent.value(),
                old.at(["spec", "parentRef"]),
            )
        {
            errors.invalid_value(&parent, Value::Null, IMMUTABLE);
        }
    }
}
