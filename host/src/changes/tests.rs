//! The hub without guests: who hears what, in what order, and within which bounds.

use super::queue::EVENT_BYTES;
use super::*;
use futures_util::FutureExt as _;

const ALL: Lists = Lists { tools: true, prompts: true, resources: true };

fn hub(change: impl FnOnce(&mut HubLimits)) -> Arc<Hub> {
    let mut limits = HubLimits { subscriptions_max: 2, uris_max: 2, uri_bytes_max: 20, queue_len_max: 3, queue_bytes_max: 10_000 };
    change(&mut limits);
    Hub::new(limits)
}

fn updated(uri: &str) -> Event {
    Event::ResourceUpdated { uri: uri.into() }
}

fn watched(guest: &str, uri: &str) -> Watched {
    Watched { guest: guest.into(), uri: uri.into() }
}

/// What is there now; the last is `None` if the listener is over.
fn drain(listener: &Listener) -> Vec<Option<Event>> {
    let mut events = Vec::new();
    while let Some(event) = listener.next().now_or_never() {
        let over = event.is_none();
        events.push(event);
        if over {
            break;
        }
    }
    events
}

fn heard(events: &[Event]) -> Vec<Option<Event>> {
    events.iter().cloned().map(Some).collect()
}

#[test]
fn a_change_reaches_the_endpoints_of_its_guest_and_nobody_else() {
    let hub = hub(|limits| limits.subscriptions_max = 9);
    let merged = hub.session(Endpoint::Merged);
    let own = hub.session(Endpoint::Guest("a".into()));
    let other = hub.session(Endpoint::Guest("b".into()));
    let tools_only = hub.subscription(Endpoint::Merged, Lists { tools: true, ..Lists::default() }).unwrap();
    hub.publish(&"a".into(), &Event::ToolsChanged);
    hub.publish(&"a".into(), &Event::PromptsChanged);
    assert_eq!(drain(&merged), heard(&[Event::ToolsChanged, Event::PromptsChanged]));
    assert_eq!(drain(&own), heard(&[Event::ToolsChanged, Event::PromptsChanged]));
    assert_eq!(drain(&other), []);
    assert_eq!(drain(&tools_only), heard(&[Event::ToolsChanged]));
}

#[test]
fn an_update_reaches_only_who_watches_that_resource_of_that_guest() {
    let hub = hub(|_| {});
    let (one, two) = (hub.session(Endpoint::Merged), hub.session(Endpoint::Merged));
    one.watch(watched("a", "x:1")).unwrap();
    hub.publish(&"a".into(), &updated("x:1"));
    hub.publish(&"a".into(), &updated("x:2"));
    hub.publish(&"b".into(), &updated("x:1"));
    assert_eq!(drain(&one), heard(&[updated("x:1")]));
    assert_eq!(drain(&two), []);
    one.unwatch("x:1");
    hub.publish(&"a".into(), &updated("x:1"));
    assert_eq!(drain(&one), []);
}

#[test]
fn the_same_change_waits_once_and_keeps_its_place() {
    let hub = hub(|_| {});
    let listener = hub.subscription(Endpoint::Merged, ALL).unwrap();
    listener.watch(watched("a", "x:1")).unwrap();
    let order = [Event::ToolsChanged, updated("x:1"), Event::PromptsChanged];
    for event in order.iter().chain(&order).chain(&order) {
        hub.publish(&"a".into(), event);
    }
    assert_eq!(drain(&listener), heard(&order));
    // What was taken may wait again.
    hub.publish(&"a".into(), &Event::ToolsChanged);
    assert_eq!(drain(&listener), heard(&[Event::ToolsChanged]));
}

#[test]
fn a_subscription_that_is_too_slow_is_over_exactly_beyond_the_limit() {
    let hub = hub(|limits| limits.uris_max = 9);
    let listener = hub.subscription(Endpoint::Merged, ALL).unwrap();
    listener.watch(watched("a", "x:1")).unwrap();
    let fitting = [Event::ToolsChanged, Event::PromptsChanged, Event::ResourcesChanged];
    fitting.iter().for_each(|event| hub.publish(&"a".into(), event));
    assert_eq!(drain(&listener), heard(&fitting));
    fitting.iter().for_each(|event| hub.publish(&"a".into(), event));
    hub.publish(&"a".into(), &updated("x:1"));
    assert_eq!(drain(&listener), [None]);
    hub.publish(&"a".into(), &Event::ToolsChanged);
    assert_eq!(drain(&listener), [None]);
}

