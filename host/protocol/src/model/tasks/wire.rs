//! The wire forms of tasks: the extension of 2026-07-28 and the feature of 2025-11-25.

use bytes::Bytes;

use super::time::iso_8601;
use super::{Finished, Live, Over, Stage, Task, TaskPage, members};
use crate::json::{Object, raw};
use crate::model::common::next_cursor;
use crate::model::questions::write_questions;
use crate::revision::{Era, Revision};

/// The extension that carries tasks since 2026-07-28.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The key in `_meta` that names the task which a message belongs to (2025-11-25).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

impl Task {
    fn status(&self, revision: Revision) -> &'static str {
        match &self.stage {
            Stage::Live(Live::Working(_)) => "working",
            Stage::Live(Live::Waiting(_)) => "input_required",
            // In 2025-11-25 a tool that failed makes a task that failed; since then, that says something of the protocol.
            Stage::Over(Over::Completed(finished)) if finished.is_error && revision.era() == Era::Handshake => "failed",
            Stage::Over(Over::Completed(_)) => "completed",
            Stage::Over(Over::Failed(_)) => "failed",
            Stage::Over(Over::Cancelled) => "cancelled",
        }
    }

    /// The members of a `Task`.
    pub(crate) fn write(&self, object: &mut Object<'_>, revision: Revision) {
        object.text("taskId", &self.id);
        object.text("status", self.status(revision));
        object.optional_text("statusMessage", self.message.as_deref());
        object.text("createdAt", &iso_8601(self.created_at_ms));
        object.text("lastUpdatedAt", &iso_8601(self.updated_at_ms));
        let modern = revision.era() == Era::Modern;
        object.integer(if modern { "ttlMs" } else { "ttl" }, self.ttl_ms);
        object.integer(if modern { "pollIntervalMs" } else { "pollInterval" }, self.poll_interval_ms);
    }

    /// The members of a `CreateTaskResult`.
    pub(crate) fn write_created(&self, object: &mut Object<'_>, revision: Revision) {
        if revision.era() == Era::Modern {
            return self.write(object, revision);
        }
        let mut task = Object::new(object.key("task"));
        self.write(&mut task, revision);
        task.end();
    }

    /// The members of a `Task` with what its status brings: since 2026-07-28, questions, result and error are inside.
    pub(crate) fn write_detailed(&self, object: &mut Object<'_>, revision: Revision) {
        self.write(object, revision);
        if revision.era() == Era::Handshake {
            return;
        }
        match &self.stage {
            Stage::Live(Live::Working(_)) | Stage::Over(Over::Cancelled) => {}
            Stage::Live(Live::Waiting(waiting)) => write_questions(object, waiting.open()),
            Stage::Over(Over::Completed(finished)) => finished.write_inlined(object),
            Stage::Over(Over::Failed(error)) => error.write(object.key("error")),
        }
    }

    /// `notifications/tasks/status` of 2025-11-25.
    pub fn status_notification(&self) -> Bytes {
        let mut out = Vec::with_capacity(256);
        let mut object = Object::new(&mut out);
        object.text("jsonrpc", "2.0");
        object.text("method", "notifications/tasks/status");
        let mut params = Object::new(object.key("params"));
        self.write(&mut params, Revision::V2025_11_25);
        params.end();
        object.end();
        Bytes::from(out)
    }
}

impl Finished {
    /// What the call would have answered, inside the task.
    fn write_inlined(&self, object: &mut Object<'_>) {
        let mut result = Object::new(object.key("result"));
        result.text("resultType", "complete");
        let own = members(&mut result, self.form(Revision::LATEST_MODERN));
        if !own.is_empty() {
            let mut meta = Object::new(result.key("_meta"));
            own.into_iter().for_each(|(key, value)| raw(meta.dynamic_key(&key), value));
            meta.end();
        }
        result.end();
    }

    /// What the call would have answered, as the answer to `tasks/result`.
    pub(crate) fn write_result(&self, object: &mut Object<'_>, task: &str) {
        let own = members(object, self.form(Revision::LATEST_HANDSHAKE));
        let mut meta = Object::new(object.key("_meta"));
        related_task(&mut meta, task);
        own.into_iter().for_each(|(key, value)| raw(meta.dynamic_key(&key), value));
        meta.end();
    }
}

/// The member of `_meta` that names a task.
pub(crate) fn related_task(meta: &mut Object<'_>, task: &str) {
    let mut related = Object::new(meta.key(RELATED_TASK));
    related.text("taskId", task);
    related.end();
}

impl TaskPage {
    pub(crate) fn write(&self, object: &mut Object<'_>, revision: Revision) {
        object.array("tasks", &self.tasks, |out, task| {
            let mut object = Object::new(out);
            task.write(&mut object, revision);
            object.end();
        });
        next_cursor(object, self.next_cursor.as_deref());
    }
}
