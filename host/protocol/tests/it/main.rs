//! Tests of the protocol package from outside: transcripts, tables, and arbitrary input.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may stop at a surprise")]

mod arbitrary;
mod failures;
mod fixtures;
mod http_access;
mod http_headers;
mod http_params;
mod limits;
mod projection;
mod questions;
mod replay;
mod schema;
mod tasks;
mod transcripts;
