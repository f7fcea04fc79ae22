//! What one callback reads and writes: its reads are remembered, its writes are held back, and at its end both become one commit.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bytes::Bytes;

use super::{Reads, Refused, Shelf};
use crate::storage::{Backend, Commit, CommitError, Part, Quota, Space, Storage, Usage};

/// Length of a key.
pub const KEY_BYTES_MAX: usize = 512;
/// Keys that one callback may read and write. One that it reads and writes counts twice.
pub const KEYS_MAX: usize = 10_000;
/// Keys on one page of a list, before the callback's own are put in.
const PAGE_LEN: usize = 500;
/// Values that one call of `get-many` hands over, in all.
const BATCH_BYTES_MAX: usize = 16 << 20;
/// Values that one callback may hold back, in all.
const HELD_BYTES_MAX: u64 = 16 << 20;
/// Pages that one callback may ask for.
const PAGES_MAX: usize = 10_000;

/// See the module. Made when a callback first touches a bucket.
pub(crate) struct Tx {
    storage: Storage,
    reads: Reads,
    quota: Quota,
    value_bytes: usize,
    spaces: BTreeMap<Space, Touched>,
    /// What is held back, by itself.
    held: Usage,
    /// What the guest's realm held when the callback first wrote, and what it will hold after what it wrote since. Of a key that
    /// was not read it is not known whether it is there, so that such a one is left out, and the commit has the last word.
    usage: Option<(Usage, Usage)>,
    /// Where the pages that were handed out end; a cursor is a number of one of them.
    pages: Vec<(Space, String)>,
    /// How often the storage was looked into: what one look saw is whole by itself.
    looks: usize,
    /// Two looks at the same did not see the same, which was never true at one moment, whatever it may be at the end.
    torn: bool,
}

/// What was done in one space.
#[derive(Default)]
struct Touched {
    /// What was read: revision and length of each value that was there.
    seen: BTreeMap<String, Option<(u64, usize)>>,
    listed: Option<u64>,
    writes: BTreeMap<String, Option<Bytes>>,
}

impl Tx {
    pub(crate) fn new(shelf: &Shelf) -> Self {
        Self {
            storage: shelf.storage.clone(),
            reads: shelf.reads.clone(),
            quota: shelf.quota,
            value_bytes: shelf.value_bytes,
            spaces: BTreeMap::new(),
            held: Usage::default(),
            usage: None,
            pages: Vec::new(),
            looks: 0,
            torn: false,
        }
    }

    /// The values of some keys, the callback's own writes included.
    pub(crate) async fn get(&mut self, backend: &dyn Backend, space: &Space, keys: Vec<String>) -> Result<Vec<Option<Bytes>>, Refused> {
        let mut torn = false;
        let reads = self.reads.clone();
        let touched = self.touch(space, &keys)?;
        // Each once, however often it is asked for: the storage hands over a copy for each.
        let unwritten: BTreeSet<&String> = keys.iter().filter(|key| !touched.writes.contains_key(*key)).collect();
        let unwritten: Vec<String> = unwritten.into_iter().cloned().collect();
        let mut found = BTreeMap::new();
        if !unwritten.is_empty() {
            let bytes_max = if keys.len() > 1 { BATCH_BYTES_MAX } else { usize::MAX };
            let _turn = reads.turn().await;
            let records = backend.get_within(space.clone(), unwritten.clone(), bytes_max).await?.ok_or_else(too_much)?;
            for (key, record) in unwritten.into_iter().zip(records) {
                let seen = record.as_ref().map(|record| (record.revision, record.value.len()));
                torn |= *touched.seen.entry(key.clone()).or_insert(seen) != seen;
                found.insert(key, record.map(|record| record.value));
            }
        }
        let values: Vec<Option<Bytes>> =
            keys.iter().map(|key| touched.writes.get(key).or_else(|| found.get(key)).cloned().flatten()).collect();
        if !found.is_empty() {
            self.looks = self.looks.saturating_add(1);
        }
        self.torn |= torn;
        let bytes = values.iter().flatten().map(Bytes::len).fold(0, usize::saturating_add);
        if keys.len() > 1 && bytes > BATCH_BYTES_MAX {
            return Err(too_much());
        }
        Ok(values)
    }

    /// Holds a new value back, or that the key is to go. Refuses at once what can be known to be too much.
    pub(crate) async fn write(&mut self, backend: &dyn Backend, space: &Space, key: String, value: Option<Bytes>) -> Result<(), Refused> {
        self.touch(space, std::slice::from_ref(&key))?;
        if let Some(len) = value.as_ref().map(Bytes::len).filter(|len| *len > self.value_bytes) {
            return Err(Refused::Other(format!("the quota `value` allows {} bytes in one value, and this has {len}", self.value_bytes)));
        }
        let (before, mut after) = match self.usage {
            Some(usage) => usage,
            None => {
                let _turn = self.reads.turn().await;
                let usage = backend.usage(space.realm.clone()).await?;
                (usage, usage)
            }
        };
        let touched = self.spaces.entry(space.clone()).or_default();
        let new = value.as_ref().map(Bytes::len);
        let written = touched.writes.get(&key).map(|value| value.as_ref().map(Bytes::len));
        let seen = touched.seen.get(&key).map(|seen| seen.map(|(_, len)| len));
        let mut held = self.held;
        held.replace(&key, written.flatten(), new);
        if let Some(seen) = seen {
            after.replace(&key, written.unwrap_or(seen), new);
        }
        if value.is_some() {
            allow(self.quota, held, before, after)?;
        }
        touched.writes.insert(key, value);
        self.held = held;
        self.usage = Some((before, after));
        Ok(())
    }

