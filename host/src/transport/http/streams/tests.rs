//! Streams without HTTP: order, replay, places, and what is kept.

use super::*;
use futures_util::FutureExt as _;
use std::future::poll_fn;
use std::time::Duration;

const TIME: Duration = Duration::from_secs(60);

fn streams(events_max: usize, bytes_max: usize) -> Arc<Streams> {
    with_budget(events_max, bytes_max, &Budget::new(usize::MAX))
}

fn with_budget(events_max: usize, bytes_max: usize, budget: &Arc<Budget>) -> Arc<Streams> {
    Streams::new(ReplayLimits { events_max, bytes_max, time: TIME }, budget.clone())
}

fn response(text: &'static str) -> Option<Outgoing> {
    Some(Outgoing { message: text.into(), call: None, status: 200, retry_after_s: None, last: true })
}

/// What can be read now: `1:text` for an event, `=text` for a whole answer, `.` for the end.
fn read(reader: &mut Reader) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(step) = poll_fn(|context| reader.poll_step(context)).now_or_never() {
        let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        match step {
            Step::Event(message, written) => {
                if let Some(written) = written {
                    written.send(()).unwrap();
                }
                seen.push(format!("{}:{}", reader.last, text(&message)));
                continue;
            }
            Step::Answer(outgoing) => seen.push(format!("={}", outgoing.map(|outgoing| text(&outgoing.message)).unwrap_or_default())),
            Step::Over => seen.push(".".into()),
        }
        break;
    }
    seen
}

#[test]
fn an_answer_that_nothing_precedes_is_no_stream_and_leaves_nothing() {
    let streams = streams(9, 9_000);
    for (outgoing, seen) in [(response("r"), "=r"), (None, "=")] {
        let mut reader = streams.open();
        let id = reader.stream();
        assert!(read(&mut reader).is_empty());
        streams.end(id, outgoing);
        assert_eq!(read(&mut reader), [seen]);
        assert!(streams.read(id, Some(0)).is_none());
    }
    assert_eq!((streams.readers(), streams.budget.used()), (0, 0));
}

#[test]
fn what_precedes_makes_it_a_stream_that_ends_with_the_response() {
    let streams = streams(9, 9_000);
    let mut reader = streams.open();
    let id = reader.stream();
    assert!(streams.send(id, "a".into(), None));
    assert_eq!(read(&mut reader), ["1:a"]);
    streams.end(id, response("r"));
    assert!(!streams.send(id, "late".into(), None));
    assert_eq!(read(&mut reader), ["2:r", "."]);
}

#[test]
fn a_client_that_comes_back_gets_the_rest_of_that_stream_alone() {
    let streams = streams(9, 9_000);
    let (mut one, two) = (streams.open(), streams.open());
    let (first, second) = (one.stream(), two.stream());
    for (id, text) in [(first, "a"), (second, "x"), (first, "b")] {
        assert!(streams.send(id, text.into(), None));
    }
    assert_eq!(read(&mut one), ["1:a", "2:b"]);
    drop((one, two));
    // Nobody reads, and the call goes on.
    assert!(streams.send(first, "c".into(), None));
    streams.end(first, response("r"));
    for (after, rest) in [(1, vec!["2:b", "3:c", "4:r", "."]), (0, vec!["1:a", "2:b", "3:c", "4:r", "."]), (4, vec!["."])] {
        assert_eq!(read(&mut streams.read(first, Some(after)).unwrap()), rest);
    }
    assert!(streams.read(first, Some(5)).is_none());
    assert!(streams.read(99, Some(0)).is_none());
}

#[test]
fn the_connection_that_comes_last_reads() {
    let streams = streams(9, 9_000);
    let mut old = streams.read(STANDALONE, None).unwrap();
    assert!(read(&mut old).is_empty());
    let mut new = streams.read(STANDALONE, None).unwrap();
    streams.send(STANDALONE, "a".into(), None);
    assert_eq!(read(&mut old), ["."]);
    assert_eq!(read(&mut new), ["1:a"]);
    drop(old);
    assert_eq!(streams.readers(), 1);
    streams.send(STANDALONE, "b".into(), None);
    assert_eq!(read(&mut new), ["2:b"]);
    streams.leave();
    assert_eq!(read(&mut new), ["."]);
    assert_eq!(streams.readers(), 0);
    // A new one begins after what was sent, unless it says otherwise.
    assert!(read(&mut streams.read(STANDALONE, None).unwrap()).is_empty());
    assert_eq!(read(&mut streams.read(STANDALONE, Some(1)).unwrap()), ["2:b"]);
}

