//! The gate that a new version passes, and the step that puts it in force.

use super::history::{History, Kept, digest, digest_of};
use super::migrate::{self, Change};
use super::{ALL_LISTS, Component, Same, Slot, Stored, Swapped, differences, lock, now_ms, probation, share};
use crate::audit::What;
use crate::capability::keyvalue;
use crate::guest::read_component;
use crate::host::{GuestSource, Shared};
use crate::registry::Loaded;
use anyhow::{Context as _, Result, anyhow, bail};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How long an old version has beyond the longest time that a call of it has.
const DRAIN_SLACK: Duration = Duration::from_secs(5);
/// Said of a thread that is gone, which should never be read.
const STOPPED: &str = "reading stopped unexpectedly";

/// Which component is to be put in force, and how it came to that.
struct Wanted {
    file: PathBuf,
    /// The version that is gone back to, and whether the state is to be put back with it.
    back: Option<(Kept, bool)>,
}

/// What passed the gate.
pub(super) struct Passed {
    pub(super) new: Arc<Loaded>,
    pub(super) bytes: Vec<u8>,
    back: Option<(Kept, bool)>,
}

/// Puts a component in force, or says why not. The slot's turn is held.
pub(super) async fn pass(host: &Arc<Shared>, slot: &Slot, source: &GuestSource, component: Component, same: Same) -> Result<Swapped> {
    let began = Instant::now();
    let name = &source.name;
    // What is tried is not in force: to go back is to end the trial.
    if matches!(component, Component::Previous { .. })
        && let Some(ended) = share::end(host, slot, name)
    {
        return Ok(ended);
    }
    let mut history = host.swaps.history(source)?;
    let served = host.dispatcher.registry().guest(name).cloned();
    if let Some(served) = &served {
        keep_served(source, &mut history, served, false).await;
    }
    let Passed { new, bytes, back } = check(host, slot, source, &history, component, same, served.as_deref()).await?;
    let change = change_of(host, served.as_deref(), &new, back.as_ref()).await?;
    let gate_time = began.elapsed();
    let old = put_in_force(host, &new, served.as_deref(), change.as_ref()).await?;
    let state = match change {
        Some(change) => change.done(&new.version),
        None => Stored::Untouched,
    };
    host.loader.note(What::Loaded, name, new.version.digest());
    let differ = old.as_ref().map_or(ALL_LISTS, |old| differences::lists(old, &new));
    host.dispatcher.tell_swapped(&new.name, differ);
    share::end(host, slot, name);
    let handed_over = new.version.take_over().await;
    remember(host, source, &mut history, &new, &bytes, back.as_ref(), state).await;
    let version = |guest: &Loaded| (guest.info.version.clone(), guest.version.digest().to_owned());
    let (mut from, mut differences) = (None, Vec::new());
    // What watched the version before has nothing to watch any more.
    *lock(&slot.probation) = None;
    if let Some(old) = old {
        from = Some(version(&old));
        differences = differences::of_tools(&old, &new);
        differences.extend(differences::of_grants(old.version.grants(), new.version.grants()));
        if back.is_none() && state == Stored::Untouched && old.version.digest() != new.version.digest() {
            *lock(&slot.probation) = probation::begin(host, &old, &new);
        }
        drain(old);
    }
    let (guest, to, percent) = (name.clone(), version(&new), None);
    Ok(Swapped { guest, from, to, differences, handed_over, state, percent, gate_time, time: began.elapsed() })
}

/// Compiles a component, starts it, asks for its lists, and looks whether all of it fits. Nothing is changed by this.
pub(super) async fn check(
    host: &Shared,
    slot: &Slot,
    source: &GuestSource,
    history: &History,
    component: Component,
    same: Same,
    served: Option<&Loaded>,
) -> Result<Passed> {
    let GuestSource { name, config, .. } = source;
    let Wanted { file, back } = match component {
        Component::File(file) => Wanted { file, back: None },
        Component::Previous { restore_state } => wanted_back(host, name, history, restore_state).await?,
        Component::Tried => {
            let (new, bytes) = share::passed(slot).ok_or_else(|| anyhow!("no version of guest `{name}` has a share of its calls"))?;
            host.dispatcher.registry().check(&host.config, &new).context("the new version does not fit beside the other guests")?;
            return Ok(Passed { new, bytes, back: None });
        }
    };
    let shown = file.display().to_string();
    let bytes = spawn_blocking(move || read_component(&file)).await.context(STOPPED)??;
    if back.as_ref().is_some_and(|(kept, _)| kept.digest != digest(&bytes)) {
        bail!("{shown} is not what was kept there; put the version in force with `guesthouse swap`");
    }
    if same == Same::Refused && served.is_some_and(|served| served.version.digest() == digest(&bytes)) {
        bail!("{shown} is the version that is served already");
    }
    let new = Arc::new(host.loader.bytes(name, &shown, bytes.clone(), config).await?);
    if new.version.uses_state() {
        keyvalue::forget_departed(host.loader.storage.open().await?, name).await?;
    }
    // At a start the rest is served; what is served already is not to become less by an oversight.
    let known = |said: &String| served.is_some_and(|served| served.left_out.iter().any(|(_, known)| known == said));
    if let Some((_, said)) = new.left_out.iter().find(|(_, said)| !known(said)) {
        bail!("{shown}: {said}");
    }
    host.dispatcher.registry().check(&host.config, &new).context("the new version does not fit beside the other guests")?;
    Ok(Passed { new, bytes, back })
}

