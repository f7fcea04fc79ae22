//! The sandbox: loads components, and runs their callbacks, each on a fresh instance within limits.
//!
//! A file becomes a [`Version`] by [`load_file`]; its methods are the callbacks of the contract in `wit/`. What a
//! callback may know of its request comes from the caller's [`CallContext`]; what goes wrong is a [`Failure`].
//! Dropping the future of a call stops the guest. This module knows wasmtime and the contract, and nothing of the
//! protocol that clients speak.

mod allowance;
pub(crate) mod attempts;
pub mod bindings;
mod cache;
mod calls;
mod commits;
mod engine;
mod epoch;
mod failure;
mod handoff;
mod instances;
mod kept;
mod limits;
mod live;
mod load;
mod lobby;
pub(crate) mod log;
pub(crate) mod manifest;
mod outcome;
mod room;
mod said;
mod saved;
mod schedule;
mod shares;
mod state;
mod turns;
mod version;

pub use allowance::Allowance;
pub use cache::CodeCache;
pub use calls::Caller;
pub(crate) use commits::Alone;
pub use commits::{CommitLock, Commits};
pub use engine::{EngineLimits, Engines, KEPT_INSTANCES_MAX, MEMORY_BYTES_MAX, SizeClass, TABLE_ELEMENTS_MAX};
pub use failure::Failure;
pub use instances::{Keeping, Key};
pub use limits::CallLimits;
pub use load::{LoadError, Settings, load_bytes, load_file, read_component};
pub use log::clean;
pub use manifest::{Exports, Manifest, Unfit};
pub use room::Room;
pub use saved::Saved;
pub(crate) use state::State;
pub use state::{CallContext, Change, Migrating};
pub use version::Version;
