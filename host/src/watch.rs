//! Which of some files and folders have changed: told when they have been still for a moment.

use anyhow::{Context, Result};
use notify::event::{EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Changes that wait to be looked at; beyond, all that is watched counts as changed.
const WAITING_MAX: usize = 4_096;
/// Folders that are watched below one folder; more is no project of a guest.
const FOLDERS_MAX: usize = 4_000;
/// Pauses that changes may put off what follows from them: a file that is written for ever must not.
const PUT_OFF_MAX: u32 = 50;

/// What is watched under one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, also if it is replaced by another of its name.
    File(PathBuf),
    /// A folder with what is below it. Left out are dot-files, and folders that tools fill: `node_modules` and `target`.
    Folder(PathBuf),
}

/// Watches places by key.
pub struct Watch<K> {
    places: Vec<(K, Place)>,
    watcher: RecommendedWatcher,
    changes: mpsc::Receiver<Option<PathBuf>>,
    still: Duration,
    watched: HashSet<PathBuf>,
}

impl<K: Clone + Ord> Watch<K> {
    /// Nothing yet. What changes is told once it has been still for that long.
    pub fn new(still: Duration) -> Result<Self> {
        let (sender, changes) = mpsc::channel(WAITING_MAX);
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let lost = match event {
                Ok(event) if is_change(event.kind) && !event.need_rescan() => {
                    event.paths.into_iter().any(|path| sender.try_send(Some(path)).is_err())
                }
                Ok(event) => event.need_rescan(),
                Err(_) => true,
            };
            if lost {
                // If there is no room for this either, it is among what waits already that something was lost.
                let _ = sender.try_send(None);
            }
        });
        let watcher = watcher.context("cannot watch files on this system")?;
        Ok(Self { places: Vec::new(), watcher, changes, still, watched: HashSet::new() })
    }

    /// Watches a place under a key; several places can have one key.
    pub fn add(&mut self, key: K, place: Place) -> Result<()> {
        let place = match place {
            Place::File(file) => {
                let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let folder = folder.canonicalize().with_context(|| format!("cannot watch `{}`", file.display()))?;
                self.watch(&folder)?;
                Place::File(folder.join(file.file_name().unwrap_or_default()))
            }
            Place::Folder(folder) => {
                let folder = folder.canonicalize().with_context(|| format!("cannot watch `{}`", folder.display()))?;
                self.watch_below(&folder)?;
                Place::Folder(folder)
            }
        };
        self.places.push((key, place));
        Ok(())
    }

    /// The keys of what has changed, once all is still. For ever pending if nothing changes.
    pub async fn next(&mut self) -> BTreeSet<K> {
        loop {
            let mut changed = BTreeSet::new();
            match self.changes.recv().await {
                Some(path) => self.take(path, &mut changed),
                None => std::future::pending().await,
            }
            let mut put_off = 0;
            let mut until = Instant::now() + self.still;
            loop {
                tokio::select! {
                    biased;
                    path = self.changes.recv(), if put_off < PUT_OFF_MAX => {
                        let before = changed.len();
                        self.take(path.flatten(), &mut changed);
                        if before < changed.len() || !changed.is_empty() {
                            put_off += 1;
                            until = Instant::now() + self.still;
                        }
                    }
                    () = sleep_until(until) => break,
                }
            }
            if !changed.is_empty() {
                return changed;
            }
        }
    }

    /// Notes whose place a change was in; none stands for changes that are not known.
    fn take(&mut self, path: Option<PathBuf>, changed: &mut BTreeSet<K>) {
        let Some(path) = path else {
            changed.extend(self.places.iter().map(|(key, _)| key.clone()));
            return;
        };
        let mut is_below = false;
        for (key, place) in &self.places {
            match place {
                Place::File(file) if *file == path => drop(changed.insert(key.clone())),
                Place::Folder(folder) if path.strip_prefix(folder).is_ok_and(is_source) => {
                    is_below = true;
                    changed.insert(key.clone());
                }
                Place::File(_) | Place::Folder(_) => {}
            }
        }
        // A folder that is new is watched from now on; what is in it already counts with it.
        if is_below && path.is_dir() {
            let _ = self.watch_below(&path).inspect_err(|error| tracing::warn!("{error:#}"));
        }
    }

    fn watch(&mut self, folder: &Path) -> Result<()> {
        if self.watched.insert(folder.to_owned()) {
            self.watcher.watch(folder, RecursiveMode::NonRecursive).with_context(|| format!("cannot watch `{}`", folder.display()))?;
        }
        Ok(())
    }

    fn watch_below(&mut self, folder: &Path) -> Result<()> {
        let mut open = VecDeque::from([folder.to_owned()]);
        let mut left = FOLDERS_MAX;
        while let Some(folder) = open.pop_front() {
            left = left.checked_sub(1).with_context(|| format!("`{}` holds more than {FOLDERS_MAX} folders", folder.display()))?;
            self.watched.remove(&folder);
            self.watch(&folder)?;
            // A folder that is gone by now has nothing to be watched.
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_source(Path::new(&entry.file_name())) {
                    open.push_back(entry.path());
                }
            }
        }
        Ok(())
    }
}

/// Whether a path below a project is one of its author's.
fn is_source(path: &Path) -> bool {
    path.components().all(|part| {
        let name = part.as_os_str().to_string_lossy();
        !name.starts_with('.') && name != "node_modules" && name != "target"
    })
}

/// Reading changes nothing, and neither does a new time of access.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_)) => false,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const STILL: Duration = Duration::from_millis(20);

    async fn next(watch: &mut Watch<&'static str>) -> Vec<&'static str> {
        tokio::time::timeout(Duration::from_secs(20), watch.next()).await.expect("a change").into_iter().collect()
    }

    #[tokio::test]
    async fn changes_are_told_by_key_and_what_tools_fill_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in ["a/src", "a/target", "b"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let file = root.join("c.wasm");
        fs::write(&file, "1").unwrap();
        let mut watch = Watch::new(STILL).unwrap();
        watch.add("a", Place::Folder(root.join("a"))).unwrap();
        watch.add("b", Place::Folder(root.join("b"))).unwrap();
        watch.add("c", Place::File(file.clone())).unwrap();

        fs::write(root.join("a/target/x"), "1").unwrap();
        fs::write(root.join("a/.swap"), "1").unwrap();
        fs::write(root.join("other.wasm"), "1").unwrap();
        fs::write(root.join("a/src/main.rs"), "1").unwrap();
        assert_eq!(next(&mut watch).await, ["a"]);
        // Editors and builds write beside and rename.
        fs::write(root.join("c.new"), "2").unwrap();
        fs::rename(root.join("c.new"), &file).unwrap();
        assert_eq!(next(&mut watch).await, ["c"]);
        fs::write(root.join("b/one"), "1").unwrap();
        fs::write(root.join("a/src/main.rs"), "2").unwrap();
        assert_eq!(next(&mut watch).await, ["a", "b"]);
    }

    #[tokio::test]
    async fn folders_that_come_later_are_watched_too() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::new(STILL).unwrap();
        watch.add("a", Place::Folder(dir.path().to_owned())).unwrap();
        fs::create_dir_all(dir.path().join("new/deep")).unwrap();
        assert_eq!(next(&mut watch).await, ["a"]);
        fs::write(dir.path().join("new/deep/x"), "1").unwrap();
        assert_eq!(next(&mut watch).await, ["a"]);
        fs::remove_dir_all(dir.path().join("new")).unwrap();
        assert_eq!(next(&mut watch).await, ["a"]);
    }
}
