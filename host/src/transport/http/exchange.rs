//! What happens between a POST and the end of its answer: notifications while a call runs, then the response.

use super::answer::{self, AnswerBody};
use super::wire::Wire;
use crate::dispatch::Frame;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use guesthouse_protocol::Outgoing;
use guesthouse_protocol::framing::write_event;
use guesthouse_protocol::http::Accepts;
use hyper::Response;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// An exchange that waits for its end. In the modern era the end is the call itself, so that dropping this stops it.
pub(super) struct Exchange {
    end: BoxFuture<'static, Option<Outgoing>>,
    frames: mpsc::Receiver<Frame>,
    /// The end, while something still precedes it.
    ended: Option<Option<Outgoing>>,
}

/// What comes next in an exchange.
enum Step {
    /// A notification.
    Frame(Frame),
    /// The response; `None` if there is none, since the call was cancelled.
    End(Option<Outgoing>),
}

/// The body of an answer that is a stream of events.
pub(super) struct Events {
    exchange: Exchange,
    wire: Arc<Wire>,
    /// The notification that made this a stream.
    first: Option<Frame>,
    /// Who waits for what was handed out to be on the wire, and the count of flushes before it.
    unflushed: Vec<oneshot::Sender<()>>,
    flushes: u64,
    over: bool,
}

impl Exchange {
    /// An exchange that ends as the future does, with the notifications that precede the end.
    pub(super) fn new(end: BoxFuture<'static, Option<Outgoing>>, frames: mpsc::Receiver<Frame>) -> Self {
        Self { end, frames, ended: None }
    }

    /// Waits until it is known whether something precedes the response, and begins the answer.
    pub(super) async fn begin(mut self, wire: &Arc<Wire>, accepts: Accepts) -> Response<AnswerBody> {
        match poll_fn(|context| self.poll_step(context)).await {
            Step::End(None) => answer::accepted(),
            Step::End(Some(outgoing)) => answer::response(outgoing, accepts),
            Step::Frame(frame) => answer::stream(Events {
                exchange: self,
                wire: wire.clone(),
                first: Some(frame),
                unflushed: Vec::new(),
                flushes: 0,
                over: false,
            }),
        }
    }

    /// Waits for the end alone.
    #[cfg(test)]
    pub(super) async fn end(&mut self) -> Option<Outgoing> {
        self.end.as_mut().await
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        if self.ended.is_none()
            && let Poll::Ready(end) = self.end.as_mut().poll(context)
        {
            self.ended = Some(end);
        }
        // What was sent before the end goes out before the end, unless it is something that nobody waits for any more.
        while let Poll::Ready(Some(frame)) = self.frames.poll_recv(context) {
            if frame.is_wanted() {
                return Poll::Ready(Step::Frame(frame));
            }
        }
        self.ended.take().map_or(Poll::Pending, |end| Poll::Ready(Step::End(end)))
    }
}

impl Events {
    /// Whether nothing follows.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// The next event. While one is on its way to the wire, the call that sent it waits, so that there is nothing to
    /// hand out and hyper writes what it has.
    pub(super) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.over {
            return Poll::Ready(None);
        }
        if !self.unflushed.is_empty() && self.wire.poll_flushed(self.flushes, context).is_ready() {
            for written in mem::take(&mut self.unflushed) {
                // Nobody waits any more if the call ended meanwhile.
                let _ = written.send(());
            }
        }
        let step = match self.first.take() {
            Some(frame) => Poll::Ready(Step::Frame(frame)),
            None => self.exchange.poll_step(context),
        };
        step.map(|step| match step {
            Step::Frame(frame) => {
                self.flushes = self.wire.flushes();
                self.unflushed.extend(frame.written);
                Some(event(&frame.message))
            }
            Step::End(outgoing) => {
                self.over = true;
                outgoing.map(|outgoing| event(&outgoing.message))
            }
        })
    }
}

/// A message as an event.
pub(super) fn event(message: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(message.len().saturating_add(8));
    write_event(&mut out, None, message);
    out.into()
}
