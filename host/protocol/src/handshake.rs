//! The handshake era: the session that `initialize` opens, and the ids that were used in it.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::effect::CallId;
use crate::error::RpcError;
use crate::json::{Json, to_raw};
use crate::message::{RequestId, entries};
use crate::model::InitializeParams;
use crate::reporter::SessionLevel;
use crate::revision::Revision;

/// What the server remembers of a client between `initialize` and the end of the connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// The call that answers `initialize`, until it has.
    pub(crate) opening: Option<CallId>,
    /// The client has said that it is ready, so that it may be sent what it did not ask for.
    pub(crate) initialized: bool,
    pub(crate) revision: Revision,
    pub(crate) client_info: Arc<RawValue>,
    pub(crate) client_capabilities: Arc<RawValue>,
    pub(crate) level: SessionLevel,
    ids: UsedIds,
}

/// What a session keeps of `clientInfo` and of `capabilities`, each. Thousands of sessions may be open.
const CLIENT_BYTES_MAX: usize = 16 << 10;
/// What a session keeps of request ids in all; where they are long, fewer are remembered.
const IDS_BYTES_MAX: usize = 256 << 10;

/// The ids of the last requests. Older ones are forgotten, so that a long session cannot run out of ids.
#[derive(Debug)]
struct UsedIds {
    len_max: usize,
    bytes: usize,
    order: VecDeque<Arc<RequestId>>,
    known: HashSet<Arc<RequestId>>,
}

impl UsedIds {
    fn note(&mut self, id: &RequestId) {
        let id = Arc::new(id.clone());
        self.bytes = self.bytes.saturating_add(kept_bytes(&id));
        self.order.push_back(id.clone());
        self.known.insert(id);
        while self.order.len() > self.len_max || self.bytes > IDS_BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(kept_bytes(&oldest));
            self.known.remove(&oldest);
        }
    }
}

/// An id and its places in both collections, roughly.
fn kept_bytes(id: &RequestId) -> usize {
    let text = match id {
        RequestId::Integer(_) => 0,
        RequestId::String(text) => text.len(),
    };
    text.saturating_add(64)
}

/// What is kept of a client for as long as its session lasts: who it is, without the pictures that may come with that, and
/// what it can do. More than anything honest is refused.
fn kept(params: &InitializeParams) -> Result<(Json, Json), RpcError> {
    let too_long = |name| RpcError::invalid_param(name, &format!("longer than {CLIENT_BYTES_MAX} bytes"));
    let mut info = params.client_info.clone();
    if info.get().len() > CLIENT_BYTES_MAX {
        let members = entries(&info).unwrap_or_default();
        info = to_raw(&members.into_iter().filter(|(name, _)| name != "icons").collect::<BTreeMap<_, _>>());
    }
    if info.get().len() > CLIENT_BYTES_MAX {
        return Err(too_long("clientInfo"));
    }
    if params.capabilities.get().len() > CLIENT_BYTES_MAX {
        return Err(too_long("capabilities"));
    }
    Ok((info, params.capabilities.clone()))
}

impl Session {
    pub(crate) fn open(params: &InitializeParams, call: CallId, request_ids_max: usize) -> Result<Session, RpcError> {
        let (client_info, client_capabilities) = kept(params)?;
        Ok(Session {
            opening: Some(call),
            initialized: false,
            revision: params.negotiated,
            client_info: Arc::from(client_info),
            client_capabilities: Arc::from(client_capabilities),
            level: SessionLevel::new(),
            ids: UsedIds { len_max: request_ids_max, bytes: 0, order: VecDeque::new(), known: HashSet::new() },
        })
    }

    /// Notes that an id is used now; refuses one that was used before.
    pub(crate) fn use_id(&mut self, id: &RequestId) -> Result<(), RpcError> {
        if self.ids.known.contains(id) {
            return Err(duplicate_id(id));
        }
        self.ids.note(id);
        Ok(())
    }
}

/// The error for an id that is, or was, taken.
pub(crate) fn duplicate_id(id: &RequestId) -> RpcError {
    let shown = match id {
        RequestId::Integer(id) => serde_json::Value::from(*id),
        RequestId::String(id) => serde_json::Value::from(id.as_ref()),
    };
    RpcError::new(
        crate::error::INVALID_REQUEST,
        "The request id has been used before",
        &serde_json::json!({ "type": "duplicate_request_id", "duplicate_id": shown }),
    )
}
