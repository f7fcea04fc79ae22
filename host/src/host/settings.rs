//! What a guest's table in the configuration means for its calls.

use super::loader::Loader;
use crate::capability::http::Http;
use crate::capability::keyvalue::{Reads, Shelf};
use crate::config::auth::AuthConfig;
use crate::config::units::Size;
use crate::config::{GuestConfig, GuestLimits, http};
use crate::guest::{CallLimits, Keeping, Room, Settings};
use crate::network::{Network, SystemResolver};
use crate::storage::Quota;
use anyhow::{Context, Result};
use std::sync::{Arc, PoisonError};
use tokio::runtime::Handle;

impl Loader {
    /// How a guest is to run.
    pub(super) fn settings(&self, name: &str, config: &GuestConfig) -> Result<Settings> {
        let config_json = serde_json::to_string(&config.config)
            .with_context(|| format!("the table `config` of guest `{name}` cannot be written as JSON"))?;
        let limits = call_limits(&config.limits, &self.config.auth);
        Ok(Settings {
            name: name.to_owned(),
            config_json,
            keeping: keeping(config),
            grants: config.grants.clone(),
            room: Room {
                audit: self.audit.clone(),
                env: config.grants.environment().with_context(|| format!("guest `{name}`"))?,
                http: self.outgoing(name, config, &limits)?,
                state: Some(self.shelf(&config.limits)),
                ..Room::default()
            },
            limits,
            figures: self.telemetry.of_guest(name),
            commit_lock: self.commit_lock(name),
            cache: self.cache.clone(),
        })
    }

    /// Where a guest's requests may go, and what is added to them.
    fn outgoing(&self, name: &str, config: &GuestConfig, limits: &CallLimits) -> Result<Option<Arc<Http>>> {
        let patterns = http::patterns(name, config)?;
        // Also where nothing is granted: a secret that is never sent is a mistake.
        let secrets = http::secrets(name, config, &patterns)?;
        if patterns.is_empty() {
            return Ok(None);
        }
        Ok(Some(Arc::new(Http::new(&self.network()?, patterns, secrets, limits))))
    }

    /// What guests' requests go out through.
    fn network(&self) -> Result<Network> {
        let mut network = self.network.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(network) = &*network {
            return Ok(network.clone());
        }
        let http = &self.config.http;
        let made = Network::new(Arc::new(SystemResolver::default()), http.trust()?, http.proxies()?, Handle::current());
        Ok(network.insert(made).clone())
    }

    fn shelf(&self, limits: &GuestLimits) -> Shelf {
        Shelf {
            storage: self.storage.clone(),
            quota: Quota { keys: limits.keys as u64, bytes: limits.state.0 },
            value_bytes: bytes(limits.value),
            sessions: self.sessions.clone(),
            reads: Reads::default(),
        }
    }
}

fn call_limits(limits: &GuestLimits, auth: &AuthConfig) -> CallLimits {
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
        requests: limits.requests,
        requests_at_once: limits.requests_at_once,
        request_wall_ms: limits.request_wall.0,
        request_connect_ms: limits.request_connect.0,
        request_bytes: bytes(limits.request),
        response_bytes: bytes(limits.response),
        response_header_bytes: bytes(limits.response_headers),
        per_principal: auth.cap(limits.concurrency, limits.per_principal),
        ..CallLimits::default()
    }
}

fn keeping(config: &GuestConfig) -> Keeping {
    let limits = &config.limits;
    Keeping {
        policy: config.instance,
        instances_max: limits.instances,
        idle_ms: limits.instance_idle.0,
        saved_bytes_max: bytes(limits.saved),
        saved_total_bytes_max: bytes(limits.saved_total),
        turn_ms: limits.turn.0,
        waiting_max: limits.concurrency,
    }
}

fn bytes(size: Size) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}
