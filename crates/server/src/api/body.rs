//! Reading the body of a request.

use super::{MAX_BODY, too_many_requests};
use crate::http::memory::{Budget, Charge};
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

/// The bytes of a body that are not charged. Nearly all bodies are smaller.
const UNCHARGED_BODY: usize = 64 * 1024;

/// Reads a body. The memory for a large one is charged as it arrives, for as long as the charge lives.
pub(super) async fn read_body(mut body: Incoming, memory: &Budget) -> ApiResult<(Bytes, Charge)> {
    let too_large = || ApiError::too_large(format!("Request entity too large: limit is {MAX_BODY}"));
    // A declared length is refused before a byte of it is held.
    if body.size_hint().lower() > MAX_BODY as u64 {
        discard(body).await;
        return Err(too_large());
    }
    let mut charge = memory.empty();
    let (mut first, mut whole) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        // Trailers are ignored.
        let Ok(data) = frame.map_err(|e| unread_body(&e))?.into_data() else {
            continue;
        };
        let before = first.len() + whole.len();
        let after = before + data.len();
        if after > MAX_BODY {
            discard(body).await;
            return Err(too_large());
        }
        // Only what exceeds the free part is charged, once for each byte.
        let more = after.saturating_sub(before.max(UNCHARGED_BODY));
        if more > 0 && !charge.grow(more) {
            return Err(too_many_requests());
        }
        // A body in one frame, as most are, is used without a copy.
        if before == 0 {
            first = data;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&data);
        }
    }
    let read = if whole.is_empty() { first } else { whole.into() };
    Ok((read, charge))
}

/// Reads the rest of a body that is refused, up to a limit. Many clients read the response only after they have sent
/// their body, and would find the connection closed.
async fn discard(mut body: Incoming) {
    const MAX_DISCARDED: usize = 4 * MAX_BODY;
    let mut discarded = 0;
    while let Some(Ok(frame)) = body.frame().await {
        discarded += frame.data_ref().map_or(0, Bytes::len);
        if discarded > MAX_DISCARDED {
            return;
        }
    }
}

/// The error about a body with malformed chunks, in the words of Go's reader.
fn unread_body(e: &hyper::Error) -> ApiError {
    let e: &dyn std::error::Error = e;
    let chain = std::iter::successors(Some(e), |e| e.source());
    // hyper's own text says only that the body failed; the innermost source says why.
    let cause = chain.last().map(ToString::to_string).unwrap_or_default();
    let why = match &*cause {
        "Invalid chunk size line: Invalid Size" | "Invalid chunk size line: missing size digit" => {
            "invalid byte in chunk length"
        }
        "invalid chunk size: overflow" => "http chunk length too large",
        _ => "malformed chunked encoding",
    };
    ApiError::bad_request(why).private(cause)
}
