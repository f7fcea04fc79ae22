//! The runs of one call: once, and again where another call changed what the callback relied on.
//!
//! A callback that conflicts is run again from the top, with the same arguments and the same caller, on another instance:
//! [`OPTIMISTIC_RUNS`] times beside the other calls of the guest, and then while none of them can commit, so that it cannot
//! lose to one. Only another process that shares the storage can still come before it, and it is run some more times for
//! that. The time of the call, by the clock and on the processor, is the time of all its runs together.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::OwnedRwLockWriteGuard;

use super::bindings::types;
use super::failure::Failure;
use super::live::{Answer, Live};
use super::outcome::Outcome;
use super::state::{State, Visit};
use super::version::Inner;
use crate::storage::CommitError;

/// Runs of a callback beside those that may conflict with it. Those that follow keep the others from committing.
const OPTIMISTIC_RUNS: u32 = 2;

/// Runs of a callback in all. Each that conflicts was overtaken by somebody who did commit, so that such runs are few.
const RUNS_MAX: u32 = 16;

/// A callback, as it can be run any number of times: it borrows its arguments.
pub(super) type Body<A, T> = for<'a> fn(&'a Inner, &'a A, &'a mut Live) -> BoxFuture<'a, Answer<T>>;

/// Keeps every other call of the guest from committing.
type Hold = OwnedRwLockWriteGuard<()>;

/// Runs a callback until it is done, each time on a fresh instance.
pub(super) async fn run<A, T: Outcome>(version: &Arc<Inner>, mut visit: Visit, arguments: &A, body: Body<A, T>) -> Result<T, Failure> {
    let mut run = 1;
    let mut hold = None;
    loop {
        if run > OPTIMISTIC_RUNS && hold.is_none() {
            // In order of asking.
            hold = Some(Arc::clone(&version.commit_lock).write_owned().await);
        }
        let mut live = Live::start(version, visit).await?;
        let answer = body(version, arguments, &mut live).await?;
        let state = live.store.data_mut();
        match commit(version, state, &answer, hold.as_ref()).await {
            Ok(()) => {
                drop(hold);
                return finish(state, answer).await;
            }
            Err(CommitError::Conflict) if run < RUNS_MAX && !state.went_out() => {
                visit = state.leave();
                visit.run_again();
            }
            Err(error) => return Err(error.into()),
        }
        run += 1;
    }
}

/// Runs a callback on an instance that lives on. It is not run again, since what it did to the instance stays done.
pub(super) async fn once<A, T: Outcome>(version: &Inner, live: &mut Live, arguments: &A, body: Body<A, T>) -> Result<T, Failure> {
    let answer = body(version, arguments, live).await?;
    let state = live.store.data_mut();
    commit(version, state, &answer, None).await?;
    finish(state, answer).await
}

/// Makes what a callback wrote durable, all of it at once, if the callback has done its work. After a failure, an error of
/// the guest or a question to the client, what it wrote goes with the store, and leaves no trace.
///
/// This is the one place where a transaction is committed, before anybody is told of the call's success. `State` owns it, and
/// most callbacks never open one.
async fn commit<T: Outcome>(
    version: &Inner,
    state: &mut State,
    answer: &Result<T, types::Error>,
    hold: Option<&Hold>,
) -> Result<(), CommitError> {
    let Some(tx) = state.tx.take() else { return Ok(()) };
    if !answer.as_ref().is_ok_and(Outcome::keeps_writes) {
        return Ok(());
    }
    // Many commit at once, and wait for the disk together; only not while one must not lose.
    let _beside = if hold.is_none() { Some(version.commit_lock.read().await) } else { None };
    tx.commit().await
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
