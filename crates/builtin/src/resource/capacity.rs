//! Capacities of devices, and the amounts that claims may request of them.

use crate::Cursor;
use crate::checks::Report;
use crate::checks::resources::quantity;
use scantling_notation::quantity::Quantity;
use scantling_value::{ErrorList, FieldError};
use std::cmp::Ordering;
use std::collections::BTreeSet;

const MAX_VALUES: usize = 10;

/// Checks the capacity of a device. Only devices with several allocations have a policy.
pub(super) fn check(capacity: &Cursor<'_, '_>, is_shared: bool, errors: &mut ErrorList) {
    let policy = capacity.field("requestPolicy");
    if !policy.is_set() {
        return;
    }
    if !is_shared {
        return errors.forbidden(&policy, "allowMultipleAllocations must be true");
    }
    let (values, range) = (policy.field("validValues"), policy.field("validRange"));
    let default = policy.field("default");
    let max = quantity(capacity.field("value").value());
    match (!values.list().is_empty(), range.is_set()) {
        (true, true) => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same \
                       time";
            errors.forbidden(&policy, why);
        }
        (true, false) if !default.is_set() => {
            errors.required(&default, "required when validValues is defined");
        }
        (true, false) => check_values(&values, &quantity(default.value()), &max, errors),
        (false, true) if !default.is_set() => {
            errors.required(&default, "required when validRange is defined");
        }
        (false, true) => check_range(&range, &quantity(default.value()), &max, errors),
        (false, false) => {}
    }
}

/// The values are in order and unique, fit into the capacity, and the default is one of them.
fn check_values(values: &Cursor<'_, '_>, default: &Quantity, max: &Quantity, errors: &mut ErrorList) {
    let mut last: Option<Quantity> = None;
    for value in values.items() {
        let amount = quantity(value.value());
        if last.is_some_and(|last| last > amount) {
            errors.invalid_value(
                &value,
                amount.canonical(),
                "values must be sorted in ascending order",
            );
        }
        last = Some(amount);
    }
    let count = values.list().len();
    if count > MAX_VALUES {
        errors.push_with(|| FieldError::too_many(values.path(), count, MAX_VALUES));
    } else {
        let mut seen = BTreeSet::new();
        for value in values.items() {
            let amount = quantity(value.value());
            if amount > *max {
                let why = format!("option is larger than capacity value: {}", max.canonical());
                errors.invalid_value(&value, amount.canonical(), why);
            }
            if !seen.insert(amount.scaled(0)) {
                errors.duplicate(&value, amount.scaled(0).to_string());
            }
        }
    }
    let has_default = values.list().iter().any(|v| quantity(Some(v)) == *default);
    if !has_default || count > MAX_VALUES {
        let why = "default value is not valid according to the requestPolicy";
        errors.invalid_value(values, default.canonical(), why);
    }
}

/// The range fits into the capacity, and the default and the maximum are a number of steps above the minimum.
fn check_range(range: &Cursor<'_, '_>, default: &Quantity, max: &Quantity, errors: &mut ErrorList) {
    let fields = ["min", "max", "step"].map(|name| range.field(name));
    let amounts = fields.each_ref().map(|f| f.is_set().then(|| quantity(f.value())));
    let [low_field, high_field, step_field] = &fields;
    let [Some(low), high, step] = &amounts else {
        return errors.required(low_field, "required when validRange is defined");
    };
    let default_field = range.field("default");
    let too_large = |what: &str| format!("{what} is larger than capacity value: {}", max.canonical());
    if low > max {
        errors.invalid_value(low_field, low.canonical(), too_large("min"));
    }
    if default < low {
        let why = format!("default is less than min: {}", low.canonical());
        errors.invalid_value(&default_field, default.canonical(), why);
    }
    if let Some(high) = high {
        if low > high {
            let why = format!("min is larger than max: {}", high.canonical());
            // UPSTREAM: the error about the maximum shows the minimum.
            errors.invalid_value(high_field, low.canonical(), why);
        }
        if high > max {
            errors.invalid_value(high_field, high.canonical(), too_large("max"));
        }
        if default > high {
            let why = format!("default is more than max: {}", high.canonical());
            errors.invalid_value(&default_field, default.canonical(), why);
        }
    }
    let Some(step) = step else { return };
    if step.sign() != Ordering::Greater {
        return errors.invalid_value(step_field, step.canonical(), "must be greater than zero");
    }
    if let Ok(one) = low.add(step)
        && one > *max
    {
        let what = format!("one step {}", one.canonical());
        errors.invalid_value(step_field, step.canonical(), too_large(&what));
    }
    // The number of steps is a division of 64-bit integers, which these amounts must fit.
    let mut are_counted = true;
    for (field, amount) in [
        (&default_field, Some(default)),
        (low_field, Some(low)),
        (high_field, high.as_ref()),
        (step_field, Some(step)),
    ] {
        let Some(amount) = amount else { continue };
        let why = if amount.sign() == Ordering::Less {
            "must be greater than or equal to 0"
        } else if *amount > Quantity::from_int(i64::MAX) {
            "must not be larger than 9223372036854775807"
        } else {
            continue;
        };
        errors.invalid_value(field, amount.canonical(), why);
        are_counted = false;
    }
    if !are_counted {
        return;
    }
    for value in [Some(default), high.as_ref()].into_iter().flatten() {
        let distance = value.scaled(0).saturating_sub(low.scaled(0));
        if distance.checked_rem(step.scaled(0)) != Some(0) {
            let why = format!(
                "value is not a multiple of a given step ({}) from ({})",
                step.canonical(),
                low.canonical()
            );
            errors.invalid_value(step_field, value.canonical(), why);
        }
    }
}
