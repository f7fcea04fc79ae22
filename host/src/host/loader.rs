//! From a guest's source to a loaded guest: its settings out of the configuration, and what all guests share.

use super::GuestSource;
use crate::audit::{Audit, Event, What};
use crate::capability::keyvalue;
use crate::config::{Config, GuestConfig};
use crate::guest::{CodeCache, CommitLock, Engines, clean};
use crate::network::Network;
use crate::registry::{Loaded, load};
use crate::storage::Storage;
use crate::telemetry::Telemetry;
use anyhow::{Context, Result, anyhow};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// Longest reason why a guest is not served; it may quote the guest.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// What loading a guest takes. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Loader {
    pub(super) engines: Engines,
    pub(super) cache: Option<CodeCache>,
    pub(super) config: Arc<Config>,
    pub(crate) telemetry: Telemetry,
    pub(super) audit: Audit,
    pub(crate) storage: Storage,
    pub(super) sessions: keyvalue::Sessions,
    /// Made for the first guest that may send requests.
    pub(super) network: Arc<Mutex<Option<Network>>>,
    /// One for each guest, whatever its version.
    pub(super) commit_locks: Arc<Mutex<HashMap<String, CommitLock>>>,
}

/// What came of loading several.
pub(super) struct Served {
    pub(super) loaded: Vec<Arc<Loaded>>,
    /// The others: name and reason.
    pub(super) not_served: Vec<(String, String)>,
}

impl Loader {
    /// Loads all guests side by side, since each may have to be compiled.
    pub(super) async fn all(&self, guests: Vec<GuestSource>) -> Result<Served> {
        let total = guests.len();
        let mut loading = JoinSet::new();
        for guest in guests {
            let loader = self.clone();
            loading.spawn(async move {
                let loaded = loader.file(&guest.name, &guest.file, &guest.config).await;
                loaded.with_context(|| format!("guest `{}`", guest.name)).map_err(|error| (guest.name, error))
            });
        }
        let mut served = Served { loaded: Vec::new(), not_served: Vec::new() };
        while let Some(outcome) = loading.join_next().await {
            match outcome.context("loading a guest stopped unexpectedly")? {
                Ok(guest) => {
                    self.note(What::Loaded, &guest.name, guest.version.digest());
                    served.loaded.push(Arc::new(guest));
                }
                Err((name, error)) => {
                    let reason = clean(&format!("{error:#}"), ERROR_BYTES_MAX);
                    self.note(What::Unloaded, &name, &reason);
                    served.not_served.push((name, reason));
                }
            }
        }
        if served.loaded.is_empty() {
            let reasons: Vec<&str> = served.not_served.iter().map(|(_, reason)| reason.as_str()).collect();
            return Err(anyhow!("no guest could be loaded: {}", reasons.join("; ")));
        }
        for (_, reason) in &served.not_served {
            tracing::error!("a guest is not served ({} of {total} are): {reason}", served.loaded.len());
        }
        Ok(served)
    }

    /// Loads the component of that file: compiles it, starts it, asks who it is and what it offers.
    pub(crate) async fn file(&self, name: &str, file: &Path, config: &GuestConfig) -> Result<Loaded> {
        let settings = self.settings(name, config)?;
        load::load(&self.engines, file, config, settings, &self.config.limits).await
    }

    /// The same of a component that is in memory; `shown` is what errors call it.
    pub(crate) async fn bytes(&self, name: &str, shown: &str, bytes: Vec<u8>, config: &GuestConfig) -> Result<Loaded> {
        let settings = self.settings(name, config)?;
        load::load_bytes(&self.engines, shown, bytes, config, settings, &self.config.limits).await
    }

    /// Notes in the audit trail what became of a version.
    pub(crate) fn note(&self, what: What, guest: &str, value: &str) {
        self.audit.record(&Event { what, guest, subject: "version", value, principal: None });
    }

    /// What the versions of a guest share when they commit.
    pub(crate) fn commit_lock(&self, name: &str) -> CommitLock {
        let mut locks = self.commit_locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.entry(name.to_owned()).or_default().clone()
    }
}
