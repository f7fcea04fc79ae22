//! Hot swap: another version of a guest goes live, and goes back, while clients keep calling.
//!
//! A new version passes the gate first: it is compiled, started, asked for its lists and held against what is granted and what
//! the others serve, all beside the version that is served. Whatever goes wrong until then leaves that one where it is, and is
//! one sentence. Then the snapshot is replaced in one step. Calls in flight end on the version that they began on, which is let
//! go when the last of them has ended.

mod differences;
pub(crate) mod history;
mod probation;

use crate::audit::What;
use crate::capability::keyvalue;
use crate::config::Config;
use crate::guest::{clean, read_component};
use crate::host::{GuestSource, Shared};
use crate::registry::Loaded;
use anyhow::{Context as _, Result, anyhow, bail};
use history::{History, Kept, digest};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::sleep;

/// Longest sentence about a refusal; it may quote the guest.
const REFUSAL_BYTES_MAX: usize = 4 << 10;
/// How long an old version has beyond the longest time that a call of it has.
const DRAIN_SLACK: Duration = Duration::from_secs(5);
/// Characters of a digest that people are shown.
const DIGEST_SHOWN_LEN: usize = 12;

/// Where the component of a new version comes from.
#[derive(Clone, Debug)]
pub enum Component {
    /// A file.
    File(PathBuf),
    /// The version that was served before, or the one of this digest.
    Kept(Option<String>),
}

/// What came of a swap.
#[derive(Clone, Debug)]
pub struct Swapped {
    /// The guest.
    pub guest: String,
    /// The version before: what it calls itself, and its digest; none for a guest that is new.
    pub from: Option<(String, String)>,
    /// The version that is served now.
    pub to: (String, String),
    /// How the tools differ, in sentences.
    pub differences: Vec<String>,
    /// Instances whose memory went over.
    pub handed_over: usize,
    /// How long reading, compiling and starting took.
    pub gate_time: Duration,
    /// How long all of it took.
    pub time: Duration,
}

