//! What happens between a POST and the end of its answer: notifications while a call runs, then the response.

use super::answer::{self, AnswerBody};
use super::event::{Events, KeepAlive, Unflushed, event};
use super::wire::Wire;
use crate::dispatch::Frame;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use guesthouse_protocol::Outgoing;
use guesthouse_protocol::http::Accepts;
use hyper::Response;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

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
struct Frames {
    exchange: Exchange,
    /// The notification that made this a stream.
    first: Option<Frame>,
    unflushed: Unflushed,
    keep_alive: KeepAlive,
    over: bool,
}

impl Exchange {
    /// An exchange that ends as the future does, with the notifications that precede the end.
    pub(super) fn new(end: BoxFuture<'static, Option<Outgoing>>, frames: mpsc::Receiver<Frame>) -> Self {
        Self { end, frames, ended: None }
    }

    /// Waits until it is known whether something precedes the response, and begins the answer.
    pub(super) async fn begin(mut self, wire: &Arc<Wire>, accepts: Accepts, keep_alive: Duration) -> Response<AnswerBody> {
        match poll_fn(|context| self.poll_step(context)).await {
            Step::End(None) => answer::accepted(),
            Step::End(Some(outgoing)) => answer::response(outgoing, accepts),
            Step::Frame(frame) => answer::stream(Frames {
                exchange: self,
                first: Some(frame),
                unflushed: Unflushed::new(wire.clone()),
                keep_alive: KeepAlive::new(keep_alive),
                over: false,
            }),
        }
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

impl Events for Frames {
    fn is_over(&self) -> bool {
        self.over
    }

    /// While a notification is on its way to the wire, the call that sent it waits, so that there is nothing to hand out and
    /// hyper writes what it has.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.over {
            return Poll::Ready(None);
        }
        self.unflushed.poll(context);
        let step = match self.first.take() {
            Some(frame) => Poll::Ready(Step::Frame(frame)),
            None => self.exchange.poll_step(context),
        };
        match step {
            Poll::Ready(Step::Frame(frame)) => {
                self.unflushed.add(frame.written);
                self.keep_alive.put_off();
                Poll::Ready(Some(event(None, &frame.message)))
            }
            Poll::Ready(Step::End(outgoing)) => {
                self.over = true;
                Poll::Ready(outgoing.map(|outgoing| event(None, &outgoing.message)))
            }
            Poll::Pending => self.keep_alive.poll(context).map(Some),
        }
    }
}
