//! The contract in Rust, as generated; the rest of the crate names its types through [`crate::wit`].

#[rustfmt::skip]
pub mod completion;
#[rustfmt::skip]
pub mod handoff;
#[rustfmt::skip]
pub mod imports;
#[cfg(feature = "state")]
#[rustfmt::skip]
pub mod keyvalue;
#[rustfmt::skip]
pub mod lifecycle;
#[rustfmt::skip]
pub mod migration;
#[rustfmt::skip]
pub mod prompts;
#[rustfmt::skip]
pub mod resources;
#[rustfmt::skip]
pub mod subscriptions;
#[rustfmt::skip]
pub mod tasks;
#[rustfmt::skip]
pub mod tools;

pub use imports::guesthouse::mcp::types;
