//! Used tokens in the storage: known to every process that shares it, and to those that come after.

use super::{Refused, Replays, TokenId};
use crate::storage::{Backend, Commit, CommitError, Failed, Part, Quota, Space, Storage};
use futures_util::future::BoxFuture;
use std::fmt::Write as _;
use tokio::runtime::Handle;

/// Tokens that are forgotten with each that is noted, so that more go than come.
const FORGOTTEN_AT_ONCE: usize = 16;
/// How often noting a token is tried while others forget the same old ones.
const TRIES_MAX: u32 = 8;

/// Used tokens in the storage. Each has a key by which it is found, and one by which it is forgotten in time.
pub(crate) struct StoredReplays {
    storage: Storage,
    tokens_per_principal_max: usize,
    runtime: Handle,
}

impl StoredReplays {
    /// Must be called within a runtime.
    pub(crate) fn new(storage: &Storage, tokens_per_principal_max: usize) -> Self {
        Self { storage: storage.clone(), tokens_per_principal_max, runtime: Handle::current() }
    }

    fn quota(&self) -> Quota {
        Quota { keys: (self.tokens_per_principal_max as u64).saturating_mul(2), bytes: u64::MAX }
    }

    async fn note(&self, principal: &str, token: TokenId, until: u64, now: u64) -> Result<(), CommitError> {
        let backend = self.storage.open().await?;
        let space = space(principal);
        for _ in 1..TRIES_MAX {
            let mut part = Part::new(space.clone(), self.quota());
            part.seen = vec![(by_token(token), None)];
            part.writes = vec![(by_token(token), Some(until.to_string().into())), (by_time(until, token), Some(Vec::new().into()))];
            let old = expired(backend, &space, now).await?;
            part.writes.extend(old.into_iter().filter(|key| *key != by_token(token)).map(|key| (key, None)));
            match backend.commit(Commit { parts: vec![part] }).await {
                Err(CommitError::Conflict) => {}
                outcome => return outcome,
            }
            // What was forgotten meanwhile is no reason to refuse it.
            let found = backend.get(space.clone(), vec![by_token(token)]).await?.pop().flatten();
            let kept = found.and_then(|found| std::str::from_utf8(&found.value).ok()?.parse::<u64>().ok());
            match kept {
                Some(kept) if kept < now => remove(backend, &space, token, kept).await?,
                Some(_) => return Err(CommitError::Conflict),
                None => {}
            }
        }
        Err(CommitError::Failed("a token could not be noted".into()))
    }
}

impl Replays for StoredReplays {
    fn consume<'a>(&'a self, principal: &'a str, token: TokenId, until: u64, now: u64) -> BoxFuture<'a, Result<(), Refused>> {
        Box::pin(async move {
            self.note(principal, token, until, now).await.map_err(|error| match error {
                CommitError::Conflict => Refused::Replayed,
                CommitError::Quota(_) => Refused::Full,
                CommitError::Failed(error) => {
                    tracing::error!("used states of calls cannot be saved: {error}");
                    Refused::Full
                }
            })
        })
    }

    fn release(&self, principal: &str, token: TokenId, until: u64) {
        let (storage, space) = (self.storage.clone(), space(principal));
        self.runtime.spawn(async move {
            let Some(backend) = storage.opened() else { return };
            if let Err(error) = remove(backend, &space, token, until).await {
                tracing::error!("a state of a call that left no trace stays used: {error:?}");
            }
        });
    }
}

async fn remove(backend: &dyn Backend, space: &Space, token: TokenId, until: u64) -> Result<(), CommitError> {
    let mut part = Part::new(space.clone(), Quota::NONE);
    part.writes = vec![(by_token(token), None), (by_time(until, token), None)];
    backend.commit(Commit { parts: vec![part] }).await
}

/// Keys of some tokens that would not open any more.
async fn expired(backend: &dyn Backend, space: &Space, now: u64) -> Result<Vec<String>, Failed> {
    let first = backend.keys(space.clone(), None, FORGOTTEN_AT_ONCE).await?.keys;
    let old = first.into_iter().take_while(|key| key.starts_with(BY_TIME) && **key < *by_time(now, [0; 16]));
    Ok(old.flat_map(|key| [key.rsplit_once('/').map(|(_, token)| format!("{BY_TOKEN}{token}")).unwrap_or_default(), key]).collect())
}

/// One for each principal, whose tokens are counted by themselves.
fn space(principal: &str) -> Space {
    let realm = principal.bytes().fold("replays/".to_owned(), |mut realm, byte| {
        // Writing into a String cannot fail.
        let _ = write!(realm, "{byte:02x}");
        realm
    });
    Space { realm: realm.into(), name: "used".into() }
}

/// Sorts before the other kind.
const BY_TIME: &str = "time/";
const BY_TOKEN: &str = "token/";

fn by_token(token: TokenId) -> String {
    format!("{BY_TOKEN}{:032x}", u128::from_be_bytes(token))
}

fn by_time(until: u64, token: TokenId) -> String {
    format!("{BY_TIME}{until:020}/{:032x}", u128::from_be_bytes(token))
}
