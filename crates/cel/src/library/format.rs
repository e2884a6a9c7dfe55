//! Named formats.

use crate::estimate::formula;
use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, RegexCost, Run, size};
use crate::val::{Arena, EvalError, Opaque, Res, Val};
use scantling_notation::format::NamedFormat;
use std::sync::Arc;

/// The name of the type.
pub const TYPE: &str = "kubernetes.NamedFormat";
const F: Ty = Ty::Message(TYPE);

/// Lookup of formats by name, and validation of strings.
pub static FORMATS: Library = Library {
    name: "kubernetes.format",
    overloads: &[
        Overload::member(
            "format-validate",
            "validate",
            &[F, Ty::String],
            Ty::Optional(&Ty::List(&Ty::String)),
            Run::Binary(validate),
        )
        .costing(
            Estimate::Formula(formula::validate_format),
            Actual::NamedFormula(validate_cost),
        ),
        Overload::global(
            "format-named",
            "format.named",
            &[Ty::String],
            Ty::Optional(&F),
            Run::Unary(named),
        ),
        constant("format.dns1123Label", |arena| {
            arena.opaque(NamedFormat::Dns1123Label)
        }),
        constant("format.dns1123Subdomain", |arena| {
            arena.opaque(NamedFormat::Dns1123Subdomain)
        }),
        constant("format.dns1035Label", |arena| {
            arena.opaque(NamedFormat::Dns1035Label)
        }),
        constant("format.qualifiedName", |arena| {
            arena.opaque(NamedFormat::QualifiedName)
        }),
        constant("format.dns1123LabelPrefix", |arena| {
            arena.opaque(NamedFormat::Dns1123LabelPrefix)
        }),
        constant("format.dns1123SubdomainPrefix", |arena| {
            arena.opaque(NamedFormat::Dns1123SubdomainPrefix)
        }),
        constant("format.dns1035LabelPrefix", |arena| {
            arena.opaque(NamedFormat::Dns1035LabelPrefix)
        }),
        constant("format.labelValue", |arena| arena.opaque(NamedFormat::LabelValue)),
        constant("format.uri", |arena| arena.opaque(NamedFormat::Uri)),
        constant("format.uuid", |arena| arena.opaque(NamedFormat::Uuid)),
        constant("format.byte", |arena| arena.opaque(NamedFormat::Byte)),
        constant("format.date", |arena| arena.opaque(NamedFormat::Date)),
        constant("format.datetime", |arena| arena.opaque(NamedFormat::DateTime)),
    ],
    types: &[],
};

const fn constant(name: &'static str, run: for<'a> fn(&'a Arena) -> Res<'a>) -> Overload {
    Overload::global(name, name, &[], F, Run::Nullary(run))
}

impl Opaque for NamedFormat {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
        other.opaque::<NamedFormat>().map(|other| self == other)
    }

    fn share(&self) -> Arc<dyn Opaque> {
        Arc::new(*self)
    }
}

/// The cost of matching the text with the regular expression of the format.
fn validate_cost(args: &[Option<Val<'_>>], _: Option<Val<'_>>) -> u64 {
    let arg = |i: usize| args.get(i).copied().flatten();
    // A format that is an error has no regular expression, so the default cost of a call applies.
    let Some(Ok(format)) = arg(0).map(Val::opaque::<NamedFormat>) else {
        return 1;
    };
    RegexCost::new(format.regex_size()).cost(size(arg(1)))
}

fn named<'a>(arena: &'a Arena, name: Val<'a>) -> Res<'a> {
    match NamedFormat::by_name(name.str()?) {
        // An unknown name does not fail, so that a rule can test whether the server has a format.
        Some(format) => arena.some(arena.opaque(format)?),
        None => Ok(Val::NONE),
    }
}

fn validate<'a>(arena: &'a Arena, format: Val<'a>, text: Val<'a>) -> Res<'a> {
    let problems = format.opaque::<NamedFormat>()?.validate(text.str()?);
    if problems.is_empty() {
        return Ok(Val::NONE);
    }
    let problems: Result<Vec<_>, _> = problems.into_iter().map(|problem| arena.str(problem)).collect();
    arena.some(arena.list(problems?)?)
}
