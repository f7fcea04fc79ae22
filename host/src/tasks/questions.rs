//! What tasks ask and what is answered, and what guests report of jobs that they run elsewhere.

use super::record::{Owner, Record};
use super::store::Full;
use super::{Tasks, internal};
use guesthouse_protocol::model::InputRequired;
use guesthouse_protocol::model::questions::{Asked, Expected};
use guesthouse_protocol::model::tasks::{Live, Over};
use guesthouse_protocol::{InternalKind, Json, RpcError};

/// What became of a task that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// It waits for answers.
    Waiting,
    /// Nothing was asked, so that it can run again at once.
    Again,
    /// It was over already.
    Over,
}

/// What a client's answers did.
#[derive(Clone, Debug, Default)]
pub struct Answered {
    /// The guest's keys of the questions that they answered.
    pub own_keys: Vec<String>,
    /// Nothing is open any more, so that work goes on.
    pub goes_on: bool,
}

/// How a guest says that its job is.
#[derive(Debug)]
pub struct Report {
    /// How far it is.
    pub state: ReportedState,
    /// For people.
    pub message: Option<String>,
    /// How often a client should ask.
    pub poll_interval_ms: Option<u32>,
}

/// How far a guest's job is.
#[derive(Debug)]
pub enum ReportedState {
    /// It is being done.
    Working,
    /// It needs answers, under the guest's keys.
    Asks(Vec<Asked>),
    /// It has ended.
    Over(Over),
}

impl Tasks {
    /// Puts a task's questions to whoever looks at it.
    pub fn ask(&self, id: &str, asked: InputRequired) -> Asking {
        let mut asked = Some(asked);
        let asking = self.change(id, None, |record, room| {
            let Some(InputRequired { questions, guest_state, .. }) = asked.take() else { return (false, Asking::Over) };
            if record.task.live().is_none() {
                return (false, Asking::Over);
            }
            let state_bytes = guest_state.as_ref().map_or(0, Vec::len);
            let bytes = questions.iter().map(|asked| asked.bytes().saturating_mul(2)).fold(state_bytes, usize::saturating_add);
            if bytes > room {
                let over = internal(InternalKind::OutputTooLarge, "There was no room to keep the questions of the task");
                return (self.end_record(record, room, over), Asking::Over);
            }
            let rounds = &mut record.work.context.rounds;
            rounds.round = rounds.round.saturating_add(1);
            rounds.state = guest_state;
            questions.iter().for_each(|asked| rounds.forget(&asked.key));
            if questions.is_empty() {
                return (false, Asking::Again);
            }
            (self.open(record, questions), Asking::Waiting)
        });
        asking.unwrap_or(Asking::Over)
    }

    /// Opens questions in the place of those that are open.
    fn open(&self, record: &mut Record, questions: Vec<Asked>) -> bool {
        record.keys.close_all();
        let questions = record.keys.open(questions);
        record.task.advance((self.clock)(), |live| {
            let working = match live {
                Live::Waiting(waiting) => waiting.settled(),
                working @ Live::Working(_) => working,
            };
            match working {
                Live::Working(working) => working.ask(questions).into(),
                waiting @ Live::Waiting(_) => waiting.into(),
            }
        })
    }

    /// Takes in a client's answers. What is not open, or does not fit its question, is passed over. `None` if there is no such
    /// task, or an error if there is no room for the answers.
    pub fn answer(&self, id: &str, owner: &Owner, answers: &[(String, Result<Json, RpcError>)]) -> Option<Result<Answered, Full>> {
        self.purge();
        self.change(id, Some(owner), |record, room| {
            let Some(Live::Waiting(waiting)) = record.task.live() else { return (false, Ok(Answered::default())) };
            let mut accepted = Vec::new();
            for (key, answer) in answers {
                let Some(question) = waiting.question(key) else { continue };
                let answer = match answer {
                    Ok(answer) => Expected::of(question).accept(answer).map(Ok),
                    Err(error) => Some(Err(error.clone())),
                };
                accepted.extend(answer.map(|answer| (key.clone(), answer)));
            }
            let before = record.work.context.rounds.clone();
            let mut answered = Answered::default();
            let mut keys = Vec::new();
            for (key, answer) in accepted {
                answered.own_keys.extend(record.put_answer(&key, answer));
                keys.push(key);
            }
            if record.work.context.rounds.answers_bytes().saturating_sub(before.answers_bytes()) > room {
                record.work.context.rounds = before;
                return (false, Err(Full));
            }
            if keys.is_empty() {
                return (false, Ok(answered));
            }
            record.task.advance((self.clock)(), |live| match live {
                Live::Waiting(waiting) => waiting.answered(&keys).into(),
                working @ Live::Working(_) => working.into(),
            });
            answered.goes_on = matches!(record.task.live(), Some(Live::Working(_)));
            (true, Ok(answered))
        })
    }

    /// Takes in how a guest says that its job is. Questions that are open already keep their keys.
    pub fn report(&self, id: &str, report: Report) {
        let mut report = Some(report);
        self.change(id, None, |record, room| {
            let Some(report) = report.take() else { return (false, ()) };
            (self.take_report(record, room, report), ())
        });
    }

    fn take_report(&self, record: &mut Record, room: usize, report: Report) -> bool {
        let now = (self.clock)();
        if let Some(poll_interval_ms) = report.poll_interval_ms {
            record.task.poll_interval_ms = u64::from(poll_interval_ms.max(1));
        }
        let changed = match report.state {
            ReportedState::Over(over) => return self.end_record(record, room, over),
            ReportedState::Working => {
                let waits = matches!(record.task.live(), Some(Live::Waiting(_)));
                record.keys.close_all();
                waits
                    && record.task.advance(now, |live| match live {
                        Live::Waiting(waiting) => waiting.settled().into(),
                        working @ Live::Working(_) => working.into(),
                    })
            }
            ReportedState::Asks(questions) => {
                let known: Vec<&str> = record.keys.open_own().collect();
                let same = known.len() == questions.len() && questions.iter().all(|asked| known.contains(&asked.key.as_str()));
                let bytes = questions.iter().map(|asked| asked.bytes().saturating_mul(2)).fold(0, usize::saturating_add);
                if !same && (bytes > room || record.keys.is_full()) {
                    let over = internal(InternalKind::OutputTooLarge, "There was no room to keep the questions of the task");
                    return self.end_record(record, room, over);
                }
                !same && self.open(record, questions)
            }
        };
        let noted = report.message.filter(|message| record.task.message.as_ref() != Some(message) && message.len() <= room);
        let noted = noted.is_some_and(|message| record.task.note(now, message));
        changed || noted
    }
}
