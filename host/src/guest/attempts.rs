//! The runs of one call: once, and again where another call changed what the callback relied on.
//!
//! A callback that conflicts is run again from the top, with the same arguments and the same caller, on another instance:
//! [`OPTIMISTIC_RUNS`] times beside the other calls of the guest, and then while none of them can commit, so that it cannot
//! lose to one. Only another process that shares the storage can still come before it, and it is run some more times for
//! that. One whose version is not the one that the state is for any more goes on with that one. The time of the call, by the clock and on the processor, is the time of all its runs together.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::bindings::types;
use super::calls::PERMIT_WAIT;
use super::commits::Alone;
use super::failure::Failure;
use super::live::{Answer, Live};
use super::outcome::Outcome;
use super::shares::Place;
use super::state::{CallContext, State, Visit};
use super::version::Inner;
use crate::config::grants::InstancePolicy;
use crate::storage::CommitError;

/// Runs of a callback beside those that may conflict with it. Those that follow keep the others from committing.
const OPTIMISTIC_RUNS: u32 = 2;

/// Runs of a callback in all. Each that conflicts was overtaken by somebody who did commit, so that such runs are few.
const RUNS_MAX: u32 = 16;

/// A callback, as it can be run any number of times: it borrows its arguments.
pub(super) type Body<A, T> = for<'a> fn(&'a Inner, &'a A, &'a mut Live) -> BoxFuture<'a, Answer<T>>;

/// Runs a callback until it is done, each time on a fresh instance.
pub(super) async fn run<A, T: Outcome>(version: &Arc<Inner>, mut visit: Visit, arguments: &A, body: Body<A, T>) -> Result<T, Failure> {
    let migrates = visit.migrates();
    let mut version = Arc::clone(version);
    // Of a version that the call was not admitted to: it counts among those that it came with.
    let mut place = None;
    let mut hold = None;
    let mut run = 1;
    loop {
        if run > OPTIMISTIC_RUNS && hold.is_none() {
            hold = Some(version.commit_lock.alone().await);
        }
        let mut live = Live::start(&version, visit).await?;
        let answer = body(&version, arguments, &mut live).await;
        let state = live.store.data_mut();
        let (answer, committed) = match answer {
            Ok(answer) => {
                let committed = commit(&version, state, &answer, hold.as_ref()).await;
                (answer, committed)
            }
            // It may have failed over state that is not for it any more.
            Err(_) if !migrates && state.tx.is_some() && is_superseded(&version, hold.as_ref()).await => {
                visit = again(state)?;
                drop(live);
                (version, place) = succeed(&version, place).await?;
                run += 1;
                continue;
            }
            // The version that it moved to has no such callback.
            Err(Failure::NotExported(_)) if place.is_some() => return Err(Failure::StateConflict),
            Err(failure) => return Err(failure),
        };
        match committed {
            Ok(()) => {
                drop(hold);
                return finish(state, answer).await;
            }
            Err(CommitError::Conflict) if run < RUNS_MAX => visit = again(state)?,
            Err(error) => return Err(error.into()),
        }
        drop(live);
        if version.is_superseded() {
            (version, place) = succeed(&version, place).await?;
        }
        run += 1;
    }
}

/// Begins a call again from the top, if it can be.
fn again(state: &mut State) -> Result<Visit, Failure> {
    if state.went_out() {
        return Err(Failure::StateConflict);
    }
    let mut visit = state.leave();
    visit.run_again();
    Ok(visit)
}

/// The version that a call goes on with whose own cannot commit any more, and a place for an instance of it.
async fn succeed(version: &Inner, place: Option<Place>) -> Result<(Arc<Inner>, Option<Place>), Failure> {
    drop(place);
    let next = version.commit_lock.successor().map(|next| next.inner).ok_or(Failure::StateConflict)?;
    // Where instances live on, a fresh one is not what the call may have.
    if next.instances.keeping.policy != InstancePolicy::Call {
        return Err(Failure::StateConflict);
    }
    let place = timeout(PERMIT_WAIT, next.engines.lobby().place(&next)).await.map_err(|_| Failure::Busy)?;
    Ok((next, Some(place)))
}

/// Runs a callback on an instance that lives on. It is not run again, since what it did to the instance stays done.
pub(super) async fn once<A, T: Outcome>(version: &Inner, live: &mut Live, arguments: &A, body: Body<A, T>) -> Result<T, Failure> {
    let answer = body(version, arguments, live).await;
    let state = live.store.data_mut();
    match answer {
        Ok(answer) => {
            commit(version, state, &answer, None).await?;
            finish(state, answer).await
        }
        Err(_) if state.tx.is_some() && is_superseded(version, None).await => Err(Failure::StateConflict),
        Err(failure) => Err(failure),
    }
}

/// Makes what a callback wrote durable, all of it at once, if the callback has done its work. After a failure, an error of
/// the guest or a question to the client, what it wrote goes with the store, and leaves no trace. Whatever it came to, what
/// it read must have been for its version: while the state is migrated, this waits.
///
/// This is the one place where a transaction is committed, before anybody is told of the call's success. `State` owns it, and
/// most callbacks never open one.
async fn commit<T: Outcome>(
    version: &Inner,
    state: &mut State,
    answer: &Result<T, types::Error>,
    hold: Option<&Alone>,
) -> Result<(), CommitError> {
    let Some(tx) = state.tx.take() else { return Ok(()) };
    let keeps_writes = answer.as_ref().is_ok_and(Outcome::keeps_writes);
    if let Some(migrating) = state.context.as_deref().and_then(CallContext::migrating) {
        if keeps_writes {
            migrating.collect(tx);
        }
        return Ok(());
    }
    let _beside = if hold.is_none() { Some(version.commit_lock.beside().await) } else { None };
    if version.is_superseded() {
        return Err(CommitError::Conflict);
    }
    if keeps_writes { tx.commit().await } else { Ok(()) }
}

/// Whether the state is for a newer version, as soon as nobody is about to replace it.
async fn is_superseded(version: &Inner, hold: Option<&Alone>) -> bool {
    let _beside = if hold.is_none() { Some(version.commit_lock.beside().await) } else { None };
    version.is_superseded()
}

/// Ends a call whose work is committed: sends the progress that was kept back, and announces its changes if it succeeded.
async fn finish<T: Outcome>(state: &mut State, answer: Result<T, types::Error>) -> Result<T, Failure> {
    if let Some((context, progress)) = state.reporting() {
        progress.finish(context).await;
    }
    let outcome = answer.map_err(Failure::Guest)?;
    if outcome.is_complete()
        && let Some(context) = state.context.as_deref_mut()
    {
        std::mem::take(&mut state.changes).send(context);
    }
    Ok(outcome)
}

impl From<CommitError> for Failure {
    fn from(error: CommitError) -> Failure {
        match error {
            CommitError::Conflict => Failure::StateConflict,
            CommitError::Quota(text) | CommitError::Failed(text) => Failure::NotSaved(text),
        }
    }
}
