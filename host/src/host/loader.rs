//! From a guest's source to a loaded guest: its settings out of the configuration, and what all guests share.

use super::GuestSource;
use crate::audit::{Audit, Event, What};
use crate::capability::keyvalue::Shelf;
use crate::config::auth::AuthConfig;
use crate::config::{Config, GuestConfig, GuestLimits};
use crate::guest::{CallLimits, CodeCache, CommitLock, Engines, Room, Settings, clean};
use crate::registry::{Loaded, load};
use crate::storage::{Quota, Storage};
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

    fn settings(&self, name: &str, config: &GuestConfig) -> Result<Settings> {
        let config_json = serde_json::to_string(&config.config)
            .with_context(|| format!("the table `config` of guest `{name}` cannot be written as JSON"))?;
        Ok(Settings {
            name: name.to_owned(),
            config_json,
            limits: call_limits(&config.limits, &self.config.auth),
            grants: config.grants.clone(),
            room: Room {
                audit: self.audit.clone(),
                env: config.grants.environment().with_context(|| format!("guest `{name}`"))?,
                state: Some(shelf(&config.limits, &self.storage)),
                ..Room::default()
            },
            figures: self.telemetry.of_guest(name),
            commit_lock: self.commit_lock(name),
            cache: self.cache.clone(),
        })
    }
}

fn shelf(limits: &GuestLimits, storage: &Storage) -> Shelf {
    Shelf {
        storage: storage.clone(),
        quota: Quota { keys: limits.keys as u64, bytes: limits.state.0 },
        value_bytes: usize::try_from(limits.value.0).unwrap_or(usize::MAX),
    }
}

/// Opens the storage where some guest will use it, so that a storage that does not work is said at the start. A host whose
/// guests save nothing does not touch it.
pub(super) async fn open_if_needed(storage: &Storage, loaded: &[Arc<Loaded>]) -> Result<()> {
    if loaded.iter().any(|guest| guest.version.uses_state()) {
        storage.open().await?;
    }
    Ok(())
}

fn call_limits(limits: &GuestLimits, auth: &AuthConfig) -> CallLimits {
    let bytes = |size: crate::config::units::Size| usize::try_from(size.0).unwrap_or(usize::MAX);
    CallLimits {
        wall_ms: limits.wall.0,
        task_wall_ms: limits.task.0,
        cpu_ms: limits.cpu.0,
        memory_bytes: bytes(limits.memory),
        table_elements: limits.table,
        output_bytes: bytes(limits.output),
        log_lines: limits.logs,
        progress: limits.progress,
        concurrency: limits.concurrency,
        per_principal: auth.cap(limits.concurrency, limits.per_principal),
        ..CallLimits::default()
    }
}
