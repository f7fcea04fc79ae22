//! Hot swap: another version of a guest goes live, and goes back, while clients keep calling.
//!
//! A new version passes the gate first: it is compiled, started, asked for its lists and held against what is granted and what
//! the others serve, all beside the version that is served. Whatever goes wrong until then leaves that one where it is, and is
//! one sentence. Then the snapshot is replaced in one step. Calls in flight end on the version that they began on, which is let
//! go when the last of them has ended.

mod differences;
mod gate;
pub(crate) mod history;
mod migrate;
mod probation;
mod share;
mod start;

use crate::audit::What;
use crate::changes::Lists;
use crate::config::Config;
use crate::guest::clean;
use crate::host::{GuestSource, Shared};
use anyhow::{Context as _, Result, anyhow};
use history::{History, Kept, digest_of};
use serde_json::{Value, json};
pub(crate) use start::migrate_at_start;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::task::spawn_blocking;

/// Longest sentence about a refusal; it may quote the guest.
const REFUSAL_BYTES_MAX: usize = 4 << 10;
/// A guest that comes or goes.
const ALL_LISTS: Lists = Lists { tools: true, prompts: true, resources: true };
/// Characters of a digest that people are shown.
const DIGEST_SHOWN_LEN: usize = 12;

/// Where the component of a new version comes from.
#[derive(Clone, Debug)]
pub enum Component {
    /// A file.
    File(PathBuf),
    /// The version that was served before.
    Previous {
        /// Whether to go back over a change of the guest's state, by putting back what it was before.
        restore_state: bool,
    },
    /// The version that has a share of the calls.
    Tried,
}

/// What a swap did to what a guest has stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Nothing.
    Untouched,
    /// The new version migrated it: so many namespaces.
    Migrated(usize),
    /// It is as it was before the version that was gone back from: so many keys that were written since are lost.
    Restored(usize),
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
    /// Instances whose memory went over, all of it that no call asked for before.
    pub handed_over: usize,
    /// What became of the guest's state.
    pub state: Stored,
    /// How many of a hundred calls of tools go to the version from now on; None for all calls.
    pub percent: Option<u8>,
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
            "percent": self.percent,
            "handed_over": self.handed_over,
            "migrated": if let Stored::Migrated(spaces) = self.state { Some(spaces) } else { None },
            "keys_lost": if let Stored::Restored(keys) = self.state { Some(keys) } else { None },
            "gate_ms": u64::try_from(self.gate_time.as_millis()).unwrap_or(u64::MAX),
            "total_ms": u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// As one line for a person.
    pub fn sentence(&self) -> String {
        let version = |(version, digest): &(String, String)| format!("{version} ({})", short(digest));
        if let Some(percent) = self.percent {
            return format!("{}: {percent} of 100 calls of tools go to {} from now on", self.guest, version(&self.to));
        }
        let from = self.from.as_ref().map_or_else(String::new, |from| format!("{} → ", version(from)));
        let state = match self.state {
            Stored::Untouched => String::new(),
            Stored::Migrated(spaces) => format!("; it migrated {spaces} of the guest's namespaces"),
            Stored::Restored(keys) => format!("; the state is as it was before, and {keys} keys that were written since are lost"),
        };
        format!("{}: {from}{} is live after {} ms{state}", self.guest, version(&self.to), self.time.as_millis())
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
    /// What watches the first calls of the version that is served.
    probation: Mutex<Option<AbortOnDrop>>,
    /// The version that has a share of the calls.
    tried: Mutex<Option<share::Tried>>,
}

