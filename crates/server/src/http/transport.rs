//! Rejection of malformed HTTP requests, with the responses of Go's server.

use crate::http::reply::{Body, PLAIN_TEXT};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode, Version};

/// The response to a malformed request.
pub(crate) fn refusal(parts: &Parts) -> Option<Response<Body>> {
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let (host, other) = (hosts.next(), hosts.next());
    let expects = parts.headers.get(header::EXPECT);
    if host.is_none() && parts.version == Version::HTTP_11 && parts.uri.authority().is_none() {
        let why = "400 Bad Request: missing required Host header";
        return Some(answer(StatusCode::BAD_REQUEST, why));
    }
    // Go's server refuses these before any handler; hyper accepts them.
    if other.is_some() || !is_escaped(parts.uri.path()) {
        return Some(answer(StatusCode::BAD_REQUEST, "400 Bad Request"));
    }
    // hyper sends the interim response for `100-continue` itself.
    if expects.is_some_and(|e| !e.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        return Some(answer(StatusCode::EXPECTATION_FAILED, ""));
    }
    None
}

fn answer(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if !text.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PLAIN_TEXT));
    }
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Returns whether every percent sign of a path begins an escape.
fn is_escaped(path: &str) -> bool {
    path.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_escapes_of_paths() {
        for (path, want) in [
            ("/a", true),
            ("/%41/%2f", true),
            ("/%4", false),
            ("/%zz", false),
            ("/%", false),
        ] {
            assert_eq!(is_escaped(path), want, "{path}");
        }
    }
}
