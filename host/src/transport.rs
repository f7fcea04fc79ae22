//! The transports: each drives a protocol peer and hands its calls to the one dispatcher.

pub mod http;
pub mod memory;
pub mod stdio;
