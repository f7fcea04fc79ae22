//! Turns a Cargo, Go or npm project into a component: detects the kind of project and hands it to its builder.

mod componentize;
mod declare;
mod go;
mod inputs;
mod js;
mod rust;
mod toolchain;
mod world;

pub use componentize::{Adapter, CONTRACT, embed_world, encode, parse_contract, write_contract};

use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::policy::Declaration;

/// The languages whose projects can be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A package with a `Cargo.toml`.
    Rust,
    /// A module with a `go.mod`.
    Go,
    /// A package with a `package.json`, in JavaScript or TypeScript.
    JavaScript,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Rust, Kind::Go, Kind::JavaScript];

    /// The file that makes a folder a project of this kind.
    pub fn project_file(self) -> &'static str {
        match self {
            Kind::Rust => "Cargo.toml",
            Kind::Go => "go.mod",
            Kind::JavaScript => "package.json",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Rust => "Rust",
            Kind::Go => "Go",
            Kind::JavaScript => "JavaScript",
        })
    }
}

/// A folder that can be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The folder that holds the project file.
    pub dir: PathBuf,
    /// Its language.
    pub kind: Kind,
}

impl Project {
    /// What kind of project `dir` is; none when it holds no project file.
    pub fn detect(dir: &Path) -> anyhow::Result<Option<Project>> {
        let found: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| dir.join(kind.project_file()).is_file()).collect();
        match *found.as_slice() {
            [] => Ok(None),
            [kind] => {
                let dir = dir.canonicalize().with_context(|| format!("cannot resolve {}", dir.display()))?;
                Ok(Some(Project { dir, kind }))
            }
            [first, second, ..] => bail!(
                "{} holds both {} and {}, so it is unclear how to build it; keep each guest in a folder of its own",
                dir.display(),
                first.project_file(),
                second.project_file(),
            ),
        }
    }

    /// The name of the project's folder, which names the built file.
    pub fn name(&self) -> String {
        self.dir.file_name().map_or_else(|| "guest".into(), |name| name.to_string_lossy().into_owned())
    }

    /// The folder that a builder may write to; ignored by `up`'s search for guests.
    pub fn work_dir(&self) -> PathBuf {
        self.dir.join("target").join("guesthouse")
    }

    /// Where the component goes.
    pub fn component(&self) -> PathBuf {
        self.work_dir().join(format!("{}.wasm", self.name()))
    }
}

/// What every builder is given.
pub struct BuildContext {
    /// Folder of things that all builds share, such as a fetched toolchain (`$XDG_CACHE_HOME/guesthouse`).
    pub cache_dir: PathBuf,
    /// Whether only failures are reported.
    pub quiet: bool,
    report: Box<dyn FnMut(&str) + Send>,
}

impl BuildContext {
    /// A context that reports on stderr.
    pub fn new(cache_dir: PathBuf, quiet: bool) -> BuildContext {
        BuildContext::with_report(cache_dir, quiet, |line| {
            // A closed stderr is no reason to stop building.
            let _ = writeln!(std::io::stderr(), "{line}");
        })
    }

    /// A context that reports, line by line, to `report`.
    pub fn with_report(cache_dir: PathBuf, quiet: bool, report: impl FnMut(&str) + Send + 'static) -> BuildContext {
        BuildContext { cache_dir, quiet, report: Box::new(report) }
    }

    /// Tells the user what is being done, unless quiet.
    pub fn say(&mut self, line: impl fmt::Display) {
        if !self.quiet {
            (self.report)(&line.to_string());
        }
    }

    /// Runs a command whose messages go straight to the user (stdout too, but onto stderr: ours may carry protocol).
    /// When quiet, its output is kept back, and shown only if it fails.
    pub fn run(&mut self, command: &mut Command, tool: &Tool) -> anyhow::Result<()> {
        if !self.quiet {
            command.stdout(std::io::stderr());
        }
        self.run_for_output(command, tool).map(drop)
    }

    /// Runs a command for what it writes to stdout; its stderr goes to the user as in [`BuildContext::run`].
    pub fn run_for_output(&mut self, command: &mut Command, tool: &Tool) -> anyhow::Result<Vec<u8>> {
        command.stdin(Stdio::null());
        if !self.quiet {
            command.stderr(Stdio::inherit());
        }
        let output = command.output().map_err(|error| tool.not_started(error))?;
        if !output.status.success() {
            for kept in [&output.stdout, &output.stderr] {
                // Cargo's JSON is for us alone.
                if !kept.is_empty() && !kept.starts_with(b"{") {
                    (self.report)(String::from_utf8_lossy(kept).trim_end());
                }
            }
            bail!("{} failed ({})", tool.name, output.status);
        }
        Ok(output.stdout)
    }
}

/// An outside program that a builder starts, and how a user gets it.
#[derive(Clone, Debug)]
pub struct Tool {
    /// What errors call it, such as `cargo build`.
    pub name: &'static str,
    /// What to do when it is missing, as an imperative sentence without a full stop.
    pub remedy: &'static str,
}

impl Tool {
    /// The error for a command that did not start.
    pub fn not_started(&self, error: std::io::Error) -> anyhow::Error {
        if error.kind() == ErrorKind::NotFound {
            return MissingTool { tool: self.name.into(), remedy: self.remedy.into() }.into();
        }
        anyhow::Error::new(error).context(format!("cannot start {}", self.name))
    }
}

/// A build could not begin because this machine lacks a tool. `up` skips such a guest and says so; find it with
/// `error.downcast_ref::<MissingTool>()`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTool {
    /// What is missing.
    pub tool: String,
    /// How to get it.
    pub remedy: String,
}

impl fmt::Display for MissingTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not installed; {}", self.tool, self.remedy)
    }
}

impl std::error::Error for MissingTool {}

/// A finished build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The component.
    pub component: PathBuf,
    /// Whether its bytes differ from those that were there before.
    pub changed: bool,
}

/// Builds a project of any kind. Errors name the project, the cause and the remedy.
pub fn build(project: &Project, ctx: &mut BuildContext) -> anyhow::Result<Built> {
    match project.kind {
        Kind::Rust => rust::build(project, ctx),
        Kind::Go => go::build(project, ctx),
        Kind::JavaScript => js::build(project, ctx),
    }
    .with_context(|| format!("cannot build {}", project.dir.display()))
}

/// Writes the component, with its declaration, where the project keeps it: in one step, so that a watcher or a reader never sees half a file, and
/// only when it differs, so that nobody reloads what has not changed.
pub fn finish(project: &Project, mut bytes: Vec<u8>, declaration: &Declaration) -> anyhow::Result<Built> {
    declare::write(&mut bytes, declaration)?;
    let component = project.component();
    let changed = replace_if_changed(&component, &bytes)?;
    Ok(Built { component, changed })
}

/// Replaces the file atomically unless it holds `bytes` already; says whether it did.
pub fn replace_if_changed(path: &Path, bytes: &[u8]) -> anyhow::Result<bool> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    let dir = path.parent().with_context(|| format!("{} has no parent folder", path.display()))?;
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}
