//! From a file to a version: read, refuse what cannot work, compile or fetch compiled code, link.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::cache::CodeCache;
use super::commits::CommitLock;
use super::engine::{Engines, SizeClass};
use super::instances::{Instances, Keeping};
use super::limits::CallLimits;
use super::log::{GuestLog, clean};
use super::manifest::{CONTRACT, CONTRACT_VERSION, Manifest, Unfit, split_name};
use super::room::Room;
use super::version::{Guest, Indices, Inner, Tally, Version};
use crate::capability::{LINKED, links};
use crate::config::grants::Grants;
use crate::policy;
use crate::principals::Principals;
use crate::telemetry::GuestFigures;

/// Largest component that is read; the largest language runtimes stay below a tenth of it.
const COMPONENT_BYTES_MAX: u64 = 256 << 20;
/// Longest text of wasmtime that goes into an error.
const CAUSE_BYTES_MAX: usize = 1_000;

/// How a guest is to run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its name in this host.
    pub name: String,
    /// The operator's table for it, as a JSON object; every instance is given it by `init`.
    pub config_json: String,
    /// Limits of its calls.
    pub limits: CallLimits,
    /// How its instances are kept. A component that declares less gets less.
    pub keeping: Keeping,
    /// What its operator grants it.
    pub grants: Grants,
    /// The same, ready to be used; what the component does not declare is taken out of it.
    pub room: Room,
    /// Where its calls are counted.
    pub figures: GuestFigures,
    /// What its calls share when they commit, whichever version they run on.
    pub commit_lock: CommitLock,
    /// Where compiled code is kept; None compiles anew.
    pub cache: Option<CodeCache>,
}

/// Why a guest was not loaded. Displayed, it is one sentence: the file, the cause, the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The file, as the caller named it, fit to be printed.
    pub file: String,
    /// What is wrong with it.
    pub cause: String,
    /// What the reader can do.
    pub remedy: String,
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}; {}", self.file, self.cause, self.remedy)
    }
}

impl std::error::Error for LoadError {}

impl LoadError {
    fn new(file: &str, unfit: Unfit) -> LoadError {
        LoadError { file: clean(file, CAUSE_BYTES_MAX), cause: unfit.cause, remedy: unfit.remedy }
    }
}

/// Reads a component's file and loads it. Blocks, for seconds where a large component has to be compiled: call it
/// on a thread that may block.
pub fn load_file(engines: &Engines, path: &Path, settings: Settings) -> Result<Version, LoadError> {
    let bytes = read_component(path)?;
    load_bytes(engines, &path.display().to_string(), &bytes, settings)
}

/// Reads a component's bytes, within a size that a component can have.
pub fn read_component(path: &Path) -> Result<Vec<u8>, LoadError> {
    let fail = |cause: String, remedy: &str| LoadError::new(&path.display().to_string(), Unfit { cause, remedy: remedy.to_owned() });
    let unreadable = |error: std::io::Error| fail(format!("cannot be read ({error})"), "check its path and permissions");
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() {
        return Err(fail("is not a file".into(), "name a .wasm file"));
    }
    if found.len() > COMPONENT_BYTES_MAX {
        let cause = format!("has {} bytes, and a component may have {COMPONENT_BYTES_MAX}", found.len());
        return Err(fail(cause, "name a smaller file"));
    }
    std::fs::read(path).map_err(unreadable)
}

/// Loads a component that is in memory; `file` is what errors call it. Blocks as `load_file` does. Nothing of the
/// guest runs.
pub fn load_bytes(engines: &Engines, file: &str, bytes: &[u8], settings: Settings) -> Result<Version, LoadError> {
    load(engines, bytes, settings).map_err(|unfit| LoadError::new(file, unfit))
}

