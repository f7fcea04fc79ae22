//! The versions that a guest had: their components on disk, which of them is served, and what a restart is to serve.
//!
//! A guest's folder holds each component under its digest, and one file that says the rest. What was swapped in stays in force
//! over a restart, until the file that the configuration names is another one.

use crate::guest::read_component;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Name of the file that says which version is which.
const INDEX: &str = "history.json";
/// Version of what is in it.
const FORMAT: u32 = 1;
/// Characters of a digest in the name of a guest's folder, enough to tell its files' places apart.
const KEY_LEN: usize = 16;

/// One version that a guest had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// SHA-256 of its component, in hexadecimal.
    pub(crate) digest: String,
    /// What it calls itself.
    pub(crate) version: String,
    /// When it was put in force, in milliseconds since 1970.
    pub(crate) since_ms: u64,
    /// Whether it changed the guest's state when it was put in force, so that the version before it may not understand it.
    pub(crate) migrated: bool,
}

/// What a guest's folder says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Index {
    format: u32,
    /// The configured file's component when the last one was put in force.
    configured: String,
    /// In the order in which they were put in force; the last one is served.
    versions: Vec<Kept>,
}

/// The versions of one guest.
#[derive(Clone, Debug)]
pub(crate) struct History {
    folder: PathBuf,
    index: Index,
    versions_max: usize,
}

impl History {
    /// The history of a guest whose component the configuration expects at `file`. An index that cannot be read is left
    /// alone until something is to be kept, and counts as none.
    pub(crate) fn open(root: &Path, guest: &str, file: &Path, versions_max: usize) -> Self {
        let place = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let mut key = digest(place.as_os_str().as_encoded_bytes());
        key.truncate(KEY_LEN);
        let folder = root.join(format!("{guest}-{key}"));
        let read = std::fs::read(folder.join(INDEX)).ok().and_then(|bytes| serde_json::from_slice::<Index>(&bytes).ok());
        let index = read.filter(|index| index.format == FORMAT).unwrap_or_default();
        Self { folder, index, versions_max }
    }

    /// The component to be served at a start, if it is another one than the configured file's.
    pub(crate) fn active(&self, configured: &str) -> Option<PathBuf> {
        let active = self.index.versions.last().filter(|active| active.digest != configured && self.index.configured == configured)?;
        // A file is what its digest says, and not what its name says.
        Some(self.component(&active.digest)).filter(|file| digest_of(file) == active.digest)
    }

    /// Notes what is served, and keeps its component. What is too old goes, and is the answer.
    pub(crate) fn put(&mut self, configured: &str, mut kept: Kept, bytes: &[u8]) -> Result<Vec<Kept>> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .with_context(|| format!("cannot make the folder `{}`", self.folder.display()))?;
        let file = self.component(&kept.digest);
        if !file.is_file() {
            write(&file, bytes)?;
        }
        let mut index = self.index.clone();
        index.format = FORMAT;
        configured.clone_into(&mut index.configured);
        // The same again, such as with another configuration: how it came is as it was.
        kept.migrated |= index.versions.last().is_some_and(|last| last.digest == kept.digest && last.migrated);
        index.versions.retain(|version| version.digest != kept.digest);
        index.versions.push(kept);
        let too_many = index.versions.len().saturating_sub(self.versions_max.max(1));
        let gone: Vec<Kept> = index.versions.drain(..too_many).collect();
        write(&self.folder.join(INDEX), &serde_json::to_vec_pretty(&index)?)?;
        self.index = index;
        for kept in &gone {
            // A component that stays takes room and does no harm.
            let _ = std::fs::remove_file(self.component(&kept.digest));
        }
        Ok(gone)
    }

    /// The version before the one that is served, and whether going back to it goes back over a change of state.
    pub(crate) fn previous(&self) -> Option<(&Kept, bool)> {
        let mut versions = self.index.versions.iter().rev();
        let active = versions.next()?;
        versions.next().map(|previous| (previous, active.migrated))
    }

    /// Takes the version that is served out, because it was gone back from.
    pub(crate) fn drop_last(&mut self) {
        if let Some(last) = self.index.versions.pop() {
            // A component that stays takes room and does no harm.
            let _ = std::fs::remove_file(self.component(&last.digest));
        }
    }

    /// All versions that are kept, the one that is served last.
    pub(crate) fn versions(&self) -> &[Kept] {
        &self.index.versions
    }

    /// Where the component of a version is kept.
    pub(crate) fn component(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{digest}.wasm"))
    }
}

