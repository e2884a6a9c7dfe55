//! Semantic versions.

use super::ordered::{Ordered, compare_to, is_greater, is_less, key, reading};
use crate::overload::{Library, Overload, Ty};
use crate::run::Run;
use crate::val::{Arena, EvalError, Opaque, Res, Val};
use scantling_notation::semver::{Semver, SemverSyntax};
use std::sync::Arc;

/// The name of the type.
pub const TYPE: &str = "kubernetes.Semver";
const V: Ty = Ty::Message(TYPE);

/// Parsing and comparing versions.
pub static VERSIONS: Library = Library {
    name: "kubernetes.Semver",
    overloads: &[
        reading(Overload::global(
            "string_to_semver",
            "semver",
            &[Ty::String],
            V,
            Run::Unary(semver),
        )),
        reading(Overload::global(
            "is_semver_string",
            "isSemver",
            &[Ty::String],
            Ty::Bool,
            Run::Unary(is_semver),
        )),
        Overload::member(
            "semver_is_greater_than",
            "isGreaterThan",
            &[V, V],
            Ty::Bool,
            Run::Binary(is_greater::<Semver>),
        ),
        Overload::member(
            "semver_is_less_than",
            "isLessThan",
            &[V, V],
            Ty::Bool,
            Run::Binary(is_less::<Semver>),
        ),
        Overload::member(
            "semver_compare_to",
            "compareTo",
            &[V, V],
            Ty::Int,
            Run::Binary(compare_to::<Semver>),
        ),
        Overload::member("semver_major", "major", &[V], Ty::Int, Run::Unary(major)),
        Overload::member("semver_minor", "minor", &[V], Ty::Int, Run::Unary(minor)),
        Overload::member("semver_patch", "patch", &[V], Ty::Int, Run::Unary(patch)),
    ],
    types: &[],
};

/// The additions of version 1 to [`VERSIONS`]: parsing with optional normalization.
pub static NORMALIZING: Library = Library {
    name: "kubernetes.Semver normalizing",
    overloads: &[
        reading(Overload::global(
            "string_bool_to_semver",
            "semver",
            &[Ty::String, Ty::Bool],
            V,
            Run::Binary(semver_normalizing),
        )),
        reading(Overload::global(
            "is_semver_string_bool",
            "isSemver",
            &[Ty::String, Ty::Bool],
            Ty::Bool,
            Run::Binary(is_semver_normalizing),
        )),
    ],
    types: &[],
};

impl Opaque for Semver {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
        other.opaque::<Semver>().map(|other| self == other)
    }

    fn share(&self) -> Arc<dyn Opaque> {
        Arc::new(self.clone())
    }
}

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

fn semver<'a>(arena: &'a Arena, text: Val<'a>) -> Res<'a> {
    semver_normalizing(arena, text, Val::FALSE)
}

fn semver_normalizing<'a>(arena: &'a Arena, text: Val<'a>, normalize: Val<'a>) -> Res<'a> {
    arena.opaque(Semver::parse(text.str()?, syntax_from_flag(normalize)?).map_err(EvalError::message)?)
}

fn is_semver<'a>(arena: &'a Arena, text: Val<'a>) -> Res<'a> {
    is_semver_normalizing(arena, text, Val::FALSE)
}

fn is_semver_normalizing<'a>(_: &'a Arena, text: Val<'a>, normalize: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(
        Semver::parse(text.str()?, syntax_from_flag(normalize)?).is_ok(),
    ))
}

// UPSTREAM: numbers beyond the range of an `int` wrap around.
fn major<'a>(_: &'a Arena, version: Val<'a>) -> Res<'a> {
    Ok(Val::Int(get(version)?.major.cast_signed()))
}

fn minor<'a>(_: &'a Arena, version: Val<'a>) -> Res<'a> {
    Ok(Val::Int(get(version)?.minor.cast_signed()))
}

fn patch<'a>(_: &'a Arena, version: Val<'a>) -> Res<'a> {
    Ok(Val::Int(get(version)?.patch.cast_signed()))
}
