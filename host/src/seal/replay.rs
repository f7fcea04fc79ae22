//! Which single-use tokens have been used: remembered until they would no longer open anyway.

mod stored;

use futures_util::future::BoxFuture;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

pub(crate) use stored::StoredReplays;

/// The random part of a token, by which it is remembered.
pub(crate) type TokenId = [u8; 16];

/// Why a token may not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It was used before.
    Replayed,
    /// No further one of this principal can be remembered now.
    Full,
}

/// Remembers used tokens.
pub(crate) trait Replays: Send + Sync {
    /// Notes that a token of a principal is used, to be remembered up to and including the second `until`.
    fn consume<'a>(&'a self, principal: &'a str, token: TokenId, until: u64, now: u64) -> BoxFuture<'a, Result<(), Refused>>;

    /// Takes that back, at once or soon: whatever the token was used for left no trace.
    fn release(&self, principal: &str, token: TokenId, until: u64);
}

/// Used tokens in the memory of this process.
pub(crate) struct MemoryReplays {
    tokens_per_principal_max: usize,
    used: Mutex<HashMap<Box<str>, Used>>,
}

/// Used tokens of one principal, those that are forgotten first at the front.
#[derive(Default)]
struct Used {
    by_time: BTreeSet<(u64, TokenId)>,
    until: HashMap<TokenId, u64>,
}

impl MemoryReplays {
    pub(crate) fn new(tokens_per_principal_max: usize) -> Self {
        Self { tokens_per_principal_max, used: Mutex::default() }
    }

    fn note(&self, principal: &str, token: TokenId, until: u64, now: u64) -> Result<(), Refused> {
        let mut all = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, used| used.forget(now));
        let used = all.entry(principal.into()).or_default();
        if used.until.contains_key(&token) {
            return Err(Refused::Replayed);
        }
        if used.until.len() >= self.tokens_per_principal_max {
            return Err(Refused::Full);
        }
        used.until.insert(token, until);
        used.by_time.insert((until, token));
        Ok(())
    }
}

impl Replays for MemoryReplays {
    fn consume<'a>(&'a self, principal: &'a str, token: TokenId, until: u64, now: u64) -> BoxFuture<'a, Result<(), Refused>> {
        Box::pin(std::future::ready(self.note(principal, token, until, now)))
    }

    fn release(&self, principal: &str, token: TokenId, until: u64) {
        let mut all = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = all.get_mut(principal) {
            used.until.remove(&token);
            used.by_time.remove(&(until, token));
        }
    }
}

impl Used {
    /// Forgets what no longer opens; false if nothing is left.
    fn forget(&mut self, now: u64) -> bool {
        while let Some((until, token)) = self.by_time.first().copied()
            && until < now
        {
            self.by_time.pop_first();
            self.until.remove(&token);
        }
        !self.until.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage;
    use std::sync::Arc;

    /// Both kinds, with room for so many tokens.
    fn both(tokens_per_principal_max: usize) -> [Arc<dyn Replays>; 2] {
        let storage = Storage::memory();
        [Arc::new(MemoryReplays::new(tokens_per_principal_max)), Arc::new(StoredReplays::new(&storage, tokens_per_principal_max))]
    }

    #[tokio::test]
    async fn a_token_is_remembered_to_its_end_and_no_longer() {
        for replays in both(10) {
            assert_eq!(replays.consume("a", [1; 16], 100, 50).await, Ok(()));
            assert_eq!(replays.consume("a", [1; 16], 100, 100).await, Err(Refused::Replayed));
            assert_eq!(replays.consume("b", [1; 16], 100, 100).await, Ok(()));
            assert_eq!(replays.consume("a", [1; 16], 200, 101).await, Ok(()));
            assert_eq!(replays.consume("a", [1; 16], 200, 101).await, Err(Refused::Replayed));
        }
    }

    #[tokio::test]
    async fn one_principal_cannot_take_the_room_of_another() {
        for replays in both(2) {
            for (principal, token, now, expected) in
                [("a", 1, 0, Ok(())), ("a", 2, 0, Ok(())), ("a", 3, 0, Err(Refused::Full)), ("b", 3, 0, Ok(())), ("a", 3, 11, Ok(()))]
            {
                assert_eq!(replays.consume(principal, [token; 16], 10, now).await, expected, "{principal} {token}");
            }
        }
    }

    #[tokio::test]
    async fn who_has_nothing_to_remember_is_forgotten() {
        let replays = MemoryReplays::new(2);
        assert_eq!(replays.consume("a", [1; 16], 10, 0).await, Ok(()));
        assert_eq!(replays.consume("b", [1; 16], 20, 11).await, Ok(()));
        assert_eq!(replays.used.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn what_left_no_trace_may_be_used_again() {
        for replays in both(1) {
            assert_eq!(replays.consume("a", [1; 16], 10, 0).await, Ok(()));
            replays.release("a", [1; 16], 10);
            while replays.consume("a", [1; 16], 10, 0).await.is_err() {
                tokio::task::yield_now().await;
            }
            assert_eq!(replays.consume("a", [1; 16], 10, 0).await, Err(Refused::Replayed));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn of_twenty_at_once_one_wins() {
        for replays in both(100) {
            let tries: Vec<_> = (0..20)
                .map(|_| {
                    let replays = replays.clone();
                    tokio::spawn(async move { replays.consume("a", [7; 16], 10, 0).await.is_ok() })
                })
                .collect();
            let mut won = 0;
            for attempt in tries {
                won += usize::from(attempt.await.unwrap());
            }
            assert_eq!(won, 1);
        }
    }
}
