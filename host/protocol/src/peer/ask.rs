//! Asking the client in the handshake era: requests of ours on a call's own stream, and the run that follows the answers.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use super::{InFlight, Peer};
use crate::effect::{Call, CallContext, CallId, Effect, Outgoing};
use crate::error::{INVALID_REQUEST, RpcError};
use crate::failure::{Failure, Outcome, RETRY_AFTER_S};
use crate::json::{Json, Object, raw, to_raw};
use crate::message::{RequestId, ResponseMessage, entries};
use crate::model::questions::{Asked, Expected, InputRequired};
use crate::model::tasks::related_task;
use crate::model::{Reply, Request};
use crate::reporter::Reporter;
use crate::revision::Era;

/// What it takes to run a call once more.
#[derive(Debug)]
pub(super) struct Again {
    request: Request,
    /// As of the last run, but for `rounds`, which grows with every answer.
    context: CallContext,
    reporter: Reporter,
    /// Set while the client is asked; nothing runs then.
    open: Option<Open>,
}

/// The questions of a round that are not answered yet.
#[derive(Debug)]
struct Open {
    asks: Vec<Ask>,
    /// When the wait ends; not known before the first tick after the questions were made.
    until: Option<Duration>,
}

/// A request of ours that waits for its response.
#[derive(Debug)]
struct Ask {
    id: i64,
    key: String,
    expected: Expected,
}

impl Again {
    pub(super) fn new(request: &Request, context: &CallContext, reporter: &Reporter) -> Again {
        Again { request: request.clone(), context: context.clone(), reporter: reporter.again(), open: None }
    }

    fn run(&mut self, id: CallId) -> Effect {
        self.open = None;
        let (request, context, reporter) = (self.request.clone(), self.context.clone(), self.reporter.again());
        Effect::Run(Box::new(Call { id, request, context, reporter }))
    }
}

impl InFlight {
    fn open(&self) -> Option<&Open> {
        self.again.as_ref()?.open.as_ref()
    }

    /// Whether the call waits for the client, so that nothing of it runs.
    pub(super) fn is_waiting(&self) -> bool {
        self.open().is_some()
    }

    /// Tells the client that the questions which it has not answered need no answer any more.
    pub(super) fn withdraw(&self, effects: &mut Vec<Effect>) {
        for ask in self.open().into_iter().flat_map(|open| &open.asks) {
            let params = json!({ "requestId": ask.id, "reason": "The request that asked this has ended" });
            let message = to_raw(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
            effects.push(early(Bytes::from(message.get().to_owned()), self.call));
        }
    }
}

impl Peer {
    /// Whether the call waits for the client.
    pub fn is_waiting(&self, call: CallId) -> bool {
        self.in_flight.iter().any(|running| running.call == call && running.is_waiting())
    }

    /// Whether the call has not ended: it runs, or waits for the client.
    pub fn is_open(&self, call: CallId) -> bool {
        self.in_flight.iter().any(|running| running.call == call)
    }

    /// How many calls wait for the client.
    pub fn waiting(&self) -> usize {
        self.in_flight.iter().filter(|running| running.is_waiting()).count()
    }

    /// When [`Peer::tick`] is due: at the end of the shortest wait for the client. Zero where a wait has just begun, whose
    /// end only a tick can set.
    pub fn deadline(&self) -> Option<Duration> {
        self.in_flight.iter().filter_map(InFlight::open).map(|open| open.until.unwrap_or_default()).min()
    }

    /// Tells the time, since a moment that stays the same for this peer. Calls whose client took too long to answer end.
    pub fn tick(&mut self, now: Duration) -> Vec<Effect> {
        let patience = Duration::from_millis(self.config.limits.question_time_ms);
        let mut late = Vec::new();
        for running in &mut self.in_flight {
            if let Some(open) = running.again.as_mut().and_then(|again| again.open.as_mut()) {
                let until = *open.until.get_or_insert(now.saturating_add(patience));
                if until <= now {
                    late.push(running.call);
                }
            }
        }
        let text = format!("The client was asked, and did not answer within {} s", patience.as_secs());
        late.into_iter().flat_map(|call| self.give_up(call, Failure::Unanswered(text.clone()))).collect()
    }

    /// Ends a call that waits for the client, as when the questions could not be delivered.
    pub fn give_up(&mut self, call: CallId, failure: Failure) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(ended) = self.take(|running| running.call == call && running.is_waiting()) {
            ended.withdraw(&mut effects);
            let rendered = self.render(&ended, Err(failure));
            self.settle(ended.place, rendered, Some(call), &mut effects);
        }
        effects
    }

