//! The store at its limits, and what becomes of tasks, with time passed in.

use super::*;
use crate::changes::{HubLimits, Listener, Lists};
use crate::registry::Endpoint;
use guesthouse_protocol::model::questions::Asked;
use guesthouse_protocol::model::{CallToolResult, InputRequired, Question, Reply, Rounds};
use guesthouse_protocol::{CallContext, Event, Json, RequestId, RpcError, TaskState, TransportKind};
use serde_json::value::{RawValue, to_raw_value};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static NOW_MS: Cell<u64> = const { Cell::new(1_000) };
}

fn clock() -> u64 {
    NOW_MS.get()
}

fn owner(name: &str) -> Owner {
    Owner { principal: Some(name.into()), tenant: None, endpoint: Endpoint::Merged }
}

fn work(arguments: &str) -> Work {
    let capabilities = RawValue::from_string("{}".into()).unwrap();
    let context = CallContext {
        request_id: RequestId::Integer(1),
        revision: Revision::LATEST_MODERN,
        transport: TransportKind::Memory,
        client_info: None,
        client_capabilities: Arc::from(capabilities),
        meta: None,
        traceparent: None,
        retry: None,
        task: None,
        identity: guesthouse_protocol::Identity::default(),
        rounds: Rounds::default(),
    };
    Work { guest: "guest".into(), tool: "tool".into(), arguments: arguments.into(), context, job: None }
}

fn record(id: &str, of: &str, ttl_ms: u64) -> Record {
    Record { owner: owner(of), task: Task::new(id.into(), 1_000, ttl_ms, 500), work: work("{}"), keys: Keys::default() }
}

fn json(value: &serde_json::Value) -> Json {
    to_raw_value(value).unwrap()
}

fn text(text: &str) -> Over {
    Over::of(Ok(Reply::Tool(CallToolResult::error(text))), Revision::LATEST_MODERN)
}

fn asked(keys: &[&str]) -> InputRequired {
    let questions = keys.iter().map(|key| Asked { key: (*key).into(), question: Question::Roots }).collect();
    InputRequired { questions, guest_state: Some(b"state".to_vec()), ..InputRequired::default() }
}

fn roots() -> Result<Json, RpcError> {
    Ok(json(&serde_json::json!({ "roots": [] })))
}

fn answer(key: &str) -> (String, Result<Json, RpcError>) {
    (key.to_owned(), roots())
}

fn hub() -> Arc<Hub> {
    Hub::new(HubLimits { subscriptions_max: 4, uris_max: 4, uri_bytes_max: 1_000, queue_len_max: 16, queue_bytes_max: 10_000 })
}

fn tasks(bytes: usize) -> Arc<Tasks> {
    let store = MemoryStore::new(StoreLimits { count: 4, bytes });
    Tasks::with_clock(Box::new(store), &TaskLimits::default(), hub(), clock)
}

fn state(tasks: &Tasks, id: &str) -> &'static str {
    match tasks.task(id, &owner("a")).as_ref().map(Task::stage) {
        None => "none",
        Some(Stage::Live(Live::Working(_))) => "working",
        Some(Stage::Live(Live::Waiting(_))) => "waiting",
        Some(Stage::Over(Over::Completed(_))) => "completed",
        Some(Stage::Over(Over::Failed(_))) => "failed",
        Some(Stage::Over(Over::Cancelled)) => "cancelled",
    }
}

