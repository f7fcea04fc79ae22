//! Migration: what a guest has stored goes from the form of one version to that of another, all of it in one commit, and back.
//!
//! While that goes on, the guest's calls do not commit. The state as it was is kept beside it, for as long as the version is that
//! it belongs to.

use super::Stored;
use crate::capability::keyvalue::{Bucket, owner, realm};
use crate::guest::bindings::context::{LogLevel, ProgressError, RequestInfo};
use crate::guest::bindings::migration::Owner;
use crate::guest::bindings::types::RpcError;
use crate::guest::{self, Alone, Migrating, Version, clean};
use crate::host::Shared;
use crate::identity::Identity;
use crate::registry::Loaded;
use crate::storage::{Backend, Commit, CommitError, Failed, Part, Quota, Record, Space};
use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the commits of running calls are waited for.
const COMMITS_TIME_MAX: Duration = Duration::from_secs(5);
/// How long all of a migration may take; the commits of running calls wait for it.
const MIGRATION_TIME_MAX: Duration = Duration::from_secs(10);
/// Largest state that is migrated: it is in memory meanwhile, twice.
const STATE_BYTES_MAX: u64 = 256 << 20;
/// Keys that are read at a time.
const PAGE_LEN: usize = 500;
/// Longest name of a space, and longest error of a guest, that is shown.
const SHOWN_BYTES_MAX: usize = 1_000;

/// A change of a guest's whole state, ready to be committed, while nobody else commits.
pub(super) struct Change {
    alone: Alone,
    commit: Commit,
    /// The spaces that it changes, as they were.
    before: Vec<Held>,
    what: Stored,
}

/// What one space holds.
#[derive(Clone)]
struct Held {
    space: Space,
    listed: u64,
    records: BTreeMap<String, Record>,
}

impl Held {
    /// That all of it is as it was.
    fn part(&self) -> Part {
        let mut part = Part::new(self.space.clone(), Quota::NONE);
        part.seen = self.records.iter().map(|(key, record)| (key.clone(), Some(record.revision))).collect();
        part.listed = Some(self.listed);
        part
    }
}

/// The version that the state is of: what it calls itself, and its digest.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    pub(super) version: &'a str,
    pub(super) digest: &'a str,
}

impl<'a> Before<'a> {
    pub(super) fn of(old: &'a Loaded) -> Self {
        Self { version: &old.info.version, digest: old.version.digest() }
    }
}

/// Whether a version knows how to migrate, and has state.
pub(super) fn can_migrate(guest: &Loaded) -> bool {
    guest.version.exports().migration && guest.version.uses_state()
}

/// Whether the new version has something to migrate.
pub(super) async fn is_due(host: &Shared, old: Before<'_>, new: &Loaded) -> Result<bool> {
    if !can_migrate(new) || old.version == new.info.version {
        return Ok(false);
    }
    Ok(!host.loader.storage.open().await?.spaces(realm(&new.name)).await?.is_empty())
}

/// What the new version is to do to the state, done but not committed. None where there is nothing to do.
pub(super) async fn prepare(host: &Shared, old: Before<'_>, new: &Loaded) -> Result<Option<Change>> {
    if !is_due(host, old, new).await? {
        return Ok(None);
    }
    let alone = hold(new).await?;
    let change = timeout(MIGRATION_TIME_MAX, migrated(host, old, new, alone));
    change.await.map_err(|_| anyhow!("the migration of its state takes longer than {} s", MIGRATION_TIME_MAX.as_secs()))?.map(Some)
}

async fn hold(new: &Loaded) -> Result<Alone> {
    let alone = new.version.commits().alone_within(COMMITS_TIME_MAX).await;
    alone.ok_or_else(|| anyhow!("calls that save their state did not end within {} s", COMMITS_TIME_MAX.as_secs()))
}

async fn migrated(host: &Shared, old: Before<'_>, new: &Loaded, alone: Alone) -> Result<Change> {
    let backend = host.loader.storage.open().await?;
    let before = read(backend, realm(&new.name)).await?;
    let stale = read(backend, kept_realm(&new.name, old.digest)).await?;
    let mut parts = Vec::new();
    for held in &before {
        parts.push(migrate_space(new, old.version, held).await?);
    }
    parts.extend(copies(&before, &stale, kept_realm(&new.name, old.digest)));
    let what = Stored::Migrated(before.len());
    Ok(Change { alone, commit: Commit { parts }, before: before.into_iter().chain(stale).collect(), what })
}