/// Ends a task with what it belongs to.
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
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
            if let Some(kept) = History::open(folder, &guest.name, &guest.file, self.versions_max).active(&digest_of(&guest.file)) {
                tracing::info!(guest = %guest.name, "serves the version that was swapped in, until its configured file changes");
                guest.file = kept;
            }
            guest
        };
        guests.into_iter().map(active).collect()
    }

    /// The component that was swapped in for a guest, if that is not the configured one.
    async fn active_file(&self, source: &GuestSource) -> Option<PathBuf> {
        let history = self.history(source).ok()?;
        let file = source.file.clone();
        spawn_blocking(move || history.active(&digest_of(&file))).await.ok().flatten()
    }

    /// Why the last new version of a guest was refused, and when (milliseconds since 1970).
    pub(crate) fn refused(&self, guest: &str) -> Option<(u64, String)> {
        self.slot(guest).and_then(|slot| lock(&slot.refused).clone())
    }

    /// The version of a guest that has a share of its calls, and how many in a hundred.
    pub(crate) fn tried(&self, guest: &str) -> Option<(String, u8)> {
        self.slot(guest).and_then(|slot| share::of(&slot))
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

    /// Refuses what waited for its turn while the guest was taken out.
    fn still(&self, guest: &str, slot: &Arc<Slot>) -> Result<()> {
        let is_there = self.slot(guest).is_some_and(|now| Arc::ptr_eq(&now, slot));
        if is_there { Ok(()) } else { Err(anyhow!("there is no guest called `{guest}` any more")) }
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
        Self {
            source: Mutex::new(source),
            turn: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
            probation: Mutex::default(),
            tried: Mutex::default(),
        }
    }
}

/// Puts another version of a guest in force, if it passes the gate. Otherwise nothing has changed, and the error is a sentence.
pub(crate) async fn swap(host: &Arc<Shared>, guest: &str, component: Component) -> Result<Swapped> {
    let slot = host.swaps.slot(guest).ok_or_else(|| anyhow!("there is no guest called `{guest}`"))?;
    let _turn = slot.turn.lock().await;
    host.swaps.still(guest, &slot)?;
    let source = lock(&slot.source).clone();
    through_the_gate(host, &slot, source, component, Same::Refused).await
}

/// Gives a version that passes the gate a share of the calls of its guest's tools: so many in a hundred.
pub(crate) async fn try_out(host: &Arc<Shared>, guest: &str, file: PathBuf, percent: u8) -> Result<Swapped> {
    let slot = host.swaps.slot(guest).ok_or_else(|| anyhow!("there is no guest called `{guest}`"))?;
    let _turn = slot.turn.lock().await;
    host.swaps.still(guest, &slot)?;
    let source = lock(&slot.source).clone();
    let outcome = share::begin(host, &slot, &source, file, percent).await;
    note_outcome(host, &slot, guest, outcome)
}

/// Goes back from a version, if it is the one that is served, or the one that is tried.
async fn go_back_from(host: &Arc<Shared>, guest: &str, digest: &str) -> Option<Result<Swapped>> {
    let slot = host.swaps.slot(guest)?;
    let _turn = slot.turn.lock().await;
    // Somebody may have been faster.
    host.swaps.still(guest, &slot).ok()?;
    if share::is_tried(&slot, digest) {
        return share::end(host, &slot, guest).map(Ok);
    }
    host.dispatcher.registry().guest(guest).filter(|served| served.version.digest() == digest)?;
    let source = lock(&slot.source).clone();
    Some(through_the_gate(host, &slot, source, Component::Previous { restore_state: false }, Same::Refused).await)
}

/// Serves a guest by another configuration, or a guest that is new.
///
/// If that is refused, the guest is served as before, unless its new table takes back something that it was granted: then it
/// is served no more, since what was taken back must not stay in use because the rest is wrong.
pub(crate) async fn configure(host: &Arc<Shared>, source: GuestSource) -> Result<Swapped> {
    let slot = {
        let mut slots = lock(&host.swaps.slots);
        slots.entry(source.name.clone()).or_insert_with(|| Arc::new(Slot::new(source.clone()))).clone()
    };
    let _turn = slot.turn.lock().await;
    host.swaps.still(&source.name, &slot)?;
    // What was swapped in stays: its configuration is what is new.
    let active = match host.dispatcher.registry().guest(&source.name) {
        Some(_) => host.swaps.active_file(&source).await,
        None => None,
    };
    let component = Component::File(active.unwrap_or_else(|| source.file.clone()));
    let outcome = through_the_gate(host, &slot, source.clone(), component, Same::Loaded).await;
    let takes_back = source.config.takes_back(&lock(&slot.source).config);
    if outcome.is_ok() || takes_back {
        *lock(&slot.source) = source.clone();
    }
    match outcome {
        Err(error) if takes_back && take_out(host, &slot, &source.name, "its new table takes grants back, and is refused")? => {
            Err(error.context("its new table takes grants back and cannot be served, so the guest is served no more"))
        }
        outcome => outcome,
    }
}

