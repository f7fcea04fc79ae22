//! Fits questions to a client: what it declared, and what its revision knows.

use serde_json::{Map, Value, json};

use super::form::form_of;
use super::{Asked, InputRequired, Question, invalid};
use crate::failure::Failure;
use crate::json::{Json, to_raw};
use crate::revision::Revision;
use serde_json::value::RawValue;

/// Members of a sampling request, with the first revision that has them.
const SAMPLE_MEMBERS: [(&str, Revision); 10] = [
    ("messages", Revision::V2024_11_05),
    ("modelPreferences", Revision::V2024_11_05),
    ("systemPrompt", Revision::V2024_11_05),
    ("includeContext", Revision::V2024_11_05),
    ("temperature", Revision::V2024_11_05),
    ("maxTokens", Revision::V2024_11_05),
    ("stopSequences", Revision::V2024_11_05),
    ("metadata", Revision::V2024_11_05),
    ("tools", Revision::V2025_11_25),
    ("toolChoice", Revision::V2025_11_25),
];

/// Why a question cannot be put to a client.
pub(super) enum Unfit {
    /// The client lacks these capabilities.
    Missing(Value),
    /// No client could answer it.
    Invalid(String),
}

impl InputRequired {
    /// Brings the questions into the form of a revision, and refuses them all if the client lacks what one of them
    /// needs. Doing so twice changes nothing.
    pub fn fit(&mut self, revision: Revision, capabilities: &RawValue) -> Result<(), Failure> {
        self.check()?;
        let client: Value = serde_json::from_str(capabilities.get()).unwrap_or_default();
        let mut missing = Map::new();
        for Asked { key, question } in &mut self.questions {
            match fitted(question, revision, &client) {
                Ok(fitted) => *question = fitted,
                Err(Unfit::Missing(needed)) => merge(&mut missing, needed),
                Err(Unfit::Invalid(problem)) => {
                    return Err(invalid(&format!("the question `{key}`: {problem}")));
                }
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(Failure::MissingClientCapability(to_raw(&missing))) }
    }
}

fn fitted(question: &Question, revision: Revision, client: &Value) -> Result<Question, Unfit> {
    let object = |params: &Json| serde_json::from_str::<Map<String, Value>>(params.get());
    match question {
        Question::Elicit(params) => match object(params) {
            Ok(params) => elicit(params, revision, client).map(Question::Elicit),
            Err(error) => Err(Unfit::Invalid(error.to_string())),
        },
        Question::Sample(params) => match object(params) {
            Ok(params) => sample(params, revision, client).map(Question::Sample),
            Err(error) => Err(Unfit::Invalid(error.to_string())),
        },
        Question::Roots if client.get("roots").is_some_and(Value::is_object) => Ok(Question::Roots),
        Question::Roots => Err(Unfit::Missing(json!({ "roots": {} }))),
    }
}

fn elicit(params: Map<String, Value>, revision: Revision, client: &Value) -> Result<Json, Unfit> {
    let declared = client.get("elicitation").and_then(Value::as_object).filter(|_| revision.has_elicitation());
    let message =
        params.get("message").filter(|message| message.is_string()).ok_or_else(|| Unfit::Invalid("it needs a `message`".into()))?;
    let mode = params.get("mode").map_or(Some("form"), Value::as_str);
    let params = match mode {
        Some("form") => {
            // An empty object declares forms, which is all there was before modes.
            let forms = declared
                .is_some_and(|declared| !revision.has_url_elicitation() || declared.contains_key("form") || !declared.contains_key("url"));
            if !forms {
                return Err(Unfit::Missing(json!({ "elicitation": { "form": {} } })));
            }
            let schema = form_of(params.get("requestedSchema"), revision).map_err(|problem| Unfit::Invalid(problem.to_string()))?;
            if revision.has_url_elicitation() {
                json!({ "mode": "form", "message": message, "requestedSchema": schema })
            } else {
                json!({ "message": message, "requestedSchema": schema })
            }
        }
        Some("url") => {
            let urls = declared.is_some_and(|declared| declared.contains_key("url"));
            if !urls || !revision.has_url_elicitation() {
                return Err(Unfit::Missing(json!({ "elicitation": { "url": {} } })));
            }
            let url = params
                .get("url")
                .filter(|url| url.as_str().is_some_and(|url| url.contains(':')))
                .ok_or_else(|| Unfit::Invalid("it needs a `url`".into()))?;
            if revision.has_elicitation_id() {
                let id = params
                    .get("elicitationId")
                    .filter(|id| id.is_string())
                    .ok_or_else(|| Unfit::Invalid("it needs an `elicitationId`".into()))?;
                json!({ "mode": "url", "message": message, "url": url, "elicitationId": id })
            } else {
                json!({ "mode": "url", "message": message, "url": url })
            }
        }
        Some(_) | None => {
            return Err(Unfit::Invalid("its `mode` must be `form` or `url`".to_owned()));
        }
    };
    Ok(to_raw(&params))
}

fn sample(mut params: Map<String, Value>, revision: Revision, client: &Value) -> Result<Json, Unfit> {
    let declared = client.get("sampling").and_then(Value::as_object);
    let Some(declared) = declared else {
        return Err(Unfit::Missing(json!({ "sampling": {} })));
    };
    params.retain(|name, _| SAMPLE_MEMBERS.iter().any(|(known, first)| known == name && *first <= revision));
    let with_tools = params.contains_key("tools") || params.contains_key("toolChoice");
    if with_tools && !declared.contains_key("tools") {
        return Err(Unfit::Missing(json!({ "sampling": { "tools": {} } })));
    }
    if revision.has_sampling_tools() && !declared.contains_key("context") {
        // The other values are for clients that declared them; none is what an absent member means.
        params.remove("includeContext");
    }
    if params.get("maxTokens").and_then(Value::as_u64).is_none() {
        return Err(Unfit::Invalid("it needs `maxTokens`, an integer".into()));
    }
    let Some(Value::Array(messages)) = params.get_mut("messages") else {
        return Err(Unfit::Invalid("it needs `messages`, an array".into()));
    };
    if !messages.iter().all(is_message) {
        return Err(Unfit::Invalid("each of its `messages` needs a `role` and `content`".into()));
    }
    if !revision.has_sampling_tools() {
        let old = std::mem::take(messages);
        messages.extend(old.into_iter().flat_map(|message| split(message, revision)));
    }
    Ok(to_raw(&params))
}

fn is_message(message: &Value) -> bool {
    let role = message.get("role").and_then(Value::as_str);
    matches!(role, Some("user" | "assistant")) && message.get("content").is_some_and(|content| content.is_object() || content.is_array())
}

/// A message with several blocks as several messages of one block each, since older revisions have no more.
fn split(message: Value, revision: Revision) -> Vec<Value> {
    let role = message.get("role").cloned().unwrap_or(json!("user"));
    let blocks = match message.get("content") {
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(block) => vec![block.clone()],
        None => Vec::new(),
    };
    let lower = |block: Value| json!({ "role": role, "content": lowered(block, revision) });
    blocks.into_iter().map(lower).collect()
}

/// A block that the revision lacks becomes a text that says what was there.
fn lowered(block: Value, revision: Revision) -> Value {
    let text = match block.get("type").and_then(Value::as_str) {
        Some("text" | "image") => return block,
        Some("audio") if revision.has_audio() => return block,
        Some("audio") => "[audio]".to_owned(),
        Some(_) | None => block.to_string(),
    };
    json!({ "type": "text", "text": text })
}

fn merge(into: &mut Map<String, Value>, from: Value) {
    let Value::Object(from) = from else { return };
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(known)), value) => merge(known, value),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}
