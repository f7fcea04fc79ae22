//! What a callback sees of its own writes and of others', against a plain map.

use super::*;
use crate::capability::keyvalue::Sessions;
use crate::capability::keyvalue::reads::READS_AT_ONCE_MAX;
use crate::storage::{Failed, Page, Record, Sqlite};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const KEYS: [&str; 4] = ["a", "b", "ba", "c"];

fn space() -> Space {
    Space { realm: "guest/g".into(), name: "guest".into() }
}

fn shelf(quota: Quota, value_bytes: usize) -> Shelf {
    Shelf { storage: Storage::memory(), quota, value_bytes, sessions: Sessions::default(), reads: Reads::default() }
}

fn roomy() -> Shelf {
    shelf(Quota::NONE, 1_000)
}

#[derive(Clone, Debug)]
enum Act {
    Get(usize),
    Set(usize, u64),
    Delete(usize),
    Add(usize, u64),
    List,
}

fn act() -> impl Strategy<Value = Act> {
    let key = 0..KEYS.len();
    prop_oneof![
        key.clone().prop_map(Act::Get),
        (key.clone(), 0..100_u64).prop_map(|(key, value)| Act::Set(key, value)),
        key.clone().prop_map(Act::Delete),
        (key, 0..100_u64).prop_map(|(key, delta)| Act::Add(key, delta)),
        Just(Act::List),
    ]
}

/// What a callback learned by an act.
#[derive(Clone, Debug, PartialEq)]
enum Learned {
    Nothing,
    Value(Option<String>),
    Sum(u64),
    Keys(Vec<String>),
}

async fn on_tx(tx: &mut Tx, backend: &dyn Backend, act: &Act) -> Learned {
    let space = space();
    match *act {
        Act::Get(key) => {
            let value = tx.get(backend, &space, vec![KEYS[key].into()]).await.unwrap().remove(0);
            Learned::Value(value.map(|value| String::from_utf8(value.to_vec()).unwrap()))
        }
        Act::Set(key, value) => {
            tx.write(backend, &space, KEYS[key].into(), Some(value.to_string().into())).await.unwrap();
            Learned::Nothing
        }
        Act::Delete(key) => {
            tx.write(backend, &space, KEYS[key].into(), None).await.unwrap();
            Learned::Nothing
        }
        Act::Add(key, delta) => Learned::Sum(tx.increment(backend, &space, KEYS[key].into(), delta).await.unwrap()),
        Act::List => Learned::Keys(tx.list(backend, &space, None).await.unwrap().0),
    }
}

fn on_map(map: &mut BTreeMap<String, String>, act: &Act) -> Learned {
    match *act {
        Act::Get(key) => Learned::Value(map.get(KEYS[key]).cloned()),
        Act::Set(key, value) => {
            map.insert(KEYS[key].into(), value.to_string());
            Learned::Nothing
        }
        Act::Delete(key) => {
            map.remove(KEYS[key]);
            Learned::Nothing
        }
        Act::Add(key, delta) => {
            let sum = map.get(KEYS[key]).map_or(0, |value| value.parse::<u64>().unwrap()) + delta;
            map.insert(KEYS[key].into(), sum.to_string());
            Learned::Sum(sum)
        }
        Act::List => Learned::Keys(map.keys().cloned().collect()),
    }
}

async fn content(backend: &dyn Backend) -> BTreeMap<String, String> {
    let keys = backend.keys(space(), None, 100).await.unwrap().keys;
    let records = backend.get(space(), keys.clone()).await.unwrap();
    keys.into_iter().zip(records.into_iter().map(|record| String::from_utf8(record.unwrap().value.to_vec()).unwrap())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Callbacks that run mixed up, each commit of which is as if the callback had run alone at that moment.
    #[test]
    fn commits_are_as_if_callbacks_ran_one_after_the_other(
        acts in prop::collection::vec((0..3_usize, act()), 0..40),
        commits in prop::collection::vec((0..40_usize, 0..3_usize), 3..9),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async move {
            let shelf = roomy();
            let backend = shelf.storage.open().await.unwrap();
            let mut map = BTreeMap::new();
            let mut running: Vec<(Tx, Vec<(Act, Learned)>)> = (0..3).map(|_| (Tx::new(&shelf), Vec::new())).collect();
            for moment in 0..=40 {
                if let Some((who, act)) = acts.get(moment) {
                    let (tx, done) = &mut running[*who];
                    let learned = on_tx(tx, backend, act).await;
                    done.push((act.clone(), learned));
                }
                for (_, who) in commits.iter().filter(|(at, _)| *at == moment) {
                    let (tx, done) = std::mem::replace(&mut running[*who], (Tx::new(&shelf), Vec::new()));
                    let unchecked = !tx.has_writes() && tx.looks <= 1;
                    match tx.commit().await {
                        // One look is true at the moment of the look, which may be over.
                        Ok(()) if unchecked => {}
                        Ok(()) => {
                            for (act, learned) in done {
                                assert_eq!(on_map(&mut map, &act), learned, "{act:?}");
                            }
                        }
                        Err(error) => assert_eq!(error, CommitError::Conflict),
                    }
                }
            }
            assert_eq!(content(backend).await, map);
        });
    }
}