impl Swapped {
    /// As JSON, for the admin socket.
    pub fn to_json(&self) -> Value {
        let version = |(version, digest): &(String, String)| json!({ "version": version, "digest": digest });
        json!({
            "sentence": self.sentence(),
            "guest": self.guest,
            "from": self.from.as_ref().map(version),
            "to": version(&self.to),
            "differences": self.differences,
            "handed_over": self.handed_over,
            "gate_ms": u64::try_from(self.gate_time.as_millis()).unwrap_or(u64::MAX),
            "total_ms": u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// As one line for a person.
    pub fn sentence(&self) -> String {
        let version = |(version, digest): &(String, String)| format!("{version} ({})", short(digest));
        let from = self.from.as_ref().map_or_else(String::new, |from| format!("{} → ", version(from)));
        format!("{}: {from}{} is live after {} ms", self.guest, version(&self.to), self.time.as_millis())
    }
}

/// The guests of a host and their versions.
pub(crate) struct Swaps {
    folder: Option<PathBuf>,
    /// Stands in for the folder where nothing outlives the process; made when it is needed.
    temporary: Mutex<Option<Arc<tempfile::TempDir>>>,
    versions_max: usize,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

/// One guest's place.
struct Slot {
    /// What the configuration says of it.
    source: Mutex<GuestSource>,
    /// Held during a swap: one at a time.
    turn: tokio::sync::Mutex<()>,
    /// Why the last new version was refused, and when.
    refused: Mutex<Option<(u64, String)>>,
}

impl Swaps {
    pub(crate) fn new(config: &Config, guests: Vec<GuestSource>) -> Self {
        let slots = guests.into_iter().map(|guest| (guest.name.clone(), Arc::new(Slot::new(guest)))).collect();
        Self { folder: config.versions_folder(), temporary: Mutex::default(), versions_max: config.swap.versions, slots: Mutex::new(slots) }
    }

    /// What is to be loaded at a start: of each guest the version that was in force when the host stopped.
    pub(crate) fn active(&self, guests: Vec<GuestSource>) -> Vec<GuestSource> {
        let Some(folder) = &self.folder else { return guests };
        let active = |mut guest: GuestSource| {
            // A file that cannot be read is for the loader to say.
            let configured = std::fs::read(&guest.file).map(|bytes| digest(&bytes)).unwrap_or_default();
            if let Some(kept) = History::open(folder, &guest.name, &guest.file, self.versions_max).active(&configured) {
                tracing::info!(guest = %guest.name, "serves the version that was swapped in, until its configured file changes");
                guest.file = kept;
            }
            guest
        };
        guests.into_iter().map(active).collect()
    }

    /// Why the last new version of a guest was refused, and when (milliseconds since 1970).
    pub(crate) fn refused(&self, guest: &str) -> Option<(u64, String)> {
        self.slot(guest).and_then(|slot| lock(&slot.refused).clone())
    }

    /// The versions of a guest that are kept.
    pub(crate) fn kept(&self, guest: &str) -> Vec<Kept> {
        let Some(slot) = self.slot(guest) else { return Vec::new() };
        let source = lock(&slot.source).clone();
        self.history(&source).map(|history| history.versions().to_vec()).unwrap_or_default()
    }

    fn slot(&self, guest: &str) -> Option<Arc<Slot>> {
        lock(&self.slots).get(guest).cloned()
    }

    fn history(&self, source: &GuestSource) -> Result<History> {
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => {
                let mut temporary = lock(&self.temporary);
                let made = match &*temporary {
                    Some(made) => made.clone(),
                    None => temporary.insert(Arc::new(tempfile::tempdir().context("cannot make a folder for versions")?)).clone(),
                };
                made.path().to_owned()
            }
        };
        Ok(History::open(&folder, &source.name, &source.file, self.versions_max))
    }
}

impl Slot {
    fn new(source: GuestSource) -> Self {
        Self { source: Mutex::new(source), turn: tokio::sync::Mutex::default(), refused: Mutex::default() }
    }
}

/// Puts another version of a guest in force, if it passes the gate. Otherwise nothing has changed, and the error is a sentence.
pub(crate) async fn swap(host: &Arc<Shared>, guest: &str, component: Component) -> Result<Swapped> {
    let slot = host.swaps.slot(guest).ok_or_else(|| anyhow!("there is no guest called `{guest}`"))?;
    let _turn = slot.turn.lock().await;
    let source = lock(&slot.source).clone();
    through_the_gate(host, &slot, source, component, Same::Refused).await
}

/// Serves a guest by another configuration, or a guest that is new.
pub(crate) async fn configure(host: &Arc<Shared>, source: GuestSource) -> Result<Swapped> {
    let slot = {
        let mut slots = lock(&host.swaps.slots);
        slots.entry(source.name.clone()).or_insert_with(|| Arc::new(Slot::new(source.clone()))).clone()
    };
    let _turn = slot.turn.lock().await;
    let component = Component::File(source.file.clone());
    let swapped = through_the_gate(host, &slot, source.clone(), component, Same::Loaded).await?;
    *lock(&slot.source) = source;
    Ok(swapped)
}

/// Serves a guest no more. Its state and its versions are kept.
pub(crate) async fn remove(host: &Arc<Shared>, guest: &str) -> Result<()> {
    let slot = host.swaps.slot(guest).ok_or_else(|| anyhow!("there is no guest called `{guest}`"))?;
    let _turn = slot.turn.lock().await;
    if let Some(old) = host.dispatcher.remove(guest)? {
        host.loader.note(What::Unloaded, guest, "taken out of the configuration");
        let all = crate::changes::Lists { tools: true, prompts: true, resources: true };
        host.dispatcher.tell_swapped(&old.name, all);
        drain(old);
    }
    lock(&host.swaps.slots).remove(guest);
    Ok(())
}

/// What to do about a component that is served already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Same {
    Refused,
    /// Something else about the guest has changed.
    Loaded,
}

async fn through_the_gate(host: &Arc<Shared>, slot: &Slot, source: GuestSource, component: Component, same: Same) -> Result<Swapped> {
    let guest = source.name.clone();
    match gate_and_swap(host, &source, component, same).await {
        Ok(swapped) => {
            *lock(&slot.refused) = None;
            lock_not_served(host).retain(|(name, _)| *name != guest);
            tracing::info!("{}", swapped.sentence());
            swapped.differences.iter().for_each(|difference| tracing::info!(guest, "{difference}"));
            Ok(swapped)
        }
        Err(error) => {
            let reason = clean(&format!("{error:#}"), REFUSAL_BYTES_MAX);
            *lock(&slot.refused) = Some((now_ms(), reason.clone()));
            host.loader.note(What::Unloaded, &guest, &reason);
            tracing::error!(guest, "the new version is refused, and the old one serves on: {reason}");
            Err(error)
        }
    }
}

async fn gate_and_swap(host: &Arc<Shared>, source: &GuestSource, component: Component, same: Same) -> Result<Swapped> {
    let began = Instant::now();
    let mut history = host.swaps.history(source)?;
    let GuestSource { name, config, .. } = source;
    let (goes_back, file) = match component {
        Component::File(file) => (false, file),
        Component::Kept(None) => {
            let (previous, migrated) = history.previous().ok_or_else(|| anyhow!("no version before the one that is served is kept"))?;
            if migrated {
                bail!("the version that is served changed the guest's state when it came, and the one before may not understand it");
            }
            (true, history.component(&previous.digest))
        }
        Component::Kept(Some(digest)) => (false, history.component(&digest)),
    };
    let read = file.clone();
    let bytes = tokio::task::spawn_blocking(move || read_component(&read)).await.context("reading stopped unexpectedly")??;
    let new_digest = digest(&bytes);
    let served = host.dispatcher.registry().guest(name).cloned();
    if same == Same::Refused && served.as_ref().is_some_and(|served| served.version.digest() == new_digest) {
        bail!("{} is the version that is served already", file.display());
    }
    if let Some(served) = &served {
        keep_served(source, &mut history, served).await;
    }
    let new = Arc::new(host.loader.bytes(name, &file.display().to_string(), bytes.clone(), config).await?);
    if new.version.uses_state() {
        keyvalue::forget_departed(host.loader.storage.open().await?, name).await?;
    }
    let gate_time = began.elapsed();
    let old = host.dispatcher.swap(new.clone()).context("the new version does not fit beside the other guests")?;
    host.loader.note(What::Loaded, name, new.version.digest());
    let handed_over = match &old {
        Some(old) => hand_over(old, &new).await,
        None => 0,
    };
    let configured = configured_digest(source).await;
    if goes_back {
        history.drop_last();
    }
    let kept = Kept { digest: new_digest, version: new.info.version.clone(), since_ms: now_ms(), migrated: false };
    if let Err(error) = history.put(&configured, kept, &bytes) {
        tracing::warn!(guest = %name, "the version is served, and will not be after a restart: {error:#}");
    }
    let version = |guest: &Loaded| (guest.info.version.clone(), guest.version.digest().to_owned());
    let (mut from, mut differences) = (None, Vec::new());
    let differ = match &old {
        Some(old) => {
            from = Some(version(old));
            differences = differences::of_tools(old, &new);
            differences::lists(old, &new)
        }
        None => crate::changes::Lists { tools: true, prompts: true, resources: true },
    };
    host.dispatcher.tell_swapped(&new.name, differ);
    if let Some(old) = old {
        if !goes_back {
            probation::begin(host, &old, &new);
        }
        drain(old);
    }
    Ok(Swapped { guest: name.clone(), from, to: version(&new), differences, handed_over, gate_time, time: began.elapsed() })
}

/// Passes the memory of kept instances on, where both versions can; the others begin anew.
async fn hand_over(old: &Loaded, new: &Loaded) -> usize {
    let saved = old.version.hand_over().await;
    let count = if new.version.exports().handoff { saved.len() } else { 0 };
    new.version.adopt(saved);
    count
}

/// Keeps the component that is served, if it is not kept yet, so that there is a way back to it.
async fn keep_served(source: &GuestSource, history: &mut History, served: &Loaded) {
    let served_digest = served.version.digest();
    if history.versions().last().is_some_and(|kept| kept.digest == served_digest) {
        return;
    }
    let file = source.file.clone();
    let bytes = tokio::task::spawn_blocking(move || read_component(&file)).await.ok().and_then(Result::ok).unwrap_or_default();
    let configured = digest(&bytes);
    let kept = if configured == served_digest {
        let kept = Kept { digest: configured.clone(), version: served.info.version.clone(), since_ms: now_ms(), migrated: false };
        history.put(&configured, kept, &bytes)
    } else {
        Err(anyhow!("its file has changed since it was loaded"))
    };
    if let Err(error) = kept {
        tracing::warn!(guest = %source.name, "the version that is served is not kept, so there is no way back to it: {error:#}");
    }
}

/// Whether a file holds another component than the one that is served.
pub(crate) async fn is_other(host: &Arc<Shared>, guest: &str, file: &Path) -> bool {
    let file = file.to_owned();
    let read = tokio::task::spawn_blocking(move || std::fs::read(file).map(|bytes| digest(&bytes)));
    let found = read.await.ok().and_then(Result::ok);
    let served = host.dispatcher.registry().guest(guest).map(|served| served.version.digest().to_owned());
    found.is_none() || found != served
}

/// Keeps the components of all guests that are served, for a host that can be managed.
pub(crate) async fn keep_all(host: &Arc<Shared>) {
    for served in host.dispatcher.registry().guests() {
        let Some(slot) = host.swaps.slot(&served.name) else { continue };
        let _turn = slot.turn.lock().await;
        let source = lock(&slot.source).clone();
        match host.swaps.history(&source) {
            Ok(mut history) => keep_served(&source, &mut history, served).await,
            Err(error) => tracing::warn!(guest = %source.name, "its versions cannot be kept: {error:#}"),
        }
    }
}

/// What the configured file holds now; nothing, if it cannot be read.
async fn configured_digest(source: &GuestSource) -> String {
    let file = source.file.clone();
    let read = tokio::task::spawn_blocking(move || std::fs::read(file).map(|bytes| digest(&bytes)));
    read.await.ok().and_then(Result::ok).unwrap_or_default()
}

/// Lets an old version go. Whatever runs on it keeps it until it ends; what has not ended when its longest call must have is
/// stopped.
fn drain(old: Arc<Loaded>) {
    let limits = old.version.limits();
    let longest = Duration::from_millis(limits.wall_ms.max(limits.task_wall_ms)).saturating_add(DRAIN_SLACK);
    let version = old.version.downgrade();
    drop(old);
    tokio::spawn(async move {
        sleep(longest).await;
        if let Some(version) = version.upgrade() {
            version.report("calls of a version that was replaced have had their time, and are stopped");
            version.stop();
        }
    });
}

/// The beginning of a digest.
fn short(digest: &str) -> &str {
    digest.get(..DIGEST_SHOWN_LEN).unwrap_or(digest)
}

fn lock_not_served(host: &Shared) -> MutexGuard<'_, Vec<(String, String)>> {
    lock(&host.not_served)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// No code panics while it holds one of these locks; were it ever to, the value would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
