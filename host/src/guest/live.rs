//! An instance that is alive: made, initialised, and ready for a callback.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::Instance;

use super::bindings::types;
use super::failure::{Failure, Stage, classify};
use super::outcome::GuestError;
use super::state::{State, Visit};
use super::version::Inner;

/// Host calls may carry this much beyond the output limit: the fixed parts of small results.
const OUTPUT_SLACK_BYTES: usize = 16 << 10;

/// What a callback answered: its success or its own error. What is wrong beyond that ends the instance.
pub(super) type Answer<T> = Result<Result<T, types::Error>, Failure>;

/// An instance that has been initialised, in a store of its own.
pub(super) struct Live {
    pub(super) store: Store<State>,
    pub(super) instance: Instance,
}

impl Live {
    /// Makes an instance for a visit and runs its `init`.
    pub(super) async fn start(version: &Arc<Inner>, visit: Visit) -> Result<Live, Failure> {
        let limits = &version.guest.limits;
        let mut store = Store::new(version.pre.engine(), State::new(&version.guest, visit));
        store.limiter(|state| &mut state.limiter);
        store.epoch_deadline_async_yield_and_update(1);
        begin(version, &mut store);
        store.set_max_component_handles(limits.handles);
        let started = async {
            let instance = version.pre.instantiate_async(&mut store).await?;
            let guest = version.indices.lifecycle.load(&mut store, &instance)?;
            let initialised = guest.call_init(&mut store, &version.config_json).await?;
            Ok((instance, initialised))
        };
        match started.await {
            Ok((instance, Ok(()))) => {
                store.data_mut().begin_callback();
                Ok(Live { store, instance })
            }
            Ok((_, Err(text))) => {
                let text = super::log::clean(&text, limits.log_line_bytes);
                Err(Failure::StartFailed(format!("init refused: {text}")))
            }
            Err(error) => Err(fail(&store, &error, Stage::Start)),
        }
    }

    /// Begins another visit to an instance that was kept.
    pub(super) fn enter(&mut self, version: &Inner, visit: Visit) {
        begin(version, &mut self.store);
        self.store.data_mut().enter(visit);
    }

    /// Ends a visit.
    pub(super) fn leave(&mut self) -> Visit {
        self.store.data_mut().leave()
    }

    /// Names what is behind an error of wasmtime.
    pub(super) fn fail(&self, error: &wasmtime::Error, stage: Stage) -> Failure {
        fail(&self.store, error, stage)
    }

    /// Tells the guest's own errors from those that end the instance.
    pub(super) fn answered<T, E: GuestError>(&self, answer: wasmtime::Result<Result<T, E>>) -> Answer<T> {
        match answer {
            Ok(answer) => Ok(answer.map_err(GuestError::into_error)),
            Err(error) => Err(self.fail(&error, Stage::Callback)),
        }
    }
}

/// What a store has for each callback anew.
fn begin(version: &Inner, store: &mut Store<State>) {
    store.set_epoch_deadline(1);
    store.set_hostcall_fuel(version.guest.limits.output_bytes.saturating_add(OUTPUT_SLACK_BYTES));
}

fn fail(store: &Store<State>, error: &wasmtime::Error, stage: Stage) -> Failure {
    let state = store.data();
    classify(error, stage, state.limiter.refused(), state.limits().output_bytes)
}
