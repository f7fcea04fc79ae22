//! The host: loads guests, puts the dispatcher together, and hands it to the transports.

mod status;

use crate::audit::{Audit, Event, Journal, Refusals, What};
use crate::auth::{Authenticator, authenticator};
use crate::capability::http::Http;
use crate::capability::keyvalue::{self, Shelf};
use crate::config::admin::{AdminConfig, AuditTo};
use crate::config::auth::AuthConfig;
use crate::config::{Config, GuestConfig, GuestLimits, http, paths};
use crate::dispatch::Dispatcher;
use crate::guest::{CallLimits, CodeCache, EngineLimits, Engines, Room, Settings, clean};
use crate::identity::Departures;
use crate::network::{Network, SystemResolver};
use crate::principals::Requests;
use crate::registry::{Endpoint, Loaded, Registry, load};
use crate::storage::{Quota, Storage};
use crate::tasks::{KeptStore, MemoryStore, Store, StoreLimits, now_ms};
use crate::telemetry::Telemetry;
use crate::transport;
use anyhow::{Context, Result, anyhow, bail};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
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
    /// The requests in flight, over all connections.
    pub requests: Requests,
    /// Tells who calls over HTTP, where callers have to prove it.
    pub auth: Option<Box<dyn Authenticator>>,
    /// What is counted.
    pub telemetry: Telemetry,
    /// Told when sessions are over.
    pub(crate) departures: Departures,
    /// Where uses, refusals and failures are noted.
    pub audit: Audit,
    /// Why guests that were asked for are not served, by name.
    not_served: Vec<(String, String)>,
    started: Instant,
}

impl Host {
    /// Loads the guests and puts them together. A guest that cannot be loaded is reported and left out; it is an error only
    /// if none is left.
    pub async fn start(config: Config, guests: Vec<GuestSource>) -> Result<Self> {
        let engines = Engines::new(EngineLimits::default()).context("cannot start the WebAssembly engines")?;
        let cache = code_cache();
        let started_with = guests.len();
        let (telemetry, audit) = (Telemetry::default(), trail(&config)?);
        let network = network(&config, &guests)?;
        let (storage, departures) = (Storage::new(&config.storage), Departures::default());
        let sessions = keyvalue::Sessions::new(&storage, &departures);
        let loading = Loading {
            engines: &engines,
            cache: cache.as_ref(),
            config: &config,
            telemetry: &telemetry,
            audit: &audit,
            storage: &storage,
            network: network.as_ref(),
            sessions: &sessions,
        };
        let Served { loaded, not_served } = loading.all(guests).await?;
        open_if_needed(&storage, &loaded, &config).await?;
        let registry = Registry::new(&config, loaded, started_with)?;
        let tasks = task_store(&registry, &storage, &config).await?;
        warn_if_shared(&storage, &config).await?;
        let dispatcher = Dispatcher::new(registry, config.seal.sealer()?, &config, tasks, &storage);
        let (requests, auth) = (Requests::of(&config), authenticator(&config.auth));
        let started = Instant::now();
        let shared = Arc::new(Shared { dispatcher, config, requests, auth, telemetry, departures, audit, not_served, started });
        status::observe(&shared);
        Ok(Self { shared })
    }

    /// How it is to be watched.
    pub fn admin_config(&self) -> &AdminConfig {
        &self.shared.config.admin
    }

    /// What is counted.
    pub fn telemetry(&self) -> &Telemetry {
        &self.shared.telemetry
    }