    /// Puts a call's questions to the client. What comes back is how the call ends instead, if it ends: in the modern era
    /// always, since there the questions are its result.
    pub(super) fn ask(&mut self, call: CallId, mut asked: InputRequired, effects: &mut Vec<Effect>) -> Option<Outcome> {
        let room = self.waiting() < self.config.limits.waiting_max;
        let running = self.in_flight.iter_mut().find(|running| running.call == call)?;
        let expected: Vec<Expected> = asked.questions.iter().map(|asked| Expected::of(&asked.question)).collect();
        if running.method.may_ask()
            && let Err(failure) = asked.fit(running.revision, &running.capabilities)
        {
            return Some(Err(failure));
        }
        if running.revision.era() == Era::Modern || !running.method.may_ask() {
            return Some(Ok(Reply::InputRequired(Box::new(asked))));
        }
        let Some(again) = &mut running.again else {
            let text = "The client has to be asked something first, and takes no stream (text/event-stream) on which to ask it";
            return Some(Err(Failure::CannotAsk(text.to_owned())));
        };
        if !room {
            return Some(Err(Failure::Busy { retry_after_s: RETRY_AFTER_S }));
        }
        let rounds = &mut again.context.rounds;
        rounds.round = rounds.round.saturating_add(1);
        rounds.state = asked.guest_state;
        let task = asked.task;
        let mut asks = Vec::with_capacity(expected.len());
        for (Asked { key, question }, expected) in asked.questions.into_iter().zip(expected) {
            self.last_ask = self.last_ask.wrapping_add(1);
            let id = self.last_ask;
            rounds.forget(&key);
            let mut message = Vec::with_capacity(256);
            let mut object = Object::new(&mut message);
            object.text("jsonrpc", "2.0");
            RequestId::Integer(id).write(object.key("id"));
            object.text("method", question.method());
            match (question.params(), &task) {
                (params, Some(task)) => write_params_of_task(object.key("params"), params, task),
                (Some(params), None) => raw(object.key("params"), params),
                (None, None) => {}
            }
            object.end();
            effects.push(early(Bytes::from(message), call));
            asks.push(Ask { id, key, expected });
        }
        if asks.is_empty() {
            effects.push(again.run(call));
        } else {
            again.open = Some(Open { asks, until: None });
        }
        None
    }

    /// Takes in the client's answer to a question. One that was not asked, or is no longer open, is ignored; one that does
    /// not fit its question leaves it unanswered, so that the guest asks again.
    pub(super) fn answered(&mut self, response: ResponseMessage<'_>, effects: &mut Vec<Effect>) {
        let Some(RequestId::Integer(id)) = response.id else { return };
        let bytes_max = self.config.limits.answers_bytes_max;
        for running in &mut self.in_flight {
            let Some(again) = &mut running.again else { continue };
            let Some(open) = &mut again.open else { continue };
            let Some(at) = open.asks.iter().position(|ask| ask.id == id) else { continue };
            let ask = open.asks.swap_remove(at);
            let answer = match response.answer {
                Some(Ok(result)) => ask.expected.accept(result).map(Ok),
                Some(Err(error)) => Some(Err(error)),
                None => None,
            };
            let rounds = &mut again.context.rounds;
            if let Some(answer) = answer {
                rounds.put(ask.key.clone(), answer);
            }
            if rounds.answers_bytes() > bytes_max {
                let text = format!("The answers take more than {bytes_max} bytes");
                rounds.put(ask.key, Err(RpcError::typed(INVALID_REQUEST, "answer_too_large", text)));
            }
            if open.asks.is_empty() {
                effects.push(again.run(running.call));
            }
            return;
        }
    }
}

/// A message on a call's stream, before its response.
fn early(message: Bytes, call: CallId) -> Effect {
    Effect::Send(Outgoing { message, call: Some(call), status: 200, retry_after_s: None, last: false })
}

/// The parameters of a question with the task that it belongs to.
fn write_params_of_task(out: &mut Vec<u8>, params: Option<&Json>, task: &str) {
    let mut object = Object::new(out);
    for (name, value) in params.and_then(|params| entries(params)).unwrap_or_default() {
        if name != "_meta" {
            raw(object.dynamic_key(&name), value);
        }
    }
    let mut meta = Object::new(object.key("_meta"));
    related_task(&mut meta, task);
    meta.end();
    object.end();
}
