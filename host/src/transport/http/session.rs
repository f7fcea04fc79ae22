//! Sessions of the handshake era: a peer each, and the calls that run in it whether or not their client is connected.

use super::exchange::Exchange;
use crate::dispatch::Frame;
use crate::registry::Endpoint;
use crate::transport::{Service, busy, run_guarded};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use guesthouse_protocol::http::{Accepts, HttpRefusal, check_session_version};
use guesthouse_protocol::model::questions::QUESTIONS_MAX;
use guesthouse_protocol::{Call, CallId, Effect, Failure, Incoming, Outcome, Outgoing, Peer, Revision, RpcError, error};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// Room on a stream for the questions of a round, and for taking them back, beside what waits for a slow client.
const EARLY_LEN: usize = 2 * QUESTIONS_MAX;

/// Random bytes in a session id, which is all that protects a session.
const ID_BYTES: usize = 16;

/// The open sessions by id.
pub(super) struct Sessions {
    len_max: usize,
    idle: Duration,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<Box<str>, Arc<Session>>,
    /// Places kept for sessions whose `initialize` is not answered yet.
    reserved: usize,
}

/// A place that is kept while `initialize` runs.
pub(super) struct Place<'a>(&'a Sessions);

/// One session.
pub(super) struct Session {
    endpoint: Endpoint,
    state: Mutex<State>,
}

struct State {
    peer: Peer,
    running: HashMap<CallId, Running>,
    /// When the session was opened: the peer's time counts from here.
    opened: Instant,
    used: Instant,
    closed: bool,
}

/// A call that runs, or that waits for the client, and the exchange that waits for it.
struct Running {
    /// What runs; while the client is asked, what watches the time.
    task: AbortHandle,
    ending: Ending,
    /// Where what precedes the response goes, if the client takes a stream.
    frames: Option<mpsc::Sender<Frame>>,
}

/// Ends an exchange. The calls of a batch share one; the exchange also ends when the last of them is dropped.
#[derive(Clone)]
struct Ending(Arc<Mutex<Option<oneshot::Sender<Option<Outgoing>>>>>);

/// What a message led to.
pub(super) enum Received {
    /// Nothing that would be answered.
    Nothing,
    /// An answer at once.
    Answer(Outgoing),
    /// Calls, whose answer follows.
    Exchange(Exchange),
}

/// The exchange of one message, and what its calls need of it.
struct Opened {
    ending: Ending,
    end: oneshot::Receiver<Option<Outgoing>>,
    sender: mpsc::Sender<Frame>,
    frames: mpsc::Receiver<Frame>,
}

impl Sessions {
    pub(super) fn new(len_max: usize, idle: Duration) -> Self {
        Self { len_max, idle, table: Mutex::default() }
    }

    /// Keeps a place for a session; `None` if all are taken.
    pub(super) fn reserve(&self) -> Option<Place<'_>> {
        let mut table = lock(&self.table);
        if table.open.len().saturating_add(table.reserved) >= self.len_max {
            return None;
        }
        table.reserved = table.reserved.saturating_add(1);
        Some(Place(self))
    }

    /// The session of that id at that endpoint. To use it elsewhere is as good as not to know it.
    pub(super) fn find(&self, id: &str, endpoint: &Endpoint) -> Option<Arc<Session>> {
        lock(&self.table).open.get(id).filter(|session| session.endpoint == *endpoint).cloned()
    }

    /// Ends a session.
    pub(super) fn close(&self, id: &str) {
        let session = lock(&self.table).open.remove(id);
        if let Some(session) = session {
            session.close();
        }
    }

    /// Ends the sessions that have been idle for too long.
    pub(super) fn sweep(&self, now: Instant) {
        let idle: Vec<Arc<Session>> =
            lock(&self.table).open.extract_if(|_, session| session.is_idle(now, self.idle)).map(|(_, session)| session).collect();
        for session in idle {
            session.close();
        }
    }

    /// Ends all sessions.
    pub(super) fn close_all(&self) {
        let open = std::mem::take(&mut lock(&self.table).open);
        for session in open.into_values() {
            session.close();
        }
    }
}

