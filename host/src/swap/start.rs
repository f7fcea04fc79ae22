//! A host that starts with another version than it stopped with: its state is migrated before anybody calls it.

use super::gate;
use super::lock;
use super::migrate::{self, Before};
use crate::audit::What;
use crate::guest::clean;
use crate::host::{GuestSource, Shared};
use crate::registry::Loaded;
use anyhow::{Context as _, Result};
use std::sync::Arc;

/// Longest reason why a guest is not served; it may quote the guest.
const REASON_BYTES_MAX: usize = 4 << 10;

/// Migrates what an earlier process left for an earlier version. A guest whose migration fails is not served, and its state is as
/// it was; for those that know how to migrate, it is noted which version their state is of.
pub(crate) async fn migrate_at_start(host: &Shared) {
    if !host.loader.storage.outlives_process() {
        return;
    }
    let registry = host.dispatcher.registry();
    for guest in registry.guests().iter().filter(|guest| migrate::can_migrate(guest)) {
        let Some(slot) = host.swaps.slot(&guest.name) else { continue };
        let source = lock(&slot.source).clone();
        if let Err(error) = migrate_one(host, &source, guest).await {
            let reason = clean(&format!("{error:#}"), REASON_BYTES_MAX);
            tracing::error!(guest = %guest.name, "it is not served: {reason}");
            host.loader.note(What::Unloaded, &guest.name, &reason);
            lock(&host.not_served).push((guest.name.to_string(), reason));
            // It was served a moment ago, so that it can be taken out.
            let _ = host.dispatcher.remove(&guest.name);
        }
    }
}

async fn migrate_one(host: &Shared, source: &GuestSource, guest: &Arc<Loaded>) -> Result<()> {
    let mut history = host.swaps.history(source)?;
    let last = history.versions().last().filter(|last| last.digest != guest.version.digest()).cloned();
    let mut migrated = false;
    if let Some(last) = last {
        let before = Before { version: &last.version, digest: &last.digest };
        let change = migrate::prepare(host, before, guest).await.with_context(|| format!("its state is of version {}", last.version))?;
        if let Some(change) = change {
            change.commit(host).await?;
            change.done(&guest.version);
            tracing::info!(guest = %guest.name, "has migrated its state from version {} to {}", last.version, guest.info.version);
            migrated = true;
        }
    }
    gate::keep_served(source, &mut history, guest, migrated).await;
    Ok(())
}
