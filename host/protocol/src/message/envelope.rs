//! The members of a JSON-RPC message, and the rules by which they make a request, a notification or a response.

use std::borrow::Cow;

use serde::de::{IgnoredAny, MapAccess};
use serde_json::json;

use super::members::{Shape, Sink, Slots, text};
use super::{Message, NotificationMessage, Params, ParseLimits, Refusal, RequestId, RequestMessage, ResponseMessage, request_id};
use crate::error::RpcError;

const ENVELOPE_NAMES: [&str; 5] = ["jsonrpc", "id", "method", "result", "error"];
const JSONRPC: usize = 0;
const ID: usize = 1;
const METHOD: usize = 2;
const RESULT: usize = 3;
const ERROR: usize = 4;

#[derive(Default)]
pub(super) struct Envelope<'a> {
    slots: Slots<'a, { ENVELOPE_NAMES.len() }>,
    params: Option<Shape<Params<'a>>>,
    ambiguous: bool,
}

impl<'a> Sink<'a> for Envelope<'a> {
    fn member<A: MapAccess<'a>>(&mut self, name: Cow<'a, str>, map: &mut A) -> Result<(), A::Error> {
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
    pub(super) fn judge(self, limits: &ParseLimits) -> Result<Message<'a>, Refusal> {
        let method = self.slots.get(METHOD).map(|method| text(method).filter(|method| !method.is_empty()));
        let answers = self.slots.get(RESULT).is_some() || self.slots.get(ERROR).is_some();
        let Some(raw_id) = self.slots.get(ID) else {
            return match method {
                Some(Some(method)) => Ok(self.notification(method, answers)),
                None if answers => Ok(Message::Response(self.response(None))),
                Some(None) | None => Err(Refusal::new(None, invalid_message("The message has no method"))),
            };
        };
        let id = request_id(raw_id, limits);
        if answers && method.is_none() {
            return Ok(Message::Response(self.response(id.ok())));
        }
        let id = id.map_err(|error| Refusal::new(None, error))?;
        match self.request(method, answers) {
            Ok((method, params)) => Ok(Message::Request(RequestMessage { id, method, params })),
            Err(error) => Err(Refusal::new(Some(id), error)),
        }
    }

    fn request(self, method: Option<Option<Cow<'a, str>>>, answers: bool) -> Result<(Cow<'a, str>, Params<'a>), RpcError> {
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
            return Err(invalid_message("A message is a request or a response, not both"));
        }
        if self.ambiguous {
            return Err(duplicate_member());
        }
        match self.params {
            None | Some(Shape::Null) => Ok((method, Params::default())),
            Some(Shape::Object(params)) if params.is_ambiguous() => Err(duplicate_member()),
            Some(Shape::Object(params)) => Ok((method, params)),
            Some(Shape::Other) => Err(RpcError::invalid_request("invalid_params", "Parameters must be an object")),
        }
    }

    fn notification(self, method: Cow<'a, str>, answers: bool) -> Message<'a> {
        if !self.has_version() || self.ambiguous || answers {
            return Message::BadNotification;
        }
        match self.params {
            None | Some(Shape::Null) => Message::Notification(NotificationMessage { method, params: Params::default() }),
            Some(Shape::Object(params)) if !params.is_ambiguous() => Message::Notification(NotificationMessage { method, params }),
            Some(Shape::Object(_) | Shape::Other) => Message::BadNotification,
        }
    }

    fn response(&self, id: Option<RequestId>) -> ResponseMessage<'a> {
        let answer = match (self.slots.get(RESULT), self.slots.get(ERROR)) {
            _ if !self.has_version() || self.ambiguous => None,
            (Some(result), None) => Some(Ok(result)),
            (None, Some(error)) => RpcError::read(error).map(Err),
            (Some(_), Some(_)) | (None, None) => None,
        };
        ResponseMessage { id, answer }
    }

    fn has_version(&self) -> bool {
        self.slots.get(JSONRPC).is_some_and(|version| version.get() == "\"2.0\"")
    }
}

fn invalid_message(message: &str) -> RpcError {
    RpcError::invalid_request("invalid_message", message)
}

fn duplicate_member() -> RpcError {
    RpcError::invalid_request("duplicate_member", "The message names a member twice")
}