/// What a component's file holds; nothing, if it cannot be read.
pub(crate) fn digest_of(file: &Path) -> String {
    read_component(file).map(|bytes| digest(&bytes)).unwrap_or_default()
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file that is there whole or not at all.
fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = file.with_extension("new");
    let written = (|| {
        let mut out = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        out.write_all(bytes)?;
        out.sync_all()?;
        std::fs::rename(&unfinished, file)
    })();
    written.with_context(|| format!("cannot write `{}`", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes: &[u8]) -> Kept {
        Kept { digest: digest(bytes), version: "1".into(), since_ms: 0, migrated: false }
    }

    #[test]
    fn what_was_swapped_in_stays_until_the_configured_file_is_another() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("notes.wasm");
        let open = || History::open(root.path(), "notes", &file, 5);
        let (configured, swapped) = (digest(b"one"), digest(b"two"));
        assert_eq!(open().active(&configured), None);
        let mut history = open();
        history.put(&configured, kept(b"one"), b"one").unwrap();
        assert_eq!(open().active(&configured), None, "it is the configured one");
        history.put(&configured, kept(b"two"), b"two").unwrap();
        let active = open().active(&configured).unwrap();
        assert_eq!(std::fs::read(active).unwrap(), b"two");
        assert_eq!(open().active(&digest(b"three")), None, "the configured file has changed since");
        assert_eq!(History::open(root.path(), "notes", Path::new("/elsewhere/notes.wasm"), 5).active(&configured), None);
        assert_eq!(open().previous().map(|(kept, over)| (kept.digest.clone(), over)), Some((configured, false)));
        std::fs::remove_file(open().component(&swapped)).unwrap();
        assert_eq!(open().active(&digest(b"one")), None, "what is gone cannot be served");
    }

    #[test]
    fn the_oldest_versions_go() {
        let root = tempfile::tempdir().unwrap();
        let mut history = History::open(root.path(), "notes", Path::new("/notes.wasm"), 2);
        for bytes in [b"one", b"two", b"six", b"two"] {
            history.put("", kept(bytes), bytes).unwrap();
        }
        let digests: Vec<&str> = history.versions().iter().map(|kept| kept.digest.as_str()).collect();
        assert_eq!(digests, [digest(b"six"), digest(b"two")]);
        assert!(!history.component(&digest(b"one")).exists());
        assert!(history.component(&digest(b"six")).exists());
    }

    #[test]
    fn going_back_forgets_what_was_gone_back_from_and_not_how_the_other_came() {
        let root = tempfile::tempdir().unwrap();
        let mut history = History::open(root.path(), "notes", Path::new("/notes.wasm"), 5);
        history.put("", kept(b"one"), b"one").unwrap();
        history.put("", Kept { migrated: true, ..kept(b"two") }, b"two").unwrap();
        // The same again, with another configuration.
        history.put("", kept(b"two"), b"two").unwrap();
        history.put("", kept(b"six"), b"six").unwrap();
        let (previous, over) = history.previous().unwrap();
        assert_eq!((previous.digest.clone(), previous.migrated, over), (digest(b"two"), true, false));
        history.drop_last();
        assert!(!history.component(&digest(b"six")).exists());
        assert_eq!(history.previous().map(|(previous, over)| (previous.digest.clone(), over)), Some((digest(b"one"), true)));
    }

    #[test]
    fn an_index_that_is_damaged_counts_as_none() {
        let root = tempfile::tempdir().unwrap();
        let mut history = History::open(root.path(), "notes", Path::new("/notes.wasm"), 2);
        history.put("", kept(b"one"), b"one").unwrap();
        let index = history.folder.join(INDEX);
        for damage in ["", "{", "{\"format\":99,\"configured\":\"\",\"versions\":[]}"] {
            std::fs::write(&index, damage).unwrap();
            assert_eq!(History::open(root.path(), "notes", Path::new("/notes.wasm"), 2).versions(), []);
        }
    }
}