#[test]
fn whoever_sends_waits_for_the_wire_only_while_somebody_reads() {
    let streams = streams(9, 9_000);
    let mut reader = streams.open();
    let id = reader.stream();
    let send = || {
        let (written, wire) = oneshot::channel();
        assert!(streams.send(id, "a".into(), Some(written)));
        wire
    };
    let mut first = send();
    assert!(first.try_recv().is_err());
    assert_eq!(read(&mut reader), ["1:a"]);
    assert!(first.try_recv().is_ok());
    let mut unread = send();
    drop(reader);
    assert!(unread.try_recv().is_ok());
    assert!(send().try_recv().is_ok());
}

#[test]
fn a_stream_of_which_the_client_has_seen_nothing_is_gone_with_its_connection() {
    let streams = streams(9, 9_000);
    let reader = streams.open();
    let id = reader.stream();
    drop(reader);
    assert!(!streams.send(id, "a".into(), None));
    streams.end(id, response("r"));
    assert!(streams.read(id, Some(0)).is_none());
    // One that was announced is not.
    let reader = streams.open();
    let id = reader.stream();
    reader.begin();
    drop(reader);
    streams.end(id, response("r"));
    assert_eq!(read(&mut streams.read(id, Some(0)).unwrap()), ["1:r", "."]);
}

#[test]
fn the_oldest_events_go_first_exactly_beyond_the_limits() {
    let two_events = 2 * (EVENT_BYTES + 1);
    for (events_max, bytes_max, kept) in
        [(2, 9_000, 2), (3, 9_000, 3), (9, two_events, 2), (9, two_events - 1, 1), (9, two_events + EVENT_BYTES + 1, 3)]
    {
        let streams = streams(events_max, bytes_max);
        for text in ["a", "b", "c"] {
            assert!(streams.send(STANDALONE, text.into(), None));
        }
        let all = ["1:a", "2:b", "3:c"];
        assert_eq!(read(&mut streams.read(STANDALONE, Some(0)).unwrap()), all[3 - kept..], "{events_max} {bytes_max}");
        assert_eq!(streams.budget.used(), kept * (EVENT_BYTES + 1));
        streams.close();
        assert_eq!(streams.budget.used(), 0);
    }
}

#[test]
fn what_cannot_be_kept_is_delivered_to_who_is_there_and_else_lost() {
    let streams = streams(9, EVENT_BYTES + 4);
    let mut reader = streams.open();
    let id = reader.stream();
    assert!(streams.send(id, "large".into(), None));
    assert_eq!(read(&mut reader), ["1:large"]);
    drop(reader);
    assert!(!streams.send(id, "large".into(), None));
    assert!(streams.send(id, "tiny".into(), None));
    assert_eq!(read(&mut streams.read(id, Some(0)).unwrap()), ["2:tiny"]);
}

#[test]
fn all_sessions_together_have_a_limit_and_it_is_the_newcomer_that_gives_way() {
    let budget = Budget::new(2 * (EVENT_BYTES + 1));
    let (one, two) = (with_budget(9, 9_000, &budget), with_budget(9, 9_000, &budget));
    assert!(one.send(STANDALONE, "a".into(), None));
    assert!(two.send(STANDALONE, "b".into(), None));
    assert!(two.send(STANDALONE, "c".into(), None));
    assert_eq!(read(&mut one.read(STANDALONE, Some(0)).unwrap()), ["1:a"]);
    assert_eq!(read(&mut two.read(STANDALONE, Some(0)).unwrap()), ["2:c"]);
    drop(one);
    assert!(two.send(STANDALONE, "d".into(), None));
    assert_eq!(read(&mut two.read(STANDALONE, Some(0)).unwrap()), ["2:c", "3:d"]);
    drop(two);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_stream_that_has_ended_is_forgotten_after_its_time() {
    let streams = streams(9, 9_000);
    let reader = streams.open();
    let id = reader.stream();
    streams.send(id, "a".into(), None);
    streams.end(id, response("r"));
    let now = Instant::now();
    streams.expire(now + TIME);
    assert!(streams.read(id, Some(0)).is_some(), "somebody reads it");
    drop(reader);
    drop(streams.read(id, Some(0)));
    streams.expire(now + TIME / 2);
    assert!(streams.read(id, Some(0)).is_some());
    streams.expire(now + TIME);
    assert!(streams.read(id, Some(0)).is_none());
    assert_eq!((streams.budget.used(), streams.readers()), (0, 0));
}

#[test]
fn after_the_end_of_the_session_there_is_nothing() {
    let streams = streams(9, 9_000);
    let mut reader = streams.open();
    streams.send(reader.stream(), "a".into(), None);
    streams.close();
    assert!(streams.read(reader.stream(), Some(0)).is_none());
    assert_eq!(read(&mut reader), ["1:a", "."]);
    drop(reader);
    assert_eq!((streams.budget.used(), streams.readers()), (0, 0));
    assert!(streams.read(STANDALONE, None).is_none());
    assert!(!streams.send(STANDALONE, "a".into(), None));
    assert_eq!(read(&mut streams.open()), ["="]);
}
