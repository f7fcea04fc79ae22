//! Drives the one peer of a connection: messages in, calls that run side by side, messages out.
//!
//! Three bounded queues keep memory flat. While the client does not read, [`Writer`] stands still, then the queue of
//! responses fills, then no further message is taken in: a slow client slows its own connection and nothing else.

use super::{Service, run_guarded};
use crate::changes::Listener;
use crate::dispatch::{Backlog, Frame, FrameSender, Line, Share};
use crate::registry::Endpoint;
use bytes::Bytes;
use guesthouse_protocol::{Call, CallId, Effect, Era, Event, Identity, Outcome, Peer, PeerConfig, Refusal, Request};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Most messages that one write takes.
const WRITE_LEN_MAX: usize = 256;

/// Where messages come from.
pub(super) trait Source: Send {
    /// The next one; `None` at the end of input. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Option<Result<Bytes, Refusal>>> + Send;
}

/// Where messages go.
pub(super) trait Sink: Send {
    /// Writes messages, and returns when they are on the wire.
    fn write(&mut self, messages: &[Bytes]) -> impl Future<Output = io::Result<()>> + Send;
}

/// A response that waits for the client, and the room that it takes up.
type Waiting = (Bytes, Share);

/// The ends of the queues on which messages leave a connection.
pub(super) struct Writer {
    responses: mpsc::Receiver<Waiting>,
    frames: mpsc::Receiver<Frame>,
    done: oneshot::Sender<()>,
}

/// One connection, before it runs.
pub(super) struct Connection<S> {
    service: Arc<S>,
    endpoint: Endpoint,
    peer: Peer,
    responses: mpsc::Sender<Waiting>,
    /// How much of them may wait, in bytes. Frames have as much for themselves, so that neither has to wait for the other.
    backlog: Backlog,
    frames: FrameSender,
    written: oneshot::Receiver<()>,
    calls: JoinSet<(CallId, Outcome)>,
    running: HashMap<CallId, AbortHandle>,
    /// The `initialize` that is not answered yet.
    initializing: Option<CallId>,
    /// The handshake session, once there is one, as a listener.
    session: Option<Arc<Listener>>,
    /// Ends subscriptions when the connection is about to end.
    stopping: CancellationToken,
    /// The peer's time counts from here.
    opened: Instant,
    /// Made and not in the queue yet. Holds the responses to one message, and one for each call that ended meanwhile.
    outbox: VecDeque<Bytes>,
    /// Who is at the other end. The connection is its session.
    identity: Identity,
    /// What the peer says of the server was taken from this.
    served: Option<Arc<PeerConfig>>,
}

impl<S: Service> Connection<S> {
    /// A connection, and the part of it that writes.
    pub(super) fn new(service: Arc<S>, endpoint: Endpoint, peer: Peer, identity: Identity) -> (Self, Writer) {
        let limits = &service.config().limits;
        let (queue_len, queue_bytes) = (limits.queue.max(1), limits.queue_bytes.0);
        let (responses, response_queue) = mpsc::channel(queue_len);
        let (frames, frame_queue) = mpsc::channel(queue_len);
        let (done, written) = oneshot::channel();
        let connection = Self {
            service,
            endpoint,
            peer,
            responses,
            backlog: Backlog::new(queue_bytes),
            frames: FrameSender::within(frames, Backlog::new(queue_bytes)),
            written,
            calls: JoinSet::new(),
            running: HashMap::new(),
            initializing: None,
            session: None,
            stopping: CancellationToken::new(),
            opened: Instant::now(),
            outbox: VecDeque::new(),
            identity,
            served: None,
        };
        (connection, Writer { responses: response_queue, frames: frame_queue, done })
    }

