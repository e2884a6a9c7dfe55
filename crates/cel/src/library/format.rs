//! Named formats.

use crate::data::format::Format;
use crate::estimate::formula;
use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, Run, Searched, size};
use crate::val::{Arena, EvalError, Opaque, Res, Val};
use std::sync::Arc;

/// The name of the type.
pub const TYPE: &str = "kubernetes.NamedFormat";
const F: Ty = Ty::Message(TYPE);

/// The formats by name, and what is wrong with a text.
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
        constant("format.dns1123Label", |arena| arena.opaque(Format::Dns1123Label)),
        constant("format.dns1123Subdomain", |arena| {
            arena.opaque(Format::Dns1123Subdomain)
        }),
        constant("format.dns1035Label", |arena| arena.opaque(Format::Dns1035Label)),
        constant("format.qualifiedName", |arena| {
            arena.opaque(Format::QualifiedName)
        }),
        constant("format.dns1123LabelPrefix", |arena| {
            arena.opaque(Format::Dns1123LabelPrefix)
        }),
        constant("format.dns1123SubdomainPrefix", |arena| {
            arena.opaque(Format::Dns1123SubdomainPrefix)
        }),
        constant("format.dns1035LabelPrefix", |arena| {
            arena.opaque(Format::Dns1035LabelPrefix)
        }),
        constant("format.labelValue", |arena| arena.opaque(Format::LabelValue)),
        constant("format.uri", |arena| arena.opaque(Format::Uri)),
        constant("format.uuid", |arena| arena.opaque(Format::Uuid)),
        constant("format.byte", |arena| arena.opaque(Format::Byte)),
        constant("format.date", |arena| arena.opaque(Format::Date)),
        constant("format.datetime", |arena| arena.opaque(Format::DateTime)),
    ],
    types: &[],
};

const fn constant(name: &'static str, run: for<'a> fn(&'a Arena) -> Res<'a>) -> Overload {
    Overload::global(name, name, &[], F, Run::Nullary(run))
}

impl Opaque for Format {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
        other.opaque::<Format>().map(|other| self == other)
    }

    fn share(&self) -> Arc<dyn Opaque> {
        Arc::new(*self)
    }
}

/// As if the text were matched with the regular expression of the format.
fn validate_cost(args: &[Option<Val<'_>>], _: Option<Val<'_>>) -> u64 {
    let arg = |i: usize| args.get(i).copied().flatten();
    let Some(Ok(format)) = arg(0).map(Val::opaque::<Format>) else {
        return 1;
    };
    Searched::new(format.regex_size()).cost(size(arg(1)))
}

fn named<'a>(arena: &'a Arena, name: Val<'a>) -> Res<'a> {
    match Format::named(name.str()?) {
        Some(format) => arena.some(arena.opaque(format)?),
        None => Ok(Val::NONE),
    }
}

fn validate<'a>(arena: &'a Arena, format: Val<'a>, text: Val<'a>) -> Res<'a> {
    let problems = format.opaque::<Format>()?.validate(text.str()?);
    if problems.is_empty() {
        return Ok(Val::NONE);
    }
    let problems: Result<Vec<_>, _> = problems.into_iter().map(|problem| arena.str(problem)).collect();
    arena.some(arena.list(problems?)?)
}
