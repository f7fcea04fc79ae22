//! `guesthouse:mcp/handoff`: instances that write their memory down before they go, and new ones that read it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::allowance::Allowance;
use super::failure::{Failure, Stage};
use super::instances::{Kept, Key, Turn};
use super::live::{Answer, Live};
use super::saved::Saved;
use super::state::Visit;
use super::version::{Inner, Version};
use crate::config::grants::InstancePolicy;

/// Time by the clock that `save` has. Somebody may be waiting for the place of the instance.
const SAVE_WALL_MS_MAX: u64 = 400;
/// Processor time that `save` has.
const SAVE_CPU_MS_MAX: u64 = 200;
/// How long a new version waits for a call that uses an instance of the version before.
const TAKE_OVER_TIME_MAX: Duration = Duration::from_secs(2);

impl Version {
    /// How long its instances live.
    pub fn instance_policy(&self) -> InstancePolicy {
        self.inner.instances.keeping.policy
    }

    /// Instances that are kept now, in use or idle.
    pub fn instances_kept(&self) -> usize {
        self.inner.instances.count()
    }

    /// A session is over: its instance goes, and so does what was saved of it.
    pub fn end_session(&self, session: &Arc<str>) {
        if self.instance_policy() == InstancePolicy::Session {
            self.inner.instances.end(&Some(Arc::clone(session)));
        }
    }

    /// While a version is tried, its instances are dropped after each callback: they must not live on before those of the
    /// version before have given their memory.
    pub(crate) fn set_trial(&self, trial: bool) {
        self.inner.instances.set_trial(trial);
    }

    /// This version comes after that one: its new instances begin with the memory of those, if both know how to.
    pub fn come_after(&self, old: &Version) {
        let (old, new) = (&old.inner, &self.inner);
        let passes_on = new.instances.keeping.policy != InstancePolicy::Call
            && new.instances.keeping.policy == old.instances.keeping.policy
            && old.indices.handoff.is_some()
            && new.indices.handoff.is_some();
        if passes_on {
            new.instances.set_before(Some(Arc::clone(old)));
        }
    }

    /// Takes over what the version before has in memory, and lets that version go. Instances in use are waited for, for some
    /// time; what they have is lost afterwards. How many memories were taken over.
    pub async fn take_over(&self) -> usize {
        let new = &self.inner;
        let Some(old) = new.instances.before() else { return 0 };
        let taken = join_all(old.instances.keys().iter().map(|key| fetch(new, key))).await;
        new.instances.set_before(None);
        taken.into_iter().filter(|taken| *taken).count()
    }
}

/// Fetches one memory from the version before, if it has one: after whatever call uses the instance.
pub(super) async fn fetch(new: &Arc<Inner>, key: &Key) -> bool {
    let Some(old) = new.instances.before() else { return false };
    let wait = tokio::time::timeout(TAKE_OVER_TIME_MAX, old.instances.turn(key.clone()));
    let Ok(Ok(mut turn)) = wait.await else {
        report(new, "an instance of the version before is in use for too long, and its memory is not taken over");
        return false;
    };
    // Whoever has the turn on that slot after this finds nothing, and where to look for it.
    old.instances.set_after(new);
    if let Some(kept) = turn.take() {
        keep_memory(&old, &mut turn, kept).await;
    }
    let Some(saved) = old.instances.take(key) else { return false };
    let fits = new.instances.put(key.clone(), saved);
    if !fits {
        report(new, "the memory that an instance of the version before saved is larger than this one may save");
    }
    fits
}

/// Lets an instance write its memory down, keeps that, and ends the instance.
pub(super) async fn save_and_end(version: &Arc<Inner>, mut turn: Turn, kept: Kept) {
    keep_memory(version, &mut turn, kept).await;
}

async fn keep_memory(version: &Arc<Inner>, turn: &mut Turn, kept: Kept) {
    let problem = match save(version, kept).await {
        // Nobody will come back for it.
        Ok(_) if turn.has_ended() => None,
        Ok(bytes) => {
            let by = version.instances.described.get().cloned().unwrap_or_default();
            let size = bytes.len();
            (!version.instances.put(turn.key(), Saved { by, bytes })).then(|| format!("its {size} bytes are more than may be saved"))
        }
        Err(failure) => Some(failure.to_string()),
    };
    if let Some(problem) = problem {
        report(version, &format!("the memory of an instance is lost: {problem}"));
    }
    // A session that ended in between has nothing to come back to.
    if turn.has_ended() {
        version.instances.take(&turn.key());
    }
}

async fn save(version: &Arc<Inner>, mut kept: Kept) -> Result<Vec<u8>, Failure> {
    let limits = &version.guest.limits;
    let allowance = Allowance::new(limits.wall_ms.min(SAVE_WALL_MS_MAX), limits.cpu_ms.min(SAVE_CPU_MS_MAX));
    let visit = Visit::new(limits, None, allowance.clone());
    let call = {
        let version = Arc::clone(version);
        async move {
            let _running = version.engines.running();
            let mut kept = {
                kept.live.enter(&version, visit);
                kept
            };
            let answer = ask_to_save(&version, &mut kept.live).await?;
            answer.map_err(Failure::Guest)
        }
    };
    version.engines.schedule().run(call, &allowance, &version.turns).await
}

async fn ask_to_save(version: &Inner, live: &mut Live) -> Answer<Vec<u8>> {
    let Some(indices) = &version.indices.handoff else { return Err(Failure::NotExported("handoff")) };
    let guest = indices.load(&mut live.store, &live.instance).map_err(|error| live.fail(&error, Stage::Start))?;
    let answer = guest.call_save(&mut live.store).await;
    live.answered(answer)
}

/// Starts an instance that will be kept, with the memory of the one before it, if that was saved. Where it cannot read that,
/// it begins as a new one.
pub(super) async fn start(version: &Arc<Inner>, key: &Key, visit: Visit) -> Result<Live, Failure> {
    let mut live = Live::start(version, visit).await?;
    let Some(saved) = version.instances.take(key) else { return Ok(live) };
    let problem = match ask_to_restore(version, &mut live, &saved).await {
        Ok(Ok(())) => return Ok(live),
        Ok(Err(error)) => Failure::Guest(error),
        Err(failure) => failure,
    };
    report(version, &format!("a new instance does not take over the memory of the one before: {problem}"));
    let visit = live.leave();
    drop(live);
    Live::start(version, visit).await
}

async fn ask_to_restore(version: &Inner, live: &mut Live, saved: &Saved) -> Answer<()> {
    let Some(indices) = &version.indices.handoff else { return Err(Failure::NotExported("handoff")) };
    // It restores for whoever comes, as `init` does.
    live.store.data_mut().in_callback = false;
    let guest = indices.load(&mut live.store, &live.instance).map_err(|error| live.fail(&error, Stage::Start))?;
    let answer = guest.call_restore(&mut live.store, &saved.by, &saved.bytes).await;
    live.store.data_mut().begin_callback();
    live.answered(answer)
}

fn report(version: &Inner, text: &str) {
    version.guest.log.report(&version.digest, text);
}
