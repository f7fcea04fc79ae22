//! Fair shares of a pool that several guests use: a place for each call, and always room for a guest that has none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A number of places, and the guests that share them.
#[derive(Debug)]
pub(crate) struct Shares {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    free: usize,
    next: u64,
    members: BTreeMap<u64, Member>,
}

#[derive(Debug, Default)]
struct Member {
    used: usize,
    waiting: usize,
    freed: Arc<Notify>,
}

/// One guest's claim to places. Its places may outlive it.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    member: u64,
    /// Places that one call of the guest takes.
    weight: usize,
}

/// The places of one call; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    shares: Arc<Shares>,
    member: u64,
    weight: usize,
}

impl Shares {
    pub(crate) fn new(places: usize) -> Arc<Shares> {
        Arc::new(Shares { inner: Mutex::new(Inner { free: places, next: 0, members: BTreeMap::new() }) })
    }

    /// Another guest joins, each of whose calls takes `weight` places.
    pub(crate) fn join(self: &Arc<Shares>, weight: usize) -> Share {
        let mut inner = self.lock();
        let member = inner.next;
        inner.next += 1;
        inner.members.insert(member, Member::default());
        Share { shares: Arc::clone(self), member, weight }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Takes places if that leaves the others their room. A guest alone may have all. Of several, each may have only as
    /// many as it leaves free: one busy guest gets half, two get a third each, and so on, and there is always a place
    /// for the first call of yet another guest, until there are as many busy guests as places.
    fn take(&mut self, member: u64, weight: usize) -> bool {
        let alone = self.members.len() == 1;
        let Some(left) = self.free.checked_sub(weight) else { return false };
        let Some(member) = self.members.get_mut(&member) else { return false };
        let used = member.used.saturating_add(weight);
        if !alone && member.used > 0 && used > left {
            return false;
        }
        member.used = used;
        self.free = left;
        true
    }
}

impl Share {
    /// Places, if they can be had at once.
    pub(crate) fn try_take(&self) -> Option<Place> {
        let taken = self.shares.lock().take(self.member, self.weight);
        taken.then(|| Place { shares: Arc::clone(&self.shares), member: self.member, weight: self.weight })
    }

    /// Whether no call of the guest has a place.
    pub(crate) fn has_none(&self) -> bool {
        self.shares.lock().members.get(&self.member).is_none_or(|member| member.used == 0)
    }

    /// Waits for places; who waits, and for how long, is bounded by the caller.
    pub(crate) async fn take(&self) -> Place {
        if let Some(place) = self.try_take() {
            return place;
        }
        let waiting = Waiting::begin(self);
        loop {
            // Asked for before the look, so that a place that is freed in between is not missed.
            let freed = waiting.freed.notified();
            if let Some(place) = self.try_take() {
                // What woke this call may be enough for another one.
                waiting.freed.notify_one();
                return place;
            }
            freed.await;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut inner = self.shares.lock();
        inner.members.remove(&self.member);
        // The last one left may have more than before.
        inner.wake();
    }
}

impl Inner {
    fn wake(&self) {
        for member in self.members.values().filter(|member| member.waiting > 0) {
            member.freed.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inner = self.shares.lock();
        inner.free = inner.free.saturating_add(self.weight);
        if let Some(member) = inner.members.get_mut(&self.member) {
            member.used = member.used.saturating_sub(self.weight);
        }
        inner.wake();
    }
}

/// A call that waits, counted so that nobody is woken in vain.
struct Waiting<'a> {
    share: &'a Share,
    freed: Arc<Notify>,
}

impl Waiting<'_> {
    fn begin(share: &Share) -> Waiting<'_> {
        let mut inner = share.shares.lock();
        let freed = inner.members.get_mut(&share.member).map(|member| {
            member.waiting += 1;
            Arc::clone(&member.freed)
        });
        Waiting { share, freed: freed.unwrap_or_default() }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(member) = self.share.shares.lock().members.get_mut(&self.share.member) {
            member.waiting = member.waiting.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(share: &Share) -> Vec<Place> {
        std::iter::from_fn(|| share.try_take()).collect()
    }

    #[test]
    fn a_guest_alone_has_all_and_others_are_left_room() {
        let shares = Shares::new(9);
        let first = shares.join(1);
        assert_eq!(all(&first).len(), 9);
        let second = shares.join(1);
        let of_first = all(&first);
        assert_eq!(of_first.len(), 4);
        let third = shares.join(1);
        let of_second = all(&second);
        assert_eq!(of_second.len(), 2);
        assert!(third.try_take().is_some());
        drop((of_first, third));
        assert_eq!(of_second.len() + all(&second).len(), 4);
        drop((of_second, first));
        assert_eq!(all(&second).len(), 9);
    }

    #[test]
    fn calls_that_need_more_count_for_more_and_a_first_call_always_may() {
        let shares = Shares::new(8);
        let (heavy, light) = (shares.join(3), shares.join(1));
        let places = all(&heavy);
        assert_eq!(places.len(), 1);
        assert_eq!(all(&light).len(), 2);
        drop(light);
        assert_eq!(all(&heavy).len(), 1);
        drop(places);
        let small = Shares::new(1);
        let (one, other) = (small.join(1), small.join(1));
        let place = one.try_take();
        assert!(place.is_some() && other.try_take().is_none());
        drop(place);
        assert!(other.try_take().is_some());
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_each_place_that_becomes_free() {
        let shares = Shares::new(2);
        let (one, other) = (shares.join(1), shares.join(1));
        let (first, second) = (one.try_take().unwrap(), other.try_take().unwrap());
        let mut waiting: Vec<_> = [&one, &one, &other].into_iter().map(|share| Box::pin(share.take())).collect();
        for call in &mut waiting {
            let pending = std::future::poll_fn(|cx| std::task::Poll::Ready(call.as_mut().poll(cx).is_pending())).await;
            assert!(pending);
        }
        // Whoever gives up passes the word on.
        drop(waiting.remove(0));
        drop(first);
        let third = waiting.remove(0).await;
        drop((second, third));
        waiting.remove(0).await;
    }
}
