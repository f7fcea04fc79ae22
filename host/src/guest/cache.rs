//! Compiled code on disk, found by the component's digest and everything that the engine's settings change in it.

use std::hash::{Hash as _, Hasher};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Ends every cache file: these bytes, then the SHA-256 of all before them.
const TRAILER_MAGIC: &[u8; 8] = b"ghcode01";
const TRAILER_BYTES: u64 = 8 + 32;
const EXTENSION: &str = "cwasm";
/// Permission bits that let others than the owner in.
const OTHERS_MODE: u32 = 0o077;
const READ_BYTES: usize = 64 << 10;

/// A folder of compiled code. Code is loaded from it without being checked by wasmtime, so nobody but the owner of
/// this process may write there; `open` makes sure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeCache {
    folder: PathBuf,
    bytes_max: u64,
}

impl CodeCache {
    /// Opens the folder, creating it where it is missing. `bytes_max` bounds what is kept: the entries that were
    /// unused for longest go first. The error is one sentence.
    pub fn open(folder: &Path, bytes_max: u64) -> Result<CodeCache, String> {
        let shown = folder.display();
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| format!("the cache folder {shown} cannot be created ({error}); name another folder"))?;
        let found = std::fs::symlink_metadata(folder)
            .map_err(|error| format!("the cache folder {shown} cannot be read ({error}); name another folder"))?;
        if !found.is_dir() {
            return Err(format!("the cache folder {shown} is not a folder; name another, or remove it"));
        }
        let own = rustix::process::geteuid().as_raw();
        if found.uid() != own {
            return Err(format!(
                "the cache folder {shown} belongs to user {}, not to this process's user {own}; name a folder of your own",
                found.uid()
            ));
        }
        if found.mode() & OTHERS_MODE != 0 {
            return Err(format!(
                "the cache folder {shown} is open to other users (mode {:03o}); run `chmod 700` on it",
                found.mode() & 0o777
            ));
        }
        Ok(CodeCache { folder: folder.to_owned(), bytes_max })
    }

    /// Loads a component's code, if it is there and whole. A damaged file is removed.
    pub(crate) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let path = self.path(engine, digest);
        match read_verified(&path) {
            Ok(true) => {}
            Ok(false) => {
                self.discard(&path, "it is damaged");
                return None;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.discard(&path, &error.to_string());
                return None;
            }
        }
        // SAFETY: wasmtime requires that the file was written by `precompile_component` and was not changed since.
        // Only this user can write to the folder (checked in `open`), files appear in it only by a rename after they
        // were written whole, the checksum rules out damage on the disk, and the engine's own header and the file's
        // name rule out code for another version or other settings. The file is never written to again in place.
        match unsafe { Component::deserialize_file(engine, &path) } {
            Ok(component) => {
                touch(&path);
                Some(component)
            }
            Err(error) => {
                self.discard(&path, &format!("{error:#}"));
                None
            }
        }
    }

    /// Writes compiled code, then loads it, so that its pages are backed by the file.
    pub(crate) fn store(&self, engine: &Engine, digest: &str, code: &[u8]) -> std::io::Result<()> {
        let path = self.path(engine, digest);
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.folder)?;
        file.write_all(code)?;
        file.write_all(TRAILER_MAGIC)?;
        file.write_all(&Sha256::digest(code))?;
        file.persist(&path).map_err(|error| error.error)?;
        self.prune(&path);
        Ok(())
    }

    fn path(&self, engine: &Engine, digest: &str) -> PathBuf {
        let mut hasher = StableHasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.folder.join(format!("{digest}-{:016x}.{EXTENSION}", hasher.finish()))
    }

    fn discard(&self, path: &Path, cause: &str) {
        tracing::warn!(file = %path.display(), cause, "compiled code is thrown away, and made anew");
        // If it cannot be removed, the new file will replace it.
        drop(std::fs::remove_file(path));
    }

    /// Removes the entries unused for longest until the rest fits; errors only mean that more is kept.
    fn prune(&self, newest: &Path) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|extension| extension == EXTENSION))
            .filter_map(|entry| {
                let found = entry.metadata().ok()?;
                Some((found.modified().ok()?, found.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= self.bytes_max {
                return;
            }
            if path != newest && std::fs::remove_file(&path).is_ok() {
                total = total.saturating_sub(bytes);
            }
        }
    }
}

/// Whether the file ends with the checksum of the rest.
fn read_verified(path: &Path) -> std::io::Result<bool> {
    let mut file = std::fs::File::open(path)?;
    let Some(code_bytes) = file.metadata()?.len().checked_sub(TRAILER_BYTES) else { return Ok(false) };
    let mut hash = Sha256::new();
    let mut code = (&mut file).take(code_bytes);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = code.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(buffer.get(..read).unwrap_or_default());
    }
    let mut trailer = Vec::new();
    file.seek(SeekFrom::Start(code_bytes))?;
    file.take(TRAILER_BYTES).read_to_end(&mut trailer)?;
    let (magic, sum) = trailer.split_at_checked(TRAILER_MAGIC.len()).unwrap_or_default();
    Ok(magic == TRAILER_MAGIC && sum == &*hash.finalize())
}

/// Marks an entry as used; if it fails, the entry only counts as older.
fn touch(path: &Path) {
    if let Ok(file) = std::fs::File::options().append(true).open(path) {
        drop(file.set_modified(SystemTime::now()));
    }
}

/// Hashes alike in every process and build, which the standard library's hasher does not promise.
struct StableHasher(Sha256);

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |value, &byte| (value << 8) | u64::from(byte))
    }
}
