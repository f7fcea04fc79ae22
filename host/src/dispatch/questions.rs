//! Calls that ask the client first: what earlier rounds brought goes into the run, and what the guest asks comes out of it.
//!
//! In the handshake era the peer keeps the answers; in the modern era the client does, sealed.

use super::{Scope, bad_output, report};
use crate::convert;
use crate::guest::bindings::types;
use crate::registry::Loaded;
use crate::seal::state::{Binding, Refusal, Used, canonical};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use guesthouse_protocol::model::questions::{Expected, QUESTIONS_MAX, accept_unasked};
use guesthouse_protocol::model::{InputRequired, Question, Reply, Rounds};
use guesthouse_protocol::{CallContext, Era, Failure, Identity, InternalKind, Json, Method, Outcome, Revision};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// A form's schema that is longer is not sealed along: the shape of its answer is then checked alone.
const SEALED_FORM_BYTES_MAX: usize = 16 << 10;

/// Random bytes of an `elicitationId`.
const ELICITATION_ID_BYTES: usize = 16;

/// One run of a call that may ask.
pub(super) struct Turn<'a> {
    scope: &'a Scope<'a>,
    method: Method,
    name: &'a str,
    /// JSON text, for the binding of sealed state; empty in the handshake era.
    arguments: String,
    identity: Identity,
    revision: Revision,
    /// In the handshake era, of these only the count of rounds is set.
    rounds: Rounds,
    used: Option<Used<'a>>,
}

impl<'a> Scope<'a> {
    /// Prepares a run: puts what earlier rounds brought into the context. Fails, without a run, where the client's state is
    /// not what it was given.
    pub(super) async fn turn(
        &'a self,
        context: &mut CallContext,
        method: Method,
        name: &'a str,
        arguments: impl FnOnce() -> String,
    ) -> Result<Turn<'a>, Failure> {
        let (revision, identity) = (context.revision, context.identity.clone());
        if revision.era() == Era::Handshake {
            let rounds = Rounds { round: context.rounds.round, ..Rounds::default() };
            return Ok(Turn { scope: self, method, name, arguments: String::new(), identity, revision, rounds, used: None });
        }
        let mut turn =
            Turn { scope: self, method, name, arguments: arguments(), identity, revision, rounds: Rounds::default(), used: None };
        let Some(retry) = context.retry.take() else { return Ok(turn) };
        let mut given: HashMap<String, Json> = match &retry.input_responses {
            None => HashMap::new(),
            Some(responses) => serde_json::from_str(responses.get()).unwrap_or_default(),
        };
        turn.rounds = match &retry.request_state {
            None => unsealed(given),
            Some(token) => {
                let opened = turn.bound(|to| self.dispatcher.states.open(to, token, now_s())).map_err(refused)?;
                if let Some(spend) = opened.spend {
                    turn.used = Some(spend.spend().await.map_err(refused)?);
                }
                let mut rounds = opened.rounds;
                for (key, expected) in opened.open {
                    if let Some(answer) = given.remove(&key).and_then(|answer| expected.accept(&answer)) {
                        rounds.put(key, Ok(answer));
                    }
                }
                rounds
            }
        };
        context.rounds = turn.rounds.clone();
        Ok(turn)
    }
}

/// What a client reads of a state that is not taken.
fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Problem(problem) => Failure::RequestState(problem),
        Refusal::Busy => Failure::Busy { retry_after_s: guesthouse_protocol::RETRY_AFTER_S },
    }
}

impl Turn<'_> {
    /// The tool, the prompt or the resource.
    pub(super) fn name(&self) -> &str {
        self.name
    }

    /// What becomes of a guest's questions.
    pub(super) fn ask(&self, guest: &Loaded, kind: &str, required: types::InputRequired) -> Outcome {
        let name = self.name;
        let round = self.rounds.round.saturating_add(1);
        let asking = Asking { guest, kind, name, revision: self.revision, round, rounds_max: self.scope.dispatcher.desk.rounds_max };
        let mut asked = asking.checked(required)?;
        if self.revision.era() == Era::Handshake {
            return Ok(Reply::InputRequired(Box::new(asked)));
        }
        let mut rounds = self.rounds.clone();
        rounds.round = round;
        rounds.state = asked.guest_state.take();
        for asked in &asked.questions {
            rounds.forget(&asked.key);
        }
        let open: Vec<(String, Expected)> = asked.questions.iter().map(|asked| (asked.key.clone(), expected(&asked.question))).collect();
        let token = self.bound(|to| self.scope.dispatcher.states.seal(to, &rounds, &open, now_s()));
        let token = token.map_err(|error| {
            report(guest, kind, name, &format!("cannot ask the client: {error:#}"));
            let text = format!("{kind} `{name}` of guest `{}` holds more than can be kept while the client is asked", guest.name);
            Failure::Internal { kind: InternalKind::OutputTooLarge, text }
        })?;
        asked.request_state = Some(token);
        Ok(Reply::InputRequired(Box::new(asked)))
    }

    /// Ends the turn. State that may be used once stays used, unless the run failed and so left no trace.
    pub(super) fn conclude(self, outcome: Outcome) -> Outcome {
        match (&outcome, self.used) {
            (Err(Failure::Internal { .. } | Failure::Busy { .. } | Failure::TooMany { .. } | Failure::Cancelled), _) | (_, None) => {}
            (_, Some(used)) => used.keep(),
        }
        outcome
    }

    fn bound<T>(&self, with: impl FnOnce(&Binding<'_>) -> T) -> T {
        with(&Binding {
            method: self.method.as_str(),
            name: self.name,
            arguments: &serde_json::from_str::<&RawValue>(&self.arguments).map(canonical).unwrap_or_default(),
            principal: self.identity.principal.as_deref().unwrap_or_default(),
            tenant: self.identity.tenant.as_deref().unwrap_or_default(),
            endpoint: &self.scope.endpoint.path(),
            revision: self.revision.as_str(),
        })
    }
}

