//! The host: loads guests, puts the dispatcher together, and hands it to the transports.

use crate::capability::http::Http;
use crate::config::{Config, GuestConfig, GuestLimits, http, paths};
use crate::dispatch::Dispatcher;
use crate::guest::{CallLimits, CodeCache, EngineLimits, Engines, Room, Settings, clean};
use crate::network::{Network, SystemResolver};
use crate::registry::{Endpoint, Loaded, Registry, load};
use crate::transport;
use anyhow::{Context, Result, anyhow, bail};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Compiled code that is kept on disk; the oldest goes first.
const CODE_CACHE_BYTES_MAX: u64 = 2 << 30;

/// Longest reason why a guest is not served; it may quote the guest.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// A component to be served, and how.
#[derive(Clone, Debug)]
pub struct GuestSource {
    /// Its name in this host.
    pub name: String,
    /// The component.
    pub file: PathBuf,
    /// What the operator says about it.
    pub config: GuestConfig,
}

/// What a person wants to know about a guest that is served.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its name.
    pub name: String,
    /// What it offers, such as `3 tools, 1 prompt`.
    pub offers: String,
}

/// A running host. Cloning is cheap; all clones are one host.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

/// What all transports share.
pub struct Shared {
    /// Runs the calls.
    pub dispatcher: Dispatcher,
    /// As it was when the host started.
    pub config: Config,
    /// One permit for each request in flight, over all connections.
    pub requests: Arc<Semaphore>,
}

impl Host {
    /// Loads the guests and puts them together. A guest that cannot be loaded is reported and left out; it is an error only
    /// if none is left.
    pub async fn start(config: Config, guests: Vec<GuestSource>) -> Result<Self> {
        let engines = Engines::new(EngineLimits::default()).context("cannot start the WebAssembly engines")?;
        let cache = code_cache();
        let started_with = guests.len();
        let network = network(&config, &guests)?;
        let loaded = load_all(&engines, cache.as_ref(), &config, network.as_ref(), guests).await?;
        let registry = Registry::new(&config, loaded, started_with)?;
        let dispatcher = Dispatcher::new(registry, config.seal.sealer()?, &config);
        let requests = Arc::new(Semaphore::new(config.limits.requests.min(Semaphore::MAX_PERMITS)));
        Ok(Self { shared: Arc::new(Shared { dispatcher, config, requests }) })
    }

    /// What is served, by name.
    pub fn summaries(&self) -> Vec<Summary> {
        let registry = self.shared.dispatcher.registry();
        registry.guests().iter().map(|guest| Summary { name: guest.name.to_string(), offers: offers(guest) }).collect()
    }

    /// Shows each guest that is served, by name.
    pub fn each_guest(&self, mut show: impl FnMut(&Loaded)) {
        self.shared.dispatcher.registry().guests().iter().for_each(|guest| show(guest));
    }

    /// Serves over HTTP until `stop` resolves; then calls in flight get their time to finish.
    pub async fn serve_http(&self, listener: TcpListener, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        transport::http::serve(self.shared.clone(), listener, stop).await
    }

    /// Serves one client on standard input and output, all guests or one, until end of input or until `stop` resolves.
    pub async fn serve_stdio(&self, guest: Option<&str>, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        transport::stdio::serve(self.shared.clone(), self.endpoint(guest)?, stop).await
    }

    /// Connects a client in this process.
    pub fn connect(&self, guest: Option<&str>) -> Result<transport::memory::Client> {
        transport::memory::connect(self.shared.clone(), self.endpoint(guest)?)
    }

    fn endpoint(&self, guest: Option<&str>) -> Result<Endpoint> {
        let endpoint = guest.map_or(Endpoint::Merged, |name| Endpoint::Guest(name.into()));
        if self.shared.dispatcher.view(&endpoint).is_none() {
            bail!("there is no guest called `{}`", guest.unwrap_or_default());
        }
        Ok(endpoint)
    }
}