/// The version before the one that is served, if one can go back to it.
async fn wanted_back(host: &Shared, guest: &str, history: &History, restore_state: bool) -> Result<Wanted> {
    let (previous, migrated) = history.previous().ok_or_else(|| anyhow!("no version before the one that is served is kept"))?;
    if migrated && !restore_state {
        let since = migrate::written_since(host, guest, &previous.digest).await?;
        bail!(
            "the version that is served migrated the guest's state, which the one before may not understand; --restore-state puts \
             the state back as it was then, and loses the {since} keys that were written since"
        );
    }
    Ok(Wanted { file: history.component(&previous.digest), back: Some((previous.clone(), migrated)) })
}

/// What is to become of the guest's state, ready to be carried out.
async fn change_of(host: &Shared, served: Option<&Loaded>, new: &Loaded, back: Option<&(Kept, bool)>) -> Result<Option<Change>> {
    match (served, back) {
        (Some(old), None) => migrate::prepare(host, migrate::Before::of(old), new).await,
        (_, Some((previous, true))) => migrate::restoration(host, new, &previous.digest).await.map(Some),
        (None, None) | (_, Some((_, false))) => Ok(None),
    }
}

/// The step itself.
async fn put_in_force(host: &Shared, new: &Arc<Loaded>, served: Option<&Loaded>, change: Option<&Change>) -> Result<Option<Arc<Loaded>>> {
    if let Some(change) = change {
        change.commit(host).await?;
    }
    if let Some(old) = served {
        new.version.come_after(&old.version);
    }
    match host.dispatcher.swap(new.clone()) {
        Ok(old) => Ok(old),
        Err(error) => {
            // Another guest took a name since the look.
            if let Some(change) = change {
                change.undo(host).await?;
            }
            Err(error.context("the new version does not fit beside the other guests"))
        }
    }
}

/// Notes which version is served, for a restart and for the way back.
async fn remember(
    host: &Shared,
    source: &GuestSource,
    history: &mut History,
    new: &Loaded,
    bytes: &[u8],
    back: Option<&(Kept, bool)>,
    state: Stored,
) {
    let file = source.file.clone();
    let configured = spawn_blocking(move || digest_of(&file)).await.unwrap_or_default();
    if back.is_some() {
        history.drop_last();
    }
    let kept = Kept {
        digest: new.version.digest().to_owned(),
        version: new.info.version.clone(),
        since_ms: now_ms(),
        // Going back does not undo how the version came that is gone back to.
        migrated: back.map_or(matches!(state, Stored::Migrated(_)), |(previous, _)| previous.migrated),
    };
    match history.put(&configured, kept, bytes) {
        Ok(gone) => {
            for kept in gone {
                migrate::forget(host, &source.name, &kept.digest).await;
            }
        }
        Err(error) => tracing::warn!(guest = %source.name, "the version is served, and will not be after a restart: {error:#}"),
    }
}

/// Keeps the component that is served, if it is not kept yet, so that there is a way back to it.
pub(super) async fn keep_served(source: &GuestSource, history: &mut History, served: &Loaded, migrated: bool) {
    let served_digest = served.version.digest();
    if history.versions().last().is_some_and(|kept| kept.digest == served_digest) {
        return;
    }
    let file = source.file.clone();
    let bytes = spawn_blocking(move || read_component(&file)).await.ok().and_then(Result::ok).unwrap_or_default();
    let configured = digest(&bytes);
    let kept = if configured == served_digest {
        let kept = Kept { digest: configured.clone(), version: served.info.version.clone(), since_ms: now_ms(), migrated };
        history.put(&configured, kept, &bytes).map(drop)
    } else {
        Err(anyhow!("its file has changed since it was loaded"))
    };
    if let Err(error) = kept {
        tracing::warn!(guest = %source.name, "the version that is served is not kept, so there is no way back to it: {error:#}");
    }
}

/// Lets an old version go. Whatever runs on it keeps it until it ends; what has not ended when its longest call must have is
/// stopped.
pub(super) fn drain(old: Arc<Loaded>) {
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
