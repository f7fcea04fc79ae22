//! Progress and log messages of the conformance guest, as the client's handler sees them.

use crate::REVISION_MODERN;
use crate::checks::Report;
use crate::table::equal;
use anyhow::{Context as _, Result};
use rmcp::model::{CallToolRequestParams, ClientConfig, ProgressNotificationParam, RequestMetaObject};
use rmcp::service::NotificationContext;
use rmcp::{ClientHandler, Peer, RoleClient};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

const NOTIFICATIONS_MAX: usize = 64;
const ARRIVAL_S_MAX: u64 = 20;

/// A client that passes on what it is told.
pub struct Listener {
    config: ClientConfig,
    told: mpsc::Sender<Value>,
}

impl Listener {
    /// The client, and what it is told.
    pub fn new(config: ClientConfig) -> (Self, mpsc::Receiver<Value>) {
        let (told, heard) = mpsc::channel(NOTIFICATIONS_MAX);
        (Self { config, told }, heard)
    }

    /// A full channel loses the notification, and the check that waits for it fails.
    fn tell(&self, what: Value) {
        let _ = self.told.try_send(what);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.tell(json!({ "progress": params.progress, "total": params.total, "message": params.message }));
    }

    #[expect(deprecated, reason = "log messages are deprecated, and still part of every revision")]
    async fn on_logging_message(&self, params: rmcp::model::LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.tell(json!({ "level": params.level, "data": params.data }));
    }
}

/// The checks of one connection to the conformance guest.
pub struct Notifications<'a> {
    pub peer: Peer<RoleClient>,
    pub heard: mpsc::Receiver<Value>,
    pub revision: &'a str,
}

impl Notifications<'_> {
    /// All checks.
    pub async fn run(&mut self, report: &mut Report) {
        report.say("is told of progress", self.progress().await);
        report.say("is sent the log from the level that it asked for", self.log().await);
    }

    async fn progress(&mut self) -> Result<()> {
        // `message` came with 2025-03-26.
        let due = [(0.0, "Started"), (50.0, "Half done"), (100.0, "Done")].map(|(progress, message)| {
            let message = if self.revision >= "2025-03-26" { json!(message) } else { Value::Null };
            json!({ "progress": progress, "total": 100.0, "message": message })
        });
        self.peer.call_tool(CallToolRequestParams::new("test_tool_with_progress")).await?;
        self.hears(&due).await
    }

    async fn log(&mut self) -> Result<()> {
        let due = ["Tool execution started", "Tool processing data", "Tool execution completed"];
        self.call_with_level(Some("info")).await?;
        self.hears(&due.map(|data| json!({ "level": "info", "data": data }))).await?;
        self.call_with_level(Some("error")).await?;
        self.hears(&[]).await?;
        if self.revision == REVISION_MODERN {
            self.call_with_level(None).await?;
            self.hears(&[]).await?;
        }
        Ok(())
    }

    /// The level is the session's in the handshake era, and each request's own in the modern era.
    #[expect(deprecated, reason = "log levels are deprecated, and still part of every revision")]
    async fn call_with_level(&self, level: Option<&str>) -> Result<()> {
        let mut params = CallToolRequestParams::new("test_tool_with_logging");
        if let Some(level) = level {
            let level: rmcp::model::LoggingLevel = serde_json::from_value(level.into())?;
            if self.revision == REVISION_MODERN {
                let mut meta = RequestMetaObject::default();
                meta.set_log_level(level);
                params.meta = Some(meta);
            } else {
                self.peer.set_level(rmcp::model::SetLevelRequestParams::new(level)).await?;
            }
        }
        self.peer.call_tool(params).await.map(drop).map_err(Into::into)
    }

    /// The client runs its handler beside the call, so what is due may come just after the call's result.
    async fn hears(&mut self, due: &[Value]) -> Result<()> {
        let mut heard = Vec::new();
        while heard.len() < due.len() {
            let next = tokio::time::timeout(Duration::from_secs(ARRIVAL_S_MAX), self.heard.recv()).await;
            let Ok(next) = next else { break };
            heard.push(next.context("the client has gone")?);
        }
        while let Ok(more) = self.heard.try_recv() {
            heard.push(more);
        }
        equal("what was heard", &heard.into(), &due.into())
    }
}
