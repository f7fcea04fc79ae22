//! Handlers that ask the client.

use guesthouse::serde_json::Value;
use guesthouse::{Ctx, Elicited, Result, bail, data, ensure};

#[data]
struct Account {
    /// The user's name.
    username: String,
    /// The user's address.
    email: String,
}

#[data]
struct Name {
    /// A name.
    name: String,
}

#[data]
struct Answer {
    /// A value.
    value: String,
}

#[data]
struct Confirmation {
    /// Whether to go on.
    ok: bool,
}

#[data]
struct Color {
    /// A color.
    color: String,
}

#[data]
struct Context {
    /// What to keep in mind.
    context: String,
}

#[data]
struct Profile {
    /// Full name.
    #[schema(default = "John Doe")]
    #[serde(default)]
    name: String,
    /// Age in years.
    #[schema(default = 30)]
    #[serde(default)]
    age: i64,
    /// Score.
    #[schema(default = 95.5)]
    #[serde(default)]
    score: f64,
    /// Status.
    #[schema(default = "active")]
    #[serde(default)]
    status: Status,
    /// Whether it was verified.
    #[schema(default = true)]
    #[serde(default)]
    verified: bool,
}

#[data]
#[derive(Default)]
#[serde(rename_all = "lowercase")]
enum Status {
    #[default]
    Active,
    Inactive,
    Pending,
}

const CHOICES: &str = r#"{"mode":"form","message":"Please choose.","requestedSchema":{"type":"object","properties":{
"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}
}}}"#;

/// What a form's answer amounts to, in the words that the suite looks for.
fn completed<T: guesthouse::serde::Serialize>(answer: Elicited<T>) -> Result<String> {
    let (action, content) = match answer {
        Elicited::Accept(content) => ("accept", guesthouse::json::to_text(&content)?),
        Elicited::Decline => ("decline", "{}".into()),
        Elicited::Cancel => ("cancel", "{}".into()),
    };
    Ok(format!("Elicitation completed: action={action}, content={content}"))
}

pub fn account(ctx: &Ctx, message: &str) -> Result<String> {
    match ctx.elicit::<Account>("account", message)? {
        Elicited::Accept(Account { username, email }) => Ok(format!("User response: {username}, {email}")),
        Elicited::Decline => Ok("User response: declined".into()),
        Elicited::Cancel => Ok("User response: cancelled".into()),
    }
}

pub fn defaults(ctx: &Ctx) -> Result<String> {
    completed(ctx.elicit::<Profile>("profile", "Please review these values.")?)
}

pub fn choices(ctx: &Ctx) -> Result<String> {
    completed(ctx.elicit_with::<Value>("choices", CHOICES)?)
}

pub fn value(ctx: &Ctx) -> Result<String> {
    completed(ctx.elicit::<Answer>("streaming_elicitation", "Please give a value.")?)
}

pub fn hello(ctx: &Ctx) -> Result<String> {
    match ctx.elicit::<Name>("user_name", "What is your name?")? {
        Elicited::Accept(Name { name }) => Ok(format!("Hello, {name}!")),
        Elicited::Decline | Elicited::Cancel => bail!("Without a name there is no greeting."),
    }
}

pub fn with_state(ctx: &Ctx) -> Result<&'static str> {
    const STATE: &[u8] = b"waiting for a confirmation";
    let answer = ctx.elicit::<Confirmation>("confirm", "Shall we go on?").map_err(|open| open.with_state(STATE))?;
    ensure!(ctx.state().as_deref() == Some(STATE), "The state was lost.");
    match answer {
        Elicited::Accept(Confirmation { ok: true }) => Ok("Confirmed, state-ok"),
        Elicited::Accept(_) | Elicited::Decline | Elicited::Cancel => Ok("Not confirmed, state-ok"),
    }
}

pub fn three_at_once(ctx: &Ctx) -> Result<String> {
    let questions =
        (ctx.elicit::<Name>("user_name", "What is your name?"), ctx.sample("greeting", "Write a greeting.", 50), ctx.roots("client_roots"));
    let (name, greeting, roots) = ctx.together(questions).map_err(|open| open.with_state("three questions"))?;
    let name = match name {
        Elicited::Accept(Name { name }) => name,
        Elicited::Decline | Elicited::Cancel => "nobody".into(),
    };
    Ok(format!("{name}: {} ({} roots)", greeting.text(), roots.len()))
}

pub fn two_rounds(ctx: &Ctx) -> Result<String> {
    let first = ctx.elicit::<Name>("step1", "Step 1: what is your name?").map_err(|open| open.with_state("round 1"))?;
    let second = ctx.elicit::<Color>("step2", "Step 2: which color?").map_err(|open| open.with_state("round 2"))?;
    Ok(format!("{} {}", completed(first)?, completed(second)?))
}

pub fn what_the_client_can(ctx: &Ctx) -> Result<String> {
    let mut said = Vec::new();
    if ctx.client_supports("sampling") {
        said.push(ctx.sample("greeting", "Write a greeting.", 50)?.text());
    }
    if ctx.client_supports("elicitation") {
        said.push(hello(ctx)?);
    }
    Ok(format!("Done. {}", said.join(" ")))
}

pub fn context(ctx: &Ctx) -> Result<String> {
    match ctx.elicit::<Context>("user_context", "What is this about?")? {
        Elicited::Accept(Context { context }) => Ok(format!("Keep this in mind: {context}")),
        Elicited::Decline | Elicited::Cancel => Ok("There is no context.".into()),
    }
}
