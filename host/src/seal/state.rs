//! `requestState`: what a call that asked a modern client needs on its next run, sealed and bound to that call.

use super::replay::{Refused, Replays, TokenId};
use super::{Sealer, Unsealable, random};
use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use guesthouse_protocol::model::Rounds;
use guesthouse_protocol::model::questions::Expected;
use guesthouse_protocol::{Json, RpcError, StateProblem};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Longest token. What does not fit cannot be asked: the guest holds too much state, or the client answered too much.
pub(crate) const STATE_LEN_MAX: usize = 1 << 20;

/// Tokens of one principal that are remembered as used, where they may be used once.
pub(crate) const USED_PER_PRINCIPAL_MAX: usize = 100_000;

const PURPOSE: &str = "request-state";
const VERSION: u8 = 1;

/// Seals and opens request states.
pub(crate) struct States {
    sealer: Arc<Sealer>,
    ttl_s: u64,
    skew_s: u64,
    len_max: usize,
    /// Set where a token may be used once.
    replays: Option<Box<dyn Replays>>,
}

/// What a state is bound to. It opens for the same request of the same client alone.
pub(crate) struct Binding<'a> {
    pub(crate) method: &'a str,
    /// The tool, the prompt or the resource.
    pub(crate) name: &'a str,
    /// See [`canonical`].
    pub(crate) arguments: &'a str,
    pub(crate) principal: &'a str,
    pub(crate) tenant: &'a str,
    pub(crate) endpoint: &'a str,
    pub(crate) revision: &'a str,
}

/// A state that was opened.
pub(crate) struct Opened<'a> {
    pub(crate) rounds: Rounds,
    /// The questions of the last round, and what answers them.
    pub(crate) open: Vec<(String, Expected)>,
    /// What is to be done before the state is used, where it may be used once.
    pub(crate) spend: Option<Spend<'a>>,
}

/// A token that may be used once, if it was not used already.
pub(crate) struct Spend<'a> {
    replays: &'a dyn Replays,
    principal: String,
    token: TokenId,
    until: u64,
    now: u64,
}

/// A use of a token that may be used once. Unless it is kept, dropping this takes the use back.
pub(crate) struct Used<'a> {
    replays: &'a dyn Replays,
    principal: String,
    token: TokenId,
    until: u64,
    kept: bool,
}

/// The payload of a token.
#[derive(Serialize, Deserialize)]
struct Claims {
    v: u8,
    iat: u64,
    exp: u64,
    jti: TokenId,
    /// Digest of the binding.
    to: String,
    round: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    answers: Vec<Answer>,
    open: Vec<OpenQuestion>,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<(i32, String, Option<Json>)>,
}

#[derive(Serialize, Deserialize)]
struct OpenQuestion {
    key: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    form: Option<Value>,
}

impl States {
    /// Where used tokens are remembered, each may be used once.
    pub(crate) fn new(sealer: Arc<Sealer>, ttl_s: u64, skew_s: u64, replays: Option<Box<dyn Replays>>) -> Self {
        Self { sealer, ttl_s, skew_s, len_max: STATE_LEN_MAX, replays }
    }

    /// The same with tokens of at most this length, as where a client can send back no more.
    pub(crate) fn with_len_max(self, len_max: usize) -> Self {
        Self { len_max: len_max.min(STATE_LEN_MAX), ..self }
    }

    /// Seals what the next run needs. `now` is in seconds since 1970.
    pub(crate) fn seal(&self, to: &Binding<'_>, rounds: &Rounds, open: &[(String, Expected)], now: u64) -> Result<String> {
        let claims = Claims {
            v: VERSION,
            iat: now,
            exp: now.saturating_add(self.ttl_s),
            jti: random().context("cannot get randomness from the system")?,
            to: to.digest(),
            round: rounds.round,
            state: rounds.state.as_ref().map(|state| STANDARD.encode(state)),
            answers: rounds.answers.iter().map(Answer::of).collect(),
            open: open.iter().map(OpenQuestion::of).collect(),
        };
        let token = self.sealer.seal(PURPOSE, &serde_json::to_vec(&claims)?)?;
        if token.len() > self.len_max {
            bail!("the state of the call takes {} bytes, more than {}", token.len(), self.len_max);
        }
        Ok(token)
    }

