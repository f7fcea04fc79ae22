//! One task as it is kept: whose it is, how it is, and what it takes to go on with it.

use crate::registry::Endpoint;
use guesthouse_protocol::model::questions::Asked;
use guesthouse_protocol::model::{Rounds, Task};
use guesthouse_protocol::{CallContext, Json, RpcError};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;

/// What a record takes beside its texts.
const RECORD_BYTES: usize = 512;

/// Questions over the life of one task.
const KEYS_MAX: usize = 1_024;

/// Who may see a task. Whoever is somebody else cannot tell it from one that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The caller, if it is known; those that are not known have one owner, and unguessable ids.
    #[serde(with = "guesthouse_protocol::saved::option")]
    pub principal: Option<Arc<str>>,
    /// On whose behalf.
    #[serde(with = "guesthouse_protocol::saved::option")]
    pub tenant: Option<Arc<str>>,
    /// Where the task was made.
    pub endpoint: Endpoint,
}

/// A task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Who may see it.
    pub owner: Owner,
    /// How it is.
    pub task: Task,
    /// What is done.
    pub work: Work,
    /// Under which keys the client knows what was asked.
    pub keys: Keys,
}

/// What it takes to run the callback (again).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The guest that does it.
    #[serde(with = "guesthouse_protocol::saved")]
    pub guest: Arc<str>,
    /// The tool, as the endpoint calls it.
    pub tool: String,
    /// JSON text.
    pub arguments: String,
    /// By whom it was asked for; `rounds` has the answers so far.
    pub context: CallContext,
    /// The guest's own name for it, if the guest runs it elsewhere and reports on it.
    pub job: Option<String>,
}

/// The keys of a task's questions. The client's are unique over the task's life, the guest's need not be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Keys {
    used: HashSet<String>,
    /// Open questions: the client's key, the guest's.
    open: Vec<(String, String)>,
}

impl Record {
    /// What it takes to keep it, roughly.
    pub fn bytes(&self) -> usize {
        let Work { tool, arguments, context, job, .. } = &self.work;
        let shared = [context.client_info.as_ref(), Some(&context.client_capabilities)];
        [
            RECORD_BYTES,
            self.task.bytes(),
            self.keys.bytes(),
            tool.len(),
            arguments.len(),
            shared.into_iter().flatten().map(|text| text.get().len()).sum(),
            context.meta.as_ref().map_or(0, |meta| meta.get().len()),
            context.rounds.answers_bytes(),
            context.rounds.state.as_ref().map_or(0, Vec::len),
            job.as_ref().map_or(0, String::len),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }

    /// Takes in an answer, under the client's key; the guest's is handed back.
    pub fn put_answer(&mut self, key: &str, answer: Result<Json, RpcError>) -> Option<String> {
        let own = self.keys.close(key)?;
        self.work.context.rounds.put(own.clone(), answer);
        Some(own)
    }

    /// Nothing more will be done.
    pub fn forget_work(&mut self) {
        self.keys = Keys::default();
        self.work.arguments = String::new();
        self.work.context.rounds = Rounds::default();
    }
}

impl Keys {
    /// Gives the questions keys that the task never used before, and notes that they are open.
    pub fn open(&mut self, questions: Vec<Asked>) -> Vec<Asked> {
        questions
            .into_iter()
            .map(|asked| {
                let key = self.unused(&asked.key);
                self.used.insert(key.clone());
                self.open.push((key.clone(), asked.key));
                Asked { key, question: asked.question }
            })
            .collect()
    }

    /// No more questions should be asked.
    pub fn is_full(&self) -> bool {
        self.used.len() >= KEYS_MAX
    }

    /// The guest's keys of what is open.
    pub fn open_own(&self) -> impl Iterator<Item = &str> {
        self.open.iter().map(|(_, own)| own.as_str())
    }

    /// Nothing is open any more.
    pub fn close_all(&mut self) {
        self.open.clear();
    }

    fn close(&mut self, key: &str) -> Option<String> {
        let at = self.open.iter().position(|(known, _)| known == key)?;
        Some(self.open.swap_remove(at).1)
    }

    fn unused(&self, own: &str) -> String {
        if !self.used.contains(own) {
            return own.to_owned();
        }
        let numbered = (2_u64..).map(|number| format!("{own}-{number}"));
        numbered.into_iter().find(|key| !self.used.contains(key)).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        let used = self.used.iter().map(String::len);
        let open = self.open.iter().map(|(key, own)| key.len().saturating_add(own.len()));
        used.chain(open).fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use guesthouse_protocol::model::Question;

    fn asked(keys: &[&str]) -> Vec<Asked> {
        keys.iter().map(|key| Asked { key: (*key).into(), question: Question::Roots }).collect()
    }

    fn opened(keys: &mut Keys, own: &[&str]) -> Vec<String> {
        keys.open(asked(own)).into_iter().map(|asked| asked.key).collect()
    }

    #[test]
    fn a_key_is_used_once_in_the_life_of_a_task() {
        let mut keys = Keys::default();
        assert_eq!(opened(&mut keys, &["name", "name-2"]), ["name", "name-2"]);
        assert_eq!(keys.close("name").as_deref(), Some("name"));
        assert_eq!(keys.close("name"), None);
        assert_eq!(opened(&mut keys, &["name"]), ["name-3"]);
        assert_eq!(keys.close("name-3").as_deref(), Some("name"));
        keys.close_all();
        assert_eq!(opened(&mut keys, &["name-2"]), ["name-2-2"]);
        assert_eq!(keys.open_own().collect::<Vec<_>>(), ["name-2"]);
    }
}
