//! What every kind of storage has in common.

use super::*;
use std::collections::BTreeMap;

fn space(realm: &str, name: &str) -> Space {
    Space { realm: realm.into(), name: name.into() }
}

/// A part that writes, with `None` for what is to go.
fn part(space: &Space, writes: &[(&str, Option<&str>)]) -> Part {
    let writes = writes.iter().map(|(key, value)| ((*key).to_owned(), value.map(|value| Bytes::from(value.to_owned())))).collect();
    Part { writes, ..Part::new(space.clone(), Quota::NONE) }
}

fn seen(part: Part, seen: &[(&str, Option<u64>)]) -> Commit {
    let seen = seen.iter().map(|(key, revision)| ((*key).to_owned(), *revision)).collect();
    Commit { parts: vec![Part { seen, ..part }] }
}

async fn put(backend: &dyn Backend, space: &Space, writes: &[(&str, Option<&str>)]) {
    backend.commit(Commit { parts: vec![part(space, writes)] }).await.unwrap();
}

/// The revision that a key has now.
async fn revision(backend: &dyn Backend, space: &Space, key: &str) -> Option<u64> {
    let mut found = backend.get(space.clone(), vec![key.into()]).await.unwrap();
    found.remove(0).map(|record| record.revision)
}

async fn values(backend: &dyn Backend, space: &Space) -> BTreeMap<String, String> {
    let keys = backend.keys(space.clone(), None, 1_000).await.unwrap().keys;
    let records = backend.get(space.clone(), keys.clone()).await.unwrap();
    let text = |record: Option<Record>| String::from_utf8(record.unwrap().value.to_vec()).unwrap();
    keys.into_iter().zip(records.into_iter().map(text)).collect()
}

async fn what_is_written_is_read(backend: &dyn Backend) {
    let (a, b) = (space("r", "a"), space("r", "b"));
    let other_realm = space("s", "a");
    assert_eq!(backend.get(a.clone(), vec!["k".into()]).await.unwrap(), [None]);
    put(backend, &a, &[("k", Some("1")), ("l", Some(""))]).await;
    put(backend, &b, &[("k", Some("2"))]).await;
    assert_eq!(values(backend, &a).await, BTreeMap::from([("k".into(), "1".into()), ("l".into(), String::new())]));
    assert_eq!(values(backend, &b).await, BTreeMap::from([("k".into(), "2".into())]));
    assert!(values(backend, &other_realm).await.is_empty());
    let first = revision(backend, &a, "k").await;
    put(backend, &a, &[("k", Some("1")), ("l", None), ("m", None)]).await;
    assert!(revision(backend, &a, "k").await > first, "the same value again is a change");
    assert_eq!(values(backend, &a).await, BTreeMap::from([("k".into(), "1".into())]));
}

async fn what_is_larger_than_asked_for_is_not_handed_over(backend: &dyn Backend) {
    let a = space("r", "a");
    put(backend, &a, &[("k", Some("12345")), ("l", Some("678"))]).await;
    for (keys, bytes_max, len) in [("kl", 8, Some(2)), ("kl", 7, None), ("kk", 9, None), ("xk", 5, Some(2)), ("x", 0, Some(1))] {
        let keys = keys.chars().map(String::from).collect();
        assert_eq!(backend.get_within(a.clone(), keys, bytes_max).await.unwrap().map(|found| found.len()), len, "{bytes_max}");
    }
}

async fn pages_are_in_the_order_of_bytes(backend: &dyn Backend) {
    let a = space("r", "a");
    let sorted = [" ", "A", "B", "a", "a b", "aa", "ä", "\u{10ffff}"];
    let writes: Vec<_> = sorted.iter().rev().map(|key| (*key, Some("x"))).collect();
    put(backend, &a, &writes).await;
    for len in 1..=sorted.len() + 1 {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = backend.keys(a.clone(), after.clone(), len).await.unwrap();
            assert!(page.keys.len() == len || !page.more);
            found.extend(page.keys);
            if !page.more {
                break;
            }
            after = found.last().cloned();
        }
        assert_eq!(found, sorted, "{len}");
    }
    assert_eq!(backend.keys(space("r", "none"), None, 9).await.unwrap(), Page::default());
}

