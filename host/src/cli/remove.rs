//! `guesthouse remove`: takes a guest's table out of guesthouse.toml.

use super::tell;
use crate::config::{FILE_NAME, edit};
use anyhow::{Context, Result};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `remove`.
#[derive(Debug, Args)]
pub(super) struct Remove {
    /// The guest's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = FILE_NAME)]
    config: PathBuf,
}

impl Remove {
    pub(super) fn run(self) -> Result<ExitCode> {
        let (text, _) = edit::read(&self.config)?;
        let without = edit::without_guest(&text, &self.name).with_context(|| format!("in `{}`", self.config.display()))?;
        edit::write(&self.config, &without)?;
        tell(&format!("took [guest.{}] out of {}", self.name, self.config.display()));
        Ok(ExitCode::SUCCESS)
    }
}
