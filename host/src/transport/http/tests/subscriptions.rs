//! `subscriptions/listen` over real sockets.

use super::client::{Client, TestServer};
use crate::config::units::Span;
use crate::transport::Service;
use crate::transport::testing::{PATIENCE, meta};
use guesthouse_protocol::Event;
use tokio::time::timeout;

const MODERN: [(&str, &str); 2] = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];

fn listen(id: u32, filter: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{filter},{}}}}}"#, meta(""))
}

/// A client whose subscription is acknowledged.
async fn listening(server: &TestServer, id: u32, filter: &str) -> Client {
    let mut client = server.connect().await;
    client.post(&MODERN, &listen(id, filter)).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!((head.header("mcp-session-id"), head.header("x-accel-buffering")), (None, Some("no")));
    let first = client.chunk().await;
    let expected = format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{filter}}}"#);
    assert!(first.starts_with("data: ") && first.contains("notifications/subscriptions/acknowledged"), "{first}");
    assert!(first.contains(&expected), "{first}");
    client
}

/// Waits until so many listen.
async fn listeners(server: &TestServer, count: usize) {
    let reached = async {
        while server.fake.hub().counts().0 != count {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, reached).await.unwrap();
}

#[tokio::test]
async fn each_listener_hears_what_it_asked_for_under_its_own_id() {
    let server = TestServer::start(|_| {});
    let mut tools = listening(&server, 3, r#"{"toolsListChanged":true}"#).await;
    let mut both = listening(&server, 4, r#"{"promptsListChanged":true,"resourceSubscriptions":["a://b"]}"#).await;
    let publish = |event: Event| server.fake.hub().publish(&"one".into(), &event);
    publish(Event::ResourceUpdated { uri: "a://c".into() });
    publish(Event::PromptsChanged);
    publish(Event::ResourcesChanged);
    publish(Event::ToolsChanged);
    let event = tools.chunk().await;
    assert!(event.contains("tools/list_changed") && event.contains("subscriptionId\":3"), "{event}");
    let event = both.chunk().await;
    assert!(event.contains("prompts/list_changed") && event.contains("subscriptionId\":4"), "{event}");
    publish(Event::ResourceUpdated { uri: "a://b".into() });
    let event = both.chunk().await;
    assert!(event.contains("resources/updated") && event.contains(r#""uri":"a://b""#) && event.contains("subscriptionId\":4"), "{event}");
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_behind() {
    let server = TestServer::start(|config| config.streams.listeners = 1);
    let client = listening(&server, 1, r#"{"toolsListChanged":true}"#).await;
    listeners(&server, 1).await;
    // Meanwhile there is no room for another.
    let mut other = server.connect().await;
    other.post(&MODERN, &listen(2, "{}")).await;
    let answer = other.answer().await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    drop(client);
    listeners(&server, 0).await;
    let _client = listening(&server, 3, r#"{"toolsListChanged":true}"#).await;
    // Subscriptions take no place of calls.
    assert_eq!(server.fake.requests().in_flight(), 0);
}

#[tokio::test]
async fn the_server_ends_a_subscription_with_a_response() {
    let mut server = TestServer::start(|config| config.streams.listen_time = Span(20));
    let mut client = listening(&server, 1, r#"{"toolsListChanged":true}"#).await;
    let last = client.chunk().await;
    assert!(last.contains(r#""id":1,"result":{"resultType":"complete""#) && last.contains(r#"subscriptionId":1"#), "{last}");
    assert!(client.chunk().await.is_empty());
    server.stop();
    timeout(PATIENCE, &mut server.task).await.unwrap().unwrap().unwrap();
    let mut server = TestServer::start(|_| {});
    let mut client = listening(&server, 2, r#"{"toolsListChanged":true}"#).await;
    server.stop();
    let last = client.chunk().await;
    assert!(last.contains(r#""id":2,"result":"#) && !last.contains("notifications/cancelled"), "{last}");
    assert!(client.chunk().await.is_empty());
    timeout(PATIENCE, &mut server.task).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn an_idle_stream_is_kept_open_by_comments() {
    let server = TestServer::start(|config| config.streams.keep_alive = Span(10));
    let mut client = listening(&server, 1, r#"{"toolsListChanged":true}"#).await;
    assert!(client.chunk().await.starts_with(':'));
    server.fake.hub().publish(&"one".into(), &Event::ToolsChanged);
    loop {
        let piece = client.chunk().await;
        if piece.contains("tools/list_changed") {
            break;
        }
        assert!(piece.starts_with(':') && piece.ends_with("\n\n"), "{piece}");
    }
}

#[tokio::test]
async fn what_cannot_be_listened_to_is_refused_before_the_stream() {
    let server = TestServer::start(|_| {});
    let mut client = server.connect().await;
    for (headers, filter, status, part) in [
        (vec![("accept", "application/json")], "{}", 406, "not_acceptable"),
        (vec![], r#"{"toolsListChanged":1}"#, 200, "invalid_subscription_filter"),
        (vec![], "[]", 200, "invalid_subscription_filter"),
        (vec![], r#"{"resourceSubscriptions":[""]}"#, 200, "invalid_resource_subscription"),
    ] {
        let headers: Vec<_> = MODERN.into_iter().chain(headers).collect();
        client.post(&headers, &listen(1, filter)).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(answer.body.contains(part) && answer.header("content-type") == Some("application/json"), "{answer:?}");
    }
}
