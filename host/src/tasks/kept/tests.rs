//! Tasks that are taken over, as if the process before had been killed.

use super::*;
use crate::registry::Endpoint;
use crate::storage::Sqlite;
use crate::tasks::{Keys, Work};
use guesthouse_protocol::model::questions::Asked;
use guesthouse_protocol::model::tasks::{Live, Over};
use guesthouse_protocol::model::{CallToolResult, Question, Reply, Rounds};
use guesthouse_protocol::{CallContext, Identity, RequestId, Revision, RpcError, TransportKind};
use serde_json::value::RawValue;
use std::path::Path;

const LIMITS: StoreLimits = StoreLimits { count: 1_000, bytes: 1 << 20 };

fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.into()).unwrap()
}

fn record(id: &str) -> Record {
    let context = CallContext {
        request_id: RequestId::String("r".into()),
        revision: Revision::V2025_11_25,
        transport: TransportKind::Stdio,
        client_info: Some(json(r#"{"name":"c"}"#).into()),
        client_capabilities: json("{}").into(),
        meta: Some(json(r#"{"a":1}"#)),
        traceparent: None,
        identity: Identity { session: Some("s".into()), ..crate::identity::local() },
        retry: None,
        task: None,
        rounds: Rounds {
            answers: vec![("k".into(), Ok(json("[1]"))), ("e".into(), Err(RpcError { code: -1, message: "no".into(), data: None }))],
            state: Some(vec![0, 255]),
            round: 2,
        },
    };
    let owner = Owner { principal: Some("local".into()), tenant: None, endpoint: Endpoint::Guest("g".into()) };
    let work = Work { guest: "g".into(), tool: "t".into(), arguments: r#"{"x":1}"#.into(), context, job: None };
    Record { owner, task: Task::new(id.into(), 1_000, 60_000, 500), work, keys: Keys::default() }
}

async fn storage(path: &Path) -> Storage {
    Storage::of(Box::new(Sqlite::open(path).await.unwrap()))
}

fn shown(store: &impl Store, id: &str) -> Option<String> {
    let mut shown = None;
    store.read(id, None, &mut |record| shown = Some(format!("{record:?}")));
    shown
}

#[tokio::test]
async fn all_of_a_task_outlives_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/state.db");
    let first = KeptStore::open(&storage(&path).await, LIMITS, 0, &|_| true).await.unwrap();
    for id in ["working", "waiting", "done", "gone"] {
        first.insert(record(id)).unwrap();
    }
    let asked = |record: &mut Record| {
        let questions = record.keys.open(vec![Asked { key: "roots".into(), question: Question::Elicit(json(r#"{"message":"?"}"#)) }]);
        record.task.advance(1_500, |live| match live {
            Live::Working(working) => working.ask(questions).into(),
            waiting @ Live::Waiting(_) => waiting.into(),
        });
    };
    first.change("waiting", None, &mut |record, _| asked(record));
    let done = || Over::of(Ok(Reply::Tool(CallToolResult::error("it is"))), Revision::LATEST_MODERN);
    first.change("done", None, &mut |record, _| assert!(record.task.advance(1_600, |_| done().into())));
    first.change("working", None, &mut |record, _| assert!(record.task.note(1_700, "half".into())));
    first.change("gone", None, &mut |record, _| record.task.ttl_ms = 0);
    for id in ["working", "waiting", "done", "gone"] {
        first.saved(id).await.unwrap();
    }
    let before: Vec<_> = ["working", "waiting", "done"].map(|id| shown(&first, id)).into();
    // While its process is there, nobody takes a task over.
    let beside = KeptStore::open(&storage(&path).await, LIMITS, 2_000, &|_| true).await.unwrap();
    assert!(beside.ids().is_empty());
    drop((first, beside));
    let storage = storage(&path).await;
    let backend = storage.open().await.unwrap();
    // The saver holds the storage for as long as it takes to stop.
    while backend.nodes().await.unwrap().len() > 1 {
        tokio::task::yield_now().await;
    }
    let next = KeptStore::open(&storage, LIMITS, 2_000, &|_| true).await.unwrap();
    let unbound = |text: Option<String>| text.map(|text| text.replace("session: Some(\"s\")", "session: None"));
    let after: Vec<_> = ["working", "waiting", "done"].map(|id| shown(&next, id)).into();
    assert_eq!(after, before.into_iter().map(unbound).collect::<Vec<_>>());
    assert_eq!(next.ids().len(), 3, "what has expired is not taken over");
    let names: Vec<String> = backend.spaces(REALM.into()).await.unwrap().iter().map(|space| space.name.to_string()).collect();
    assert_eq!(names, [backend.node().to_owned()]);
    assert_eq!(next.purge(u64::MAX).len(), 3);
    for id in ["working", "waiting", "done"] {
        next.saved(id).await.unwrap();
    }
    assert!(backend.spaces(REALM.into()).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_cannot_be_read_is_dropped() {
    let storage = Storage::memory();
    let backend = storage.open().await.unwrap();
    let mut part = Part::new(space("gone"), Quota::NONE);
    let whole = serde_json::to_vec(&record("whole")).unwrap();
    part.writes = vec![("broken".into(), Some("{\"owner\":1}".into())), ("whole".into(), Some(whole.into()))];
    backend.commit(Commit { parts: vec![part] }).await.unwrap();
    let store = KeptStore::open(&storage, LIMITS, 0, &|_| true).await.unwrap();
    assert_eq!(store.ids().iter().map(|id| id.to_string()).collect::<Vec<_>>(), ["whole"]);
}

#[tokio::test]
async fn tasks_of_guests_that_are_not_served_here_are_left_alone() {
    let storage = Storage::memory();
    let backend = storage.open().await.unwrap();
    let mut part = Part::new(space("gone"), Quota::NONE);
    // More than are looked at at once, so that those that stay are passed by.
    for number in 0..2 * GROUP_MAX {
        let id = format!("{number:05}");
        let mut record = record(&id);
        record.work.guest = if number % 3 == 0 { "g".into() } else { "other".into() };
        if number == 1 {
            record.task.ttl_ms = 0;
        }
        part.writes.push((id, Some(serde_json::to_vec(&record).unwrap().into())));
    }
    backend.commit(Commit { parts: vec![part] }).await.unwrap();
    let store = KeptStore::open(&storage, LIMITS, 2_000, &|guest| guest == "g").await.unwrap();
    let own = (2 * GROUP_MAX).div_ceil(3);
    assert_eq!(store.ids().len(), own);
    let left = backend.keys(space("gone"), None, 1_000).await.unwrap().keys;
    assert_eq!(left.len(), 2 * GROUP_MAX - own - 1, "what has expired goes, whose ever it is");
    let beside = KeptStore::open(&storage, LIMITS, 2_000, &|guest| guest == "other").await.unwrap();
    assert_eq!(beside.ids().len(), left.len());
}
