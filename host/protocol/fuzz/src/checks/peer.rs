//! A peer under any sequence of texts and endings: every request has one outcome, and nothing is sent unasked.
//!
//! The first line chooses the mode. A line that begins with `!` is what the host does (`!f 0 2`: end the first running
//! call with the outcome 2; `!c 0`: cancel it; `!p 0 5`: it reports progress; `!x`: the connection is gone); every other
//! line comes from the client.

use std::collections::HashSet;
use std::sync::Arc;

use guesthouse_protocol::message::parse;
use guesthouse_protocol::model::{CallToolResult, Content, LogLevel};
use guesthouse_protocol::{
    Call, CallId, Effect, Failure, Incoming, InternalKind, Message, Method, Mode, NotFound, Outcome, Peer, PeerConfig, Reply, RequestId,
    RpcError, TransportKind,
};
use serde_json::value::RawValue;

use super::{sound_message, split};

const IN_FLIGHT_MAX: usize = 8;
/// More lines show nothing that fewer cannot.
const LINES_MAX: usize = 256;

/// Plays the lines of an input.
pub fn check(data: &[u8]) {
    let (choice, lines) = split(data, b"\n");
    let mut play = Play::new(choice);
    for line in lines.split(|byte| *byte == b'\n').take(LINES_MAX) {
        match line.split_first() {
            Some((b'!', action)) => play.act(&String::from_utf8_lossy(action)),
            _ => play.receive(line),
        }
        assert!(play.peer.in_flight() <= IN_FLIGHT_MAX);
        assert_eq!(play.peer.in_flight(), play.running.len(), "the peer and its driver disagree about what runs");
    }
    while !play.running.is_empty() {
        play.act("f 0 0");
    }
    assert_eq!(play.peer.in_flight(), 0);
}

struct Play {
    peer: Peer,
    running: Vec<Call>,
    known: HashSet<CallId>,
}

/// What a step brought about.
#[derive(Default)]
struct Step {
    runs: usize,
    sends: usize,
    cancels: usize,
    /// Answers to batches among them.
    arrays: usize,
}

impl Play {
    fn new(choice: &[u8]) -> Play {
        let mode = match choice.first() {
            Some(b'm') => Mode::Modern,
            Some(b'h') => Mode::Handshake,
            _ => Mode::Both,
        };
        let mut config = PeerConfig::new(mode, TransportKind::Stdio, None);
        config.limits.in_flight_max = IN_FLIGHT_MAX;
        config.limits.request_ids_max = 16;
        config.limits.parse.depth_max = 32;
        Play { peer: Peer::new(Arc::new(config)), running: Vec::new(), known: HashSet::new() }
    }

    fn receive(&mut self, text: &[u8]) {
        let limits = PeerConfig::new(Mode::Both, TransportKind::Stdio, None).limits.parse;
        let asks = match parse(text, &guesthouse_protocol::ParseLimits { depth_max: 32, ..limits }) {
            Ok(Incoming::One(Message::Request(_))) | Err(_) => Some(1),
            Ok(Incoming::One(_)) => Some(0),
            Ok(Incoming::Batch(_)) => None,
        };
        let effects = self.peer.receive(text);
        let step = self.note(effects);
        match asks {
            Some(1) => assert_eq!(step.runs + step.sends, 1, "a request has one outcome"),
            // What cancels the last call of a batch completes the batch.
            Some(_) => assert!(step.runs == 0 && step.sends == step.arrays, "nobody asked"),
            // And so may what is itself part of a batch.
            None => assert!(step.sends <= 1 + step.cancels, "a batch has one answer"),
        }
    }

