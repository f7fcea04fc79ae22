//! What guests announce, with a real guest: lists that are asked again, watchers of which a guest hears, subscriptions.

use crate::support::clients::source;
use crate::support::schema::Schemas;
use crate::support::{PROGRAM, component};
use guesthouse::host::Host;
use guesthouse::transport::memory::{Client, Messages};
use guesthouse_protocol::Revision;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const CHANGING: &str = "tests/guests/changing";
const ONE: &str = "watch://one";
const REFUSED: &str = "watch://refused";

/// Nothing here takes long; a test that hangs should say where.
const PATIENCE: Duration = Duration::from_secs(30);

/// A client, and what the server says to it of its own accord.
struct Listener {
    client: Client,
    messages: Messages,
    revision: Revision,
    schemas: Schemas,
}

async fn host() -> Host {
    Host::start(crate::support::config(), vec![source(CHANGING)]).await.unwrap_or_else(|error| panic!("{error:#}"))
}

impl Listener {
    fn connect(host: &Host, revision: Revision) -> Self {
        let client = host.connect(None).unwrap();
        let messages = client.messages();
        Self { client, messages, revision, schemas: Schemas::new() }
    }

    /// A client with a session.
    async fn session(host: &Host) -> Self {
        let listener = Self::connect(host, Revision::V2025_11_25);
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let answer = listener.request("initialize", params).await;
        let capabilities = &answer["result"]["capabilities"];
        assert_eq!(capabilities["resources"], json!({ "listChanged": true, "subscribe": true }), "{answer}");
        assert_eq!((&capabilities["tools"], &capabilities["prompts"]), (&json!({ "listChanged": true }), &json!({ "listChanged": true })));
        listener.client.notify("notifications/initialized", json!({})).await.unwrap();
        listener
    }

    async fn request(&self, method: &str, params: Value) -> Value {
        let Value::Object(params) = params else { panic!("parameters are an object") };
        if self.revision == Revision::V2026_07_28 {
            return self.client.request(method, Value::Object(params)).await.unwrap();
        }
        self.client.request_as_is(method, params).await.unwrap()
    }

    async fn call(&self, tool: &str) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": {} })).await
    }

    async fn names(&self, list: &str, member: &str) -> Vec<String> {
        let listed = self.request(list, json!({})).await;
        listed["result"][member].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The next message, as its method and, if it has one, its URI.
    async fn next(&mut self) -> (String, Option<String>) {
        let message = timeout(PATIENCE, self.messages.next()).await.expect("nothing comes").expect("the connection is closed");
        assert_eq!(self.schemas.notification_problem(&message, self.revision), None, "{message}");
        let text = |value: &Value| value.as_str().map(str::to_owned);
        (text(&message["method"]).unwrap(), text(&message["params"]["uri"]))
    }

    async fn hears(&mut self, what: &str, uri: Option<&str>) {
        assert_eq!(self.next().await, (format!("notifications/{what}"), uri.map(str::to_owned)));
    }

    /// Opens a subscription, and says what is honoured.
    async fn listen(&mut self, id: i64, filter: Value) -> Value {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
        let params = json!({ "notifications": filter, "_meta": meta });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params });
        self.client.send(message.to_string()).await.unwrap();
        let message = timeout(PATIENCE, self.messages.next()).await.expect("nothing comes").expect("the connection is closed");
        assert_eq!(self.schemas.notification_problem(&message, self.revision), None, "{message}");
        assert_eq!(message["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
        message["params"]["notifications"].clone()
    }
}

#[tokio::test]
async fn a_list_that_has_changed_is_asked_again_before_anybody_is_told() {
    let host = host().await;
    let mut client = Listener::session(&host).await;
    for (list, member, tool, what) in
        [("tools/list", "tools", "tools", "tools/list_changed"), ("prompts/list", "prompts", "prompts", "prompts/list_changed")]
    {
        let before = client.names(list, member).await;
        assert_eq!(client.names(list, member).await, before, "the list is asked once per version");
        client.call(tool).await;
        client.hears(what, None).await;
        let after = client.names(list, member).await;
        assert!(after.len() == before.len() && after.last() != before.last(), "{before:?} {after:?}");
    }
    // What is new can be called by its new name, and nothing by the old one.
    let new = client.names("tools/list", "tools").await.pop().unwrap();
    let answer = client.call(&new).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains(&new), "{answer}");
}

