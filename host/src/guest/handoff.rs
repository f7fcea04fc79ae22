//! `guesthouse:mcp/handoff`: instances that write their memory down before they go, and new ones that read it.

use std::sync::Arc;

use super::allowance::Allowance;
use super::failure::{Failure, Stage};
use super::instances::{Kept, Key, Turn};
use super::live::{Answer, Live};
use super::lobby::Whose;
use super::saved::Saved;
use super::state::Visit;
use super::version::{Inner, Version};
use crate::config::grants::InstancePolicy;

/// Time by the clock that `save` has. Somebody may be waiting for the place of the instance.
const SAVE_WALL_MS_MAX: u64 = 400;
/// Processor time that `save` has.
const SAVE_CPU_MS_MAX: u64 = 200;

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

    /// Makes the idle instances write down their memory and go, and gives what they wrote, with what earlier ones wrote that
    /// were not called since. For the version after this one; instances in use are left to their calls.
    pub async fn hand_over(&self) -> Vec<(Key, Saved)> {
        let lobby = self.inner.engines.lobby();
        while lobby.evict(Whose::Guest(self.inner.instances.guest())).await {}
        self.inner.instances.take_all()
    }

    /// Takes over the memory of the version before. The instances that are made from now on read it.
    pub fn adopt(&self, saved: Vec<(Key, Saved)>) {
        if self.inner.indices.handoff.is_none() {
            return;
        }
        for (key, saved) in saved {
            // One for the session and one for everybody are not the same, and no instance will ask for the other.
            let policy = if key.is_some() { InstancePolicy::Session } else { InstancePolicy::Shared };
            if policy == self.instance_policy() && !self.inner.instances.put(key, saved) {
                self.report("the memory that an instance of the version before saved is larger than this one may save");
            }
        }
    }
}

/// Lets an instance write its memory down, keeps that, and ends the instance.
pub(super) async fn save_and_end(version: &Arc<Inner>, turn: Turn, kept: Kept) {
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
