//! What is particular about events. There are two views of them: that of the core group, in which they are stored, and
//! that of a group of their own, which has other names for their fields and asks for more.

use super::core::{RestStrategy, ValidationContext, unqualified_finalizers};
use crate::discovery::api_version;
use scantling_notation::names;
use scantling_schema::DecodeError;
use scantling_schema::core::CoreKind;
use scantling_schema::meta::{self, NameRule, Scope};
use scantling_value::{BadValue, ErrorList, FieldError, Map, Path, Value};

/// Those of the core group.
pub(super) static PARTICULARS: RestStrategy = RestStrategy {
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
    unconditional_update: true,
    kept_in_memory: false,
    complete: |_| {},
    prepare: |_, _| {},
    check: |ctx| check(ctx.object, ctx.metadata, "reportingComponent"),
    warn: |_| Vec::new(),
};

/// Those of their own group.
pub(super) static NEW_PARTICULARS: RestStrategy = RestStrategy {
    selectable: &[
        "metadata.name",
        "metadata.namespace",
        "regarding.kind",
        "regarding.namespace",
        "regarding.name",
        "regarding.uid",
        "regarding.apiVersion",
        "regarding.resourceVersion",
        "regarding.fieldPath",
        "reason",
        "reportingController",
        "type",
    ],
    check: check_strictly,
    ..PARTICULARS
};

/// The fields that have two names: that of the core group, and that of their own.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// A field of an event of either group by the name that it has in the core group.
pub(crate) fn field<'e>(event: &'e Value, name: &str) -> Option<&'e Value> {
    let other = || NAMES.iter().find(|(core, _)| *core == name);
    event.get(name).or_else(|| event.get(other()?.1))
}

/// An event of either group as one of them has it.
pub(super) fn convert(event: Value, to: CoreKind) -> Result<Value, DecodeError> {
    // What is always there differs, too.
    let decoded = to.decode(with_names(event, to))?;
    Ok(decoded.members.into())
}

/// An event of either group that is in form, as it is stored.
pub(super) fn stored(event: Value) -> Value {
    let event = with_names(event, CoreKind::Event);
    match CoreKind::Event.decode(event.clone()) {
        Ok(decoded) => decoded.members.into(),
        Err(_) => event,
    }
}

fn with_names(event: Value, to: CoreKind) -> Value {
    let Value::Object(members) = event else {
        return event;
    };
    let mut members = renamed(members, to);
    let group = match to {
        CoreKind::Event => "",
        _ => super::EVENTS,
    };
    members.insert("apiVersion", api_version(group, "v1").into());
    members.into()
}

fn renamed(mut members: Map, to: CoreKind) -> Map {
    for (core, own) in NAMES {
        let (from, to) = match to {
            CoreKind::Event => (own, core),
            _ => (core, own),
        };
        if let Some(value) = members.remove(from) {
            members.insert(to, value);
        }
    }
    members
}

/// What is asked of all events. Those that say when they happened to the microsecond are of the new style, of which more
/// is asked.
fn check(event: &Map, metadata: &Map, reporter: &str) -> ErrorList {
    let involved = event.get("involvedObject").map_or("", |o| o.text("namespace"));
    let own = metadata.text("namespace");
    let is_new = event.get("eventTime").is_some_and(|time| !time.is_null());
    let fits = match involved.is_empty() {
        true => own == "default" || (is_new && own == "kube-system"),
        false => is_new || involved == own,
    };
    let root = Path::ROOT;
    let mut errors = ErrorList::new();
    if !fits {
        let at = root.field("involvedObject");
        let why = "does not match event.namespace";
        errors.push_with(|| FieldError::invalid(&at.field("namespace"), involved, why));
    }
    if !is_new {
        return errors;
    }
    let (at, component) = (root.field(reporter), event.text("reportingComponent"));
    if component.is_empty() {
        errors.push_with(|| FieldError::required(&at, ""));
    }
    let wrong = names::label_key(component).into_iter();
    errors.extend(wrong.map(|why| FieldError::invalid(&at, component, why)));
    for (name, most) in [
        ("reportingInstance", 128),
        ("action", 128),
        ("reason", 128),
        ("message", 1024),
    ] {
        let (at, text) = (root.field(name), event.text(name));
        if text.is_empty() && name != "message" {
            errors.push_with(|| FieldError::required(&at, ""));
        }
        if text.len() > most {
            let why = format!("can have at most {most} characters");
            errors.push_with(|| FieldError::invalid(&at, "", why));
        }
    }
    errors
}

