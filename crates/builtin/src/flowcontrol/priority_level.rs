//! PriorityLevelConfiguration.

use super::GROUP;
use crate::checks::{Report, Rule, go, update};
use crate::prepare::{self, object_if_set, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// A limit on the requests of a priority that are served at once.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        status_keeps: &[&["spec"], &["metadata"]],
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "PriorityLevelConfiguration")
    })
};

const SPEC: prepare::StructName = ("flowcontrol/v1", "PriorityLevelConfigurationSpec");

const MAX_QUEUES: i64 = 10_000_000;
const MAX_HASH_BITS: f64 = 60.0;

/// The annotation by which v1beta3 kept zero shares.
const PRESERVE_ZERO: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// The specs of the levels that every cluster has.
const MANDATORY: &[(&str, &str)] = &[
    (
        "exempt",
        r#"{"type":"Exempt","exempt":{"nominalConcurrencyShares":0,"lendablePercent":0}}"#,
    ),
    (
        "catch-all",
        r#"{"type":"Limited","limited":{"nominalConcurrencyShares":5,"lendablePercent":0,
        "limitResponse":{"type":"Reject"}}}"#,
    ),
];

fn default(object: &mut Map, _context: &Context<'_>) {
    let Some(spec) = object_if_set(object, "spec") else {
        return;
    };
    if let Some(exempt) = object_if_set(spec, "exempt") {
        set_default(exempt, "nominalConcurrencyShares", 0_i64);
        set_default(exempt, "lendablePercent", 0_i64);
    }
    if let Some(limited) = object_if_set(spec, "limited") {
        set_default(limited, "nominalConcurrencyShares", 30_i64);
        set_default(limited, "lendablePercent", 0_i64);
        let response = object_if_set(limited, "limitResponse");
        if let Some(queuing) = response.and_then(|response| object_if_set(response, "queuing")) {
            for (name, number) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
                if queuing.get(name).and_then(Value::as_int).unwrap_or(0) == 0 {
                    queuing.insert(name, Value::Int(number));
                }
            }
        }
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    prepare::spec_and_status(object, write, SPEC);
    crate::prepare::keep_all_metadata(object, write);
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource != Subresource::Status {
        let metadata = root.field("metadata");
        let annotations = metadata.field("annotations");
        if annotations.field(PRESERVE_ZERO).is_set() {
            errors.forbidden(&annotations, format!("annotation '{PRESERVE_ZERO}' is forbidden"));
        }
        let spec = root.field("spec");
        let name = metadata.field("name").str();
        check_spec(name, &spec, write, errors);
        check_mandatory(name, &spec, errors);
    }
    super::check_conditions(&root.field("status"), errors);
}

fn check_spec(name: &str, spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let kind = spec.field("type");
    if (name == "exempt") != (kind.str() == "Exempt") {
        errors.invalid_value(
            &kind,
            kind.str(),
            "must be 'Exempt' if and only if `name` is 'exempt'",
        );
    }
    let (exempt, limited) = (spec.field("exempt"), spec.field("limited"));
    match kind.str() {
        "Exempt" => check_shares(&exempt, errors),
        "Limited" if limited.is_set() => check_limited(&limited, errors),
        "" => errors.required(&kind, ""),
        "Limited" => {}
        _ => errors.not_supported(&kind, &["Exempt", "Limited"]),
    }
    if limited.is_set() {
        check_response_members(&limited, write, errors);
    }
    let old = write.old().and_then(|old| old.get("spec"));
    check_member(&exempt, kind.str(), "Exempt", false, old, errors);
    check_member(&limited, kind.str(), "Limited", true, old, errors);
}

