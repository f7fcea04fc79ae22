//! Who may call, over real sockets: refusals before anything is read, and what one caller cannot have of another.

use super::client::{Client, TestServer, initialize, request};
use crate::config::Config;
use crate::config::auth::TokenHash;
use crate::transport::testing::reaches;

const ALICE: (&str, &str) = ("authorization", "Bearer gh_alice");
const BOB: (&str, &str) = ("authorization", "Bearer gh_bob");

fn with_tokens(config: &mut Config) {
    let entry =
        |name: &str| format!("{{ name = \"{name}\", hash = \"{}\", principal = \"{name}\" }}", TokenHash::of(&format!("gh_{name}")));
    config.auth = Config::parse(&format!("[auth]\nkind = \"tokens\"\ntokens = [{}, {}]", entry("alice"), entry("bob"))).unwrap().auth;
    config.server.sse = true;
    config.server.origins = vec!["https://good.example".into()];
}

fn modern(tool: &str, caller: (&'static str, &'static str)) -> Vec<(&'static str, String)> {
    vec![
        (caller.0, caller.1.into()),
        ("mcp-protocol-version", "2026-07-28".into()),
        ("mcp-method", "tools/call".into()),
        ("mcp-name", tool.into()),
    ]
}

async fn call(client: &mut Client, tool: &str, caller: (&'static str, &'static str)) {
    let headers = modern(tool, caller);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    client.post(&headers, &crate::transport::testing::call(1, tool, "")).await;
}

#[tokio::test]
async fn nobody_gets_anywhere_without_a_token() {
    let server = TestServer::start(with_tokens);
    let (missing, invalid) = ("Bearer", "Bearer error=\"invalid_token\"");
    for line in [
        "POST /mcp",
        "POST /mcp/one",
        "POST /mcp/nothing",
        "POST /mcp?access_token=gh_alice",
        "GET /mcp",
        "DELETE /mcp",
        "PUT /mcp",
        "GET /sse",
        "POST /message?sessionId=x",
        "GET /nowhere",
    ] {
        for (values, challenge) in [
            (vec![], missing),
            (vec![("authorization", "Basic Z2hfYWxpY2U=")], missing),
            (vec![("authorization", "Bearer gh_carol")], invalid),
        ] {
            let mut client = server.connect().await;
            // The body never comes: whoever waits for it does not answer.
            let headers =
                [values.as_slice(), &[("content-length", "1000"), ("accept", "text/event-stream"), ("mcp-session-id", "x")]].concat();
            client.send(&request(line, &headers, "")).await;
            let answer = client.answer().await;
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some(challenge)), "{line} {values:?}: {answer:?}");
            assert!(answer.body.contains("unauthorized") && !answer.body.contains("gh_"), "{answer:?}");
        }
    }
    let mut client = server.connect().await;
    client.send(&request("GET /healthz", &[], "")).await;
    assert_eq!(client.answer().await.status, 200);
}

#[tokio::test]
async fn scripts_may_ask_what_they_may_send_and_read_why_they_are_refused() {
    let server = TestServer::start(with_tokens);
    for path in ["/mcp", "/mcp/one", "/mcp/nothing"] {
        let mut client = server.connect().await;
        let asked = [
            ("origin", "https://good.example"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization"),
        ];
        client.send(&request(&format!("OPTIONS {path}"), &asked, "")).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 204, "{answer:?}");
        assert!(answer.header("access-control-allow-headers").unwrap().split(", ").any(|name| name == "authorization"));
        client.post(&[("origin", "https://good.example")], "{}").await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.header("access-control-allow-origin")), (401, Some("https://good.example")));
        assert!(answer.header("access-control-expose-headers").unwrap().contains("www-authenticate"));
    }
}

#[tokio::test]
async fn a_session_is_there_for_its_own_principal_alone() {
    let server = TestServer::start(with_tokens);
    let mut client = server.connect().await;
    client.post(&[ALICE], &initialize("2025-11-25")).await;
    let id = client.answer().await.header("mcp-session-id").unwrap().to_owned();
    let named = ("mcp-session-id", id.as_str());
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    for (caller, line, body, status) in [
        (BOB, "POST /mcp", ping, 404),
        (BOB, "GET /mcp", "", 404),
        (BOB, "DELETE /mcp", "", 404),
        (ALICE, "POST /mcp", ping, 200),
        (ALICE, "DELETE /mcp", "", 204),
        (ALICE, "POST /mcp", ping, 404),
    ] {
        let mut client = server.connect().await;
        client.send(&request(line, &[caller, named, ("accept", "application/json, text/event-stream")], body)).await;
        assert_eq!(client.answer().await.status, status, "{caller:?} {line}");
    }
    let mut stream = server.connect().await;
    stream.send(&request("GET /sse", &[ALICE, ("accept", "text/event-stream")], "")).await;
    assert_eq!(stream.head().await.status, 200);
    let first = stream.chunk().await;
    let address = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    for (caller, status) in [(BOB, 404), (ALICE, 202)] {
        let mut client = server.connect().await;
        client.send(&request(&format!("POST {address}"), &[caller], ping)).await;
        assert_eq!(client.answer().await.status, status);
    }
}

#[tokio::test]
async fn a_principal_has_its_share_of_requests_over_all_its_connections() {
    let server = TestServer::start(|config| {
        with_tokens(config);
        config.limits.requests_per_principal = Some(1);
    });
    let (mut waiting, mut more, mut other) = (server.connect().await, server.connect().await, server.connect().await);
    call(&mut waiting, "wait", ALICE).await;
    reaches(&server.fake.begun, 1).await;
    call(&mut more, "echo", ALICE).await;
    let answer = more.answer().await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")), "{answer:?}");
    assert!(answer.body.contains("-32000") && answer.body.contains("too_many_calls"), "{answer:?}");
    // Neither is there room in a new session of hers; another principal is served.
    more.post(&[ALICE], &initialize("2025-11-25")).await;
    assert_eq!(more.answer().await.status, 429);
    call(&mut other, "echo", BOB).await;
    assert_eq!(other.answer().await.status, 200);
    server.fake.release.add_permits(1);
    assert_eq!(waiting.answer().await.status, 200);
    call(&mut more, "echo", ALICE).await;
    assert_eq!(more.answer().await.status, 200);
}

#[tokio::test]
async fn only_who_comes_straight_from_this_machine_is_local() {
    let server = TestServer::start(|config| config.server.hosts = vec!["mcp.example".into()]);
    let port = server.address.port();
    let (own, named, known) = (format!("127.0.0.1:{port}"), format!("LocalHost:{port}"), "mcp.example".to_owned());
    for (host, more, who) in [
        (&own, None, "local"),
        (&named, None, "local"),
        (&own, Some("x-mine"), "local"),
        (&known, None, "nobody"),
        (&own, Some("Forwarded"), "nobody"),
        (&own, Some("X-Forwarded-For"), "nobody"),
        (&own, Some("X-Forwarded-Proto"), "nobody"),
        (&own, Some("X-Real-IP"), "nobody"),
        (&own, Some("Via"), "nobody"),
    ] {
        let mut headers =
            vec![("host", host.as_str()), ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "who")];
        headers.extend(more.map(|name| (name, "x")));
        let mut client = server.connect().await;
        client.post(&headers, &crate::transport::testing::call(1, "who", "")).await;
        let answer = client.answer().await;
        assert!(answer.status == 200 && answer.body.contains(&format!("\"{who}\"")), "{host} {more:?}: {answer:?}");
    }
}
