//! A client in the same process, for embedders and tests.

use super::Service;
use super::driver::{Connection, Sink, Source};
use crate::host::Shared;
use crate::identity::local_session;
use crate::registry::Endpoint;
use anyhow::{Result, anyhow, bail};
use bytes::Bytes;
use guesthouse_protocol::{Peer, Refusal, Revision, RpcError, TransportKind};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Messages that may wait in either direction.
const QUEUE_LEN: usize = 64;

/// Keys of `_meta` that a modern request must have, and the one that it should.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// The client's end of a connection within this process. Dropping it cancels what runs for it.
pub struct Client {
    outgoing: mpsc::Sender<Bytes>,
    inbox: Arc<Mutex<Inbox>>,
    last_id: AtomicI64,
}

/// How a client answers what the server asks in the handshake era: the method and the parameters go in, a result or an error
/// comes out. It is called on the connection's own task, so it must not block.
pub type Answerer = dyn Fn(&str, &Value) -> Result<Value, RpcError> + Send + Sync;

/// Messages that answer no [`Client::request`]: notifications, the server's own requests where there is no [`Answerer`], and
/// the responses to what was sent with [`Client::send`]. While it is not read, the connection stands still; dropping it drops the messages.
pub struct Messages(mpsc::Receiver<Value>);

/// Who waits for what.
#[derive(Default)]
struct Inbox {
    waiting: HashMap<i64, oneshot::Sender<Value>>,
    others: Option<mpsc::Sender<Value>>,
    answerer: Option<Arc<Answerer>>,
    closed: bool,
}

/// Connects a client to an endpoint. Must be called within a runtime.
pub fn connect(shared: Arc<Shared>, endpoint: Endpoint) -> Result<Client> {
    open(shared, endpoint)
}

fn open<S: Service>(service: Arc<S>, endpoint: Endpoint) -> Result<Client> {
    let config =
        service.peer_config(&endpoint, TransportKind::Memory).ok_or_else(|| anyhow!("nothing is served at {}", endpoint.path()))?;
    let (connection, writer) = Connection::new(service, endpoint, Peer::new(config), local_session()?);
    let (outgoing, incoming) = mpsc::channel(QUEUE_LEN);
    let inbox = Arc::new(Mutex::new(Inbox::default()));
    let sink = InboxSink { inbox: inbox.clone(), outgoing: outgoing.downgrade() };
    tokio::spawn(connection.run(QueueSource(incoming), std::future::pending(), Duration::ZERO));
    // The sink fails only by being dropped.
    tokio::spawn(writer.run(sink));
    Ok(Client { outgoing, inbox, last_id: AtomicI64::new(0) })
}

impl Client {
    /// Sends a request and waits for its response, the whole of it. The `_meta` of a modern request is added unless
    /// `params` has one. Dropping the future does not cancel the request.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value> {
        let Value::Object(mut params) = params else { bail!("the parameters of {method} must be a JSON object") };
        if method != "initialize" && !params.contains_key("_meta") {
            params.insert("_meta".into(), modern_meta());
        }
        self.request_as_is(method, params).await
    }

    /// The same without any `_meta` of ours, as a request of a handshake session is.
    pub async fn request_as_is(&self, method: &str, params: Map<String, Value>) -> Result<Value> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let (sender, response) = oneshot::channel();
        {
            let mut inbox = lock(&self.inbox);
            if inbox.closed {
                bail!("the connection is closed");
            }
            inbox.waiting.insert(id, sender);
        }
        let _waiting = Waiting { inbox: &self.inbox, id };
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()).await?;
        response.await.map_err(|_| anyhow!("the connection was closed before {method} was answered"))
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) -> Result<()> {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()).await
    }

    /// Has what the server asks from now on answered by `answer`, instead of putting it among the [`Client::messages`].
    pub fn answer_with(&self, answer: impl Fn(&str, &Value) -> Result<Value, RpcError> + Send + Sync + 'static) {
        lock(&self.inbox).answerer = Some(Arc::new(answer));
    }

    /// Answers a request of the server's that was among the [`Client::messages`]; `id` is its id.
    pub async fn respond(&self, id: &Value, answer: Result<Value, RpcError>) -> Result<()> {
        self.send(response(id, answer)).await
    }

    /// Sends any text as one message. What comes back arrives in [`Client::messages`], so that has to be asked for first.
    pub async fn send(&self, message: impl Into<Bytes>) -> Result<()> {
        self.outgoing.send(message.into()).await.map_err(|_| anyhow!("the connection is closed"))
    }

    /// What arrives from now on and answers no [`Client::request`]. Until this is called, such messages are dropped.
    pub fn messages(&self) -> Messages {
        let (sender, receiver) = mpsc::channel(QUEUE_LEN);
        let mut inbox = lock(&self.inbox);
        if !inbox.closed {
            inbox.others = Some(sender);
        }
        Messages(receiver)
    }
}

