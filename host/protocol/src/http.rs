//! The rules of Streamable HTTP over request heads, without a server: who may ask, in what form, for which era.

mod access;
mod headers;
mod params;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::error::RpcError;
use crate::message::Refusal;
use crate::peer::{UnknownId, error_message};
use crate::revision::{Mode, Revision};
pub use access::{Access, AccessRules};
pub use headers::{Route, check_session_version, route, session_id};
pub use params::ParamHeaders;

/// `MCP-Protocol-Version`
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// `Mcp-Session-Id`
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// `Mcp-Method`
pub const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// `Mcp-Name`
pub const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
/// `Last-Event-ID`
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// An HTTP answer that ends the exchange before any call.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRefusal {
    /// The status.
    pub status: StatusCode,
    /// A JSON-RPC error response (`application/json`).
    pub body: Bytes,
    /// The `Allow` header, which a 405 must have.
    pub allow: Option<&'static str>,
    /// The `WWW-Authenticate` header, which a 401 must have.
    pub challenge: Option<HeaderValue>,
}

/// What a request to the MCP endpoint wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// To send a message.
    Post,
    /// To open, or take up again, a stream of a session of the handshake era.
    Get,
    /// To end a session of the handshake era.
    Delete,
    /// To know whether a browser's script may ask.
    Preflight,
}

/// The forms of an answer that the client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepts {
    /// One JSON text.
    pub json: bool,
    /// A stream of events.
    pub events: bool,
}

impl HttpRefusal {
    /// A refusal with an error that belongs to no request.
    pub fn new(status: StatusCode, error: &RpcError) -> HttpRefusal {
        HttpRefusal { status, body: error_message(None, UnknownId::Omitted, error), allow: None, challenge: None }
    }

    fn invalid(status: StatusCode, kind: &str, message: impl Into<String>) -> HttpRefusal {
        HttpRefusal::new(status, &RpcError::invalid_request(kind, message))
    }

    /// The answer to a body of which no message could be made, in the form of the session's revision if there is a session.
    pub fn unread(refusal: &Refusal, session: Option<Revision>) -> HttpRefusal {
        let body = error_message(refusal.id.as_ref(), UnknownId::of(session), &refusal.error);
        HttpRefusal { status: StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST), body, allow: None, challenge: None }
    }

    /// The session is needed, and not named.
    pub fn session_required() -> HttpRefusal {
        HttpRefusal::invalid(StatusCode::BAD_REQUEST, "session_required", "Mcp-Session-Id is required")
    }

    /// The stream of that event is not known (any more), so that it cannot be taken up again.
    pub fn unknown_event() -> HttpRefusal {
        HttpRefusal::invalid(StatusCode::BAD_REQUEST, "unknown_event_id", "The stream of Last-Event-ID is not known")
    }

    /// The client takes no form of answer that there is.
    pub fn not_acceptable(types: &str) -> HttpRefusal {
        HttpRefusal::invalid(StatusCode::NOT_ACCEPTABLE, "not_acceptable", format!("Accept must list {types}"))
    }

    /// There is no such session (any more), or it is not the caller's.
    pub fn session_not_found() -> HttpRefusal {
        HttpRefusal::invalid(StatusCode::NOT_FOUND, "session_not_found", "Session not found")
    }
}

impl From<Refusal> for HttpRefusal {
    fn from(refusal: Refusal) -> HttpRefusal {
        HttpRefusal::unread(&refusal, None)
    }
}

/// The methods of HTTP that are served, as a header names them.
fn served_methods(mode: Mode) -> &'static str {
    if mode == Mode::Modern { "POST" } else { "POST, GET, DELETE" }
}

/// What the request wants. Streams and sessions exist only where the handshake era is served.
pub fn verb(parts: &Parts, mode: Mode) -> Result<Verb, HttpRefusal> {
    match parts.method {
        Method::POST => Ok(Verb::Post),
        Method::GET if mode != Mode::Modern => Ok(Verb::Get),
        Method::DELETE if mode != Mode::Modern => Ok(Verb::Delete),
        Method::OPTIONS if parts.headers.contains_key("access-control-request-method") => Ok(Verb::Preflight),
        _ => {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let refusal = HttpRefusal::invalid(status, "method_not_allowed", "HTTP method not allowed here");
            Err(HttpRefusal { allow: Some(served_methods(mode)), ..refusal })
        }
    }
}

/// Checks the form of a POST: what it carries, and what it takes in return.
///
/// The specification has clients accept both forms of an answer. A client that names one gets that one; one that
/// names none gets what fits best. Only a client that can take neither is refused.
pub fn check_post(headers: &HeaderMap) -> Result<Accepts, HttpRefusal> {
    // A browser sends other types without asking first, so this check is also one of access.
    if !is_json(headers) {
        let message = "Content-Type must be application/json";
        return Err(HttpRefusal::invalid(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message));
    }
    let accepts = Accepts { json: accepts(headers, "application", "json"), events: accepts(headers, "text", "event-stream") };
    if accepts.json || accepts.events {
        return Ok(accepts);
    }
    Err(HttpRefusal::not_acceptable("application/json and text/event-stream"))
}

/// Checks that the client takes the only form that there is for what it asked.
pub fn check_events(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    if accepts(headers, "text", "event-stream") {
        return Ok(());
    }
    Err(HttpRefusal::not_acceptable("text/event-stream"))
}

/// The event after which a client wants to go on, if it names one.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, HttpRefusal> {
    single(headers, &LAST_EVENT_ID).map_err(|_| HttpRefusal::unknown_event())
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let Ok(value) = value.to_str() else {
        return false;
    };
    let kind = value.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// Whether a media range of `Accept` covers the type; the most specific range decides. No `Accept` means anything.
fn accepts(headers: &HeaderMap, kind: &str, subtype: &str) -> bool {
    let mut best: Option<(u8, bool)> = None;
    let mut named = false;
    for value in headers.get_all(ACCEPT) {
        named = true;
        for range in value.to_str().unwrap_or_default().split(',') {
            let mut pieces = range.split(';');
            let media = pieces.next().unwrap_or_default().trim();
            let Some((range_kind, range_subtype)) = media.split_once('/') else {
                continue;
            };
            let specificity = match (range_kind, range_subtype) {
                ("*", "*") => 0,
                (range_kind, "*") if range_kind.eq_ignore_ascii_case(kind) => 1,
                (range_kind, range_subtype) if range_kind.eq_ignore_ascii_case(kind) && range_subtype.eq_ignore_ascii_case(subtype) => 2,
                _ => continue,
            };
            let wanted = pieces.all(|parameter| !is_zero_quality(parameter));
            if best.is_none_or(|(known, _)| specificity >= known) {
                best = Some((specificity, wanted));
            }
        }
    }
    best.map_or(!named, |(_, wanted)| wanted)
}

/// `q=0`, `q=0.0`, …: not wanted at all.
fn is_zero_quality(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    name.trim().eq_ignore_ascii_case("q") && value.trim().parse::<f32>().is_ok_and(|quality| quality <= 0.0)
}

/// The value of a header that may be there once. An error names what is wrong with it.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err("must be sent once");
    }
    match value.to_str() {
        Ok(value) => Ok(Some(value.trim_matches([' ', '\t']))),
        Err(_) => Err("contains invalid characters"),
    }
}

/// The header that tells the revision, for responses.
pub fn version_header(revision: Revision) -> HeaderValue {
    HeaderValue::from_static(revision.as_str())
}
