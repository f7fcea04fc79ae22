//! A guest that does with `wasi:keyvalue` whatever it is told: in a call, in `init`, while it lists its tools, and when it migrates.

wit_bindgen::generate!({
    inline: r#"
        package state:guest;
        world state {
            include guesthouse:mcp/handler@0.1.0;
            import wasi:keyvalue/store@0.2.0-draft;
            import wasi:keyvalue/atomics@0.2.0-draft;
            import wasi:keyvalue/batch@0.2.0-draft;
            export guesthouse:mcp/tools@0.1.0;
            export guesthouse:mcp/migration@0.1.0;
        }
    "#,
    path: "../../../wit",
    world: "state:guest/state",
    generate_all,
});

use exports::guesthouse::mcp::lifecycle::{Guest as Lifecycle, ServerInfo};
use exports::guesthouse::mcp::migration::{Guest as Migration, Owner};
use exports::guesthouse::mcp::tools::{Guest as Tools, TaskSupport, Tool, ToolAnnotations, ToolOutcome, ToolPage};
use guesthouse::mcp::context;
use guesthouse::mcp::types::{Asked, Content, Error, InputRequired, Question, TextContent, ToolResult};
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use wasi::keyvalue::store::{self, Bucket};
use wasi::keyvalue::{atomics, batch};

struct State;

/// Ends with the version, one digit. Tests change that in the component.
static VERSION: &str = "state-guest-version-1";

export!(State);

/// One thing to do with a bucket.
#[derive(Clone, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
enum Act {
    Open,
    Get { key: String },
    Set { key: String, value: String },
    Fill { key: String, bytes: usize },
    Delete { key: String },
    Exists { key: String },
    List { cursor: Option<u64> },
    Add { key: String, delta: u64 },
    /// Adds one by reading and writing.
    Count { key: String },
    GetMany { keys: Vec<String> },
    SetMany { entries: Vec<(String, String)> },
    DeleteMany { keys: Vec<String> },
}

#[derive(Clone, Deserialize)]
struct Step {
    bucket: String,
    #[serde(flatten)]
    act: Act,
}

/// What a call does, and how it ends.
#[derive(Deserialize)]
struct Script {
    steps: Vec<Step>,
    #[serde(default)]
    end: End,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum End {
    #[default]
    Ok,
    Error,
    /// A result that says that the tool failed.
    Failed,
    Trap,
    Ask,
    Loop,
}

/// What the operator configures.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Config {
    init: Vec<Step>,
    list: Vec<Step>,
    /// What `migrate` does besides; its bucket `owner` is the one that is migrated.
    migrate: Vec<Step>,
    /// How `migrate` ends.
    migrate_end: End,
}

thread_local! {
    static CONFIG: RefCell<(Config, Value)> = RefCell::default();
}

impl Lifecycle for State {
    fn describe() -> ServerInfo {
        ServerInfo {
            name: "state".into(),
            version: version().to_string(),
            title: None,
            description: None,
            website_url: None,
            icons: Vec::new(),
            instructions: None,
            more: None,
        }
    }

    fn init(config: String) -> Result<(), String> {
        let config: Config = serde_json::from_str(&config).map_err(|error| error.to_string())?;
        let saw = run(&config.init);
        CONFIG.set((config, saw));
        Ok(())
    }
}

impl Tools for State {
    /// The description of `run` is what the list saw.
    fn list_tools(_: Option<String>) -> Result<ToolPage, Error> {
        let saw = CONFIG.with_borrow(|(config, _)| run(&config.list));
        let tool = |name: &str, description: String| Tool {
            name: name.into(),
            title: None,
            description: Some(description),
            input_schema: r#"{"type":"object"}"#.into(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            task_support: TaskSupport::Forbidden,
            meta: None,
            more: None,
        };
        let task = |name: &str, idempotent| Tool {
            annotations: Some(ToolAnnotations {
                title: None,
                read_only: None,
                destructive: None,
                idempotent: Some(idempotent),
                open_world: None,
            }),
            task_support: TaskSupport::Required,
            ..tool(name, "ends when the key `ready` is there".into())
        };
        let tools =
            vec![tool("run", saw.to_string()), tool("init-saw", "what `init` saw".into()), task("wait", true), task("wait-once", false)];
        Ok(ToolPage { tools, next: None, cache: None })
    }

    fn call_tool(name: String, arguments: String) -> Result<ToolOutcome, Error> {
        if name == "init-saw" {
            return Ok(text(CONFIG.with_borrow(|(_, saw)| saw.to_string())));
        }
        if name.starts_with("wait") {
            while run(&[Step { bucket: "guest".into(), act: Act::Get { key: "ready".into() } }]) == json!([null]) {}
            let then = serde_json::from_str::<Script>(&arguments).ok().map(|script| run(&script.steps).to_string());
            return Ok(text(then.unwrap_or_else(|| "it is ready".into())));
        }
        let script: Script = serde_json::from_str(&arguments).map_err(|error| Error::InvalidParams(error.to_string()))?;
        let saw = run(&script.steps).to_string();
        match script.end {
            End::Ok => Ok(text(saw)),
            End::Failed => match text(saw) {
                ToolOutcome::Complete(result) => Ok(ToolOutcome::Complete(ToolResult { is_error: true, ..result })),
                other => Ok(other),
            },
            End::Error => Err(Error::Internal(saw)),
            End::Trap => panic!("as told"),
            End::Ask if context::answer("roots").is_some() => Ok(text(saw)),
            End::Ask => {
                let questions = vec![Asked { key: "roots".into(), question: Question::ListRoots }];
                Ok(ToolOutcome::InputRequired(InputRequired { questions, state: None }))
            }
            End::Loop => loop {
                std::hint::spin_loop();
            },
        }
    }
}