impl Place<'_> {
    /// Puts a session in the place, and says under which id it is found.
    pub(super) fn open(self, endpoint: Endpoint, peer: Peer) -> Result<HeaderValue, HttpRefusal> {
        let (id, header) = new_id().ok_or_else(|| {
            let error = RpcError::typed(error::INTERNAL_ERROR, "no_randomness", "The server cannot make a session id");
            HttpRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, &error)
        })?;
        let opened = Instant::now();
        let state = State { peer, running: HashMap::new(), opened, used: opened, closed: false };
        let session = Session { endpoint, state: Mutex::new(state) };
        lock(&self.0.table).open.insert(id, Arc::new(session));
        Ok(header)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut table = lock(&self.0.table);
        table.reserved = table.reserved.saturating_sub(1);
    }
}

impl Session {
    /// Takes in a message, starts its calls and stops those that it cancels.
    pub(super) fn receive<S: Service>(
        self: &Arc<Self>,
        service: &Arc<S>,
        incoming: Incoming<'_>,
        version: Option<Revision>,
        accepts: Accepts,
    ) -> Result<Received, HttpRefusal> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(HttpRefusal::session_not_found());
        }
        check_version(&state, version)?;
        state.used = Instant::now();
        let mut answer = None;
        let mut opened: Option<Opened> = None;
        let mut stopped = Vec::new();
        let effects = if accepts.events { state.peer.receive_parsed(incoming) } else { state.peer.receive_parsed_one_way(incoming) };
        for effect in effects {
            match effect {
                Effect::Run(call) if state.running.contains_key(&call.id) => self.resume(service, &mut state, *call),
                Effect::Run(call) => match service.requests().clone().try_acquire_owned() {
                    Ok(permit) => {
                        let opened = opened.get_or_insert_with(|| Opened::new(service.config().limits.queue));
                        let frames = accepts.events.then(|| opened.sender.clone());
                        let (id, ending) = (call.id, opened.ending.clone());
                        let task = self.spawn(service, *call, frames.clone(), Some(permit));
                        state.running.insert(id, Running { task, ending, frames });
                    }
                    Err(_) => answer = send_of(state.peer.finish(call.id, busy())).or(answer),
                },
                other => state.settle(other, &mut stopped, &mut answer),
            }
        }
        Ok(match (answer, opened) {
            (Some(answer), _) => Received::Answer(answer),
            (None, Some(opened)) => Received::Exchange(opened.into_exchange()),
            (None, None) => Received::Nothing,
        })
    }

    /// Whether the client speaks the session's revision.
    pub(super) fn check_version(&self, named: Option<Revision>) -> Result<(), HttpRefusal> {
        check_version(&lock(&self.state), named)
    }

    fn spawn<S: Service>(
        self: &Arc<Self>,
        service: &Arc<S>,
        call: Call,
        frames: Option<mpsc::Sender<Frame>>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> AbortHandle {
        let (session, service) = (self.clone(), service.clone());
        let frames = frames.filter(|_| call.reporter.wants_progress() || call.reporter.wants_logs());
        let id = call.id;
        let task = async move {
            let permit = match permit {
                Some(permit) => Some(permit),
                None => service.requests().clone().acquire_owned().await.ok(),
            };
            let outcome = run_guarded(&*service, &session.endpoint, call, frames).await;
            drop(permit);
            session.finish(&service, id, outcome);
        };
        tokio::spawn(task).abort_handle()
    }

    /// Runs a call again whose client has answered. It had its turn before, so it waits for a permit.
    fn resume<S: Service>(self: &Arc<Self>, service: &Arc<S>, state: &mut State, call: Call) {
        let Some(running) = state.running.get_mut(&call.id) else { return };
        running.task.abort();
        running.task = self.spawn(service, call, running.frames.clone(), None);
    }

    fn finish<S: Service>(self: &Arc<Self>, service: &Arc<S>, call: CallId, outcome: Outcome) {
        let mut state = lock(&self.state);
        state.used = Instant::now();
        for effect in state.peer.finish(call, outcome) {
            match effect {
                Effect::Run(call) => self.resume(service, &mut state, *call),
                other => state.settle(other, &mut Vec::new(), &mut None),
            }
        }
        state.tick();
        if !state.peer.is_open(call) {
            // Of a batch that is not complete, nothing was sent; another call will end it.
            state.running.remove(&call);
        } else if state.peer.is_waiting(call)
            && let Some(running) = state.running.get_mut(&call)
        {
            let (session, time) = (self.clone(), service.config().limits.question_time.duration());
            let watch = async move {
                sleep(time).await;
                lock(&session.state).tick();
            };
            running.task = tokio::spawn(watch).abort_handle();
        }
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        let mut stopped = Vec::new();
        for effect in state.peer.cancel_all() {
            state.settle(effect, &mut stopped, &mut None);
        }
    }

    fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let state = lock(&self.state);
        state.running.is_empty() && now.saturating_duration_since(state.used) >= idle
    }
}