async fn what_was_seen_must_still_be_so(backend: &dyn Backend) {
    let a = space("r", "a");
    put(backend, &a, &[("k", Some("1"))]).await;
    let one = revision(backend, &a, "k").await;
    put(backend, &a, &[("k", Some("2"))]).await;
    let two = revision(backend, &a, "k").await;
    let write = part(&a, &[("x", Some("x"))]);
    let only_check = part(&a, &[]);
    for (given, looked, outcome) in [
        (&write, &[("k", one)][..], Err(CommitError::Conflict)),
        (&write, &[("k", None)], Err(CommitError::Conflict)),
        (&write, &[("none", two)], Err(CommitError::Conflict)),
        (&write, &[("k", two), ("k", one)], Err(CommitError::Conflict)),
        (&only_check, &[("k", one)], Err(CommitError::Conflict)),
        (&only_check, &[("k", two), ("none", None)], Ok(())),
    ] {
        assert_eq!(backend.commit(seen(given.clone(), looked)).await, outcome, "{looked:?}");
    }
    assert_eq!(revision(backend, &a, "x").await, None, "a conflict leaves no trace");
    assert_eq!(backend.commit(seen(write, &[("k", two), ("x", None)])).await, Ok(()));
    // What went and came back is something else.
    put(backend, &a, &[("k", None)]).await;
    put(backend, &a, &[("k", Some("2"))]).await;
    assert_eq!(backend.commit(seen(only_check, &[("k", two)])).await, Err(CommitError::Conflict));
}

async fn a_list_that_was_seen_must_be_the_same(backend: &dyn Backend) {
    let a = space("r", "a");
    let check = |listed| Commit { parts: vec![Part { listed: Some(listed), ..part(&a, &[]) }] };
    assert_eq!(backend.commit(check(0)).await, Ok(()), "an empty space");
    put(backend, &a, &[("k", Some("1"))]).await;
    assert_eq!(backend.commit(check(0)).await, Err(CommitError::Conflict));
    let page = backend.keys(a.clone(), None, 9).await.unwrap();
    for (writes, outcome) in [
        (&[("k", Some("2"))][..], Ok(())),
        (&[("none", None)], Ok(())),
        (&[("l", Some("1"))], Err(CommitError::Conflict)),
        (&[("l", None)], Err(CommitError::Conflict)),
        (&[("k", None)], Err(CommitError::Conflict)),
    ] {
        put(backend, &a, writes).await;
        assert_eq!(backend.commit(check(page.revision)).await, outcome, "{writes:?}");
    }
    assert_eq!(backend.commit(check(0)).await, Ok(()), "it is empty again");
}

async fn a_commit_over_several_spaces_is_one(backend: &dyn Backend) {
    let (a, b) = (space("r", "a"), space("r", "b"));
    put(backend, &a, &[("k", Some("1"))]).await;
    let stale = Part { seen: vec![("k".into(), None)], ..part(&a, &[]) };
    let refused = backend.commit(Commit { parts: vec![part(&b, &[("k", Some("2"))]), stale.clone()] }).await;
    assert_eq!(refused, Err(CommitError::Conflict));
    assert!(values(backend, &b).await.is_empty());
    let fresh = Part { seen: vec![("k".into(), revision(backend, &a, "k").await)], ..stale };
    backend.commit(Commit { parts: vec![part(&b, &[("k", Some("2"))]), fresh] }).await.unwrap();
    assert_eq!(values(backend, &b).await.len(), 1);
}

async fn a_realm_stays_within_its_quota(backend: &dyn Backend) {
    let (a, b, other) = (space("r", "a"), space("r", "b"), space("s", "a"));
    let with = |space: &Space, quota, writes: &[(&str, Option<&str>)]| Commit { parts: vec![Part { quota, ..part(space, writes) }] };
    let quota = Quota { keys: 2, bytes: 10 };
    put(backend, &other, &[("much", Some("more than ten bytes"))]).await;
    backend.commit(with(&a, quota, &[("a", Some("1234"))])).await.unwrap();
    let over = [
        with(&b, quota, &[("a", Some("12345"))]),
        with(&b, quota, &[("a", Some("1")), ("b", Some("1"))]),
        Commit { parts: vec![Part { quota, ..part(&a, &[("b", Some("1"))]) }, Part { quota, ..part(&b, &[("b", Some("1"))]) }] },
    ];
    for (commit, word) in over.into_iter().zip(["`state`", "`keys`", "`keys`"]) {
        let refused = backend.commit(commit).await;
        assert!(matches!(&refused, Err(CommitError::Quota(text)) if text.contains(word)), "{refused:?}");
    }
    assert_eq!(backend.usage("r".into()).await.unwrap(), Usage { keys: 1, bytes: 5 });
    backend.commit(with(&b, quota, &[("ä", Some("123"))])).await.unwrap();
    assert_eq!(backend.usage("r".into()).await.unwrap(), Usage { keys: 2, bytes: 10 });
    // A quota that was lowered since keeps nobody from having less.
    let lower = Quota { keys: 1, bytes: 1 };
    backend.commit(with(&a, lower, &[("a", Some("123"))])).await.unwrap();
    assert!(matches!(backend.commit(with(&a, lower, &[("a", Some("1234"))])).await, Err(CommitError::Quota(_))));
    backend.commit(with(&a, lower, &[("a", None)])).await.unwrap();
    backend.commit(with(&b, lower, &[("ä", None)])).await.unwrap();
    assert_eq!(backend.usage("r".into()).await.unwrap(), Usage::default());
}

