//! What is allowed: pure values that are read from the configuration and asked, without any effect.

pub mod address;
pub mod http;
pub mod origin;
