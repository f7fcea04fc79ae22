//! Tells whether what a build reads has changed since the last one.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

/// More files than that are no guest's sources.
const FILES_MAX: usize = 20_000;

/// A digest of the names and contents of all files in these folders, and of `extra`. Left out are dot-files and folders that
/// tools fill: `node_modules` and `target`.
pub(super) fn digest(folders: &[&Path], extra: &[&str]) -> anyhow::Result<String> {
    let mut hash = Sha256::new();
    for text in extra {
        feed(&mut hash, text.as_bytes());
    }
    for folder in folders {
        for file in files_in(folder)? {
            feed(&mut hash, file.to_string_lossy().as_bytes());
            feed(&mut hash, &std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

// The length goes first, so that no two lists of texts run together to the same bytes.
fn feed(hash: &mut Sha256, bytes: &[u8]) {
    hash.update(bytes.len().to_le_bytes());
    hash.update(bytes);
}

fn files_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = VecDeque::from([folder.to_path_buf()]);
    while let Some(dir) = open.pop_front() {
        let entries = std::fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot read {}", dir.display()))?;
            let name = entry.file_name();
            if name.to_string_lossy().starts_with('.') || name == "node_modules" || name == "target" {
                continue;
            }
            let kind = entry.file_type().with_context(|| format!("cannot read {}", entry.path().display()))?;
            if kind.is_dir() {
                open.push_back(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
            if files.len() > FILES_MAX {
                bail!("{} holds more than {FILES_MAX} files; move what is not the guest's source out of it", folder.display());
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_follows_names_and_contents_of_sources_alone() {
        let dir = tempfile::tempdir().unwrap();
        let now = || digest(&[dir.path()], &[]).unwrap();
        std::fs::create_dir_all(dir.path().join("src")).unwrap();
        std::fs::write(dir.path().join("src/a.js"), "1").unwrap();
        let first = now();
        for ignored in ["node_modules", "target", ".git"] {
            std::fs::create_dir(dir.path().join(ignored)).unwrap();
            std::fs::write(dir.path().join(ignored).join("x"), "1").unwrap();
        }
        assert_eq!(now(), first);
        std::fs::write(dir.path().join("src/a.js"), "2").unwrap();
        assert_ne!(now(), first);
        std::fs::write(dir.path().join("src/a.js"), "1").unwrap();
        assert_eq!(now(), first);
        std::fs::rename(dir.path().join("src/a.js"), dir.path().join("src/b.js")).unwrap();
        assert_ne!(now(), first);
        assert_ne!(digest(&[dir.path()], &["x"]).unwrap(), now());
    }
}
