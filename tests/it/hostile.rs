//! The hostile guests: whatever one of them does fails its own call, and in the right way, while another guest's call succeeds.
//!
//! What the guests do is listed where they are (`attack.rs`, `sabotage.rs`); the rows here match on those lists, so that
//! nothing is added to a guest without saying what has to come of it.

#[macro_use]
#[path = "../guests/hostile/src/named.rs"]
mod named;

#[path = "../guests/hostile/src/attack.rs"]
mod attack;
mod attacks;
mod callbacks;
mod forged;
mod reach;
#[path = "../guests/saboteur/src/sabotage.rs"]
mod sabotage;
mod stage;
mod starts;

use serde_json::Value;
use stage::{Era, Ran};

/// What has to come of an attack.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// An error of the host's, of this kind.
    Kind(&'static str),
    /// The same, by means of a guest that would never end by itself: the other guest is answered long before it.
    Stopped(&'static str),
    /// An error with this code.
    Code(i64),
    /// A tool's error, for the model to read.
    ToolError,
    /// It does no harm: the answer holds this text.
    Harmless(&'static str),
    /// The tool is not there.
    LeftOut,
}

use Expected::{Code, Harmless, Kind, LeftOut, Stopped, ToolError};

impl Expected {
    /// What is wrong with the answer, if anything is.
    fn problem(self, ran: &Ran) -> Option<String> {
        let answer = &ran.answer;
        let kind = answer["error"]["data"]["type"].as_str();
        let is_as_expected = match self {
            Kind(expected) => kind == Some(expected),
            Stopped(expected) => kind == Some(expected) && ran.other_first,
            Code(expected) => answer["error"]["code"] == expected,
            ToolError => answer["result"]["isError"] == true,
            Harmless(part) => answer.get("error").is_none() && answer["result"]["isError"] != true && answer.to_string().contains(part),
            LeftOut => answer["error"]["code"] == -32602 && kind == Some("not_found"),
        };
        let shown = shown(answer);
        (!is_as_expected).then(|| format!("not {self:?}, but {shown} (the other call was first: {})", ran.other_first))
    }
}

/// An answer, in so far as a person can read it.
fn shown(answer: &Value) -> String {
    answer.to_string().chars().take(500).collect()
}

/// What a row says in each era.
fn by_era(era: Era, modern: Expected, handshake: Expected) -> Expected {
    match era {
        Era::Modern => modern,
        Era::Handshake => handshake,
    }
}
