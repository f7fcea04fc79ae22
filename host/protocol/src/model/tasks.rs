//! Tasks: work that outlives the request it came with. A state machine that has no illegal step; its wire forms are in
//! `tasks/wire.rs`.

mod time;
mod wire;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::questions::{Asked, Question};
use super::{CallToolResult, Reply};
use crate::error::RpcError;
use crate::failure::{self, Answer, Outcome};
use crate::json::{Object, raw, to_raw_written};
use crate::message::{entries, meta_key};
use crate::method::Method;
use crate::revision::Revision;
pub use time::iso_8601;
pub(crate) use wire::related_task;
pub use wire::{EXTENSION, RELATED_TASK};

/// One task, as its owner sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Names it; nobody can guess it.
    pub id: String,
    /// How far it is.
    stage: Stage,
    /// For people: how far it is, or why it ended.
    pub message: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// When it changed last.
    updated_at_ms: u64,
    /// How long it is kept, from its beginning.
    pub ttl_ms: u64,
    /// How often a client should ask.
    pub poll_interval_ms: u64,
}

/// How far a task is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Stage {
    /// Something will still happen.
    Live(Live),
    /// Nothing will. There is no way out of here.
    Over(Over),
}

/// A task that is not over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Live {
    /// It runs.
    Working(Working),
    /// It needs answers.
    Waiting(Waiting),
}

/// Work that is being done. Made when a task is made and when its questions are settled, and never otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Working(());

/// Questions that are open, under keys that the task never used before; at least one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Waiting(Vec<Asked>);

/// How a task ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Over {
    /// With a result, which may say that the tool failed.
    Completed(Finished),
    /// With an error of the protocol.
    Failed(RpcError),
    /// Somebody ended it.
    Cancelled,
}

/// The result of a tool, written out, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finished {
    #[serde(with = "crate::saved")]
    newest: Arc<RawValue>,
    /// For 2025-11-25, where that differs.
    #[serde(with = "crate::saved::option")]
    older: Option<Arc<RawValue>>,
    is_error: bool,
}

/// A page of `tasks/list`.
#[derive(Clone, Debug, Default)]
pub struct TaskPage {
    /// In the dispatcher's order.
    pub tasks: Vec<Task>,
    /// Where the next page begins.
    pub next_cursor: Option<String>,
}

/// What a client of 2025-11-25 says that wants a call to run as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAsked {
    /// How long it wants the task kept.
    pub ttl_ms: Option<u64>,
}

impl Task {
    /// A task that begins now.
    pub fn new(id: String, now_ms: u64, ttl_ms: u64, poll_interval_ms: u64) -> Task {
        let stage = Stage::Live(Live::Working(Working(())));
        Task { id, stage, message: None, created_at_ms: now_ms, updated_at_ms: now_ms, ttl_ms, poll_interval_ms }
    }

    /// How far it is.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// What is needed for the next step; none if there is none.
    pub fn live(&self) -> Option<&Live> {
        match &self.stage {
            Stage::Live(live) => Some(live),
            Stage::Over(_) => None,
        }
    }

    /// Takes a step. A task that is over stays as it is, and the step is not taken.
    pub fn advance(&mut self, now_ms: u64, step: impl FnOnce(Live) -> Stage) -> bool {
        let Stage::Live(live) = &self.stage else { return false };
        self.stage = step(live.clone());
        self.updated_at_ms = self.updated_at_ms.max(now_ms);
        true
    }

    /// Says how far the work is, while it is being done.
    pub fn note(&mut self, now_ms: u64, message: String) -> bool {
        let working = matches!(self.stage, Stage::Live(Live::Working(_)));
        if working {
            self.message = Some(message);
            self.updated_at_ms = self.updated_at_ms.max(now_ms);
        }
        working
    }

    /// When it may be forgotten, in milliseconds since 1970.
    pub fn expires_at_ms(&self) -> u64 {
        self.created_at_ms.saturating_add(self.ttl_ms)
    }

    /// What it takes to keep it, roughly.
    pub fn bytes(&self) -> usize {
        let stage = match &self.stage {
            Stage::Live(Live::Working(_)) => 0,
            Stage::Live(Live::Waiting(Waiting(open))) => open.iter().map(Asked::bytes).fold(0, usize::saturating_add),
            Stage::Over(over) => over.bytes(),
        };
        let texts = self.id.len().saturating_add(self.message.as_ref().map_or(0, String::len));
        stage.saturating_add(texts)
    }
}

