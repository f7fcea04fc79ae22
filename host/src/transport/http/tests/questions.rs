//! Sessions whose client is asked: questions on the call's own stream, answers in POSTs of their own.

use super::client::{Client, TestServer, request};
use crate::config::units::Span;
use crate::transport::testing::reaches;

const ASK: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Jo"}}}"#;

/// Opens a session of a client that can be asked.
async fn open(server: &TestServer) -> String {
    let mut client = server.connect().await;
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}"#;
    client.post(&[], hello).await;
    client.answer().await.header("mcp-session-id").unwrap().to_owned()
}

/// Calls the tool that asks, and reads up to its question.
async fn asked(server: &TestServer, session: &str) -> Client {
    let mut client = server.connect().await;
    client.post(&[("mcp-session-id", session)], ASK).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    assert!(client.chunk().await.ends_with("data: \n\n"), "the stream begins with an event without content");
    let question = client.chunk().await;
    assert!(question.contains("\"elicitation/create\"") && question.contains("\"id\":1"), "{question}");
    client
}

async fn accepted(server: &TestServer, session: &str, message: &str) {
    let mut client = server.connect().await;
    client.post(&[("mcp-session-id", session)], message).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""), "{message}");
}

#[tokio::test]
async fn an_answer_in_a_post_of_its_own_lets_the_call_go_on() {
    let server = TestServer::start(|config| config.limits.requests = 1);
    let session = open(&server).await;
    let mut client = asked(&server, &session).await;
    // While the client thinks, the only place is free for others.
    let mut other = server.connect().await;
    other.call("echo", "").await;
    assert_eq!(other.answer().await.status, 200);
    // Once answered, the call waits for its place rather than losing the answer.
    other.call("wait", "").await;
    reaches(&server.fake.begun, 4).await;
    accepted(&server, &session, ANSWER).await;
    server.fake.release.add_permits(1);
    assert!(other.answer().await.body.contains("waited"));
    let answer = client.chunk().await;
    assert!(answer.contains("\"id\":2") && answer.contains("Jo"), "{answer}");
    assert!(client.chunk().await.is_empty());
    // Nobody is asked any more.
    accepted(&server, &session, ANSWER).await;
}

#[tokio::test]
async fn an_error_of_the_client_reaches_the_guest_and_a_wrong_answer_is_asked_again() {
    let server = TestServer::start(|_| {});
    let session = open(&server).await;
    let mut client = asked(&server, &session).await;
    accepted(&server, &session, r#"{"jsonrpc":"2.0","id":1,"result":{"action":"shrug"}}"#).await;
    let again = client.chunk().await;
    assert!(again.contains("\"elicitation/create\"") && again.contains("\"id\":2"), "{again}");
    accepted(&server, &session, r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"not now"}}"#).await;
    let answer = client.chunk().await;
    assert!(answer.contains("not now"), "{answer}");
}

#[tokio::test]
async fn a_client_that_takes_no_stream_is_not_asked() {
    let server = TestServer::start(|_| {});
    let session = open(&server).await;
    let mut client = server.connect().await;
    client.post(&[("mcp-session-id", &session), ("accept", "application/json")], ASK).await;
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert!(answer.body.contains("\"isError\":true") && answer.body.contains("text/event-stream"), "{answer:?}");
}

#[tokio::test]
async fn cancelling_takes_the_question_back() {
    let server = TestServer::start(|_| {});
    let session = open(&server).await;
    let mut client = asked(&server, &session).await;
    accepted(&server, &session, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).await;
    let event = client.chunk().await;
    assert!(event.contains("notifications/cancelled") && event.contains("\"requestId\":1"), "{event}");
    assert!(client.chunk().await.is_empty());
    accepted(&server, &session, ANSWER).await;
    // The end of a session ends its questions, too.
    let mut client = server.connect().await;
    client.post(&[("mcp-session-id", &session)], &ASK.replace("\"id\":2", "\"id\":3")).await;
    client.head().await;
    // An event without content, then the question.
    client.chunk().await;
    client.chunk().await;
    let mut other = server.connect().await;
    other.send(&request("DELETE /mcp", &[("mcp-session-id", &session)], "")).await;
    assert_eq!(other.answer().await.status, 204);
    assert!(client.chunk().await.contains("notifications/cancelled"));
    assert!(client.chunk().await.is_empty());
    let mut late = server.connect().await;
    late.post(&[("mcp-session-id", &session)], ANSWER).await;
    assert_eq!(late.answer().await.status, 404);
}

#[tokio::test]
async fn patience_ends() {
    let server = TestServer::start(|config| config.limits.question_time = Span(30));
    let session = open(&server).await;
    let mut client = asked(&server, &session).await;
    assert!(client.chunk().await.contains("notifications/cancelled"));
    let answer = client.chunk().await;
    assert!(answer.contains("did not answer") && answer.contains("\"isError\":true"), "{answer}");
    assert!(client.chunk().await.is_empty());
}
