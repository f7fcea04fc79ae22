//! Makes components out of core modules, and hands builders the contract that they compile against.

use std::path::Path;

use anyhow::Context as _;
use wasi_preview1_component_adapter_provider::{WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{PackageId, Resolve, SourceMap};

/// The contract's files, as this build of Guesthouse has them.
pub const CONTRACT: [(&str, &str); 8] = [
    ("context.wit", include_str!("../../../wit/context.wit")),
    ("lifecycle.wit", include_str!("../../../wit/lifecycle.wit")),
    ("prompts.wit", include_str!("../../../wit/prompts.wit")),
    ("resources.wit", include_str!("../../../wit/resources.wit")),
    ("tasks.wit", include_str!("../../../wit/tasks.wit")),
    ("tools.wit", include_str!("../../../wit/tools.wit")),
    ("types.wit", include_str!("../../../wit/types.wit")),
    ("worlds.wit", include_str!("../../../wit/worlds.wit")),
];

/// What a core module needs besides the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// Nothing: it imports functions of components only.
    None,
    /// It imports WASI preview 1, which is adapted to WASI 0.2.
    Preview1Reactor,
}

/// Writes the contract into `dir`, for tools that want a folder of WIT.
pub fn write_contract(dir: &Path) -> anyhow::Result<()> {
    for (name, text) in CONTRACT {
        super::replace_if_changed(&dir.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// The contract, parsed, with `extra` (more text of the same package, such as a world of a builder's own; may be empty).
pub fn parse_contract(extra: &str) -> anyhow::Result<(Resolve, PackageId)> {
    let mut files = SourceMap::new();
    for (name, text) in CONTRACT {
        files.push_str(name, text);
    }
    if !extra.is_empty() {
        files.push_str("extra.wit", extra);
    }
    let group = files.parse().map_err(|(_, error)| anyhow::Error::new(error))?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group)?;
    Ok((resolve, package))
}

/// Adds to a core module the description of its world, where the language's tools did not.
pub fn embed_world(core: &mut Vec<u8>, extra: &str, world: &str) -> anyhow::Result<()> {
    let (resolve, package) = parse_contract(extra)?;
    let world = resolve.select_world(&[package], Some(world))?;
    embed_component_metadata(core, &resolve, world, StringEncoding::UTF8)
}

/// Makes a valid component of a core module that carries the description of its world.
pub fn encode(core: &[u8], adapter: Adapter) -> anyhow::Result<Vec<u8>> {
    let mut encoder = ComponentEncoder::default().validate(true).module(core)?;
    if adapter == Adapter::Preview1Reactor {
        encoder = encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)?;
    }
    encoder.encode().context("the compiled module cannot be made a component")
}