fn load(engines: &Engines, bytes: &[u8], settings: Settings) -> Result<Version, Unfit> {
    let manifest = Manifest::read(bytes)?;
    let room = settings.room.furnish(&settings.name, &manifest, &settings.grants)?;
    check_imports(&manifest, &settings.name)?;
    check_sizes(&manifest, engines, &settings.limits)?;
    let class = manifest.class();
    let made = engines.class(class).map_err(|error| Unfit {
        cause: format!("needs an engine of the {class} class, which cannot be made ({})", short(&error)),
        remedy: format!("allow the host more address space (`ulimit -v`), or fewer {class} instances"),
    })?;
    let digest = hex(&Sha256::digest(bytes));
    let component = code(&made.engine, bytes, &digest, settings.cache.as_ref()).map_err(|error| Unfit {
        cause: format!("cannot be compiled ({})", short(&error)),
        remedy: "build it again with the current toolchain".into(),
    })?;
    let places = places(&component, class, engines)?;
    let misfit = |error: wasmtime::Error| Unfit {
        cause: format!("does not fit {CONTRACT} {CONTRACT_VERSION} ({})", short(&error)),
        remedy: "build it with the SDK that belongs to this host".into(),
    };
    let pre = made.linker.instantiate_pre(&component).map_err(misfit)?;
    let indices = Indices::new(&pre, manifest.offers).map_err(misfit)?;
    room.note_grants(&settings.name);
    let keeping = Keeping { policy: policy::instance(manifest.wants(), settings.keeping.policy), ..settings.keeping };
    Ok(Version {
        inner: Arc::new(Inner {
            guest: Arc::new(Guest {
                log: Arc::new(GuestLog::new(&settings.name, &settings.limits)),
                name: settings.name,
                limits: settings.limits.clone(),
                room,
                figures: settings.figures,
            }),
            pre,
            indices,
            config_json: settings.config_json,
            digest,
            class,
            manifest,
            principals: Principals::new(settings.limits.per_principal, settings.limits.concurrency),
            permits: Arc::new(Semaphore::new(settings.limits.concurrency.min(Semaphore::MAX_PERMITS))),
            share: made.places.join(places),
            turns: engines.schedule().turns(),
            generation: AtomicU64::new(settings.commit_lock.generation()),
            commit_lock: settings.commit_lock,
            tally: Tally::default(),
            stopped: CancellationToken::new(),
            instances: Instances::new(keeping, engines.lobby()),
            engines: engines.clone(),
        }),
    })
}

/// Refuses imports that the host does not have, before any time goes into compiling.
fn check_imports(manifest: &Manifest, guest: &str) -> Result<(), Unfit> {
    for import in &manifest.imports {
        let linked = split_name(import).is_some_and(|(package, interface, version)| links(package, interface, version));
        if !linked {
            return Err(Unfit {
                cause: format!("imports {} for guest `{guest}`, which this host does not offer", clean(import, CAUSE_BYTES_MAX)),
                remedy: format!("build it without that import; offered are {LINKED}"),
            });
        }
    }
    Ok(())
}

/// Refuses a component that declares more than it may have, and limits that no engine could give.
fn check_sizes(manifest: &Manifest, engines: &Engines, limits: &CallLimits) -> Result<(), Unfit> {
    let table = [
        ("memory", "bytes", manifest.memory_bytes_min, limits.memory_bytes, engines.limits().memory_bytes_max),
        ("table", "elements", manifest.table_elements_min, limits.table_elements, engines.limits().table_elements_max),
    ];
    for (key, unit, wanted, allowed, most) in table {
        if allowed > most {
            return Err(Unfit {
                cause: format!("is to have a {key} of {allowed} {unit}, and this host gives {most} at most"),
                remedy: format!("lower `limits.{key}` of the guest"),
            });
        }
        if wanted > u64::try_from(allowed).unwrap_or(u64::MAX) {
            return Err(Unfit {
                cause: format!("declares a {key} of {wanted} {unit}, and may have {allowed}"),
                remedy: if wanted > u64::try_from(most).unwrap_or(u64::MAX) {
                    format!("build it with less: no guest of this host gets more than {most}")
                } else {
                    format!("raise `limits.{key}` of the guest to at most {most}, or build it with less")
                },
            });
        }
    }
    Ok(())
}

/// How many places in the pool of its class each call takes.
fn places(component: &Component, class: SizeClass, engines: &Engines) -> Result<usize, Unfit> {
    // What a component that imports modules needs cannot be told beforehand; such imports are not linked.
    let needs = component.resources_required().map_or((1, 1), |needs| (needs.num_memories, needs.num_tables));
    class.places_of(needs.0, needs.1, engines.limits()).ok_or_else(|| Unfit {
        cause: format!("consists of parts with {} memories and {} tables, more than a call can be given", needs.0, needs.1),
        remedy: "build it of fewer parts".into(),
    })
}

/// Compiled code: from the cache, else made and put there.
fn code(engine: &Engine, bytes: &[u8], digest: &str, cache: Option<&CodeCache>) -> wasmtime::Result<Component> {
    let Some(cache) = cache else { return Component::from_binary(engine, bytes) };
    if let Some(component) = cache.load(engine, digest) {
        return Ok(component);
    }
    let code = engine.precompile_component(bytes)?;
    match cache.store(engine, digest, &code) {
        Ok(()) => {
            if let Some(component) = cache.load(engine, digest) {
                return Ok(component);
            }
        }
        Err(error) => tracing::warn!(%error, "compiled code cannot be kept, and will be made again next time"),
    }
    // SAFETY: the bytes come from this engine's compiler a moment ago, and never left this process.
    unsafe { Component::deserialize(engine, &code) }
}

fn short(error: &wasmtime::Error) -> String {
    clean(&format!("{error:#}"), CAUSE_BYTES_MAX)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