#[tokio::test]
async fn pages_show_the_callbacks_own_keys_in_their_places() {
    let shelf = roomy();
    let backend = shelf.storage.open().await.unwrap();
    let key = |number: usize| format!("k{number:05}");
    let mut tx = Tx::new(&shelf);
    for number in (0..1_200).map(|number| 2 * number) {
        tx.write(backend, &space(), key(number), Some("x".into())).await.unwrap();
    }
    tx.commit().await.unwrap();
    let mut tx = Tx::new(&shelf);
    let mut expected: BTreeSet<String> = (0..1_200).map(|number| key(2 * number)).collect();
    for number in [0, 998, 1_000, 2_398] {
        tx.write(backend, &space(), key(number), None).await.unwrap();
        expected.remove(&key(number));
    }
    for number in [1, 997, 1_001, 2_399, 9_999] {
        tx.write(backend, &space(), key(number), Some("x".into())).await.unwrap();
        expected.insert(key(number));
    }
    let (mut listed, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let (keys, next) = tx.list(backend, &space(), cursor).await.unwrap();
        listed.extend(keys);
        pages += 1;
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, expected.into_iter().collect::<Vec<_>>());
    assert_eq!(pages, 3);
    let elsewhere = Space { name: "principal/-/local".into(), ..space() };
    for (space, cursor) in [(space(), 2), (space(), u64::MAX), (elsewhere, 0)] {
        assert!(matches!(tx.list(backend, &space, Some(cursor)).await, Err(Refused::Other(_))), "{cursor}");
    }
}

#[tokio::test]
async fn what_is_too_much_is_refused_at_once_where_that_is_known() {
    let shelf = shelf(Quota { keys: 2, bytes: 20 }, 10);
    let backend = shelf.storage.open().await.unwrap();
    let mut tx = Tx::new(&shelf);
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    let table: [(&str, Option<usize>, Result<(), &str>); 9] = [
        ("", Some(1), Err("a key has")),
        (&long, Some(1), Err("a key has")),
        ("a\0b", None, Err("a key has")),
        ("a", Some(11), Err("`value`")),
        ("a", Some(9), Ok(())),
        ("b", Some(10), Err("`state`")),
        ("b", Some(9), Ok(())),
        ("c", Some(0), Err("`keys`")),
        ("a", None, Ok(())),
    ];
    for (key, len, outcome) in table {
        let written = tx.write(backend, &space(), key.into(), len.map(|len| Bytes::from(vec![b'x'; len]))).await;
        match outcome {
            Ok(()) => assert_eq!(written, Ok(()), "{key}"),
            Err(part) => assert!(matches!(&written, Err(Refused::Other(text)) if text.contains(part)), "{key}: {written:?}"),
        }
    }
    tx.commit().await.unwrap();
    // What is there already counts, as far as the callback has looked; the commit counts all of it.
    let mut looks = Tx::new(&shelf);
    assert_eq!(looks.get(backend, &space(), vec!["c".into(), "d".into()]).await.unwrap(), [None, None]);
    looks.write(backend, &space(), "c".into(), Some("x".into())).await.unwrap();
    let refused = looks.write(backend, &space(), "d".into(), Some("x".into())).await;
    assert!(matches!(&refused, Err(Refused::Other(text)) if text.contains("`keys`")), "{refused:?}");
    looks.commit().await.unwrap();
    let mut blind = Tx::new(&shelf);
    blind.write(backend, &space(), "e".into(), Some("x".into())).await.unwrap();
    assert!(matches!(blind.commit().await, Err(CommitError::Quota(text)) if text.contains("`keys`")));
}

