//! A POST, GET or DELETE of the handshake era: sessions are opened, used, listened to and ended.

use super::Server;
use super::answer::{self, AnswerBody};
use super::modern::conclude;
use super::reading;
use super::router::Posted;
use super::session::Received;
use super::sessions::Sessions;
use super::streams::STANDALONE;
use super::wire::Wire;
use crate::dispatch::Line;
use crate::registry::Endpoint;
use crate::transport::{Service, run_guarded};
use guesthouse_protocol::http::{HttpRefusal, PROTOCOL_VERSION, SESSION_ID, check_events, last_event_id, session_id};
use guesthouse_protocol::{Effect, Identity, Incoming, Message, Peer, Refusal, RequestId, Revision, RpcError, error};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Response, StatusCode};
use std::sync::Arc;

/// Answers `initialize`. The session exists once that has succeeded; if the client goes away before, it never does.
pub(super) async fn open<S: Service>(posted: Posted<'_, S>, incoming: Incoming<'_>) -> Result<Response<AnswerBody>, HttpRefusal> {
    let place = posted.server.sessions.reserve().ok_or_else(|| no_room(&incoming))?;
    let mut peer = Peer::new(posted.config.clone());
    let mut call = match peer.receive_parsed(incoming).into_iter().next() {
        Some(Effect::Run(call)) => *call,
        Some(Effect::Send(outgoing)) => return Ok(answer::response(outgoing, posted.accepts)),
        Some(Effect::Cancel(_) | Effect::End(_)) | None => return Ok(answer::accepted()),
    };
    let service = &posted.server.service;
    let id = call.id;
    call.context.identity = posted.identity.clone();
    let outcome = match service.requests().try_begin(&posted.identity) {
        Ok(_permit) => run_guarded(&**service, &posted.endpoint, call, Line::default()).await,
        Err(failure) => Err(failure),
    };
    let Some(outgoing) = conclude(&mut peer, id, outcome) else { return Ok(answer::accepted()) };
    let mut response = answer::response(outgoing, posted.accepts);
    if peer.revision().is_some() {
        let id = place.open(&**service, posted.endpoint, posted.identity, peer)?;
        response.headers_mut().insert(SESSION_ID, id);
    }
    Ok(response)
}

/// Passes a message to its session, and answers as that says.
pub(super) async fn answer<S: Service>(
    posted: Posted<'_, S>,
    id: &str,
    version: Option<Revision>,
    incoming: Incoming<'_>,
) -> Result<Response<AnswerBody>, HttpRefusal> {
    let server = posted.server;
    let session = server.sessions.find(id, &posted.endpoint, &posted.identity).ok_or_else(HttpRefusal::session_not_found)?;
    match session.receive(&server.service, incoming, version, posted.accepts)? {
        Received::Nothing => Ok(answer::accepted()),
        Received::Answer(outgoing) => Ok(answer::response(outgoing, posted.accepts)),
        Received::Calls(reader) => {
            let limits = &server.service.config().streams;
            Ok(reading::answer(session, reader, posted.accepts, posted.wire, limits).await)
        }
    }
}

/// Opens a stream for what the server says of its own accord, or goes on with one whose connection was lost.
pub(super) fn listen<S: Service>(
    server: &Server<S>,
    endpoint: &Endpoint,
    identity: &Identity,
    headers: &HeaderMap,
    wire: &Arc<Wire>,
) -> Result<Response<AnswerBody>, HttpRefusal> {
    check_events(headers)?;
    let id = session_id(headers)?.ok_or_else(HttpRefusal::session_required)?;
    let session = server.sessions.find(id, endpoint, identity).ok_or_else(HttpRefusal::session_not_found)?;
    session.check_version(named_version(headers)?)?;
    let (stream, after) = match last_event_id(headers)? {
        None => (STANDALONE, None),
        Some(id) => {
            let (stream, event) = reading::parse_event_id(id).ok_or_else(HttpRefusal::unknown_event)?;
            (stream, Some(event))
        }
    };
    let reader = session.streams.read(stream, after).ok_or_else(HttpRefusal::unknown_event)?;
    session.touch();
    Ok(reading::listen(session, reader, wire, &server.service.config().streams))
}

/// Ends a session and everything that runs in it.
pub(super) fn delete(
    sessions: &Sessions,
    endpoint: &Endpoint,
    identity: &Identity,
    headers: &HeaderMap,
) -> Result<Response<AnswerBody>, HttpRefusal> {
    let id = session_id(headers)?.ok_or_else(HttpRefusal::session_required)?;
    let session = sessions.find(id, endpoint, identity).ok_or_else(HttpRefusal::session_not_found)?;
    session.check_version(named_version(headers)?)?;
    sessions.close(id);
    Ok(answer::empty(StatusCode::NO_CONTENT, HeaderMap::new()))
}

/// The revision that the client names.
pub(super) fn named_version(headers: &HeaderMap) -> Result<Option<Revision>, HttpRefusal> {
    let read = |value: &HeaderValue| value.to_str().ok().and_then(|version| version.trim().parse().ok());
    let mut values = headers.get_all(PROTOCOL_VERSION).iter();
    match (values.next().map(read), values.next()) {
        (None, _) => Ok(None),
        (Some(Some(version)), None) => Ok(Some(version)),
        (Some(_), _) => {
            let error = RpcError::typed(error::INVALID_REQUEST, "unsupported_protocol_version", "Unsupported protocol version");
            Err(HttpRefusal::new(StatusCode::BAD_REQUEST, &error))
        }
    }
}

fn no_room(incoming: &Incoming<'_>) -> HttpRefusal {
    let id: Option<RequestId> = match incoming {
        Incoming::One(Message::Request(request)) => Some(request.id.clone()),
        Incoming::One(_) | Incoming::Batch(_) => None,
    };
    let error = RpcError::typed(error::BUSY, "session_capacity_exceeded", "There is no room for another session");
    Refusal { id, error, status: 503 }.into()
}
