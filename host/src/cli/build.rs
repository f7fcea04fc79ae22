//! `guesthouse build`: turns a project into a component.

use super::print;
use crate::build::{self, BuildContext, Project};
use crate::config::paths;
use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `build`.
#[derive(Debug, Args)]
pub(super) struct Build {
    /// The project's folder.
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Report only failures.
    #[arg(long, short)]
    quiet: bool,
}

impl Build {
    pub(super) fn run(self) -> Result<ExitCode> {
        if !self.dir.is_dir() {
            bail!("`{}` is not a folder; name a folder that holds a Cargo.toml, go.mod or package.json", self.dir.display());
        }
        let Some(project) = Project::detect(&self.dir)? else {
            bail!("`{}` holds no Cargo.toml, go.mod or package.json, so there is nothing to build", self.dir.display());
        };
        let built = build::build(&project, &mut BuildContext::new(paths::cache()?, self.quiet))?;
        print(&built.component.display().to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}
