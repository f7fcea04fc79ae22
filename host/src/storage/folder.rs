//! The file of saved data and its folder: nobody but their owner can look into the one or write to the other.

use super::Failed;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Permission bits of a file that let others than the owner in.
const FILE_OTHERS_MODE: u32 = 0o077;
/// Permission bits of a folder that let others put something else in the file's place.
const FOLDER_OTHERS_MODE: u32 = 0o022;

/// Makes sure that the file is there and the owner's alone, in a folder that only the owner writes to. Where the folder is
/// missing, it is created, and nobody else can enter it.
pub(super) fn prepare(file: &Path) -> Result<(), Failed> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|error| failed(folder, &format!("cannot be created ({error})"), "name another file with `path` in [storage]"))?;
    check(folder, FOLDER_OTHERS_MODE, "go-w")?;
    let open = std::fs::OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(file);
    open.map_err(|error| failed(file, &format!("cannot be opened ({error})"), "name another file with `path` in [storage]"))?;
    check(file, FILE_OTHERS_MODE, "600")
}

/// Refuses what is another user's, or open to one.
fn check(path: &Path, others_mode: u32, right: &str) -> Result<(), Failed> {
    let found = std::fs::metadata(path).map_err(|error| failed(path, &format!("cannot be read ({error})"), "check its permissions"))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        let cause = format!("belongs to user {}, not to this process's user {own}", found.uid());
        return Err(failed(path, &cause, "name a file of your own with `path` in [storage]"));
    }
    if found.mode() & others_mode != 0 {
        let mode = found.mode() & 0o777;
        return Err(failed(path, &format!("is open to other users (mode {mode:03o})"), &format!("run `chmod {right}` on it")));
    }
    Ok(())
}

fn failed(path: &Path, cause: &str, remedy: &str) -> Failed {
    Failed(format!("the storage `{}` {cause}; {remedy}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_the_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b/state.db");
        prepare(&file).unwrap();
        prepare(&file).unwrap();
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn what_is_open_to_others_is_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/state.db");
        prepare(&file).unwrap();
        for (path, bad, good, remedy) in [(file.parent().unwrap(), 0o770, 0o755, "chmod go-w"), (&*file, 0o604, 0o600, "chmod 600")] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(bad)).unwrap();
            let Failed(error) = prepare(&file).unwrap_err();
            assert!(error.contains(remedy) && error.contains(&format!("{bad:03o}")), "{error}");
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(good)).unwrap();
        }
        let below_a_file = file.join("state.db");
        assert!(prepare(&below_a_file).is_err());
    }
}