    /// Runs until the input ends or `stop` resolves, and then until all is answered, but no longer than `grace`.
    pub(super) async fn run(mut self, mut source: impl Source, stop: impl Future<Output = ()> + Send, grace: Duration) {
        let mut stop = std::pin::pin!(stop);
        let mut deadline = None;
        loop {
            let open = deadline.is_none();
            if !open && self.calls.is_empty() && self.outbox.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = &mut stop, if open => deadline = Some(self.close_in(grace)),
                () = reached(deadline) => break,
                () = reached(self.patience()) => {}
                () = self.responses.closed() => return,
                () = room(&self.responses, &self.backlog, self.outbox.front()), if !self.outbox.is_empty() => {}
                Some(ended) = self.calls.join_next() => self.ended(ended),
                // A client that does not wait for the answer to `initialize` is answered as if it had.
                message = source.next(), if open && self.outbox.is_empty() && self.initializing.is_none() => match message {
                    Some(message) => self.received(message),
                    None => deadline = Some(self.close_in(grace)),
                },
                // Only when everything else is on its way: until then, the same change waits only once.
                Some(event) = change(self.session.as_deref()), if open && self.outbox.is_empty() => {
                    self.outbox.extend(self.peer.announce(&event));
                }
            }
            self.tick();
            self.fill_queue();
        }
        // The calls that are left are dropped with the set, and the writer ends when nobody can send any more.
        let Self { responses, frames, written, calls, .. } = self;
        drop((calls, responses, frames));
        tokio::select! {
            _ = written => {}
            () = reached(deadline) => {}
        }
    }

    /// Nothing more is taken in, and subscriptions end. What runs has that long to end, too.
    fn close_in(&self, grace: Duration) -> Instant {
        self.stopping.cancel();
        Instant::now() + grace
    }

    /// When the wait for the client's answers ends.
    fn patience(&self) -> Option<Instant> {
        self.peer.deadline().and_then(|deadline| self.opened.checked_add(deadline))
    }

    /// Tells the peer the time, if it waits for anything.
    fn tick(&mut self) {
        if self.peer.deadline().is_some() {
            let effects = self.peer.tick(self.opened.elapsed());
            self.carry_out(effects);
        }
    }

    /// Moves responses on while there is room, without waiting.
    fn fill_queue(&mut self) {
        while let Some(share) = self.outbox.front().and_then(|message| self.backlog.try_take(message)) {
            let Some(message) = self.outbox.pop_front() else { return };
            if let Err(mpsc::error::TrySendError::Full((message, _))) = self.responses.try_send((message, share)) {
                self.outbox.push_front(message);
                return;
            }
        }
    }

    fn received(&mut self, message: Result<Bytes, Refusal>) {
        self.keep_up();
        let effects = match message {
            Ok(message) => self.peer.receive(&message),
            Err(refusal) => self.peer.refuse(&refusal),
        };
        self.carry_out(effects);
    }

    /// What the server says of itself may be another since the last message, when a guest was swapped. A connection outlives that.
    fn keep_up(&mut self) {
        let Some(served) = self.service.peer_config(&self.endpoint, self.peer.config().transport) else { return };
        if self.served.as_ref().is_some_and(|known| Arc::ptr_eq(known, &served)) {
            return;
        }
        // The rest is as the connection was opened: a transport may have narrowed it.
        let known = PeerConfig::clone(self.peer.config());
        self.peer.reconfigure(Arc::new(PeerConfig { server_info: served.server_info.clone(), ..known }));
        self.served = Some(served);
    }

    fn ended(&mut self, ended: Result<(CallId, Outcome), tokio::task::JoinError>) {
        // A task that was aborted has been forgotten already; a panic is caught within the task.
        if let Ok((call, outcome)) = ended {
            self.running.remove(&call);
            self.initializing.take_if(|initializing| *initializing == call);
            let effects = self.peer.finish(call, outcome);
            self.carry_out(effects);
            if self.session.is_none() && self.peer.revision().is_some() {
                self.session =
                    Some(Arc::new(self.service.hub().session(self.endpoint.clone()).of_session(self.service.presence(&self.identity))));
            }
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Run(call) => self.start(*call),
                Effect::Cancel(call) => {
                    self.initializing.take_if(|initializing| *initializing == call);
                    if let Some(task) = self.running.remove(&call) {
                        task.abort();
                    }
                }
                Effect::Send(outgoing) => self.outbox.push_back(outgoing.message),
                Effect::End(_) => {}
            }
        }
    }

    fn start(&mut self, mut call: Call) {
        let id = call.id;
        call.context.identity = match call.context.revision.era() {
            Era::Handshake => self.identity.clone(),
            Era::Modern => Identity { session: None, ..self.identity.clone() },
        };
        let listens = matches!(call.request, Request::Listen(_));
        if matches!(call.request, Request::Initialize(_)) {
            self.initializing = Some(id);
        }
        let permit = match self.service.requests().try_begin(&self.identity) {
            // Subscriptions do next to nothing for a long time, and are counted elsewhere.
            _ if listens => None,
            Ok(permit) => Some(permit),
            // A call whose client has answered had its turn before, and waits for a permit.
            Err(_) if call.context.rounds.round > 0 => None,
            // This makes nothing but a response.
            Err(failure) => {
                self.initializing = None;
                let effects = self.peer.finish(id, Err(failure));
                return self.carry_out(effects);
            }
        };
        let (service, endpoint, identity) = (self.service.clone(), self.endpoint.clone(), self.identity.clone());
        let speaks = listens || call.reporter.wants_progress() || call.reporter.wants_logs();
        let line = Line { frames: speaks.then(|| self.frames.clone()), session: self.session.clone(), stopping: self.stopping.clone() };
        let task = self.calls.spawn(async move {
            let permit = match permit {
                Some(permit) => Some(permit),
                None if listens => None,
                None => Some(service.requests().begin(&identity).await),
            };
            let outcome = run_guarded(&*service, &endpoint, call, line).await;
            drop(permit);
            (id, outcome)
        });
        self.running.insert(id, task);
    }
}