/// What is asked of the events of their own group. Most fields are told of by the names that they have in the core group.
fn check_strictly(ctx: &ValidationContext<'_>) -> ErrorList {
    let event = renamed(ctx.object.clone(), CoreKind::Event);
    let metadata = ctx.metadata;
    let mut errors = check(&event, metadata, "reportingController");
    match ctx.old.and_then(Value::as_object) {
        None => {
            let whole = Value::Object(metadata.clone());
            let at = Path::ROOT.field("metadata");
            let (scope, names) = (Scope::Namespaced, NameRule::Subdomain);
            errors.extend(meta::check_new(Some(&whole), scope, names, &at));
            errors.extend(unqualified_finalizers(metadata));
            errors.extend(check_series(&event));
            errors.extend(check_style(&event));
        }
        Some(old) => {
            let old = renamed(old.clone(), CoreKind::Event);
            errors.extend(unqualified_finalizers(metadata));
            if event.get("series") != old.get("series") {
                errors.extend(check_series(&event));
            }
            errors.extend(changes(&old, &event));
        }
    }
    errors
}

/// A series is one of several events, the last of which was at some time.
fn check_series(event: &Map) -> ErrorList {
    let Some(series) = event.get("series") else {
        return ErrorList::new();
    };
    let root = Path::ROOT;
    let at = root.field("series");
    let mut errors = ErrorList::new();
    if series.get("count").and_then(Value::as_int).unwrap_or(0) < 2 {
        errors.push_with(|| FieldError::invalid(&at.field("count"), "", "should be at least 2"));
    }
    if series.get("lastObservedTime").is_none_or(Value::is_null) {
        errors.push_with(|| FieldError::required(&at.field("lastObservedTime"), ""));
    }
    errors
}

/// New events are of the new style, and have nothing of the old one.
fn check_style(event: &Map) -> ErrorList {
    let root = Path::ROOT;
    let is_set = |name: &str| match event.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::Object(members)) => !members.is_empty(),
        Some(_) => true,
    };
    let mut errors = ErrorList::new();
    if !is_set("eventTime") {
        errors.push_with(|| FieldError::required(&root.field("eventTime"), ""));
    }
    let ty = event.text("type");
    if !matches!(ty, "Normal" | "Warning") {
        let why = format!("has invalid value: {ty}");
        errors.push_with(|| FieldError::invalid(&root.field("type"), "", why));
    }
    let old = ["firstTimestamp", "lastTimestamp", "count", "source"];
    let set = old.into_iter().filter(|name| is_set(name));
    errors.extend(set.map(|name| FieldError::invalid(&root.field(name), "", "needs to be unset")));
    errors
}

/// What may not change: all but the series.
fn changes(old: &Map, new: &Map) -> ErrorList {
    const FIXED: [&str; 13] = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    let changed = FIXED.into_iter().filter(|name| old.get(name) != new.get(name));
    changed
        .map(|name| {
            let told = match name {
                "reportingComponent" => "reportingController",
                name => name,
            };
            let at = Path::ROOT.field(told);
            FieldError::invalid(&at, bad_value(name, new.get(name)), "field is immutable")
        })
        .collect()
}

/// A field as refusals show it: parts in the form that a server has them in, which has all fields under names of Go.
fn bad_value(name: &str, value: Option<&Value>) -> BadValue {
    const SOURCE: [(&str, &str); 2] = [("Component", "component"), ("Host", "host")];
    const REFERENCE: [(&str, &str); 7] = [
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ];
    let fields: &[(&str, &str)] = match (name, value) {
        ("source", _) => &SOURCE,
        ("involvedObject" | "related", Some(_)) => &REFERENCE,
        ("related" | "eventTime" | "firstTimestamp" | "lastTimestamp", None) => return Value::Null.into(),
        ("count", None) => return Value::Int(0).into(),
        (_, value) => return value.cloned().unwrap_or_else(|| "".into()).into(),
    };
    let member = |(of_go, name): &(&str, &str)| {
        let text = value.map_or("", |part| part.text(name));
        format!("\"{of_go}\":{}", Value::from(text).to_json())
    };
    let members: Vec<String> = fields.iter().map(member).collect();
    BadValue::Raw(format!("{{{}}}", members.join(",")))
}
