//! URLs.

use crate::estimate::TEXT_FACTOR;
use crate::overload::{Estimate, Library, Overload, ResultSize, Ty};
use crate::run::{Actual, Run};
use crate::val::{Arena, EvalError, Opaque, Res, Val};
use scantling_notation::url::Url;
use std::sync::Arc;

/// The name of the type.
pub const TYPE: &str = "kubernetes.URL";
const URL: Ty = Ty::Message(TYPE);
const S: Ty = Ty::String;

/// Parsing of URLs and access to their parts.
pub static URLS: Library = Library {
    name: "kubernetes.urls",
    overloads: &[
        Overload::global("string_to_url", "url", &[S], URL, Run::Unary(url)).costing(
            Estimate::Pass {
                operand: 0,
                factor: TEXT_FACTOR,
                result: ResultSize::Same,
            },
            Actual::named_text_pass(0),
        ),
        Overload::member("url_get_scheme", "getScheme", &[URL], S, Run::Unary(scheme)),
        Overload::member("url_get_host", "getHost", &[URL], S, Run::Unary(host)),
        Overload::member("url_get_hostname", "getHostname", &[URL], S, Run::Unary(hostname)),
        Overload::member("url_get_port", "getPort", &[URL], S, Run::Unary(port)),
        Overload::member(
            "url_get_escaped_path",
            "getEscapedPath",
            &[URL],
            S,
            Run::Unary(escaped_path),
        ),
        Overload::member(
            "url_get_query",
            "getQuery",
            &[URL],
            Ty::Map(&S, &Ty::List(&S)),
            Run::Unary(query),
        ),
        Overload::global("is_url_string", "isURL", &[S], Ty::Bool, Run::Unary(is_url)),
    ],
    types: &[],
};

impl Opaque for Url {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
        other.opaque::<Url>().map(|other| self == other)
    }

    fn share(&self) -> Arc<dyn Opaque> {
        Arc::new(self.clone())
    }
}

fn url<'a>(arena: &'a Arena, text: Val<'a>) -> Res<'a> {
    let url = Url::parse(text.str()?)
        .map_err(|e| EvalError::message(format!("URL parse error during conversion from string: {e}")))?;
    arena.opaque(url)
}

fn is_url<'a>(_: &'a Arena, text: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(Url::check(text.str()?).is_ok()))
}

fn scheme<'a>(_: &'a Arena, url: Val<'a>) -> Res<'a> {
    Ok(Val::Str(url.opaque::<Url>()?.scheme()))
}

fn host<'a>(_: &'a Arena, url: Val<'a>) -> Res<'a> {
    Ok(Val::Str(url.opaque::<Url>()?.host()))
}

fn hostname<'a>(_: &'a Arena, url: Val<'a>) -> Res<'a> {
    Ok(Val::Str(url.opaque::<Url>()?.hostname()))
}

fn port<'a>(_: &'a Arena, url: Val<'a>) -> Res<'a> {
    Ok(Val::Str(url.opaque::<Url>()?.port()))
}

fn escaped_path<'a>(arena: &'a Arena, url: Val<'a>) -> Res<'a> {
    arena.str(url.opaque::<Url>()?.escaped_path())
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
