//! Questions to the client: a handler asks as if the answer were there already, and is run again from the top when it is.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Kind;
use crate::wit::{Asked, Question};
use crate::{Ctx, Error, Result, Schema, json, schema};

/// How a person answered a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elicited<T> {
    /// Filled in.
    Accept(T),
    /// Refused to answer.
    Decline,
    /// Closed the form.
    Cancel,
}

/// What the client's model wrote.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Sampled {
    /// Which model it was.
    #[serde(default)]
    pub model: String,
    /// One content block, or an array of them, as MCP has them.
    pub content: Value,
}

impl Sampled {
    /// The text of the answer, of all text blocks.
    pub fn text(&self) -> String {
        let blocks = self.content.as_array().map_or(std::slice::from_ref(&self.content), Vec::as_slice);
        blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// A folder that the client works in.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// A `file:` URI.
    pub uri: String,
    /// What the client calls it.
    pub name: Option<String>,
}

/// A handler that asks does so before it acts: what it did before its question, it does again. The keys are the handler's own; each
/// question of a handler needs another.
impl Ctx {
    /// Asks the user to fill in a form with the fields of `T` (text, numbers, booleans, choices; no nesting).
    pub fn elicit<T: Schema + DeserializeOwned>(&self, key: &str, message: &str) -> Result<Elicited<T>> {
        let params = format!("{{\"mode\":\"form\",\"message\":{},\"requestedSchema\":{}}}", json::quote(message), schema::of::<T>());
        self.elicit_with(key, params)
    }

    /// Asks the user, with the `params` of `elicitation/create` as JSON.
    pub fn elicit_with<T: DeserializeOwned>(&self, key: &str, params: impl Into<String>) -> Result<Elicited<T>> {
        self.question(key, || Question::Elicit(params.into()), parse_elicited)
    }

    /// Asks the client's model to answer a text, in at most so many tokens.
    pub fn sample(&self, key: &str, prompt: &str, max_tokens: u32) -> Result<Sampled> {
        let message = format!("{{\"role\":\"user\",\"content\":{{\"type\":\"text\",\"text\":{}}}}}", json::quote(prompt));
        self.sample_with(key, format!("{{\"messages\":[{message}],\"maxTokens\":{max_tokens}}}"))
    }

    /// Asks the client's model, with the `params` of `sampling/createMessage` as JSON.
    pub fn sample_with(&self, key: &str, params: impl Into<String>) -> Result<Sampled> {
        self.question(key, || Question::Sample(params.into()), |answer| json::from_text(answer).ok())
    }

    /// Asks which folders the client works in.
    pub fn roots(&self, key: &str) -> Result<Vec<Root>> {
        #[derive(Deserialize)]
        struct Roots {
            roots: Vec<Root>,
        }
        self.question(key, || Question::ListRoots, |answer| Some(json::from_text::<Roots>(answer).ok()?.roots))
    }

    /// Several questions in one round: `ctx.together((ctx.elicit(…), ctx.roots(…)))?` asks all that are open at once.
    pub fn together<A: Together>(&self, answers: A) -> Result<A::Answers> {
        answers.together()
    }

    /// The answer, or the question as an error. An answer of another shape than was asked for is asked for again.
    fn question<T>(&self, key: &str, question: impl FnOnce() -> Question, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        if let Some(answer) = self.answer(key) {
            let answer = answer.map_err(|error| Error::failed(format!("The client could not answer: {}", error.message)))?;
            if let Some(answer) = parse(&answer) {
                return Ok(answer);
            }
        }
        Err(Error::ask(vec![Asked { key: key.into(), question: question() }]))
    }
}

fn parse_elicited<T: DeserializeOwned>(answer: &str) -> Option<Elicited<T>> {
    let mut answer: Value = json::from_text(answer).ok()?;
    match answer.get("action")?.as_str()? {
        "accept" => serde_json::from_value(answer.get_mut("content").map(Value::take).unwrap_or_default()).ok().map(Elicited::Accept),
        "decline" => Some(Elicited::Decline),
        "cancel" => Some(Elicited::Cancel),
        _ => None,
    }
}

/// Results whose questions go out together: tuples of up to four.
pub trait Together {
    /// A tuple of the answers.
    type Answers;

    /// All answers; or the questions that are open, all at once; or the first failure.
    fn together(self) -> Result<Self::Answers>;
}

/// Puts an outcome's questions to those of others, and keeps its answer.
fn gather<T>(outcome: Result<T>, open: &mut Option<Error>) -> Option<T> {
    let error = match outcome {
        Ok(answer) => return Some(answer),
        Err(error) => error,
    };
    match (open.as_mut().map(|open| &mut open.0), error.0) {
        (Some(Kind::Ask(open)), Kind::Ask(more)) => {
            open.questions.extend(more.questions);
            open.state = more.state.or(open.state.take());
        }
        // A failure is worth more than questions, and the first more than later ones.
        (Some(Kind::Failed(_) | Kind::Contract(_)), _) => {}
        (Some(Kind::Ask(_)) | None, kind) => *open = Some(Error(kind)),
    }
    None
}

macro_rules! together {
    ($($name:ident)*) => {
        impl<$($name),*> Together for ($(Result<$name>,)*) {
            type Answers = ($($name,)*);

            #[expect(non_snake_case, reason = "the names are those of the types")]
            fn together(self) -> Result<Self::Answers> {
                let ($($name,)*) = self;
                let mut open = None;
                $(let $name = gather($name, &mut open);)*
                match (open, $($name),*) {
                    (None, $(Some($name)),*) => Ok(($($name,)*)),
                    (open, ..) => Err(open.unwrap_or_else(|| Error::internal("an answer was lost"))),
                }
            }
        }
    };
}
together! { A B }
together! { A B C }
together! { A B C D }
