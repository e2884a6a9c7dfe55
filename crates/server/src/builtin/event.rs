//! What is particular about events.

use super::core::{Particulars, Written};
use scantling_cel::data::names;
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{FieldError, Path, Value};

pub(super) static PARTICULARS: Particulars = Particulars {
    scope: Scope::Namespaced,
    names: NameRule::PathSegment,
    selectable: &[
        "metadata.name",
        "metadata.namespace",
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    qualifies_finalizers: false,
    creates_on_update: true,
    kept_in_memory: false,
    check,
};

/// Events that say when they happened to the microsecond are of the new style, of which more is asked.
fn check(written: &Written<'_>) -> Vec<FieldError> {
    let event = written.object;
    let of = |v: Option<&Value>| v.and_then(Value::as_str).unwrap_or_default().to_owned();
    let field = |name: &str| of(event.get(name));
    let involved = of(event.get("involvedObject").and_then(|o| o.get("namespace")));
    let own = of(written.metadata.get("namespace"));
    let is_new = !field("eventTime").is_empty();
    let fits = match involved.is_empty() {
        true => own == "default" || (is_new && own == "kube-system"),
        false => is_new || involved == own,
    };
    let root = Path::ROOT;
    let mut errors = Vec::new();
    if !fits {
        let at = root.field("involvedObject");
        let why = "does not match event.namespace";
        errors.push(FieldError::invalid(
            &at.field("namespace"),
            involved.as_str(),
            why,
        ));
    }
    if !is_new {
        return errors;
    }
    let (at, component) = (root.field("reportingComponent"), field("reportingComponent"));
    if component.is_empty() {
        errors.push(FieldError::required(&at, ""));
    }
    let wrong = names::label_key(&component).into_iter();
    errors.extend(wrong.map(|why| FieldError::invalid(&at, component.as_str(), why)));
    for (name, most) in [
        ("reportingInstance", 128),
        ("action", 128),
        ("reason", 128),
        ("message", 1024),
    ] {
        let (at, text) = (root.field(name), field(name));
        if text.is_empty() && name != "message" {
            errors.push(FieldError::required(&at, ""));
        }
        if text.len() > most {
            let why = format!("can have at most {most} characters");
            errors.push(FieldError::invalid(&at, "", why));
        }
    }
    errors
}
