//! HTTP+SSE, the transport of 2024-11-05: one stream for all that the server says, another address for what the client
//! says. Deprecated, and served only where it is asked for.
//!
//! A connection is the stream: it is driven like one on stdio, and ends with it.

use super::answer::{self, AnswerBody};
use super::event::{Events, KeepAlive, Unflushed, event};
use super::sessions::new_id;
use super::wire::Wire;
use super::{Server, intake};
use crate::dispatch::Frame;
use crate::identity::session_name;
use crate::registry::Endpoint;
use crate::transport::Service;
use crate::transport::driver::{Connection, Sink};
use crate::transport::memory::QueueSource;
use bytes::Bytes;
use guesthouse_protocol::framing::write_named_event;
use guesthouse_protocol::http::{HttpRefusal, check_events, check_post};
use guesthouse_protocol::{Identity, Mode, Peer, PeerConfig, RETRY_AFTER_S, RpcError, TransportKind, error};
use http::request::Parts;
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Messages of one client that may wait to be taken in.
const INCOMING_LEN: usize = 4;

/// Where each connection takes in what its client sends, by the id in the address.
type Table = Mutex<HashMap<Box<str>, Inlet>>;

/// Whose a connection is, and where it takes in messages.
type Inlet = (Identity, mpsc::Sender<Bytes>);

/// The open connections.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Table>);

/// What a request to this transport wants.
pub(super) enum Wanted {
    /// `GET /sse`: a connection.
    Open(Endpoint),
    /// `POST /message`: to send on one.
    Send,
}

/// What is wanted at that path; `None` if it is not one of this transport's.
pub(super) fn wanted(path: &str) -> Option<Wanted> {
    match path {
        "/sse" => Some(Wanted::Open(Endpoint::Merged)),
        "/message" => Some(Wanted::Send),
        _ => {
            let name = path.strip_prefix("/sse/").filter(|name| !name.is_empty() && !name.contains('/'))?;
            Some(Wanted::Open(Endpoint::Guest(name.into())))
        }
    }
}

/// Answers a request to this transport.
pub(super) async fn serve<S: Service>(
    server: &Server<S>,
    wire: &Arc<Wire>,
    wanted: Wanted,
    identity: Identity,
    parts: &Parts,
    body: Incoming,
) -> Result<Response<AnswerBody>, HttpRefusal> {
    match (wanted, &parts.method) {
        (Wanted::Open(endpoint), &Method::GET) => {
            check_events(&parts.headers)?;
            open(server, wire, endpoint, identity)
        }
        (Wanted::Send, &Method::POST) => send(server, &identity, parts, body).await,
        (Wanted::Open(_), _) => Err(not_allowed("GET")),
        (Wanted::Send, _) => Err(not_allowed("POST")),
    }
}

fn open<S: Service>(
    server: &Server<S>,
    wire: &Arc<Wire>,
    endpoint: Endpoint,
    identity: Identity,
) -> Result<Response<AnswerBody>, HttpRefusal> {
    let service = &server.service;
    let config = service.peer_config(&endpoint, TransportKind::Http).filter(|config| config.mode != Mode::Modern);
    let config = config.ok_or_else(|| refusal(StatusCode::NOT_FOUND, "endpoint_not_found", "Nothing is served at this path"))?;
    let config = Arc::new(PeerConfig { mode: Mode::Handshake, ..PeerConfig::clone(&config) });
    let limits = &service.config().limits;
    let (id, _) = new_id().ok_or_else(|| refusal(StatusCode::INTERNAL_SERVER_ERROR, "no_randomness", "The server cannot make an id"))?;
    let (messages, incoming) = mpsc::channel(INCOMING_LEN);
    let identity = Identity { session: Some(session_name(id.as_bytes())), ..identity };
    {
        let mut table = lock(&server.connections.0);
        if table.len() >= limits.sessions {
            let error = RpcError::typed(error::BUSY, "session_capacity_exceeded", "There is no room for another session");
            return Err(HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, &error));
        }
        table.insert(id.clone(), (identity.clone(), messages));
    }
    let mut first = Vec::new();
    write_named_event(&mut first, "endpoint", &format!("/message?sessionId={id}"));
    let entry = Entry { connections: server.connections.clone(), id };
    let (connection, writer) = Connection::new(service.clone(), endpoint, Peer::new(config), identity);
    let (sender, frames) = mpsc::channel(1);
    tokio::spawn(connection.run(QueueSource(incoming), server.stopping.clone().cancelled_owned(), limits.stop_time.duration()));
    tokio::spawn(async move {
        // Fails when the client is gone, which ends the connection as well.
        let _ = writer.run(EventSink(sender)).await;
    });
    Ok(answer::stream(Messages {
        first: Some(first.into()),
        frames,
        unflushed: Unflushed::new(wire.clone()),
        keep_alive: KeepAlive::new(service.config().streams.keep_alive.duration()),
        over: false,
        _entry: entry,
    }))
}

