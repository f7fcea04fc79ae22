//! The JSON-RPC envelope: bounded parsing of what a client sends.

mod members;
mod params;

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess};
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::json;
use members::{Shape, Sink, Slots};
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
        ParseLimits {
            message_bytes_max: 4 << 20,
            depth_max: 64,
            batch_len_max: 64,
            id_bytes_max: 256,
        }
    }
}

/// The id of a request. The integer `1` and the string `"1"` are different ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// An integer; beyond 64 bits it is refused.
    Integer(i64),
    /// A string of bounded length.
    String(Box<str>),
}

/// What one text from the client holds.
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
    /// Answers a request of ours. None if it has no readable id.
    Response(Option<RequestId>),
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
        Refusal {
            id,
            error,
            status: 400,
        }
    }

    /// For a message (a line, a body) that is longer than the limit; it was not read to its end.
    pub fn too_long(limits: &ParseLimits) -> Refusal {
        let error = RpcError::new(
            crate::error::INVALID_REQUEST,
            format!(
                "The message is longer than {} bytes",
                limits.message_bytes_max
            ),
            &json!({ "type": "message_too_long", "limit": limits.message_bytes_max }),
        );
        Refusal {
            id: None,
            error,
            status: 413,
        }
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
        return Err(Refusal::new(
            None,
            RpcError::invalid_request("message_too_deep", message),
        ));
    }
    if text.trim_start().starts_with('[') {
        return parse_batch(text, limits);
    }
    parse_message(text, limits).map(Incoming::One)
}

fn parse_batch<'a>(text: &'a str, limits: &ParseLimits) -> Result<Incoming<'a>, Refusal> {
    let elements: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|_| Refusal::new(None, RpcError::parse_error()))?;
    if elements.is_empty() {
        return Err(Refusal::new(
            None,
            RpcError::invalid_request("empty_batch", "A batch must not be empty"),
        ));
    }
    if elements.len() > limits.batch_len_max {
        let message = format!("A batch may have at most {} messages", limits.batch_len_max);
        return Err(Refusal::new(
            None,
            RpcError::invalid_request("batch_too_long", message),
        ));
    }
    Ok(Incoming::Batch(
        elements
            .into_iter()
            .map(|element| parse_message(element.get(), limits))
            .collect(),
    ))
}

fn parse_message<'a>(text: &'a str, limits: &ParseLimits) -> Result<Message<'a>, Refusal> {
    match serde_json::from_str::<Shape<Envelope<'a>>>(text) {
        Ok(Shape::Object(envelope)) => envelope.judge(limits),
        Ok(Shape::Null | Shape::Other) => Err(Refusal::new(
            None,
            RpcError::invalid_request("invalid_message", "A message must be an object"),
        )),
        Err(_) => Err(Refusal::new(None, RpcError::parse_error())),
    }
}

const ENVELOPE_NAMES: [&str; 5] = ["jsonrpc", "id", "method", "result", "error"];
const JSONRPC: usize = 0;
const ID: usize = 1;
const METHOD: usize = 2;
const RESULT: usize = 3;
const ERROR: usize = 4;

#[derive(Default)]
struct Envelope<'a> {
    slots: Slots<'a, { ENVELOPE_NAMES.len() }>,
    params: Option<Shape<Params<'a>>>,
    ambiguous: bool,
}

