//! `wasi:keyvalue`: a guest's own state, in buckets that no other guest can name.
//!
//! There is a bucket for the guest itself, whoever calls it (`guest`); one for each caller that is known, of each tenant
//! (`principal`); and one for each session (`session`). What a callback writes is seen by itself alone until it has returned ok:
//! then all of it is saved at once, or nothing. `init`, the lists that are asked once per version, and `describe` can look into
//! the guest's own bucket; what they write is dropped. A guest that keeps a bucket for longer than a callback finds the
//! bucket of whoever calls then.

mod names;
mod reads;
mod sessions;
mod tx;

use bytes::Bytes;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::{ResourceTableError, WasiView};

use crate::audit::{Event, What};
use crate::guest::State;
use crate::guest::bindings::keyvalue::{atomics, batch, store};
use crate::storage::{Backend, Failed, Quota, Space, Storage};
pub use names::realm;
use names::{GUEST, principal_space, session_space};
pub(crate) use names::{forget_departed, owner};
pub use reads::Reads;
pub use sessions::Sessions;
pub(crate) use tx::Tx;
pub use tx::{KEY_BYTES_MAX, KEYS_MAX};

/// Where a guest's state is saved, and how much of it there can be.
#[derive(Clone)]
pub struct Shelf {
    /// What saves it.
    pub storage: Storage,
    /// All buckets of the guest together.
    pub quota: Quota,
    /// Length of one value.
    pub value_bytes: usize,
    /// The sessions that have something there.
    pub sessions: Sessions,
    /// How much of the storage's time its calls may take at once.
    pub reads: Reads,
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shelf").field("storage", &self.storage).field("quota", &self.quota).finish_non_exhaustive()
    }
}

/// Why a guest does not get what it asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no such bucket, now or ever.
    NoSuchStore,
    /// There is, and it is not for this guest or this caller.
    AccessDenied,
    /// In words for the guest.
    Other(String),
    /// The storage failed, which is for the log and not for the guest.
    Failed(Failed),
}

impl From<Failed> for Refused {
    fn from(failed: Failed) -> Self {
        Refused::Failed(failed)
    }
}

impl From<ResourceTableError> for Refused {
    fn from(error: ResourceTableError) -> Self {
        Refused::Other(error.to_string())
    }
}

/// A bucket as a guest holds it: which one, and not whose, since that follows from who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// The caller's session's.
    Session,
    /// The caller's.
    Principal,
    /// The guest's.
    Guest,
}

impl Bucket {
    fn parse(identifier: &str) -> Option<Self> {
        match identifier {
            "session" => Some(Bucket::Session),
            "principal" => Some(Bucket::Principal),
            "guest" => Some(Bucket::Guest),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Bucket::Session => "session",
            Bucket::Principal => "principal",
            Bucket::Guest => "guest",
        }
    }
}

/// What was noted of the buckets that a call opened.
#[derive(Default)]
pub(crate) struct Opens(Vec<(What, Option<Bucket>)>);

impl Opens {
    /// Whether this is another one than those before. There are few different ones.
    fn is_first(&mut self, what: What, bucket: Option<Bucket>) -> bool {
        let first = !self.0.contains(&(what, bucket));
        if first {
            self.0.push((what, bucket));
        }
        first
    }
}

struct View<'a>(&'a mut State);

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