impl Messages {
    /// The next message; `None` when the connection is closed.
    pub async fn next(&mut self) -> Option<Value> {
        self.0.recv().await
    }
}

/// A request that waits. Whether it is answered or given up, its place is free afterwards.
struct Waiting<'a> {
    inbox: &'a Mutex<Inbox>,
    id: i64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(self.inbox).waiting.remove(&self.id);
    }
}

/// Messages out of a queue.
pub(super) struct QueueSource(pub(super) mpsc::Receiver<Bytes>);

impl Source for QueueSource {
    async fn next(&mut self) -> Option<Result<Bytes, Refusal>> {
        self.0.recv().await.map(Ok)
    }
}

/// Sorts messages to whoever waits for them. Dropping it tells them all that nothing comes any more.
struct InboxSink {
    inbox: Arc<Mutex<Inbox>>,
    /// For what an [`Answerer`] says. Weak, since the connection ends when its client is dropped.
    outgoing: mpsc::WeakSender<Bytes>,
}

impl InboxSink {
    /// Answers a request of the server's, if that is wanted.
    fn answer(&self, request: &Value) -> bool {
        let (Some(id), Some(method)) = (request.get("id"), request.get("method").and_then(Value::as_str)) else { return false };
        let Some(answerer) = lock(&self.inbox).answerer.clone() else { return false };
        let message = response(id, answerer(method, request.get("params").unwrap_or(&Value::Null)));
        if let Some(outgoing) = self.outgoing.upgrade() {
            // Waiting here would keep what the connection sends from going out, and so the connection from reading.
            tokio::spawn(async move { outgoing.send(message.into()).await });
        }
        true
    }
}

fn response(id: &Value, answer: Result<Value, RpcError>) -> String {
    let message = match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(RpcError { code, message, data: None }) => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }),
        Err(RpcError { code, message, data: Some(data) }) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message, "data": data } })
        }
    };
    message.to_string()
}

impl Sink for InboxSink {
    async fn write(&mut self, messages: &[Bytes]) -> io::Result<()> {
        for message in messages {
            let message: Value = serde_json::from_slice(message)?;
            if self.answer(&message) {
                continue;
            }
            let others = {
                let mut inbox = lock(&self.inbox);
                let id = if message.get("method").is_none() { message.get("id").and_then(Value::as_i64) } else { None };
                if let Some(waiting) = id.and_then(|id| inbox.waiting.remove(&id)) {
                    // Whoever asked may have given up.
                    let _ = waiting.send(message);
                    continue;
                }
                inbox.others.clone()
            };
            if let Some(others) = others
                && others.send(message).await.is_err()
            {
                lock(&self.inbox).others = None;
            }
        }
        Ok(())
    }
}

impl Drop for InboxSink {
    fn drop(&mut self) {
        *lock(&self.inbox) = Inbox { closed: true, ..Inbox::default() };
    }
}

fn lock(inbox: &Mutex<Inbox>) -> std::sync::MutexGuard<'_, Inbox> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