impl State {
    /// Carries out an effect other than a run. `stopped` are the calls that were cancelled along with it; `answer` is for
    /// what no call sends.
    fn settle(&mut self, effect: Effect, stopped: &mut Vec<(CallId, Ending)>, answer: &mut Option<Outgoing>) {
        let (call, outgoing) = match effect {
            Effect::Cancel(call) => {
                if let Some(Running { task, ending, .. }) = self.running.remove(&call) {
                    task.abort();
                    stopped.push((call, ending));
                }
                return;
            }
            Effect::Send(outgoing) if !outgoing.last => return self.send_early(outgoing),
            Effect::Send(outgoing) => (outgoing.call, Some(outgoing)),
            Effect::End(call) => (Some(call), None),
            Effect::Run(_) => return,
        };
        let ending = call.and_then(|call| {
            let stopped = stopped.iter().find(|(stopped, _)| *stopped == call).map(|(_, ending)| ending.clone());
            stopped.or_else(|| self.running.remove(&call).map(|running| running.ending))
        });
        match ending {
            Some(ending) => ending.end(outgoing),
            None => *answer = outgoing.or_else(|| answer.take()),
        }
    }
}

impl State {
    /// Tells the peer the time, if it waits for anything.
    fn tick(&mut self) {
        if self.peer.deadline().is_some() {
            for effect in self.peer.tick(self.opened.elapsed()) {
                self.settle(effect, &mut Vec::new(), &mut None);
            }
        }
    }

    /// Sends what a call asks the client, ahead of its response. If there is no way to the client, the call ends.
    fn send_early(&mut self, outgoing: Outgoing) {
        let Some(call) = outgoing.call else { return };
        let frames = self.running.get(&call).and_then(|running| running.frames.as_ref());
        let frame = Frame { message: outgoing.message, written: None };
        if frames.is_some_and(|frames| frames.try_send(frame).is_ok()) {
            return;
        }
        let text = "The client has to be asked something first, and its stream is gone or takes nothing more";
        for effect in self.peer.give_up(call, Failure::CannotAsk(text.into())) {
            self.settle(effect, &mut Vec::new(), &mut None);
        }
    }
}

impl Ending {
    fn end(&self, outgoing: Option<Outgoing>) {
        if let Some(sender) = lock(&self.0).take() {
            // Nobody waits any more if the client is gone: its answer is lost with its connection.
            let _ = sender.send(outgoing);
        }
    }
}

impl Opened {
    fn new(queue_len: usize) -> Self {
        let (ending, end) = oneshot::channel();
        let (sender, frames) = mpsc::channel(queue_len.saturating_add(EARLY_LEN));
        Self { ending: Ending(Arc::new(Mutex::new(Some(ending)))), end, sender, frames }
    }

    fn into_exchange(self) -> Exchange {
        let Self { end, frames, .. } = self;
        Exchange::new(Box::pin(async move { end.await.ok().flatten() }), frames)
    }
}

fn check_version(state: &State, named: Option<Revision>) -> Result<(), HttpRefusal> {
    state.peer.revision().map_or(Ok(()), |revision| check_session_version(named, revision))
}

fn send_of(effects: Vec<Effect>) -> Option<Outgoing> {
    effects.into_iter().find_map(|effect| match effect {
        Effect::Send(outgoing) => Some(outgoing),
        Effect::Run(_) | Effect::Cancel(_) | Effect::End(_) => None,
    })
}

/// A fresh id, also as a header value.
fn new_id() -> Option<(Box<str>, HeaderValue)> {
    let mut random = [0; ID_BYTES];
    getrandom::fill(&mut random).ok()?;
    let id = URL_SAFE_NO_PAD.encode(random);
    let header = HeaderValue::from_str(&id).ok()?;
    Some((id.into(), header))
}

/// No code panics while it holds one of these locks; were it ever to, the value would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
