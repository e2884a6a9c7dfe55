//! The effect of a changed keyword on objects.

use crate::rules::SchemaStep;
use scantling_value::{Map, Value};
use serde::Serialize;

/// The effect of a change on existing objects and clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Compatibility {
    /// Everything that was accepted still is.
    Safe,
    /// Stored values are accepted while they stay unchanged; new values must comply.
    SafeWithRatcheting,
    /// Clients or stored objects break.
    Breaking,
}

impl Compatibility {
    /// Returns the name.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Compatibility::Safe => "safe",
            Compatibility::SafeWithRatcheting => "safe with ratcheting",
            Compatibility::Breaking => "breaking",
        }
    }
}

/// What the change of a keyword does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// More is taken than before, or the same.
    Loosens,
    /// Less is taken.
    Tightens,
    /// What is stored may be lost or be refused whatever is done with it, or clients read or write it differently.
    Breaks,
    /// More is taken, and rules meet another type.
    Retypes,
    /// Less is taken, and rules meet another type.
    TightensAndRetypes,
    /// Nulls were dropped, and are kept.
    KeepsNulls,
    /// Nulls were kept, and are dropped or, in lists, refused.
    DropsNulls,
    /// What is left out is filled in differently.
    Defaults(PresenceChange),
    /// Updates may no longer change what is there.
    Holds,
}

/// What becomes of what was left out, or null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PresenceChange {
    /// It was not there, and is.
    Begins,
    /// It is there as before, with another value.
    Stays,
    /// It was there, and is not.
    Ends,
}

/// Returns the code of a change of a keyword.
pub(super) fn code(keyword: &str) -> &'static str {
    match keyword {
        "type" | INT_OR_STRING => "SCT1104",
        "maximum" | "maxLength" | "maxItems" | "maxProperties" | "minimum" | "minLength" | "minItems"
        | "minProperties" | "multipleOf" | "exclusiveMaximum" | "exclusiveMinimum" | "uniqueItems"
        | "enum" | "required" | "pattern" | "format" => "SCT1105",
        "allOf" | "anyOf" | "oneOf" | "not" => "SCT1106",
        "default" => "SCT1107",
        "nullable" => "SCT1108",
        "x-kubernetes-list-type" | "x-kubernetes-list-map-keys" | "x-kubernetes-map-type" => "SCT1109",
        PRESERVE | EMBEDDED => "SCT1112",
        "x-kubernetes-immutable"
        | "x-kubernetes-immutable-keys"
        | "x-kubernetes-addition-only"
        | "x-kubernetes-deletion-only" => "SCT1113",
        _ => "SCT1114",
    }
}

/// What it does that a keyword changes from one schema to another; nothing where it says the same in other words.
pub(super) fn effect(keyword: &str, old: &Map, new: &Map) -> Option<Effect> {
    let (before, after) = (old.get(keyword), new.get(keyword));
    let loosens = |loosens: bool| {
        Some(if loosens {
            Effect::Loosens
        } else {
            Effect::Tightens
        })
    };
    match keyword {
        "maximum" | "maxLength" | "maxItems" | "maxProperties" => {
            loosens(match (number(before), number(after)) {
                (_, None) => true,
                (Some(before), Some(after)) => after >= before,
                (None, Some(_)) => false,
            })
        }
        "minimum" => loosens(match (number(before), number(after)) {
            (_, None) => true,
            (Some(before), Some(after)) => after <= before,
            (None, Some(_)) => false,
        }),
        // Without a bound there is the one that everything meets.
        "minLength" | "minItems" | "minProperties" => {
            let bound = |v| number(v).unwrap_or(0.0);
            loosens(bound(after) <= bound(before))
        }
        "multipleOf" => loosens(match (number(before), number(after)) {
            (_, None) => true,
            (Some(before), Some(after)) => after != 0.0 && before % after == 0.0 && before.fract() == 0.0,
            (None, Some(_)) => false,
        }),
        // An empty list is none.
        "enum" | "anyOf" => {
            let (before, after) = (list(before), list(after));
            loosens(after.is_empty() || (!before.is_empty() && is_within(before, after)))
        }
        "required" | "allOf" => loosens(is_within(list(after), list(before))),
        "oneOf" => loosens(list(after).is_empty()),
        "pattern" | "not" => loosens(after.is_none()),
        "format" => Some(match (after, is_typed(before) || is_typed(after)) {
            (None, false) => Effect::Loosens,
            (None, true) => Effect::Retypes,
            (Some(_), false) => Effect::Tightens,
            (Some(_), true) => Effect::TightensAndRetypes,
        }),
        "type" => Some(match (string(before), string(after)) {
            (Some("integer"), Some("number")) | (Some("integer" | "string"), None) => Effect::Retypes,
            (Some(_), None) if !is_on(new.get(INT_OR_STRING)) => Effect::Retypes,
            // StoredObjects values of the other type can no longer be applied, as with any other change of the type.
            (None, Some(_)) if is_on(old.get(INT_OR_STRING)) => Effect::Breaks,
            (Some("number"), Some("integer")) | (None, Some(_)) => Effect::TightensAndRetypes,
            _ => Effect::Breaks,
        }),
        "default" => Some(Effect::Defaults(match (before, after) {
            (None, _) => PresenceChange::Begins,
            (Some(_), Some(_)) => PresenceChange::Stays,
            (Some(_), None) => PresenceChange::Ends,
        })),
        "exclusiveMaximum" | "exclusiveMinimum" | "uniqueItems" => {
            switched(before, after, Effect::Tightens, Effect::Loosens)
        }
        "nullable" => switched(before, after, Effect::KeepsNulls, Effect::DropsNulls),
        PRESERVE => switched(before, after, Effect::Retypes, Effect::Breaks),
        // What it takes the place of is a type, or none.
        INT_OR_STRING if old.contains_key("type") || new.contains_key("type") => {
            switched(before, after, Effect::Loosens, Effect::Loosens)
        }
        INT_OR_STRING => switched(before, after, Effect::TightensAndRetypes, Effect::Retypes),
        EMBEDDED => switched(before, after, Effect::Breaks, Effect::Breaks),
        "x-kubernetes-immutable"
        | "x-kubernetes-immutable-keys"
        | "x-kubernetes-addition-only"
        | "x-kubernetes-deletion-only" => switched(before, after, Effect::Holds, Effect::Loosens),
        "x-kubernetes-list-type" => renamed(before, after, "atomic"),
        // The keys come and go with the list type, which is reported.
        "x-kubernetes-list-map-keys"
            if old.get("x-kubernetes-list-type") != new.get("x-kubernetes-list-type") =>
        {
            None
        }
        "x-kubernetes-map-type" => renamed(before, after, "granular"),
        // Keys of lists, unions, and what no structural schema has.
        _ => Some(Effect::Breaks),
    }
}

