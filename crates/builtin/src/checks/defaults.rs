//! Filling in defaults.

use crate::prepare::set_default;
use scantling_apitypes::{Presence, TypeTable};
use scantling_notation::quantity::{Quantity, QuantityFormat};
use scantling_value::{Limits, Map, Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Sets a field that is absent, or empty or 0. Fits fields that are no pointers in Go.
pub(crate) fn set_if_empty(object: &mut Map, field: &str, value: impl Into<Value>) {
    if object.get(field).is_none_or(super::is_zero) {
        object.insert(field, value.into());
    }
}

/// A default that the table of API types has: the field, whether it is a pointer, and the value.
type Static = (&'static str, Presence, Value);

/// Fills in the defaults that the table of API types has for a struct of the core group.
pub(crate) fn set_static(object: &mut Map, name: &str) {
    static DEFAULTS: OnceLock<BTreeMap<&'static str, Vec<Static>>> = OnceLock::new();
    let defaults = DEFAULTS.get_or_init(|| {
        let table = TypeTable::latest();
        let of_core = |d: &&scantling_apitypes::TypeDef| table.package(d).id == "core/v1";
        let definitions = table.definitions().iter().filter(of_core);
        definitions
            .map(|d| {
                let defaults = d.members().iter().filter_map(|field| {
                    let default =
                        json::decode(field.attributes.default()?.as_bytes(), Limits::SERVER).ok()?;
                    let is_pointer = matches!(field.ty, scantling_apitypes::GoType::Pointer(_));
                    let presence = if is_pointer {
                        Presence::Pointer
                    } else {
                        field.presence
                    };
                    Some((field.name, presence, default))
                });
                (d.name, defaults.collect::<Vec<_>>())
            })
            .filter(|(_, defaults)| !defaults.is_empty())
            .collect()
    });
    for (field, presence, value) in defaults.get(name).into_iter().flatten() {
        match presence {
            Presence::Pointer => set_default(object, field, value.clone()),
            // Go cannot tell zero from absent in fields that are not pointers.
            Presence::Required | Presence::OmitEmpty => set_if_empty(object, field, value.clone()),
        }
    }
}

/// Rounds the amounts of requests and limits up to a thousandth.
pub(crate) fn round_requirements(requirements: Option<&mut Value>) {
    if let Some(requirements) = requirements.and_then(Value::as_object_mut) {
        round_list(requirements.get_mut("limits"));
        round_list(requirements.get_mut("requests"));
    }
}

/// Rounds the amounts of a resource list up to a thousandth.
pub(crate) fn round_list(list: Option<&mut Value>) {
    for (_, amount) in list
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::iter_mut)
    {
        let rounded = amount.as_str().and_then(rounded);
        if let Some(rounded) = rounded {
            *amount = rounded.into();
        }
    }
}

/// An amount in canonical form rounded up to a thousandth, unless it has no smaller parts.
fn rounded(amount: &str) -> Option<String> {
    let has_small_parts = amount.ends_with(['n', 'u']) || amount.contains("e-");
    let amount = Quantity::parse(amount).ok().filter(|_| has_small_parts)?;
    let suffix = match amount.format() {
        QuantityFormat::DecimalExponent => "e-3",
        QuantityFormat::BinarySi | QuantityFormat::DecimalSi => "m",
    };
    let rounded = format!("{}{suffix}", amount.scaled(-3));
    Quantity::parse(&rounded).ok().map(|amount| amount.canonical())
}
