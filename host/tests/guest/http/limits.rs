//! How much a guest may send, receive and wait for.

use std::time::{Duration, Instant};

use guesthouse::config::grants::InstancePolicy;
use guesthouse::guest::{CallLimits, Failure, Keeping};
use serde_json::json;

use super::outside::{Outside, Server};
use crate::support::text;

async fn limited(limits: CallLimits) -> (Server, Outside) {
    let server = Server::start().await;
    let outside = Outside::with(&[&server.grant("")], &[], limits);
    (server, outside)
}

#[tokio::test]
async fn too_many_requests_are_refused_and_the_next_call_has_its_own() {
    let (server, outside) = limited(CallLimits { requests: 2, ..CallLimits::default() }).await;
    let ask = json!({ "authority": server.authority() });
    for _ in 0..2 {
        let answers = outside.send_all(json!([ask, ask, ask])).await;
        let errors: Vec<_> = answers.iter().map(|answer| answer["error"].as_str()).collect();
        assert_eq!(errors, [None, None, Some("ConnectionLimitReached")]);
    }
    assert_eq!(server.seen().len(), 4);
    assert!(outside.audit().last().unwrap().ends_with("(more than 2 requests in one call)"));
    // What is refused counts, too, and the end is noted once, so that a flood of requests is no flood in the audit trail.
    let before = outside.audit().len();
    let flood: Vec<_> = (0..100).map(|_| json!({ "authority": "elsewhere.test" })).collect();
    outside.send_all(json!(flood)).await;
    assert_eq!(outside.audit().len() - before, 3);
}

#[tokio::test]
async fn more_requests_at_once_than_allowed_wait_for_each_other() {
    let (server, outside) = limited(CallLimits { requests_at_once: 1, ..CallLimits::default() }).await;
    let answers = outside.call("together", json!({ "request": { "authority": server.authority() }, "count": 5 })).await;
    assert!(answers.iter().all(|answer| answer["status"] == 200), "{answers:?}");
    let held = CallLimits { requests_at_once: 1, request_wall_ms: 300, ..CallLimits::default() };
    let (server, outside) = limited(held).await;
    let answers = outside.call("together", json!({ "request": { "authority": server.authority(), "path": "/never" }, "count": 2 })).await;
    assert!(
        answers.iter().all(|answer| answer["error"] == "HttpResponseTimeout" || answer["error"] == "ConnectionReadTimeout"),
        "{answers:?}"
    );
}

#[tokio::test]
async fn bodies_and_headers_have_an_end() {
    let limits = CallLimits { request_bytes: 10_000, response_bytes: 20_000, response_header_bytes: 16_384, ..CallLimits::default() };
    let (server, outside) = limited(limits).await;
    let at = server.authority();
    for (ask, error) in [
        (json!({ "path": "/big?20000" }), None),
        (json!({ "path": "/big?20001" }), Some("HttpResponseBodySize(Some(20000))")),
        // Where the header has no length, the body itself fails, and its error has no name.
        (json!({ "path": "/endless" }), Some("HTTP response body size exceeds limit: 20000 bytes")),
        (json!({ "path": "/endless", "head_only": true }), None),
        (json!({ "path": "/headers?10000" }), None),
        (json!({ "path": "/headers?17000" }), Some("HttpResponseHeaderSectionSize(Some(16384))")),
        (json!({ "method": "POST", "body_bytes": 10_000 }), None),
        (json!({ "method": "POST", "body_bytes": 10_001 }), Some("HttpRequestBodySize(Some(10000))")),
        (json!({ "method": "POST", "body_bytes": 1_000_000 }), Some("HttpRequestBodySize(Some(10000))")),
        (
            json!({ "method": "POST", "body_bytes": 10_001, "headers": { "content-length": "10001" } }),
            Some("HttpRequestBodySize(Some(10001))"),
        ),
    ] {
        let mut ask = ask;
        ask["authority"] = json!(at);
        let answer = outside.send(ask.clone()).await;
        assert_eq!(answer["error"].as_str(), error, "{ask}");
    }
}

#[tokio::test]
async fn a_slow_server_costs_the_request_its_time_and_the_call_its_own() {
    let (server, outside) = limited(CallLimits { request_wall_ms: 200, ..CallLimits::default() }).await;
    for (path, error) in [("/never", &["HttpResponseTimeout", "ConnectionReadTimeout"] as &[_]), ("/stalls", &["HTTP response timeout"])] {
        let answer = outside.send(json!({ "authority": server.authority(), "path": path })).await;
        assert!(error.contains(&answer["error"].as_str().unwrap_or_default()), "{path}: {answer}");
    }
    let impatient = json!({ "authority": server.authority(), "path": "/never", "patience_ms": 20 });
    assert_eq!(outside.send(impatient).await["error"], "ConnectionReadTimeout");

    let short = Outside { limits: CallLimits { wall_ms: 300, ..CallLimits::default() }, ..Outside::new(&[&server.grant("")]) };
    for path in ["/never", "/stalls"] {
        let failure = short.failure(json!({ "authority": server.authority(), "path": path })).await;
        assert_eq!(failure, Failure::Deadline, "{path}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_its_requests() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let outside = Outside::new(&[&format!("http://{address}")]);
    let version = outside.version();
    let arguments = json!({ "requests": [{ "authority": address.to_string() }] }).to_string();
    let mut call = tokio::spawn(async move { version.call_tool(None, "send".into(), arguments).await });
    let (mut stream, _) = tokio::select! {
        accepted = listener.accept() => accepted.unwrap(),
        ended = &mut call => panic!("it did not wait: {ended:?}"),
    };
    let mut header = [0; 4];
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut header).await.unwrap();
    assert_eq!(&header, b"GET ");
    let began = Instant::now();
    call.abort();
    let mut rest = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "the connection outlived its call");
}

#[tokio::test]
async fn what_an_instance_that_lives_on_keeps_of_its_requests_ends_with_their_call() {
    let limits = CallLimits { requests_at_once: 1, request_wall_ms: 600_000, ..CallLimits::default() };
    let (server, outside) = limited(limits).await;
    let version = Outside { keeping: Keeping { policy: InstancePolicy::Shared, ..Keeping::default() }, ..outside }.version();
    let arguments = json!({ "request": { "authority": server.authority(), "path": "/stalls" }, "count": 1 }).to_string();
    for _ in 0..3 {
        let outcome = version.call_tool(None, "hoard".into(), arguments.clone()).await;
        let answer: serde_json::Value = serde_json::from_str(&text(outcome)).unwrap();
        assert_eq!(answer[0]["status"], 200, "{answer}");
    }
    assert_eq!(version.instances_kept(), 1, "the responses are still there");
}

#[tokio::test]
async fn a_response_that_nobody_reads_ends_with_its_time() {
    let limits = CallLimits { requests_at_once: 1, request_wall_ms: 200, ..CallLimits::default() };
    let (server, outside) = limited(limits).await;
    let ask = json!({ "request": { "authority": server.authority(), "path": "/stalls" }, "count": 3 });
    let answers = outside.call("hoard", ask).await;
    // The second waits for the first until its own time is over, and then there is room.
    assert_eq!((&answers[0]["status"], &answers[2]["status"]), (&json!(200), &json!(200)), "{answers:?}");
}
