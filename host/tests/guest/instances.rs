//! Instances that outlive a call: whose memory a callback finds, what destroys an instance, and which has to go for others.

use std::time::{Duration, Instant};

use guesthouse::config::grants::InstancePolicy;
use guesthouse::guest::bindings::tools::ToolOutcome;
use guesthouse::guest::{CallLimits, EngineLimits, Engines, Failure, Keeping, Settings, Version, load_bytes};

use crate::support::{Recorder, engines, hostile, is_pending, keeper, limits, settings, text};

const PATIENCE: Duration = Duration::from_secs(60);

fn load(engines: &Engines, component: &[u8], limits: CallLimits, keeping: Keeping) -> Version {
    load_bytes(engines, "guest.wasm", component, Settings { keeping, ..settings(limits) }).unwrap()
}

/// The guest that counts, with an instance for each session.
fn by_session(keeping: Keeping) -> Version {
    load(engines(), keeper(), limits(), Keeping { policy: InstancePolicy::Session, ..keeping })
}

async fn call(version: &Version, session: &str, tool: &str, arguments: &str) -> Result<ToolOutcome, Failure> {
    let (caller, _) = Recorder::new();
    version.call_tool(Some(caller.of_session(session)), tool.into(), arguments.into()).await
}

/// How many calls the instance has counted that serves this session.
async fn count(version: &Version, session: &str) -> String {
    text(call(version, session, "count", "").await)
}

/// A call that waits for its client for ever.
fn stalled(version: &Version, session: &str) -> std::pin::Pin<Box<impl Future<Output = Result<ToolOutcome, Failure>> + use<>>> {
    let (version, (caller, _)) = (version.clone(), Recorder::stalled());
    let caller = caller.of_session(session);
    Box::pin(async move { version.call_tool(Some(caller), "stall".into(), String::new()).await })
}

