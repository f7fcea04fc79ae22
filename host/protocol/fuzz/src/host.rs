//! The host's files under test, by links: the host itself would bring a whole WebAssembly engine along.

pub mod schema;
#[expect(dead_code, reason = "only the sealer is fuzzed, not what the host puts into tokens")]
pub mod seal;
pub mod template;