    /// Opens what a client sent back, if all is as it was.
    pub(crate) fn open(&self, to: &Binding<'_>, token: &str, now: u64) -> Result<Opened<'_>, Refusal> {
        let payload = self.sealer.open(PURPOSE, token, self.len_max).map_err(|problem| match problem {
            Unsealable::Invalid => StateProblem::Invalid,
            Unsealable::TooLarge => StateProblem::TooLarge,
            Unsealable::KeyUnknown => StateProblem::KeyUnknown,
            Unsealable::KeyRevoked => StateProblem::KeyRevoked,
        })?;
        // We wrote it; only another version of ours writes anything else.
        let claims: Claims = serde_json::from_slice(&payload).map_err(|_| StateProblem::Invalid)?;
        if claims.v != VERSION || claims.iat > claims.exp {
            return Err(StateProblem::Invalid.into());
        }
        if claims.iat > now.saturating_add(self.skew_s) {
            return Err(StateProblem::NotYetValid.into());
        }
        let until = claims.exp.saturating_add(self.skew_s);
        if until < now {
            return Err(StateProblem::Expired.into());
        }
        if claims.to != to.digest() {
            return Err(StateProblem::BindingMismatch.into());
        }
        let token = claims.jti;
        let (rounds, open) = claims.into_rounds().ok_or(StateProblem::Invalid)?;
        let spend = self.replays.as_deref().map(|replays| Spend { replays, principal: to.owner(), token, until, now });
        Ok(Opened { rounds, open, spend })
    }
}

/// Why a state is not taken.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The client's fault.
    Problem(StateProblem),
    /// Its use cannot be noted now.
    Busy,
}

impl From<StateProblem> for Refusal {
    fn from(problem: StateProblem) -> Self {
        Refusal::Problem(problem)
    }
}

impl<'a> Spend<'a> {
    /// From here on, the token is used.
    pub(crate) async fn spend(self) -> Result<Used<'a>, Refusal> {
        let Self { replays, principal, token, until, now } = self;
        match replays.consume(&principal, token, until, now).await {
            Ok(()) => Ok(Used { replays, principal, token, until, kept: false }),
            Err(Refused::Replayed) => Err(StateProblem::Replayed.into()),
            Err(Refused::Full) => Err(Refusal::Busy),
        }
    }
}

impl Used<'_> {
    /// What the token was used for has happened.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Used<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.replays.release(&self.principal, self.token, self.until);
        }
    }
}

impl Binding<'_> {
    /// Under whom a use is remembered. No name of a tenant has a line break.
    fn owner(&self) -> String {
        format!("{}\n{}", self.tenant, self.principal)
    }

    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let parts = [self.method, self.name, self.arguments, self.principal, self.tenant, self.endpoint, self.revision];
        for part in parts {
            // The length keeps one part from running into the next.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        STANDARD.encode(hash.finalize())
    }
}

impl Claims {
    fn into_rounds(self) -> Option<(Rounds, Vec<(String, Expected)>)> {
        let state = self.state.map(|state| STANDARD.decode(state)).transpose().ok()?;
        let answers = self.answers.into_iter().map(Answer::into_answer).collect::<Option<_>>()?;
        let open = self.open.into_iter().map(OpenQuestion::into_expected).collect::<Option<_>>()?;
        Some((Rounds { answers, state, round: self.round }, open))
    }
}

impl Answer {
    fn of((key, answer): &(String, Result<Json, RpcError>)) -> Self {
        let key = key.clone();
        match answer {
            Ok(result) => Self { key, result: Some(result.clone()), error: None },
            Err(error) => Self { key, result: None, error: Some((error.code, error.message.clone(), error.data.clone())) },
        }
    }

    fn into_answer(self) -> Option<(String, Result<Json, RpcError>)> {
        let answer = match (self.result, self.error) {
            (Some(result), None) => Ok(result),
            (None, Some((code, message, data))) => Err(RpcError { code, message, data }),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some((self.key, answer))
    }
}

impl OpenQuestion {
    fn of((key, expected): &(String, Expected)) -> Self {
        let form = if let Expected::Form(schema) = expected { schema.clone() } else { None };
        Self { key: key.clone(), kind: expected.as_str().into(), form }
    }

    fn into_expected(self) -> Option<(String, Expected)> {
        let expected = match Expected::parse(&self.kind)? {
            Expected::Form(_) => Expected::Form(self.form),
            other => other,
        };
        Some((self.key, expected))
    }
}

/// JSON in one form, whatever the order of members, the spacing, and the way in which numbers are written.
pub(crate) fn canonical(json: &RawValue) -> String {
    let mut out = String::new();
    match serde_json::from_str::<Value>(json.get()) {
        Ok(value) => write_canonical(&value, &mut out),
        // Something that is no JSON to us is only like itself.
        Err(_) => out.push_str(json.get()),
    }
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (name, value) in members {
                out.push_str(&Value::String(name.clone()).to_string());
                out.push(':');
                write_canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            // `1` and `1.0` are the same number to most clients, which may write back either.
            Some(float) if number.is_f64() && float.fract() == 0.0 => out.push_str(&format!("{float:.0}")),
            _ => out.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

#[cfg(test)]
mod tests;
