//! The JSON-RPC envelope: bounded parsing of what a client sends.

mod depth;
mod envelope;
mod members;
mod params;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::json;
use depth::depth;
use envelope::Envelope;
use members::Shape;
pub(crate) use members::{entries, integer, text};
pub use params::{Meta, Params};
pub(crate) use params::{MetaMember, meta_key};

/// What a client may send at most. Everything beyond is refused before it is parsed.
#[derive(Clone, Debug)]
pub struct ParseLimits {
    /// One message, as bytes on the wire.
    pub message_bytes_max: usize,
    /// Objects and arrays within each other, the message itself counted.
    pub depth_max: usize,
    /// Messages in one batch.
    pub batch_len_max: usize,
    /// A request id or a progress token that is a string; both are kept.
    pub id_bytes_max: usize,
}

impl Default for ParseLimits {
    fn default() -> ParseLimits {
        ParseLimits { message_bytes_max: 4 << 20, depth_max: 64, batch_len_max: 64, id_bytes_max: 256 }
    }
}

/// The id of a request. The integer `1` and the string `"1"` are different ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RequestId {
    /// An integer; beyond 64 bits it is refused.
    Integer(i64),
    /// A string of bounded length.
    String(Box<str>),
}

/// What one text from the client holds.
#[expect(clippy::large_enum_variant, reason = "the common case is one message, which a box would cost an allocation")]
#[derive(Debug)]
pub enum Incoming<'a> {
    /// One message.
    One(Message<'a>),
    /// A batch with at least one element; each stands or falls alone.
    Batch(Vec<Result<Message<'a>, Refusal>>),
}

/// One JSON-RPC message.
#[derive(Debug)]
pub enum Message<'a> {
    /// Wants exactly one response.
    Request(RequestMessage<'a>),
    /// Wants none.
    Notification(NotificationMessage<'a>),
    /// Answers a request of ours.
    Response(ResponseMessage<'a>),
    /// A notification that breaks the rules; it is dropped, since nobody waits for an answer.
    BadNotification,
}

/// A request whose envelope is sound.
#[derive(Debug)]
pub struct RequestMessage<'a> {
    /// The client's id.
    pub id: RequestId,
    /// The method as the client wrote it.
    pub method: Cow<'a, str>,
    /// Its parameters; empty if there were none.
    pub params: Params<'a>,
}

/// The answer to a request of ours.
#[derive(Debug)]
pub struct ResponseMessage<'a> {
    /// Our id; none if it cannot be read.
    pub id: Option<RequestId>,
    /// A result or an error; none if the response is neither or both, or breaks another rule of JSON-RPC.
    pub answer: Option<Result<&'a RawValue, RpcError>>,
}

/// A notification whose envelope is sound.
#[derive(Debug)]
pub struct NotificationMessage<'a> {
    /// The method as the client wrote it.
    pub method: Cow<'a, str>,
    /// Its parameters; empty if there were none.
    pub params: Params<'a>,
}

/// The answer to something that never became a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// None if the id could not be read.
    pub id: Option<RequestId>,
    /// What is wrong.
    pub error: RpcError,
    /// The HTTP status that goes with it.
    pub status: u16,
}

impl Refusal {
    pub(crate) fn new(id: Option<RequestId>, error: RpcError) -> Refusal {
        Refusal { id, error, status: 400 }
    }

    /// For a message (a line, a body) that is longer than the limit; it was not read to its end.
    pub fn too_long(limits: &ParseLimits) -> Refusal {
        let error = RpcError::new(
            crate::error::INVALID_REQUEST,
            format!("The message is longer than {} bytes", limits.message_bytes_max),
            &json!({ "type": "message_too_long", "limit": limits.message_bytes_max }),
        );
        Refusal { id: None, error, status: 413 }
    }
}

/// Parses one text from the client.
///
/// A scan checks length and depth, then one pass takes the envelope, `params` and `_meta` apart; values that only a
/// guest understands stay text.
pub fn parse<'a>(message: &'a [u8], limits: &ParseLimits) -> Result<Incoming<'a>, Refusal> {
    if message.len() > limits.message_bytes_max {
        return Err(Refusal::too_long(limits));
    }
    let Ok(text) = std::str::from_utf8(message) else {
        return Err(Refusal::new(None, RpcError::parse_error()));
    };
    if depth(message) > limits.depth_max {
        let message = format!("The message nests deeper than {} levels", limits.depth_max);
        return Err(Refusal::new(None, RpcError::invalid_request("message_too_deep", message)));
    }
    if text.trim_start().starts_with('[') {
        return parse_batch(text, limits);
    }
    parse_message(text, limits).map(Incoming::One)
}

fn parse_batch<'a>(text: &'a str, limits: &ParseLimits) -> Result<Incoming<'a>, Refusal> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| Refusal::new(None, RpcError::parse_error()))?;
    if elements.is_empty() {
        return Err(Refusal::new(None, RpcError::invalid_request("empty_batch", "A batch must not be empty")));
    }
    if elements.len() > limits.batch_len_max {
        let message = format!("A batch may have at most {} messages", limits.batch_len_max);
        return Err(Refusal::new(None, RpcError::invalid_request("batch_too_long", message)));
    }
    Ok(Incoming::Batch(elements.into_iter().map(|element| parse_message(element.get(), limits)).collect()))
}

fn parse_message<'a>(text: &'a str, limits: &ParseLimits) -> Result<Message<'a>, Refusal> {
    match serde_json::from_str::<Shape<Envelope<'a>>>(text) {
        Ok(Shape::Object(envelope)) => envelope.judge(limits),
        Ok(Shape::Null | Shape::Other) => {
            Err(Refusal::new(None, RpcError::invalid_request("invalid_message", "A message must be an object")))
        }
        Err(_) => Err(Refusal::new(None, RpcError::parse_error())),
    }
}

/// Reads an id that may be kept: an integer, or a string of bounded length.
pub(crate) fn request_id(value: &RawValue, limits: &ParseLimits) -> Result<RequestId, RpcError> {
    if value.get() == "null" {
        return Err(RpcError::invalid_request("invalid_id", "The request id must not be null"));
    }
    if let Some(id) = integer(value) {
        return Ok(RequestId::Integer(id));
    }
    match text(value) {
        Some(id) if id.len() <= limits.id_bytes_max => Ok(RequestId::String(id.into())),
        Some(_) => {
            let message = format!("The request id must not be longer than {} bytes", limits.id_bytes_max);
            Err(RpcError::invalid_request("invalid_id", message))
        }
        None => Err(RpcError::invalid_request("invalid_id", "The request id must be a string or an integer")),
    }
}

impl RequestId {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            RequestId::Integer(id) => out.extend_from_slice(id.to_string().as_bytes()),
            RequestId::String(id) => json::string(out, id),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestId::Integer(id) => write!(formatter, "{id}"),
            RequestId::String(id) => write!(formatter, "{id:?}"),
        }
    }
}
