//! What all bodies of events have in common: their form, who waits for the wire, and the sign of life of an idle one.

use super::wire::Wire;
use bytes::Bytes;
use guesthouse_protocol::framing::{KEEP_ALIVE, write_event};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

/// The body of an answer that is a stream of events.
pub(super) trait Events: Send {
    /// The next piece: an event, or a comment.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>>;

    /// Whether nothing follows.
    fn is_over(&self) -> bool;
}

/// A message as an event.
pub(super) fn event(id: Option<&str>, message: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(message.len().saturating_add(32));
    write_event(&mut out, id, message);
    out.into()
}

/// Who waits for what was handed out to be on the wire.
pub(super) struct Unflushed {
    wire: Arc<Wire>,
    waiting: Vec<oneshot::Sender<()>>,
    /// The count of flushes before it was handed out.
    flushes: u64,
}

impl Unflushed {
    pub(super) fn new(wire: Arc<Wire>) -> Self {
        Self { wire, waiting: Vec::new(), flushes: 0 }
    }

    /// Something is handed out now.
    pub(super) fn add(&mut self, written: Option<oneshot::Sender<()>>) {
        self.flushes = self.wire.flushes();
        self.waiting.extend(written);
    }

    /// Tells them, if all is on the wire.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) {
        if !self.waiting.is_empty() && self.wire.poll_flushed(self.flushes, context).is_ready() {
            self.release();
        }
    }

    /// Tells them in any case.
    pub(super) fn release(&mut self) {
        for written in mem::take(&mut self.waiting) {
            // Nobody waits any more if the call ended meanwhile.
            let _ = written.send(());
        }
    }
}

/// Makes a comment whenever nothing was sent for some time, so that nobody on the way takes the connection for dead.
pub(super) struct KeepAlive {
    every: Duration,
    due: Pin<Box<Sleep>>,
}

impl KeepAlive {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, due: Box::pin(sleep(every)) }
    }

    /// Something was sent.
    pub(super) fn put_off(&mut self) {
        self.due.as_mut().reset(Instant::now() + self.every);
    }

    /// A comment, once it is due.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        std::task::ready!(self.due.as_mut().poll(context));
        self.put_off();
        Poll::Ready(Bytes::from_static(KEEP_ALIVE))
    }
}
