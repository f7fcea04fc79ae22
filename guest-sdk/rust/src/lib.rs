//! Write Model Context Protocol servers that run in Guesthouse, each in a room of its own.
//!
//! ```
//! #[derive(Default)]
//! struct Greeter;
//!
//! #[guesthouse::server]
//! impl Greeter {
//!     /// Greets someone.
//!     #[tool]
//!     fn greet(
//!         /// Whom to greet.
//!         name: &str,
//!     ) -> String {
//!         format!("Hello, {name}!")
//!     }
//! }
//! ```
//!
//! Parameters are the arguments, doc comments are the descriptions, `Option` means optional. [`server`] says what else may stand there.
//! `guesthouse build` makes a component of such a crate, and `cargo test` tests it like any other ([`testing`]). A server may also implement
//! the traits of the contract by hand: [`Server`], [`Tools`], [`Resources`] and so on, exported with [`export!`].

extern crate self as guesthouse;

#[cfg_attr(not(all(feature = "arena", target_family = "wasm", not(target_os = "wasi"))), allow(dead_code))]
mod arena;
// Not on WASI: there the C library frees what the host put into memory that it got from this allocator.
#[cfg(all(feature = "arena", target_family = "wasm", not(target_os = "wasi"), not(target_feature = "atomics")))]
mod arena_global;

mod arguments;
mod ask;
#[doc(hidden)]
#[allow(missing_docs, clippy::all, unused)]
pub mod bindings;
mod completion;
mod context;
mod error;
mod export;
mod host;
#[cfg(feature = "http")]
pub mod http;
pub mod json;
mod prompt;
mod resource;
pub mod schema;
mod server;
#[cfg(feature = "state")]
pub mod state;
mod template;
pub mod testing;
mod tool;
pub mod wit;

#[doc(hidden)]
pub mod rt;

pub use ask::{Elicited, Root, Sampled, Together};
pub use completion::CompletionReturn;
pub use context::{Ctx, Level, ProgressError};
pub use error::{Error, Result};
pub use guesthouse_sdk_macros::{Schema, data, server};
pub use json::Json;
pub use prompt::{Message, Prompt, PromptReturn};
pub use resource::ResourceReturn;
pub use schema::Schema;
pub use server::{Completion, Handoff, Migration, Prompts, Resources, Server, Subscriptions, Tasks, Tools};
#[cfg(feature = "state")]
pub use state::{Bucket, State};
pub use tool::{Content, TaskId, ToolResult, ToolReturn};

pub use serde;
pub use serde_json;
