//! What guests may import: one file per interface, each implemented on a view of the store's data.

pub mod changes;
pub mod context;
pub mod filesystem;
pub mod http;
pub mod keyvalue;
pub mod wasi;

use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::guest::State;
use crate::guest::manifest::{CONTRACT, CONTRACT_VERSION, same_release_line};

/// The release line of WASI that is linked.
const WASI_VERSION: &str = "0.2.0";

/// The one version of `wasi:keyvalue`: a draft is like no other.
const KEYVALUE_VERSION: &str = "0.2.0-draft";

/// What is linked, for messages.
pub(crate) const LINKED: &str = "guesthouse:mcp context and changes, WASI 0.2 cli, clocks, filesystem, http (outgoing), io, random and sockets, and wasi:keyvalue 0.2.0-draft";

/// Whether `linker` has an interface of that name and version. Later releases of the same line are let through to the
/// linker, which knows whether their functions are there.
pub(crate) fn links(package: &str, interface: &str, version: &str) -> bool {
    match package {
        CONTRACT => matches!(interface, "context" | "changes" | "types") && same_release_line(version, CONTRACT_VERSION),
        "wasi:cli" | "wasi:clocks" | "wasi:filesystem" | "wasi:io" | "wasi:random" | "wasi:sockets" => {
            same_release_line(version, WASI_VERSION)
        }
        "wasi:http" => matches!(interface, "types" | "outgoing-handler") && same_release_line(version, WASI_VERSION),
        "wasi:keyvalue" => matches!(interface, "store" | "atomics" | "batch") && version == KEYVALUE_VERSION,
        _ => false,
    }
}

/// A linker with every interface that a guest may import.
pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    context::add_to_linker(&mut linker)?;
    changes::add_to_linker(&mut linker)?;
    wasi::add_to_linker(&mut linker)?;
    http::add_to_linker(&mut linker)?;
    filesystem::add_to_linker(&mut linker)?;
    keyvalue::add_to_linker(&mut linker)?;
    Ok(linker)
}
