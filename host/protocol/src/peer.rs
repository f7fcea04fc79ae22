//! The machine: one client's end of a connection. Messages go in, effects come out.

mod admit;
mod answers;
mod ask;
mod batch;

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::effect::{CallId, Effect, Outgoing, PeerConfig};
use crate::error::RpcError;
use crate::failure::{self, Answer, Outcome};
use crate::handshake::Session;
use crate::message::{Incoming, Message, NotificationMessage, Refusal, RequestId, parse, request_id};
use crate::method::Method;
use crate::model::{Reply, Stamp};
use crate::reporter::Line;
use crate::revision::Revision;
use crate::subscription::Event;
use admit::Admitted;
use answers::{Rendered, render_error, render_result};
pub(crate) use answers::{UnknownId, error_message};
use ask::Again;
use batch::{Batch, Place};
use bytes::Bytes;

/// One client's end of a connection. Cheap to make: modern HTTP makes one for every request.
#[derive(Debug)]
pub struct Peer {
    config: Arc<PeerConfig>,
    /// How many calls and batches there have been; the next one's number.
    count: u64,
    in_flight: Vec<InFlight>,
    session: Option<Box<Session>>,
    batches: Vec<Batch>,
    /// The id of the last request of ours.
    last_ask: i64,
    /// The client gets one JSON text for what is being taken in, and no stream.
    one_way: bool,
}

/// A call that runs, or that waits for the client.
#[derive(Debug)]
struct InFlight {
    call: CallId,
    id: RequestId,
    method: Method,
    revision: Revision,
    place: Option<Place>,
    line: Option<Arc<Line>>,
    /// A `ClientCapabilities` object: what the client may be asked.
    capabilities: Arc<RawValue>,
    /// Set where the call can ask the client, and be run again.
    again: Option<Box<Again>>,
}

impl Peer {
    /// A peer that has seen no message yet.
    pub fn new(config: Arc<PeerConfig>) -> Peer {
        Peer { config, count: 0, in_flight: Vec::new(), session: None, batches: Vec::new(), last_ask: 0, one_way: false }
    }

    /// Takes in one text from the client.
    pub fn receive(&mut self, message: &[u8]) -> Vec<Effect> {
        let config = Arc::clone(&self.config);
        match parse(message, &config.limits.parse) {
            Ok(incoming) => self.receive_parsed(incoming),
            Err(refusal) => self.refuse(&refusal),
        }
    }

    /// Takes in what was parsed before. HTTP does so, to compare the headers with the body.
    pub fn receive_parsed(&mut self, incoming: Incoming<'_>) -> Vec<Effect> {
        let mut effects = Vec::new();
        match incoming {
            Incoming::One(message) => self.message(message, None, &mut effects),
            Incoming::Batch(messages) => self.batch(messages, &mut effects),
        }
        effects
    }

    /// The same for a client that takes one JSON text in return, and no stream on which it could be asked something.
    pub fn receive_parsed_one_way(&mut self, incoming: Incoming<'_>) -> Vec<Effect> {
        self.one_way = true;
        let effects = self.receive_parsed(incoming);
        self.one_way = false;
        effects
    }

    /// Answers something that never became a message, such as a line that is too long.
    pub fn refuse(&self, refusal: &Refusal) -> Vec<Effect> {
        let rendered = render_error(refusal.id.as_ref(), self.unknown_id(), &refusal.error, refusal.status);
        vec![send(rendered, None)]
    }

