//! Compiled code is found again, and never trusted blindly.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use guesthouse::guest::{CodeCache, Settings, load_bytes};

use crate::support::{call, engines, hostile, limits, settings, text};

fn private_folder() -> tempfile::TempDir {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir().unwrap()
}

fn load(cache: &CodeCache) -> guesthouse::guest::Version {
    let settings = Settings { cache: Some(cache.clone()), ..settings(limits()) };
    load_bytes(engines(), "hostile.wasm", hostile(), settings).unwrap()
}

fn only_file(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.next().unwrap();
    assert_eq!(files.next(), None);
    file
}

#[tokio::test]
async fn code_is_kept_used_and_replaced_when_damaged() {
    let folder = private_folder();
    let cache = CodeCache::open(folder.path(), 1 << 30).unwrap();
    load(&cache);
    let file = only_file(folder.path());
    let whole = std::fs::read(&file).unwrap();
    let made = std::fs::metadata(&file).unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o600);
    assert_eq!(text(call(&load(&cache), "echo", "cached").await), "cached");
    let again = std::fs::metadata(&file).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::ino(&again), std::os::unix::fs::MetadataExt::ino(&made));

    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let zeroed = vec![0; whole.len()];
    for damaged in [&[][..], &whole[..1_000], &whole[..whole.len() - 1], &flipped, &zeroed] {
        std::fs::write(&file, damaged).unwrap();
        assert_eq!(text(call(&load(&cache), "echo", "rebuilt").await), "rebuilt");
        assert_eq!(std::fs::read(only_file(folder.path())).unwrap().len(), whole.len());
    }
}

#[test]
fn a_folder_that_others_can_enter_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [0o755, 0o770, 0o701] {
        std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let error = CodeCache::open(folder.path(), 1).unwrap_err();
        assert!(error.contains("open to other users") && error.contains("chmod 700"), "{error}");
    }
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    assert!(CodeCache::open(folder.path(), 1).is_ok());
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/tmp", &link).unwrap();
    assert!(CodeCache::open(&link, 1).unwrap_err().contains("is not a folder"));
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(CodeCache::open(&file, 1).is_err());
    let new = folder.path().join("new/inner");
    CodeCache::open(&new, 1).unwrap();
    assert_eq!(std::fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn the_oldest_code_makes_room() {
    let folder = private_folder();
    let old = folder.path().join("old.cwasm");
    std::fs::write(&old, [0; 100]).unwrap();
    let foreign = folder.path().join("foreign.txt");
    std::fs::write(&foreign, [0; 100]).unwrap();
    // What has just been made stays, even where it alone is too large.
    load(&CodeCache::open(folder.path(), 1).unwrap());
    assert!(!old.exists() && foreign.exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn who_replaces_the_folder_does_not_replace_the_code() {
    let above = private_folder();
    let (path, moved) = (above.path().join("cache"), above.path().join("moved"));
    let cache = CodeCache::open(&path, 1 << 30).unwrap();
    load(&cache);
    let name = only_file(&path).file_name().unwrap().to_owned();
    // What somebody could do who may write to a folder above this one.
    std::fs::rename(&path, &moved).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join(&name), "planted").unwrap();
    assert_eq!(text(call(&load(&cache), "echo", "from the folder that was opened").await), "from the folder that was opened");
    assert_eq!(std::fs::read(path.join(&name)).unwrap(), b"planted");
    std::fs::remove_file(moved.join(&name)).unwrap();
    load(&cache);
    assert_eq!(only_file(&moved).file_name().unwrap(), name);
    assert_eq!(std::fs::read(path.join(&name)).unwrap(), b"planted");
}

#[test]
fn what_a_crash_left_unfinished_is_removed() {
    let folder = private_folder();
    let (left, in_work) = (folder.path().join(".new-left"), folder.path().join(".new-in-work"));
    let leave = || {
        let file = std::fs::File::create(&left).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(7_200)).unwrap();
    };
    std::fs::write(&in_work, "x").unwrap();
    leave();
    let cache = CodeCache::open(folder.path(), 1 << 30).unwrap();
    assert!(!left.exists() && in_work.exists());
    leave();
    load(&cache);
    assert!(!left.exists() && in_work.exists());
}