/// A member belongs to one type: it is forbidden with others, and may be required with its own. An update is checked only
/// if it changes the type or the member.
fn check_member(
    member: &Cursor<'_, '_>,
    kind: &str,
    own: &str,
    is_required: bool,
    old: Option<&Value>,
    errors: &mut ErrorList,
) {
    // The last part of the path is the name of the member in the stored object.
    if let Some(old) = old
        && old.get_str("type") == kind
        && let Some(scantling_value::Segment::Field(name)) = member.path().segment()
        && update::same(member.value(), old.get(name))
    {
        return;
    }
    if kind != own && member.is_set() {
        errors.forbidden(member, "");
    } else if kind == own && is_required && !member.is_set() {
        errors.required(member, "");
    }
}

fn check_shares(configuration: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let shares = configuration.field("nominalConcurrencyShares");
    if shares.int() < 0 {
        errors.invalid(&shares, "must be a non-negative integer");
    }
    let lendable = configuration.field("lendablePercent");
    if !(0..=100).contains(&lendable.int()) {
        errors.invalid(&lendable, "must be between 0 and 100, inclusive");
    }
}

fn check_limited(limited: &Cursor<'_, '_>, errors: &mut ErrorList) {
    check_shares(limited, errors);
    let response = limited.field("limitResponse");
    let (kind, queuing) = (response.field("type"), response.field("queuing"));
    match kind.str() {
        "Queue" if queuing.is_set() => check_queuing(&queuing, errors),
        "Queue" | "Reject" | "" => {}
        _ => errors.not_supported(&kind, &["Queue", "Reject"]),
    }
    let borrowing = limited.field("borrowingLimitPercent");
    if borrowing.int() < 0 {
        errors.invalid(&borrowing, "if specified, must be a non-negative integer");
    }
}

/// The type of the response is required, whatever the type of the level, and decides about queues.
fn check_response_members(limited: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let response = limited.field("limitResponse");
    let kind = response.field("type");
    let old = write
        .old()
        .and_then(|old| old.at(["spec", "limited", "limitResponse"]));
    Rule::Required.check(&kind, errors);
    check_member(&response.field("queuing"), kind.str(), "Queue", true, old, errors);
}

/// The hand that is dealt from the queues must fit into the bits of a hash.
fn check_queuing(queuing: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let [length, queues, hand] = ["queueLengthLimit", "queues", "handSize"].map(|name| queuing.field(name));
    if length.int() <= 0 {
        errors.invalid_value(&length, length.int(), "must be positive");
    }
    if queues.int() <= 0 {
        errors.invalid_value(&queues, queues.int(), "must be positive");
    } else if queues.int() > MAX_QUEUES {
        errors.invalid(&queues, format!("must not be greater than {MAX_QUEUES}"));
    }
    #[expect(clippy::cast_precision_loss, reason = "both numbers have at most 32 bits")]
    let entropy = ((queues.int() as f64).log2() * hand.int() as f64).ceil();
    let (deck, size) = (queues.int(), hand.int());
    if size <= 0 {
        errors.invalid_value(&hand, size, "must be positive");
    } else if size > deck {
        errors.invalid(&hand, format!("should not be greater than queues ({deck})"));
    } else if entropy > MAX_HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {deck} and handSize {size} should not be greater than {MAX_HASH_BITS}"
        );
        errors.invalid(&hand, why);
    }
}

/// Levels that every cluster has are fixed, except for the shares of the exempt one.
fn check_mandatory(name: &str, spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let Some(mandatory) = super::mandatory_spec(MANDATORY, name) else {
        return;
    };
    let mut actual = spec.map().cloned().unwrap_or_default();
    let is_exempt = name == "exempt";
    if is_exempt && let Some(exempt) = mandatory.get("exempt") {
        actual.insert("exempt", exempt.clone());
    }
    if !update::same_of(SPEC.0, SPEC.1, Some(&actual.into()), Some(&mandatory)) {
        let except = if is_exempt {
            " except the 'spec.exempt' field"
        } else {
            ""
        };
        let shown = go::structure(SPEC.0, SPEC.1, spec.value());
        errors.invalid_value(
            spec,
            shown,
            format!("spec of '{name}'{except} must equal the fixed value"),
        );
    }
}
