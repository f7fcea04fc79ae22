//! A call on an instance that is kept: its turn, the instance or a new one, one run, and the way back.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use super::allowance::Allowance;
use super::attempts::{self, Body};
use super::calls::PERMIT_WAIT;
use super::failure::Failure;
use super::handoff;
use super::instances::{Kept, Key, Turn};
use super::lobby::Held;
use super::outcome::Outcome;
use super::state::Visit;
use super::version::Inner;
use crate::principals::Share;

/// What a call finds when it has the turn.
enum Found {
    Instance(Kept),
    /// Nothing but the right to keep one.
    Room(Held),
}

/// Runs a callback on the instance that is kept for a key; the caller's share is held from before its wait. Whatever goes wrong
/// beyond an error of the guest's own, a dropped future among it, destroys the instance.
pub(super) async fn run<A, T>(
    version: &Arc<Inner>,
    (key, own): (Key, Option<Share>),
    visit: impl FnOnce(&Allowance) -> Visit,
    allowance: Option<Allowance>,
    arguments: A,
    body: Body<A, T>,
) -> Result<T, Failure>
where
    A: Send + Sync + 'static,
    T: Outcome + Send + Sync + 'static,
{
    let (version, permit, turn, found) = find(version, key).await?;
    // The time of the call begins now, after its wait for the turn.
    let allowance = allowance.unwrap_or_else(|| Allowance::of_call(&version.guest.limits));
    let visit = visit(&allowance);
    let call = {
        let version = Arc::clone(&version);
        async move {
            // These go last, after the instance.
            let _alive = (permit, own, version.engines.running());
            let mut kept = match found {
                Found::Instance(mut kept) => {
                    kept.live.enter(&version, visit);
                    kept
                }
                Found::Room(held) => Kept { live: handoff::start(&version, &turn.key(), visit).await?, _held: held },
            };
            let answer = attempts::once(&version, &mut kept.live, &arguments, body).await;
            // Only a guest that ended its callback itself is in a state that it knows of.
            let stays = matches!(answer, Ok(_) | Err(Failure::Guest(_)));
            kept.live.leave();
            Ok((answer, stays.then_some((turn, kept))))
        }
    };
    let (answer, stays) = tokio::select! {
        biased;
        outcome = version.engines.schedule().run(call, &allowance, &version.turns) => outcome?,
        () = version.stopped.cancelled() => return Err(Failure::Deadline),
    };
    // Here, and not on the threads for long calls: what follows is the host's.
    if let Some((turn, kept)) = stays {
        turn.keep(&version, kept);
    }
    answer
}

/// Waits for the turn on the instance of a key, where its memory is now: on this version or on one after it.
async fn find(version: &Arc<Inner>, key: Key) -> Result<(Arc<Inner>, OwnedSemaphorePermit, Turn, Found), Failure> {
    let mut version = Arc::clone(version);
    loop {
        let mut turn = version.instances.turn(key.clone()).await?;
        let (permit, found) = tokio::time::timeout(PERMIT_WAIT, admit(&version, &mut turn)).await.map_err(|_| Failure::Busy)??;
        if let Found::Room(_) = found {
            let policy = version.instances.keeping.policy;
            if let Some(next) = version.instances.after().filter(|next| next.instances.keeping.policy == policy) {
                version = next;
                continue;
            }
            handoff::fetch(&version, &key).await;
        }
        return Ok((version, permit, turn, found));
    }
}

/// Lets a call that has its turn begin.
async fn admit(version: &Arc<Inner>, turn: &mut Turn) -> Result<(OwnedSemaphorePermit, Found), Failure> {
    let permit = Arc::clone(&version.permits).acquire_owned().await.map_err(|_| Failure::Busy)?;
    // Taken only now: a call that finds no permit must not cost the instance.
    let found = match turn.take() {
        Some(kept) => Found::Instance(kept),
        None => Found::Room(version.engines.lobby().reserve(version).await),
    };
    Ok((permit, found))
}
