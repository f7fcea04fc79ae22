//! `guesthouse add`: writes a component's table into guesthouse.toml, after showing what it wants.

use super::tell;
use crate::config::discover::{guest_name_from, is_guest_name};
use crate::config::grants::Grants;
use crate::config::{FILE_NAME, edit};
use crate::guest::{Manifest, read_component};
use crate::policy::declared::StateWant;
use crate::policy::lack::by_grant;
use crate::policy::{self, Wants};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 256;

/// Arguments of `add`.
#[derive(Debug, Args)]
pub(super) struct Add {
    /// The component.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What the guest is to be called; by default after its file.
    #[arg(long)]
    name: Option<String>,
    /// The configuration file; made if it is not there.
    #[arg(long, value_name = "FILE", default_value = FILE_NAME)]
    config: PathBuf,
    /// Grant what it wants without asking.
    #[arg(long, short)]
    yes: bool,
}

impl Add {
    pub(super) fn run(self) -> Result<ExitCode> {
        self.add(confirmed)
    }

    fn add(&self, confirmed: impl FnOnce() -> Result<bool>) -> Result<ExitCode> {
        let manifest = Manifest::read(&read_component(&self.file)?).map_err(|unfit| anyhow!("`{}` {unfit}", self.file.display()))?;
        let name = self.guest_name()?;
        self.text_without(&name)?;
        let component = path_from(&self.config, &self.file)?;
        let (wants, http_unsaid) = wanted(&manifest);
        show(&name, &manifest, &wants, http_unsaid);
        if !self.yes && !confirmed()? {
            bail!("`{name}` was not added");
        }
        // Read again: while the person was asked, the file may have changed.
        let text = self.text_without(&name)?;
        edit::write(&self.config, &edit::with_guest(&text, &name, &edit::guest_table(&name, &component, &wants, http_unsaid))?)?;
        tell(&format!("added [guest.{name}] to {}", self.config.display()));
        if http_unsaid || !wants.dirs.is_empty() {
            tell(&format!("not granted yet is what only you can name: fill in the commented lines of [guest.{name}.grants]"));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The text of the configuration, which has no guest of that name.
    fn text_without(&self, name: &str) -> Result<String> {
        let (text, config) = edit::read(&self.config)?;
        if config.guest.contains_key(name) {
            bail!(
                "`{}` has a guest called `{name}` already; choose another with --name, or take it out by `guesthouse remove {name}`",
                self.config.display()
            );
        }
        Ok(text)
    }

    fn guest_name(&self) -> Result<String> {
        let stem = self.file.file_stem().unwrap_or_default().to_string_lossy();
        match &self.name {
            Some(name) if is_guest_name(name) => Ok(name.clone()),
            Some(name) => {
                bail!(
                    "`{name}` is no guest name: one starts with a lower-case letter, followed by at most 31 lower-case letters, digits and hyphens"
                )
            }
            None => guest_name_from(&stem).ok_or_else(|| anyhow!("no guest name can be made of `{stem}`; give one with --name")),
        }
    }
}

/// What the component declares. One that declares nothing wants what it imports; where it sends requests to, that does not say.
fn wanted(manifest: &Manifest) -> (Wants, bool) {
    let imports = |kind| manifest.imports.iter().any(|import| by_grant(import) == Some(kind));
    match manifest.wants() {
        Some(wants) => (wants.clone(), false),
        None => (Wants { state: imports("state").then_some(StateWant { required: true }), ..Wants::default() }, imports("http")),
    }
}

/// Tells the person at the terminal what would be granted.
fn show(name: &str, manifest: &Manifest, wants: &Wants, http_unsaid: bool) {
    if let Some(said) = &manifest.declaration {
        tell(&format!("{name}: {} {}", said.name, said.version));
    }
    let rows = policy::table(Some(wants), &Grants::default());
    if rows.is_empty() && !http_unsaid && wants.instance.is_none() {
        tell(&format!("{name} wants nothing to be granted"));
        return;
    }
    tell(&format!("{name} wants"));
    for row in rows {
        tell(&format!("  {}", row.want()));
    }
    if http_unsaid {
        tell("  http, and does not say where to (required)");
    }
    if let Some(Ok(instance)) = wants.instance.map(toml::Value::try_from) {
        tell(&format!("  instances that live for a {}", instance.as_str().unwrap_or_default()));
    }
}

/// Asks the person at the terminal. No answer is a no.
fn confirmed() -> Result<bool> {
    let _ = write!(std::io::stderr(), "Grant that? [y/N] ");
    let mut answer = String::new();
    std::io::Read::take(std::io::stdin().lock(), ANSWER_BYTES_MAX).read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// How the configuration names a component: relative to its folder where it is below it, else by its whole path.
fn path_from(config: &Path, file: &Path) -> Result<String> {
    let folder = config.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.canonicalize().with_context(|| format!("there is no folder `{}`", folder.display()))?;
    let file = file.canonicalize().with_context(|| format!("cannot open `{}`", file.display()))?;
    let path = file.strip_prefix(&folder).unwrap_or(&file);
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| anyhow!("the path `{}` is not UTF-8, and cannot be written into a configuration", path.display()))
}
