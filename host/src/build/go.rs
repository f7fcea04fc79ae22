//! Builds Go projects: the stock compiler makes a core module, which exports what its packages of the SDK export.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use wasmparser::{Parser, Payload};

use super::declare::{About, declaration, place};
use super::world::{CONTRACT_PACKAGE, world};
use super::{Adapter, BuildContext, Built, Project, Tool, embed_world, encode, finish};

const GO: Tool = Tool {
    name: "go",
    remedy: "install Go 1.24 or newer from your system's packages or from go.dev, and make sure that `go` is on the PATH",
};

/// The world that a guest's exports are put into.
const WORLD: &str = "go-guest";

/// Builds a Go project. Go's own cache makes a build without changes cheap, so nothing more is remembered.
pub(super) fn build(project: &Project, ctx: &mut BuildContext) -> anyhow::Result<Built> {
    let declaration = declaration(project, About::default(), &place(project.dir.join("go.mod"), "the module"))?;
    let work = project.work_dir();
    std::fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    let core_file = work.join("core.wasm");
    ctx.say(format_args!("go build {}", project.dir.display()));
    ctx.run(&mut compile(&project.dir, &core_file), &GO)?;
    let core = std::fs::read(&core_file).with_context(|| format!("go build left no {}", core_file.display()))?;
    finish(project, componentize(core)?, &declaration)
}

fn compile(dir: &Path, output: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(dir)
        .args(["build", "-buildmode=c-shared", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o"])
        .arg(output)
        .arg(".")
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        // A workspace file above the project would decide what is built.
        .env("GOWORK", "off");
    command
}

fn componentize(mut core: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    let interfaces = exported_interfaces(&core)?;
    if interfaces.is_empty() {
        bail!(
            "the program exports nothing of {CONTRACT_PACKAGE}; make it a guest by calling guesthouse.Serve in an init function of \
             package main (its main function is never run)"
        );
    }
    embed_world(&mut core, &world(WORLD, &interfaces, &[]), WORLD)?;
    encode(&core, Adapter::Preview1Reactor)
}

/// The interfaces of the contract whose functions the core module exports, sorted: `guesthouse:mcp/tools@0.1.0#call-tool`
/// makes it `tools`.
fn exported_interfaces(core: &[u8]) -> anyhow::Result<Vec<String>> {
    let mut interfaces = Vec::new();
    for payload in Parser::new(0).parse_all(core) {
        let Payload::ExportSection(exports) = payload.context("the compiler's output is no WebAssembly module")? else {
            continue;
        };
        for export in exports {
            let export = export.context("the compiler's output has a broken export")?;
            if let Some(interface) = interface_of(export.name)? {
                interfaces.push(interface);
            }
        }
    }
    interfaces.sort();
    interfaces.dedup();
    Ok(interfaces)
}

fn interface_of(export: &str) -> anyhow::Result<Option<String>> {
    let Some((path, _function)) = export.split_once('#') else { return Ok(None) };
    let Some((name, version)) = path.strip_prefix("guesthouse:mcp/").and_then(|rest| rest.split_once('@')) else {
        return Ok(None);
    };
    let ours = CONTRACT_PACKAGE.rsplit('@').next().unwrap_or_default();
    if version != ours {
        bail!(
            "the guest's SDK is for version {version} of the contract, and this Guesthouse builds for {ours}; use the release of \
             guest-sdk/go that belongs to it"
        );
    }
    Ok(Some(name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_name_their_interface() {
        assert_eq!(interface_of("guesthouse:mcp/tools@0.1.0#call-tool").unwrap().as_deref(), Some("tools"));
        assert_eq!(interface_of("cabi_realloc").unwrap(), None);
        assert_eq!(interface_of("other:thing/tools@0.1.0#call-tool").unwrap(), None);
        let error = interface_of("guesthouse:mcp/tools@0.9.0#call-tool").unwrap_err().to_string();
        assert!(error.contains("0.9.0") && error.contains("0.1.0"), "{error}");
    }

    #[test]
    fn post_return_functions_count_for_no_interface() {
        assert_eq!(interface_of("cabi_post_guesthouse:mcp/tools@0.1.0#call-tool").unwrap(), None);
    }

    #[test]
    fn a_module_without_our_exports_is_told_how_to_become_a_guest() {
        let empty = b"\0asm\x01\0\0\0".to_vec();
        let error = componentize(empty).unwrap_err().to_string();
        assert!(error.contains("guesthouse.Serve"), "{error}");
    }
}
