//! `wasi:filesystem/preopens`: the folders that a guest was granted, and no other place.
//!
//! How paths below them are resolved is wasmtime's: `..`, absolute paths and links that lead out of a folder fail there.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, Dir};
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::{FsPerms, OpenMode};

use crate::config::grants::DirGrant;
use crate::guest::State;

/// Folders of the host, each under the path at which a guest finds it. They are opened once, when the guest is loaded:
/// what their names lead to afterwards makes no difference. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Folders(Arc<[(String, Dir)]>);

impl Folders {
    /// Opens the folders; fails with the first that is none.
    pub fn open(grants: &[DirGrant]) -> Result<Self, (DirGrant, std::io::Error)> {
        let opened = grants.iter().map(|grant| {
            let folder = open(&grant.host).map_err(|error| (grant.clone(), error))?;
            let (perms, mode) = match grant.write {
                true => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
                false => (FsPerms::ReadOnly, OpenMode::READ),
            };
            // The last argument would let file operations block the thread that runs the guest.
            Ok((grant.guest.clone(), Dir::new(folder, perms, mode, false)))
        });
        opened.collect::<Result<Arc<[_]>, _>>().map(Self)
    }
}

impl std::fmt::Debug for Folders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(path, _)| path)).finish()
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    let flags = i32::try_from((OFlags::DIRECTORY | OFlags::CLOEXEC).bits()).unwrap_or(0);
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if folder.metadata()?.is_dir() { Ok(folder) } else { Err(std::io::ErrorKind::NotADirectory.into()) }
}

/// What the interface works on.
pub(crate) struct FoldersView<'a> {
    pub(crate) folders: &'a Folders,
    pub(crate) table: &'a mut ResourceTable,
}

impl preopens::Host for FoldersView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let list = self.folders.0.iter();
        list.map(|(path, folder)| Ok((self.table.push(Descriptor::Dir(folder.clone()))?, path.clone()))).collect()
    }
}

struct Preopens;

impl HasData for Preopens {
    type Data<'a> = FoldersView<'a>;
}

/// Puts this interface in the place of the one that belongs to wasmtime's context, which opens folders by name for each call.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let added = preopens::add_to_linker::<State, Preopens>(linker, State::folders);
    linker.allow_shadowing(false);
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("file", folder.path().join("link")).unwrap();
        let grant = |name: &str| DirGrant { host: folder.path().join(name), guest: "/d".into(), write: false };
        for name in ["file", "link", "missing"] {
            let (refused, _) = Folders::open(&[grant("."), grant(name)]).unwrap_err();
            assert_eq!(refused, grant(name));
        }
        assert_eq!(format!("{:?}", Folders::open(&[grant(".")]).unwrap()), "[\"/d\"]");
    }
}
