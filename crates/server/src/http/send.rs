//! Response bodies, and the resources they hold until they end.

use crate::http::connection::{ActiveRequest, StreamProgress};
use crate::http::memory::Charge;
use crate::http::reply::Body;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::OwnedSemaphorePermit;

/// The maximum size of a frame. Connections buffer a few frames of each response, whatever their size.
pub(crate) const MAX_FRAME: usize = 16 * 1024;

/// Resources that a response holds until its body ends.
#[derive(Debug, Default)]
#[expect(dead_code, reason = "what it holds is given back when it is dropped")]
pub(crate) struct HeldUntilSent {
    /// Its in-flight permit.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
    /// The memory of its body.
    pub(crate) memory: Option<Charge>,
}

/// The body of a response.
pub(crate) struct ResponseBody {
    body: Body,
    /// The rest of a frame that was too large.
    rest: Bytes,
    progress: Option<Arc<StreamProgress>>,
    _held: HeldUntilSent,
    _request: ActiveRequest,
}

impl ResponseBody {
    /// Must be called in the task that sends the response.
    pub(crate) fn new(body: Body, held: HeldUntilSent, request: ActiveRequest) -> ResponseBody {
        ResponseBody {
            body,
            rest: Bytes::new(),
            progress: StreamProgress::current(),
            _held: held,
            _request: request,
        }
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            if let Some(progress) = &self.progress {
                // hyper asks for a frame only when the stream has window for it: the client took the last one.
                progress.waits_for_data();
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(never)) => match never {},
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
        let length = self.rest.len().min(MAX_FRAME);
        let data = self.rest.split_to(length);
        if let Some(progress) = &self.progress {
            progress.handed_over();
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        let (lower, upper) = (hint.lower() + rest, hint.upper().map(|u| u + rest));
        hint.set_lower(lower);
        if let Some(upper) = upper {
            hint.set_upper(upper);
        }
        hint
    }
}
