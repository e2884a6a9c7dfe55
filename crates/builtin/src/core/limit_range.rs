//! LimitRange.

use crate::checks::defaults::round_list;
use crate::checks::{Report, names, resources};
use crate::prepare::{forget_empty_list, object_if_set, object_in, objects_in};
use crate::{Context, Cursor, KindBehavior, KindFacts, Write};
use scantling_notation::quantity::Quantity;
use scantling_value::{ErrorList, Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Limits and defaults for the resources of pods and claims.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        creates_on_update: true,
        validates_name_on_update: true,
        ..KindFacts::new("", "LimitRange")
    })
};

/// The largest amount whose thousandths fit into 64 bits.
const MAX_MILLI_VALUE: i64 = i64::MAX / 1000;

/// A new object without a name gets a unique one.
fn name_by_uid(object: &mut Map) {
    if let Some(metadata) = object_in(object, "metadata")
        && metadata.get_str("name").is_empty()
        && let Some(uid) = metadata.get("uid").cloned()
    {
        metadata.insert("name", uid);
    }
}

fn default(object: &mut Map, _context: &Context<'_>) {
    if let Some(spec) = object_if_set(object, "spec") {
        for limit in objects_in(spec, "limits") {
            for amounts in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
                round_list(limit.get_mut(amounts));
            }
            if limit.get_str("type") == "Container" {
                default_container(limit);
            }
        }
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    if write.old().is_none() {
        name_by_uid(object);
    }
    if let Some(spec) = object_if_set(object, "spec") {
        forget_empty_list(spec, "limits");
    }
}

fn validate(object: &Value, _write: &Write<'_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    let root = Cursor::root(object);
    let spec = root.field("spec");
    for limit in spec.field("limits").items() {
        let kind = limit.field("type");
        check_type(&kind, errors);
        errors.unique(&mut seen, &kind);
        check_limit(&limit, errors);
    }
}

/// The default limit is the maximum; the default request is the default limit, or else the minimum.
fn default_container(limit: &mut Map) {
    let fill = |limit: &mut Map, to: &str, from: &str| {
        let source = limit.get(from).and_then(Value::as_object);
        let Some(source) = source.filter(|source| !source.is_empty()).cloned() else {
            return;
        };
        if let Some(target) = object_in(limit, to) {
            let mut absent: Vec<_> = source.into_iter().collect();
            absent.retain(|(name, _)| !target.contains_key(name));
            target.insert_all(absent);
        }
    };
    fill(limit, "default", "max");
    fill(limit, "defaultRequest", "default");
    fill(limit, "defaultRequest", "min");
}

fn check_type(kind: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let wrong = names::label_key(kind.str());
    let is_standard = matches!(kind.str(), "Pod" | "Container" | "PersistentVolumeClaim");
    if wrong.is_empty() && !kind.str().contains('/') && !is_standard {
        errors.invalid(kind, "must be a standard limit type or fully qualified");
    }
    errors.invalid_for(kind, wrong);
}

fn check_limit(limit: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let kind = limit.field("type").str();
    let check_names = |list: &str, errors: &mut ErrorList| {
        for (name, at) in limit.field(list).entries() {
            let at = Cursor::at(None, *at.path());
            match kind {
                "Pod" | "Container" => resources::container_name(name, &at, errors),
                _ => resources::name(name, &at, errors),
            }
        }
    };
    let mut lists = vec!["max", "min"];
    if kind != "Pod" {
        lists.extend(["default", "defaultRequest"]);
    }
    lists.iter().for_each(|list| check_names(list, errors));
    if kind == "Pod" {
        for list in ["default", "defaultRequest"] {
            let field = limit.field(list);
            if field.map().is_some_and(|m| !m.is_empty()) {
                errors.forbidden(&field, "may not be specified when `type` is 'Pod'");
            }
        }
    }
    let has_storage = |list| limit.field(list).field("storage").is_set();
    if kind == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        // UPSTREAM: the path names `limits` within the limit.
        errors.required(&limit.field("limits"), why);
    }
    check_names("maxLimitRequestRatio", errors);
    lists.push("maxLimitRequestRatio");
    let members = lists.iter().filter_map(|list| limit.field(list).map());
    let names: BTreeSet<&str> = members
        .flat_map(Map::keys)
        .map(scantling_value::Str::as_str)
        .collect();
    for name in names {
        check_amounts(limit, kind, name, errors);
    }
}