#[tokio::test]
async fn what_one_callback_may_do_is_bounded() {
    let shelf = shelf(Quota::NONE, usize::MAX);
    let backend = shelf.storage.open().await.unwrap();
    let mut tx = Tx::new(&shelf);
    let many = |len: usize| (0..len).map(|number| format!("k{number}")).collect::<Vec<_>>();
    assert!(tx.get(backend, &space(), many(KEYS_MAX)).await.is_ok());
    assert!(matches!(tx.get(backend, &space(), vec!["one-more".into()]).await, Err(Refused::Other(_))));
    let mut tx = Tx::new(&shelf);
    let half = Bytes::from(vec![0; BATCH_BYTES_MAX / 2]);
    tx.write(backend, &space(), "a".into(), Some(half.clone())).await.unwrap();
    assert!(matches!(tx.write(backend, &space(), "b".into(), Some(half.clone())).await, Err(Refused::Other(_))));
    assert_eq!(tx.get(backend, &space(), vec!["a".into()]).await.unwrap(), [Some(half)]);
    let batch = tx.get(backend, &space(), vec!["a".into(); 3]).await;
    assert!(matches!(&batch, Err(Refused::Other(text)) if text.contains("batch")), "{batch:?}");
}

#[tokio::test]
async fn a_batch_is_no_larger_for_keys_that_it_asks_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(&folder.path().join("state/state.db")).await.unwrap();
    let value = Bytes::from(vec![0; BATCH_BYTES_MAX / 4]);
    let mut part = Part::new(space(), Quota::NONE);
    part.writes = ["a", "b", "c", "d", "e"].map(|key| (key.to_owned(), Some(value.clone()))).into();
    sqlite.commit(Commit { parts: vec![part] }).await.unwrap();
    let counting = Counting { sqlite, asked: Mutex::default() };
    let shelf = Shelf { storage: Storage::memory(), ..roomy() };
    for (asked, fits, read) in [("aaaa", true, 1), ("aaaaa", false, 1), ("abcd", true, 4), ("abcdebcde", false, 5), ("e", true, 1)] {
        let keys = asked.chars().map(String::from).collect();
        let got = Tx::new(&shelf).get(&counting, &space(), keys).await;
        assert_eq!(got.as_ref().map(Vec::len).ok(), fits.then_some(asked.len()), "{asked}");
        assert!(fits || matches!(&got, Err(Refused::Other(text)) if text.contains("batch")), "{asked}");
        let bytes_max = if asked.len() > 1 { BATCH_BYTES_MAX } else { usize::MAX };
        assert_eq!(counting.asked.lock().unwrap().take(), Some((read, bytes_max)), "{asked}");
    }
}

/// Storage that notes how many keys it was asked for, and within how many bytes.
struct Counting {
    sqlite: Sqlite,
    asked: Mutex<Option<(usize, usize)>>,
}

