//! Table `[swap]`: what is kept of old versions, and when a new one goes back by itself.

use super::check::{count, or_none, span, within};
use super::storage::Kind;
use super::units::Span;
use super::{Config, paths};
use anyhow::{Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Table `[swap]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwapConfig {
    /// Versions of each guest that are kept for `rollback`, the one that is served included.
    pub versions: usize,
    /// Where they are kept; absent, below `$XDG_STATE_HOME/guesthouse`.
    path: Option<PathBuf>,
    /// The first calls of a new version, which decide whether it stays; none with 0.
    pub probation_calls: usize,
    /// How many in a hundred of them may fail beyond what failed of the version before.
    pub probation_failures: usize,
    /// How long probation lasts at most.
    pub probation_time: Span,
    /// How long files must be still before they are built or loaded.
    pub debounce: Span,
}

impl Default for SwapConfig {
    fn default() -> Self {
        Self { versions: 5, path: None, probation_calls: 50, probation_failures: 20, probation_time: Span(600_000), debounce: Span(100) }
    }
}

impl SwapConfig {
    /// Makes relative paths relative to the configuration's folder.
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        if let Some(path) = &mut self.path {
            *path = folder.join(&*path);
        }
    }

    /// Refuses what cannot work.
    pub(super) fn check(&self) -> Result<()> {
        let bounds = [
            count("versions", self.versions),
            or_none(count("probation_calls", self.probation_calls)),
            or_none(count("probation_failures", self.probation_failures)),
            span("probation_time", self.probation_time),
            or_none(span("debounce", self.debounce)),
        ];
        within("swap", &bounds)?;
        if self.probation_failures > 100 {
            bail!("`swap.probation_failures` is a number of calls in a hundred, and is {}", self.probation_failures);
        }
        Ok(())
    }
}

impl Config {
    /// The folder in which versions are kept; `None` where nothing is to outlive the process.
    pub fn versions_folder(&self) -> Option<PathBuf> {
        match (&self.swap.path, self.storage.kind) {
            (Some(path), _) => Some(path.clone()),
            (None, Kind::Memory) => None,
            (None, Kind::Sqlite) => paths::state().ok().map(|folder| folder.join("versions")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, part) in [
            ("[swap]\nversions = 0", "swap.versions"),
            ("[swap]\nprobation_failures = 101", "in a hundred"),
            ("[swap]\nprobation_time = \"0s\"", "swap.probation_time"),
            ("[swap]\nprobation = 3", "probation"),
        ] {
            let error = format!("{:#}", Config::parse(text).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn where_nothing_outlives_the_process_no_version_does() {
        let folder = |text: &str| Config::parse(text).unwrap().versions_folder();
        assert_eq!(folder("[storage]\nkind = \"memory\""), None);
        assert_eq!(folder("[storage]\nkind = \"memory\"\n[swap]\npath = \"/v\""), Some("/v".into()));
    }
}