    /// Takes in how a call, or a run of it, ended. A call that is not known (any more), or does not run, makes no effect.
    pub fn finish(&mut self, call: CallId, outcome: Outcome) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.is_waiting(call) {
            return effects;
        }
        let outcome = match outcome {
            Ok(Reply::InputRequired(asked)) => match self.ask(call, *asked, &mut effects) {
                Some(outcome) => outcome,
                None => return effects,
            },
            outcome => outcome,
        };
        if let Some(ended) = self.take(|running| running.call == call) {
            let rendered = self.render(&ended, outcome);
            self.settle(ended.place, rendered, Some(call), &mut effects);
        }
        effects
    }

    /// Cancels a call on behalf of the client, as when it closed the response of a modern HTTP request.
    pub fn cancel(&mut self, call: CallId) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.cancel_where(|running| running.call == call, &mut effects);
        effects
    }

    /// Cancels everything: the connection, or the session, is gone.
    pub fn cancel_all(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while self.cancel_where(|_| true, &mut effects) {}
        self.session = None;
        effects
    }

    /// The revision of the handshake session, once there is one. Modern requests name their own.
    pub fn revision(&self) -> Option<Revision> {
        self.session.as_ref().filter(|session| session.opening.is_none()).map(|session| session.revision)
    }

    /// Tells the client of an event; `None` if there is no session that may be told, as before the client has said that
    /// it is ready.
    pub fn announce(&self, event: &Event) -> Option<Bytes> {
        let session = self.session.as_ref()?;
        event.to_session(session.revision).filter(|_| session.initialized)
    }

    /// How many calls there are, running or waiting for the client.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The configuration in force.
    pub fn config(&self) -> &Arc<PeerConfig> {
        &self.config
    }

    /// Replaces the configuration from the next message on, after the served guests changed. Which eras the connection speaks was
    /// settled when it was opened, and stays.
    pub fn reconfigure(&mut self, config: Arc<PeerConfig>) {
        let mode = self.config.mode;
        self.config = if config.mode == mode { config } else { Arc::new(PeerConfig { mode, ..PeerConfig::clone(&config) }) };
    }

    fn message(&mut self, message: Message<'_>, place: Option<Place>, effects: &mut Vec<Effect>) {
        match message {
            Message::Request(request) => {
                let id = request.id.clone();
                match self.admit(request, place) {
                    Ok(Admitted::Run(call)) => effects.push(Effect::Run(call)),
                    Ok(Admitted::Done(revision)) => {
                        let rendered = render_result(&id, &Reply::Empty, &self.stamp(revision));
                        self.settle(place, Some(rendered), None, effects);
                    }
                    Err(refused) => {
                        let mut rendered = render_error(Some(&id), self.unknown_id(), &refused.error, refused.status);
                        rendered.retry_after_s = refused.retry_after_s;
                        self.settle(place, Some(rendered), None, effects);
                    }
                }
            }
            Message::Notification(notification) => self.notification(&notification, effects),
            Message::Response(response) => self.answered(response, effects),
            // Nobody waits for an answer to it.
            Message::BadNotification => {}
        }
    }

    fn batch(&mut self, messages: Vec<Result<Message<'_>, Refusal>>, effects: &mut Vec<Effect>) {
        if !self.revision().is_some_and(Revision::has_batches) {
            let what = match self.revision() {
                Some(revision) => format!("Protocol version {revision} has no batches"),
                None => "Batches are not served outside a session that has them".to_owned(),
            };
            let error = RpcError::invalid_request("batch_not_supported", what);
            effects.extend(self.refuse(&Refusal::new(None, error)));
            return;
        }
        let key = self.next_number();
        self.batches.push(Batch::new(key, messages.len()));
        for (slot, message) in messages.into_iter().enumerate() {
            let place = Some(Place { batch: key, slot });
            match message {
                Ok(message) => self.message(message, place, effects),
                Err(refusal) => {
                    let rendered = render_error(refusal.id.as_ref(), self.unknown_id(), &refusal.error, refusal.status);
                    self.settle(place, Some(rendered), None, effects);
                }
            }
        }
        // If the batch is over already, all that it began was cancelled by it; the exchange must end all the same.
        // A run after an answer belongs to the exchange that it had.
        let begun = effects.iter().rev().find_map(|effect| match effect {
            Effect::Run(call) => (call.context.rounds.round == 0).then_some(call.id),
            Effect::Cancel(_) | Effect::Send(_) | Effect::End(_) => None,
        });
        self.close_batch(key, begun, effects);
    }

    fn notification(&mut self, notification: &NotificationMessage<'_>, effects: &mut Vec<Effect>) {
        if notification.method == "notifications/initialized" {
            // The session is open already; from now on it may also be spoken to.
            if let Some(session) = self.session.as_mut().filter(|session| session.opening.is_none()) {
                session.initialized = true;
            }
            return;
        }
        if notification.method != "notifications/cancelled" {
            return;
        }
        let limits = &self.config.limits.parse;
        let Some(Ok(id)) = notification.params.get("requestId").map(|id| request_id(id, limits)) else {
            return;
        };
        self.cancel_where(|running| running.id == id && running.method != Method::Initialize, effects);
    }

    fn cancel_where(&mut self, wanted: impl Fn(&InFlight) -> bool, effects: &mut Vec<Effect>) -> bool {
        let Some(cancelled) = self.take(wanted) else {
            return false;
        };
        if cancelled.method == Method::Initialize {
            self.session = None;
        }
        cancelled.withdraw(effects);
        effects.push(Effect::Cancel(cancelled.call));
        self.settle(cancelled.place, None, Some(cancelled.call), effects);
        true
    }

    /// Takes a call out of those that run; from then on its reporter is silent.
    fn take(&mut self, wanted: impl Fn(&InFlight) -> bool) -> Option<InFlight> {
        let index = self.in_flight.iter().position(wanted)?;
        let running = self.in_flight.swap_remove(index);
        if let Some(line) = &running.line {
            line.close();
        }
        Some(running)
    }

    /// Writes the response to a call; none if it was cancelled.
    fn render(&mut self, ended: &InFlight, outcome: Outcome) -> Option<Rendered> {
        if ended.method == Method::Initialize {
            self.conclude_initialize(ended.call, matches!(outcome, Ok(Reply::Profile(_))));
        }
        let failure = match outcome {
            Ok(reply) if reply.answers(ended.method) => {
                let mut stamp = self.stamp(ended.revision);
                stamp.subscription = (ended.method == Method::Listen).then_some(&ended.id);
                return Some(render_result(&ended.id, &reply, &stamp));
            }
            Ok(_) => failure::wrong_reply(),
            Err(failure) => failure,
        };
        match failure::answer(failure, ended.method, ended.revision) {
            Answer::Error { error, status, retry_after_s } => {
                let rendered = render_error(Some(&ended.id), self.unknown_id(), &error, status);
                Some(Rendered { retry_after_s, ..rendered })
            }
            Answer::Tool(result) => Some(render_result(&ended.id, &Reply::Tool(result), &self.stamp(ended.revision))),
            Answer::Nothing => None,
        }
    }

    /// The session is open if its `initialize` succeeded; otherwise there never was one.
    fn conclude_initialize(&mut self, call: CallId, succeeded: bool) {
        match &mut self.session {
            Some(session) if session.opening == Some(call) && succeeded => session.opening = None,
            Some(session) if session.opening == Some(call) => self.session = None,
            Some(_) | None => {}
        }
    }

    /// Sends a response, or keeps it for the array of its batch. None stands for a request that gets no response.
    fn settle(&mut self, place: Option<Place>, rendered: Option<Rendered>, call: Option<CallId>, effects: &mut Vec<Effect>) {
        let Some(place) = place else {
            effects.extend(rendered.map(|rendered| send(rendered, call)).or(call.map(Effect::End)));
            return;
        };
        if let (Some(rendered), Some(batch)) = (rendered, self.find_batch(place.batch)) {
            batch.put(place.slot, rendered.message);
        }
        if call.is_some() {
            self.close_batch(place.batch, call, effects);
        }
    }

    fn close_batch(&mut self, key: u64, call: Option<CallId>, effects: &mut Vec<Effect>) {
        let Some(index) = self.batches.iter().position(|batch| batch.key == key) else {
            return;
        };
        if !self.batches.get_mut(index).is_some_and(Batch::close) {
            return;
        }
        let message = self.batches.swap_remove(index).into_message();
        let rendered = message.map(|message| Rendered { message, status: 200, retry_after_s: None });
        self.settle(None, rendered, call, effects);
    }

    fn find_batch(&mut self, key: u64) -> Option<&mut Batch> {
        self.batches.iter_mut().find(|batch| batch.key == key)
    }

    fn stamp(&self, revision: Revision) -> Stamp<'_> {
        Stamp { mode: self.config.mode, revision, server_info: self.config.server_info.as_deref(), subscription: None }
    }

    fn unknown_id(&self) -> UnknownId {
        UnknownId::of(self.revision())
    }

    fn next_number(&mut self) -> u64 {
        self.count = self.count.wrapping_add(1);
        self.count
    }
}

fn send(rendered: Rendered, call: Option<CallId>) -> Effect {
    let Rendered { message, status, retry_after_s } = rendered;
    Effect::Send(Outgoing { message, call, status, retry_after_s, last: true })
}
