//! Headers against body: which era a POST belongs to, and whether its headers tell the truth about its message.

use std::borrow::Cow;

use base64::Engine as _;
use http::{HeaderMap, HeaderName, StatusCode};

use super::{HttpRefusal, MCP_METHOD, MCP_NAME, PROTOCOL_VERSION, SESSION_ID, single};
use crate::error::RpcError;
use crate::message::{Incoming, Message, Refusal, RequestMessage};
use crate::method::Method;
use crate::modern;
use crate::revision::{Era, Mode, Revision};

/// A session id is at most this long.
const SESSION_ID_BYTES_MAX: usize = 128;
const ENCODED_START: &str = "=?base64?";
const ENCODED_END: &str = "?=";

/// Where a message goes whose headers are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'h> {
    /// To a fresh peer that lives for this exchange.
    Modern,
    /// To the peer of a session.
    Handshake {
        /// The session that the client names; well-formed, but perhaps unknown.
        session: Option<&'h str>,
        /// The revision that the client names; compare it with [`check_session_version`].
        version: Option<Revision>,
        /// The message is an `initialize` request. Without a session it opens one; without either, the answer is
        /// [`HttpRefusal::session_required`].
        opens: bool,
    },
}

/// Finds out where the message of a POST goes.
///
/// A message is modern if its body or its `MCP-Protocol-Version` says so; for modern requests, the headers must then
/// repeat the body. What the body lacks is for the peer to refuse.
pub fn route<'h>(headers: &'h HeaderMap, incoming: &Incoming<'_>, mode: Mode) -> Result<Route<'h>, HttpRefusal> {
    let request = match incoming {
        Incoming::One(Message::Request(request)) => Some(request),
        // Other transports drop it, since nobody waits; here the exchange itself has an answer.
        Incoming::One(Message::BadNotification) => {
            return Err(HttpRefusal::invalid(StatusCode::BAD_REQUEST, "invalid_notification", "The notification is malformed"));
        }
        Incoming::One(_) | Incoming::Batch(_) => None,
    };
    let version = single(headers, &PROTOCOL_VERSION);
    let version_is_modern = version.is_ok_and(|version| version.and_then(modern_revision).is_some());
    let body_is_modern = request.is_some_and(|request| modern::is_modern(&request.params));
    if mode == Mode::Modern || (mode == Mode::Both && (version_is_modern || body_is_modern)) {
        let checked = request.map_or(Ok(()), |request| check_modern(headers, version, request, mode));
        return checked.map(|()| Route::Modern).map_err(HttpRefusal::from);
    }
    // Nothing but `server/discover` has no counterpart in the handshake era: let the peer say what is missing.
    if mode == Mode::Both && request.is_some_and(|request| request.method == "server/discover") {
        return Ok(Route::Modern);
    }
    let version = version.map_err(|problem| bad_version(&format!("MCP-Protocol-Version {problem}"), mode))?;
    let version = match version.map(str::parse::<Revision>) {
        None => None,
        Some(Ok(version)) if version.era() == Era::Handshake => Some(version),
        Some(_) => return Err(bad_version("Unsupported protocol version", mode)),
    };
    let opens = request.is_some_and(|request| request.method == "initialize");
    Ok(Route::Handshake { session: session_id(headers)?, version, opens })
}

