//! Builds Rust projects: cargo makes a core module, or a component where WASI is asked for.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::declare::{About, declaration, place};
use super::toolchain::{self, Toolchain};
use super::{Adapter, BuildContext, Built, Project, Tool, encode, finish};
use crate::policy::Wants;

const CARGO: Tool = Tool { name: "cargo", remedy: toolchain::RUSTC.remedy };

/// Variables of the caller's environment that speak of another build, such as the one whose `cargo run` we may be.
pub(super) const FOREIGN_VARIABLES: [&str; 5] =
    ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_BUILD_RUSTFLAGS", "CARGO_TARGET_DIR"];

/// What a guest's release profile should say, where its manifest does not: small, and nothing that nobody reads.
const PROFILE: [(&str, &str); 5] =
    [("opt-level", "\"s\""), ("lto", "true"), ("codegen-units", "1"), ("panic", "\"abort\""), ("strip", "true")];

/// What `cargo metadata` says, as far as we want it.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    metadata: Option<PackageMetadata>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    crate_types: Vec<String>,
}

#[derive(Deserialize)]
struct PackageMetadata {
    guesthouse: Option<Settings>,
}

/// `[package.metadata.guesthouse]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Whether the guest uses WASI (clocks, files, the network) rather than the contract's functions alone.
    #[serde(default)]
    wasi: bool,
    /// What the guest wants to be granted.
    wants: Option<Wants>,
}

/// One line of cargo's JSON output.
#[derive(Deserialize)]
struct CargoMessage {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// The package of a project, and how to build it.
struct Guest {
    manifest: PathBuf,
    /// Name of the library, which names the file.
    library: String,
    wasi: bool,
    about: About,
    profile: Vec<(&'static str, &'static str)>,
}

impl Guest {
    fn target(&self) -> &'static str {
        if self.wasi { "wasm32-wasip2" } else { "wasm32-unknown-unknown" }
    }
}

/// Builds a Rust project. Cargo knows best what is unchanged, so it is always asked.
pub(super) fn build(project: &Project, ctx: &mut BuildContext) -> anyhow::Result<Built> {
    let mut guest = inspect(&project.dir, ctx)?;
    let declaration =
        declaration(project, std::mem::take(&mut guest.about), &place(guest.manifest.clone(), "[package.metadata.guesthouse]"))?;
    let toolchain = toolchain::find(&project.dir, guest.target(), ctx)?;
    let target_dir = target_dir(&ctx.cache_dir, &toolchain.key, &guest.library, &project.dir)?;
    ctx.say(format_args!("cargo build {}", project.dir.display()));
    let messages = ctx.run_for_output(&mut cargo_build(project, &guest, &toolchain, &target_dir), &CARGO)?;
    let file = artifact(&messages, &guest).context("cargo built no .wasm file")?;
    let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let component = if guest.wasi { bytes } else { encode(&bytes, Adapter::None)? };
    refuse_without_exports(&component)?;
    finish(project, component, &declaration)
}

fn inspect(dir: &Path, ctx: &mut BuildContext) -> anyhow::Result<Guest> {
    let manifest = dir.join("Cargo.toml");
    let mut command = Command::new("cargo");
    command.current_dir(dir).args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(&manifest);
    let output = ctx.run_for_output(&mut command, &CARGO)?;
    let root_manifest = |root: &Path| {
        let path = root.join("Cargo.toml");
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    guest(&output, manifest, root_manifest)
}

/// The guest that cargo's description is about.
fn guest(metadata: &[u8], manifest: PathBuf, root_manifest: impl Fn(&Path) -> anyhow::Result<String>) -> anyhow::Result<Guest> {
    let named = || format!("{}: [package.metadata.guesthouse]", manifest.display());
    let metadata: Metadata = serde_json::from_slice(metadata).with_context(named)?;
    let Some(package) = metadata.packages.iter().find(|package| package.manifest_path == manifest) else {
        let members: Vec<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
        bail!("{} is a workspace, not a package; build one of its members: {}", manifest.display(), members.join(", "));
    };
    let Some(library) = package.targets.iter().find(|target| target.crate_types.iter().any(|kind| kind == "cdylib")) else {
        bail!("{} makes no component; add these lines to it:\n\n    [lib]\n    crate-type = [\"cdylib\"]\n", manifest.display());
    };
    let settings = package.metadata.as_ref().and_then(|metadata| metadata.guesthouse.as_ref());
    let profile = profile_defaults(&root_manifest(&metadata.workspace_root)?)?;
    let about = About {
        name: Some(package.name.clone()),
        version: Some(package.version.clone()),
        wants: settings.and_then(|settings| settings.wants.clone()),
    };
    let wasi = settings.is_some_and(|settings| settings.wasi);
    Ok(Guest { library: library.name.replace('-', "_"), wasi, about, profile, manifest })
}

/// Those of our profile settings that the manifest leaves open.
fn profile_defaults(manifest: &str) -> anyhow::Result<Vec<(&'static str, &'static str)>> {
    let manifest: toml::Table = toml::from_str(manifest)?;
    let release = manifest.get("profile").and_then(|profile| profile.get("release"));
    Ok(PROFILE.into_iter().filter(|(key, _)| release.is_none_or(|release| release.get(key).is_none())).collect())
}

fn cargo_build(project: &Project, guest: &Guest, toolchain: &Toolchain, target_dir: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(&project.dir)
        .args(["build", "--release", "--lib", "--message-format", "json-render-diagnostics", "--target", guest.target()])
        .arg("--target-dir")
        .arg(target_dir)
        .arg("--manifest-path")
        .arg(&guest.manifest)
        .env("RUSTC", &toolchain.rustc);
    for (key, value) in &guest.profile {
        command.arg("--config").arg(format!("profile.release.{key}={value}"));
    }
    for variable in FOREIGN_VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// One folder for all guests, so that they share what they depend on. Cargo would mix up two libraries of one name there, so the second
/// one gets a folder of its own.
fn target_dir(cache: &Path, key: &str, library: &str, project: &Path) -> anyhow::Result<PathBuf> {
    let shared = cache.join("cargo").join(key);
    let owner = shared.join("owners").join(library);
    let project = project.as_os_str().as_encoded_bytes();
    match std::fs::read(&owner) {
        Ok(owner) if owner == project => Ok(shared),
        Ok(_) => {
            let digest = Sha256::digest(project);
            let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            Ok(cache.join("cargo").join(format!("{key}-{name}")))
        }
        Err(_) => {
            super::replace_if_changed(&owner, project)?;
            Ok(shared)
        }
    }
}

/// The library among cargo's messages.
fn artifact(messages: &[u8], guest: &Guest) -> Option<PathBuf> {
    let messages = messages.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<CargoMessage>(line).ok());
    let ours = messages.filter(|message| {
        message.reason == "compiler-artifact"
            && message.manifest_path.as_ref() == Some(&guest.manifest)
            && message.target.as_ref().is_some_and(|target| target.crate_types.iter().any(|kind| kind == "cdylib"))
    });
    ours.flat_map(|message| message.filenames).find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

/// A library without exports compiles well, and does nothing.
fn refuse_without_exports(component: &[u8]) -> anyhow::Result<()> {
    let decoded = wit_component::decode(component).context("the compiler's output is no component")?;
    let wit_component::DecodedWasm::Component(resolve, world) = decoded else { bail!("the compiler's output is no component") };
    let exports = resolve.worlds.get(world).map_or(0, |world| world.exports.len());
    if exports == 0 {
        bail!("the library exports nothing; put `#[guesthouse::server]` on an `impl` block, or export a server with `guesthouse::export!`");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
