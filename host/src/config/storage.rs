//! Table `[storage]`: where the host saves what outlives a call.

use super::paths;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};

/// Table `[storage]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageConfig {
    /// What kind of storage.
    pub kind: Kind,
    /// The file, relative to the configuration file; absent, `state.db` in the host's folder for state.
    pub path: Option<PathBuf>,
    /// Whose state and tasks those of this configuration are, in the file that several share: hosts with the same word here share
    /// them, whatever folders they are in. Absent, it follows from the configuration's folder.
    pub space: Option<String>,
}

/// Length of `space`.
const SPACE_LEN_MAX: usize = 64;
/// Bytes of a folder's digest that stand for it, enough to tell a user's folders apart.
const HOME_KEY_BYTES: usize = 8;
/// Stands for no place at all. No space is called so.
const NOWHERE: &str = "-";

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

    /// What tells state and tasks of this configuration from those of others: its space, or what stands for its folder.
    pub fn owner(&self, home: Option<&Path>) -> String {
        match (&self.space, home) {
            (Some(space), _) => space.clone(),
            (None, Some(home)) => {
                let digest = Sha256::digest(home.as_os_str().as_encoded_bytes());
                digest.iter().take(HOME_KEY_BYTES).map(|byte| format!("{byte:02x}")).collect()
            }
            (None, None) => NOWHERE.to_owned(),
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
        if self.kind == Kind::Memory && self.space.is_some() {
            bail!("`storage.space` says who shares what is in a file, and `storage.kind` is \"memory\", which has none");
        }
        if let Some(space) = self.space.as_ref().filter(|space| !is_space(space)) {
            bail!(
                "`storage.space` is a letter or digit, followed by at most {} lower-case letters, digits and hyphens, and not `{space}`",
                SPACE_LEN_MAX.saturating_sub(1)
            );
        }
        Ok(())
    }

    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        if let Some(path) = &mut self.path {
            *path = folder.join(&*path);
        }
    }
}

fn is_space(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= SPACE_LEN_MAX && text.bytes().next().is_some_and(is_plain) && text.bytes().all(|byte| is_plain(byte) || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn the_table_is_read_and_what_makes_no_sense_is_refused() {
        let storage = |text: &str| Config::parse(text).map(|config| config.storage).map_err(|error| format!("{error:#}"));
        assert_eq!(storage("").unwrap(), StorageConfig::default());
        assert_eq!(storage("[storage]\nkind = \"memory\"").unwrap().kind, Kind::Memory);
        let mut named = storage("[storage]\npath = \"data/state.db\"").unwrap();
        named.resolve_paths(Path::new("/etc/guesthouse"));
        assert_eq!(named.file().unwrap(), Path::new("/etc/guesthouse/data/state.db"));
        for (text, part) in [
            ("[storage]\nkind = \"memory\"\npath = \"a.db\"", "storage.path"),
            ("[storage]\npath = \"\"", "storage.path"),
            ("[storage]\nkind = \"memory\"\nspace = \"a\"", "storage.space"),
            ("[storage]\nspace = \"\"", "storage.space"),
            ("[storage]\nspace = \"-\"", "storage.space"),
            ("[storage]\nspace = \"a/b\"", "storage.space"),
            (&format!("[storage]\nspace = \"{}\"", "a".repeat(SPACE_LEN_MAX + 1)), "storage.space"),
            ("[storage]\nkind = \"disk\"", "disk"),
            ("[storage]\nfile = \"a.db\"", "file"),
        ] {
            let error = storage(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn each_folder_has_a_key_of_its_own_and_a_space_takes_its_place() {
        let [here, there] = ["/home/a/notes", "/home/a/other"].map(|home| StorageConfig::default().owner(Some(Path::new(home))));
        assert_ne!(here, there);
        assert!(is_space(&here) && here.len() == 2 * HOME_KEY_BYTES, "{here}");
        let shared = Config::parse("[storage]\nspace = \"my-notes-2\"").unwrap().storage;
        assert_eq!([Some(Path::new("/home/a/notes")), None].map(|home| shared.owner(home)), ["my-notes-2", "my-notes-2"]);
        assert_eq!(StorageConfig::default().owner(None), NOWHERE);
        // What a folder had that was moved is found by its key.
        let moved = Config::parse(&format!("[storage]\nspace = \"{here}\"")).unwrap().storage;
        assert_eq!(moved.owner(Some(Path::new("/elsewhere"))), here);
    }
}
