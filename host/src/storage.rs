//! What outlives calls and processes: spaces of keys, each key with a value and a revision, changed by atomic commits.
//!
//! A [`Backend`] keeps them. Everything that the host saves goes through it: the buckets of guests, tasks, used tokens. A
//! commit says what its maker has seen and what is to be changed; it is carried out whole, or not at all where something
//! that was seen is different by now.

mod folder;
mod memory;
mod owned;
mod sqlite;
#[cfg(test)]
mod tests;

use crate::config::storage::{Kind, StorageConfig};
use bytes::Bytes;
use futures_util::future::BoxFuture;
pub use memory::Memory;
use owned::Owned;
pub use sqlite::Sqlite;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A place for keys. The same key in two spaces is two keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Space {
    /// The realm whose keys and bytes are counted together, such as the state of one guest.
    pub realm: Arc<str>,
    /// Its name there.
    pub name: Arc<str>,
}

/// What a key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The value.
    pub value: Bytes,
    /// Another one at every change, and never one that the key had before.
    pub revision: u64,
}

/// Some of a space's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// In the order of their bytes.
    pub keys: Vec<String>,
    /// Whether there are more after them.
    pub more: bool,
    /// Another one whenever a key comes or goes; 0 where there is none.
    pub revision: u64,
}

/// A change, all of it or nothing.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// At most one for each space.
    pub parts: Vec<Part>,
}

/// What a commit is about in one space.
#[derive(Clone, Debug)]
pub struct Part {
    /// The space.
    pub space: Space,
    /// Keys that were looked at, each with its revision, or None where it was absent.
    pub seen: Vec<(String, Option<u64>)>,
    /// The revision of the page that was looked at, if any was.
    pub listed: Option<u64>,
    /// Keys with their new values, or None where they are to go; each key once.
    pub writes: Vec<(String, Option<Bytes>)>,
    /// What the realm may hold afterwards, unless it has not grown.
    pub quota: Quota,
}

impl Part {
    /// Nothing yet.
    pub fn new(space: Space, quota: Quota) -> Self {
        Self { space, seen: Vec::new(), listed: None, writes: Vec::new(), quota }
    }
}

/// What a realm may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Keys of all its spaces.
    pub keys: u64,
    /// Bytes of all its keys and values.
    pub bytes: u64,
}

impl Quota {
    /// No bounds, for what its maker bounds already.
    pub const NONE: Quota = Quota { keys: u64::MAX, bytes: u64::MAX };

    /// Whether a realm may go from one size to another; if not, in words.
    pub(crate) fn allow(self, before: Usage, after: Usage) -> Result<(), CommitError> {
        if after.keys > self.keys && after.keys > before.keys {
            return Err(CommitError::Quota(format!("the quota `keys` allows {} keys, and there would be {}", self.keys, after.keys)));
        }
        if after.bytes > self.bytes && after.bytes > before.bytes {
            return Err(CommitError::Quota(format!("the quota `state` allows {} bytes, and there would be {}", self.bytes, after.bytes)));
        }
        Ok(())
    }
}

/// What a realm holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Keys of all its spaces.
    pub keys: u64,
    /// Bytes of all its keys and values.
    pub bytes: u64,
}

impl Usage {
    /// Takes in that a value of one size, if there was one, gives way to another, if there is one.
    pub(crate) fn replace(&mut self, key: &str, old: Option<usize>, new: Option<usize>) {
        let size = |value: usize| (key.len() as u64).saturating_add(value as u64);
        self.keys = self.keys.saturating_sub(u64::from(old.is_some())).saturating_add(u64::from(new.is_some()));
        self.bytes = self.bytes.saturating_sub(old.map_or(0, size)).saturating_add(new.map_or(0, size));
    }
}

/// The storage did not do its work: the disk is full, the file is damaged, another process holds it. For the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed(pub String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

/// Why a commit left no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// Something that was seen is different by now.
    Conflict,
    /// It would take more than may be taken; the text names the quota.
    Quota(String),
    /// The storage failed. After this alone it is not certain that no trace was left.
    Failed(String),
}

