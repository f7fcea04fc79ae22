//! What calls, sessions and connections outlive, and what ends them.

use super::client::{TestServer, request};
use crate::config::units::Span;
use crate::transport::testing::{PATIENCE, reaches};
use std::collections::HashSet;
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn a_modern_client_that_goes_away_cancels_its_call() {
    let server = TestServer::start(|_| {});
    for (count, more_meta) in [(1, ""), (2, "\"progressToken\":1,")] {
        let mut client = server.connect().await;
        client.call("wait", more_meta).await;
        reaches(&server.fake.begun, count).await;
        drop(client);
        reaches(&server.fake.stopped, count).await;
    }
    let mut streaming = server.connect().await;
    streaming.call("report", "\"progressToken\":1,").await;
    streaming.head().await;
    drop(streaming);
    reaches(&server.fake.stopped, 3).await;
}

#[tokio::test]
async fn a_report_is_on_the_wire_before_the_call_goes_on() {
    let server = TestServer::start(|_| {});
    let session = server.initialize().await;
    let mut reported = 0;
    let handshake = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"report","_meta":{"progressToken":1}}}"#;
    for modern in [true, false] {
        let mut client = server.connect().await;
        if modern {
            client.call("report", "\"progressToken\":1,").await;
        } else {
            client.post(&[("mcp-session-id", &session)], handshake).await;
        }
        let head = client.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        if !modern {
            assert!(client.chunk().await.ends_with("data: \n\n"));
        }
        for step in 1..=2 {
            reported += 1;
            // The call waits for its release: if the report were not flushed, it would never arrive.
            let event = client.chunk().await;
            assert!(event.contains("data: ") && event.ends_with("\n\n") && event.contains(&format!("\"progress\":{step}")), "{event}");
            reaches(&server.fake.reported, reported).await;
            server.fake.release.add_permits(1);
        }
        let event = client.chunk().await;
        assert!(event.contains("\"result\""), "{event}");
        assert!(client.chunk().await.is_empty());
    }
}

#[tokio::test]
async fn a_session_outlives_a_lost_connection() {
    let server = TestServer::start(|_| {});
    let session = server.initialize().await;
    let mut client = server.connect().await;
    let wait = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}"#;
    client.post(&[("mcp-session-id", &session)], wait).await;
    reaches(&server.fake.begun, 2).await;
    drop(client);
    // The call still runs, so its id is taken, and it can be cancelled.
    let mut client = server.connect().await;
    client.post(&[("mcp-session-id", &session)], wait).await;
    assert!(client.answer().await.body.contains("duplicate_request_id"));
    assert_eq!(*server.fake.stopped.borrow(), 0);
    client.post(&[("mcp-session-id", &session)], r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).await;
    assert_eq!(client.answer().await.status, 202);
    reaches(&server.fake.stopped, 1).await;
}

#[tokio::test]
async fn what_is_cancelled_ends_with_202_or_ends_its_stream() {
    let server = TestServer::start(|_| {});
    let session = server.initialize().await;
    let named = [("mcp-session-id", session.as_str())];
    let mut waiting = server.connect().await;
    waiting.post(&named, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}"#).await;
    let mut streaming = server.connect().await;
    streaming
        .post(&named, r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"report","_meta":{"progressToken":1}}}"#)
        .await;
    streaming.head().await;
    // The first event has no content.
    streaming.chunk().await;
    streaming.chunk().await;
    reaches(&server.fake.begun, 3).await;
    let mut other = server.connect().await;
    other.post(&named, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).await;
    assert_eq!(other.answer().await.status, 202);
    let answer = waiting.answer().await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    // The end of the session cancels the rest.
    other.send(&request("DELETE /mcp", &named, "")).await;
    assert_eq!(other.answer().await.status, 204);
    assert!(streaming.chunk().await.is_empty());
    reaches(&server.fake.stopped, 2).await;
}

