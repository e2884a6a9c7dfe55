//! IP addresses of services.

use super::GROUP;
use super::ingress::path_segment;
use crate::checks::update::{IMMUTABLE, same_of};
use crate::checks::{Report, Rule, check_fields, ip, names};
use crate::{Cursor, KindBehavior, KindFacts, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Value};

/// An IP address.
pub(super) const KIND: KindBehavior = KindBehavior {
    validate,
    ..KindBehavior::new(KindFacts {
        // The name is the address itself, which `validate` checks.
        names: NameRule::Own,
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "IPAddress")
    })
};

const PARENT: &[(&str, Rule)] = &[
    ("group", Rule::Form(names::dns1123_subdomain)),
    ("resource", Rule::RequiredForm(path_segment)),
    ("name", Rule::RequiredForm(path_segment)),
    ("namespace", Rule::Form(path_segment)),
];

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
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
