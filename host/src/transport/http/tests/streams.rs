//! Event streams of sessions over real sockets: listening, coming back, and what a client must not get.

use super::client::{Client, TestServer, initialize, request};
use crate::config::units::Span;
use crate::transport::Service;
use crate::transport::testing::{PATIENCE, reaches};
use guesthouse_protocol::Event;
use tokio::time::timeout;

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn call(id: u32, tool: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","_meta":{{"progressToken":1}}}}}}"#)
}

/// A session of that revision whose client has said that it is ready.
async fn session(server: &TestServer, version: &str) -> String {
    let mut client = server.connect().await;
    client.post(&[], &initialize(version)).await;
    let id = client.answer().await.header("mcp-session-id").unwrap().to_owned();
    client.post(&[("mcp-session-id", &id)], INITIALIZED).await;
    assert_eq!(client.answer().await.status, 202);
    id
}

async fn get(server: &TestServer, session: &str, last_event_id: Option<&str>) -> Client {
    let mut client = server.connect().await;
    let mut headers = vec![("mcp-session-id", session), ("accept", "text/event-stream")];
    headers.extend(last_event_id.map(|id| ("last-event-id", id)));
    client.send(&request("GET /mcp", &headers, "")).await;
    client
}

/// A stream that has begun: what its first piece is.
async fn stream(server: &TestServer, session: &str, last_event_id: Option<&str>) -> (Client, String) {
    let mut client = get(server, session, last_event_id).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let first = client.chunk().await;
    (client, first)
}

async fn post(server: &TestServer, session: &str, body: &str) -> Client {
    let mut client = server.connect().await;
    client.post(&[("mcp-session-id", session)], body).await;
    client
}

async fn asked(server: &TestServer, session: &str, body: &str) -> String {
    post(server, session, body).await.answer().await.body
}

