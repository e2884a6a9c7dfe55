//! The parts of a request that are independent of its body.

use crate::auth::authentication::User;
use crate::codec::media::{self, Accept, Encoding, Encodings};
use crate::request::Query;
use crate::status::ApiResult;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Uri};
use std::sync::Arc;

/// Method, query, headers and user of a request.
#[derive(Debug)]
pub(crate) struct RequestMeta {
    pub(crate) method: Method,
    pub(crate) query: Query,
    pub(crate) accept: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) user_agent: String,
    pub(crate) user: Option<Arc<User>>,
    /// The path and the query as sent.
    pub(crate) uri: Uri,
    /// The encodings of the server.
    pub(crate) encodings: Encodings,
}

impl RequestMeta {
    /// The media types that the client accepts.
    pub(crate) fn accept(&self) -> Accept<'_> {
        Accept {
            text: self.accept.as_deref(),
            encodings: self.encodings,
        }
    }

    /// The encoding of the body.
    pub(crate) fn body_encoding(&self) -> ApiResult<Encoding> {
        media::body_encoding(self.content_type.as_deref(), self.encodings)
    }
}

/// A header; the first of several with one name.
pub(super) fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
