//! The byte stream of a connection: disconnects clients that do not read, charges incomplete heads, and lets
//! connections take turns.

use super::Connection;
use crate::http::memory::{Budget, Charge};
use crate::metrics::{Closed, Metrics};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// The bytes of a head that are not charged. Nearly all heads are smaller.
const FREE_HEAD: usize = 16 * 1024;

/// The bytes that a connection reads or writes before others get their turn. Hundreds of connections may be
/// ready at once, and a new request waits for a turn of each.
const TURN: usize = 32 * 1024;

/// A stream that fails if its peer takes nothing for too long.
#[derive(Debug)]
pub(crate) struct ConnectionIo<S> {
    stream: S,
    connection: Arc<Connection>,
    metrics: Arc<Metrics>,
    /// The deadline of a blocked write, if one is blocked.
    write_deadline: Option<Pin<Box<Sleep>>>,
    is_blocked: bool,
    /// The request whose head is being received, and its size so far.
    head: (u64, usize),
    head_charge: Charge,
    /// The bytes of this turn.
    turn: usize,
}

impl<S> ConnectionIo<S> {
    pub(crate) fn new(
        stream: S,
        connection: Arc<Connection>,
        metrics: Arc<Metrics>,
        budget: &Budget,
    ) -> ConnectionIo<S> {
        ConnectionIo {
            stream,
            connection,
            metrics,
            write_deadline: None,
            is_blocked: false,
            head: (0, 0),
            head_charge: budget.empty(),
            turn: 0,
        }
    }

    /// Waits for the next turn once this one is used up.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.turn < TURN {
            return Poll::Ready(());
        }
        self.turn = 0;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Passes on the result of a write, or an error if the last progress is too long ago.
    fn check_progress<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.release_head();
        if written.is_ready() {
            self.is_blocked = false;
            return written;
        }
        let timeout = self.connection.write_timeout();
        // The timer is allocated once and kept: most connections never block on a write.
        let deadline = self
            .write_deadline
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        if !self.is_blocked {
            self.is_blocked = true;
            deadline.as_mut().reset(Instant::now() + timeout);
        }
        ready!(deadline.as_mut().poll(cx));
        self.metrics.closed(Closed::Stalled);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn count_written(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.turn += bytes;
        }
    }

    /// Releases the charge for a head once its request has begun.
    fn release_head(&mut self) {
        let request = self.connection.requests();
        if self.head.0 != request {
            self.head = (request, 0);
            // Dropping the old charge releases its bytes.
            self.head_charge = self.head_charge.budget().empty();
        }
    }

    /// Charges the bytes of an incomplete head.
    fn charge_head(&mut self, bytes: usize) -> io::Result<()> {
        let is_head = self.connection.received();
        self.release_head();
        if !is_head {
            return Ok(());
        }
        let before = self.head.1.max(FREE_HEAD);
        self.head.1 += bytes;
        let more = self.head.1.saturating_sub(before);
        if more > 0 && !self.head_charge.grow(more) {
            self.metrics.closed(Closed::OutOfMemory);
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ConnectionIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_turn(cx));
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let bytes = buffer.filled().len() - before;
        self.turn += bytes;
        Poll::Ready(self.charge_head(bytes))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ConnectionIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(cx));
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.count_written(&written);
        self.check_progress(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(cx));
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.count_written(&written);
        self.check_progress(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    // Flushing and closing take no turn: they only finish what was written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_progress(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check_progress(cx, closed)
    }
}
