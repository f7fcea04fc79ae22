//! The answer that reads a session's stream: to the message that opened it, or to a client that comes back.

use super::answer::{self, AnswerBody};
use super::event::{Events, KeepAlive, Unflushed, event};
use super::session::Session;
use super::streams::{Reader, STANDALONE, Step};
use super::wire::Wire;
use crate::config::streams::StreamLimits;
use bytes::Bytes;
use guesthouse_protocol::Revision;
use guesthouse_protocol::framing::{KEEP_ALIVE, write_priming_event, write_retry};
use guesthouse_protocol::http::Accepts;
use hyper::Response;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// The body.
struct Reading {
    reader: Reader,
    session: Arc<Session>,
    /// What is to be handed out next.
    ready: VecDeque<(Bytes, Option<oneshot::Sender<()>>)>,
    unflushed: Unflushed,
    keep_alive: KeepAlive,
    /// When the client has to come back for the rest.
    closing: Option<Pin<Box<Sleep>>>,
    retry_ms: u64,
    over: bool,
}

/// Since this revision a server may close the connection of a stream that has not ended.
fn polls(session: &Session) -> bool {
    session.revision() >= Some(Revision::V2025_11_25)
}

/// Waits until it is known whether something precedes the response, and begins the answer to a message. A call that takes
/// long makes it a stream as well, so that the client can come back for the response if it loses the connection.
pub(super) async fn answer(
    session: Arc<Session>,
    mut reader: Reader,
    accepts: Accepts,
    wire: &Arc<Wire>,
    limits: &StreamLimits,
) -> Response<AnswerBody> {
    let polls = accepts.events && polls(&session);
    let closes_at = Instant::now() + limits.stream_time.duration();
    let patience = limits.stream_after.duration().min(limits.stream_time.duration());
    let step = tokio::select! {
        biased;
        step = poll_fn(|context| reader.poll_step(context)) => Some(step),
        () = sleep(patience), if polls => None,
    };
    let first = match step {
        Some(Step::Over | Step::Answer(None)) => return answer::accepted(),
        Some(Step::Answer(Some(outgoing))) => return answer::response(outgoing, accepts),
        Some(Step::Event(message, written)) => Some((message, written)),
        None => None,
    };
    reader.begin();
    let mut reading = Reading::new(session, reader, wire, limits);
    if polls {
        reading.prime(0);
        reading.closing = Some(Box::pin(sleep_until(closes_at)));
    }
    if let Some((message, written)) = first {
        let piece = event(Some(&reading.event_id(reading.reader.last)), &message);
        reading.ready.push_back((piece, written));
    }
    answer::stream(reading)
}

/// Begins the answer to a client that listens, or that comes back to a stream.
pub(super) fn listen(session: Arc<Session>, reader: Reader, wire: &Arc<Wire>, limits: &StreamLimits) -> Response<AnswerBody> {
    let polls = polls(&session);
    let mut reading = Reading::new(session, reader, wire, limits);
    if polls {
        reading.prime(reading.reader.last);
    } else {
        // Something has to go out, so that the client sees the head of the answer.
        reading.ready.push_back((Bytes::from_static(KEEP_ALIVE), None));
    }
    answer::stream(reading)
}

impl Reading {
    fn new(session: Arc<Session>, reader: Reader, wire: &Arc<Wire>, limits: &StreamLimits) -> Self {
        Self {
            reader,
            session,
            ready: VecDeque::new(),
            unflushed: Unflushed::new(wire.clone()),
            keep_alive: KeepAlive::new(limits.keep_alive.duration()),
            closing: None,
            retry_ms: limits.retry.0,
            over: false,
        }
    }

    /// Tells stream and event, so that a client that knows nothing else finds its way back.
    fn event_id(&self, number: u64) -> String {
        format!("{}-{number}", self.reader.stream())
    }

    fn prime(&mut self, number: u64) {
        let mut out = Vec::new();
        write_priming_event(&mut out, &self.event_id(number), self.retry_ms);
        self.ready.push_back((out.into(), None));
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        let step = self.reader.poll_step(context);
        if step.is_pending() && self.reader.stream() == STANDALONE && self.session.poll_change(context).is_ready() {
            return self.reader.poll_step(context);
        }
        step
    }

    fn hand_out(&mut self, piece: Bytes, written: Option<oneshot::Sender<()>>) -> Poll<Option<Bytes>> {
        self.unflushed.add(written);
        self.keep_alive.put_off();
        Poll::Ready(Some(piece))
    }
}

/// Reads the id of an event: of which stream it is, and which of its events.
pub(super) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    let (stream, event) = id.split_once('-')?;
    Some((number(stream)?, number(event)?))
}

impl Events for Reading {
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.over {
            return Poll::Ready(None);
        }
        self.unflushed.poll(context);
        if let Some((piece, written)) = self.ready.pop_front() {
            return self.hand_out(piece, written);
        }
        match self.poll_step(context) {
            Poll::Ready(Step::Event(message, written)) => {
                let piece = event(Some(&self.event_id(self.reader.last)), &message);
                return self.hand_out(piece, written);
            }
            Poll::Ready(Step::Answer(Some(outgoing))) => {
                self.over = true;
                return Poll::Ready(Some(event(None, &outgoing.message)));
            }
            Poll::Ready(Step::Answer(None) | Step::Over) => {
                self.over = true;
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        if self.closing.as_mut().is_some_and(|closing| closing.as_mut().poll(context).is_ready()) {
            self.over = true;
            let mut out = Vec::new();
            write_retry(&mut out, self.retry_ms);
            return Poll::Ready(Some(out.into()));
        }
        self.keep_alive.poll(context).map(Some)
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // The client can come back for what did not arrive.
        self.unflushed.release();
        self.session.touch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_is_read_to_the_letter() {
        for (id, expected) in [
            ("0-0", Some((0, 0))),
            ("12-345", Some((12, 345))),
            ("", None),
            ("1", None),
            ("1-", None),
            ("-1", None),
            ("1-2-3", None),
            ("+1-2", None),
            ("1-2 ", None),
            ("99999999999999999999-1", None),
        ] {
            assert_eq!(parse_event_id(id), expected, "{id:?}");
        }
    }
}
