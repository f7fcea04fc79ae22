//! Plays the lines of a transcript against a peer, and writes down what comes out.
//!
//! `→ TEXT` goes in; `$META` stands for the least metadata of a modern request. `! ACTION` is something the host does (see `Replay::act`). `# …` and empty lines are for
//! readers. What comes out: `← TEXT` (with the HTTP status where it is not 200), and `· …` for other effects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use guesthouse_protocol::effect::{Call, CallId, Effect, Outgoing, PeerConfig, TransportKind};
use guesthouse_protocol::message::{Refusal, parse};
use guesthouse_protocol::{Event, Failure, Filter, Mode, Peer, Reporter, Request, Revision, Subscription, TaskState};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::schema::Schemas;
use crate::{fixtures, tasks};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(crate) struct Replay {
    config: PeerConfig,
    peer: Option<Peer>,
    reporters: HashMap<u64, (Reporter, Revision)>,
    subscriptions: HashMap<u64, (Subscription, Filter)>,
    schemas: Schemas,
    problems: Vec<String>,
}

impl Replay {
    pub(crate) fn new() -> Replay {
        let config = PeerConfig::new(Mode::Both, TransportKind::Stdio, Some(&fixtures::server_info()));
        Replay {
            config,
            peer: None,
            reporters: HashMap::new(),
            subscriptions: HashMap::new(),
            schemas: Schemas::new(),
            problems: Vec::new(),
        }
    }

    /// Messages that no schema allows.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Plays one line; what comes out, as lines.
    pub(crate) fn line(&mut self, line: &str) -> Vec<String> {
        if let Some(text) = line.strip_prefix("→ ") {
            let text = text.replace("$META", META);
            let effects = self.peer().receive(text.as_bytes());
            let session = self.peer().revision();
            self.schemas.sent(&text, session);
            return self.show(effects);
        }
        match line.strip_prefix("! ") {
            Some(action) => self.act(action),
            None => Vec::new(),
        }
    }

    fn peer(&mut self) -> &mut Peer {
        self.peer.get_or_insert_with(|| Peer::new(Arc::new(self.config.clone())))
    }

    fn act(&mut self, action: &str) -> Vec<String> {
        let words: Vec<&str> = action.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().expect("a number");
        match words[0] {
            "mode" => {
                self.config.mode = mode(words[1]);
                self.schemas.handshake_only = self.config.mode == Mode::Handshake;
            }
            "anonymous" => self.config.server_info = None,
            "request_ids_max" => self.config.limits.request_ids_max = number(1) as usize,
            "in_flight_max" => self.config.limits.in_flight_max = number(1) as usize,
            "batch_len_max" => self.config.limits.parse.batch_len_max = number(1) as usize,
            "depth_max" => self.config.limits.parse.depth_max = number(1) as usize,
            "message_bytes_max" => self.config.limits.parse.message_bytes_max = number(1) as usize,
            "finish" => {
                let effects = self.peer().finish(CallId(number(1)), fixtures::outcome(words[2]));
                return self.show(effects);
            }
            "progress" => {
                let optional = |index: usize| words.get(index).and_then(|word| word.parse().ok());
                let value = words[2].parse().expect("a number");
                let (reporter, revision) = self.reporters.get_mut(&number(1)).expect("a call");
                let revision = *revision;
                let made = reporter.progress(value, optional(3), words.get(4).copied());
                return match made {
                    Ok(bytes) => vec![self.show_notification(&bytes, revision)],
                    Err(error) => vec![format!("· {error:?}")],
                };
            }
            "log" => {
                let (reporter, revision) = self.reporters.get(&number(1)).expect("a call");
                let data = RawValue::from_string(words[3..].join(" ")).expect("JSON");
                let made = reporter.log(words[2].parse().expect("a level"), Some("test"), &data);
                let revision = *revision;
                return made.map(|bytes| self.show_notification(&bytes, revision)).into_iter().collect();
            }
            "http" => self.config.transport = TransportKind::Http,
            "subscriptions_max" => self.config.limits.subscriptions_max = number(1) as usize,
            "subscription_uris_max" => self.config.limits.subscription_uris_max = number(1) as usize,
            "subscription_uri_bytes_max" => self.config.limits.subscription_uri_bytes_max = number(1) as usize,
            "too-long" => {
                let refusal = Refusal::too_long(&self.config.limits.parse);
                let effects = self.peer().refuse(&refusal);
                return self.show(effects);
            }
            "cancel" => {
                let effects = self.peer().cancel(CallId(number(1)));
                return self.show(effects);
            }
            "cancel-all" => {
                let effects = self.peer().cancel_all();
                return self.show(effects);
            }
            "acknowledge" | "cancelled" | "event" | "announce" => return self.act_on_subscriptions(&words),
            _ => return self.act_on_questions(&words),
        }
        assert!(self.peer.is_none(), "settings come first: {action}");
        Vec::new()
    }

