//! How much one caller may have running at a time, so that none takes what all share.
//!
//! Callers that are nobody in particular count as one together.

use crate::config::Config;
use guesthouse_protocol::{Failure, Identity, RETRY_AFTER_S};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many of something one principal may have at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrincipalCap {
    /// Any principal.
    pub most: usize,
    /// Whoever sits at this machine.
    pub local: usize,
}

impl PrincipalCap {
    /// The same for everybody.
    pub fn of_all(most: usize) -> Self {
        Self { most, local: most }
    }

    fn of(self, identity: &Identity) -> usize {
        if identity.principal.as_deref() == Some(crate::identity::LOCAL) { self.local } else { self.most }
    }
}

/// A principal within its tenant.
type Key = (Option<Arc<str>>, Option<Arc<str>>);

/// What the principals have of one thing. Those that have nothing take up no room.
#[derive(Debug)]
pub struct Principals {
    cap: PrincipalCap,
    /// There is no more of it: a principal that may have as much needs no counting.
    total: usize,
    table: Arc<Mutex<HashMap<Key, Arc<Semaphore>>>>,
}

/// One principal's use; over when it is dropped. In this order, so that the entry sees what is left.
#[derive(Debug)]
pub struct Share {
    _permit: Option<OwnedSemaphorePermit>,
    _entry: Option<Entry>,
}

/// Keeps a principal in the table.
#[derive(Debug)]
struct Entry {
    table: Arc<Mutex<HashMap<Key, Arc<Semaphore>>>>,
    key: Key,
    room: Option<Arc<Semaphore>>,
}

impl Principals {
    /// Nobody has anything yet. `total` is how much there is for all together.
    pub fn new(cap: PrincipalCap, total: usize) -> Self {
        Self { cap, total, table: Arc::default() }
    }

    /// Whether anybody is counted at all.
    pub fn counts(&self) -> bool {
        self.cap.most < self.total || self.cap.local < self.total
    }

    /// One more for that principal, if it may have it now.
    pub fn try_take(&self, identity: &Identity) -> Option<Share> {
        let Some((entry, room)) = self.entry(identity) else { return Some(Share { _permit: None, _entry: None }) };
        let permit = room.try_acquire_owned().ok()?;
        Some(Share { _permit: Some(permit), _entry: Some(entry) })
    }

    /// Waits until that principal may have one more.
    pub async fn take(&self, identity: &Identity) -> Share {
        let Some((entry, room)) = self.entry(identity) else { return Share { _permit: None, _entry: None } };
        // It is never closed.
        Share { _permit: room.acquire_owned().await.ok(), _entry: Some(entry) }
    }

    fn entry(&self, identity: &Identity) -> Option<(Entry, Arc<Semaphore>)> {
        let most = self.cap.of(identity);
        if most >= self.total {
            return None;
        }
        let key = (identity.principal.clone(), identity.tenant.clone());
        let new = || Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        let room = lock(&self.table).entry(key.clone()).or_insert_with(new).clone();
        Some((Entry { table: self.table.clone(), key, room: Some(room.clone()) }, room))
    }

    #[cfg(test)]
    fn known(&self) -> usize {
        lock(&self.table).len()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut table = lock(&self.table);
        self.room = None;
        // Every use and every wait holds the room, too.
        if table.get(&self.key).is_some_and(|room| Arc::strong_count(room) == 1) {
            table.remove(&self.key);
        }
    }
}

/// The requests in flight: of all clients together, and of each principal over all its connections.
#[derive(Debug)]
pub struct Requests {
    all: Arc<Semaphore>,
    most: usize,
    principals: Principals,
}

/// A request in flight, for as long as this is there.
#[derive(Debug)]
pub struct InFlight {
    _all: Option<OwnedSemaphorePermit>,
    _own: Share,
}

impl Requests {
    /// None yet.
    pub fn of(config: &Config) -> Self {
        let most = config.limits.requests.min(Semaphore::MAX_PERMITS);
        let cap = config.auth.cap(most, config.limits.requests_per_principal);
        Self { all: Arc::new(Semaphore::new(most)), most, principals: Principals::new(cap, most) }
    }

    /// One more, or what the client is told where that is too many.
    pub fn try_begin(&self, identity: &Identity) -> Result<InFlight, Failure> {
        let own = self.principals.try_take(identity).ok_or(Failure::TooMany { retry_after_s: RETRY_AFTER_S })?;
        let all = self.all.clone().try_acquire_owned().map_err(|_| Failure::Busy { retry_after_s: RETRY_AFTER_S })?;
        Ok(InFlight { _all: Some(all), _own: own })
    }

    /// One more, once there is room.
    pub async fn begin(&self, identity: &Identity) -> InFlight {
        let own = self.principals.take(identity).await;
        InFlight { _all: self.all.clone().acquire_owned().await.ok(), _own: own }
    }

    /// How many there are.
    pub fn in_flight(&self) -> usize {
        self.most.saturating_sub(self.all.available_permits())
    }
}

/// No code panics while it holds the lock; were it ever to, the table would still be whole.
fn lock(table: &Mutex<HashMap<Key, Arc<Semaphore>>>) -> MutexGuard<'_, HashMap<Key, Arc<Semaphore>>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn who(principal: &str, tenant: Option<&str>) -> Identity {
        let principal = (!principal.is_empty()).then(|| principal.into());
        Identity { principal, tenant: tenant.map(Into::into), session: None }
    }

    #[test]
    fn each_principal_has_its_own_share_and_leaves_nothing_behind() {
        let principals = Principals::new(PrincipalCap { most: 2, local: 4 }, 4);
        for (identity, most) in [(who("alice", None), 2), (who("alice", Some("acme")), 2), (who("bob", None), 2), (who("", None), 2)] {
            let shares: Vec<Share> = std::iter::from_fn(|| principals.try_take(&identity)).take(9).collect();
            assert_eq!(shares.len(), most, "{identity:?}");
            let waiting = principals.take(&identity);
            assert!(waiting.now_or_never().is_none());
            drop(shares);
        }
        assert_eq!(principals.known(), 0);
        // Whoever may have all is not counted.
        let shares: Vec<Share> = std::iter::from_fn(|| principals.try_take(&who("local", None))).take(9).collect();
        assert_eq!((shares.len(), principals.known()), (9, 0));
    }

    #[test]
    fn who_waits_is_next_and_who_gives_up_is_forgotten() {
        let principals = Principals::new(PrincipalCap::of_all(1), 4);
        let alice = who("alice", None);
        let share = principals.try_take(&alice);
        let mut waiting = Box::pin(principals.take(&alice));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(share);
        assert!(principals.try_take(&alice).is_none(), "it is the turn of the one who waits");
        drop(waiting);
        drop(principals.try_take(&alice).unwrap());
        assert_eq!(principals.known(), 0);
    }

    #[test]
    fn a_principal_that_has_its_share_is_told_so_and_others_are_served() {
        let mut config = Config::default();
        config.limits.requests = 3;
        config.limits.requests_per_principal = Some(2);
        let requests = Requests::of(&config);
        let (alice, bob) = (who("alice", None), who("bob", None));
        let _first = [requests.try_begin(&alice).unwrap(), requests.try_begin(&alice).unwrap()];
        assert!(matches!(requests.try_begin(&alice), Err(Failure::TooMany { .. })));
        let _second = requests.try_begin(&bob).unwrap();
        assert!(matches!(requests.try_begin(&bob), Err(Failure::Busy { .. })));
        assert_eq!(requests.in_flight(), 3);
    }
}