impl<'a> Sink<'a> for Envelope<'a> {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: Cow<'a, str>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        if name == "params" {
            let params = map.next_value()?;
            self.ambiguous |= self.params.replace(params).is_some();
        } else if let Some(index) = ENVELOPE_NAMES.iter().position(|known| *known == name) {
            self.ambiguous |= !self.slots.put(index, map.next_value()?);
        } else {
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

impl<'a> Envelope<'a> {
    /// Decides what the message is, and refuses it if it breaks a rule of JSON-RPC.
    fn judge(self, limits: &ParseLimits) -> Result<Message<'a>, Refusal> {
        let method = self
            .slots
            .get(METHOD)
            .map(|method| text(method).filter(|method| !method.is_empty()));
        let answers = self.slots.get(RESULT).is_some() || self.slots.get(ERROR).is_some();
        let Some(raw_id) = self.slots.get(ID) else {
            return match method {
                Some(Some(method)) => Ok(self.notification(method, answers)),
                None if answers => Ok(Message::Response(None)),
                Some(None) | None => Err(Refusal::new(
                    None,
                    invalid_message("The message has no method"),
                )),
            };
        };
        let id = request_id(raw_id, limits);
        if answers && method.is_none() {
            return Ok(Message::Response(id.ok()));
        }
        let id = id.map_err(|error| Refusal::new(None, error))?;
        match self.request(method, answers) {
            Ok((method, params)) => Ok(Message::Request(RequestMessage { id, method, params })),
            Err(error) => Err(Refusal::new(Some(id), error)),
        }
    }

    fn request(
        self,
        method: Option<Option<Cow<'a, str>>>,
        answers: bool,
    ) -> Result<(Cow<'a, str>, Params<'a>), RpcError> {
        if !self.has_version() {
            return Err(RpcError::new(
                crate::error::INVALID_REQUEST,
                "Invalid JSON-RPC version",
                &json!({ "type": "invalid_jsonrpc_version", "expected": "2.0" }),
            ));
        }
        let method = match method {
            Some(Some(method)) => method,
            Some(None) => return Err(invalid_message("The method must be a non-empty string")),
            None => return Err(invalid_message("The message has no method")),
        };
        if answers {
            return Err(invalid_message(
                "A message is a request or a response, not both",
            ));
        }
        if self.ambiguous {
            return Err(duplicate_member());
        }
        match self.params {
            None | Some(Shape::Null) => Ok((method, Params::default())),
            Some(Shape::Object(params)) if params.is_ambiguous() => Err(duplicate_member()),
            Some(Shape::Object(params)) => Ok((method, params)),
            Some(Shape::Other) => Err(RpcError::invalid_request(
                "invalid_params",
                "Parameters must be an object",
            )),
        }
    }

    fn notification(self, method: Cow<'a, str>, answers: bool) -> Message<'a> {
        if !self.has_version() || self.ambiguous || answers {
            return Message::BadNotification;
        }
        match self.params {
            None | Some(Shape::Null) => Message::Notification(NotificationMessage {
                method,
                params: Params::default(),
            }),
            Some(Shape::Object(params)) if !params.is_ambiguous() => {
                Message::Notification(NotificationMessage { method, params })
            }
            Some(Shape::Object(_) | Shape::Other) => Message::BadNotification,
        }
    }

    fn has_version(&self) -> bool {
        self.slots
            .get(JSONRPC)
            .is_some_and(|version| version.get() == "\"2.0\"")
    }
}

fn invalid_message(message: &str) -> RpcError {
    RpcError::invalid_request("invalid_message", message)
}

fn duplicate_member() -> RpcError {
    RpcError::invalid_request("duplicate_member", "The message names a member twice")
}

/// Reads an id that may be kept: an integer, or a string of bounded length.
pub(crate) fn request_id(value: &RawValue, limits: &ParseLimits) -> Result<RequestId, RpcError> {
    if value.get() == "null" {
        return Err(RpcError::invalid_request(
            "invalid_id",
            "The request id must not be null",
        ));
    }
    if let Some(id) = integer(value) {
        return Ok(RequestId::Integer(id));
    }
    match text(value) {
        Some(id) if id.len() <= limits.id_bytes_max => Ok(RequestId::String(id.into())),
        Some(_) => {
            let message = format!(
                "The request id must not be longer than {} bytes",
                limits.id_bytes_max
            );
            Err(RpcError::invalid_request("invalid_id", message))
        }
        None => Err(RpcError::invalid_request(
            "invalid_id",
            "The request id must be a string or an integer",
        )),
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

/// How deep objects and arrays nest, without regard to whether the text is valid JSON.
fn depth(text: &[u8]) -> usize {
    let mut deepest = 0usize;
    let mut open = 0usize;
    let mut rest = text;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'"' => rest = after_string(rest),
            b'{' | b'[' => {
                open = open.saturating_add(1);
                deepest = deepest.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// What follows the string literal whose opening quote was just read.
fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest) {
        let escaped = rest.get(at) == Some(&b'\\');
        rest = rest
            .get(at.saturating_add(if escaped { 2 } else { 1 })..)
            .unwrap_or_default();
        if !escaped {
            return rest;
        }
    }
    &[]
}