impl From<Failed> for CommitError {
    fn from(Failed(text): Failed) -> Self {
        Self::Failed(text)
    }
}

/// Keeps spaces. A commit that was answered with Ok is there for good, as far as the kind of storage promises. Dropping the
/// future of a commit before it was carried out withdraws it.
pub trait Backend: Send + Sync + 'static {
    /// The records of some keys, as they were at one moment. None where their values have more bytes than that in all; no more of them
    /// is read then than it takes to know.
    fn get_within(&self, space: Space, keys: Vec<String>, bytes_max: usize) -> BoxFuture<'_, Result<Option<Vec<Option<Record>>>, Failed>>;

    /// The same, however large they are: for keys of which that is known.
    fn get(&self, space: Space, keys: Vec<String>) -> BoxFuture<'_, Result<Vec<Option<Record>>, Failed>> {
        let found = self.get_within(space, keys, usize::MAX);
        Box::pin(async move { found.await.map(Option::unwrap_or_default) })
    }

    /// Keys after one, or from the first, at most `len`.
    fn keys(&self, space: Space, after: Option<String>, len: usize) -> BoxFuture<'_, Result<Page, Failed>>;

    /// Carries a commit out. One without writes only checks what was seen.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), CommitError>>;

    /// The spaces of a realm that have keys, in the order of their names' bytes.
    fn spaces(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Vec<Space>, Failed>>;

    /// What a realm holds.
    fn usage(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Usage, Failed>>;

    /// Empties the spaces of that name in all realms.
    fn forget(&self, name: Arc<str>) -> BoxFuture<'_, Result<(), Failed>>;

    /// What this process is called among those that share the storage. Never used before, and never again.
    fn node(&self) -> &str;

    /// Who shares the storage now, this process included.
    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, Failed>>;
}

/// A handle on the storage, cheap to clone. It is opened when it is first used, so that a host that saves nothing needs no
/// place to save it to.
#[derive(Clone)]
pub struct Storage(Arc<Lazy>);

struct Lazy {
    config: StorageConfig,
    /// Whose the realms are.
    owner: String,
    opened: OnceCell<Box<dyn Backend>>,
}

impl Storage {
    /// The storage that the configuration describes, which is of that folder. Realms in it are its own: those of other
    /// configurations in the same file cannot be named.
    pub fn new(config: &StorageConfig, home: Option<&Path>) -> Self {
        Self(Arc::new(Lazy { config: config.clone(), owner: config.owner(home), opened: OnceCell::new() }))
    }

    /// A storage that ends with the process.
    pub fn memory() -> Self {
        Self::of(Box::new(Memory::default()))
    }

    /// A storage that is open, as it is.
    pub fn of(backend: Box<dyn Backend>) -> Self {
        let config = StorageConfig { kind: Kind::Memory, ..StorageConfig::default() };
        Self(Arc::new(Lazy { owner: config.owner(None), config, opened: OnceCell::new_with(Some(backend)) }))
    }

    /// The storage itself, opened now if it is the first time. The error is one sentence with a remedy.
    pub async fn open(&self) -> Result<&dyn Backend, Failed> {
        let Lazy { config, owner, opened } = &*self.0;
        let opened = opened.get_or_try_init(|| async {
            let whole: Box<dyn Backend> = match config.kind {
                Kind::Memory => Box::new(Memory::default()),
                Kind::Sqlite => {
                    let path = config.file().map_err(|error| Failed(format!("{error:#}")))?;
                    Box::new(Sqlite::open(&path).await?)
                }
            };
            Ok(Box::new(Owned { whole, owner: owner.clone() }) as Box<dyn Backend>)
        });
        Ok(&**opened.await?)
    }

    /// Whether what is saved is there after the process has ended.
    pub fn outlives_process(&self) -> bool {
        self.0.config.kind == Kind::Sqlite
    }

    /// The storage, if it has been opened.
    pub fn opened(&self) -> Option<&dyn Backend> {
        self.0.opened.get().map(|backend| &**backend)
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("config", &self.0.config).field("open", &self.0.opened.initialized()).finish()
    }
}
