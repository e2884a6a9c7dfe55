//! Named formats.

use crate::estimate::formula;
use crate::overload::{Costs, Estimate, Library, Overload, Ty, overloads};
use crate::run::{Actual, RegexCost, Run, size};
use crate::val::{Arena, EvalError, Res, Val, opaque};
use scantling_notation::format::NamedFormat;

/// The name of the type.
pub const TYPE: &str = "kubernetes.NamedFormat";
const F: Ty = Ty::Message(TYPE);

/// Lookup of formats by name, and validation of strings.
pub static FORMATS: Library = Library {
    name: "kubernetes.format",
    overloads: overloads! {
        "format-validate": member "validate"(F, String) -> Optional(&List(&String))
            => Binary(validate), VALIDATE;
        "format-named": global "format.named"(String) -> Optional(&F) => Unary(named);
    },
    types: &[],
};

const VALIDATE: Costs = (
    Estimate::Formula(formula::validate_format),
    Actual::NamedFormula(validate_cost),
);

/// A function without operands for each format.
macro_rules! constants {
    ($($name:literal => $format:ident),*) => {
        &[$(Overload::global(
            concat!("format.", $name),
            concat!("format.", $name),
            &[],
            F,
            Run::Nullary(|arena| arena.opaque(NamedFormat::$format)),
        )),*]
    };
}

/// The formats as constants.
pub static CONSTANTS: Library = Library {
    name: "kubernetes.format constants",
    overloads: constants! {
        "dns1123Label" => Dns1123Label,
        "dns1123Subdomain" => Dns1123Subdomain,
        "dns1035Label" => Dns1035Label,
        "qualifiedName" => QualifiedName,
        "dns1123LabelPrefix" => Dns1123LabelPrefix,
        "dns1123SubdomainPrefix" => Dns1123SubdomainPrefix,
        "dns1035LabelPrefix" => Dns1035LabelPrefix,
        "labelValue" => LabelValue,
        "uri" => Uri,
        "uuid" => Uuid,
        "byte" => Byte,
        "date" => Date,
        "datetime" => DateTime
    },
    types: &[],
};

opaque!(NamedFormat, TYPE);

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