    /// A page of the keys, the callback's own included, and the cursor of the next one.
    pub(crate) async fn list(
        &mut self,
        backend: &dyn Backend,
        space: &Space,
        cursor: Option<u64>,
    ) -> Result<(Vec<String>, Option<u64>), Refused> {
        let after = match cursor {
            None => None,
            Some(cursor) => {
                let page = usize::try_from(cursor).ok().and_then(|cursor| self.pages.get(cursor));
                let known = page.filter(|(of, _)| of == space).map(|(_, last)| last.clone());
                Some(known.ok_or_else(|| Refused::Other("the cursor is not one that this callback was given for this bucket".into()))?)
            }
        };
        if self.pages.len() >= PAGES_MAX {
            return Err(Refused::Other(format!("one callback can list {PAGES_MAX} pages")));
        }
        let turn = self.reads.turn().await;
        let page = backend.keys(space.clone(), after.clone(), PAGE_LEN).await?;
        drop(turn);
        self.looks = self.looks.saturating_add(1);
        let touched = self.spaces.entry(space.clone()).or_default();
        self.torn |= *touched.listed.get_or_insert(page.revision) != page.revision;
        let last = page.keys.last().filter(|_| page.more).cloned();
        let mut keys: BTreeSet<String> = page.keys.into_iter().collect();
        let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let to = last.as_ref().map_or(Bound::Unbounded, Bound::Included);
        for (key, value) in touched.writes.range::<String, _>((from, to)) {
            match value {
                Some(_) => keys.insert(key.clone()),
                None => keys.remove(key),
            };
        }
        let cursor = last.map(|last| {
            self.pages.push((space.clone(), last));
            self.pages.len().saturating_sub(1) as u64
        });
        Ok((keys.into_iter().collect(), cursor))
    }

    /// Adds to a number that is kept as decimal text. The guest learns the sum, so that this is a read and a write.
    pub(crate) async fn increment(&mut self, backend: &dyn Backend, space: &Space, key: String, delta: u64) -> Result<u64, Refused> {
        let value = self.get(backend, space, vec![key.clone()]).await?.pop().flatten();
        let number = match &value {
            None => 0,
            Some(value) => {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok());
                number.ok_or_else(|| Refused::Other("the value is not a number: an unsigned one of 64 bits, in decimal digits".into()))?
            }
        };
        let sum =
            number.checked_add(delta).ok_or_else(|| Refused::Other("the sum is too large for an unsigned number of 64 bits".into()))?;
        self.write(backend, space, key, Some(sum.to_string().into())).await?;
        Ok(sum)
    }

    /// Drops what was written so far. What was read still counts: the callback that follows may build on it.
    pub(crate) fn drop_writes(&mut self) {
        self.spaces.values_mut().for_each(|touched| touched.writes.clear());
        self.held = Usage::default();
        self.usage = None;
    }

    /// Whether anything is to be written.
    pub(crate) fn has_writes(&self) -> bool {
        self.spaces.values().any(|touched| !touched.writes.is_empty())
    }

    /// Whether what was read was never true at one moment.
    pub(crate) fn is_torn(&self) -> bool {
        self.torn
    }

    /// Saves what was written, if all that was read is still so. One that only reads is checked, too, so that what the callback
    /// answered was true at one moment.
    pub(crate) async fn commit(self) -> Result<(), CommitError> {
        if !self.has_writes() && self.looks <= 1 {
            return Ok(());
        }
        if self.torn {
            return Err(CommitError::Conflict);
        }
        let (storage, reads) = (self.storage.clone(), self.reads.clone());
        // Without writes it is a read.
        let _turn = if self.has_writes() { None } else { Some(reads.turn().await) };
        let commit = Commit { parts: self.into_parts() };
        storage.open().await?.commit(commit).await
    }

    /// What was read and written, for whoever commits it with more.
    pub(crate) fn into_parts(self) -> Vec<Part> {
        let parts = self.spaces.into_iter().map(|(space, touched)| Part {
            seen: touched.seen.into_iter().map(|(key, seen)| (key, seen.map(|(revision, _)| revision))).collect(),
            listed: touched.listed,
            writes: touched.writes.into_iter().collect(),
            ..Part::new(space, self.quota)
        });
        parts.collect()
    }

    /// Notes that keys of a space are used, if they can be keys and there are not too many.
    fn touch(&mut self, space: &Space, keys: &[String]) -> Result<&mut Touched, Refused> {
        for key in keys {
            if key.is_empty() || key.len() > KEY_BYTES_MAX || key.contains('\0') {
                return Err(Refused::Other(format!("a key has 1 to {KEY_BYTES_MAX} bytes, none of them zero")));
            }
        }
        let used = self.spaces.values().map(|touched| touched.seen.len().saturating_add(touched.writes.len()));
        if used.fold(keys.len(), usize::saturating_add) > KEYS_MAX {
            return Err(Refused::Other(format!("one callback can read and write {KEYS_MAX} keys")));
        }
        Ok(self.spaces.entry(space.clone()).or_default())
    }
}

/// What a batch is answered that asks for more than one may.
fn too_much() -> Refused {
    Refused::Other(format!("these values have more than {BATCH_BYTES_MAX} bytes, which is what one batch hands over at most"))
}

/// Whether so much may be held back, by itself and on top of what there was.
fn allow(quota: Quota, held: Usage, before: Usage, after: Usage) -> Result<(), Refused> {
    if held.bytes > HELD_BYTES_MAX {
        return Err(Refused::Other(format!("one callback can write {HELD_BYTES_MAX} bytes")));
    }
    match quota.allow(Usage::default(), held).and_then(|()| quota.allow(before, after)) {
        Err(CommitError::Quota(text)) => Err(Refused::Other(text)),
        Err(CommitError::Conflict | CommitError::Failed(_)) | Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
