//! HTTP over real sockets: the table of cases, and what a table cannot show.

mod auth;
mod client;
mod faults;
mod legacy;
mod lifetime;
mod questions;
mod streams;
mod subscriptions;

use crate::config::Mode;
use crate::config::units::{Size, Span};
use crate::transport::testing::{call, meta};
use client::{TestServer, request};

/// Runs one case of the table; an error says what was not as expected.
async fn run_case(server: &TestServer, case: &str, session: &mut String) -> Result<(), String> {
    let (mut line, mut body, mut headers, mut expected) = ("", String::new(), Vec::new(), Vec::new());
    for text in case.lines() {
        match text.split_at_checked(2) {
            Some(("> ", text)) if line.is_empty() => line = text,
            Some(("> ", text)) if text.starts_with(['{', '[']) => body = text.replace("{meta}", &meta("")),
            Some(("> ", text)) if text.starts_with("modern ") => {
                headers.push(("mcp-protocol-version".to_owned(), "2026-07-28".to_owned()));
                for (name, value) in ["mcp-method", "mcp-name"].iter().zip(text.split(' ').skip(1)) {
                    headers.push(((*name).to_owned(), value.to_owned()));
                }
            }
            Some(("> ", text)) => {
                let (name, value) = text.split_once(": ").ok_or_else(|| format!("no header: {text}"))?;
                headers.push((name.to_owned(), value.replace("{session}", session)));
            }
            Some((mark @ ("< " | "| "), text)) => expected.push((mark, text)),
            _ if text.is_empty() => {}
            _ => return Err(format!("cannot read {text:?}")),
        }
    }
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut client = server.connect().await;
    client.send(&request(line, &headers, &body)).await;
    let answer = client.answer().await;
    if let Some(id) = answer.header("mcp-session-id") {
        id.clone_into(session);
    }
    for (mark, text) in expected {
        let holds = match (mark, text.split_once(": ")) {
            ("| ", _) if text == "empty" => answer.body.is_empty(),
            ("| ", _) => answer.body.contains(text),
            (_, Some((name, value))) => answer.header(name) == Some(value),
            (_, None) => match text.strip_prefix('!') {
                Some(name) => answer.header(name).is_none(),
                None => answer.status.to_string() == text,
            },
        };
        if !holds {
            return Err(format!("expected {mark}{text}, got {answer:#?}"));
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_table_of_cases() {
    let server = TestServer::start(|config| {
        config.server.origins = vec!["https://good.example".into()];
        config.limits.message = Size(100_000);
        config.limits.depth = 8;
        config.limits.sessions = 2;
    });
    let mut session = String::new();
    let mut cases = 0;
    let mut failed = Vec::new();
    for case in include_str!("cases.txt").split("\n== ").skip(1) {
        let (name, lines) = case.split_once('\n').unwrap();
        cases += 1;
        if let Err(problem) = run_case(&server, lines, &mut session).await {
            failed.push(format!("case {cases} `{name}`: {problem}"));
        }
    }
    assert!(cases > 50, "only {cases} cases were found");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test]
async fn only_the_modern_era_has_no_sessions() {
    let server = TestServer::start(|config| config.server.mode = Mode::Modern);
    let mut session = String::new();
    for case in [
        "> DELETE /mcp\n> mcp-session-id: x\n< 405\n< allow: POST",
        "> POST /mcp\n> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}\n< 400\n< !mcp-session-id\n| -32022",
        "> POST /mcp\n> mcp-session-id: ignored\n> modern tools/list\n> {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{{meta}}}\n< 200",
    ] {
        run_case(&server, case, &mut session).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_serves_many_requests_also_pipelined() {
    let server = TestServer::start(|_| {});
    let mut client = server.connect().await;
    client.call("echo", "").await;
    assert_eq!(client.answer().await.status, 200);
    for _ in 0..3 {
        client.call("echo", "").await;
    }
    for _ in 0..3 {
        assert_eq!(client.answer().await.status, 200);
    }
}

#[tokio::test]
async fn a_body_in_pieces_is_put_together_and_a_slow_one_is_given_up() {
    let server = TestServer::start(|config| config.limits.body_time = Span(50));
    let mut client = server.connect().await;
    let body = call(1, "echo", "");
    let (first, second) = body.split_at(20);
    let headers = [
        ("transfer-encoding", "chunked"),
        ("content-length", "-"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let head = request("POST /mcp", &headers, "");
    client.send(&format!("{head}{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", first.len(), second.len())).await;
    assert_eq!(client.answer().await.status, 200);
    client.send(&format!("{head}{:x}\r\n{first}\r\n", first.len())).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, 408, "{answer:?}");
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn an_endless_body_without_a_length_is_refused_at_the_limit() {
    let server = TestServer::start(|config| config.limits.message = Size(1_000));
    let mut client = server.connect().await;
    let head = request("POST /mcp", &[("transfer-encoding", "chunked"), ("content-length", "-")], "");
    let piece = "x".repeat(600);
    client.send(&format!("{head}258\r\n{piece}\r\n258\r\n{piece}\r\n")).await;
    assert_eq!(client.answer().await.status, 413);
}

#[tokio::test]
async fn headers_are_bounded_in_size_and_time() {
    let server = TestServer::start(|config| config.limits.header_time = Span(50));
    let mut client = server.connect().await;
    client.send(&format!("POST /mcp HTTP/1.1\r\nx: {}\r\n", "y".repeat(40_000))).await;
    assert_eq!(client.answer().await.status, 431);
    let mut slow = server.connect().await;
    slow.send("POST /mcp HTTP/1.1\r\nhost:").await;
    assert!(slow.is_closed().await);
}