#[tokio::test]
async fn a_guest_hears_of_the_first_and_of_the_last_watcher() {
    let host = host().await;
    let (mut one, mut two) = (Listener::session(&host).await, Listener::session(&host).await);
    let subscribe = json!({ "uri": ONE });
    assert_eq!(one.request("resources/subscribe", subscribe.clone()).await["result"], json!({}));
    // By this the guest says that it heard of it.
    one.hears("resources/list_changed", None).await;
    two.hears("resources/list_changed", None).await;
    assert_eq!(two.request("resources/subscribe", subscribe.clone()).await["result"], json!({}));
    assert_eq!(two.request("resources/subscribe", subscribe.clone()).await["result"], json!({}));
    // It does not hear of the second, nor are failed calls or other resources of concern.
    two.call("update-then-fail").await;
    two.call("update-other").await;
    two.call("update").await;
    one.hears("resources/updated", Some(ONE)).await;
    two.hears("resources/updated", Some(ONE)).await;
    assert_eq!(one.request("resources/unsubscribe", subscribe.clone()).await["result"], json!({}));
    assert_eq!(one.request("resources/unsubscribe", subscribe.clone()).await["result"], json!({}));
    two.call("update").await;
    two.hears("resources/updated", Some(ONE)).await;
    // The end of a session ends its subscriptions.
    drop(two);
    one.hears("prompts/list_changed", None).await;
    assert_eq!(one.request("resources/subscribe", subscribe).await["result"], json!({}));
    one.hears("resources/list_changed", None).await;
}

#[tokio::test]
async fn a_resource_whose_guest_refuses_is_not_watched() {
    let host = host().await;
    let mut session = Listener::session(&host).await;
    let refused = session.request("resources/subscribe", json!({ "uri": REFUSED })).await;
    assert_eq!((&refused["error"]["code"], &refused["error"]["data"]["uri"]), (&json!(-32002), &json!(REFUSED)), "{refused}");
    let mut modern = Listener::connect(&host, Revision::V2026_07_28);
    let honoured = modern.listen(101, json!({ "resourceSubscriptions": [REFUSED, ONE], "toolsListChanged": true })).await;
    assert_eq!(honoured, json!({ "resourceSubscriptions": [ONE], "toolsListChanged": true }));
    // The first watcher of the other one is the subscription.
    session.hears("resources/list_changed", None).await;
    modern.call("update").await;
    modern.hears("resources/updated", Some(ONE)).await;
    // Its end is the end of its watching, and no response follows.
    modern.client.notify("notifications/cancelled", json!({ "requestId": 101 })).await.unwrap();
    session.hears("prompts/list_changed", None).await;
    assert_eq!(modern.listen(102, json!({ "promptsListChanged": true })).await, json!({ "promptsListChanged": true }));
    modern.call("tools").await;
    modern.call("prompts").await;
    modern.hears("prompts/list_changed", None).await;
}

#[tokio::test]
async fn over_stdio_subscriptions_share_the_channel_and_end_with_it() {
    let mut child = Command::new(PROGRAM)
        .env("XDG_STATE_HOME", crate::support::state_home())
        .args(["--log", "off", "run"])
        .arg(component(CHANGING))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = timeout(PATIENCE, output.next_line()).await.expect("nothing comes").unwrap();
        line.map(|line| serde_json::from_str::<Value>(&line).unwrap())
    };
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    for (id, filter) in [(1, json!({ "toolsListChanged": true })), (2, json!({ "promptsListChanged": true, "toolsListChanged": true }))] {
        let params = json!({ "notifications": filter, "_meta": meta });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params });
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        let acknowledged = next().await.unwrap();
        assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id, "{acknowledged}");
    }
    let params = json!({ "name": "tools", "arguments": {}, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    input.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    let mut told = Vec::new();
    for _ in 0..3 {
        let message = next().await.unwrap();
        match message["id"].as_i64() {
            Some(id) => assert_eq!(id, 3, "{message}"),
            None => told.push(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].as_i64().unwrap()),
        }
    }
    told.sort_unstable();
    assert_eq!(told, [1, 2]);
    // At the end of input, each subscription ends as the specification says.
    drop(input);
    let mut cancelled = Vec::new();
    let mut completed = Vec::new();
    while let Some(message) = next().await {
        match message["id"].as_i64() {
            Some(id) => {
                assert_eq!(message["result"]["resultType"], "complete", "{message}");
                assert!(cancelled.contains(&id), "the notification comes first");
                completed.push(id);
            }
            None => {
                assert_eq!(message["method"], "notifications/cancelled", "{message}");
                cancelled.push(message["params"]["requestId"].as_i64().unwrap());
            }
        }
    }
    completed.sort_unstable();
    assert_eq!(completed, [1, 2]);
    assert!(timeout(PATIENCE, child.wait()).await.expect("the program goes on").unwrap().success());
}
