//! URLs.

use crate::estimate::TEXT_FACTOR;
use crate::overload::{Costs, Estimate, Library, ResultSize, Ty, overloads};
use crate::run::Actual;
use crate::val::{Arena, EvalError, Res, Val, opaque};
use scantling_notation::url::Url;

/// The name of the type.
pub const TYPE: &str = "kubernetes.URL";
const URL: Ty = Ty::Message(TYPE);
const S: Ty = Ty::String;
const READING: Costs = (
    Estimate::Pass {
        operand: 0,
        factor: TEXT_FACTOR,
        result: ResultSize::Same,
    },
    Actual::named_text_pass(0),
);

/// Parsing of URLs and access to their parts.
pub static URLS: Library = Library {
    name: "kubernetes.urls",
    overloads: overloads! {
        "string_to_url": global "url"(S) -> URL => Unary(url), READING;
        "url_get_scheme": member "getScheme"(URL) -> S
            => Unary(|_, url| Ok(Val::Str(url.opaque::<Url>()?.scheme())));
        "url_get_host": member "getHost"(URL) -> S
            => Unary(|_, url| Ok(Val::Str(url.opaque::<Url>()?.host())));
        "url_get_hostname": member "getHostname"(URL) -> S
            => Unary(|_, url| Ok(Val::Str(url.opaque::<Url>()?.hostname())));
        "url_get_port": member "getPort"(URL) -> S
            => Unary(|_, url| Ok(Val::Str(url.opaque::<Url>()?.port())));
        "url_get_escaped_path": member "getEscapedPath"(URL) -> S
            => Unary(|arena, url| arena.str(url.opaque::<Url>()?.escaped_path()));
        "url_get_query": member "getQuery"(URL) -> Map(&S, &List(&S)) => Unary(query);
        "is_url_string": global "isURL"(S) -> Bool
            => Unary(|_, text| Ok(Val::Bool(Url::check(text.str()?).is_ok())));
    },
    types: &[],
};

opaque!(Url, TYPE);

fn url<'a>(arena: &'a Arena, text: Val<'a>) -> Res<'a> {
    let url = Url::parse(text.str()?)
        .map_err(|e| EvalError::message(format!("URL parse error during conversion from string: {e}")))?;
    arena.opaque(url)
}

fn query<'a>(arena: &'a Arena, url: Val<'a>) -> Res<'a> {
    let entry = |(name, values): (String, Vec<String>)| {
        let values: Result<Vec<_>, _> = values.into_iter().map(|value| arena.str(value)).collect();
        Ok((arena.str(name)?, arena.list(values?)?))
    };
    let entries: Result<Vec<_>, EvalError> = url.opaque::<Url>()?.query().into_iter().map(entry).collect();
    // Sorted by name, because Go's map of query parameters has no order.
    arena.map(entries?)
}
