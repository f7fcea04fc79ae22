//! State that outlives a call: the host saves it when the callback succeeds, all of it at once, and nothing otherwise.
//!
//! ```
//! use guesthouse::{Bucket, Result, State};
//!
//! #[derive(Default)]
//! struct Notes;
//!
//! #[guesthouse::server]
//! impl Notes {
//!     /// Writes a note down.
//!     #[tool]
//!     fn note(text: String) -> Result<String> {
//!         let mut notes: State<Vec<String>> = State::load(Bucket::Principal, "notes")?;
//!         notes.push(text);
//!         Ok(format!("{} notes", notes.len()))
//!     }
//! }
//! ```
//!
//! Whoever calls at the same time is no worry: where two callbacks would overwrite each other, the host runs one of them again.
//! Wants the feature `state`, and a host that grants it.

use std::ops::{Deref, DerefMut};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result, json};

/// Where a guest's state is. No other guest can reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bucket {
    /// The guest's own, the same for all callers.
    Guest,
    /// The caller's. Refused where the host does not know who calls.
    Principal,
    /// The session's, which only clients of the handshake era have.
    Session,
}

/// A value of the state: loaded when asked for, and saved by itself when it is dropped after it was changed.
///
/// It is kept as JSON. Where nothing was saved under the key, it begins as the default of its type.
#[derive(Debug)]
pub struct State<T: Serialize> {
    bucket: Bucket,
    key: String,
    value: T,
    changed: bool,
}

impl<T: Serialize + DeserializeOwned + Default> State<T> {
    /// Loads the value of a key.
    pub fn load(bucket: Bucket, key: &str) -> Result<Self> {
        let value = match bucket.get(key)? {
            None => T::default(),
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Error::internal(format!("what is saved as `{key}` is something else: {error}")))?,
        };
        Ok(State { bucket, key: key.into(), value, changed: false })
    }
}

impl<T: Serialize> State<T> {
    /// Saves the value now. Whoever would rather have an error than a crash, where it does not fit, calls this at the end.
    pub fn save(&mut self) -> Result<()> {
        self.bucket.set(&self.key, json::to_text(&self.value)?.as_bytes())?;
        self.changed = false;
        Ok(())
    }
}

impl<T: Serialize> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Serialize> DerefMut for State<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.changed = true;
        &mut self.value
    }
}

impl<T: Serialize> Drop for State<T> {
    /// A value that cannot be saved ends the call: it must not succeed as if it had been.
    fn drop(&mut self) {
        if self.changed
            && !std::thread::panicking()
            && let Err(error) = self.save()
        {
            panic!("the state `{}` cannot be saved: {error:?}", self.key);
        }
    }
}

impl Bucket {
    /// The bytes of a key, if there are any.
    pub fn get(self, key: &str) -> Result<Option<Vec<u8>>> {
        host::get(self, key).map_err(|error| self.error(error))
    }

    /// Gives a key other bytes.
    pub fn set(self, key: &str, value: &[u8]) -> Result<()> {
        host::set(self, key, value).map_err(|error| self.error(error))
    }

    /// Removes a key, if it is there.
    pub fn delete(self, key: &str) -> Result<()> {
        host::delete(self, key).map_err(|error| self.error(error))
    }

    /// Whether a key is there.
    pub fn exists(self, key: &str) -> Result<bool> {
        host::exists(self, key).map_err(|error| self.error(error))
    }

    /// All keys, in the order of their bytes.
    pub fn keys(self) -> Result<Vec<String>> {
        host::keys(self).map_err(|error| self.error(error))
    }

    /// Adds to the number of a key, which is kept in decimal digits and begins at 0, and says what it is then.
    pub fn increment(self, key: &str, delta: u64) -> Result<u64> {
        host::increment(self, key, delta).map_err(|error| self.error(error))
    }

    fn as_str(self) -> &'static str {
        match self {
            Bucket::Guest => "guest",
            Bucket::Principal => "principal",
            Bucket::Session => "session",
        }
    }

    fn error(self, problem: Problem) -> Error {
        let bucket = self.as_str();
        Error::internal(match problem {
            Problem::NoSuchStore => format!("there is no bucket `{bucket}` for this call"),
            Problem::AccessDenied => format!("the bucket `{bucket}` is not for this caller, or state is not granted"),
            Problem::Other(text) => text,
        })
    }
}

/// Why the host did not do it.
#[cfg_attr(not(target_family = "wasm"), allow(dead_code))]
enum Problem {
    NoSuchStore,
    AccessDenied,
    Other(String),
}