async fn eventually(wanted: impl Fn() -> bool) {
    let start = Instant::now();
    while !wanted() {
        assert!(start.elapsed() < PATIENCE, "waited too long");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_instance_lives_for_a_call_a_session_or_the_version() {
    let table: [(InstancePolicy, [&str; 6], usize); 3] = [
        (InstancePolicy::Call, ["1", "1", "1", "1", "1", "1"], 0),
        (InstancePolicy::Session, ["1", "2", "1", "3", "1", "1"], 2),
        (InstancePolicy::Shared, ["1", "2", "3", "4", "5", "6"], 1),
    ];
    for (policy, expected, kept) in table {
        let version = load(engines(), keeper(), limits(), Keeping { policy, ..Keeping::default() });
        let mut counts = Vec::new();
        for session in ["a", "a", "b", "a"] {
            counts.push(count(&version, session).await);
        }
        for _ in 0..2 {
            // As in the modern era, and as where nobody asks.
            counts.push(text(version.call_tool(None, "count".into(), String::new()).await));
        }
        assert_eq!(counts, expected, "{policy:?}");
        assert_eq!((version.instance_policy(), version.instances_kept()), (policy, kept));
    }
}

#[tokio::test]
async fn a_crash_destroys_the_instance_and_an_error_does_not() {
    let version = by_session(Keeping::default());
    assert_eq!(count(&version, "b").await, "1");
    for (tool, stays) in [("fail", true), ("no such tool", true), ("trap", false), ("loop", false)] {
        version.end_session(&"a".into());
        assert_eq!(count(&version, "a").await, "1");
        call(&version, "a", tool, "").await.unwrap_err();
        assert_eq!(version.instances_kept(), if stays { 2 } else { 1 }, "after {tool}");
        assert_eq!(count(&version, "a").await, if stays { "2" } else { "1" }, "after {tool}");
    }
    assert_eq!(count(&version, "b").await, "2", "nobody else's instance");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancelled_call_destroys_the_instance() {
    let version = load(
        engines(),
        keeper(),
        CallLimits { cpu_ms: 600_000, wall_ms: 600_000, ..limits() },
        Keeping { policy: InstancePolicy::Session, ..Keeping::default() },
    );
    for (tool, polls) in [("stall", 1), ("loop", 1), ("loop", 200)] {
        assert_eq!(count(&version, "a").await, "1");
        let (caller, record) = Recorder::stalled();
        let mut running = Box::pin(version.call_tool(Some(caller.of_session("a")), tool.into(), String::new()));
        for _ in 0..polls {
            assert!(is_pending(&mut running).await);
            tokio::task::yield_now().await;
        }
        drop(running);
        // One that has moved to the threads for long calls goes a moment later, and the next call waits for that.
        eventually(|| record.lock().unwrap().ended).await;
    }
    assert_eq!(count(&version, "a").await, "1");
    eventually(|| version.calls_alive() == 0).await;
}

#[tokio::test]
async fn calls_have_an_instance_in_order_of_arrival() {
    let version = by_session(Keeping { waiting_max: 3, ..Keeping::default() });
    let mut first = stalled(&version, "a");
    assert!(is_pending(&mut first).await);
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(count(&version, "a"))).collect();
    for call in &mut waiting {
        assert!(is_pending(call).await);
    }
    assert_eq!(call(&version, "a", "count", "").await, Err(Failure::Busy), "the line is as long as it may be");
    assert_eq!(count(&version, "b").await, "1", "another session does not wait");
    // Whoever gives up leaves the others in their order.
    drop(waiting.remove(1));
    drop(first);
    assert!(is_pending(&mut waiting[1]).await, "not before the one that came first");
    assert_eq!(waiting.remove(0).await, "1");
    assert_eq!(waiting.remove(0).await, "2");
    assert_eq!(version.calls_alive(), 0);
}

#[tokio::test]
async fn a_wait_for_the_turn_ends() {
    let version = by_session(Keeping { turn_ms: 20, ..Keeping::default() });
    let mut first = stalled(&version, "a");
    assert!(is_pending(&mut first).await);
    assert_eq!(call(&version, "a", "count", "").await, Err(Failure::Busy));
}

#[tokio::test]
async fn the_instance_that_was_idle_for_longest_goes_for_a_new_one() {
    let keeping = Keeping { policy: InstancePolicy::Session, instances_max: 2, ..Keeping::default() };
    // One that hands its memory over, and one that cannot.
    for (component, after) in [(keeper(), ["3", "2"]), (hostile(), ["1", "1"])] {
        let version = load(engines(), component, limits(), keeping.clone());
        version.describe().await.unwrap();
        for (session, expected) in [("a", "1"), ("b", "1"), ("a", "2"), ("c", "1")] {
            assert_eq!(count(&version, session).await, expected);
        }
        assert_eq!(version.instances_kept(), 2);
        // `b` was idle for longest when `c` came, and now `a` is.
        assert_eq!(count(&version, "b").await, after[1]);
        assert_eq!(count(&version, "a").await, after[0]);
        assert_eq!(version.instances_kept(), 2);
        // Those that are in use stay.
        let (mut one, mut two) = (stalled(&version, "a"), stalled(&version, "b"));
        if component.len() == keeper().len() {
            assert!(is_pending(&mut one).await);
            assert!(is_pending(&mut two).await);
            assert_eq!(call(&version, "c", "count", "").await, Err(Failure::Busy));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_that_cannot_be_saved_or_read_is_lost_and_nothing_else() {
    let version = by_session(Keeping { instances_max: 1, saved_bytes_max: 10_000, ..Keeping::default() });
    version.describe().await.unwrap();
    for (how, after) in [("well", "2"), ("fail", "1"), ("trap", "1"), ("much", "1"), ("strangely", "1"), ("loop", "1")] {
        assert_eq!(count(&version, how).await, "1");
        text(call(&version, how, "save-badly", how).await);
        // Where it takes too long to save, whoever needs the room may not wait for the end of it.
        let start = Instant::now();
        while call(&version, "other", "count", "").await == Err(Failure::Busy) {
            assert!(start.elapsed() < PATIENCE, "{how}");
        }
        assert_eq!(count(&version, how).await, after, "{how}");
        version.end_session(&how.into());
    }
}

#[tokio::test]
async fn the_end_of_a_session_is_the_end_of_its_instance() {
    let version = by_session(Keeping { instances_max: 1, ..Keeping::default() });
    version.describe().await.unwrap();
    assert_eq!(count(&version, "a").await, "1");
    version.end_session(&"a".into());
    assert_eq!(version.instances_kept(), 0);
    assert_eq!(count(&version, "a").await, "1");
    // What it saved goes, too.
    assert_eq!(count(&version, "b").await, "1");
    version.end_session(&"a".into());
    assert_eq!(count(&version, "a").await, "1");
    // An instance in use is not kept afterwards.
    let (caller, _) = Recorder::new();
    let mut running = Box::pin(version.call_tool(Some(caller.of_session("a")), "loop".into(), String::new()));
    assert!(is_pending(&mut running).await);
    version.end_session(&"a".into());
    drop(running);
    eventually(|| version.instances_kept() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_instance_that_is_idle_for_too_long_goes_by_itself() {
    let version = by_session(Keeping { idle_ms: 50, ..Keeping::default() });
    version.describe().await.unwrap();
    for (session, expected) in [("a", "1"), ("b", "1"), ("a", "2")] {
        assert_eq!(count(&version, session).await, expected);
        eventually(|| version.instances_kept() == 0).await;
    }
}

#[tokio::test]
async fn idle_instances_make_room_for_calls() {
    let engines = Engines::new(EngineLimits { small_instances: 4, ..EngineLimits::default() }).unwrap();
    let keeping = Keeping { policy: InstancePolicy::Session, ..Keeping::default() };
    let keeps = load(&engines, keeper(), limits(), keeping);
    keeps.describe().await.unwrap();
    let sessions: Vec<String> = (0..10).map(|at| at.to_string()).collect();
    for session in &sessions {
        assert_eq!(count(&keeps, session).await, "1");
    }
    assert_eq!(keeps.instances_kept(), 4, "alone, it has the whole pool");
    // A guest without any place gets one, and another one after it.
    let others: Vec<Version> = (0..2).map(|_| load(&engines, keeper(), limits(), Keeping::default())).collect();
    let mut running = Vec::new();
    for other in &others {
        let mut call = stalled(other, "of its own");
        eventually_polled(&mut call, || other.calls_alive() == 1).await;
        running.push(call);
    }
    assert!(keeps.instances_kept() <= 3);
    for session in &sessions {
        assert_eq!(count(&keeps, session).await, "2", "what went was saved");
    }
    assert!(keeps.instances_kept() <= 2);
}

/// Polls a call until something is so.
async fn eventually_polled<T>(call: &mut std::pin::Pin<Box<impl Future<Output = T>>>, wanted: impl Fn() -> bool) {
    let start = Instant::now();
    while !wanted() {
        assert!(start.elapsed() < PATIENCE, "waited too long");
        assert!(is_pending(call).await);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn all_guests_together_keep_only_so_many() {
    let engines = Engines::new(EngineLimits { kept_instances: 3, ..EngineLimits::default() }).unwrap();
    let keeping = Keeping { policy: InstancePolicy::Session, ..Keeping::default() };
    let guests = [(); 2].map(|()| load(&engines, keeper(), limits(), keeping.clone()));
    for guest in &guests {
        guest.describe().await.unwrap();
    }
    for expected in ["1", "2", "3"] {
        for session in ["a", "b"] {
            for guest in &guests {
                assert_eq!(count(guest, session).await, expected);
                assert!(guests.iter().map(Version::instances_kept).sum::<usize>() <= 3);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_sessions_need_few_instances() {
    let version = by_session(Keeping { instances_max: 4, ..Keeping::default() });
    version.describe().await.unwrap();
    for round in ["1", "2"] {
        for session in 0..10_000 {
            assert_eq!(count(&version, &session.to_string()).await, round);
            assert!(version.instances_kept() <= 4);
        }
    }
}

#[tokio::test]
async fn limits_are_of_a_call_and_memory_is_of_the_instance() {
    let limits = CallLimits { log_lines: 5, memory_bytes: 8 << 20, ..limits() };
    let version = load(engines(), keeper(), limits, Keeping { policy: InstancePolicy::Shared, ..Keeping::default() });
    for _ in 0..3 {
        let (caller, record) = Recorder::new();
        text(version.call_tool(Some(caller), "flood".into(), String::new()).await);
        assert_eq!(record.lock().unwrap().logs.len(), 5, "as many in each call");
        assert!(record.lock().unwrap().ended, "a caller is not kept");
    }
    let mut found = Vec::new();
    for _ in 0..10 {
        found.push(text(call(&version, "a", "hoard", "").await));
    }
    assert_eq!((found[0].as_str(), found[9].as_str()), ("true", "false"), "{found:?}");
    // What was refused then does not explain what goes wrong now.
    assert!(matches!(call(&version, "a", "trap", "").await, Err(Failure::Trap(_))));
    assert_eq!(text(call(&version, "a", "hoard", "").await), "true");
}

#[tokio::test]
async fn a_version_hands_its_memories_to_the_one_after_it() {
    for (policy, sessions) in [(InstancePolicy::Session, ["a", "b", "c"]), (InstancePolicy::Shared, ["a", "a", "a"])] {
        let keeping = Keeping { policy, instances_max: 2, ..Keeping::default() };
        let [old, new] = [(); 2].map(|()| load(engines(), keeper(), limits(), keeping.clone()));
        old.describe().await.unwrap();
        let mut counts = Vec::new();
        for session in sessions {
            counts.push(count(&old, session).await.parse::<u32>().unwrap());
        }
        new.come_after(&old);
        let last = counts.pop().unwrap();
        // What a call needs is fetched for it at once.
        assert_eq!(count(&new, sessions[2]).await, (last + 1).to_string());
        assert_eq!(new.take_over().await, if policy == InstancePolicy::Session { 2 } else { 0 });
        assert_eq!(old.instances_kept(), 0);
        // A call that comes to the old one still is served where the memory is now.
        assert_eq!(count(&old, sessions[2]).await, (last + 2).to_string());
        assert_eq!((old.instances_kept(), new.take_over().await), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_runs_on_a_version_that_is_stopped_ends_on_kept_instances_too() {
    let long = CallLimits { cpu_ms: 600_000, wall_ms: 600_000, ..limits() };
    for policy in [InstancePolicy::Call, InstancePolicy::Session, InstancePolicy::Shared] {
        for tool in ["stall", "loop"] {
            let version = load(engines(), keeper(), long.clone(), Keeping { policy, ..Keeping::default() });
            let (caller, _) = Recorder::stalled();
            let mut running = Box::pin(version.call_tool(Some(caller.of_session("a")), tool.into(), String::new()));
            assert!(is_pending(&mut running).await);
            version.stop();
            let ended = tokio::time::timeout(PATIENCE, running).await.expect("it goes on");
            assert_eq!(ended, Err(Failure::Deadline), "{policy:?} {tool}");
        }
    }
}
