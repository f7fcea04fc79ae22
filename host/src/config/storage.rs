//! Table `[storage]`: where the host saves what outlives a call.

use super::paths;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Table `[storage]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageConfig {
    /// What kind of storage.
    pub kind: Kind,
    /// The file, relative to the configuration file; absent, `state.db` in the host's folder for state.
    pub path: Option<PathBuf>,
}

/// Kinds of storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A file, which several processes can share, and which outlives them.
    #[default]
    Sqlite,
    /// The memory of the process, which ends with it.
    Memory,
}

impl StorageConfig {
    /// The file to open.
    pub fn file(&self) -> Result<PathBuf> {
        match &self.path {
            Some(path) => Ok(path.clone()),
            None => {
                let folder = paths::state().context("there is no folder to save state in; name a file with `path` in [storage]")?;
                Ok(folder.join("state.db"))
            }
        }
    }

    /// Refuses what makes no sense.
    pub(super) fn check(&self) -> Result<()> {
        if self.kind == Kind::Memory && self.path.is_some() {
            bail!("`storage.path` names a file, and `storage.kind` is \"memory\", which has none");
        }
        if self.path.as_ref().is_some_and(|path| path.file_name().is_none()) {
            bail!("`storage.path` must name a file");
        }
        Ok(())
    }

    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        if let Some(path) = &mut self.path {
            *path = folder.join(&*path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn the_table_is_read_and_what_makes_no_sense_is_refused() {
        let storage = |text: &str| Config::parse(text).map(|config| config.storage).map_err(|error| format!("{error:#}"));
        assert_eq!(storage("").unwrap(), StorageConfig { kind: Kind::Sqlite, path: None });
        assert_eq!(storage("[storage]\nkind = \"memory\"").unwrap().kind, Kind::Memory);
        let mut named = storage("[storage]\npath = \"data/state.db\"").unwrap();
        named.resolve_paths(Path::new("/etc/guesthouse"));
        assert_eq!(named.file().unwrap(), Path::new("/etc/guesthouse/data/state.db"));
        for (text, part) in [
            ("[storage]\nkind = \"memory\"\npath = \"a.db\"", "storage.path"),
            ("[storage]\npath = \"\"", "storage.path"),
            ("[storage]\nkind = \"disk\"", "disk"),
            ("[storage]\nfile = \"a.db\"", "file"),
        ] {
            let error = storage(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