impl View<'_> {
    /// The space behind a bucket, for whoever calls now.
    fn space(&mut self, bucket: Bucket, node: &str) -> Result<Space, Refused> {
        let room = &self.0.guest.room;
        if !room.grants.state || room.state.is_none() {
            return Err(Refused::AccessDenied);
        }
        if let Some(migrating) = self.0.migrating() {
            return if bucket == migrating.bucket { Ok(migrating.space.clone()) } else { Err(Refused::AccessDenied) };
        }
        let realm = realm(&self.0.guest.name);
        // Nobody calls `init`: what it finds must not depend on whose call made the instance.
        let identity = self.0.callback_context().map(|context| context.identity()).unwrap_or_default();
        let name = match bucket {
            Bucket::Guest => GUEST.into(),
            Bucket::Session => session_space(node, &identity.session.ok_or(Refused::NoSuchStore)?).into(),
            Bucket::Principal => {
                let principal = identity.principal.ok_or(Refused::AccessDenied)?;
                principal_space(identity.tenant.as_deref(), &principal).into()
            }
        };
        Ok(Space { realm, name })
    }

    /// Notes how an `open` ended, once in each call: a guest can open as often as it likes.
    fn note(&mut self, what: What, bucket: Option<Bucket>) {
        if !self.0.opens.is_first(what, bucket) {
            return;
        }
        let value = bucket.map_or("(unknown bucket)", Bucket::as_str);
        let principal = self.0.callback_context().and_then(|context| context.identity().principal);
        let guest = &self.0.guest;
        guest.room.audit.record(&Event { what, guest: &guest.name, subject: "state", value, principal: principal.as_deref() });
    }

    /// A bucket's part of what this callback reads and writes, with the storage below.
    async fn at(&mut self, bucket: &Resource<Bucket>) -> Result<At<'_>, Refused> {
        let bucket = *WasiView::ctx(self.0).table.get(bucket)?;
        let storage = self.0.guest.room.state.as_ref().ok_or(Refused::AccessDenied)?.storage.clone();
        let space = self.space(bucket, storage.open().await?.node())?;
        let State { guest, tx, .. } = &mut *self.0;
        let shelf = guest.room.state.as_ref().ok_or(Refused::AccessDenied)?;
        let tx = tx.get_or_insert_with(|| Tx::new(shelf));
        Ok(At { backend: shelf.storage.open().await?, tx, space })
    }

    /// What a guest reads of it.
    fn answer<T>(&mut self, result: Result<T, Refused>) -> Result<T, store::Error> {
        result.map_err(|refused| match refused {
            Refused::NoSuchStore => store::Error::NoSuchStore,
            Refused::AccessDenied => store::Error::AccessDenied,
            Refused::Other(text) => store::Error::Other(text),
            Refused::Failed(Failed(text)) => {
                self.0.guest.log.report("", &format!("its state cannot be used: {text}"));
                store::Error::Other("the host's storage cannot be used now".into())
            }
        })
    }
}

/// See [`View::at`].
struct At<'a> {
    backend: &'a dyn Backend,
    tx: &'a mut Tx,
    space: Space,
}

impl store::Host for View<'_> {
    async fn open(&mut self, identifier: String) -> Result<Resource<Bucket>, store::Error> {
        let found = Bucket::parse(&identifier);
        let opened = match found {
            // Whose it is now is enough to know.
            Some(bucket) => self.space(bucket, "").map(|_| bucket),
            None if self.0.guest.room.grants.state => Err(Refused::NoSuchStore),
            // Who was granted nothing learns nothing.
            None => Err(Refused::AccessDenied),
        };
        match &opened {
            Ok(_) => self.note(What::Granted, found),
            Err(Refused::AccessDenied) => self.note(What::Refused, found),
            Err(Refused::NoSuchStore | Refused::Other(_) | Refused::Failed(_)) => {}
        }
        let opened = opened.and_then(|bucket| Ok(WasiView::ctx(self.0).table.push(bucket)?));
        self.answer(opened)
    }
}