impl Backend for Counting {
    fn get_within(&self, space: Space, keys: Vec<String>, bytes_max: usize) -> BoxFuture<'_, Result<Option<Vec<Option<Record>>>, Failed>> {
        *self.asked.lock().unwrap() = Some((keys.len(), bytes_max));
        self.sqlite.get_within(space, keys, bytes_max)
    }

    fn keys(&self, space: Space, after: Option<String>, len: usize) -> BoxFuture<'_, Result<Page, Failed>> {
        self.sqlite.keys(space, after, len)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), CommitError>> {
        self.sqlite.commit(commit)
    }

    fn spaces(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Vec<Space>, Failed>> {
        self.sqlite.spaces(realm)
    }

    fn usage(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Usage, Failed>> {
        self.sqlite.usage(realm)
    }

    fn forget(&self, name: Arc<str>) -> BoxFuture<'_, Result<(), Failed>> {
        self.sqlite.forget(name)
    }

    fn node(&self) -> &str {
        self.sqlite.node()
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, Failed>> {
        self.sqlite.nodes()
    }
}

#[tokio::test]
async fn reads_of_one_guest_wait_for_each_other_and_not_those_of_another() {
    let (busy, other) = (roomy(), roomy());
    let mut turns = Vec::new();
    for _ in 0..READS_AT_ONCE_MAX {
        turns.push(busy.reads.turn().await);
    }
    let (mut tx, mut beside) = (Tx::new(&busy), Tx::new(&other));
    let backend = busy.storage.open().await.unwrap();
    {
        let space = space();
        let mut waits = std::pin::pin!(tx.get(backend, &space, vec!["a".into()]));
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(beside.get(backend, &space, vec!["a".into()]).now_or_never().is_some());
        turns.pop();
        assert!(waits.now_or_never().is_some());
    }
    turns.push(busy.reads.turn().await);
    let space = space();
    assert!(tx.list(backend, &space, None).now_or_never().is_none());
    assert!(tx.write(backend, &space, "a".into(), None).now_or_never().is_none());
}

#[tokio::test]
async fn numbers_are_decimal_text_and_do_not_wrap() {
    let shelf = roomy();
    let backend = shelf.storage.open().await.unwrap();
    let mut tx = Tx::new(&shelf);
    assert_eq!(tx.increment(backend, &space(), "n".into(), 2).await, Ok(2));
    assert_eq!(tx.increment(backend, &space(), "n".into(), 40).await, Ok(42));
    assert_eq!(tx.get(backend, &space(), vec!["n".into()]).await.unwrap(), [Some("42".into())]);
    assert!(matches!(tx.increment(backend, &space(), "n".into(), u64::MAX).await, Err(Refused::Other(_))));
    for text in ["", "x", "-1", "1.0", "\u{ff}", "18446744073709551616"] {
        tx.write(backend, &space(), "n".into(), Some(text.into())).await.unwrap();
        assert!(matches!(tx.increment(backend, &space(), "n".into(), 1).await, Err(Refused::Other(_))), "{text}");
    }
}

#[tokio::test]
async fn what_init_wrote_is_dropped_and_what_it_read_still_counts() {
    let shelf = roomy();
    let backend = shelf.storage.open().await.unwrap();
    let mut tx = Tx::new(&shelf);
    tx.get(backend, &space(), vec!["setting".into()]).await.unwrap();
    tx.write(backend, &space(), "by-init".into(), Some("x".into())).await.unwrap();
    tx.drop_writes();
    assert_eq!(tx.get(backend, &space(), vec!["by-init".into()]).await.unwrap(), [None]);
    tx.write(backend, &space(), "by-callback".into(), Some("x".into())).await.unwrap();
    let mut other = Tx::new(&shelf);
    other.write(backend, &space(), "setting".into(), Some("changed".into())).await.unwrap();
    other.commit().await.unwrap();
    assert_eq!(tx.commit().await, Err(CommitError::Conflict));
    assert_eq!(content(backend).await.into_keys().collect::<Vec<_>>(), ["setting"]);
}

#[tokio::test]
async fn what_was_never_true_at_one_moment_conflicts_though_it_is_as_before() {
    for lists in [false, true] {
        let shelf = roomy();
        let backend = shelf.storage.open().await.unwrap();
        let mut tx = Tx::new(&shelf);
        let look = async |tx: &mut Tx| match lists {
            true => tx.list(backend, &space(), None).await.unwrap().0.len(),
            false => tx.get(backend, &space(), vec!["a".into()]).await.unwrap().iter().flatten().count(),
        };
        assert_eq!(look(&mut tx).await, 0);
        for (value, seen) in [(Some("1".into()), 1), (None, 0)] {
            let mut other = Tx::new(&shelf);
            other.write(backend, &space(), "a".into(), value).await.unwrap();
            other.commit().await.unwrap();
            assert_eq!(look(&mut tx).await, seen);
        }
        assert_eq!(tx.commit().await, Err(CommitError::Conflict), "{lists}");
    }
}

#[tokio::test]
async fn one_that_reads_twice_learns_what_was_true_at_one_moment() {
    let shelf = roomy();
    let backend = shelf.storage.open().await.unwrap();
    let mut tx = Tx::new(&shelf);
    tx.get(backend, &space(), vec!["a".into()]).await.unwrap();
    let mut other = Tx::new(&shelf);
    other.write(backend, &space(), "a".into(), Some("1".into())).await.unwrap();
    other.write(backend, &space(), "b".into(), Some("1".into())).await.unwrap();
    other.commit().await.unwrap();
    tx.get(backend, &space(), vec!["b".into()]).await.unwrap();
    assert_eq!(tx.commit().await, Err(CommitError::Conflict));
}