#[test]
fn bytes_are_counted_to_the_byte() {
    let two_updates = 2 * (EVENT_BYTES + 3);
    for (bytes, over) in [(two_updates, false), (two_updates - 1, true)] {
        let hub = hub(|limits| limits.queue_bytes_max = bytes);
        let listener = hub.subscription(Endpoint::Merged, ALL).unwrap();
        for uri in ["x:1", "x:2"] {
            listener.watch(watched("a", uri)).unwrap();
            hub.publish(&"a".into(), &updated(uri));
        }
        assert_eq!(drain(&listener).last() == Some(&None), over, "{bytes}");
    }
}

#[test]
fn a_session_that_is_too_slow_misses_the_oldest() {
    let hub = hub(|limits| limits.queue_len_max = 2);
    let session = hub.session(Endpoint::Merged);
    for event in [Event::ToolsChanged, Event::PromptsChanged, Event::ResourcesChanged] {
        hub.publish(&"a".into(), &event);
    }
    assert_eq!(drain(&session), heard(&[Event::PromptsChanged, Event::ResourcesChanged]));
}

#[test]
fn subscriptions_are_counted_and_sessions_are_not() {
    let hub = hub(|_| {});
    let _session = hub.session(Endpoint::Merged);
    let first = hub.subscription(Endpoint::Merged, ALL);
    let second = hub.subscription(Endpoint::Merged, ALL);
    assert!(first.is_some() && second.is_some());
    assert!(hub.subscription(Endpoint::Merged, ALL).is_none());
    drop(first);
    assert!(hub.subscription(Endpoint::Merged, ALL).is_some());
}

#[test]
fn what_one_listener_watches_is_bounded_in_number_and_bytes() {
    let hub = hub(|_| {});
    let session = hub.session(Endpoint::Merged);
    session.watch(watched("a", "x:12345678")).unwrap();
    session.watch(watched("a", "x:12345678")).unwrap();
    assert_eq!(session.watch(watched("a", "x:123456789")), Err(TooMany));
    session.watch(watched("a", "y:12345678")).unwrap();
    assert_eq!(session.watch(watched("a", "z:")), Err(TooMany));
    session.unwatch("x:12345678");
    session.watch(watched("a", "z:")).unwrap();
}

#[tokio::test]
async fn the_last_watcher_is_reported_and_nothing_stays_behind() {
    let hub = hub(|_| {});
    let (one, two) = (hub.session(Endpoint::Merged), hub.session(Endpoint::Merged));
    one.watch(watched("a", "x:1")).unwrap();
    two.watch(watched("a", "x:1")).unwrap();
    one.watch(watched("a", "x:2")).unwrap();
    drop(two);
    assert!(hub.lost().now_or_never().is_none());
    one.unwatch("x:2");
    assert_eq!(hub.lost().await, [watched("a", "x:2")]);
    drop(one);
    assert_eq!(hub.lost().await, [watched("a", "x:1")]);
    for uri in ["x:1", "x:2"] {
        assert!(!hub.is_watched(&watched("a", uri)));
        // Whoever is being told keeps the entry alive.
        let told = hub.told(&watched("a", uri)).unwrap();
        hub.forget(&watched("a", uri));
        assert!(hub.told(&watched("a", uri)).is_some());
        drop(told);
        hub.forget(&watched("a", uri));
    }
    assert_eq!(hub.counts(), (0, 0));
}

#[tokio::test]
async fn ten_thousand_sessions_are_cheap_to_reach() {
    let hub = hub(|_| {});
    let sessions: Vec<Listener> = (0..10_000).map(|_| hub.session(Endpoint::Merged)).collect();
    for _ in 0..10 {
        hub.publish(&"a".into(), &Event::ToolsChanged);
    }
    assert!(sessions.iter().all(|session| drain(session) == heard(&[Event::ToolsChanged])));
    drop(sessions);
    assert_eq!(hub.counts(), (0, 0));
}
