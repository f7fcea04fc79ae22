//! Bodies that end where they have to: when they are too long, or take too long.

use super::{Failure, Running};
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// What a request's body may fail with.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a response. Dropping it ends the exchange.
#[derive(Debug)]
pub struct Body {
    incoming: Incoming,
    left: u64,
    most: u64,
    /// At the latest when the whole exchange has to be over.
    timer: Pin<Box<Sleep>>,
    over: Instant,
    between: Duration,
    /// Whether the time since the last piece is being taken. It is only while somebody waits for the next.
    waiting: bool,
    /// The connection, which ends with it.
    held: Option<Running<()>>,
}

/// What a response's body is given.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) bytes: u64,
    pub(super) over: Instant,
    pub(super) between: Duration,
}

impl Body {
    pub(super) fn new(incoming: Incoming, limits: Limits, held: Running<()>) -> Self {
        let Limits { bytes, over, between } = limits;
        let timer = Box::pin(tokio::time::sleep_until(over));
        Self { incoming, left: bytes, most: bytes, timer, over, between, waiting: false, held: Some(held) }
    }

    fn end(&mut self) {
        self.held = None;
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        if self.held.is_none() {
            return Poll::Ready(None);
        }
        let frame = match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                if !self.waiting {
                    self.waiting = true;
                    let next = Instant::now().checked_add(self.between).unwrap_or(self.over).min(self.over);
                    self.timer.as_mut().reset(next);
                }
                ready!(self.timer.as_mut().poll(cx));
                self.end();
                let failure = if Instant::now() < self.over { Failure::ReadTimeout } else { Failure::Timeout };
                return Poll::Ready(Some(Err(failure)));
            }
        };
        self.waiting = false;
        let checked = frame.map(|frame| {
            // At the end of its time the connection is cut off.
            let late = || Instant::now() >= self.over;
            let frame = frame.map_err(|error| if late() { Failure::Timeout } else { classify(&error) })?;
            if let Some(data) = frame.data_ref() {
                let left = self.left.checked_sub(data.len() as u64);
                self.left = left.ok_or(Failure::ResponseTooLarge(self.most))?;
            }
            if Instant::now() < self.over { Ok(frame) } else { Err(Failure::Timeout) }
        });
        // A piece that came has no successor only where the stream says so; an error has none.
        if !matches!(checked, Some(Ok(_))) {
            self.end();
        }
        Poll::Ready(checked)
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_none() || self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// What went wrong on a connection.
pub(super) fn classify(error: &hyper::Error) -> Failure {
    let ended = error.is_incomplete_message() || error.is_body_write_aborted() || error.is_closed() || error.is_canceled();
    let broken = error.source().is_some_and(|cause| cause.is::<std::io::Error>());
    if ended || broken { Failure::Incomplete } else { Failure::Protocol }
}

/// The body of a request, which fails when it gets too long. Trailers are not sent: nobody expects them.
pub(super) struct Counted<B> {
    inner: Pin<Box<B>>,
    left: u64,
    exceeded: Arc<AtomicBool>,
}

impl<B> Counted<B> {
    /// At most `most` bytes; `exceeded` is set when there are more.
    pub(super) fn new(inner: B, most: u64, exceeded: Arc<AtomicBool>) -> Self {
        Self { inner: Box::pin(inner), left: most, exceeded }
    }
}

impl<B> hyper::body::Body for Counted<B>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(frame) = ready!(self.inner.as_mut().poll_frame(cx)) else { return Poll::Ready(None) };
        let frame = frame.map_err(Into::into)?;
        let Ok(data) = frame.into_data() else { return Poll::Ready(None) };
        match self.left.checked_sub(data.len() as u64) {
            Some(left) => {
                self.left = left;
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            None => {
                self.exceeded.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err("the body is longer than allowed".into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
