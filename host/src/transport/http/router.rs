//! Where a request goes: the order of checks for every request, whatever its era.

use super::answer::{self, AnswerBody};
use super::wire::Wire;
use super::{Server, handshake, intake, legacy, modern};
use crate::registry::Endpoint;
use crate::transport::Service;
use guesthouse_protocol::http::{Accepts, Access, HttpRefusal, Route, Verb, check_post, route, session_id, verb};
use guesthouse_protocol::message::parse;
use guesthouse_protocol::{Identity, PeerConfig, Refusal, Revision, RpcError, TransportKind, error};
use http::request::Parts;
use hyper::body::Incoming;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use std::sync::Arc;

/// What is known about a POST before its message is looked at.
pub(super) struct Posted<'a, S> {
    pub(super) server: &'a Server<S>,
    pub(super) endpoint: Endpoint,
    /// Who sent it.
    pub(super) identity: Identity,
    /// What the peers of the endpoint have in common.
    pub(super) config: Arc<PeerConfig>,
    pub(super) headers: &'a HeaderMap,
    pub(super) accepts: Accepts,
    pub(super) wire: &'a Arc<Wire>,
}

/// Answers one request.
pub(super) async fn handle<S: Service>(server: &Server<S>, wire: &Arc<Wire>, request: Request<Incoming>) -> Response<AnswerBody> {
    let (parts, body) = request.into_parts();
    // Whoever probes may not know the server's name, and learns nothing.
    if parts.uri.path() == "/healthz" {
        return health(&parts.method);
    }
    let access = match server.access.check(&parts) {
        Ok(access) => access,
        Err(refusal) => return answer::refused(refusal),
    };
    let preflight = parts.method == Method::OPTIONS;
    let mut response = serve(server, wire, parts, body, &access).await.unwrap_or_else(answer::refused);
    if !preflight {
        access.write_headers(response.headers_mut());
    }
    response
}

async fn serve<S: Service>(
    server: &Server<S>,
    wire: &Arc<Wire>,
    parts: Parts,
    body: Incoming,
    access: &Access,
) -> Result<Response<AnswerBody>, HttpRefusal> {
    if parts.method == Method::OPTIONS {
        return preflight(server, &parts, access);
    }
    // Before anything else is said: who may not call learns nothing, not even what there is.
    let identity = server.service.identify(&parts.headers, server.is_local(&parts))?;
    if server.service.config().server.sse
        && let Some(wanted) = legacy::wanted(parts.uri.path())
    {
        return legacy::serve(server, wire, wanted, identity, &parts, body).await;
    }
    let endpoint = endpoint(parts.uri.path()).ok_or_else(not_found)?;
    let config = server.service.peer_config(&endpoint, TransportKind::Http).ok_or_else(not_found)?;
    let headers = &parts.headers;
    match verb(&parts, config.mode)? {
        Verb::Post | Verb::Preflight => {}
        Verb::Get => return handshake::listen(server, &endpoint, &identity, headers, wire),
        Verb::Delete => return handshake::delete(&server.sessions, &endpoint, &identity, headers),
    }
    let accepts = check_post(headers)?;
    let limits = &config.limits.parse;
    let unread = |refusal: Refusal| HttpRefusal::unread(&refusal, revision(server, &endpoint, &identity, headers));
    let body_time = server.service.config().limits.body_time.duration();
    let message = intake::read(body, limits, body_time).await.map_err(unread)?;
    let incoming = parse(&message, limits).map_err(unread)?;
    let route = route(headers, &incoming, config.mode)?;
    let posted = Posted { server, endpoint, identity, config: config.clone(), headers, accepts, wire };
    match route {
        Route::Modern => modern::answer(posted, incoming).await,
        Route::Handshake { session: Some(id), version, .. } => handshake::answer(posted, id, version, incoming).await,
        Route::Handshake { session: None, opens: true, .. } => handshake::open(posted, incoming).await,
        Route::Handshake { session: None, opens: false, .. } => Err(HttpRefusal::session_required()),
    }
}

/// Tells a browser what its scripts may send, without a word about what there is at the path.
fn preflight<S: Service>(server: &Server<S>, parts: &Parts, access: &Access) -> Result<Response<AnswerBody>, HttpRefusal> {
    endpoint(parts.uri.path()).ok_or_else(not_found)?;
    let config = server.service.peer_config(&Endpoint::Merged, TransportKind::Http).ok_or_else(not_found)?;
    verb(parts, config.mode)?;
    Ok(answer::empty(StatusCode::NO_CONTENT, access.preflight(parts, config.mode)))
}

/// The revision of the session that the client names; else the one that the client names itself.
fn revision<S>(server: &Server<S>, endpoint: &Endpoint, identity: &Identity, headers: &HeaderMap) -> Option<Revision> {
    let session = session_id(headers).ok().flatten().and_then(|id| server.sessions.find(id, endpoint, identity));
    session.and_then(|session| session.revision()).or_else(|| handshake::named_version(headers).ok().flatten())
}

/// `/mcp` or `/mcp/<guest>`.
fn endpoint(path: &str) -> Option<Endpoint> {
    match path.strip_prefix("/mcp")? {
        "" => Some(Endpoint::Merged),
        rest => rest.strip_prefix('/').filter(|name| !name.is_empty()).map(|name| Endpoint::Guest(name.into())),
    }
}

fn health(method: &Method) -> Response<AnswerBody> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return answer::text(StatusCode::OK, "ok\n");
    }
    let error = RpcError::typed(error::INVALID_REQUEST, "method_not_allowed", "HTTP method not allowed here");
    answer::refused(HttpRefusal { allow: Some("GET"), ..HttpRefusal::new(StatusCode::METHOD_NOT_ALLOWED, &error) })
}

fn not_found() -> HttpRefusal {
    let error = RpcError::typed(error::INVALID_REQUEST, "endpoint_not_found", "Nothing is served at this path");
    HttpRefusal::new(StatusCode::NOT_FOUND, &error)
}
