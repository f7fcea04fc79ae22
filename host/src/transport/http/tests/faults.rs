//! Clients that break off, send nonsense, or come in great numbers.

use super::client::{TestServer, request};
use crate::transport::testing::{PATIENCE, call, reaches};
use tokio::time::timeout;

const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;

/// Enough to show that sessions are cheap, and that none is mistaken for another.
const SESSIONS: usize = 1_000;

#[tokio::test]
async fn a_thousand_sessions_are_open_at_once_and_no_more_than_allowed() {
    let server = TestServer::start(|config| config.limits.sessions = SESSIONS);
    let mut client = server.connect().await;
    let initialize = super::client::initialize("2025-11-25");
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        client.post(&[], &initialize).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        sessions.push(answer.header("mcp-session-id").unwrap().to_owned());
    }
    client.post(&[], &initialize).await;
    let refused = client.answer().await;
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (503, true), "{refused:?}");
    for session in &sessions {
        client.post(&[("mcp-session-id", session)], PING).await;
        assert_eq!(client.answer().await.status, 200);
        // Ids belong to a session: the same one again is refused here, and was not in the session before.
        client.post(&[("mcp-session-id", session)], PING).await;
        assert_eq!(client.answer().await.status, 400);
    }
    for session in &sessions {
        client.send(&request("DELETE /mcp", &[("mcp-session-id", session)], "")).await;
        assert_eq!(client.answer().await.status, 204);
    }
    client.post(&[], &initialize).await;
    assert_eq!(client.answer().await.status, 200, "an ended session leaves no room");
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_of_a_stream_stops_a_modern_call_and_no_other() {
    let server = TestServer::start(|_| {});
    let session = server.initialize().await;
    let handshake = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"report","_meta":{"progressToken":1}}}"#;
    let mut streaming = server.connect().await;
    streaming.post(&[("mcp-session-id", &session)], handshake).await;
    streaming.head().await;
    streaming.until("\"progress\":1").await;
    drop(streaming);
    let mut modern = server.connect().await;
    modern.call("report", "\"progressToken\":1,").await;
    modern.head().await;
    modern.until("\"progress\":1").await;
    drop(modern);
    timeout(PATIENCE, reaches(&server.fake.stopped, 1)).await.unwrap();
    // What is left is the session's call: its id is taken, and it goes on to its second report, which nobody sees.
    let mut client = server.connect().await;
    client.post(&[("mcp-session-id", &session)], handshake).await;
    assert!(client.answer().await.body.contains("duplicate_request_id"));
    server.fake.release.add_permits(2);
    timeout(PATIENCE, reaches(&server.fake.reported, 3)).await.unwrap();
    assert_eq!(*server.fake.stopped.borrow(), 1);
}

#[tokio::test]
async fn half_a_request_is_none() {
    let server = TestServer::start(|_| {});
    let whole = {
        let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
        request("POST /mcp", &headers, &call(1, "echo", ""))
    };
    // Cut in the request line, in a header, before the body, and in the body.
    let body = whole.find("\r\n\r\n").unwrap() + 4;
    for at in [3, 60, body, body + 40, whole.len() - 1] {
        let mut client = server.connect().await;
        client.send(&whole[..at]).await;
        drop(client);
    }
    let mut client = server.connect().await;
    client.send(&whole).await;
    assert_eq!(client.answer().await.status, 200);
    assert_eq!(*server.fake.begun.borrow(), 1, "half a request was run");
}

#[tokio::test]
async fn nonsense_ends_its_own_connection_alone() {
    let server = TestServer::start(|_| {});
    let mut steady = server.connect().await;
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    for nonsense in
        ["\u{16}\u{3}\u{1}\u{0}\u{a5}\u{1}\u{0}\r\n\r\n", "\0\0\0\0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "{}\r\n\r\n", &long]
    {
        let mut client = server.connect().await;
        client.send(nonsense).await;
        // Whatever is said, it is an error, and then the connection ends.
        while client.more().await {}
        let said = String::from_utf8_lossy(&client.buffer).into_owned();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
        steady.call("echo", "").await;
        assert_eq!(steady.answer().await.status, 200);
    }
    for (length, status) in [("-1", 400), ("1e3", 400), ("99999999999999999999", 400), ("4294967296", 413)] {
        let mut client = server.connect().await;
        client.send(&request("POST /mcp", &[("content-length", length)], "")).await;
        let answer = client.head().await;
        assert_eq!(answer.status, status, "{length}: {answer:?}");
    }
}