/// What it does that a switch is turned on or off; it is off where it is not there.
fn switched(before: Option<&Value>, after: Option<&Value>, on: Effect, off: Effect) -> Option<Effect> {
    match (is_on(before), is_on(after)) {
        (false, true) => Some(on),
        (true, false) => Some(off),
        _ => None,
    }
}

/// Whoever applies a part of a list or map meets another topology, unless it is the default in other words.
fn renamed(before: Option<&Value>, after: Option<&Value>, default: &str) -> Option<Effect> {
    let name = |v| string(v).unwrap_or(default).to_owned();
    (name(before) != name(after)).then_some(Effect::Breaks)
}

/// Whether a schema limits its value as a whole.
pub(super) fn limits_whole(schema: &Map) -> bool {
    ["enum", "not", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|keyword| schema.contains_key(keyword))
}

/// Whether a schema may refuse what was accepted, because what is a step below it begins or ends to be there.
pub(super) fn counts(schema: &Map, step: &SchemaStep, presence: PresenceChange) -> bool {
    let required = || list(schema.get("required"));
    match presence {
        PresenceChange::Begins => schema.contains_key("maxProperties"),
        PresenceChange::Stays => false,
        PresenceChange::Ends => {
            schema.contains_key("minProperties")
                || matches!(step, SchemaStep::Property(name) if required().iter().any(|r| r.as_str() == Some(name)))
        }
    }
}

/// What there is of a rule that decides about objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuleFacts<'a> {
    pub(super) text: &'a str,
    optional_old_self: bool,
    applies_on_create: bool,
}

/// The rules of a schema.
pub(super) fn rules(list: Option<&Value>) -> Vec<RuleFacts<'_>> {
    let rule = |rule| {
        Some(RuleFacts {
            text: string(Value::get(rule, "rule"))?,
            optional_old_self: is_on(Value::get(rule, "optionalOldSelf")),
            applies_on_create: is_on(Value::get(rule, "appliesOnCreate")),
        })
    };
    self::list(list).iter().filter_map(rule).collect()
}

/// Whether a schema may describe less than its values hold. Lists that have no keys are compared without it.
pub(super) fn holds_undescribed(schema: &Map) -> bool {
    let keyed = string(schema.get("x-kubernetes-list-type")) == Some("map");
    let mut below = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
        .chain(schema.get("additionalProperties"))
        .chain(schema.get("items").filter(|_| keyed));
    is_on(schema.get(PRESERVE))
        || is_on(schema.get(EMBEDDED))
        || below.any(|below| match below {
            Value::Object(below) => holds_undescribed(below),
            other => is_on(Some(other)),
        })
}

pub(super) const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
pub(super) const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Whether rules see something else than a text because of a format.
fn is_typed(format: Option<&Value>) -> bool {
    matches!(string(format), Some("byte" | "date" | "date-time" | "duration"))
}

/// Whether a switch is on; it is off where it is not there.
pub(super) fn is_on(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool) == Some(true)
}

fn is_within(some: &[Value], all: &[Value]) -> bool {
    some.iter().all(|v| all.contains(v))
}

fn string(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

/// Servers read bounds as floating-point numbers, too.
fn number(value: Option<&Value>) -> Option<f64> {
    match value {
        Some(Value::Int(n)) => Some(*n as f64),
        Some(Value::Float(f)) => Some(*f),
        _ => None,
    }
}