#[cfg(target_family = "wasm")]
mod host {
    use super::{Bucket, Problem};
    use crate::bindings::keyvalue::wasi::keyvalue::{atomics, store};

    type Answer<T> = Result<T, Problem>;

    fn on<T>(bucket: Bucket, act: impl FnOnce(&store::Bucket) -> Result<T, store::Error>) -> Answer<T> {
        store::open(bucket.as_str()).and_then(|bucket| act(&bucket)).map_err(|error| match error {
            store::Error::NoSuchStore => Problem::NoSuchStore,
            store::Error::AccessDenied => Problem::AccessDenied,
            store::Error::Other(text) => Problem::Other(text),
        })
    }

    pub(super) fn get(bucket: Bucket, key: &str) -> Answer<Option<Vec<u8>>> {
        on(bucket, |bucket| bucket.get(key))
    }

    pub(super) fn set(bucket: Bucket, key: &str, value: &[u8]) -> Answer<()> {
        on(bucket, |bucket| bucket.set(key, value))
    }

    pub(super) fn delete(bucket: Bucket, key: &str) -> Answer<()> {
        on(bucket, |bucket| bucket.delete(key))
    }

    pub(super) fn exists(bucket: Bucket, key: &str) -> Answer<bool> {
        on(bucket, |bucket| bucket.exists(key))
    }

    pub(super) fn keys(bucket: Bucket) -> Answer<Vec<String>> {
        on(bucket, |bucket| {
            let mut page = bucket.list_keys(None)?;
            let mut keys = page.keys;
            while let Some(cursor) = page.cursor {
                page = bucket.list_keys(Some(cursor))?;
                keys.append(&mut page.keys);
            }
            Ok(keys)
        })
    }

    pub(super) fn increment(bucket: Bucket, key: &str, delta: u64) -> Answer<u64> {
        on(bucket, |bucket| atomics::increment(bucket, key, delta))
    }
}

#[cfg(not(target_family = "wasm"))]
use stand_in as host;

/// The buckets of `cargo test`, one set for each thread.
#[cfg(not(target_family = "wasm"))]
pub(crate) mod stand_in {
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use super::{Bucket, Problem};

    type Answer<T> = Result<T, Problem>;
    type Saved = BTreeMap<(Bucket, String), Vec<u8>>;

    thread_local! {
        static SAVED: RefCell<Saved> = RefCell::default();
    }

    /// What is saved now.
    pub(crate) fn snapshot() -> Saved {
        SAVED.with_borrow(Clone::clone)
    }

    /// Forgets what was written since.
    pub(crate) fn restore(saved: Saved) {
        SAVED.set(saved);
    }

    pub(super) fn get(bucket: Bucket, key: &str) -> Answer<Option<Vec<u8>>> {
        Ok(SAVED.with_borrow(|saved| saved.get(&(bucket, key.to_owned())).cloned()))
    }

    pub(super) fn set(bucket: Bucket, key: &str, value: &[u8]) -> Answer<()> {
        check(key)?;
        SAVED.with_borrow_mut(|saved| drop(saved.insert((bucket, key.to_owned()), value.to_owned())));
        Ok(())
    }

    pub(super) fn delete(bucket: Bucket, key: &str) -> Answer<()> {
        SAVED.with_borrow_mut(|saved| drop(saved.remove(&(bucket, key.to_owned()))));
        Ok(())
    }

    pub(super) fn exists(bucket: Bucket, key: &str) -> Answer<bool> {
        Ok(get(bucket, key)?.is_some())
    }

    pub(super) fn keys(bucket: Bucket) -> Answer<Vec<String>> {
        Ok(SAVED.with_borrow(|saved| saved.keys().filter(|(of, _)| *of == bucket).map(|(_, key)| key.clone()).collect()))
    }

    pub(super) fn increment(bucket: Bucket, key: &str, delta: u64) -> Answer<u64> {
        let number = match get(bucket, key)? {
            None => 0,
            Some(value) => {
                let number = std::str::from_utf8(&value).ok().and_then(|text| text.parse::<u64>().ok());
                number.ok_or_else(|| Problem::Other("the value is not a number".into()))?
            }
        };
        let sum = number.checked_add(delta).ok_or_else(|| Problem::Other("the sum is too large".into()))?;
        set(bucket, key, sum.to_string().as_bytes())?;
        Ok(sum)
    }

    fn check(key: &str) -> Answer<()> {
        match key.is_empty() || key.len() > 512 || key.contains('\0') {
            true => Err(Problem::Other("a key has 1 to 512 bytes, none of them zero".into())),
            false => Ok(()),
        }
    }
}