/// The folder of compiled code. Without one, guests are compiled at every start: slower, and no reason not to serve them.
fn code_cache() -> Option<CodeCache> {
    let opened = paths::cache().and_then(|folder| CodeCache::open(&folder.join("code"), CODE_CACHE_BYTES_MAX).map_err(anyhow::Error::msg));
    opened
        .inspect_err(|error| {
            tracing::warn!(
                "compiled code is not kept, and guests are compiled anew at each start: {error:#} (XDG_CACHE_HOME chooses the folder)"
            );
        })
        .ok()
}

/// What guests' HTTP requests go out through, if any guest may send some.
fn network(config: &Config, guests: &[GuestSource]) -> Result<Option<Network>> {
    if guests.iter().all(|guest| guest.config.grants.http.is_empty()) {
        return Ok(None);
    }
    let resolver = Arc::new(SystemResolver::default());
    let network = Network::new(resolver, config.http.trust()?, config.http.proxies()?, tokio::runtime::Handle::current());
    Ok(Some(network))
}

/// What a guest finds in its room.
fn room(guest: &GuestSource, limits: &CallLimits, network: Option<&Network>) -> Result<Room> {
    let patterns = http::patterns(&guest.name, &guest.config)?;
    let http = match network {
        Some(network) if !patterns.is_empty() => {
            Some(Arc::new(Http::new(network, patterns, http::secrets(&guest.name, &guest.config)?, limits)))
        }
        Some(_) | None => None,
    };
    Ok(Room { http, ..Room::default() })
}

/// Loads all guests side by side, since each may have to be compiled.
async fn load_all(
    engines: &Engines,
    cache: Option<&CodeCache>,
    config: &Config,
    network: Option<&Network>,
    guests: Vec<GuestSource>,
) -> Result<Vec<Arc<Loaded>>> {
    let total = guests.len();
    let mut loading = JoinSet::new();
    for guest in guests {
        let settings = settings(&guest, cache, network)?;
        let (engines, limits) = (engines.clone(), config.limits.clone());
        loading.spawn(async move {
            let loaded = load::load(&engines, &guest.file, &guest.config, settings, &limits).await;
            loaded.with_context(|| format!("guest `{}`", guest.name))
        });
    }
    let mut loaded = Vec::new();
    let mut failed = Vec::new();
    while let Some(outcome) = loading.join_next().await {
        match outcome.context("loading a guest stopped unexpectedly").flatten() {
            Ok(guest) => loaded.push(Arc::new(guest)),
            Err(error) => failed.push(clean(&format!("{error:#}"), ERROR_BYTES_MAX)),
        }
    }
    if loaded.is_empty() {
        return Err(anyhow!("no guest could be loaded: {}", failed.join("; ")));
    }
    for error in failed {
        tracing::error!("a guest is not served ({} of {total} are): {error}", loaded.len());
    }
    Ok(loaded)
}

fn settings(guest: &GuestSource, cache: Option<&CodeCache>, network: Option<&Network>) -> Result<Settings> {
    let config_json = serde_json::to_string(&guest.config.config)
        .with_context(|| format!("the table `config` of guest `{}` cannot be written as JSON", guest.name))?;
    let limits = call_limits(&guest.config.limits);
    let room = room(guest, &limits, network)?;
    Ok(Settings { name: guest.name.clone(), config_json, limits, room, cache: cache.cloned() })
}

fn call_limits(limits: &GuestLimits) -> CallLimits {
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
        requests: limits.requests,
        requests_at_once: limits.requests_at_once,
        request_wall_ms: limits.request_wall.0,
        request_connect_ms: limits.request_connect.0,
        request_bytes: bytes(limits.request),
        response_bytes: bytes(limits.response),
        response_header_bytes: bytes(limits.response_headers),
        ..CallLimits::default()
    }
}

fn offers(guest: &Loaded) -> String {
    let counts = [
        (guest.tools.len(), "tool"),
        (guest.known_uris(), "resource"),
        (guest.templates.len(), "template"),
        (guest.prompts.len(), "prompt"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, noun)| if *count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") })
        .collect();
    if parts.is_empty() { "nothing".into() } else { parts.join(", ") }
}