fn modern_meta() -> Value {
    json!({
        META_VERSION: Revision::LATEST_MODERN.as_str(),
        META_CAPABILITIES: {},
        META_CLIENT: { "name": "guesthouse", "version": env!("CARGO_PKG_VERSION") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::transport::testing::{Fake, call, reaches};

    fn connected() -> (Arc<Fake>, Client) {
        let fake = Fake::new(Config::default());
        let client = open(fake.clone(), Endpoint::Merged).unwrap();
        (fake, client)
    }

    #[tokio::test]
    async fn requests_of_one_client_run_side_by_side() {
        let (fake, client) = connected();
        let wait = client.request("tools/call", json!({ "name": "wait" }));
        let echo = async {
            let answer = client.request("tools/call", json!({ "name": "echo", "arguments": { "a": 1 } })).await.unwrap();
            fake.release.add_permits(1);
            answer
        };
        let (waited, echoed) = tokio::join!(wait, echo);
        assert_eq!(waited.unwrap()["result"]["content"][0]["text"], "waited");
        assert_eq!(echoed["result"]["content"][0]["text"], r#"{"a":1}"#);
        assert!(lock(&client.inbox).waiting.is_empty());
    }

    #[tokio::test]
    async fn a_handshake_session_is_possible() {
        let (_fake, client) = connected();
        let mut messages = client.messages();
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let opened = client.request("initialize", hello).await.unwrap();
        assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
        client.notify("notifications/initialized", json!({})).await.unwrap();
        let log = json!({ "name": "log" }).as_object().unwrap().clone();
        assert!(client.request_as_is("tools/call", log).await.unwrap()["result"].is_object());
        assert_eq!(messages.next().await.unwrap()["method"], "notifications/message");
    }

    #[tokio::test]
    async fn what_the_server_asks_is_answered_by_hand_or_by_a_function() {
        let (_fake, client) = connected();
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "1" } });
        client.request("initialize", hello).await.unwrap();
        let ask = || client.request_as_is("tools/call", json!({ "name": "ask" }).as_object().unwrap().clone());
        // By hand, among the messages.
        let mut messages = client.messages();
        let by_hand = async {
            let question = messages.next().await.unwrap();
            assert_eq!(question["method"], "elicitation/create");
            client.respond(&question["id"], Ok(json!({ "action": "decline" }))).await.unwrap();
        };
        let (answer, ()) = tokio::join!(ask(), by_hand);
        assert_eq!(answer.unwrap()["result"]["content"][0]["text"], r#"{"action":"decline"}"#);
        // By a function.
        client.answer_with(|method, _| Err(RpcError { code: -1, message: format!("no {method}"), data: None }));
        assert_eq!(ask().await.unwrap()["result"]["content"][0]["text"], "no elicitation/create");
    }

    #[tokio::test]
    async fn a_question_that_nobody_answers_runs_out_of_time() {
        let mut config = Config::default();
        config.limits.question_time = crate::config::units::Span(20);
        let client = open(Fake::new(config), Endpoint::Merged).unwrap();
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": { "name": "t", "version": "1" } });
        client.request("initialize", hello).await.unwrap();
        let mut messages = client.messages();
        let answer = client.request_as_is("tools/call", json!({ "name": "ask" }).as_object().unwrap().clone()).await.unwrap();
        assert_eq!(answer["result"]["isError"], true);
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("did not answer"));
        let (question, withdrawn) = (messages.next().await.unwrap(), messages.next().await.unwrap());
        assert_eq!((&withdrawn["method"], &withdrawn["params"]["requestId"]), (&json!("notifications/cancelled"), &question["id"]));
    }

    #[tokio::test]
    async fn what_is_sent_raw_is_answered_among_the_messages() {
        let (_fake, client) = connected();
        let mut messages = client.messages();
        client.send("{").await.unwrap();
        assert_eq!(messages.next().await.unwrap()["error"]["code"], -32700);
        client.send(call(77, "echo", "")).await.unwrap();
        assert_eq!(messages.next().await.unwrap()["id"], 77);
        assert!(client.request("tools/list", json!([])).await.is_err());
    }

    #[tokio::test]
    async fn dropping_the_client_cancels_its_calls() {
        let (fake, client) = connected();
        client.send(call(1, "wait", "")).await.unwrap();
        let mut messages = client.messages();
        reaches(&fake.begun, 1).await;
        drop(client);
        reaches(&fake.stopped, 1).await;
        assert_eq!(messages.next().await, None);
    }

    #[tokio::test]
    async fn a_panic_of_the_host_fails_one_request() {
        let (_fake, client) = connected();
        let answer = client.request("tools/call", json!({ "name": "panic" })).await.unwrap();
        assert_eq!(answer["error"]["code"], -32603);
        assert!(client.request("tools/list", json!({})).await.unwrap()["result"].is_object());
    }
}
