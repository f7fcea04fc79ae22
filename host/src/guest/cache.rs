//! Compiled code on disk, found by the component's digest and everything that the engine's settings change in it.

use std::fs::File;
use std::hash::{Hash as _, Hasher};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use sha2::{Digest as _, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Ends every cache file: these bytes, then the SHA-256 of all before them.
const TRAILER_MAGIC: &[u8; 8] = b"ghcode01";
const TRAILER_BYTES: u64 = 8 + 32;
const EXTENSION: &[u8] = b".cwasm";
/// Begins the name of a file that is being written.
const UNFINISHED: &str = ".new-";
/// Age at which a file that is being written was left behind by a process that is gone.
const UNFINISHED_AGE_MAX: Duration = Duration::from_secs(3_600);
/// Permission bits that let others than the owner in.
const OTHERS_MODE: u32 = 0o077;
/// Where each open file has a path by its number, which leads to the file itself and not to whatever has its name now.
const OPEN_FILES: &str = "/proc/self/fd";
const READ_BYTES: usize = 64 << 10;

/// A folder of compiled code. Code is loaded from it without being checked by wasmtime, so nobody but the owner of
/// this process may write there; `open` makes sure.
///
/// The folder is held open, its owner and mode are read from the open folder, and every file is reached from there and
/// never by a path. So it does not matter who can rename or replace the folders above it: whatever stands at the path
/// later, code comes from the folder that was checked, which only this user (and root) can write to.
#[derive(Debug, Clone)]
pub struct CodeCache {
    folder: Arc<OwnedFd>,
    /// For messages alone.
    shown: PathBuf,
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
        let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(folder, open, Mode::empty()).map_err(|error| match error {
            rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP => {
                format!("the cache folder {shown} is not a folder; name another, or remove it")
            }
            _ => format!("the cache folder {shown} cannot be opened ({error}); name another folder"),
        })?;
        let found = fstat(&opened).map_err(|error| format!("the cache folder {shown} cannot be read ({error}); name another folder"))?;
        let own = rustix::process::geteuid().as_raw();
        if found.st_uid != own {
            return Err(format!(
                "the cache folder {shown} belongs to user {}, not to this process's user {own}; name a folder of your own",
                found.st_uid
            ));
        }
        if found.st_mode & OTHERS_MODE != 0 {
            return Err(format!(
                "the cache folder {shown} is open to other users (mode {:03o}); run `chmod 700` on it",
                found.st_mode & 0o777
            ));
        }
        let cache = CodeCache { folder: Arc::new(opened), shown: folder.to_owned(), bytes_max };
        cache.remove_unfinished();
        Ok(cache)
    }

    /// Loads a component's code, if it is there and whole. A damaged file is removed.
    pub(crate) fn load(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let name = name(engine, digest);
        let mut file = match openat(&self.folder, &name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return None,
            Err(error) => {
                self.discard(&name, &error.to_string());
                return None;
            }
        };
        match read_verified(&mut file) {
            Ok(true) => {}
            Ok(false) => {
                self.discard(&name, "it is damaged");
                return None;
            }
            Err(error) => {
                self.discard(&name, &error.to_string());
                return None;
            }
        }
        // If it cannot be marked as used, it only counts as older.
        drop(file.set_modified(SystemTime::now()));
        // SAFETY: wasmtime requires that the file was written by `precompile_component` and was not changed since.
        // Only this user can write to the folder that is held open (checked in `open`), files appear in it only by a
        // rename after they were written whole, the checksum of this same open file rules out damage on the disk, and
        // the engine's own header and the file's name rule out code for another version or other settings. The file is
        // never written to again in place.
        match unsafe { Component::deserialize_file(engine, format!("{OPEN_FILES}/{}", file.as_raw_fd())) } {
            Ok(component) => Some(component),
            Err(error) => {
                self.discard(&name, &format!("{error:#}"));
                None
            }
        }
    }

    /// Keeps compiled code; the caller then loads it, so that its pages are backed by the file.
    pub(crate) fn store(&self, engine: &Engine, digest: &str, code: &[u8]) -> std::io::Result<()> {
        let name = name(engine, digest);
        let unfinished = format!("{UNFINISHED}{:016x}", getrandom::u64().map_err(std::io::Error::other)?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.folder, &unfinished, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file
            .write_all(code)
            .and_then(|()| file.write_all(TRAILER_MAGIC))
            .and_then(|()| file.write_all(&Sha256::digest(code)))
            .and_then(|()| renameat(&self.folder, &unfinished, &self.folder, &name).map_err(Into::into));
        if written.is_err() {
            // What is left would be removed later.
            let _ = unlinkat(&self.folder, &unfinished, AtFlags::empty());
        }
        written?;
        self.prune(&name);
        Ok(())
    }

    fn discard(&self, name: &str, cause: &str) {
        tracing::warn!(file = %self.shown.join(name).display(), cause, "compiled code is thrown away, and made anew");
        // If it cannot be removed, the new file will replace it.
        let _ = unlinkat(&self.folder, name, AtFlags::empty());
    }

    /// Removes the entries unused for longest until the rest fits; errors only mean that more is kept.
    fn prune(&self, newest: &str) {
        self.remove_unfinished();
        let mut files = self.files(|name| name.ends_with(EXTENSION));
        files.sort();
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        for file in files {
            if total <= self.bytes_max {
                return;
            }
            if file.name != newest.as_bytes() && self.remove(&file) {
                total = total.saturating_sub(file.bytes);
            }
        }
    }

    /// Removes what a process wrote that did not live to finish it.
    fn remove_unfinished(&self) {
        let limit = SystemTime::now().checked_sub(UNFINISHED_AGE_MAX).and_then(|limit| limit.duration_since(SystemTime::UNIX_EPOCH).ok());
        let limit = limit.map_or(0, |limit| i64::try_from(limit.as_secs()).unwrap_or(i64::MAX));
        for file in self.files(|name| name.starts_with(UNFINISHED.as_bytes())) {
            if file.modified.0 < limit {
                self.remove(&file);
            }
        }
    }

    fn remove(&self, file: &Kept) -> bool {
        unlinkat(&self.folder, std::ffi::OsStr::from_bytes(&file.name), AtFlags::empty()).is_ok()
    }

    /// The files with such names, as far as they can be read.
    fn files(&self, wanted: impl Fn(&[u8]) -> bool) -> Vec<Kept> {
        let Ok(entries) = rustix::fs::Dir::read_from(self.folder.as_fd()) else { return Vec::new() };
        let kept = |entry: rustix::fs::DirEntry| {
            let found = statat(&self.folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
            let bytes = u64::try_from(found.st_size).ok()?;
            is_file.then(|| Kept { modified: (found.st_mtime, found.st_mtime_nsec), bytes, name: entry.file_name().to_bytes().to_owned() })
        };
        entries.flatten().filter(|entry| wanted(entry.file_name().to_bytes())).filter_map(kept).collect()
    }
}

/// A file of the folder; ordered by age, the oldest first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    /// Seconds and nanoseconds since 1970.
    modified: (i64, u64),
    bytes: u64,
    name: Vec<u8>,
}

/// What the code of a component for this engine is called.
fn name(engine: &Engine, digest: &str) -> String {
    let mut hasher = StableHasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{digest}-{:016x}.cwasm", hasher.finish())
}

/// Whether the file ends with the checksum of the rest.
fn read_verified(file: &mut File) -> std::io::Result<bool> {
    let Some(code_bytes) = file.metadata()?.len().checked_sub(TRAILER_BYTES) else { return Ok(false) };
    let mut hash = Sha256::new();
    let mut code = (&mut *file).take(code_bytes);
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
