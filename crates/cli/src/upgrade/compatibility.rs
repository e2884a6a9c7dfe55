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

/// The effect of a changed keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Accepts more values, or the same.
    Loosens,
    /// Accepts fewer values.
    Tightens,
    /// Stored values may be lost or refused even if unchanged, or clients read or write them differently.
    Breaks,
    /// Accepts more values, and rules see another type.
    Retypes,
    /// Accepts fewer values, and rules see another type.
    TightensAndRetypes,
    /// Nulls were dropped, and are now kept.
    KeepsNulls,
    /// Nulls were kept, and are now dropped or, in lists, refused.
    DropsNulls,
    /// Absent values are defaulted differently.
    Defaults(PresenceChange),
    /// Updates may no longer change the value.
    Holds,
}

/// The change of an absent or null value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PresenceChange {
    /// It was absent, and is now present.
    Begins,
    /// It is present as before, with another value.
    Stays,
    /// It was present, and is now absent.
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

/// Returns the effect of a keyword that changes from one schema to another; `None` if the meaning is the
/// same.
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
        // An absent bound equals the most permissive one.
        "minLength" | "minItems" | "minProperties" => {
            let bound = |v| number(v).unwrap_or(0.0);
            loosens(bound(after) <= bound(before))
        }
        "multipleOf" => loosens(match (number(before), number(after)) {
            (_, None) => true,
            // Remainders of fractions are inexact, so only whole steps are known to divide each other.
            (Some(before), Some(after)) => after != 0.0 && before % after == 0.0 && before.fract() == 0.0,
            (None, Some(_)) => false,
        }),
        // An empty list counts as absent.
        "enum" | "anyOf" => {
            let (before, after) = (list(before), list(after));
            loosens(after.is_empty() || (!before.is_empty() && is_within(before, after)))
        }
        "required" | "allOf" => loosens(is_within(list(after), list(before))),
        // Any other change of `oneOf` may make a second alternative match, which refuses the value.
        "oneOf" => loosens(list(after).is_empty()),
        // Whether one regular expression accepts all that another accepts is not decided here.
        "pattern" | "not" => loosens(after.is_none()),
        // Some formats change the CEL type: `date-time` is a timestamp and not a string.
        "format" => Some(match (after, is_typed(before) || is_typed(after)) {
            (None, false) => Effect::Loosens,
            (None, true) => Effect::Retypes,
            (Some(_), false) => Effect::Tightens,
            (Some(_), true) => Effect::TightensAndRetypes,
        }),
        "type" => Some(match (string(before), string(after)) {
            // Every integer is a number, but rules see a double.
            (Some("integer"), Some("number")) | (Some("integer" | "string"), None) => Effect::Retypes,
            (Some(_), None) if !is_on(new.get(INT_OR_STRING)) => Effect::Retypes,
            // Stored values of the other type can no longer be applied, as with any change of the type.
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
            toggle_effect(before, after, Effect::Tightens, Effect::Loosens)
        }
        "nullable" => toggle_effect(before, after, Effect::KeepsNulls, Effect::DropsNulls),
        PRESERVE => toggle_effect(before, after, Effect::Retypes, Effect::Breaks),
        // It replaces a type, or none.
        INT_OR_STRING if old.contains_key("type") || new.contains_key("type") => {
            toggle_effect(before, after, Effect::Loosens, Effect::Loosens)
        }
        INT_OR_STRING => toggle_effect(before, after, Effect::TightensAndRetypes, Effect::Retypes),
        EMBEDDED => toggle_effect(before, after, Effect::Breaks, Effect::Breaks),
        "x-kubernetes-immutable"
        | "x-kubernetes-immutable-keys"
        | "x-kubernetes-addition-only"
        | "x-kubernetes-deletion-only" => toggle_effect(before, after, Effect::Holds, Effect::Loosens),
        "x-kubernetes-list-type" => merge_strategy_changed(before, after, "atomic"),
        // The keys change with the list type, which is reported.
        "x-kubernetes-list-map-keys"
            if old.get("x-kubernetes-list-type") != new.get("x-kubernetes-list-type") =>
        {
            None
        }
        "x-kubernetes-map-type" => merge_strategy_changed(before, after, "granular"),
        // Keys of lists, unions, and keywords outside structural schemas.
        _ => Some(Effect::Breaks),
    }
}

/// The effect of a boolean keyword that is turned on or off; absent means off.
fn toggle_effect(before: Option<&Value>, after: Option<&Value>, on: Effect, off: Effect) -> Option<Effect> {
    match (is_on(before), is_on(after)) {
        (false, true) => Some(on),
        (true, false) => Some(off),
        _ => None,
    }
}

/// Server-side apply merges the list or map differently, unless the new strategy is the default written explicitly.
fn merge_strategy_changed(before: Option<&Value>, after: Option<&Value>, default: &str) -> Option<Effect> {
    let name = |v| string(v).unwrap_or(default).to_owned();
    (name(before) != name(after)).then_some(Effect::Breaks)
}

/// Returns whether a schema constrains its value as a whole.
pub(super) fn limits_whole(schema: &Map) -> bool {
    ["enum", "not", "allOf", "anyOf", "oneOf"]
        .iter()
        .any(|keyword| schema.contains_key(keyword))
}

/// Returns whether a schema may refuse accepted values because a child becomes present or absent.
pub(super) fn presence_matters(schema: &Map, step: &SchemaStep, presence: PresenceChange) -> bool {
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

/// The parts of a rule that affect objects.
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

/// Returns whether values of a schema may have undeclared fields. Lists without keys are compared without it.
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

/// Returns whether rules see another type than a string because of a format.
fn is_typed(format: Option<&Value>) -> bool {
    matches!(string(format), Some("byte" | "date" | "date-time" | "duration"))
}

/// Returns whether a boolean keyword is on; absent means off.
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

/// kube-apiserver also reads bounds as floats.
fn number(value: Option<&Value>) -> Option<f64> {
    match value {
        Some(Value::Int(n)) => Some(*n as f64),
        Some(Value::Float(f)) => Some(*f),
        _ => None,
    }
}