/// Each version writes the key `n` in another way, and says for whom it was run.
impl Migration for State {
    fn migrate(from_version: String, owner: Owner) -> Result<(), String> {
        let (name, whom) = match &owner {
            Owner::Guest => ("guest", String::new()),
            Owner::Principal(whom) => ("principal", whom.clone()),
            Owner::Session(whom) => ("session", whom.clone()),
        };
        let bucket = store::open(name).map_err(|error| error.to_string())?;
        let from = from_version.parse().map_err(|_| "which version?".to_owned())?;
        if let Some(value) = bucket.get("n").map_err(|error| error.to_string())? {
            let value = written(version(), number(from, &String::from_utf8_lossy(&value)));
            bucket.set("n", value.as_bytes()).map_err(|error| error.to_string())?;
        }
        bucket.set("owner", format!("{name} {whom}").as_bytes()).map_err(|error| error.to_string())?;
        let (mut steps, end) = CONFIG.with_borrow(|(config, _)| (config.migrate.clone(), config.migrate_end));
        steps.iter_mut().filter(|step| step.bucket == "owner").for_each(|step| step.bucket = name.into());
        let saw = run(&steps).to_string();
        bucket.set("saw", saw.as_bytes()).map_err(|error| error.to_string())?;
        match end {
            End::Error => Err("as told".into()),
            End::Trap => panic!("as told"),
            End::Loop => loop {
                std::hint::spin_loop();
            },
            End::Ok | End::Failed | End::Ask => Ok(()),
        }
    }
}

fn version() -> u32 {
    let text = std::hint::black_box(VERSION);
    text.rsplit('-').next().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// A number as a version writes it.
fn written(version: u32, number: u64) -> String {
    if version == 1 { number.to_string() } else { format!("v{version}:{number}") }
}

/// What a version reads. One that another version wrote is not understood.
fn number(version: u32, text: &str) -> u64 {
    let digits = if version == 1 { text } else { text.strip_prefix(&format!("v{version}:")).expect("another version wrote this") };
    digits.parse().expect("another version wrote this")
}

/// The outcomes of all steps.
fn run(steps: &[Step]) -> Value {
    steps.iter().map(|Step { bucket, act }| outcome(bucket, act)).collect()
}

fn outcome(bucket: &str, act: &Act) -> Value {
    match store::open(bucket).and_then(|bucket| take(&bucket, act)) {
        Ok(value) => value,
        Err(store::Error::NoSuchStore) => json!({ "error": "no-such-store" }),
        Err(store::Error::AccessDenied) => json!({ "error": "access-denied" }),
        Err(store::Error::Other(text)) => json!({ "error": text }),
    }
}

fn take(bucket: &Bucket, act: &Act) -> Result<Value, store::Error> {
    let shown = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    Ok(match act.clone() {
        Act::Open => json!("open"),
        Act::Get { key } => json!(bucket.get(&key)?.map(shown)),
        Act::Set { key, value } => json!(bucket.set(&key, value.as_bytes())?),
        Act::Fill { key, bytes } => json!(bucket.set(&key, &vec![b'x'; bytes])?),
        Act::Delete { key } => json!(bucket.delete(&key)?),
        Act::Exists { key } => json!(bucket.exists(&key)?),
        Act::List { cursor } => {
            let page = bucket.list_keys(cursor)?;
            json!({ "keys": page.keys, "cursor": page.cursor })
        }
        Act::Add { key, delta } => json!(atomics::increment(bucket, &key, delta)?),
        Act::Count { key } => {
            let number = bucket.get(&key)?.map_or(0, |value| number(version(), &shown(value))) + 1;
            bucket.set(&key, written(version(), number).as_bytes())?;
            json!(number)
        }
        Act::GetMany { keys } => {
            let found = batch::get_many(bucket, &keys)?;
            found.into_iter().map(|pair| json!(pair.map(|(key, value)| (key, shown(value))))).collect()
        }
        Act::SetMany { entries } => {
            let entries: Vec<_> = entries.into_iter().map(|(key, value)| (key, value.into_bytes())).collect();
            json!(batch::set_many(bucket, &entries)?)
        }
        Act::DeleteMany { keys } => json!(batch::delete_many(bucket, &keys)?),
    })
}

fn text(text: String) -> ToolOutcome {
    ToolOutcome::Complete(ToolResult {
        content: vec![Content::Text(TextContent { text, annotations: None, meta: None })],
        structured_content: None,
        is_error: false,
        meta: None,
        more: None,
    })
}