/// The session that a request of the handshake era names, if it is one that this server could have given out.
pub fn session_id(headers: &HeaderMap) -> Result<Option<&str>, HttpRefusal> {
    let sound = |id: &str| (1..=SESSION_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
    match single(headers, &SESSION_ID) {
        Ok(None) => Ok(None),
        Ok(Some(id)) if sound(id) => Ok(Some(id)),
        Ok(Some(_)) | Err(_) => Err(HttpRefusal::invalid(StatusCode::BAD_REQUEST, "invalid_session_id", "Mcp-Session-Id is malformed")),
    }
}

/// A session keeps the revision that it was opened with, whatever its requests name.
///
/// Clients before 2025-06-18 name none, and later ones only should name the one that was negotiated: there are some that
/// name a constant. Another revision of the same era is served, and so does no harm; one of the modern era has no sessions.
pub fn check_session_version(named: Option<Revision>, session: Revision) -> Result<(), HttpRefusal> {
    if named.is_none_or(|named| named.era() == session.era()) {
        return Ok(());
    }
    let error = RpcError::new(
        crate::error::INVALID_REQUEST,
        "The session has another protocol version",
        &serde_json::json!({ "type": "wrong_session_version", "expectedVersion": session.as_str() }),
    );
    Err(HttpRefusal::new(StatusCode::BAD_REQUEST, &error))
}

fn bad_version(message: &str, mode: Mode) -> HttpRefusal {
    let supported: Vec<&str> = mode.revisions().map(Revision::as_str).collect();
    let error = RpcError::new(
        crate::error::INVALID_REQUEST,
        message,
        &serde_json::json!({ "type": "unsupported_protocol_version", "supported": supported }),
    );
    HttpRefusal::new(StatusCode::BAD_REQUEST, &error)
}

fn check_modern(
    headers: &HeaderMap,
    version: Result<Option<&str>, &'static str>,
    request: &RequestMessage<'_>,
    mode: Mode,
) -> Result<(), Refusal> {
    // A client of the handshake era cannot know any of these headers; the peer tells it what is served.
    if mode == Mode::Modern && request.method == "initialize" && !modern::is_modern(&request.params) {
        return Ok(());
    }
    let refuse = |error| Refusal::new(Some(request.id.clone()), error);
    let version = match version {
        Ok(Some(version)) => version,
        Ok(None) => return Err(refuse(mismatch(&PROTOCOL_VERSION, "is missing"))),
        Err(problem) => return Err(refuse(mismatch(&PROTOCOL_VERSION, problem))),
    };
    let Some(claimed) = modern::requested_version(&request.params) else {
        // The body does not say; `check` finds out what exactly is missing.
        return modern::check(&request.params, mode).map(|_| ()).map_err(refuse);
    };
    if claimed != version {
        return Err(refuse(mismatch(&PROTOCOL_VERSION, "does not match the body")));
    }
    let Some(revision) = modern_revision(version) else {
        return Ok(());
    };
    match single(headers, &MCP_METHOD) {
        Ok(Some(method)) if method == request.method => {}
        found => return Err(refuse(standard_mismatch(&MCP_METHOD, found))),
    }
    let param = Method::find(&request.method, revision).and_then(Method::name_param);
    let Some(name) = param.and_then(|param| request.params.text(param)) else {
        return Ok(());
    };
    match single(headers, &MCP_NAME) {
        Ok(Some(header)) if decode(header).is_some_and(|header| header == name) => Ok(()),
        found => Err(refuse(standard_mismatch(&MCP_NAME, found))),
    }
}

/// A header value in plain text or in the Base64 form; none if the form is broken.
pub(super) fn decode(value: &str) -> Option<Cow<'_, str>> {
    let encoded = value.strip_prefix(ENCODED_START).and_then(|rest| rest.strip_suffix(ENCODED_END));
    match encoded {
        None => Some(Cow::Borrowed(value)),
        Some(encoded) => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
            String::from_utf8(bytes).ok().map(Cow::Owned)
        }
    }
}

pub(super) fn mismatch(header: &HeaderName, problem: &str) -> RpcError {
    RpcError::header_mismatch(header.as_str(), problem)
}

fn standard_mismatch(header: &HeaderName, found: Result<Option<&str>, &'static str>) -> RpcError {
    match found {
        Ok(None) => mismatch(header, "is missing"),
        Ok(Some(_)) => mismatch(header, "does not match the body"),
        Err(problem) => mismatch(header, problem),
    }
}

fn modern_revision(version: &str) -> Option<Revision> {
    version.parse().ok().filter(|revision: &Revision| revision.era() == Era::Modern)
}
