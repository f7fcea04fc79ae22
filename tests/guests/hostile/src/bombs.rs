//! Texts that are meant for whoever reads them: JSON that is hard to parse, and text that is none.

use crate::exports::guesthouse::mcp::tools::ToolOutcome;
use crate::guesthouse::mcp::changes;
use crate::guesthouse::mcp::context;
use crate::guesthouse::mcp::types::{Asked, Content, Error, InputRequired, Question, RpcError, TextContent, ToolResult};
use crate::{structured, text};

/// Deeper than a parser may go that calls itself, and valid all the same.
const DEPTH: usize = 50_000;
/// The same in a list, whose other entries are to be served.
const SCHEMA_DEPTH: usize = 1_000;

/// Objects within each other.
pub fn deep() -> String {
    nested(DEPTH)
}

/// A schema that holds such a value.
pub fn schema() -> String {
    format!(r#"{{"type":"object","default":{}}}"#, nested(SCHEMA_DEPTH))
}

fn nested(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

pub fn in_meta(meta: String) -> Result<ToolOutcome, Error> {
    let content = vec![Content::Text(TextContent { text: "see `_meta`".into(), annotations: None, meta: Some(meta.clone()) })];
    Ok(ToolOutcome::Complete(ToolResult { content, structured_content: None, is_error: false, meta: Some(meta), more: None }))
}

pub fn in_error() -> Error {
    Error::Rpc(RpcError { code: 7, message: "see `data`".into(), data: Some(deep()) })
}

pub fn in_question() -> Result<ToolOutcome, Error> {
    let question = format!(r#"{{"message":"?","requestedSchema":{{"type":"object","properties":{{"a":{}}}}}}}"#, deep());
    let questions = vec![Asked { key: "a".into(), question: Question::Elicit(question) }];
    Ok(ToolOutcome::InputRequired(InputRequired { questions, state: None }))
}

/// Asks for the same under each key.
pub fn questions(keys: impl IntoIterator<Item = String>, state: Vec<u8>) -> Result<ToolOutcome, Error> {
    let questions = keys.into_iter().map(|key| Asked { key, question: Question::ListRoots }).collect();
    Ok(ToolOutcome::InputRequired(InputRequired { questions, state: Some(state) }))
}

/// What is small enough for a line of the log.
pub fn in_log() -> Result<ToolOutcome, Error> {
    context::log(context::LogLevel::Error, None, &format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)));
    context::log(context::LogLevel::Error, None, "1e999999");
    text("logged".into())
}

/// More than any number of IEEE 754.
pub fn huge_number() -> Result<ToolOutcome, Error> {
    structured(r#"{"a":[-1e999999999,1]}"#.into())
}

/// A number that is small, and long.
pub fn long_number() -> Result<ToolOutcome, Error> {
    structured(format!(r#"{{"a":0.{}1}}"#, "0".repeat(100_000)))
}

/// Bytes that are no UTF-8, as text.
pub fn no_text(bytes: &[u8]) -> String {
    // SAFETY: nothing in this guest looks at it.
    unsafe { String::from_utf8_unchecked(bytes.to_vec()) }
}

/// The lone half of a pair of UTF-16, written as if it were a character.
pub const SURROGATE: &[u8] = b"a\xed\xa0\x80b";
/// Bytes that begin no character.
pub const BAD: &[u8] = b"a\xff\xfeb";

pub fn log() -> Result<ToolOutcome, Error> {
    context::log(context::LogLevel::Error, Some(&no_text(BAD)), "1");
    text("logged".into())
}

pub fn progress() -> Result<ToolOutcome, Error> {
    text(format!("{:?}", context::report_progress(1.0, None, Some(&no_text(BAD)))))
}

pub fn change() -> Result<ToolOutcome, Error> {
    changes::resource_updated(&no_text(BAD));
    text("announced".into())
}
