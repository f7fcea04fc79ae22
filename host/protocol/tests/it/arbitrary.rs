//! Arbitrary input: nothing panics, and each request with a valid id gets exactly one response.

use std::collections::HashMap;
use std::sync::Arc;

use guesthouse_protocol::effect::{CallId, Effect, PeerConfig, TransportKind};
use guesthouse_protocol::{Mode, Peer};
use serde_json::{Value, json};

use crate::fixtures;

/// A small generator of its own, so that a failure names a seed that repeats it.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let index = self.roll(items.len());
        &items[index]
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.roll(if depth == 0 { 6 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.roll(5)),
            3 => json!(1.5),
            4 => json!(""),
            5 => json!(self.pick(&["a", "2026-07-28", "2025-03-26", "ref/prompt", "info", "é\u{0}\"\\"])),
            6 => (0..self.roll(3)).map(|_| self.value(depth - 1)).collect(),
            _ => (0..self.roll(3)).map(|_| (self.pick(&MEMBERS).to_string(), self.value(depth - 1))).collect(),
        }
    }

    fn message(&mut self) -> Value {
        if self.roll(6) == 0 {
            let id = self.roll(30);
            return json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } });
        }
        let mut message = json!({ "jsonrpc": "2.0", "id": self.roll(30), "method": *self.pick(&METHODS) });
        if self.roll(5) > 0 {
            message["params"] = self.params();
        }
        for _ in 0..self.roll(2) {
            let member = *self.pick(&["jsonrpc", "id", "method", "params", "result", "error", "extra"]);
            if self.roll(2) == 0 {
                message.as_object_mut().unwrap().remove(member);
            } else {
                message[member] = self.value(2);
            }
        }
        message
    }

    fn params(&mut self) -> Value {
        let mut params = json!({
            "name": "x", "uri": "a://b", "level": "info", "protocolVersion": "2025-03-26", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" }, "requestId": self.roll(30),
            "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "" },
        });
        if self.roll(2) == 0 {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        for _ in 0..self.roll(3) {
            params[*self.pick(&MEMBERS)] = self.value(2);
        }
        params
    }
}

const METHODS: [&str; 14] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "server/discover",
    "notifications/cancelled",
    "notifications/initialized",
    "unknown",
    "resources/subscribe",
];

const MEMBERS: [&str; 10] = ["name", "arguments", "uri", "cursor", "_meta", "ref", "argument", "context", "progressToken", "requestId"];

/// Keeps account of one peer's responses.
#[derive(Default)]
struct Account {
    /// How many responses each id is owed.
    owed: HashMap<String, i64>,
    running: Vec<(CallId, &'static str, String)>,
    /// How many calls there were, and how many of them were cancelled.
    runs: usize,
    cancels: usize,
}

impl Account {
    /// Whether a request with a valid id is owed a response, judged independently of the package.
    fn owes(message: &Value) -> Option<String> {
        let members = message.as_object()?;
        let id = members.get("id")?;
        let valid = id.is_i64() || id.is_string();
        let response = members.get("method").is_none_or(|method| method.as_str().is_none_or(str::is_empty))
            && (members.contains_key("result") || members.contains_key("error"));
        (valid && !response).then(|| id.to_string())
    }

    fn note(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Run(call) => {
                    self.runs += 1;
                    let id = serde_json::to_string(&match &call.context.request_id {
                        guesthouse_protocol::RequestId::Integer(id) => json!(id),
                        guesthouse_protocol::RequestId::String(id) => json!(id),
                    });
                    self.running.push((call.id, outcome_of(call.request.method().as_str()), id.unwrap()));
                }
                Effect::Cancel(call) => {
                    self.cancels += 1;
                    let index = self.running.iter().position(|running| running.0 == call).expect("a running call");
                    let (_, _, id) = self.running.remove(index);
                    *self.owed.get_mut(&id).expect("an owed response") -= 1;
                }
                Effect::Send(sent) => self.answered(&serde_json::from_slice(&sent.message).expect("JSON")),
                Effect::End(_) => {}
            }
        }
    }

    fn answered(&mut self, message: &Value) {
        if let Some(messages) = message.as_array() {
            messages.iter().for_each(|message| self.answered(message));
        } else if let Some(id) = message.get("id").filter(|id| !id.is_null()) {
            *self.owed.get_mut(&id.to_string()).unwrap_or_else(|| panic!("nobody asked: {message}")) -= 1;
        }
    }
}

fn outcome_of(method: &str) -> &'static str {
    match method {
        "initialize" | "server/discover" => "profile",
        "tools/list" => "tools",
        "tools/call" => "text",
        "resources/list" => "resources",
        "resources/read" => "resource",
        "prompts/get" => "prompt",
        "completion/complete" => "completion",
        _ => "empty",
    }
}

#[test]
fn every_request_with_a_valid_id_gets_one_response() {
    let (mut runs, mut cancels) = (0, 0);
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let mode = *dice.pick(&[Mode::Both, Mode::Modern, Mode::Handshake]);
        let mut peer = Peer::new(Arc::new(PeerConfig::new(mode, TransportKind::Stdio, None)));
        let mut account = Account::default();
        for _ in 0..60 {
            let batch = dice.roll(8) == 0;
            let messages: Vec<Value> = (0..if batch { dice.roll(4) } else { 1 }).map(|_| dice.message()).collect();
            let refused = batch && !peer.revision().is_some_and(|revision| revision.has_batches());
            for id in messages.iter().filter(|_| !refused).filter_map(Account::owes) {
                *account.owed.entry(id).or_default() += 1;
            }
            let text = if batch { json!(messages) } else { messages[0].clone() };
            account.note(peer.receive(text.to_string().as_bytes()));
            while !account.running.is_empty() && dice.roll(4) == 0 {
                let index = dice.roll(account.running.len());
                let (call, outcome, _) = account.running.remove(index);
                let outcome = if dice.roll(4) == 0 { "fail:crash" } else { outcome };
                account.note(peer.finish(call, fixtures::outcome(outcome)));
            }
        }
        for (call, outcome, _) in std::mem::take(&mut account.running) {
            account.note(peer.finish(call, fixtures::outcome(outcome)));
        }
        assert_eq!(peer.in_flight(), 0, "seed {seed}");
        for (id, owed) in account.owed {
            assert_eq!(owed, 0, "seed {seed}, id {id}");
        }
        runs += account.runs;
        cancels += account.cancels;
    }
    assert!(runs > 1000 && cancels > 20, "the input reaches too little: {runs} runs, {cancels} cancels");
}

#[test]
fn broken_text_never_panics() {
    for seed in 0..2000 {
        let mut dice = Dice(seed);
        let mut peer = Peer::new(Arc::new(PeerConfig::new(Mode::Both, TransportKind::Stdio, None)));
        let mut text = dice.message().to_string().into_bytes();
        for _ in 0..1 + dice.roll(4) {
            let at = dice.roll(text.len());
            match dice.roll(4) {
                0 => text[at] = dice.roll(256) as u8,
                1 => text.truncate(at.max(1)),
                2 => text.insert(at, *dice.pick(b"{}[]\",:\\\n0")),
                _ => {
                    text.remove(at);
                    text.push(b' ');
                }
            }
        }
        for effect in peer.receive(&text) {
            if let Effect::Send(sent) = effect {
                assert!(serde_json::from_slice::<Value>(&sent.message).is_ok(), "seed {seed}");
            }
        }
    }
}