/// A callback that asks.
pub(super) struct Asking<'a> {
    pub(super) guest: &'a Loaded,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) revision: Revision,
    /// Which round of questions this is.
    pub(super) round: u32,
    pub(super) rounds_max: u32,
}

impl Asking<'_> {
    /// What is asked, if it may be: not too often, not too much, and in the right form.
    pub(super) fn checked(&self, required: types::InputRequired) -> Result<InputRequired, Failure> {
        let Asking { guest, kind, name, revision, round, rounds_max } = *self;
        if round > rounds_max {
            report(guest, kind, name, &format!("asked the client more than {rounds_max} times"));
            let text = format!("{kind} `{name}` of guest `{}` asked the client too often", guest.name);
            return Err(Failure::Internal { kind: InternalKind::TooManyRounds, text });
        }
        let mut asked = convert::input_required(required).map_err(|bad| bad_output(guest, kind, name, &bad.to_string()))?;
        asked.check().inspect_err(|failure| report(guest, kind, name, &format!("cannot ask the client: {failure:?}")))?;
        if revision.era() == Era::Handshake {
            name_elicitations(&mut asked).map_err(|error| bad_output(guest, kind, name, &format!("{error:#}")))?;
        }
        Ok(asked)
    }
}

/// Answers to questions that nobody knows of (any more), as of one round.
fn unsealed(given: HashMap<String, Json>) -> Rounds {
    let mut rounds = Rounds { round: 1, ..Rounds::default() };
    let accepted = given.into_iter().filter_map(|(key, answer)| Some((key, accept_unasked(&answer)?)));
    for (key, answer) in accepted.take(QUESTIONS_MAX) {
        rounds.put(key, Ok(answer));
    }
    rounds
}

/// What will answer a question, as far as it is worth sealing.
fn expected(question: &Question) -> Expected {
    match Expected::of(question) {
        Expected::Form(_) if question.params().is_some_and(|params| params.get().len() > SEALED_FORM_BYTES_MAX) => Expected::Form(None),
        expected => expected,
    }
}

/// Gives every address to visit its `elicitationId`, which one revision wants and the others do not get.
fn name_elicitations(asked: &mut InputRequired) -> anyhow::Result<()> {
    for asked in &mut asked.questions {
        let Question::Elicit(params) = &mut asked.question else { continue };
        let mut members: Map<String, Value> = serde_json::from_str(params.get())?;
        if members.get("mode").and_then(Value::as_str) == Some("url") {
            let id = URL_SAFE_NO_PAD.encode(crate::seal::random::<ELICITATION_ID_BYTES>()?);
            members.entry("elicitationId").or_insert(Value::String(id));
            *params = serde_json::value::to_raw_value(&members)?;
        }
    }
    Ok(())
}

/// Seconds since 1970.
fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use guesthouse_protocol::model::questions::Asked;

    fn raw(text: &str) -> Json {
        RawValue::from_string(text.into()).unwrap()
    }

    #[test]
    fn answers_that_nobody_asked_for_are_bounded_and_have_a_shape() {
        let given: HashMap<String, Json> = (0..100).map(|at| (format!("k{at}"), raw(r#"{"action":"accept"}"#))).collect();
        assert_eq!(unsealed(given).answers.len(), QUESTIONS_MAX);
        let given = HashMap::from([("a".into(), raw("12345")), ("b".into(), raw(r#"{"roots":[]}"#))]);
        let rounds = unsealed(given);
        assert_eq!((rounds.round, rounds.answers.len()), (1, 1));
        assert!(rounds.answer("b").is_some());
    }

    #[test]
    fn every_address_to_visit_gets_a_name_unless_it_has_one() {
        let ask = |params: &str| Asked { key: params.len().to_string(), question: Question::Elicit(raw(params)) };
        let questions = vec![
            ask(r#"{"mode":"url","url":"https://example.com"}"#),
            ask(r#"{"mode":"url","url":"https://example.com/1"}"#),
            ask(r#"{"mode":"url","elicitationId":"mine"}"#),
            ask(r#"{"message":"m"}"#),
        ];
        let mut asked = InputRequired { questions, ..InputRequired::default() };
        name_elicitations(&mut asked).unwrap();
        let ids: Vec<Option<String>> = asked
            .questions
            .iter()
            .map(|asked| {
                let params: Value = serde_json::from_str(asked.question.params().unwrap().get()).unwrap();
                params["elicitationId"].as_str().map(str::to_owned)
            })
            .collect();
        assert!(ids[0].as_ref().is_some_and(|id| id.len() >= 20) && ids[0] != ids[1], "{ids:?}");
        assert_eq!((ids[2].as_deref(), ids[3].as_deref()), (Some("mine"), None));
    }

    #[test]
    fn a_long_form_is_not_sealed_along() {
        let form = |len: usize| {
            let schema = format!(r#"{{"type":"object","title":"{}","properties":{{}}}}"#, "x".repeat(len));
            Question::Elicit(raw(&format!(r#"{{"message":"m","requestedSchema":{schema}}}"#)))
        };
        assert!(matches!(expected(&form(10)), Expected::Form(Some(_))));
        assert_eq!(expected(&form(SEALED_FORM_BYTES_MAX)), Expected::Form(None));
    }
}