#[tokio::test]
async fn a_session_hears_of_lists_and_of_what_it_subscribed_to() {
    let server = TestServer::start(|_| {});
    let (one, two) = (session(&server, "2025-11-25").await, session(&server, "2025-06-18").await);
    let subscribe =
        |id: u32, what: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/{what}","params":{{"uri":"a://b"}}}}"#);
    assert!(asked(&server, &one, &subscribe(2, "subscribe")).await.contains(r#""result":{}"#));
    // What happens before the stream is there waits, each change once.
    let updated = Event::ResourceUpdated { uri: "a://b".into() };
    let publish = |event: &Event| server.fake.hub().publish(&"one".into(), event);
    for _ in 0..3 {
        publish(&updated);
        publish(&Event::ToolsChanged);
    }
    let (mut first, priming) = stream(&server, &one, None).await;
    assert_eq!(priming, "id: 0-0\nretry: 1000\ndata: \n\n");
    assert_eq!(
        first.chunk().await,
        "id: 0-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"a://b\"}}\n\n"
    );
    assert_eq!(first.chunk().await, "id: 0-2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n");
    // The other session did not subscribe, and its revision has no events without content.
    let (mut second, comment) = stream(&server, &two, None).await;
    assert!(comment.starts_with(':'), "{comment}");
    assert!(second.chunk().await.contains("tools/list_changed"));
    publish(&updated);
    publish(&Event::PromptsChanged);
    assert!(second.chunk().await.contains("prompts/list_changed"));
    assert!(first.chunk().await.contains("resources/updated"));
    assert!(first.chunk().await.contains("prompts/list_changed"));
    assert!(asked(&server, &one, &subscribe(3, "unsubscribe")).await.contains(r#""result":{}"#));
    publish(&updated);
    publish(&Event::ResourcesChanged);
    assert!(first.chunk().await.contains("resources/list_changed"));
}

#[tokio::test]
async fn a_client_that_was_cut_off_gets_what_it_missed() {
    let server = TestServer::start(|_| {});
    let session = session(&server, "2025-11-25").await;
    let publish = |event: &Event| server.fake.hub().publish(&"one".into(), event);
    let (mut first, _) = stream(&server, &session, None).await;
    publish(&Event::ToolsChanged);
    assert!(first.chunk().await.starts_with("id: 0-1\n"));
    publish(&Event::PromptsChanged);
    assert!(first.chunk().await.starts_with("id: 0-2\n"));
    // Another connection takes its place, and goes on where the client says.
    let (mut second, priming) = stream(&server, &session, Some("0-1")).await;
    assert!(first.chunk().await.is_empty());
    assert!(priming.starts_with("id: 0-1\n"), "{priming}");
    let event = second.chunk().await;
    assert!(event.starts_with("id: 0-2\n") && event.contains("prompts/list_changed"), "{event}");
    publish(&Event::ResourcesChanged);
    assert!(second.chunk().await.starts_with("id: 0-3\n"));
}

#[tokio::test]
async fn a_call_goes_on_without_its_connection_and_its_response_is_kept() {
    let server = TestServer::start(|_| {});
    let session = session(&server, "2025-11-25").await;
    let mut lost = post(&server, &session, &call(2, "report")).await;
    lost.head().await;
    assert_eq!(lost.chunk().await, "id: 1-0\nretry: 1000\ndata: \n\n");
    assert!(lost.chunk().await.starts_with("id: 1-1\ndata: {"));
    drop(lost);
    server.fake.release.add_permits(2);
    let (mut back, _) = stream(&server, &session, Some("1-1")).await;
    let event = back.chunk().await;
    assert!(event.starts_with("id: 1-2\n") && event.contains(r#""progress":2"#), "{event}");
    let event = back.chunk().await;
    assert!(event.starts_with("id: 1-3\n") && event.contains(r#""id":2,"result":"#), "{event}");
    assert!(back.chunk().await.is_empty());
    // Once more, from the beginning; what another stream had is not part of it.
    let (mut back, _) = stream(&server, &session, Some("1-0")).await;
    for number in 1..=3 {
        assert!(back.chunk().await.starts_with(&format!("id: 1-{number}\n")));
    }
    assert!(back.chunk().await.is_empty());
    assert_eq!(*server.fake.stopped.borrow(), 0);
}

#[tokio::test]
async fn a_long_call_is_answered_to_the_client_that_comes_back() {
    let server = TestServer::start(|config| config.streams.stream_time = Span(20));
    let session = session(&server, "2025-11-25").await;
    let mut client = post(&server, &session, &call(2, "wait")).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(client.chunk().await, "id: 1-0\nretry: 1000\ndata: \n\n");
    assert_eq!(client.chunk().await, "retry: 1000\n\n");
    assert!(client.chunk().await.is_empty());
    let (mut back, _) = stream(&server, &session, Some("1-0")).await;
    server.fake.release.add_permits(1);
    let event = back.chunk().await;
    assert!(event.starts_with("id: 1-1\n") && event.contains("waited"), "{event}");
    assert!(back.chunk().await.is_empty());
}

#[tokio::test]
async fn older_revisions_are_not_sent_away_before_the_response() {
    let server = TestServer::start(|config| {
        config.streams.stream_time = Span(1);
        config.streams.stream_after = Span(1);
        config.streams.keep_alive = Span(5);
    });
    for version in ["2025-03-26", "2025-06-18"] {
        let session = session(&server, version).await;
        let mut client = post(&server, &session, &call(2, "report")).await;
        client.head().await;
        let event = client.chunk().await;
        assert!(event.starts_with("id: 1-1\ndata: {"), "{event}");
        // Long after the time at which a newer client would have been sent away.
        for _ in 0..3 {
            assert!(client.chunk().await.starts_with(':'));
        }
        server.fake.release.add_permits(2);
        let mut rest = String::new();
        loop {
            let piece = client.chunk().await;
            if piece.is_empty() {
                break;
            }
            rest.push_str(&piece);
        }
        assert!(rest.contains("id: 1-3\n") && rest.contains(r#""id":2,"result":"#), "{rest}");
    }
}

#[tokio::test]
async fn a_session_ends_with_its_streams() {
    let server = TestServer::start(|_| {});
    let session = session(&server, "2025-11-25").await;
    let (mut listening, _) = stream(&server, &session, None).await;
    let mut calling = post(&server, &session, &call(2, "report")).await;
    calling.head().await;
    calling.chunk().await;
    let mut other = server.connect().await;
    other.send(&request("DELETE /mcp", &[("mcp-session-id", &session)], "")).await;
    assert_eq!(other.answer().await.status, 204);
    while !listening.chunk().await.is_empty() {}
    while !calling.chunk().await.is_empty() {}
    reaches(&server.fake.stopped, 1).await;
    assert_eq!(get(&server, &session, None).await.answer().await.status, 404);
    assert_eq!(server.fake.hub().counts(), (0, 0));
}

#[tokio::test]
async fn a_stop_lets_go_of_clients_that_only_listen() {
    let mut server = TestServer::start(|_| {});
    let session = session(&server, "2025-11-25").await;
    let (mut listening, _) = stream(&server, &session, None).await;
    server.stop();
    assert!(listening.chunk().await.is_empty());
    timeout(PATIENCE, &mut server.task).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_stream_that_is_not_there_is_refused() {
    let server = TestServer::start(|_| {});
    let (one, two) = (session(&server, "2025-11-25").await, session(&server, "2025-11-25").await);
    let mut client = post(&server, &one, &call(2, "report")).await;
    client.head().await;
    client.chunk().await;
    client.chunk().await;
    for (session, last_event_id, status, part) in [
        (&two, "1-1", 400, "unknown_event_id"),
        (&one, "1-9", 400, "unknown_event_id"),
        (&one, "7-0", 400, "unknown_event_id"),
        (&one, "nonsense", 400, "unknown_event_id"),
        (&"unknown".to_owned(), "1-1", 404, "session_not_found"),
    ] {
        let answer = get(&server, session, Some(last_event_id)).await.answer().await;
        assert_eq!(answer.status, status, "{last_event_id}: {answer:?}");
        assert!(answer.body.contains(part), "{answer:?}");
    }
    let named = [("mcp-session-id", one.as_str())];
    for (headers, status, part) in [
        (vec![("accept", "text/event-stream")], 400, "session_required"),
        ([named.as_slice(), &[("accept", "application/json")]].concat(), 406, "not_acceptable"),
        ([named.as_slice(), &[("mcp-protocol-version", "2026-07-28")]].concat(), 400, "wrong_session_version"),
        ([named.as_slice(), &[("mcp-protocol-version", "2025-13-32")]].concat(), 400, "unsupported_protocol_version"),
    ] {
        let mut other = server.connect().await;
        other.send(&request("GET /mcp", &headers, "")).await;
        let answer = other.answer().await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.body.contains(part), "{answer:?}");
    }
    // None of this took the place of the one who reads.
    server.fake.release.add_permits(2);
    assert!(client.chunk().await.starts_with("id: 1-2\n"));
}