/// Lets the new version migrate one space.
async fn migrate_space(new: &Loaded, from_version: &str, held: &Held) -> Result<Part> {
    let name = clean(&held.space.name, SHOWN_BYTES_MAX);
    let (bucket, identity) = owner(&held.space).ok_or_else(|| anyhow!("nobody is known whose the namespace `{name}` is"))?;
    let whom = match bucket {
        Bucket::Guest => Owner::Guest,
        Bucket::Principal => Owner::Principal(identity.principal.as_deref().unwrap_or_default().to_owned()),
        Bucket::Session => Owner::Session(identity.session.as_deref().unwrap_or_default().to_owned()),
    };
    let migrating = Migrating::new(held.space.clone(), bucket);
    let caller = Box::new(Caller { migrating: migrating.clone(), identity });
    let failed = |why: String| anyhow!("`migrate` failed for the namespace `{name}`: {}", clean(&why, SHOWN_BYTES_MAX));
    new.version.migrate(Some(caller), from_version.to_owned(), whom).await.map_err(|failure| failed(failure.to_string()))?;
    let mut part = held.part();
    let Some(tx) = migrating.take() else { return Ok(part) };
    if tx.is_torn() {
        return Err(failed("somebody else changed the state meanwhile".into()));
    }
    for done in tx.into_parts() {
        if done.space != held.space {
            // `init` may look into the guest's own bucket.
            continue;
        }
        part.seen.extend(done.seen.into_iter().filter(|(key, _)| !held.records.contains_key(key)));
        (part.writes, part.quota) = (done.writes, done.quota);
    }
    Ok(part)
}

/// Writes down, in another realm, what spaces hold, in place of what is there.
fn copies(before: &[Held], stale: &[Held], realm: Arc<str>) -> Vec<Part> {
    let mut writes: BTreeMap<Arc<str>, BTreeMap<String, Option<Bytes>>> = BTreeMap::new();
    for held in stale {
        writes.entry(held.space.name.clone()).or_default().extend(held.records.keys().map(|key| (key.clone(), None)));
    }
    for held in before {
        let values = held.records.iter().map(|(key, record)| (key.clone(), Some(record.value.clone())));
        writes.entry(held.space.name.clone()).or_default().extend(values);
    }
    let part = |(name, writes): (Arc<str>, BTreeMap<String, Option<Bytes>>)| Part {
        writes: writes.into_iter().collect(),
        ..Part::new(Space { realm: realm.clone(), name }, Quota::NONE)
    };
    writes.into_iter().map(part).collect()
}

/// Puts back the state that was kept with a version.
pub(super) async fn restoration(host: &Shared, new: &Loaded, digest: &str) -> Result<Change> {
    let alone = hold(new).await?;
    let backend = host.loader.storage.open().await?;
    let kept = read(backend, kept_realm(&new.name, digest)).await?;
    if kept.is_empty() {
        bail!("the state from before the migration is not kept any more");
    }
    let now = read(backend, realm(&new.name)).await?;
    let what = Stored::Restored(newer(&now, &kept));
    let seen: BTreeMap<Arc<str>, &Held> = now.iter().map(|held| (held.space.name.clone(), held)).collect();
    let mut parts = copies(&kept, &now, realm(&new.name));
    for part in &mut parts {
        if let Some(held) = seen.get(&part.space.name) {
            (part.seen, part.listed) = (held.part().seen, Some(held.listed));
        }
    }
    parts.extend(copies(&[], &kept, kept_realm(&new.name, digest)));
    Ok(Change { alone, commit: Commit { parts }, before: now.into_iter().chain(kept).collect(), what })
}

/// How many keys were written since the state was migrated that is kept with a version.
pub(super) async fn written_since(host: &Shared, guest: &str, digest: &str) -> Result<usize> {
    let backend = host.loader.storage.open().await?;
    Ok(newer(&read(backend, realm(guest)).await?, &read(backend, kept_realm(guest, digest)).await?))
}

/// The copy was written by the very commit that migrated.
fn newer(now: &[Held], kept: &[Held]) -> usize {
    let migrated = kept.iter().flat_map(|held| held.records.values()).map(|record| record.revision).max().unwrap_or_default();
    now.iter().flat_map(|held| held.records.values()).filter(|record| record.revision > migrated).count()
}