impl Working {
    /// The work cannot go on without answers. Without questions there is nothing to wait for.
    pub fn ask(self, questions: Vec<Asked>) -> Live {
        if questions.is_empty() { Live::Working(self) } else { Live::Waiting(Waiting(questions)) }
    }
}

impl Waiting {
    /// The questions that are open.
    pub fn open(&self) -> &[Asked] {
        &self.0
    }

    /// The open question of that key.
    pub fn question(&self, key: &str) -> Option<&Question> {
        self.0.iter().find(|asked| asked.key == key).map(|asked| &asked.question)
    }

    /// These questions are answered; with the last one, work goes on.
    pub fn answered(mut self, keys: &[String]) -> Live {
        self.0.retain(|asked| !keys.contains(&asked.key));
        if self.0.is_empty() { self.settled() } else { Live::Waiting(self) }
    }

    /// Whatever is still open need not be answered any more.
    pub fn settled(self) -> Live {
        Live::Working(Working(()))
    }
}

impl From<Live> for Stage {
    fn from(live: Live) -> Stage {
        Stage::Live(live)
    }
}

impl From<Over> for Stage {
    fn from(over: Over) -> Stage {
        Stage::Over(over)
    }
}

impl Over {
    /// How a tool call that ended like this ends its task, for a client of that revision.
    pub fn of(outcome: Outcome, revision: Revision) -> Over {
        let failure = match outcome {
            Ok(Reply::Tool(result)) => return Over::Completed(Finished::of(&result)),
            Ok(_) => failure::wrong_reply(),
            Err(failure) => failure,
        };
        match failure::answer(failure, Method::CallTool, revision) {
            Answer::Error { error, .. } => Over::Failed(error),
            Answer::Tool(result) => Over::Completed(Finished::of(&result)),
            Answer::Nothing => Over::Cancelled,
        }
    }

    /// What it takes to keep it, roughly.
    pub fn bytes(&self) -> usize {
        match self {
            Over::Completed(finished) => finished.bytes(),
            Over::Failed(error) => error.bytes(),
            Over::Cancelled => 0,
        }
    }

    /// What people should know about it; none where all is well.
    pub fn reason(&self) -> Option<String> {
        match self {
            Over::Completed(finished) => finished.is_error.then(|| "The tool reported an error".to_owned()),
            Over::Failed(error) => Some(error.message.clone()),
            Over::Cancelled => Some("The task was cancelled by request".to_owned()),
        }
    }
}

impl Finished {
    /// Writes a result out.
    pub fn of(result: &CallToolResult) -> Finished {
        let written = |revision| -> Arc<RawValue> {
            let written = to_raw_written(|out| {
                let mut object = Object::new(out);
                result.write(&mut object, revision);
                object.optional_object("_meta", result.meta.as_deref());
                object.end();
            });
            Arc::from(written)
        };
        let newest = written(Revision::LATEST_MODERN);
        let older = Some(written(Revision::LATEST_HANDSHAKE)).filter(|older| older.get() != newest.get());
        Finished { newest, older, is_error: result.is_error }
    }

    /// Whether the tool ran, and failed at what it was asked to do.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    fn form(&self, revision: Revision) -> &RawValue {
        self.older.as_deref().filter(|_| revision < Revision::LATEST_MODERN).unwrap_or(&self.newest)
    }

    fn bytes(&self) -> usize {
        self.newest.get().len().saturating_add(self.older.as_ref().map_or(0, |older| older.get().len()))
    }
}

/// Writes the members of an object one by one, but for `_meta`, whose own members are handed back. A guest cannot speak for
/// the server there.
fn members<'a>(object: &mut Object<'_>, value: &'a RawValue) -> Vec<(Cow<'a, str>, &'a RawValue)> {
    let mut meta = Vec::new();
    for (name, value) in entries(value).unwrap_or_default() {
        if name == "_meta" {
            meta = entries(value).unwrap_or_default();
        } else {
            raw(object.dynamic_key(&name), value);
        }
    }
    meta.retain(|(key, _)| key != meta_key::SERVER_INFO && key != RELATED_TASK);
    meta
}

#[cfg(test)]
mod tests;
