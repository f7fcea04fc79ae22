//! Writes responses: the envelope around a result or an error.

use bytes::Bytes;

use crate::error::RpcError;
use crate::json::Object;
use crate::message::RequestId;
use crate::model::{Reply, Stamp};
use crate::revision::Revision;

/// A response, and what HTTP adds to it.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) message: Bytes,
    pub(super) status: u16,
    pub(super) retry_after_s: Option<u32>,
}

/// What stands in the place of an id that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownId {
    /// Nothing (since 2025-11-25).
    Omitted,
    /// `null`, as JSON-RPC has it.
    Null,
}

impl UnknownId {
    /// What a client of that revision expects; of a client that has not said which one it speaks, nothing is known.
    pub(crate) fn of(revision: Option<Revision>) -> UnknownId {
        match revision {
            Some(revision) if !revision.omits_unknown_id() => UnknownId::Null,
            Some(_) | None => UnknownId::Omitted,
        }
    }
}

pub(super) fn render_result(id: &RequestId, reply: &Reply, stamp: &Stamp<'_>) -> Rendered {
    let mut out = Vec::with_capacity(512);
    let mut object = Object::new(&mut out);
    object.text("jsonrpc", "2.0");
    id.write(object.key("id"));
    reply.write(object.key("result"), stamp);
    object.end();
    Rendered { message: Bytes::from(out), status: 200, retry_after_s: None }
}

pub(super) fn render_error(id: Option<&RequestId>, unknown: UnknownId, error: &RpcError, status: u16) -> Rendered {
    Rendered { message: error_message(id, unknown, error), status, retry_after_s: None }
}

/// The text of an error response.
pub(crate) fn error_message(id: Option<&RequestId>, unknown: UnknownId, error: &RpcError) -> Bytes {
    let mut out = Vec::with_capacity(256);
    let mut object = Object::new(&mut out);
    object.text("jsonrpc", "2.0");
    match (id, unknown) {
        (Some(id), _) => id.write(object.key("id")),
        (None, UnknownId::Null) => object.key("id").extend_from_slice(b"null"),
        (None, UnknownId::Omitted) => {}
    }
    error.write(object.key("error"));
    object.end();
    Bytes::from(out)
}
