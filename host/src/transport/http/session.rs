//! A session of the handshake era: a peer, and the calls that run in it whether or not their client is connected.

use super::streams::{Budget, Reader, ReplayLimits, STANDALONE, Streams};
use crate::changes::Listener;
use crate::dispatch::Line;
use crate::principals::InFlight;
use crate::registry::Endpoint;
use crate::transport::{Service, run_guarded};
use guesthouse_protocol::http::{Accepts, HttpRefusal, check_session_version};
use guesthouse_protocol::{Call, CallId, Effect, Failure, Identity, Incoming, Outcome, Outgoing, Peer, Revision};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Notifications of a call on their way to its stream, which takes them at once.
const FRAMES_LEN: usize = 1;

/// One session.
pub(super) struct Session {
    pub(super) endpoint: Endpoint,
    /// Who opened it, and how it is called.
    identity: Identity,
    listener: Arc<Listener>,
    pub(super) streams: Arc<Streams>,
    state: Mutex<State>,
}

struct State {
    peer: Peer,
    streams: Arc<Streams>,
    running: HashMap<CallId, Running>,
    /// When the session was opened: the peer's time counts from here.
    opened: Instant,
    used: Instant,
    closed: bool,
}

/// A call that runs, or that waits for the client.
struct Running {
    /// What runs; while the client is asked, what watches the time.
    task: AbortHandle,
    out: Out,
}

/// Where what a call sends goes. The calls of a batch share one stream.
#[derive(Clone, Copy)]
struct Out {
    stream: u64,
    /// Something may precede the response.
    takes_events: bool,
}

/// What a message led to.
pub(super) enum Received {
    /// Nothing that would be answered.
    Nothing,
    /// An answer at once.
    Answer(Outgoing),
    /// Calls, whose answer follows on a stream.
    Calls(Reader),
}

impl Session {
    /// A session that has just been opened.
    pub(super) fn new(
        endpoint: Endpoint,
        identity: Identity,
        peer: Peer,
        listener: Listener,
        replay: ReplayLimits,
        budget: Arc<Budget>,
    ) -> Self {
        let opened = Instant::now();
        let streams = Streams::new(replay, budget);
        let state = State { peer, streams: streams.clone(), running: HashMap::new(), opened, used: opened, closed: false };
        let listener = Arc::new(listener);
        Self { endpoint, identity, listener, streams, state: Mutex::new(state) }
    }

