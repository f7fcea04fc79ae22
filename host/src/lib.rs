//! Guesthouse: an MCP server host in which every handler is a sandboxed WebAssembly component.

pub mod capability;
pub mod guest;
