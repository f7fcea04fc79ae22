//! What becomes of a guest when its client goes away, over real sockets.

use crate::support::clients::{headers, last_message, post, serve, source};
use guesthouse::config::units::Span;
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const HOSTILE: &str = "tests/guests/hostile";

/// Where the guest can run one call at a time, and nothing but its client stops it.
async fn start() -> (guesthouse::host::Host, SocketAddr) {
    let mut guest = source(HOSTILE);
    guest.config.limits.concurrency = 1;
    guest.config.limits.wall = Span(600_000);
    guest.config.limits.cpu = Span(600_000);
    serve(vec![guest], crate::support::config()).await
}

fn call(revision: Revision, id: u32, tool: &str) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": {} } });
    if revision == Revision::LATEST_MODERN {
        message["params"]["_meta"] =
            json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    }
    message
}

/// Whether the guest has room for a call now.
async fn is_free(address: SocketAddr) -> bool {
    let message = call(Revision::LATEST_MODERN, 1, "echo");
    let (status, _, body) = post(address, "/mcp", &headers(Revision::LATEST_MODERN, None, &message), &message).await;
    match status {
        200 => true,
        503 => false,
        _ => panic!("{status}: {}", last_message(&body)),
    }
}

/// Sends a call that does not end, and returns once it runs.
async fn begin(address: SocketAddr, revision: Revision, session: Option<&str>) -> TcpStream {
    let message = call(revision, 2, "loop");
    let body = message.to_string();
    let lines: String = headers(revision, session, &message).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let text = format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\n{lines}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).await.unwrap();
    while is_free(address).await {}
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_modern_client_that_goes_away_stops_the_guest() {
    let (_host, address) = start().await;
    assert!(is_free(address).await);
    let stream = begin(address, Revision::LATEST_MODERN, None).await;
    let gone = Instant::now();
    drop(stream);
    while !is_free(address).await {}
    let took = gone.elapsed();
    // It takes an epoch tick of some milliseconds; the rest is for a busy machine. The guest itself would never end.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_session_goes_on_without_its_client_until_it_is_cancelled() {
    let (_host, address) = start().await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let (_, answered, _) = post(address, "/mcp", &headers(Revision::LATEST_HANDSHAKE, None, &initialize), &initialize).await;
    let session = answered["mcp-session-id"].to_str().unwrap().to_owned();
    let stream = begin(address, Revision::LATEST_HANDSHAKE, Some(&session)).await;
    drop(stream);
    // Each of these waits for a place for a moment, which is longer than it takes to notice a client that is gone.
    for _ in 0..3 {
        assert!(!is_free(address).await, "the call ended with its connection");
    }
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    let (status, ..) = post(address, "/mcp", &headers(Revision::LATEST_HANDSHAKE, Some(&session), &cancel), &cancel).await;
    assert_eq!(status, 202);
    let cancelled = Instant::now();
    while !is_free(address).await {}
    assert!(cancelled.elapsed() < Duration::from_secs(2), "{:?}", cancelled.elapsed());
}
