//! Ranges of cluster IPs.

use super::GROUP;
use crate::checks::ip::{self, Cidr};
use crate::checks::update::{IMMUTABLE, keep};
use crate::checks::{Report, Rule, go};
use crate::prepare::keep_metadata_of_status;
use crate::{Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// A range of cluster IPs.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        status_keeps: &[&["metadata"], &["spec"]],
        ..KindFacts::new(GROUP, "ServiceCIDR")
    })
};

fn prepare(object: &mut Map, write: &Write<'_>) {
    // Without the gate, clients write the status together with the object, as in older versions.
    let drops_status = (write.context.enabled)("ServiceCIDRStatusFieldWiping");
    match (write.operation, write.subresource) {
        (Operation::Update(old), Subresource::Status) => {
            keep(object, old, "spec");
            keep_metadata_of_status(object, old);
        }
        (Operation::Create, _) if drops_status => drop(object.remove("status")),
        (Operation::Update(old), _) if drops_status => keep(object, old, "status"),
        _ => {}
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    match (write.operation, write.subresource) {
        (_, Subresource::Status) => {}
        (Operation::Create, _) => check_ranges(&spec, errors),
        (Operation::Update(old), _) => check_update(&spec, old.list_at(["spec", "cidrs"]), errors),
    }
}

fn check_ranges(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let ranges = spec.field("cidrs");
    match ranges.list().len() {
        0 => return errors.required(&ranges, "at least one CIDR required"),
        1 | 2 => {}
        _ => {
            let shown = go::pointer("networking/v1", "ServiceCIDRSpec", spec.value());
            return errors.invalid_value(&ranges, shown, "may only hold up to 2 values");
        }
    }
    Rule::Each(ip::check_canonical_cidr).check(&ranges, errors);
    let mut families = ranges
        .items()
        .map(|r| Cidr::parse_sloppy(r.str()).map(|c| c.address.to_canonical().is_ipv4()));
    if let (Some(Some(first)), Some(Some(second))) = (families.next(), families.next())
        && first == second
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(&ranges, why);
    }
}

/// An update may add a range of the other IP family.
fn check_update(spec: &Cursor<'_, '_>, stored: &[Value], errors: &mut ErrorList) {
    let ranges = spec.field("cidrs");
    let check_kept = |errors: &mut ErrorList| {
        for (range, stored) in ranges.items().zip(stored) {
            if range.value() != Some(stored) {
                errors.invalid(&range, IMMUTABLE);
            }
        }
    };
    match (stored.len(), ranges.list().len()) {
        (before, after) if before == after => check_kept(errors),
        (1, 2) => {
            check_kept(errors);
            check_ranges(spec, errors);
        }
        _ => errors.invalid_value(&ranges, ranges.value().cloned().unwrap_or_default(), IMMUTABLE),
    }
}