/// Forgets the state that was kept with a version that is kept no more.
pub(super) async fn forget(host: &Shared, guest: &str, digest: &str) {
    let Some(backend) = host.loader.storage.opened() else { return };
    let realm = kept_realm(guest, digest);
    let forgotten = async {
        let kept = read(backend, realm.clone()).await?;
        backend.commit(Commit { parts: copies(&[], &kept, realm.clone()) }).await.map_err(not_committed)
    };
    if let Err(error) = forgotten.await {
        tracing::warn!(guest, "the state that was kept with a version is kept on: {error:#}");
    }
}

impl Change {
    /// Carries the change out: the one moment at which the state is another.
    pub(super) async fn commit(&self, host: &Shared) -> Result<()> {
        let backend = host.loader.storage.open().await?;
        backend.commit(self.commit.clone()).await.map_err(not_committed).context("the guest's state is not changed")
    }

    /// Takes it back, as long as nobody else commits.
    pub(super) async fn undo(&self, host: &Shared) -> Result<()> {
        let backend = host.loader.storage.open().await?;
        let touched = self.commit.parts.iter().filter(|part| !part.writes.is_empty());
        let parts = touched.map(|part| {
            let before = self.before.iter().find(|held| held.space == part.space);
            let value = |key: &String| before.and_then(|held| held.records.get(key)).map(|record| record.value.clone());
            Part {
                writes: part.writes.iter().map(|(key, _)| (key.clone(), value(key))).collect(),
                ..Part::new(part.space.clone(), Quota::NONE)
            }
        });
        backend.commit(Commit { parts: parts.collect() }).await.map_err(not_committed).context("the guest's state is not as it was")
    }

    /// The version is in force: calls commit again, and those of older versions run again on it.
    pub(super) fn done(self, version: &Version) -> Stored {
        version.commits().replaced(&self.alone, version);
        self.what
    }
}

fn not_committed(error: CommitError) -> anyhow::Error {
    match error {
        CommitError::Conflict => anyhow!("another process changed it meanwhile; try again"),
        CommitError::Quota(text) | CommitError::Failed(text) => anyhow!("{text}"),
    }
}

/// Where the state is kept that a guest had under a version.
fn kept_realm(guest: &str, digest: &str) -> Arc<str> {
    format!("kept/{guest}/{digest}").into()
}

/// Everything in a realm.
async fn read(backend: &dyn Backend, realm: Arc<str>) -> Result<Vec<Held>> {
    let usage = backend.usage(realm.clone()).await?;
    if usage.bytes > STATE_BYTES_MAX {
        bail!("its state has {} bytes, and {STATE_BYTES_MAX} can be migrated", usage.bytes);
    }
    let mut all = Vec::new();
    for space in backend.spaces(realm).await? {
        all.push(read_space(backend, space).await?);
    }
    Ok(all)
}

async fn read_space(backend: &dyn Backend, space: Space) -> Result<Held, Failed> {
    let mut held = Held { space: space.clone(), listed: 0, records: BTreeMap::new() };
    let mut after = None;
    loop {
        let page = backend.keys(space.clone(), after.clone(), PAGE_LEN).await?;
        // If it is another one by the next page, the commit will see that.
        held.listed = page.revision;
        let records = backend.get(space.clone(), page.keys.clone()).await?;
        let found = page.keys.iter().cloned().zip(records).filter_map(|(key, record)| Some((key, record?)));
        held.records.extend(found);
        after = page.keys.into_iter().last();
        if !page.more || after.is_none() {
            return Ok(held);
        }
    }
}

/// The caller's end of `migrate`: the owner of what is migrated, who has nothing to say and hears nothing.
struct Caller {
    migrating: Migrating,
    identity: Identity,
}

impl guest::CallContext for Caller {
    fn request_info(&mut self) -> Option<RequestInfo> {
        None
    }

    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn answer(&mut self, _key: &str) -> Option<Result<String, RpcError>> {
        None
    }

    fn state(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn progress(&mut self, _progress: f64, _total: Option<f64>, _message: Option<String>) -> BoxFuture<'_, Result<(), ProgressError>> {
        Box::pin(std::future::ready(Err(ProgressError::NotRequested)))
    }

    fn log(&mut self, _level: LogLevel, _logger: Option<String>, _data: String) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn change(&mut self, _change: guest::Change) {}

    fn migrating(&self) -> Option<&Migrating> {
        Some(&self.migrating)
    }
}
