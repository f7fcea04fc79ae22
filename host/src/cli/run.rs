//! `guesthouse run`: serves one component on standard input and output.

use super::grants::GrantFlags;
use super::serve::stop_signal;
use crate::config::discover::guest_name_from;
use crate::config::{Config, GuestConfig, Mode};
use crate::host::{GuestSource, Host};
use anyhow::{Result, anyhow};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(super) struct Run {
    /// The component.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Protocol eras to serve.
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    #[command(flatten)]
    grants: GrantFlags,
}

impl Run {
    pub(super) async fn run(self) -> Result<ExitCode> {
        let (mut config, guest) = single(&self.file, self.grants)?;
        config.server.mode = self.mode.unwrap_or(config.server.mode);
        let name = guest.name.clone();
        let host = Host::start(config, vec![guest]).await?;
        host.serve_stdio(Some(&name), stop_signal()?).await?;
        Ok(ExitCode::SUCCESS)
    }
}

/// One component with the settings that the configuration beside it has for it, and what the flags grant besides.
pub(super) fn single(file: &Path, grants: GrantFlags) -> Result<(Config, GuestSource)> {
    let (config, name, mut settings) = configured(file)?;
    let name =
        name.ok_or_else(|| anyhow!("no guest name can be made of `{}`; rename it so that it begins with a letter", file.display()))?;
    grants.apply([(name.as_str(), &mut settings)], true)?;
    Ok((config, GuestSource { name, file: file.to_owned(), config: settings }))
}

/// The configuration beside a component, the component's name if one can be made, and the settings for it.
pub(super) fn configured(file: &Path) -> Result<(Config, Option<String>, GuestConfig)> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut config = Config::read_in(folder)?;
    let here = file.canonicalize().ok();
    let configured = config.guest.iter().find(|(_, guest)| guest.file.as_ref().is_some_and(|path| path.canonicalize().ok() == here));
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = configured.map(|(name, _)| name.clone()).or_else(|| guest_name_from(&stem));
    let settings = name.as_ref().and_then(|name| config.guest.shift_remove(name)).unwrap_or_default();
    Ok((config, name, settings))
}