#[tokio::test]
async fn beyond_the_limit_the_answer_is_busy() {
    let server = TestServer::start(|config| config.limits.requests = 1);
    let session = server.initialize().await;
    let mut first = server.connect().await;
    first.call("wait", "").await;
    reaches(&server.fake.begun, 2).await;
    for headers in [vec![], vec![("mcp-session-id", session.as_str())]] {
        let mut second = server.connect().await;
        if headers.is_empty() {
            second.call("echo", "").await;
        } else {
            second.post(&headers, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
            assert!(second.answer().await.body.contains("duplicate_request_id"));
            second.post(&headers, r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#).await;
        }
        let answer = second.answer().await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{answer:?}");
        assert!(answer.body.contains("\"busy\""));
    }
    server.fake.release.add_permits(1);
    assert!(first.answer().await.body.contains("waited"));
    first.call("echo", "").await;
    assert_eq!(first.answer().await.status, 200);
}

#[tokio::test]
async fn an_idle_session_expires() {
    let server = TestServer::start(|config| config.limits.session_idle = Span(0));
    let session = server.initialize().await;
    let mut client = server.connect().await;
    let ping = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let gone = async {
        loop {
            client.post(&[("mcp-session-id", &session)], ping).await;
            if client.answer().await.status == 404 {
                break;
            }
        }
    };
    timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_read_is_dropped() {
    let server = TestServer::start(|config| {
        config.limits.write_time = Span(50);
        config.limits.connections = 1;
    });
    let mut client = server.connect().await;
    client.call("large", "").await;
    // There is room for the second connection only once the first is gone.
    let mut other = server.connect().await;
    other.call("echo", "").await;
    assert_eq!(other.answer().await.status, 200);
    let mut len = 0;
    while client.more().await {
        len += client.buffer.len();
        client.buffer.clear();
    }
    assert!(len < 8 << 20, "{len} bytes arrived");
}

#[tokio::test]
async fn beyond_the_connection_limit_clients_wait() {
    let server = TestServer::start(|config| config.limits.connections = 1);
    let mut first = server.connect().await;
    first.call("echo", "").await;
    first.answer().await;
    let mut second = server.connect().await;
    second.call("echo", "").await;
    first.call("echo", "").await;
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(*server.fake.begun.borrow(), 2);
    drop(first);
    assert_eq!(second.answer().await.status, 200);
}

#[tokio::test]
async fn a_stop_lets_calls_finish_and_takes_no_more() {
    let mut server = TestServer::start(|_| {});
    let mut idle = server.connect().await;
    idle.call("echo", "").await;
    idle.answer().await;
    let mut busy = server.connect().await;
    busy.call("wait", "").await;
    reaches(&server.fake.begun, 2).await;
    server.stop();
    assert!(idle.is_closed().await);
    assert!(TcpStream::connect(server.address).await.is_err());
    assert!(!server.task.is_finished());
    server.fake.release.add_permits(1);
    assert!(busy.answer().await.body.contains("waited"));
    timeout(PATIENCE, &mut server.task).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_does_not_wait_for_ever() {
    let mut server = TestServer::start(|config| config.limits.stop_time = Span(20));
    let session = server.initialize().await;
    let mut modern = server.connect().await;
    modern.call("wait", "").await;
    let mut handshake = server.connect().await;
    handshake.post(&[("mcp-session-id", &session)], r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}"#).await;
    reaches(&server.fake.begun, 3).await;
    server.stop();
    timeout(PATIENCE, &mut server.task).await.unwrap().unwrap().unwrap();
    reaches(&server.fake.stopped, 2).await;
    assert!(modern.is_closed().await);
}

#[tokio::test]
async fn the_session_ids_are_random() {
    let server = TestServer::start(|_| {});
    let mut seen = HashSet::new();
    for _ in 0..8 {
        let id = server.initialize().await;
        assert!(id.len() >= 22 && id.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(seen.insert(id));
    }
}
