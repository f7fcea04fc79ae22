//! Which processes use the file now. Each holds a lock on a file of its own beside it, which the system takes back whatever
//! becomes of the process.

use crate::storage::Failed;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Begins the name of a file that is not locked yet.
const UNFINISHED: char = '.';

/// This process among those that use the file. When it is dropped, or the process is gone, so is the node.
pub(super) struct Node {
    pub(super) name: String,
    folder: PathBuf,
    /// Locked.
    _file: File,
}

impl Node {
    pub(super) fn enter(storage: &Path) -> Result<Self, Failed> {
        let mut folder = storage.as_os_str().to_owned();
        folder.push("-nodes");
        let folder = PathBuf::from(folder);
        let entered = (|| {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            let name = format!("{:016x}", getrandom::u64().map_err(std::io::Error::other)?);
            let unfinished = folder.join(format!("{UNFINISHED}{name}"));
            let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&unfinished)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            // Only now can others see it, who would take one without a lock for one that is gone.
            std::fs::rename(&unfinished, folder.join(&name))?;
            Ok((name, file))
        })();
        match entered {
            Ok((name, file)) => Ok(Self { name, folder, _file: file }),
            Err(error) => {
                let error: std::io::Error = error;
                Err(Failed(format!("the folder `{}` beside the storage cannot be used ({error}); check its permissions", folder.display())))
            }
        }
    }

    /// The names of all nodes, this one included. What nodes that are gone left is removed.
    pub(super) fn all(&self) -> Result<Vec<String>, Failed> {
        let look = || {
            let mut alive = Vec::new();
            for entry in std::fs::read_dir(&self.folder)? {
                let entry = entry?;
                let Ok(name) = entry.file_name().into_string() else { continue };
                if name.starts_with(UNFINISHED) {
                    continue;
                }
                if name == self.name || is_locked(&entry.path()) {
                    alive.push(name);
                } else {
                    // If it cannot be removed, it is only looked at again.
                    let _ = std::fs::remove_file(entry.path());
                }
            }
            Ok(alive)
        };
        look().map_err(|error: std::io::Error| Failed(format!("the folder `{}` cannot be read: {error}", self.folder.display())))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // If it cannot be removed, the next one that looks finds it without a lock.
        let _ = std::fs::remove_file(self.folder.join(&self.name));
    }
}

/// Whether somebody holds the file. One that is gone meanwhile was let go.
fn is_locked(path: &Path) -> bool {
    match File::open(path) {
        Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_there_as_long_as_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let storage = folder.path().join("state.db");
        let (one, two) = (Node::enter(&storage).unwrap(), Node::enter(&storage).unwrap());
        let mut both = vec![one.name.clone(), two.name.clone()];
        both.sort();
        let sorted = |node: &Node| {
            let mut all = node.all().unwrap();
            all.sort();
            all
        };
        assert_eq!((sorted(&one), sorted(&two)), (both.clone(), both));
        drop(two);
        assert_eq!(one.all().unwrap(), std::slice::from_ref(&one.name));
        // As a process leaves it that is killed.
        let left = one.folder.join("0000000000000000");
        std::fs::write(&left, "").unwrap();
        assert_eq!(one.all().unwrap(), std::slice::from_ref(&one.name));
        assert!(!left.exists());
    }
}