    /// How the host and its guests are, as `guesthouse status` shows it.
    pub fn status(&self) -> serde_json::Value {
        status::of(&self.shared)
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
        if self.shared.auth.is_none()
            && let Ok(address) = listener.local_addr()
            && !address.ip().is_loopback()
        {
            tracing::warn!(
                "whoever reaches {address} may call; tokens in the table [auth] change that (`guesthouse token NAME` makes one)"
            );
        }
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

/// The audit trail that the configuration asks for. Refusals are said in the log in any case.
fn trail(config: &Config) -> Result<Audit> {
    let log = Audit::to(Arc::new(Refusals));
    Ok(match config.admin.audit() {
        AuditTo::Nowhere => log,
        AuditTo::Stderr => log.and(Arc::new(Journal::on_stderr()?)),
        AuditTo::File(file) => log.and(Arc::new(Journal::open(&file)?)),
    })
}

/// What loading guests takes.
struct Loading<'a> {
    engines: &'a Engines,
    cache: Option<&'a CodeCache>,
    config: &'a Config,
    telemetry: &'a Telemetry,
    audit: &'a Audit,
    storage: &'a Storage,
    /// There if some guest may send requests.
    network: Option<&'a Network>,
    sessions: &'a keyvalue::Sessions,
}

/// What came of it.
struct Served {
    loaded: Vec<Arc<Loaded>>,
    /// The others: name and reason.
    not_served: Vec<(String, String)>,
}

impl Loading<'_> {
    /// Loads all guests side by side, since each may have to be compiled.
    async fn all(&self, guests: Vec<GuestSource>) -> Result<Served> {
        let total = guests.len();
        let mut loading = JoinSet::new();
        for guest in guests {
            let settings = self.settings(&guest)?;
            let (engines, limits) = (self.engines.clone(), self.config.limits.clone());
            loading.spawn(async move {
                let loaded = load::load(&engines, &guest.file, &guest.config, settings, &limits).await;
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

    fn shelf(&self, limits: &GuestLimits) -> Shelf {
        Shelf {
            storage: self.storage.clone(),
            quota: Quota { keys: limits.keys as u64, bytes: limits.state.0 },
            value_bytes: usize::try_from(limits.value.0).unwrap_or(usize::MAX),
            sessions: self.sessions.clone(),
        }
    }

    fn note(&self, what: What, guest: &str, value: &str) {
        self.audit.record(&Event { what, guest, subject: "version", value, principal: None });
    }

    fn settings(&self, guest: &GuestSource) -> Result<Settings> {
        let config_json = serde_json::to_string(&guest.config.config)
            .with_context(|| format!("the table `config` of guest `{}` cannot be written as JSON", guest.name))?;
        let limits = call_limits(&guest.config.limits, &self.config.auth);
        let http = self.network.map(|network| outgoing(guest, network, &limits)).transpose()?.flatten();
        Ok(Settings {
            name: guest.name.clone(),
            config_json,
            limits,
            grants: guest.config.grants.clone(),
            room: Room {
                audit: self.audit.clone(),
                env: guest.config.grants.environment().with_context(|| format!("guest `{}`", guest.name))?,
                http,
                state: Some(self.shelf(&guest.config.limits)),
                ..Room::default()
            },
            figures: self.telemetry.of_guest(&guest.name),
            cache: self.cache.cloned(),
        })
    }
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

/// Where a guest's requests may go, and what is added to them.
fn outgoing(guest: &GuestSource, network: &Network, limits: &CallLimits) -> Result<Option<Arc<Http>>> {
    let patterns = http::patterns(&guest.name, &guest.config)?;
    if patterns.is_empty() {
        return Ok(None);
    }
    let secrets = http::secrets(&guest.name, &guest.config)?;
    Ok(Some(Arc::new(Http::new(network, patterns, secrets, limits))))
}

/// Where tasks are kept: in the storage, if that outlives the process and some tool can run as a task.
async fn task_store(registry: &Registry, storage: &Storage, config: &Config) -> Result<Box<dyn Store>> {
    let limits = StoreLimits { count: config.tasks.count, bytes: usize::try_from(config.tasks.bytes.0).unwrap_or(usize::MAX) };
    let serves_tasks = registry.view(&Endpoint::Merged).is_some_and(|view| view.profile.capabilities.tasks);
    if serves_tasks && storage.outlives_process() {
        return Ok(Box::new(KeptStore::open(storage, limits, now_ms()).await?));
    }
    Ok(Box::new(MemoryStore::new(limits)))
}

/// Opens the storage where some guest will use it, so that a storage that does not work is said at the start. A host whose
/// guests save nothing does not touch it.
async fn open_if_needed(storage: &Storage, loaded: &[Arc<Loaded>], config: &Config) -> Result<()> {
    for guest in loaded.iter().filter(|guest| guest.version.uses_state()) {
        keyvalue::forget_departed(storage.open().await?, &guest.name).await?;
    }
    if config.seal.single_use {
        storage.open().await?;
    }
    Ok(())
}

/// Says so where calls that ask their client may come back to another process, which cannot open what this one sealed.
async fn warn_if_shared(storage: &Storage, config: &Config) -> Result<()> {
    let Some(backend) = storage.opened().filter(|_| config.seal.keys.is_empty()) else { return Ok(()) };
    let others = backend.nodes().await?.len().saturating_sub(1);
    if others > 0 {
        tracing::warn!(
            "{others} other process(es) share the storage, and each seals under a random key of its own: if they serve the same clients, give all of them the same `keys` in [seal]"
        );
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