    /// Whether that caller opened it.
    pub(super) fn is_of(&self, caller: &Identity) -> bool {
        (&self.identity.principal, &self.identity.tenant) == (&caller.principal, &caller.tenant)
    }

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
        let mut opened: Option<Reader> = None;
        let mut stopped = Vec::new();
        let effects = if accepts.events { state.peer.receive_parsed(incoming) } else { state.peer.receive_parsed_one_way(incoming) };
        for effect in effects {
            match effect {
                Effect::Run(call) if state.running.contains_key(&call.id) => self.resume(service, &mut state, *call),
                Effect::Run(call) => match service.requests().try_begin(&self.identity) {
                    Ok(permit) => {
                        let stream = opened.get_or_insert_with(|| self.streams.open()).stream();
                        let (id, out) = (call.id, Out { stream, takes_events: accepts.events });
                        let task = self.spawn(service, *call, out, Some(permit));
                        state.running.insert(id, Running { task, out });
                    }
                    Err(failure) => answer = send_of(state.peer.finish(call.id, Err(failure))).or(answer),
                },
                other => state.settle(other, &mut stopped, &mut answer),
            }
        }
        Ok(match (answer, opened) {
            (Some(answer), _) => Received::Answer(answer),
            (None, Some(reader)) => Received::Calls(reader),
            (None, None) => Received::Nothing,
        })
    }

    /// Whether the client speaks the session's revision.
    pub(super) fn check_version(&self, named: Option<Revision>) -> Result<(), HttpRefusal> {
        check_version(&lock(&self.state), named)
    }

    fn spawn<S: Service>(self: &Arc<Self>, service: &Arc<S>, mut call: Call, out: Out, permit: Option<InFlight>) -> AbortHandle {
        call.context.identity = self.identity.clone();
        let (session, service) = (self.clone(), service.clone());
        let id = call.id;
        let task = async move {
            let permit = match permit {
                Some(permit) => permit,
                None => service.requests().begin(&session.identity).await,
            };
            let outcome = session.run(&*service, call, out).await;
            drop(permit);
            session.finish(&service, id, outcome);
        };
        tokio::spawn(task).abort_handle()
    }

    /// Runs a call, and puts what it sends on its stream.
    async fn run<S: Service>(&self, service: &S, call: Call, out: Out) -> Outcome {
        let speaks = out.takes_events && (call.reporter.wants_progress() || call.reporter.wants_logs());
        let (sender, mut frames) = mpsc::channel(FRAMES_LEN);
        let line = Line { frames: speaks.then(|| sender.into()), session: Some(self.listener.clone()), stopping: CancellationToken::new() };
        let mut outcome = std::pin::pin!(run_guarded(service, &self.endpoint, call, line));
        loop {
            tokio::select! {
                biased;
                Some(frame) = frames.recv() => {
                    if frame.is_wanted() {
                        self.streams.send(out.stream, frame.message, frame.written);
                    }
                }
                outcome = &mut outcome => return outcome,
            }
        }
    }

    /// Runs a call again whose client has answered. It had its turn before, so it waits for a permit.
    fn resume<S: Service>(self: &Arc<Self>, service: &Arc<S>, state: &mut State, call: Call) {
        let Some(running) = state.running.get_mut(&call.id) else { return };
        running.task.abort();
        running.task = self.spawn(service, call, running.out, None);
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

    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        let mut stopped = Vec::new();
        for effect in state.peer.cancel_all() {
            state.settle(effect, &mut stopped, &mut None);
        }
        drop(state);
        self.streams.close();
    }

    /// Nothing runs, nobody is connected, and both for so long. An open stream counts as use, since the client may send
    /// nothing as long as it only listens.
    pub(super) fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let state = lock(&self.state);
        state.running.is_empty() && self.streams.readers() == 0 && now.saturating_duration_since(state.used) >= idle
    }

    /// The client is there, or was a moment ago.
    pub(super) fn touch(&self) {
        lock(&self.state).used = Instant::now();
    }

    /// The revision that the session was opened with.
    pub(super) fn revision(&self) -> Option<Revision> {
        lock(&self.state).peer.revision()
    }

    /// Forgets what was kept long enough.
    pub(super) fn expire_streams(&self, now: Instant) {
        self.streams.expire(now);
    }

    /// Ends the connection that waits for something to happen.
    pub(super) fn stop_waiting(&self) {
        self.streams.leave();
    }

    /// Puts the next change on the stream that belongs to no message; whoever reads that asks for it.
    pub(super) fn poll_change(&self, context: &mut Context<'_>) -> Poll<()> {
        while let Poll::Ready(event) = self.listener.poll_next(context) {
            let Some(event) = event else { break };
            let message = lock(&self.state).peer.announce(&event);
            if let Some(message) = message {
                self.streams.send(STANDALONE, message, None);
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

impl State {
    /// Carries out an effect other than a run. `stopped` are the calls that were cancelled along with it; `answer` is for
    /// what no call sends.
    fn settle(&mut self, effect: Effect, stopped: &mut Vec<(CallId, u64)>, answer: &mut Option<Outgoing>) {
        let (call, outgoing) = match effect {
            Effect::Cancel(call) => {
                if let Some(Running { task, out }) = self.running.remove(&call) {
                    task.abort();
                    stopped.push((call, out.stream));
                }
                return;
            }
            Effect::Send(outgoing) if !outgoing.last => return self.send_early(outgoing),
            Effect::Send(outgoing) => (outgoing.call, Some(outgoing)),
            Effect::End(call) => (Some(call), None),
            Effect::Run(_) => return,
        };
        let stream = call.and_then(|call| {
            let stopped = stopped.iter().find(|(stopped, _)| *stopped == call).map(|(_, stream)| *stream);
            stopped.or_else(|| self.running.remove(&call).map(|running| running.out.stream))
        });
        match stream {
            Some(stream) => self.streams.end(stream, outgoing),
            None => *answer = outgoing.or_else(|| answer.take()),
        }
    }

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
        let out = self.running.get(&call).map(|running| running.out).filter(|out| out.takes_events);
        if out.is_some_and(|out| self.streams.send(out.stream, outgoing.message, None)) {
            return;
        }
        let text = "The client has to be asked something first, and its stream is gone or takes nothing more";
        for effect in self.peer.give_up(call, Failure::CannotAsk(text.into())) {
            self.settle(effect, &mut Vec::new(), &mut None);
        }
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

/// No code panics while it holds one of these locks; were it ever to, the value would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
