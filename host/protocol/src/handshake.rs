//! The handshake era: the session that `initialize` opens, and the ids that were used in it.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::effect::CallId;
use crate::error::RpcError;
use crate::message::RequestId;
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

/// The ids of the last requests. Older ones are forgotten, so that a long session cannot run out of ids.
#[derive(Debug)]
struct UsedIds {
    len_max: usize,
    order: VecDeque<RequestId>,
    known: HashSet<RequestId>,
}

impl Session {
    pub(crate) fn open(params: &InitializeParams, call: CallId, request_ids_max: usize) -> Session {
        Session {
            opening: Some(call),
            initialized: false,
            revision: params.negotiated,
            client_info: Arc::from(params.client_info.clone()),
            client_capabilities: Arc::from(params.capabilities.clone()),
            level: SessionLevel::new(),
            ids: UsedIds { len_max: request_ids_max, order: VecDeque::new(), known: HashSet::new() },
        }
    }

    /// Notes that an id is used now; refuses one that was used before.
    pub(crate) fn use_id(&mut self, id: &RequestId) -> Result<(), RpcError> {
        if self.ids.known.contains(id) {
            return Err(duplicate_id(id));
        }
        if self.ids.len_max == 0 {
            return Ok(());
        }
        if self.ids.order.len() >= self.ids.len_max
            && let Some(oldest) = self.ids.order.pop_front()
        {
            self.ids.known.remove(&oldest);
        }
        self.ids.order.push_back(id.clone());
        self.ids.known.insert(id.clone());
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