impl View<'_> {
    async fn get_record(&mut self, bucket: &Resource<Bucket>, key: String) -> Result<Option<Bytes>, Refused> {
        let At { backend, tx, space } = self.at(bucket).await?;
        Ok(tx.get(backend, &space, vec![key]).await?.pop().flatten())
    }

    async fn write(&mut self, bucket: &Resource<Bucket>, writes: Vec<(String, Option<Vec<u8>>)>) -> Result<(), Refused> {
        if *WasiView::ctx(self.0).table.get(bucket)? == Bucket::Session
            && self.0.migrating().is_none()
            && let Some(session) = self.0.callback_context().and_then(|context| context.identity().session)
            && let Some(shelf) = &self.0.guest.room.state
        {
            shelf.sessions.note(session);
        }
        let At { backend, tx, space } = self.at(bucket).await?;
        for (key, value) in writes {
            tx.write(backend, &space, key, value.map(Bytes::from)).await?;
        }
        Ok(())
    }

    async fn list(&mut self, bucket: &Resource<Bucket>, cursor: Option<u64>) -> Result<store::KeyResponse, Refused> {
        let At { backend, tx, space } = self.at(bucket).await?;
        let (keys, cursor) = tx.list(backend, &space, cursor).await?;
        Ok(store::KeyResponse { keys, cursor })
    }

    async fn add(&mut self, bucket: &Resource<Bucket>, key: String, delta: u64) -> Result<u64, Refused> {
        let At { backend, tx, space } = self.at(bucket).await?;
        tx.increment(backend, &space, key, delta).await
    }

    async fn get_records(&mut self, bucket: &Resource<Bucket>, keys: Vec<String>) -> Result<Vec<Option<(String, Vec<u8>)>>, Refused> {
        let At { backend, tx, space } = self.at(bucket).await?;
        let values = tx.get(backend, &space, keys.clone()).await?;
        Ok(keys.into_iter().zip(values).map(|(key, value)| value.map(|value| (key, value.into()))).collect())
    }
}

impl store::HostBucket for View<'_> {
    async fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Option<Vec<u8>>, store::Error> {
        let found = self.get_record(&bucket, key).await;
        self.answer(found.map(|value| value.map(Vec::from)))
    }

    async fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Result<(), store::Error> {
        let set = self.write(&bucket, vec![(key, Some(value))]).await;
        self.answer(set)
    }

    async fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Result<(), store::Error> {
        let deleted = self.write(&bucket, vec![(key, None)]).await;
        self.answer(deleted)
    }

    async fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Result<bool, store::Error> {
        let found = self.get_record(&bucket, key).await;
        self.answer(found.map(|value| value.is_some()))
    }

    async fn list_keys(&mut self, bucket: Resource<Bucket>, cursor: Option<u64>) -> Result<store::KeyResponse, store::Error> {
        let listed = self.list(&bucket, cursor).await;
        self.answer(listed)
    }

    async fn drop(&mut self, bucket: Resource<Bucket>) -> wasmtime::Result<()> {
        WasiView::ctx(self.0).table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for View<'_> {
    async fn increment(&mut self, bucket: Resource<Bucket>, key: String, delta: u64) -> Result<u64, store::Error> {
        let sum = self.add(&bucket, key, delta).await;
        self.answer(sum)
    }
}

impl batch::Host for View<'_> {
    async fn get_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Result<Vec<Option<(String, Vec<u8>)>>, store::Error> {
        let found = self.get_records(&bucket, keys).await;
        self.answer(found)
    }

    async fn set_many(&mut self, bucket: Resource<Bucket>, key_values: Vec<(String, Vec<u8>)>) -> Result<(), store::Error> {
        let writes = key_values.into_iter().map(|(key, value)| (key, Some(value))).collect();
        let set = self.write(&bucket, writes).await;
        self.answer(set)
    }

    async fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Result<(), store::Error> {
        let deleted = self.write(&bucket, keys.into_iter().map(|key| (key, None)).collect()).await;
        self.answer(deleted)
    }
}

pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    store::add_to_linker::<State, HasView>(linker, |state| View(state))?;
    atomics::add_to_linker::<State, HasView>(linker, |state| View(state))?;
    batch::add_to_linker::<State, HasView>(linker, |state| View(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_that_opening_ends_is_noted_once_in_a_call() {
        let mut opens = Opens::default();
        let ends = [(What::Granted, Some(Bucket::Guest)), (What::Refused, Some(Bucket::Guest)), (What::Refused, None)];
        for (what, bucket) in ends {
            assert!(opens.is_first(what, bucket));
        }
        assert!(!ends.into_iter().any(|(what, bucket)| opens.is_first(what, bucket)));
    }

    #[test]
    fn there_are_three_buckets() {
        for bucket in [Bucket::Session, Bucket::Principal, Bucket::Guest] {
            assert_eq!(Bucket::parse(bucket.as_str()), Some(bucket));
        }
        for other in ["", "default", "Guest", "guest/", "../notes", "guest\0"] {
            assert_eq!(Bucket::parse(other), None);
        }
    }
}
