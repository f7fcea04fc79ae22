//! A server on a real socket, and a client that writes and reads bytes.

use super::super::serve_on;
use crate::config::Config;
use crate::transport::testing::{Fake, PATIENCE, call};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(super) struct TestServer {
    pub(super) fake: Arc<Fake>,
    pub(super) address: std::net::SocketAddr,
    pub(super) stop: Option<oneshot::Sender<()>>,
    pub(super) task: JoinHandle<anyhow::Result<()>>,
}

impl TestServer {
    pub(super) fn start(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        change(&mut config);
        let fake = Fake::new(config);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = serve_on(fake.clone(), listener, async move { drop(stopped.await) });
        Self { fake, address, stop: Some(stop), task: tokio::spawn(serving) }
    }

    pub(super) async fn connect(&self) -> Client {
        Client { stream: TcpStream::connect(self.address).await.unwrap(), buffer: Vec::new() }
    }

    pub(super) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Opens a session and says its id.
    pub(super) async fn initialize(&self) -> String {
        let mut client = self.connect().await;
        client.post(&[], &initialize("2025-11-25")).await;
        client.answer().await.header("mcp-session-id").unwrap().to_owned()
    }
}

/// One connection.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    pub(super) buffer: Vec<u8>,
}

/// An answer, whole.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub(super) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    pub(super) async fn post(&mut self, headers: &[(&str, &str)], body: &str) {
        let text = request("POST /mcp", headers, body);
        self.send(&text).await;
    }

    /// Posts a modern call of a tool.
    pub(super) async fn call(&mut self, tool: &str, more_meta: &str) {
        self.post(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)], &call(1, tool, more_meta))
            .await;
    }

    /// Reads more; false at the end.
    pub(super) async fn more(&mut self) -> bool {
        let len = timeout(PATIENCE, self.stream.read_buf(&mut self.buffer)).await.expect("nothing arrives").unwrap_or(0);
        len > 0
    }

    /// Takes what ends with that mark.
    pub(super) async fn until(&mut self, mark: &str) -> String {
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|window| window == mark.as_bytes()) {
                let rest = self.buffer.split_off(at + mark.len());
                return String::from_utf8(std::mem::replace(&mut self.buffer, rest)).unwrap();
            }
            assert!(self.more().await, "the connection ended after {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    pub(super) async fn take(&mut self, len: usize) -> String {
        while self.buffer.len() < len {
            assert!(self.more().await, "the connection ended early");
        }
        let rest = self.buffer.split_off(len);
        String::from_utf8(std::mem::replace(&mut self.buffer, rest)).unwrap()
    }

    pub(super) async fn head(&mut self) -> Answer {
        let head = self.until("\r\n\r\n").await;
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Answer { status, headers: lines.filter_map(header).collect(), body: String::new() }
    }

    /// One chunk of a body whose length was not known; empty at its end.
    pub(super) async fn chunk(&mut self) -> String {
        let size = self.until("\r\n").await;
        let len = usize::from_str_radix(size.trim(), 16).unwrap();
        let chunk = self.take(len).await;
        self.until("\r\n").await;
        chunk
    }

    pub(super) async fn answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        if let Some(len) = answer.header("content-length") {
            let len = len.parse().unwrap();
            answer.body = self.take(len).await;
        } else if answer.header("transfer-encoding").is_some() {
            loop {
                let chunk = self.chunk().await;
                if chunk.is_empty() {
                    break;
                }
                answer.body.push_str(&chunk);
            }
        }
        answer
    }

    /// Whether the server closes the connection without another byte.
    pub(super) async fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && !self.more().await
    }
}

pub(super) fn request(line: &str, headers: &[(&str, &str)], body: &str) -> String {
    let length = body.len().to_string();
    let mut all = vec![
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("content-length", &length),
    ];
    all.retain(|(name, _)| !headers.iter().any(|(given, _)| given == name));
    all.extend(headers.iter().filter(|(_, value)| *value != "-"));
    let headers: String = all.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("{line} HTTP/1.1\r\n{headers}\r\n{body}")
}

pub(super) fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    )
}