fn open(tasks: &Tasks, id: &str) -> Vec<String> {
    match tasks.task(id, &owner("a")).unwrap().live() {
        Some(Live::Waiting(waiting)) => waiting.open().iter().map(|asked| asked.key.clone()).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn a_store_keeps_as_many_as_it_may_and_not_one_more() {
    let store = MemoryStore::new(StoreLimits { count: 2, bytes: usize::MAX });
    assert_eq!(store.insert(record("1", "a", 10)), Ok(()));
    assert_eq!(store.insert(record("2", "a", 20)), Ok(()));
    assert_eq!(store.insert(record("3", "a", 30)), Err(Full));
    assert_eq!(store.purge(1_010).iter().map(|id| &**id).collect::<Vec<_>>(), ["1"]);
    assert_eq!(store.insert(record("3", "a", 30)), Ok(()));
}

#[test]
fn a_store_keeps_as_many_bytes_as_it_may_and_not_one_more() {
    let one = record("1", "a", 10).bytes();
    for (bytes, fits) in [(2 * one, Ok(())), (2 * one - 1, Err(Full))] {
        let store = MemoryStore::new(StoreLimits { count: 9, bytes });
        assert_eq!(store.insert(record("1", "a", 10)), Ok(()));
        assert_eq!(store.insert(record("2", "a", 10)), fits);
    }
    let store = MemoryStore::new(StoreLimits { count: 9, bytes: one + 10 });
    store.insert(record("1", "a", 10)).unwrap();
    let mut told = 0;
    store.change("1", None, &mut |record, room| {
        told = room;
        record.task.note(1_000, "ten bytes.".into());
    });
    assert_eq!((told, store.size()), (10, (1, one + 10)));
    store.purge(1_010);
    assert_eq!(store.size(), (0, 0));
}

#[test]
fn time_is_up_when_it_is_up() {
    let store = MemoryStore::new(StoreLimits { count: 9, bytes: usize::MAX });
    store.insert(record("1", "a", 500)).unwrap();
    assert!(store.purge(1_499).is_empty());
    assert!(store.read("1", None, &mut |_| {}));
    assert_eq!(store.purge(1_500).len(), 1);
    assert!(!store.read("1", None, &mut |_| {}));
}

#[test]
fn what_is_anothers_is_not_there() {
    let store = MemoryStore::new(StoreLimits { count: 9, bytes: usize::MAX });
    for (id, of) in [("1", "a"), ("2", "b"), ("3", "a"), ("4", "a")] {
        store.insert(record(id, of, 500)).unwrap();
    }
    let elsewhere = Owner { endpoint: Endpoint::Guest("g".into()), ..owner("a") };
    let nobody = Owner { principal: None, ..owner("a") };
    for (id, of, there) in
        [("1", owner("a"), true), ("1", owner("b"), false), ("1", elsewhere, false), ("1", nobody, false), ("9", owner("a"), false)]
    {
        assert_eq!(store.read(id, Some(&of), &mut |_| {}), there, "{id} {of:?}");
        assert_eq!(store.change(id, Some(&of), &mut |_, _| {}), there, "{id} {of:?}");
    }
    let page = |after, len| store.list(&owner("a"), after, len).into_iter().map(|(at, task)| (at, task.id)).collect::<Vec<_>>();
    assert_eq!(page(0, 2), [(1, "1".to_owned()), (3, "3".to_owned())]);
    assert_eq!(page(3, 2), [(4, "4".to_owned())]);
    assert!(page(4, 2).is_empty());
}

#[tokio::test]
async fn ids_cannot_be_guessed_and_times_are_bounded() {
    let tasks = tasks(usize::MAX);
    let made: Vec<Task> = [None, Some(7), Some(u64::MAX)].map(|ttl| tasks.create(owner("a"), work("{}"), ttl).unwrap()).into();
    assert_eq!(made.iter().map(|task| task.ttl_ms).collect::<Vec<_>>(), [3_600_000, 7, 86_400_000]);
    for task in &made {
        assert!(task.id.starts_with("task_") && task.id.len() == 5 + 32, "{}", task.id);
    }
    assert_ne!(made[0].id, made[1].id);
    NOW_MS.set(1_007);
    assert_eq!((state(&tasks, &made[0].id), state(&tasks, &made[1].id)), ("working", "none"));
}

#[tokio::test]
async fn answers_are_collected_until_nothing_is_open() {
    let tasks = tasks(usize::MAX);
    let id = tasks.create(owner("a"), work("{}"), None).unwrap().id;
    assert_eq!(tasks.ask(&id, asked(&["x", "y"])), Asking::Waiting);
    assert_eq!(open(&tasks, &id), ["x", "y"]);
    assert!(tasks.answer(&id, &owner("b"), &[answer("x")]).is_none());
    let misshapen = ("y".to_owned(), Ok(json(&serde_json::json!(7))));
    let some = tasks.answer(&id, &owner("a"), &[answer("x"), answer("never asked"), misshapen]).unwrap().unwrap();
    assert_eq!((some.own_keys, some.goes_on, open(&tasks, &id)), (vec!["x".to_owned()], false, vec!["y".to_owned()]));
    // Answered already, and so no longer asked.
    let again = tasks.answer(&id, &owner("a"), &[answer("x")]).unwrap().unwrap();
    assert!(again.own_keys.is_empty() && !again.goes_on);
    let refused = RpcError { code: 1, message: "no".into(), data: None };
    let rest = tasks.answer(&id, &owner("a"), &[("y".into(), Err(refused))]).unwrap().unwrap();
    assert!(rest.goes_on);
    let rounds = tasks.record(&id, None, |record| record.work.context.rounds.clone()).unwrap();
    assert_eq!((rounds.round, rounds.state.as_deref(), rounds.answers.len()), (1, Some(&b"state"[..]), 2));
    // Asked once more, it is another question.
    assert_eq!(tasks.ask(&id, asked(&["x"])), Asking::Waiting);
    assert_eq!(open(&tasks, &id), ["x-2"]);
    assert!(tasks.record(&id, None, |record| record.work.context.rounds.answer("x").is_none()).unwrap());
    assert!(tasks.answer(&id, &owner("a"), &[answer("x-2")]).unwrap().unwrap().goes_on);
    assert_eq!(tasks.ask(&id, asked(&[])), Asking::Again);
}

#[tokio::test]
async fn what_is_over_stays_as_it_is() {
    let tasks = tasks(usize::MAX);
    let id = tasks.create(owner("a"), work("{}"), None).unwrap().id;
    assert!(tasks.cancel(&id, &owner("b")).is_none());
    assert!(!tasks.cancel(&id, &owner("a")).unwrap().1);
    assert!(tasks.cancel(&id, &owner("a")).unwrap().1);
    tasks.end(&id, text("late"));
    tasks.note(&id, "later".into());
    assert_eq!(tasks.ask(&id, asked(&["x"])), Asking::Over);
    assert!(tasks.answer(&id, &owner("a"), &[answer("x")]).unwrap().unwrap().own_keys.is_empty());
    let task = tasks.task(&id, &owner("a")).unwrap();
    assert_eq!((state(&tasks, &id), task.message.as_deref()), ("cancelled", Some("The task was cancelled by request")));
}

#[tokio::test]
async fn a_result_for_which_there_is_no_room_fails_the_task() {
    let room = record(&"x".repeat(37), "a", 1).bytes() + 200;
    for (len, expected) in [(10, "completed"), (1_000, "failed")] {
        let tasks = tasks(room);
        let id = tasks.create(owner("a"), work("{}"), None).unwrap().id;
        tasks.end(&id, text(&"y".repeat(len)));
        assert_eq!(state(&tasks, &id), expected);
    }
    let tasks = tasks(room);
    let id = tasks.create(owner("a"), work("{}"), None).unwrap().id;
    assert_eq!(tasks.create(owner("a"), work("{}"), None).unwrap_err(), Full);
    tasks.ask(&id, asked(&["x"]));
    let long = json(&serde_json::json!({ "roots": [{ "uri": "y".repeat(1_000) }] }));
    assert_eq!(tasks.answer(&id, &owner("a"), &[("x".into(), Ok(long))]).unwrap().unwrap_err(), Full);
    assert_eq!(open(&tasks, &id), ["x"], "the question is still open");
    assert!(tasks.answer(&id, &owner("a"), &[answer("x")]).unwrap().unwrap().goes_on);
}

/// Says when it is dropped.
struct Witness(Arc<AtomicBool>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn endless(gone: &Arc<AtomicBool>) -> impl Future<Output = ()> + Send + 'static {
    let witness = Witness(gone.clone());
    async move {
        let _witness = witness;
        std::future::pending().await
    }
}

async fn until(gone: &Arc<AtomicBool>) {
    while !gone.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn work_stops_with_the_task_it_is_for() {
    let tasks = tasks(usize::MAX);
    let ends: [fn(&Tasks, &str); 2] = [
        |tasks, id| {
            tasks.cancel(id, &owner("a")).unwrap();
        },
        |tasks, _| {
            NOW_MS.set(10_000_000);
            tasks.purge();
        },
    ];
    for end in ends {
        NOW_MS.set(1_000);
        let gone = Arc::new(AtomicBool::new(false));
        let id: Arc<str> = tasks.create(owner("a"), work("{}"), None).unwrap().id.into();
        tasks.work_on(&id, "guest".into(), endless(&gone));
        assert!(!tasks.has_place("guest", 1) && tasks.has_place("guest", 2) && tasks.has_place("another", 1));
        end(&tasks, &id);
        until(&gone).await;
        assert!(tasks.has_place("guest", 1));
    }
    let gone = Arc::new(AtomicBool::new(false));
    let id: Arc<str> = tasks.create(owner("a"), work("{}"), None).unwrap().id.into();
    tasks.work_on(&id, "guest".into(), endless(&gone));
    drop(tasks);
    until(&gone).await;
}

#[tokio::test]
async fn work_that_breaks_down_fails_its_task_and_leaves_its_place() {
    let tasks = tasks(usize::MAX);
    let id: Arc<str> = tasks.create(owner("a"), work("{}"), None).unwrap().id.into();
    tasks.work_on(&id, "guest".into(), async { panic!("as planned") });
    assert!(tasks.settled(&id, &owner("a")).await.unwrap().live().is_none());
    assert_eq!(state(&tasks, &id), "failed");
    while !tasks.has_place("guest", 1) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn whoever_waits_learns_of_questions_and_of_the_end() {
    let tasks = tasks(usize::MAX);
    let id = tasks.create(owner("a"), work("{}"), None).unwrap().id;
    let waiting = tokio::spawn({
        let (tasks, id) = (tasks.clone(), id.clone());
        async move { (tasks.settled(&id, &owner("a")).await, tasks.settled("no such task", &owner("a")).await) }
    });
    tokio::task::yield_now().await;
    tasks.note(&id, "half".into());
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    tasks.ask(&id, asked(&["x"]));
    let (asks, none) = waiting.await.unwrap();
    assert!(matches!(asks.unwrap().live(), Some(Live::Waiting(_))) && none.is_none());
}

async fn heard(listener: &Listener) -> (Option<String>, bool) {
    match listener.next().await.unwrap() {
        Event::TaskChanged(TaskState(task)) => (task.message.clone(), task.live().is_some()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn followers_hear_the_latest_in_order_and_then_nothing() {
    let tasks = tasks(usize::MAX);
    let id = tasks.create(owner("a"), work("{}"), None).unwrap().id;
    let listener = tasks.hub.subscription(Endpoint::Merged, Lists::default()).unwrap();
    listener.follow(&id).unwrap();
    tasks.note(&id, "1".into());
    assert_eq!(heard(&listener).await, (Some("1".into()), true));
    tasks.note(&id, "2".into());
    tasks.note(&id, "3".into());
    assert_eq!(heard(&listener).await, (Some("3".into()), true), "what is overtaken is not told");
    tasks.end(&id, text("no"));
    assert_eq!(heard(&listener).await, (Some("The tool reported an error".into()), false));
    // The end makes room to follow another task.
    for other in ["1", "2", "3", "4"] {
        listener.follow(other).unwrap();
    }
    assert!(listener.follow("5").is_err());
    tasks.hub.forget_task("4");
    assert!(listener.follow("5").is_ok());
}

#[tokio::test]
async fn a_call_hands_what_it_reports_to_its_task() {
    let tasks = tasks(usize::MAX);
    let id: Arc<str> = tasks.create(owner("a"), work("{}"), None).unwrap().id.into();
    let handover = Handover::of_call();
    assert!(!handover.note("1".into()) && handover.while_call(|| {}));
    let turned = tokio::spawn({
        let handover = handover.clone();
        async move { handover.turned().await }
    });
    tokio::task::yield_now().await;
    assert!(!turned.is_finished());
    handover.turn(&tasks, &id);
    turned.await.unwrap();
    handover.turned().await;
    let message = || tasks.task(&id, &owner("a")).unwrap().message;
    assert_eq!(message().as_deref(), Some("1"));
    assert!(handover.note("2".into()) && !handover.while_call(|| panic!("it is a task")));
    assert_eq!(message().as_deref(), Some("2"));
}

fn report(state: ReportedState) -> Report {
    Report { state, message: None, poll_interval_ms: None }
}

#[tokio::test]
async fn a_guests_job_is_as_the_guest_says_but_for_ends() {
    let tasks = tasks(usize::MAX);
    let id = tasks.create(owner("a"), work("{}"), None).unwrap().id;
    let asks = |keys: &[&str]| report(ReportedState::Asks(asked(keys).questions));
    tasks.report(&id, Report { message: Some("begun".into()), poll_interval_ms: Some(0), ..report(ReportedState::Working) });
    let task = tasks.task(&id, &owner("a")).unwrap();
    assert_eq!((task.message.as_deref(), task.poll_interval_ms), (Some("begun"), 1));
    tasks.report(&id, asks(&["x"]));
    tasks.report(&id, asks(&["x"]));
    assert_eq!(open(&tasks, &id), ["x"], "the same question keeps its key");
    assert_eq!(tasks.answer(&id, &owner("a"), &[answer("x")]).unwrap().unwrap().own_keys, ["x"]);
    tasks.report(&id, asks(&["x"]));
    assert_eq!(open(&tasks, &id), ["x-2"], "asked anew, it has another");
    tasks.report(&id, report(ReportedState::Working));
    assert_eq!(state(&tasks, &id), "working");
    tasks.report(&id, report(ReportedState::Over(Over::Cancelled)));
    tasks.report(&id, report(ReportedState::Working));
    assert_eq!(state(&tasks, &id), "cancelled");
}
