//! Event, in its two groups: the core group, in which events are stored, and `events.k8s.io`, which has other names for
//! some fields and stricter rules.

use crate::checks::metadata::qualified_finalizer;
use crate::checks::update::IMMUTABLE;
use crate::checks::{Report, Rule};
use crate::{Cursor, GarbageCollection, KindBehavior, KindFacts, Operation, Write};
use scantling_notation::names;
use scantling_schema::meta::{self, NameRule, Scope};
use scantling_value::{BadValue, ErrorList, FieldError, Map, Path, Value};

/// An event of the core group.
pub(crate) const EVENT: KindBehavior = KindBehavior {
    validate: |object, _, errors| check(&Cursor::root(object), "reportingComponent", errors),
    selectable_field: selectable_field_event,
    ..KindBehavior::new(FACTS)
};

/// An event of the group `events.k8s.io`. Its hub form is the event of the core group.
pub(crate) const REGARDING_EVENT: KindBehavior = KindBehavior {
    validate: validate_regarding_event,
    version_to_hub: version_to_hub_regarding_event,
    hub_to_version: hub_to_version_regarding_event,
    ..KindBehavior::new(KindFacts {
        group: "events.k8s.io",
        selectable: &[
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
        ..FACTS
    })
};

const FACTS: KindFacts = KindFacts {
    names: NameRule::PathSegment,
    selectable: &[
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
    creates_on_update: true,
    validates_metadata: false,
    qualifies_finalizers: false,
    garbage_collection: GarbageCollection::Unsupported,
    // kube-apiserver keeps events out of its watch cache.
    is_cached: false,
    ..KindFacts::new("", "Event")
};

/// The fields that have two names: that of the core group, and that of `events.k8s.io`.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Gives the fields of an event of `events.k8s.io` their names in the core group.
pub(crate) fn rename_to_hub(event: &mut Map) {
    rename(event, NAMES.map(|(core, regarding)| (regarding, core)));
}

fn rename(event: &mut Map, names: [(&str, &'static str); 7]) {
    for (from, to) in names {
        if let Some(value) = event.remove(from) {
            event.insert(to, value);
        }
    }
}

fn selectable_field_event(object: &Value, field: &str) -> String {
    let text = |field: &str| object.at(field.split('.')).and_then(Value::as_str);
    let found = match field {
        // New-style events have no source; the reporting component replaces it.
        "source" => text("source.component").or_else(|| text("reportingComponent")),
        field => text(field),
    };
    found.unwrap_or_default().to_owned()
}

fn validate_regarding_event(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    check(&root, "reportingController", errors);
    match write.operation {
        Operation::Create => {
            let at = Path::ROOT.field("metadata");
            let metadata = object.get("metadata");
            let names = NameRule::Subdomain;
            errors.extend(meta::check_new(metadata, Scope::Namespaced, names, &at));
            check_finalizers(&root, errors);
            check_series(&root, errors);
            check_style(&root, errors);
        }
        Operation::Update(old) => {
            check_finalizers(&root, errors);
            if object.get("series") != old.get("series") {
                check_series(&root, errors);
            }
            check_unchanged(old, object, errors);
        }
    }
}

fn version_to_hub_regarding_event(_version: &str, mut object: Value) -> Value {
    if let Some(event) = object.as_object_mut() {
        rename_to_hub(event);
        event.insert("apiVersion", "v1".into());
    }
    object
}

fn hub_to_version_regarding_event(_version: &str, mut object: Value) -> Value {
    if let Some(event) = object.as_object_mut() {
        rename(event, NAMES);
        event.insert("apiVersion", "events.k8s.io/v1".into());
    }
    object
}

/// Rules for all events. An event with an `eventTime` is of the new style and must meet more of them.
fn check(event: &Cursor<'_, '_>, reporter: &str, errors: &mut ErrorList) {
    let involved_object = event.field("involvedObject");
    let involved = involved_object.field("namespace");
    let own = event.value().map_or("", |e| e.str_at(["metadata", "namespace"]));
    let is_new = event.field("eventTime").is_set();
    let fits = match involved.str().is_empty() {
        // Events about cluster-wide objects are in the namespace `default`. New-style ones may be in
        // `kube-system`, too.
        true => own == "default" || (is_new && own == "kube-system"),
        false => is_new || involved.str() == own,
    };
    if !fits {
        errors.invalid_value(&involved, involved.str(), "does not match event.namespace");
    }
    if !is_new {
        return;
    }
    let component = event.field("reportingComponent");
    let component = component.with_path(event.path().field(reporter));
    Rule::Required.check(&component, errors);
    for why in names::label_key(component.str()) {
        errors.invalid_value(&component, component.str(), why);
    }
    for (name, most) in [
        ("reportingInstance", 128),
        ("action", 128),
        ("reason", 128),
        ("message", 1024),
    ] {
        let text = event.field(name);
        if text.str().is_empty() && name != "message" {
            errors.required(&text, "");
        }
        if text.str().len() > most {
            let why = format!("can have at most {most} characters");
            errors.invalid_value(&text, "", why);
        }
    }
}

fn check_finalizers(event: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let metadata = event.field("metadata");
    Rule::Each(qualified_finalizer).check(&metadata.field("finalizers"), errors);
}

/// A series has several events and the time of the last one.
fn check_series(event: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let series = event.field("series");
    if !series.is_set() {
        return;
    }
    let count = series.field("count");
    if count.int() < 2 {
        errors.invalid_value(&count, "", "should be at least 2");
    }
    let last = series.field("lastObservedTime");
    if !last.is_set() {
        errors.required(&last, "");
    }
}

/// New events are of the new style and have no deprecated field.
fn check_style(event: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let time = event.field("eventTime");
    if !time.is_set() {
        errors.required(&time, "");
    }
    let ty = event.field("type");
    if !matches!(ty.str(), "Normal" | "Warning") {
        errors.invalid_value(&ty, "", format!("has invalid value: {}", ty.str()));
    }
    for name in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let field = event.field(name);
        if field.is_set() && !field.map().is_some_and(Map::is_empty) {
            errors.invalid_value(&field, "", "needs to be unset");
        }
    }
}

/// Only the series may change.
fn check_unchanged(old: &Value, new: &Value, errors: &mut ErrorList) {
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
    for name in FIXED.into_iter().filter(|name| old.get(name) != new.get(name)) {
        let reported = match name {
            "reportingComponent" => "reportingController",
            name => name,
        };
        let value = || bad_value(name, new.get(name));
        errors.push_with(|| FieldError::invalid(&Path::ROOT.field(reported), value(), IMMUTABLE));
    }
}

/// A field as errors show it: structs have all fields, under their Go names.
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
    let member = |(go_name, name): &(&str, &str)| {
        let text = value.map_or("", |part| part.get_str(name));
        format!("\"{go_name}\":{}", Value::from(text).to_json())
    };
    let members: Vec<String> = fields.iter().map(member).collect();
    BadValue::Raw(format!("{{{}}}", members.join(",")))
}
