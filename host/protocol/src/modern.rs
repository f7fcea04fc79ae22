//! The modern era: the request metadata in `_meta`, and what makes a request modern.

use serde_json::value::RawValue;

use crate::error::RpcError;
use crate::json::{Json, Object, is_object, raw, to_raw_written};
use crate::message::{Meta, MetaMember, Params, ParseLimits, RequestId, integer, meta_key, text};
use crate::model::{LogLevel, is_implementation};
use crate::revision::{Era, Mode, Revision};

/// What a modern request says about itself, once it is known to be sound.
#[derive(Debug)]
pub(crate) struct ModernMeta<'a> {
    pub(crate) revision: Revision,
    pub(crate) client_info: Option<&'a RawValue>,
    pub(crate) client_capabilities: &'a RawValue,
    pub(crate) log_level: Option<LogLevel>,
}

/// What a request of either era may say in `_meta`.
#[derive(Debug, Default)]
pub(crate) struct CommonMeta {
    pub(crate) progress_token: Option<RequestId>,
    pub(crate) traceparent: Option<Box<str>>,
    /// The keys that the protocol does not consume, as an object.
    pub(crate) rest: Option<Json>,
}

/// A request is modern if it carries one of the two keys that every modern request must carry.
pub(crate) fn is_modern(params: &Params<'_>) -> bool {
    match params.meta() {
        MetaMember::Object(meta) => meta.get(meta_key::PROTOCOL_VERSION).is_some() || meta.get(meta_key::CLIENT_CAPABILITIES).is_some(),
        MetaMember::Absent | MetaMember::NotAnObject => false,
    }
}

/// The version that a request names, known or not.
pub(crate) fn requested_version<'a>(params: &Params<'a>) -> Option<std::borrow::Cow<'a, str>> {
    match params.meta() {
        MetaMember::Object(meta) => meta.get(meta_key::PROTOCOL_VERSION).and_then(text),
        MetaMember::Absent | MetaMember::NotAnObject => None,
    }
}

/// Checks the metadata of a modern request: complete, well-formed, and of a version that is served.
pub(crate) fn check<'a>(params: &Params<'a>, mode: Mode) -> Result<ModernMeta<'a>, RpcError> {
    let meta = match params.meta() {
        MetaMember::Object(meta) => meta,
        MetaMember::NotAnObject => {
            return Err(RpcError::invalid_meta("meta_must_be_object", "_meta"));
        }
        MetaMember::Absent => return Err(missing("_meta")),
    };
    let version = required(meta, meta_key::PROTOCOL_VERSION)?;
    let version = text(version).filter(|version| !version.is_empty());
    let version = version.ok_or_else(|| invalid(meta_key::PROTOCOL_VERSION))?;
    let client_capabilities = required(meta, meta_key::CLIENT_CAPABILITIES)?;
    if !is_object(client_capabilities) {
        return Err(invalid(meta_key::CLIENT_CAPABILITIES));
    }
    let client_info = meta.get(meta_key::CLIENT_INFO);
    if client_info.is_some_and(|info| !is_implementation(info)) {
        return Err(invalid(meta_key::CLIENT_INFO));
    }
    let revision = version.parse().ok().filter(|revision: &Revision| revision.era() == Era::Modern);
    let revision = revision.ok_or_else(|| RpcError::unsupported_version(mode, &version))?;
    let log_level = match meta.get(meta_key::LOG_LEVEL) {
        None => None,
        Some(level) => {
            let level = text(level).and_then(|level| level.parse().ok());
            Some(level.ok_or_else(|| invalid(meta_key::LOG_LEVEL))?)
        }
    };
    Ok(ModernMeta { revision, client_info, client_capabilities, log_level })
}

/// Reads what both eras have in `_meta`.
pub(crate) fn common(params: &Params<'_>, limits: &ParseLimits) -> Result<CommonMeta, RpcError> {
    let meta = match params.meta() {
        MetaMember::Object(meta) => meta,
        MetaMember::NotAnObject => {
            return Err(RpcError::invalid_meta("meta_must_be_object", "_meta"));
        }
        MetaMember::Absent => return Ok(CommonMeta::default()),
    };
    let progress_token = match meta.get(meta_key::PROGRESS_TOKEN) {
        None => None,
        Some(token) => Some(progress_token(token, limits).ok_or_else(|| invalid(meta_key::PROGRESS_TOKEN))?),
    };
    // Trace context is a hint: a malformed one is as good as none, and no reason to refuse the request.
    let traceparent = meta.get(meta_key::TRACEPARENT).and_then(text);
    let traceparent = traceparent.filter(|value| is_traceparent(value)).map(|value| value.as_ref().into());
    Ok(CommonMeta { progress_token, traceparent, rest: rest(meta) })
}

fn progress_token(token: &RawValue, limits: &ParseLimits) -> Option<RequestId> {
    if let Some(token) = integer(token) {
        return Some(RequestId::Integer(token));
    }
    let token = text(token).filter(|token| token.len() <= limits.id_bytes_max)?;
    Some(RequestId::String(token.into()))
}

fn rest(meta: &Meta<'_>) -> Option<Json> {
    if meta.others().is_empty() {
        return None;
    }
    Some(to_raw_written(|out| {
        let mut object = Object::new(out);
        for (key, value) in meta.others() {
            raw(object.dynamic_key(key), value);
        }
        object.end();
    }))
}

/// Version 00 of the W3C format: lower-case hex, neither id all zeros.
fn is_traceparent(value: &str) -> bool {
    let mut parts = value.split('-');
    let mut hex =
        |len: usize| parts.next().filter(|part| part.len() == len && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    let set = |part: &str| part.bytes().any(|byte| byte != b'0');
    let sound = hex(2) == Some("00") && hex(32).is_some_and(set) && hex(16).is_some_and(set) && hex(2).is_some();
    sound && parts.next().is_none()
}

fn required<'a>(meta: &Meta<'a>, key: &str) -> Result<&'a RawValue, RpcError> {
    meta.get(key).ok_or_else(|| missing(key))
}

fn missing(field: &str) -> RpcError {
    RpcError::invalid_meta("missing_required_field", field)
}

fn invalid(field: &str) -> RpcError {
    RpcError::invalid_meta("invalid_field", field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_taken_to_the_letter() {
        assert!(is_traceparent("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"));
        for bad in [
            "",
            "01-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01\n",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-x",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7",
        ] {
            assert!(!is_traceparent(bad), "{bad:?}");
        }
    }
}
