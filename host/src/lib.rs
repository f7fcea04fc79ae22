//! Guesthouse: an MCP server host in which every handler is a sandboxed WebAssembly component.
//!
//! Embedders start a [`host::Host`] from components and serve it, or connect to it in process.

pub mod admin;
pub mod audit;
pub mod auth;
pub mod build;
pub mod capability;
pub mod changes;
pub mod cli;
pub mod config;
pub mod convert;
pub mod dispatch;
pub mod guest;
pub mod host;
pub mod identity;
pub mod network;
pub mod policy;
pub mod principals;
pub mod registry;
pub mod seal;
pub mod storage;
pub mod swap;
pub mod tasks;
pub mod telemetry;
pub mod transport;
pub mod watch;