    /// What happens to calls that ask the client.
    fn act_on_questions(&mut self, words: &[&str]) -> Vec<String> {
        let number = |index: usize| words[index].parse::<u64>().expect("a number");
        let limits = &mut self.config.limits;
        match words[0] {
            "waiting_max" => limits.waiting_max = number(1) as usize,
            "question_time_ms" => limits.question_time_ms = number(1),
            "answers_bytes_max" => limits.answers_bytes_max = number(1) as usize,
            "tick" => {
                let effects = self.peer().tick(Duration::from_millis(number(1)));
                return self.show(effects);
            }
            "deadline" => return vec![format!("· due {:?}, waiting {}", self.peer().deadline(), self.peer().waiting())],
            "give-up" => {
                let effects = self.peer().give_up(CallId(number(1)), Failure::CannotAsk("The stream is gone".into()));
                return self.show(effects);
            }
            "one-way" => {
                let text = words[1..].join(" ");
                let parsed = parse(text.as_bytes(), &self.config.limits.parse).expect("a message");
                let effects = self.peer().receive_parsed_one_way(parsed);
                let session = self.peer().revision();
                self.schemas.sent(&text, session);
                return self.show(effects);
            }
            _ => panic!("no such action: {words:?}"),
        }
        assert!(self.peer.is_none(), "settings come first: {words:?}");
        Vec::new()
    }

    /// What clients are told that listen.
    fn act_on_subscriptions(&mut self, words: &[&str]) -> Vec<String> {
        if words[0] != "announce" {
            return self.subscription(words[0], words[1].parse().expect("a number"), words.get(2).copied());
        }
        let event = event(words[1]);
        let revision = self.peer().revision();
        match (self.peer().announce(&event), revision) {
            (Some(bytes), Some(revision)) => vec![self.show_notification(&bytes, revision)],
            _ => vec!["· not announced".to_owned()],
        }
    }

    fn subscription(&mut self, what: &str, call: u64, word: Option<&str>) -> Vec<String> {
        let (subscription, filter) = &self.subscriptions[&call];
        let made = match what {
            "acknowledge" => Some(subscription.acknowledged(filter)),
            "event" => Some(subscription.event(&event(word.expect("an event")))),
            _ => subscription.cancelled("shutdown"),
        };
        match made {
            Some(bytes) => vec![self.show_notification(&bytes, Revision::V2026_07_28)],
            None => vec!["· nothing".to_owned()],
        }
    }

    fn show(&mut self, effects: Vec<Effect>) -> Vec<String> {
        effects.into_iter().map(|effect| self.show_one(effect)).collect()
    }

    fn show_one(&mut self, effect: Effect) -> String {
        match effect {
            Effect::Run(call) => self.show_call(*call),
            Effect::Cancel(call) => format!("· cancel {}", call.0),
            Effect::End(call) => format!("· end {}", call.0),
            Effect::Send(outgoing) => self.show_outgoing(&outgoing),
        }
    }

    fn show_call(&mut self, call: Call) -> String {
        let context = &call.context;
        let mut shown = format!("· run {} {} {:?}", call.id.0, context.revision, call.request);
        if let Some(info) = &context.client_info {
            shown.push_str(&format!(" client={}", info.get()));
        }
        shown.push_str(&format!(" capabilities={}", context.client_capabilities.get()));
        if let Some(meta) = &context.meta {
            shown.push_str(&format!(" meta={}", meta.get()));
        }
        if let Some(traceparent) = &context.traceparent {
            shown.push_str(&format!(" traceparent={traceparent}"));
        }
        if let Some(task) = &context.task {
            shown.push_str(&format!(" {task:?}"));
        }
        if context.rounds.round > 0 {
            shown.push_str(&format!(" {:?}", context.rounds));
        }
        if let Some(retry) = &context.retry {
            shown.push_str(&format!(" {retry:?}"));
        }
        if let Request::Listen(filter) = &call.request {
            let opened = (Subscription::of(context), filter.clone());
            self.subscriptions.insert(call.id.0, opened);
        }
        self.reporters.insert(call.id.0, (call.reporter, context.revision));
        shown
    }

    fn show_outgoing(&mut self, outgoing: &Outgoing) -> String {
        let text = std::str::from_utf8(&outgoing.message).expect("UTF-8");
        assert!(!text.contains('\n'), "a message is one line: {text}");
        let value: Value = serde_json::from_str(text).expect("JSON");
        let problem = match outgoing.last {
            true => self.schemas.answer_problem(&value),
            false => self.schemas.asked_problem(&value),
        };
        self.problems.extend(problem);
        let retry = outgoing.retry_after_s.map(|seconds| format!(" (retry after {seconds} s)"));
        let status = if outgoing.status == 200 { String::new() } else { outgoing.status.to_string() };
        format!("←{status} {text}{}", retry.unwrap_or_default())
    }

    fn show_notification(&mut self, bytes: &[u8], revision: Revision) -> String {
        let text = std::str::from_utf8(bytes).expect("UTF-8");
        let value: Value = serde_json::from_str(text).expect("JSON");
        self.problems.extend(self.schemas.notification_problem(&value, revision));
        format!("← {text}")
    }
}

fn event(word: &str) -> Event {
    match word {
        "tools" => Event::ToolsChanged,
        "prompts" => Event::PromptsChanged,
        "resources" => Event::ResourcesChanged,
        word if word.starts_with("task-") => Event::TaskChanged(TaskState(Arc::new(tasks::task(&word[5..])))),
        uri => Event::ResourceUpdated { uri: uri.into() },
    }
}

fn mode(word: &str) -> Mode {
    match word {
        "modern" => Mode::Modern,
        "handshake" => Mode::Handshake,
        "both" => Mode::Both,
        _ => panic!("no such mode: {word}"),
    }
}
