//! The host: loads guests, puts the dispatcher together, and hands it to the transports.

pub(crate) mod loader;
mod settings;
mod status;
mod stored;

use crate::audit::{Audit, Journal, Refusals};
use crate::auth::{Authenticator, authenticator};
use crate::capability::keyvalue;
use crate::config::admin::{AdminConfig, AuditTo};
use crate::config::{Config, GuestConfig, paths};
use crate::dispatch::Dispatcher;
use crate::guest::{CodeCache, EngineLimits, Engines};
use crate::identity::Departures;
use crate::principals::Requests;
use crate::registry::{Endpoint, Loaded, Registry};
use crate::storage::Storage;
use crate::swap::{self, Component, Swapped, Swaps};
use crate::telemetry::Telemetry;
use crate::transport;
use anyhow::{Context, Result, bail};
use loader::{Loader, Served};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Compiled code that is kept on disk; the oldest goes first.
const CODE_CACHE_BYTES_MAX: u64 = 2 << 30;

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
    pub config: Arc<Config>,
    /// The requests in flight, over all connections.
    pub requests: Requests,
    /// Tells who calls over HTTP, where callers have to prove it.
    pub auth: Option<Box<dyn Authenticator>>,
    /// What loads guests.
    pub(crate) loader: Loader,
    /// The versions of guests, and what becomes of them.
    pub(crate) swaps: Swaps,
    /// Told when sessions are over.
    pub(crate) departures: Departures,
    /// Why guests that were asked for are not served, by name.
    pub(crate) not_served: Mutex<Vec<(String, String)>>,
    started: Instant,
}

impl Host {
    /// Loads the guests and puts them together. A guest that cannot be loaded is reported and left out; it is an error only
    /// if none is left.
    pub async fn start(config: Config, guests: Vec<GuestSource>) -> Result<Self> {
        let engines = Engines::new(EngineLimits { kept_instances: config.limits.instances, ..EngineLimits::default() })
            .context("cannot start the WebAssembly engines")?;
        let cache = code_cache();
        let started_with = guests.len();
        let config = Arc::new(config);
        let departures = Departures::default();
        let storage = Storage::new(&config.storage, config.home.as_deref());
        let loader = Loader {
            engines,
            cache,
            telemetry: Telemetry::default(),
            audit: trail(&config)?,
            sessions: keyvalue::Sessions::new(&storage, &departures),
            network: Arc::default(),
            storage: storage.clone(),
            config: config.clone(),
            commit_locks: Arc::default(),
        };
        let swaps = Swaps::new(&config, guests.clone());
        let Served { loaded, not_served } = loader.all(swaps.active(guests)).await?;
        stored::open_if_needed(&storage, &loaded, &config).await?;
        let registry = Registry::new(&config, loaded, started_with)?;
        let tasks = stored::tasks(&registry, &storage, &config).await?;
        stored::warn_if_shared(&storage, &config).await?;
        let dispatcher = Dispatcher::new(registry, config.seal.sealer()?, &config, tasks, &storage);
        let (requests, auth) = (Requests::of(&config), authenticator(&config.auth));
        let started = Instant::now();
        let shared =
            Arc::new(Shared { dispatcher, config, requests, auth, loader, swaps, departures, not_served: Mutex::new(not_served), started });
        swap::migrate_at_start(&shared).await;
        status::observe(&shared);
        let host = Arc::downgrade(&shared);
        shared.departures.tell(move |session| host.upgrade().iter().for_each(|host| host.dispatcher.end_session(session)));
        Ok(Self { shared })
    }

    /// How it is to be watched.
    pub fn admin_config(&self) -> &AdminConfig {
        &self.shared.config.admin
    }

    /// What is counted.
    pub fn telemetry(&self) -> &Telemetry {
        &self.shared.loader.telemetry
    }

    /// How the host and its guests are, as `guesthouse status` shows it.
    pub fn status(&self) -> serde_json::Value {
        status::of(&self.shared)
    }

    /// Puts another version of a guest in force, if it passes the gate; else nothing has changed, and the error says why.
    pub async fn swap(&self, guest: &str, component: Component) -> Result<Swapped> {
        swap::swap(&self.shared, guest, component).await
    }

    /// Gives a component that passes the gate a share of the calls of a guest's tools: `percent` in a hundred. `Component::Tried` puts
    /// it in force, `Component::Previous` ends the trial.
    pub async fn try_out(&self, guest: &str, file: PathBuf, percent: u8) -> Result<Swapped> {
        swap::try_out(&self.shared, guest, file, percent).await
    }

    /// Serves a guest by another configuration or from another file, or a guest that is new.
    pub async fn configure(&self, guest: GuestSource) -> Result<Swapped> {
        swap::configure(&self.shared, guest).await
    }

    /// Serves a guest no more.
    pub async fn remove(&self, guest: &str) -> Result<()> {
        swap::remove(&self.shared, guest).await
    }

    /// Whether a guest of that name is served.
    pub fn serves(&self, guest: &str) -> bool {
        self.shared.dispatcher.registry().guest(guest).is_some()
    }

    /// Whether a file holds another component than the one that is served. One that cannot be read is another one.
    pub async fn is_other(&self, guest: &str, file: &Path) -> bool {
        swap::is_other(&self.shared, guest, file).await
    }

    /// Keeps the components that are served, so that there is a way back to them.
    pub async fn keep_versions(&self) {
        swap::keep_all(&self.shared).await;
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
        {
            const TOKENS: &str = "tokens in the table [auth] change that (`guesthouse token NAME` makes one)";
            if !address.ip().is_loopback() {
                tracing::warn!("whoever reaches {address} may call; {TOKENS}");
            } else if !self.shared.config.server.hosts.is_empty() {
                tracing::warn!("whoever comes by a name of `server.hosts` may call, and is nobody in particular; {TOKENS}");
            }
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
    let log = Audit::to(Arc::new(Refusals::default()));
    Ok(match config.admin.audit() {
        AuditTo::Nowhere => log,
        AuditTo::Stderr => log.and(Arc::new(Journal::on_stderr()?)),
        AuditTo::File(file) => log.and(Arc::new(Journal::open(&file)?)),
    })
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
