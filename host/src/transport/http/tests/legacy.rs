//! The HTTP+SSE transport of 2024-11-05 over real sockets.

use super::client::{Client, TestServer, initialize, request};
use crate::transport::Service;
use crate::transport::testing::{PATIENCE, reaches};
use guesthouse_protocol::Event;
use tokio::time::timeout;

/// A connection, and the address to send to.
async fn open(server: &TestServer, path: &str) -> (Client, String) {
    let mut client = server.connect().await;
    client.send(&request(&format!("GET {path}"), &[("accept", "text/event-stream")], "")).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let first = client.chunk().await;
    let address = first.strip_prefix("event: endpoint\ndata: ").and_then(|rest| rest.strip_suffix("\n\n")).unwrap();
    (client, address.to_owned())
}

async fn send(server: &TestServer, address: &str, message: &str) -> u16 {
    let mut client = server.connect().await;
    client.send(&request(&format!("POST {address}"), &[], message)).await;
    client.answer().await.status
}

#[tokio::test]
async fn everything_comes_on_the_one_stream() {
    let server = TestServer::start(|config| config.server.sse = true);
    for path in ["/sse", "/sse/one"] {
        let (mut client, address) = open(&server, path).await;
        assert_eq!(send(&server, &address, &initialize("2024-11-05")).await, 202);
        let event = client.chunk().await;
        assert!(event.starts_with("data: ") && event.contains(r#""protocolVersion":"2024-11-05""#), "{event}");
        assert_eq!(send(&server, &address, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await, 202);
        // A modern client has nothing to seek here.
        assert_eq!(send(&server, &address, r#"{"jsonrpc":"2.0","id":2,"method":"server/discover"}"#).await, 202);
        assert!(client.chunk().await.contains("-32601"));
        assert_eq!(send(&server, &address, "nonsense").await, 202);
        assert!(client.chunk().await.contains("-32700"));
        server.fake.hub().publish(&"one".into(), &Event::ToolsChanged);
        assert!(client.chunk().await.contains("tools/list_changed"));
    }
}

#[tokio::test]
async fn a_connection_ends_with_its_stream() {
    let mut server = TestServer::start(|config| {
        config.server.sse = true;
        config.limits.sessions = 1;
    });
    let (mut client, address) = open(&server, "/sse").await;
    send(&server, &address, &initialize("2024-11-05")).await;
    client.chunk().await;
    send(&server, &address, r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}"#).await;
    reaches(&server.fake.begun, 2).await;
    // There is room for one.
    let mut other = server.connect().await;
    other.send(&request("GET /sse", &[("accept", "text/event-stream")], "")).await;
    assert_eq!(other.answer().await.status, 503);
    drop(client);
    reaches(&server.fake.stopped, 1).await;
    assert_eq!(send(&server, &address, "{}").await, 404);
    let (mut client, _) = open(&server, "/sse").await;
    server.stop();
    assert!(client.chunk().await.is_empty());
    timeout(PATIENCE, &mut server.task).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn it_is_served_only_where_it_is_asked_for_and_as_it_is_meant() {
    let off = TestServer::start(|_| {});
    let on = TestServer::start(|config| config.server.sse = true);
    for (server, line, status) in [
        (&off, "GET /sse", 404),
        (&off, "POST /message?sessionId=x", 404),
        (&on, "POST /sse", 405),
        (&on, "GET /message", 405),
        (&on, "POST /message", 400),
        (&on, "POST /message?sessionId=x", 404),
        (&on, "GET /sse/nobody", 404),
        (&on, "GET /sse/", 404),
    ] {
        let mut client = server.connect().await;
        client.send(&request(line, &[], "{}")).await;
        assert_eq!(client.answer().await.status, status, "{line}");
    }
}