/// Serves a guest no more. Its state and its versions are kept.
pub(crate) async fn remove(host: &Arc<Shared>, guest: &str) -> Result<()> {
    let slot = host.swaps.slot(guest).ok_or_else(|| anyhow!("there is no guest called `{guest}`"))?;
    let _turn = slot.turn.lock().await;
    host.swaps.still(guest, &slot)?;
    take_out(host, &slot, guest, "taken out of the configuration")?;
    lock(&host.swaps.slots).remove(guest);
    Ok(())
}

/// Takes a guest out of what is served. Whether it was served.
fn take_out(host: &Arc<Shared>, slot: &Slot, guest: &str, why: &str) -> Result<bool> {
    let old = host.dispatcher.remove(guest)?;
    let was_served = old.is_some();
    if let Some(old) = old {
        host.loader.note(What::Unloaded, guest, why);
        host.dispatcher.tell_swapped(&old.name, ALL_LISTS);
        gate::drain(old);
    }
    *lock(&slot.probation) = None;
    share::end(host, slot, guest);
    Ok(was_served)
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
    let outcome = gate::pass(host, slot, &source, component, same).await;
    note_outcome(host, slot, &guest, outcome)
}

/// Remembers why a version was refused, until one is not.
fn note_outcome(host: &Shared, slot: &Slot, guest: &str, outcome: Result<Swapped>) -> Result<Swapped> {
    match outcome {
        Ok(swapped) => {
            *lock(&slot.refused) = None;
            lock(&host.not_served).retain(|(name, _)| name != guest);
            Ok(swapped)
        }
        Err(error) => {
            let reason = clean(&format!("{error:#}"), REFUSAL_BYTES_MAX);
            *lock(&slot.refused) = Some((now_ms(), reason.clone()));
            host.loader.note(What::Unloaded, guest, &reason);
            Err(error)
        }
    }
}

/// Whether a file holds another component than the one that is served.
pub(crate) async fn is_other(host: &Arc<Shared>, guest: &str, file: &Path) -> bool {
    let file = file.to_owned();
    let found = spawn_blocking(move || digest_of(&file)).await.unwrap_or_default();
    host.dispatcher.registry().guest(guest).is_none_or(|served| served.version.digest() != found)
}

/// Keeps the components of all guests that are served, for a host that can be managed.
pub(crate) async fn keep_all(host: &Arc<Shared>) {
    for served in host.dispatcher.registry().guests() {
        let Some(slot) = host.swaps.slot(&served.name) else { continue };
        let _turn = slot.turn.lock().await;
        let source = lock(&slot.source).clone();
        match host.swaps.history(&source) {
            Ok(mut history) => gate::keep_served(&source, &mut history, served, false).await,
            Err(error) => tracing::warn!(guest = %source.name, "its versions cannot be kept: {error:#}"),
        }
    }
}

/// Says in the log what came of an order, for those who did not give it.
pub(crate) fn log(guest: &str, outcome: &Result<Swapped>) {
    match outcome {
        Ok(swapped) => {
            tracing::info!("{}", swapped.sentence());
            swapped.differences.iter().for_each(|difference| tracing::info!(guest, "{difference}"));
        }
        Err(error) => {
            let reason = clean(&format!("{error:#}"), REFUSAL_BYTES_MAX);
            tracing::error!(guest, "the new version is refused, and the old one serves on: {reason}");
        }
    }
}

/// The beginning of a digest.
fn short(digest: &str) -> &str {
    digest.get(..DIGEST_SHOWN_LEN).unwrap_or(digest)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// No code panics while it holds one of these locks; were it ever to, the value would still be whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
