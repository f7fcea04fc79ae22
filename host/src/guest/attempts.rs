//! The runs of one call: once, and again where another call changed what the callback relied on.
//!
//! A callback that conflicts is run again from the top, with the same arguments and the same caller, on another instance:
//! [`OPTIMISTIC_RUNS`] times beside the other calls of the guest, and then once more while none of them can commit, so that
//! it cannot lose to one. The time of the call, by the clock and on the processor, is the time of all its runs together.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::OwnedMutexGuard;

use super::bindings::types;
use super::failure::Failure;
use super::live::{Answer, Live};
use super::outcome::Outcome;
use super::state::{State, Visit};
use super::version::Inner;

/// Runs of a callback beside those that may conflict with it. One more follows, which keeps the others from committing.
const OPTIMISTIC_RUNS: u32 = 2;

/// A callback, as it can be run any number of times: it borrows its arguments.
pub(super) type Body<A, T> = for<'a> fn(&'a Inner, &'a A, &'a mut Live) -> BoxFuture<'a, Answer<T>>;

/// The right to commit: nobody else commits for this guest meanwhile.
pub(crate) type Hold = OwnedMutexGuard<()>;

/// Why what a callback wrote was not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(dead_code, reason = "transactions come with the storage of guests' state")]
pub(crate) enum CommitError {
    /// Something that the callback had read is not as it was.
    Conflict,
    /// The guest would keep more than it may; the text says what, for the log.
    Quota(String),
    /// The storage failed; for the log.
    Failed(String),
}

/// Runs a callback until it is done, each time on a fresh instance.
pub(super) async fn run<A, T: Outcome>(version: &Arc<Inner>, mut visit: Visit, arguments: &A, body: Body<A, T>) -> Result<T, Failure> {
    let mut run = 1;
    loop {
        let hold = if run > OPTIMISTIC_RUNS { Some(hold(version).await) } else { None };
        let may_lose = hold.is_none();
        let mut live = Live::start(version, visit).await?;
        let answer = body(version, arguments, &mut live).await?;
        let state = live.store.data_mut();
        match commit(version, state, &answer, hold).await {
            Ok(()) => return finish(state, answer).await,
            Err(CommitError::Conflict) if may_lose && !state.went_out => {
                visit = state.leave();
                visit.run_again();
            }
            Err(error) => return Err(error.into()),
        }
        run += 1;
    }
}

/// The guest's turn to commit, in order of asking.
async fn hold(version: &Inner) -> Hold {
    Arc::clone(&version.commit_lock).lock_owned().await
}

/// Makes what a callback wrote durable, all of it at once, if the callback has done its work. After a failure, an error of
/// the guest or a question to the client, what it wrote goes with the store, and leaves no trace.
///
/// This is the one place where a transaction is committed, before anybody is told of the call's success: `State` owns it,
/// most callbacks never open one, and it is committed with a [`Hold`], which this call has already in its last run, and
/// takes for the moment of the commit before that.
#[expect(clippy::unused_async, reason = "transactions come with the storage of guests' state")]
async fn commit<T: Outcome>(
    _version: &Inner,
    _state: &mut State,
    answer: &Result<T, types::Error>,
    _hold: Option<Hold>,
) -> Result<(), CommitError> {
    if !answer.as_ref().is_ok_and(Outcome::keeps_writes) {
        return Ok(());
    }
    Ok(())
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
