//! What only a file can do: outlive a process, be shared, be someone else's.

use super::*;
use crate::storage::{Part, Quota, Space};
use futures_util::FutureExt as _;
use rusqlite::params;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

fn space() -> Space {
    Space { realm: "r".into(), name: "a".into() }
}

fn set(key: &str, value: &str) -> Commit {
    let writes = vec![(key.to_owned(), Some(value.to_owned().into()))];
    Commit { parts: vec![Part { writes, ..Part::new(space(), Quota::NONE) }] }
}

async fn read(sqlite: &Sqlite, key: &str) -> Option<Vec<u8>> {
    sqlite.get(space(), vec![key.into()]).await.unwrap().remove(0).map(|record| record.value.to_vec())
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state/state.db");
    (folder, file)
}

#[tokio::test]
async fn two_that_share_a_file_see_each_other() {
    let (_folder, path) = file();
    let (one, two) = (Sqlite::open(&path).await.unwrap(), Sqlite::open(&path).await.unwrap());
    one.commit(set("k", "1")).await.unwrap();
    assert_eq!(read(&two, "k").await.as_deref(), Some(&b"1"[..]));
    let stale = two.get(space(), vec!["k".into()]).await.unwrap().remove(0).unwrap().revision;
    one.commit(set("k", "2")).await.unwrap();
    let mut late = set("k", "3");
    late.parts[0].seen.push(("k".into(), Some(stale)));
    assert_eq!(two.commit(late).await, Err(CommitError::Conflict));
    drop((one, two));
    assert_eq!(read(&Sqlite::open(&path).await.unwrap(), "k").await.as_deref(), Some(&b"2"[..]));
}

#[tokio::test]
async fn many_can_open_a_new_file_at_once() {
    let (_folder, path) = file();
    let opened = futures_util::future::join_all((0..8).map(|_| Sqlite::open(&path))).await;
    for (number, sqlite) in opened.into_iter().enumerate() {
        sqlite.unwrap().commit(set(&format!("k{number}"), "1")).await.unwrap();
    }
    assert_eq!(Sqlite::open(&path).await.unwrap().usage("r".into()).await.unwrap().keys, 8);
}

#[tokio::test]
async fn a_layout_of_tomorrow_is_refused_and_left_alone() {
    let (_folder, path) = file();
    drop(Sqlite::open(&path).await.unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 2).unwrap();
    let Failed(error) = Sqlite::open(&path).await.err().unwrap();
    assert!(error.contains("layout 2") && error.contains("path"), "{error}");
    let version: i64 = Connection::open(&path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 2);
}

#[tokio::test]
async fn what_is_something_else_is_refused() {
    let (folder, _) = file();
    let path = folder.path().join("text.db");
    std::fs::write(&path, "not a database, and long enough to have a header that could be one, were it any other text".repeat(20)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let Failed(error) = Sqlite::open(&path).await.err().unwrap();
    assert!(error.contains("no SQLite file"), "{error}");
    let other = path.with_file_name("other.db");
    std::fs::write(&other, "").unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    assert!(Sqlite::open(&other).await.is_err());
}

#[tokio::test]
async fn a_change_that_nobody_waits_for_is_withdrawn() {
    let (_folder, path) = file();
    let sqlite = Sqlite::open(&path).await.unwrap();
    // While another holds the file, nothing can be carried out.
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut withdrawn = sqlite.commit(set("withdrawn", "1"));
    let mut kept = sqlite.commit(set("kept", "1"));
    assert!((&mut withdrawn).now_or_never().is_none() && (&mut kept).now_or_never().is_none());
    drop(withdrawn);
    holder.execute_batch("COMMIT").unwrap();
    kept.await.unwrap();
    assert_eq!(read(&sqlite, "withdrawn").await, None);
    assert!(read(&sqlite, "kept").await.is_some());
}

#[tokio::test]
async fn a_commit_that_fails_in_a_group_takes_no_other_along() {
    let (_folder, path) = file();
    let sqlite = Sqlite::open(&path).await.unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut conflicting = set("conflicting", "1");
    conflicting.parts[0].seen.push(("kept".into(), Some(1_000)));
    let mut too_much = set("too-much", "1");
    too_much.parts[0].quota = Quota { keys: 0, bytes: 0 };
    let mut group: Vec<_> = [set("kept", "1"), conflicting, too_much, set("kept-too", "1")].map(|commit| sqlite.commit(commit)).into();
    for commit in &mut group {
        assert!(commit.now_or_never().is_none());
    }
    holder.execute_batch("COMMIT").unwrap();
    let outcomes = futures_util::future::join_all(group).await;
    assert!(matches!(&outcomes[..], [Ok(()), Err(CommitError::Conflict), Err(CommitError::Quota(_)), Ok(())]), "{outcomes:?}");
    assert_eq!(sqlite.keys(space(), None, 9).await.unwrap().keys, ["kept", "kept-too"]);
    assert_eq!(sqlite.usage("r".into()).await.unwrap().keys, 2);
}

#[tokio::test]
async fn a_file_that_is_full_fails_the_commit_and_works_again_later() {
    let (_folder, path) = file();
    let sqlite = Sqlite::open(&path).await.unwrap();
    sqlite.commit(set("k", "1")).await.unwrap();
    let other = Connection::open(&path).unwrap();
    // A trigger is the one way to let writing fail from outside.
    other.execute("CREATE TRIGGER full BEFORE INSERT ON entry BEGIN SELECT raise(ROLLBACK, 'full'); END", params![]).unwrap();
    let refused = sqlite.commit(set("l", "1")).await;
    assert!(matches!(&refused, Err(CommitError::Failed(text)) if text.contains("full")), "{refused:?}");
    other.execute("DROP TRIGGER full", params![]).unwrap();
    sqlite.commit(set("l", "1")).await.unwrap();
    assert_eq!(sqlite.usage("r".into()).await.unwrap().keys, 2);
}

#[tokio::test]
async fn those_who_share_a_file_know_of_each_other() {
    let (_folder, path) = file();
    let (one, two) = (Sqlite::open(&path).await.unwrap(), Sqlite::open(&path).await.unwrap());
    let nodes = one.nodes().await.unwrap();
    assert!(nodes.len() == 2 && nodes.iter().any(|node| node == two.node()) && one.node() != two.node());
}

#[tokio::test]
async fn a_read_that_nobody_waits_for_is_skipped() {
    let (_folder, path) = file();
    let sqlite = Sqlite::open(&path).await.unwrap();
    let (go, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(std::sync::Mutex::new(held));
    // All threads that read stand still, so that what follows waits in the queue.
    let busy: Vec<_> = (0..reader::READERS)
        .map(|_| {
            let held = held.clone();
            sqlite.read(move |_| Ok(held.lock().unwrap().recv().is_ok()))
        })
        .collect();
    let mut busy = Box::pin(futures_util::future::join_all(busy));
    assert!(busy.as_mut().now_or_never().is_none());
    let ran = Arc::new(std::sync::atomic::AtomicBool::new(false));
    {
        let ran = ran.clone();
        let mut given_up = Box::pin(sqlite.read(move |_| {
            ran.store(true, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        }));
        assert!(given_up.as_mut().now_or_never().is_none());
    }
    for _ in 0..reader::READERS {
        go.send(()).unwrap();
    }
    busy.await;
    // One that came later, on each thread at most.
    for _ in 0..2 * reader::READERS {
        sqlite.read(|_| Ok(())).await.unwrap();
    }
    drop(sqlite);
    assert!(!ran.load(std::sync::atomic::Ordering::SeqCst));
}