/// The next change that concerns the session; never, if there is none.
async fn change(session: Option<&Listener>) -> Option<Event> {
    match session {
        Some(session) => session.next().await,
        None => std::future::pending().await,
    }
}

/// Resolves when there is room for the next response, which lasts, since nobody else sends any.
async fn room(queue: &mpsc::Sender<Waiting>, backlog: &Backlog, next: Option<&Bytes>) {
    // An error says that the queue is closed, which is noticed elsewhere.
    let _ = queue.reserve().await;
    if let Some(next) = next {
        drop(backlog.take(next).await);
    }
}

/// Resolves at that time, or never.
async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

impl Writer {
    /// Writes what comes until nobody can send any more, or until the client is gone. Everything that is ready goes out
    /// in one write.
    pub(super) async fn run(mut self, mut sink: impl Sink) -> io::Result<()> {
        let mut responses = Vec::new();
        let mut frames = Vec::new();
        let mut messages = Vec::new();
        loop {
            tokio::select! {
                biased;
                _ = self.frames.recv_many(&mut frames, WRITE_LEN_MAX), if !self.frames.is_closed() || !self.frames.is_empty() => {}
                received = self.responses.recv_many(&mut responses, WRITE_LEN_MAX) => {
                    if received == 0 {
                        break;
                    }
                }
            }
            while frames.len() < WRITE_LEN_MAX
                && let Ok(frame) = self.frames.try_recv()
            {
                frames.push(frame);
            }
            while responses.len() < WRITE_LEN_MAX
                && let Ok(response) = self.responses.try_recv()
            {
                responses.push(response);
            }
            // Where nobody waits any more, the call is over, and nothing may be sent for it.
            frames.retain(Frame::is_wanted);
            messages.extend(frames.iter().map(|frame| frame.message.clone()));
            messages.extend(responses.iter().map(|(message, _)| message.clone()));
            if !messages.is_empty() {
                sink.write(&messages).await?;
                messages.clear();
            }
            responses.clear();
            frames.drain(..).for_each(Frame::written);
        }
        // Whoever waits for this may have given up.
        let _ = self.done.send(());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
