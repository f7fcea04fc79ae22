//! Questions to the client: what a guest asks, in the shape of the newest revision, and what was answered so far.

mod answers;
mod fit;
mod form;

use serde::{Deserialize, Serialize};
use std::collections::HashSet;

use crate::error::RpcError;
use crate::failure::{Failure, InternalKind};
use crate::json::{Json, Object, is_object, raw};
pub use answers::{Expected, accept_unasked};

/// Most questions of one round.
pub const QUESTIONS_MAX: usize = 16;

/// Most bytes that the questions of one round have, keys counted.
pub const QUESTIONS_BYTES_MAX: usize = 1 << 20;

/// Longest key of a question. The client sends it back, and it is kept with the answer.
pub const KEY_BYTES_MAX: usize = 256;

/// The outcome of a run that needs answers first. The call is then run again, with all answers so far.
#[derive(Clone, Debug, Default)]
pub struct InputRequired {
    /// What is asked, in the guest's order. May be empty: then the call is simply run again.
    pub questions: Vec<Asked>,
    /// What a modern client sends back with the answers: sealed by the host, unreadable for the client.
    pub request_state: Option<String>,
    /// What the guest gets back on the next run, where the host itself keeps it.
    pub guest_state: Option<Vec<u8>>,
    /// The task that asks, which a client of 2025-11-25 is told.
    pub task: Option<String>,
}

/// One question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// The guest's name for it.
    pub key: String,
    /// What is asked.
    pub question: Question,
}

/// What is asked. The values are the `params` of the request of that name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Question {
    /// `elicitation/create`
    Elicit(Json),
    /// `sampling/createMessage`
    Sample(Json),
    /// `roots/list`
    Roots,
}

/// What the earlier rounds of a call brought.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rounds {
    /// Answers by key, none of them twice: a `result`, or the error that the client sent instead.
    pub answers: Vec<(String, Result<Json, RpcError>)>,
    /// What the guest handed over in the round before.
    pub state: Option<Vec<u8>>,
    /// How many rounds there were; 0 in the first run.
    pub round: u32,
}

impl Rounds {
    /// The answer to a question.
    pub fn answer(&self, key: &str) -> Option<&Result<Json, RpcError>> {
        self.answers.iter().find(|(known, _)| known == key).map(|(_, answer)| answer)
    }

    /// Keeps an answer, in the place of an older one to the same question.
    pub fn put(&mut self, key: String, answer: Result<Json, RpcError>) {
        self.forget(&key);
        self.answers.push((key, answer));
    }

    /// Drops the answer to a question, as when it is asked again.
    pub fn forget(&mut self, key: &str) {
        self.answers.retain(|(known, _)| known != key);
    }

    /// What the answers take.
    pub fn answers_bytes(&self) -> usize {
        let bytes = |answer: &Result<Json, RpcError>| match answer {
            Ok(result) => result.get().len(),
            Err(error) => error.bytes(),
        };
        self.answers.iter().map(|(key, answer)| key.len().saturating_add(bytes(answer))).fold(0, usize::saturating_add)
    }
}

impl Asked {
    /// What it takes to keep it, roughly.
    pub fn bytes(&self) -> usize {
        let params = self.question.params().map_or(0, |params| params.get().len());
        params.saturating_add(self.key.len())
    }
}

impl Question {
    /// The method of the request that asks this.
    pub fn method(&self) -> &'static str {
        match self {
            Question::Elicit(_) => "elicitation/create",
            Question::Sample(_) => "sampling/createMessage",
            Question::Roots => "roots/list",
        }
    }

    /// The parameters of that request; none for one that has none.
    pub fn params(&self) -> Option<&Json> {
        match self {
            Question::Elicit(params) | Question::Sample(params) => Some(params),
            Question::Roots => None,
        }
    }
}

impl InputRequired {
    /// Checks what does not depend on the client: that there are not too many questions, that each has a key of its
    /// own, and that parameters are objects.
    pub fn check(&self) -> Result<(), Failure> {
        if self.questions.len() > QUESTIONS_MAX {
            return Err(too_large(format!("{} questions were asked at once, more than {QUESTIONS_MAX}", self.questions.len())));
        }
        if self.questions.iter().map(Asked::bytes).fold(0, usize::saturating_add) > QUESTIONS_BYTES_MAX {
            return Err(too_large(format!("the questions take more than {QUESTIONS_BYTES_MAX} bytes")));
        }
        let mut keys = HashSet::new();
        for Asked { key, question } in &self.questions {
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                return Err(invalid("a question's key must have between 1 and 256 bytes"));
            }
            if !keys.insert(key.as_str()) {
                return Err(invalid(&format!("the key `{key}` is there twice")));
            }
            if question.params().is_some_and(|params| !is_object(params)) {
                return Err(invalid(&format!("the parameters of the question `{key}` are no object")));
            }
        }
        Ok(())
    }

    /// The members of an `InputRequiredResult`.
    pub(crate) fn write(&self, object: &mut Object<'_>) {
        if !self.questions.is_empty() || self.request_state.is_none() {
            write_questions(object, &self.questions);
        }
        object.optional_text("requestState", self.request_state.as_deref());
    }
}

/// The member `inputRequests`.
pub(crate) fn write_questions(object: &mut Object<'_>, questions: &[Asked]) {
    let mut requests = Object::new(object.key("inputRequests"));
    for asked in questions {
        let mut request = Object::new(requests.dynamic_key(&asked.key));
        request.text("method", asked.question.method());
        match asked.question.params() {
            Some(params) => raw(request.key("params"), params),
            None => request.key("params").extend_from_slice(b"{}"),
        }
        request.end();
    }
    requests.end();
}

fn invalid(problem: &str) -> Failure {
    Failure::Internal {
        kind: InternalKind::InvalidOutput,
        text: format!("The handler asked the client in a way that it may not: {problem}"),
    }
}

fn too_large(problem: String) -> Failure {
    Failure::Internal { kind: InternalKind::OutputTooLarge, text: format!("The handler asked the client too much: {problem}") }
}
