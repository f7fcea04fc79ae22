//! Storage that ends with the process.

use super::{Backend, Commit, CommitError, Failed, Page, Part, Quota, Record, Space, Usage};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps everything in the memory of this process.
#[derive(Default)]
pub struct Memory(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// By realm, then by name.
    realms: HashMap<Arc<str>, Realm>,
    /// Of the last commit.
    revision: u64,
}

#[derive(Default)]
struct Realm {
    spaces: BTreeMap<Arc<str>, Keys>,
    usage: Usage,
}

#[derive(Default)]
struct Keys {
    records: BTreeMap<String, Record>,
    /// When a key last came or went.
    revision: u64,
}

impl Memory {
    /// No code panics while it holds the lock; were it ever to, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn space(&self, space: &Space) -> Option<&Keys> {
        self.realms.get(&space.realm)?.spaces.get(&space.name)
    }

    /// Whether all is as the maker of a commit saw it.
    fn is_as_seen(&self, part: &Part) -> bool {
        let space = self.space(&part.space);
        let revision = |key: &String| space.and_then(|keys| keys.records.get(key)).map(|record| record.revision);
        part.listed.is_none_or(|listed| space.map_or(0, |keys| keys.revision) == listed)
            && part.seen.iter().all(|(key, seen)| revision(key) == *seen)
    }

    /// What the realms of a commit will hold.
    fn allow(&self, commit: &Commit) -> Result<(), CommitError> {
        let mut realms: HashMap<&Arc<str>, (Usage, Quota)> = HashMap::new();
        for part in &commit.parts {
            let space = self.space(&part.space);
            let (usage, quota) = realms.entry(&part.space.realm).or_insert_with(|| (self.usage(&part.space.realm), part.quota));
            *quota = Quota { keys: quota.keys.min(part.quota.keys), bytes: quota.bytes.min(part.quota.bytes) };
            for (key, value) in &part.writes {
                let old = space.and_then(|keys| keys.records.get(key)).map(|record| record.value.len());
                usage.replace(key, old, value.as_ref().map(bytes::Bytes::len));
            }
        }
        realms.into_iter().try_for_each(|(realm, (after, quota))| quota.allow(self.usage(realm), after))
    }

    fn usage(&self, realm: &Arc<str>) -> Usage {
        self.realms.get(realm).map(|realm| realm.usage).unwrap_or_default()
    }

    fn apply(&mut self, part: Part, revision: u64) {
        if part.writes.is_empty() {
            return;
        }
        let realm = self.realms.entry(part.space.realm).or_default();
        let keys = realm.spaces.entry(part.space.name.clone()).or_default();
        for (key, value) in part.writes {
            let new = value.as_ref().map(bytes::Bytes::len);
            let old = match value {
                Some(value) => keys.records.insert(key.clone(), Record { value, revision }),
                None => keys.records.remove(&key),
            };
            if old.is_some() != new.is_some() {
                keys.revision = revision;
            }
            realm.usage.replace(&key, old.map(|record| record.value.len()), new);
        }
        if keys.records.is_empty() {
            realm.spaces.remove(&part.space.name);
        }
    }

    fn commit(&mut self, commit: Commit) -> Result<(), CommitError> {
        if !commit.parts.iter().all(|part| self.is_as_seen(part)) {
            return Err(CommitError::Conflict);
        }
        self.allow(&commit)?;
        self.revision = self.revision.saturating_add(1);
        let revision = self.revision;
        commit.parts.into_iter().for_each(|part| self.apply(part, revision));
        Ok(())
    }

    fn page(&self, space: &Space, after: Option<&str>, len: usize) -> Page {
        let Some(keys) = self.space(space) else { return Page::default() };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut found = keys.records.range::<str, _>((from, Bound::Unbounded)).map(|(key, _)| key);
        let page = found.by_ref().take(len).cloned().collect();
        Page { keys: page, more: found.next().is_some(), revision: keys.revision }
    }

    fn forget(&mut self, name: &str) {
        for realm in self.realms.values_mut() {
            if let Some(keys) = realm.spaces.remove(name) {
                keys.records.iter().for_each(|(key, record)| realm.usage.replace(key, Some(record.value.len()), None));
            }
        }
    }
}

impl Backend for Memory {
    fn get_within(&self, space: Space, keys: Vec<String>, bytes_max: usize) -> BoxFuture<'_, Result<Option<Vec<Option<Record>>>, Failed>> {
        Box::pin(async move {
            let kept = self.lock();
            let found = kept.space(&space);
            let records: Vec<_> = keys.iter().map(|key| found.and_then(|found| found.records.get(key)).cloned()).collect();
            let bytes = records.iter().flatten().map(|record| record.value.len()).fold(0, usize::saturating_add);
            Ok((bytes <= bytes_max).then_some(records))
        })
    }

    fn keys(&self, space: Space, after: Option<String>, len: usize) -> BoxFuture<'_, Result<Page, Failed>> {
        Box::pin(async move { Ok(self.lock().page(&space, after.as_deref(), len)) })
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move { self.lock().commit(commit) })
    }

    fn spaces(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Vec<Space>, Failed>> {
        Box::pin(async move {
            let kept = self.lock();
            let names = kept.realms.get(&realm).into_iter().flat_map(|found| found.spaces.keys());
            Ok(names.map(|name| Space { realm: realm.clone(), name: name.clone() }).collect())
        })
    }

    fn usage(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Usage, Failed>> {
        Box::pin(async move { Ok(self.lock().usage(&realm)) })
    }

    fn forget(&self, name: Arc<str>) -> BoxFuture<'_, Result<(), Failed>> {
        Box::pin(async move {
            self.lock().forget(&name);
            Ok(())
        })
    }

    fn node(&self) -> &str {
        "memory"
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, Failed>> {
        Box::pin(async { Ok(vec![self.node().to_owned()]) })
    }
}