/// Passes a message on. What there is to say about it comes on the stream.
async fn send<S: Service>(
    server: &Server<S>,
    caller: &Identity,
    parts: &Parts,
    body: Incoming,
) -> Result<Response<AnswerBody>, HttpRefusal> {
    check_post(&parts.headers)?;
    let id = parts.uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("sessionId=")));
    let id = id.ok_or_else(HttpRefusal::session_required)?;
    let inlet = lock(&server.connections.0).get(id).cloned();
    let is_own = |owner: &Identity| (&owner.principal, &owner.tenant) == (&caller.principal, &caller.tenant);
    let (_, messages) = inlet.filter(|(owner, _)| is_own(owner)).ok_or_else(HttpRefusal::session_not_found)?;
    let config = server.service.peer_config(&Endpoint::Merged, TransportKind::Http).ok_or_else(HttpRefusal::session_not_found)?;
    let time = server.service.config().limits.body_time.duration();
    let message = intake::read(body, &config.limits.parse, time).await?;
    match timeout(time, messages.send(message)).await {
        Ok(Ok(())) => Ok(answer::accepted()),
        Ok(Err(_)) => Err(HttpRefusal::session_not_found()),
        Err(_) => {
            let error = RpcError::new(
                error::BUSY,
                "The server is busy",
                &serde_json::json!({ "type": "busy", "retryAfterSeconds": RETRY_AFTER_S }),
            );
            Err(HttpRefusal::new(StatusCode::SERVICE_UNAVAILABLE, &error))
        }
    }
}

/// A connection's place in the table, for as long as its stream is there.
struct Entry {
    connections: Connections,
    id: Box<str>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.connections.0).remove(&self.id);
    }
}

/// Hands what a connection writes to the body of its stream.
struct EventSink(mpsc::Sender<Frame>);

impl Sink for EventSink {
    async fn write(&mut self, messages: &[Bytes]) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let mut last = None;
        for message in messages {
            let (written, on_the_wire) = oneshot::channel();
            self.0.send(Frame { message: message.clone(), written: Some(written), share: None }).await.map_err(|_| gone())?;
            last = Some(on_the_wire);
        }
        match last {
            Some(on_the_wire) => on_the_wire.await.map_err(|_| gone()),
            None => Ok(()),
        }
    }
}

/// The body: where to send to, then every message.
struct Messages {
    first: Option<Bytes>,
    frames: mpsc::Receiver<Frame>,
    unflushed: Unflushed,
    keep_alive: KeepAlive,
    over: bool,
    _entry: Entry,
}

impl Events for Messages {
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        self.unflushed.poll(context);
        match self.frames.poll_recv(context) {
            Poll::Ready(Some(frame)) => {
                self.unflushed.add(frame.written);
                self.keep_alive.put_off();
                Poll::Ready(Some(event(None, &frame.message)))
            }
            Poll::Ready(None) => {
                self.over = true;
                Poll::Ready(None)
            }
            Poll::Pending => self.keep_alive.poll(context).map(Some),
        }
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> HttpRefusal {
    HttpRefusal::new(status, &RpcError::typed(error::INVALID_REQUEST, kind, message))
}

fn not_allowed(allow: &'static str) -> HttpRefusal {
    let refusal = refusal(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "HTTP method not allowed here");
    HttpRefusal { allow: Some(allow), ..refusal }
}

/// No code panics while it holds the lock; were it ever to, the table would still be whole.
fn lock(table: &Table) -> MutexGuard<'_, HashMap<Box<str>, Inlet>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