/// The amounts of one resource.
struct ResourceAmounts<'l> {
    limit: &'l Cursor<'l, 'l>,
    name: &'l str,
}

impl ResourceAmounts<'_> {
    fn get(&self, list: &str) -> Option<Quantity> {
        let list = self.limit.field(list);
        let amount = list.field(self.name);
        amount.is_set().then(|| resources::quantity(amount.value()))
    }

    fn report(&self, list: &str, shown: &Quantity, why: String, errors: &mut ErrorList) {
        let list = self.limit.field(list);
        let at = Cursor::at(None, list.path().key(self.name));
        errors.invalid_value(&at, shown.canonical(), why);
    }
}

/// Amounts of a resource grow from the minimum over the defaults to the maximum.
fn check_amounts(limit: &Cursor<'_, '_>, kind: &str, name: &str, errors: &mut ErrorList) {
    let amounts = ResourceAmounts { limit, name };
    let (min, max, ratio) = (
        amounts.get("min"),
        amounts.get("max"),
        amounts.get("maxLimitRequestRatio"),
    );
    let [default, request] = match kind {
        "Pod" => [None, None],
        _ => [amounts.get("default"), amounts.get("defaultRequest")],
    };
    let orders = [
        // Lower and upper amount with their names, the list at which a violation is reported, and whether the lower
        // amount is shown.
        (&min, "min value", &max, "max value", "min", true),
        (
            &min,
            "min value",
            &request,
            "default request value",
            "defaultRequest",
            false,
        ),
        (
            &request,
            "default request value",
            &max,
            "max value",
            "defaultRequest",
            true,
        ),
        (
            &request,
            "default request value",
            &default,
            "default limit value",
            "defaultRequest",
            true,
        ),
        (&min, "min value", &default, "default value", "default", true),
        (&default, "default value", &max, "max value", "default", false),
    ];
    for (low, low_name, high, high_name, list, shows_low) in orders {
        if let (Some(low), Some(high)) = (low, high)
            && low > high
        {
            let why = format!(
                "{low_name} {} is greater than {high_name} {}",
                low.canonical(),
                high.canonical()
            );
            amounts.report(list, if shows_low { low } else { high }, why, errors);
        }
    }
    if let Some(ratio) = &ratio {
        check_ratio(&amounts, ratio, min.as_ref().zip(max.as_ref()), errors);
    }
    if let (Some(default), Some(request)) = (&default, &request)
        && !resources::allows_overcommit(name)
        && default != request
    {
        let (default, shown) = (default.canonical(), request.canonical());
        let why = format!("default value {default} must equal to defaultRequest value {shown} in {name}");
        amounts.report("defaultRequest", request, why, errors);
    }
}

/// The ratio of limit and request is at least 1, and at most that of maximum and minimum.
fn check_ratio(
    amounts: &ResourceAmounts<'_>,
    ratio: &Quantity,
    bounds: Option<(&Quantity, &Quantity)>,
    errors: &mut ErrorList,
) {
    let list = "maxLimitRequestRatio";
    let shown = ratio.canonical();
    if ratio.cmp(&Quantity::from_int(1)) == Ordering::Less {
        amounts.report(list, ratio, format!("ratio {shown} is less than 1"), errors);
    }
    let Some((min, max)) = bounds else { return };
    // kube-apiserver compares thousandths unless they overflow, and else integers.
    let scale = if [ratio, min, max].iter().all(|q| q.scaled(0) < MAX_MILLI_VALUE) {
        1000
    } else {
        1
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "the server computes in floating point, too"
    )]
    let number = |quantity: &Quantity| match scale {
        1 => quantity.scaled(0) as f64,
        _ => quantity.scaled(-3) as f64,
    };
    let wanted = number(ratio) / f64::from(scale);
    let possible = number(max) / number(min);
    if wanted > possible {
        let possible = format_float(possible);
        let why = format!("ratio {shown} is greater than max/min = {possible}");
        amounts.report(list, ratio, why, errors);
    }
}

/// A number with six decimals, as Go's `%f` prints it.
fn format_float(number: f64) -> String {
    match number {
        n if n.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        n => format!("{n:.6}"),
    }
}