async fn spaces_are_listed_and_forgotten(backend: &dyn Backend) {
    let (a, b, other) = (space("r", "a"), space("r", "b"), space("s", "b"));
    for space in [&b, &a, &other] {
        put(backend, space, &[("ä", Some("value")), ("k", Some(""))]).await;
    }
    let before = backend.keys(b.clone(), None, 1).await.unwrap();
    assert_eq!(backend.spaces("r".into()).await.unwrap(), [a.clone(), b.clone()]);
    backend.forget("b".into()).await.unwrap();
    assert_eq!(backend.spaces("r".into()).await.unwrap(), std::slice::from_ref(&a));
    assert!(backend.spaces("s".into()).await.unwrap().is_empty());
    assert_eq!(backend.usage("r".into()).await.unwrap(), Usage { keys: 2, bytes: 8 });
    assert_eq!(backend.usage("s".into()).await.unwrap(), Usage::default());
    put(backend, &b, &[("k", Some("1"))]).await;
    assert!(backend.keys(b, None, 1).await.unwrap().revision > before.revision);
    put(backend, &a, &[("k", None), ("ä", None)]).await;
    assert!(!backend.spaces("r".into()).await.unwrap().contains(&a), "a space is gone with its last key");
}

async fn of_many_at_once_none_is_lost(backend: &dyn Backend) {
    let a = space("r", "a");
    let increment = async || {
        loop {
            let found = backend.get(a.clone(), vec!["n".into()]).await.unwrap().remove(0);
            let number: u32 = found.as_ref().map_or(0, |record| std::str::from_utf8(&record.value).unwrap().parse().unwrap());
            let next = (number + 1).to_string();
            let commit = seen(part(&a, &[("n", Some(&next))]), &[("n", found.map(|record| record.revision))]);
            match backend.commit(commit).await {
                Ok(()) => return,
                Err(error) => assert_eq!(error, CommitError::Conflict),
            }
        }
    };
    futures_util::future::join_all((0..50).map(|_| increment())).await;
    assert_eq!(values(backend, &a).await["n"], "50");
}

#[tokio::test]
async fn hosts_of_two_folders_share_a_file_and_only_used_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let config = |space: Option<&str>| StorageConfig {
        path: Some(folder.path().join("state/state.db")),
        space: space.map(str::to_owned),
        ..StorageConfig::default()
    };
    let at = |space, home: &str| Storage::new(&config(space), Some(Path::new(home)));
    let [here, again, there] = ["/here", "/here", "/there"].map(|home| at(None, home));
    let (joined, too) = (at(Some("both"), "/here"), at(Some("both"), "/there"));
    let own = [space("guest/g", "guest"), space("kept/g/0", "guest"), space("tasks", "node")];
    for (number, storage) in [&here, &there, &joined].into_iter().enumerate() {
        for own in &own {
            put(storage.open().await.unwrap(), own, &[("k", Some(&number.to_string()))]).await;
        }
    }
    for (number, storage) in [(0, &again), (1, &there), (2, &too)] {
        let backend = storage.open().await.unwrap();
        for own in &own {
            assert_eq!(values(backend, own).await["k"], number.to_string());
            assert_eq!(backend.spaces(own.realm.clone()).await.unwrap(), std::slice::from_ref(own));
            assert_eq!(backend.usage(own.realm.clone()).await.unwrap().keys, 1);
        }
    }
    let used = space("replays/6c6f63616c", "used");
    put(here.open().await.unwrap(), &used, &[("t", Some("1"))]).await;
    assert_eq!(values(there.open().await.unwrap(), &used).await.len(), 1);
    // However a realm is called, it is not another's.
    let owner = config(None).owner(Some(Path::new("/here")));
    let backend = there.open().await.unwrap();
    for realm in [format!("guest/{owner}/g"), format!("{owner}/g"), format!("../guest/{owner}/g")] {
        assert!(backend.spaces(realm.as_str().into()).await.unwrap().is_empty(), "{realm}");
    }
}

/// Makes one test of each check for each kind of storage.
macro_rules! for_every_kind {
    ($($check:ident)*) => {
        mod memory {
            $(#[tokio::test]
            async fn $check() {
                super::$check(&super::Memory::default()).await;
            })*
        }
        mod sqlite {
            $(#[tokio::test]
            async fn $check() {
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("state/state.db");
                super::$check(&super::Sqlite::open(&file).await.unwrap()).await;
            })*
        }
    };
}

for_every_kind! {
    what_is_written_is_read
    what_is_larger_than_asked_for_is_not_handed_over
    pages_are_in_the_order_of_bytes
    what_was_seen_must_still_be_so
    a_list_that_was_seen_must_be_the_same
    a_commit_over_several_spaces_is_one
    a_realm_stays_within_its_quota
    spaces_are_listed_and_forgotten
    of_many_at_once_none_is_lost
}
