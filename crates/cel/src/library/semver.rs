//! Semantic versions.

use super::ordered::{Ordered, PARSING, compare_to, is_greater, is_less, key};
use crate::overload::{Library, Ty, overloads};
use crate::val::{Arena, EvalError, Res, Val, opaque};
use scantling_notation::semver::{Semver, SemverSyntax};

/// The name of the type.
pub const TYPE: &str = "kubernetes.Semver";
const V: Ty = Ty::Message(TYPE);

/// Parsing and comparing versions.
pub static VERSIONS: Library = Library {
    name: "kubernetes.Semver",
    overloads: overloads! {
        "string_to_semver": global "semver"(String) -> V
            => Unary(|arena, text| semver(arena, text, Val::FALSE)), PARSING;
        "is_semver_string": global "isSemver"(String) -> Bool
            => Unary(|arena, text| is_semver(arena, text, Val::FALSE)), PARSING;
        "semver_is_greater_than": member "isGreaterThan"(V, V) -> Bool => Binary(is_greater::<Semver>);
        "semver_is_less_than": member "isLessThan"(V, V) -> Bool => Binary(is_less::<Semver>);
        "semver_compare_to": member "compareTo"(V, V) -> Int => Binary(compare_to::<Semver>);
        "semver_major": member "major"(V) -> Int => Unary(|_, v| number(v, |v| v.major));
        "semver_minor": member "minor"(V) -> Int => Unary(|_, v| number(v, |v| v.minor));
        "semver_patch": member "patch"(V) -> Int => Unary(|_, v| number(v, |v| v.patch));
    },
    types: &[],
};

/// The additions of version 1 to [`VERSIONS`]: parsing with optional normalization.
pub static NORMALIZING: Library = Library {
    name: "kubernetes.Semver normalizing",
    overloads: overloads! {
        "string_bool_to_semver": global "semver"(String, Bool) -> V => Binary(semver), PARSING;
        "is_semver_string_bool": global "isSemver"(String, Bool) -> Bool => Binary(is_semver), PARSING;
    },
    types: &[],
};

opaque!(Semver, TYPE);

impl Ordered for Semver {
    type Key = Semver;

    fn key(&self) -> &Semver {
        self
    }
}

fn get(value: Val<'_>) -> Result<&Semver, EvalError> {
    key::<Semver>(value)
}

fn syntax_from_flag(normalize: Val<'_>) -> Result<SemverSyntax, EvalError> {
    Ok(if normalize.bool()? {
        SemverSyntax::Normalizing
    } else {
        SemverSyntax::Strict
    })
}

fn semver<'a>(arena: &'a Arena, text: Val<'a>, normalize: Val<'a>) -> Res<'a> {
    arena.opaque(Semver::parse(text.str()?, syntax_from_flag(normalize)?).map_err(EvalError::message)?)
}

fn is_semver<'a>(_: &'a Arena, text: Val<'a>, normalize: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(
        Semver::parse(text.str()?, syntax_from_flag(normalize)?).is_ok(),
    ))
}

fn number<'a>(version: Val<'a>, part: fn(&Semver) -> u64) -> Res<'a> {
    // UPSTREAM: numbers beyond the range of an `int` wrap around.
    Ok(Val::Int(part(get(version)?).cast_signed()))
}
