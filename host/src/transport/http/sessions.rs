//! The sessions of the handshake era that are open: how they are found, and when they end.

use super::session::Session;
use super::streams::{Budget, ReplayLimits};
use crate::config::Config;
use crate::identity::session_name;
use crate::registry::Endpoint;
use crate::transport::Service;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use guesthouse_protocol::http::HttpRefusal;
use guesthouse_protocol::{Identity, Peer, RpcError, error};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Random bytes in a session id, which is all that protects a session.
const ID_BYTES: usize = 16;

/// The open sessions by id.
pub(super) struct Sessions {
    len_max: usize,
    idle: Duration,
    replay: ReplayLimits,
    budget: Arc<Budget>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<Box<str>, Arc<Session>>,
    /// Places kept for sessions whose `initialize` is not answered yet.
    reserved: usize,
}

/// A place that is kept while `initialize` runs.
pub(super) struct Place<'a>(&'a Sessions);

impl Sessions {
    pub(super) fn new(config: &Config) -> Self {
        let bytes = |size: crate::config::units::Size| usize::try_from(size.0).unwrap_or(usize::MAX);
        let streams = &config.streams;
        let replay =
            ReplayLimits { events_max: streams.replay, bytes_max: bytes(streams.replay_bytes), time: streams.replay_time.duration() };
        Self {
            len_max: config.limits.sessions,
            idle: config.limits.session_idle.duration(),
            replay,
            budget: Budget::new(bytes(streams.replay_total)),
            table: Mutex::default(),
        }
    }

    /// Keeps a place for a session; `None` if all are taken.
    pub(super) fn reserve(&self) -> Option<Place<'_>> {
        let mut table = lock(&self.table);
        if table.open.len().saturating_add(table.reserved) >= self.len_max {
            return None;
        }
        table.reserved = table.reserved.saturating_add(1);
        Some(Place(self))
    }

    /// The session of that id, of that caller, at that endpoint. For anybody else, and anywhere else, there is none.
    pub(super) fn find(&self, id: &str, endpoint: &Endpoint, identity: &Identity) -> Option<Arc<Session>> {
        lock(&self.table).open.get(id).filter(|session| session.endpoint == *endpoint && session.is_of(identity)).cloned()
    }

    /// Ends a session.
    pub(super) fn close(&self, id: &str) {
        let session = lock(&self.table).open.remove(id);
        if let Some(session) = session {
            session.close();
        }
    }

    /// Ends the sessions that have been idle for too long, and forgets what was kept long enough.
    pub(super) fn sweep(&self, now: Instant) {
        let idle: Vec<Arc<Session>> =
            lock(&self.table).open.extract_if(|_, session| session.is_idle(now, self.idle)).map(|(_, session)| session).collect();
        for session in idle {
            session.close();
        }
        let open: Vec<Arc<Session>> = lock(&self.table).open.values().cloned().collect();
        for session in open {
            session.expire_streams(now);
        }
    }

    /// Ends the connections that wait for something to happen. Clients may come back to another server.
    pub(super) fn stop_waiting(&self) {
        for session in lock(&self.table).open.values() {
            session.stop_waiting();
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        lock(&self.table).open.len()
    }

    /// What all of them keep for clients that come back, in bytes.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        self.budget.used()
    }

    /// Ends all sessions.
    pub(super) fn close_all(&self) {
        let open = std::mem::take(&mut lock(&self.table).open);
        for session in open.into_values() {
            session.close();
        }
    }
}

impl Place<'_> {
    /// Puts a session in the place, and says under which id it is found.
    pub(super) fn open<S: Service>(
        self,
        service: &S,
        endpoint: Endpoint,
        identity: Identity,
        peer: Peer,
    ) -> Result<HeaderValue, HttpRefusal> {
        let (id, header) = new_id().ok_or_else(|| {
            let error = RpcError::typed(error::INTERNAL_ERROR, "no_randomness", "The server cannot make a session id");
            HttpRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, &error)
        })?;
        let identity = Identity { session: Some(session_name(id.as_bytes())), ..identity };
        let listener = service.hub().session(endpoint.clone());
        let listener = listener.of_session(service.presence(&identity));
        let session = Session::new(endpoint, identity, peer, listener, self.0.replay.clone(), self.0.budget.clone());
        lock(&self.0.table).open.insert(id, Arc::new(session));
        Ok(header)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut table = lock(&self.0.table);
        table.reserved = table.reserved.saturating_sub(1);
    }
}

/// A fresh id, also as a header value.
pub(super) fn new_id() -> Option<(Box<str>, HeaderValue)> {
    let mut random = [0; ID_BYTES];
    getrandom::fill(&mut random).ok()?;
    let id = URL_SAFE_NO_PAD.encode(random);
    let header = HeaderValue::from_str(&id).ok()?;
    Some((id.into(), header))
}

/// No code panics while it holds the lock; were it ever to, the table would still be whole.
fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