    fn note(&mut self, effects: Vec<Effect>) -> Step {
        let mut step = Step::default();
        for effect in effects {
            match effect {
                Effect::Run(call) => {
                    step.runs += 1;
                    assert!(self.known.insert(call.id), "two calls have one number");
                    self.running.push(*call);
                }
                Effect::Cancel(id) => {
                    step.cancels += 1;
                    let at = self.running.iter().position(|call| call.id == id).expect("only what runs is cancelled");
                    let mut call = self.running.remove(at);
                    assert!(call.reporter.progress(f64::MAX, None, None).is_err(), "a cancelled call still reports");
                }
                Effect::Send(outgoing) => {
                    step.sends += 1;
                    step.arrays += usize::from(sound_message(&outgoing.message).is_array());
                    assert!((200..600).contains(&outgoing.status));
                }
                _ => {}
            }
        }
        step
    }

    fn act(&mut self, action: &str) {
        let mut words = action.split(' ');
        let verb = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|word| word.parse::<usize>().ok()).unwrap_or_default();
        let (at, value) = (number(), number());
        if verb == "x" {
            let effects = self.peer.cancel_all();
            self.note(effects);
            return assert!(self.running.is_empty(), "something outlives the connection");
        }
        if self.running.is_empty() {
            return;
        }
        let at = at % self.running.len();
        match verb {
            "c" => {
                let effects = self.peer.cancel(self.running[at].id);
                assert_eq!(self.note(effects).runs, 0);
            }
            "p" => self.report(at, value),
            "f" => self.finish(at, value),
            _ => {}
        }
    }

    fn report(&mut self, at: usize, value: usize) {
        let reporter = &mut self.running[at].reporter;
        if let Ok(message) = reporter.progress(value as f64 / 2.0, Some(9.5), Some("half\n")) {
            sound_message(&message);
            assert!(reporter.progress(value as f64 / 2.0, None, None).is_err(), "progress stands still");
        }
        if let Some(message) = reporter.log(LogLevel::Error, Some("x"), RawValue::TRUE) {
            sound_message(&message);
        }
    }

    fn finish(&mut self, at: usize, value: usize) {
        let call = self.running.remove(at);
        let alone = self.peer.in_flight() == 1;
        let effects = self.peer.finish(call.id, outcome(call.request.method(), value));
        for effect in &effects {
            if let Effect::Send(outgoing) = effect {
                let message = sound_message(&outgoing.message);
                if message.is_object() {
                    assert_eq!(message["id"], shown(&call.context.request_id), "the answer is to another request");
                }
            }
        }
        let step = self.note(effects);
        assert!(step.sends <= 1 && step.runs == 0);
        assert!(!alone || self.peer.in_flight() == 0);
        assert!(self.peer.finish(call.id, Err(Failure::Cancelled)).is_empty(), "a call ends twice");
    }
}

fn shown(id: &RequestId) -> serde_json::Value {
    match id {
        RequestId::Integer(id) => (*id).into(),
        RequestId::String(id) => id.as_ref().into(),
    }
}

fn outcome(method: Method, value: usize) -> Outcome {
    let failure = match value {
        1 => Failure::Internal { kind: InternalKind::HandlerCrash, text: "it crashed\n".into() },
        2 => Failure::NotFound { kind: NotFound::Tool, name: "\u{0}\"".into() },
        3 => Failure::InvalidArguments { pointer: "/a".into(), message: "wrong".into() },
        4 => Failure::Rpc(RpcError { code: 7, message: "own".into(), data: RawValue::from_string("[\n1\r\n]".into()).ok() }),
        5 => Failure::Busy { retry_after_s: 1 },
        6 => Failure::Cancelled,
        7 => return Ok(Reply::Empty),
        8 => return Ok(Reply::Profile(Box::default())),
        _ => {
            return Ok(match method {
                Method::Initialize | Method::Discover => Reply::Profile(Box::default()),
                Method::CallTool => Reply::Tool(CallToolResult {
                    content: vec![Content::text("a\r\nb")],
                    structured_content: RawValue::from_string("{\n}".into()).ok(),
                    ..CallToolResult::default()
                }),
                _ => Reply::Empty,
            });
        }
    };
    Err(failure)
}
