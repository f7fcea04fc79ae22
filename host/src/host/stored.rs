//! What the host keeps in the storage: whether it is needed, and what a process does with it when it starts.

use crate::capability::keyvalue;
use crate::config::Config;
use crate::registry::{Endpoint, Loaded, Registry};
use crate::storage::Storage;
use crate::tasks::{KeptStore, MemoryStore, Store, StoreLimits, now_ms};
use anyhow::Result;
use std::sync::Arc;

/// Where tasks are kept: in the storage, if that outlives the process and some tool can run as a task.
pub(super) async fn tasks(registry: &Registry, storage: &Storage, config: &Config) -> Result<Box<dyn Store>> {
    let limits = StoreLimits { count: config.tasks.count, bytes: usize::try_from(config.tasks.bytes.0).unwrap_or(usize::MAX) };
    let serves_tasks = registry.view(&Endpoint::Merged).is_some_and(|view| view.profile.capabilities.tasks);
    if serves_tasks && storage.outlives_process() {
        let serves = |guest: &str| registry.guest(guest).is_some();
        return Ok(Box::new(KeptStore::open(storage, limits, now_ms(), &serves).await?));
    }
    Ok(Box::new(MemoryStore::new(limits)))
}

/// Opens the storage where some guest will use it, so that a storage that does not work is said at the start. A host whose
/// guests save nothing does not touch it.
pub(super) async fn open_if_needed(storage: &Storage, loaded: &[Arc<Loaded>], config: &Config) -> Result<()> {
    for guest in loaded.iter().filter(|guest| guest.version.uses_state()) {
        keyvalue::forget_departed(storage.open().await?, &guest.name).await?;
    }
    if config.seal.single_use {
        storage.open().await?;
    }
    Ok(())
}

/// Says so where calls that ask their client may come back to another process, which cannot open what this one sealed.
pub(super) async fn warn_if_shared(storage: &Storage, config: &Config) -> Result<()> {
    let Some(backend) = storage.opened().filter(|_| config.seal.keys.is_empty()) else { return Ok(()) };
    let others = backend.nodes().await?.len().saturating_sub(1);
    if others > 0 {
        tracing::warn!(
            "{others} other process(es) share the storage, and each seals under a random key of its own: if they serve the same clients, give all of them the same `keys` in [seal]"
        );
    }
    Ok(())
}
