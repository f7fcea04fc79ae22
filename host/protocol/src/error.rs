//! JSON-RPC errors: the object itself, its codes, and one constructor for each error that is ours.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::json::{Json, Object, to_raw};
use crate::message::{entries, integer, text};
use crate::revision::{Mode, Revision};

/// The message is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The message is JSON, but no JSON-RPC request that can be served now.
pub const INVALID_REQUEST: i32 = -32600;
/// The method does not exist for this client.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are wrong.
pub const INVALID_PARAMS: i32 = -32602;
/// The server, or a guest, failed.
pub const INTERNAL_ERROR: i32 = -32603;
/// No free permit; come back later.
pub const BUSY: i32 = -32000;
/// No such resource, in the handshake era.
pub const RESOURCE_NOT_FOUND: i32 = -32002;
/// HTTP headers and body disagree, or a required header is missing.
pub const HEADER_MISMATCH: i32 = -32020;
/// The request needs a client capability that the client did not declare.
pub const MISSING_CLIENT_CAPABILITY: i32 = -32021;
/// The protocol version is not served.
pub const UNSUPPORTED_VERSION: i32 = -32022;

/// A method name is echoed in an error only up to this length.
const ECHO_BYTES_MAX: usize = 128;

/// A JSON-RPC error object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RpcError {
    /// What kind of error it is.
    pub code: i32,
    /// One sentence for people.
    pub message: String,
    /// More for machines; ours always has a `type`.
    pub data: Option<Json>,
}

impl RpcError {
    /// An error with data that is any serialisable value.
    pub fn new(code: i32, message: impl Into<String>, data: &impl serde::Serialize) -> RpcError {
        RpcError { code, message: message.into(), data: Some(to_raw(data)) }
    }

    /// An error whose data says nothing but its type.
    pub fn typed(code: i32, kind: &str, message: impl Into<String>) -> RpcError {
        RpcError::new(code, message, &json!({ "type": kind }))
    }

    pub(crate) fn parse_error() -> RpcError {
        RpcError::typed(PARSE_ERROR, "parse_error", "The message is not valid JSON")
    }

    pub(crate) fn invalid_request(kind: &str, message: impl Into<String>) -> RpcError {
        RpcError::typed(INVALID_REQUEST, kind, message)
    }

    pub(crate) fn method_not_found(method: &str, revision: Revision) -> RpcError {
        let shown = (method.len() <= ECHO_BYTES_MAX).then_some(method);
        RpcError::new(
            METHOD_NOT_FOUND,
            "Method not found",
            &json!({ "type": "method_not_found", "method": shown, "protocolVersion": revision.as_str() }),
        )
    }

    pub(crate) fn missing_params(names: &[&str]) -> RpcError {
        RpcError::new(INVALID_PARAMS, "Missing required parameters", &json!({ "type": "missing_params", "missing": names }))
    }

    pub(crate) fn invalid_param(field: &str, reason: &str) -> RpcError {
        RpcError::new(INVALID_PARAMS, "Invalid parameters", &json!({ "type": "invalid_params", "field": field, "reason": reason }))
    }

    pub(crate) fn invalid_meta(reason: &str, field: &str) -> RpcError {
        RpcError::new(INVALID_PARAMS, "Invalid request metadata", &json!({ "type": "invalid_meta", "reason": reason, "field": field }))
    }

    pub(crate) fn unsupported_version(mode: Mode, requested: &str) -> RpcError {
        let supported: Vec<&str> = mode.revisions().map(Revision::as_str).collect();
        RpcError::new(UNSUPPORTED_VERSION, "Unsupported protocol version", &json!({ "supported": supported, "requested": requested }))
    }

    pub(crate) fn header_mismatch(header: &str, problem: &str) -> RpcError {
        RpcError::new(
            HEADER_MISMATCH,
            format!("Header mismatch: {header} {problem}"),
            &json!({ "type": "header_mismatch", "header": header }),
        )
    }

    /// What it takes to keep it, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.message.len().saturating_add(self.data.as_ref().map_or(0, |data| data.get().len()))
    }

    /// Reads an error object of a client; none if it is none.
    pub(crate) fn read(error: &RawValue) -> Option<RpcError> {
        let members = entries(error)?;
        let get = |wanted: &str| members.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
        Some(RpcError {
            code: integer(get("code")?).and_then(|code| i32::try_from(code).ok())?,
            message: text(get("message")?)?.into_owned(),
            data: get("data").map(RawValue::to_owned),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::new(out);
        let code = i64::from(self.code).to_string();
        object.key("code").extend_from_slice(code.as_bytes());
        object.text("message", &self.message);
        if let Some(data) = &self.data {
            object.raw("data", data);
        }
        object.end();
    }
}

impl PartialEq for RpcError {
    fn eq(&self, other: &RpcError) -> bool {
        let data = |error: &RpcError| error.data.as_deref().map(|data: &RawValue| data.get().to_owned());
        self.code == other.code && self.message == other.message && data(self) == data(other)
    }
}
