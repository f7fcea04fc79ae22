//! The host's files under test, compiled here as they are: the host itself would bring a whole WebAssembly engine along.

#[path = "../../../src/registry/schema.rs"]
pub mod schema;
#[path = "../../../src/seal.rs"]
pub mod seal;
#[path = "../../../src/registry/template.rs"]
pub mod template;
