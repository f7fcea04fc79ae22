//! A guest that does everything a guest must not do: each misdeed is a tool, and some happen in `init`.

#[macro_use]
mod named;

mod arena;
mod attack;
mod bombs;

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

wit_bindgen::generate!({
    inline: r#"
        package hostile:guest;
        world hostile {
            include guesthouse:mcp/handler@0.1.0;
            export guesthouse:mcp/tools@0.1.0;
        }
    "#,
    path: "../../../wit",
    world: "hostile:guest/hostile",
    generate_all,
});

use attack::{Attack, Start};
use exports::guesthouse::mcp::lifecycle::{Guest as Lifecycle, ServerInfo};
use exports::guesthouse::mcp::tools::{Guest as Tools, TaskSupport, Tool, ToolOutcome, ToolPage};
use guesthouse::mcp::types::{Content, Error, InputRequired, RpcError, TextContent, ToolResult};
use guesthouse::mcp::{changes, context};

struct Hostile;

export!(Hostile);

/// Ten things of which each is ten times the next, on every level of the value.
const SLOW: &str = r##"{"type":"object","$defs":{
    "a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},
    "b":{"anyOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},
    "c":{"additionalProperties":{"$ref":"#/$defs/a"},"minProperties":1}
},"additionalProperties":{"$ref":"#/$defs/a"}}"##;

/// What a tool says its arguments are; most take anything.
fn input_schema(tool: Attack) -> String {
    let fixed = match tool {
        Attack::SchemaDeep => return bombs::schema(),
        Attack::SchemaNoJson => "{type",
        Attack::SchemaNoObject => r#"{"type":"string"}"#,
        Attack::SchemaInvalid => r#"{"type":"object","properties":{"a":{"type":"text"}}}"#,
        Attack::SchemaFarReference => r#"{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}"#,
        Attack::HeaderInvalid => r#"{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}"#,
        Attack::SchemaVerbatim => r#"{"x":12345678901234567890.00,"type":"object","properties":{"b":{},"a":{"\u0064efault":1e2}}}"#,
        Attack::SchemaSlow => SLOW,
        Attack::SchemaHugeNumber => r#"{"type":"object","properties":{"a":{"maximum":1e999999}}}"#,
        Attack::SchemaDuplicateKeys => r#"{"type":"string","type":"object","required":["b"],"required":["a"]}"#,
        _ => r#"{"type":"object"}"#,
    };
    fixed.into()
}

/// What a tool says its structured content is.
fn output_schema(tool: Attack) -> Option<String> {
    matches!(tool, Attack::WrongOutput | Attack::WithoutOutput).then(|| r#"{"type":"object","required":["a"]}"#.into())
}

impl Lifecycle for Hostile {
    fn describe() -> ServerInfo {
        ServerInfo {
            name: "hostile".into(),
            version: "1".into(),
            title: None,
            description: None,
            website_url: None,
            icons: Vec::new(),
            instructions: None,
            more: None,
        }
    }

    fn init(config: String) -> Result<(), String> {
        let asked = config.strip_prefix(r#"{"start":""#).and_then(|rest| rest.strip_suffix(r#""}"#));
        match Start::ALL.iter().find(|start| Some(start.name()) == asked) {
            Some(Start::Refuse) => Err("no such unit\n\u{1b}[31m".into()),
            Some(Start::Trap) => std::process::abort(),
            Some(Start::Loop) => spin(),
            Some(Start::Grow) => grow(),
            Some(Start::Talk) => {
                context::log(context::LogLevel::Info, None, "\"from init\"");
                let closed = context::report_progress(1.0, None, None) == Err(context::ProgressError::Closed);
                changes::tools_changed();
                let nothing = context::request().is_none() && context::answer("key").is_none() && context::state().is_none();
                if nothing && closed { Ok(()) } else { Err("init has a request".into()) }
            }
            None => Ok(()),
        }
    }
}

impl Tools for Hostile {
    fn list_tools(_: Option<String>) -> Result<ToolPage, Error> {
        let tool = |attack: &Attack| Tool {
            name: attack.name().into(),
            title: None,
            description: None,
            input_schema: input_schema(*attack),
            output_schema: output_schema(*attack),
            annotations: None,
            icons: Vec::new(),
            // One that never ends, to be ended by others.
            task_support: if *attack == Attack::Loop { TaskSupport::Optional } else { TaskSupport::Forbidden },
            meta: None,
            more: None,
        };
        Ok(ToolPage { tools: Attack::ALL.iter().map(tool).collect(), next: None, cache: None })
    }

    fn call_tool(name: String, arguments: String) -> Result<ToolOutcome, Error> {
        let Some(attack) = Attack::ALL.iter().find(|attack| attack.name() == name) else { return Err(Error::NotFound(name)) };
        match attack {
            Attack::Echo => text(arguments),
            Attack::Loop => spin(),
            Attack::Grow => grow(),
            Attack::Recurse => text(recurse(arguments.len() as u64).to_string()),
            Attack::Trap => std::process::abort(),
            Attack::Panic => panic!("as asked"),
            Attack::Huge => text("x".repeat(arguments.parse().unwrap_or(8 << 20))),
            Attack::Alias => alias(),
            Attack::LogFlood => {
                for at in 0..10_000 {
                    context::log(context::LogLevel::Info, Some("flood"), &at.to_string());
                }
                text("logged".into())
            }
            Attack::LogLong => {
                context::log(context::LogLevel::Info, None, &format!("\"{}\"", "\n".repeat(100_000)));
                text("logged".into())
            }
            Attack::LogLongName => {
                context::log(context::LogLevel::Info, Some(&"n".repeat(500_000)), "1");
                text("logged".into())
            }
            Attack::Progress => {
                let sent = context::report_progress(1.0, Some(2.0), Some(&arguments));
                text(format!("{sent:?}"))
            }
            Attack::ProgressFlood => {
                let refused = (1..=10_000).filter(|at| context::report_progress(f64::from(*at), None, None).is_err());
                text(refused.count().to_string())
            }
            Attack::ProgressFalling => {
                let values = [2.0, 1.0, 2.0, f64::NAN, f64::INFINITY, 3.0];
                text(format!("{:?}", values.map(|value| context::report_progress(value, None, None).is_ok())))
            }
            Attack::Changes => {
                announce();
                text("announced".into())
            }
            Attack::ChangesThenFail => {
                announce();
                Err(Error::Internal("after all".into()))
            }
            Attack::ChangesThenAsk => {
                announce();
                Ok(ToolOutcome::InputRequired(InputRequired { questions: Vec::new(), state: Some(vec![1]) }))
            }
            Attack::Context => {
                let id = context::request().map(|request| request.id);
                let answer = context::answer("key").map(|answer| answer.map_err(|error| error.code));
                text(format!("{id:?} {answer:?} {:?} {}", context::state(), context::time_left_ms() > 0))
            }
            Attack::Trace => {
                let request = context::request().map(|request| (request.traceparent, request.meta));
                text(format!("{request:?}"))
            }
            // How often this instance was asked so; it hands nothing over to another.
            Attack::Count => {
                static COUNT: AtomicU32 = AtomicU32::new(0);
                text((COUNT.fetch_add(1, Ordering::Relaxed) + 1).to_string())
            }
            Attack::Who => {
                let who = context::request().map(|request| (request.principal, request.tenant, request.session.is_some()));
                text(format!("{who:?}"))
            }
            Attack::NotFound => Err(Error::NotFound(arguments)),
            Attack::InvalidParams => Err(Error::InvalidParams(arguments)),
            Attack::MissingCapability => Err(Error::MissingClientCapability("{\"roots\":{}}".into())),
            Attack::Internal => Err(Error::Internal(arguments)),
            Attack::Rpc => Err(Error::Rpc(RpcError { code: 7, message: arguments, data: None })),
            Attack::BadJson => structured("{not json".into()),
            Attack::WrongOutput => structured("{}".into()),
            Attack::WithoutOutput => text(arguments),
            Attack::DeepJson => structured("[".repeat(100_000)),
            // Touches far more memory than is kept between calls, so that the next call must not find it.
            Attack::SparseGrowth => sparse_growth(),
            Attack::Print => {
                println!("to stdout\n\u{1b}[31mand on");
                eprint!("to stderr");
                text("printed".into())
            }
            Attack::PrintFlood => {
                let line = "x".repeat(1_000);
                for _ in 0..10_000 {
                    print!("{line}");
                }
                text("printed".into())
            }
            Attack::Surroundings => surroundings(),
            Attack::Work => {
                let turns = (0..arguments.parse().unwrap_or(10_000_000_u64)).fold(0_u64, |turns, _| black_box(turns + 1));
                text(turns.to_string())
            }
            // What a quick loop does that reports each of its steps.
            Attack::ProgressQuick => {
                let steps = arguments.parse().unwrap_or(500_u32);
                let sent = (1..=steps).all(|at| context::report_progress(at.into(), Some(steps.into()), None).is_ok());
                text(sent.to_string())
            }
            Attack::DeepStructured => structured(bombs::deep()),
            Attack::DeepMeta => bombs::in_meta(bombs::deep()),
            Attack::DeepError => Err(bombs::in_error()),
            Attack::DeepQuestion => bombs::in_question(),
            Attack::DeepLog => bombs::in_log(),
            Attack::QuestionFlood => bombs::questions((0..5_000).map(|at| format!("q{at}")), Vec::new()),
            Attack::QuestionTwice => bombs::questions(["q", "q", ""].map(String::from), Vec::new()),
            Attack::StateHuge => bombs::questions(["q".into()], vec![7; 900_000]),
            Attack::HugeNumber => bombs::huge_number(),
            Attack::LongNumber => bombs::long_number(),
            Attack::DuplicateKeys => structured(r#"{"a":1,"a":{"a":2,"a":3},"__proto__":{"a":4}}"#.into()),
            Attack::MetaNoObject => bombs::in_meta("[1]".into()),
            Attack::BadText => text(bombs::no_text(bombs::BAD)),
            Attack::Surrogate => text(bombs::no_text(bombs::SURROGATE)),
            Attack::BadTextInError => Err(Error::InvalidParams(bombs::no_text(bombs::BAD))),
            Attack::BadTextInJson => structured(format!("\"{}\"", bombs::no_text(bombs::BAD))),
            Attack::BadTextInLog => bombs::log(),
            Attack::BadTextInProgress => bombs::progress(),
            Attack::BadTextInChange => bombs::change(),
            Attack::ChangesFlood => {
                (0..10_000).for_each(|at| changes::resource_updated(&format!("file:///{at}")));
                text("announced".into())
            }
            Attack::SchemaNoJson
            | Attack::SchemaNoObject
            | Attack::SchemaInvalid
            | Attack::SchemaFarReference
            | Attack::SchemaDeep
            | Attack::SchemaHugeNumber
            | Attack::SchemaDuplicateKeys
            | Attack::HeaderInvalid
            | Attack::SchemaVerbatim
            | Attack::SchemaSlow => text(arguments),
        }
    }
}

fn text(text: String) -> Result<ToolOutcome, Error> {
    let content = vec![Content::Text(TextContent { text, annotations: None, meta: None })];
    Ok(ToolOutcome::Complete(ToolResult { content, structured_content: None, is_error: false, meta: None, more: None }))
}

fn structured(json: String) -> Result<ToolOutcome, Error> {
    Ok(ToolOutcome::Complete(ToolResult { content: Vec::new(), structured_content: Some(json), is_error: false, meta: None, more: None }))
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn grow() -> ! {
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn recurse(depth: u64) -> u64 {
    if black_box(depth) == u64::MAX {
        return 0;
    }
    black_box(recurse(black_box(depth + 1)) + depth)
}

/// A small amount of memory, handed over a great many times.
fn alias() -> Result<ToolOutcome, Error> {
    let shared: &'static [u8] = vec![b'x'; 100_000].leak();
    let item = |_| {
        // SAFETY: never dropped: the host stops reading before the result is given back.
        let text = unsafe { String::from_raw_parts(shared.as_ptr().cast_mut(), shared.len(), shared.len()) };
        Content::Text(TextContent { text, annotations: None, meta: None })
    };
    Ok(ToolOutcome::Complete(ToolResult {
        content: (0..10_000).map(item).collect(),
        structured_content: None,
        is_error: false,
        meta: None,
        more: None,
    }))
}

fn announce() {
    for _ in 0..3 {
        changes::tools_changed();
        changes::resource_updated("file:///a");
    }
}

fn sparse_growth() -> Result<ToolOutcome, Error> {
    const PAGE: usize = 64 << 10;
    let before = core::arch::wasm32::memory_grow(0, 128);
    let start = before * PAGE;
    let mut dirty = 0;
    for page in 0..128 {
        let at = (start + page * PAGE) as *mut u8;
        // SAFETY: the 128 pages were just added to this memory, and nothing else knows of them.
        unsafe {
            dirty += u32::from(at.read_volatile() != 0);
            at.write_volatile(1);
        }
    }
    text(format!("{dirty} dirty of 128 pages from {before}"))
}

/// What a guest built on WASI finds around it.
fn surroundings() -> Result<ToolOutcome, Error> {
    use std::hash::BuildHasher as _;
    let year = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 31_556_952 + 1970);
    let random = std::hash::RandomState::new().hash_one(1);
    text(format!(
        "vars {} args {} files {} input {:?} year {} random {random}",
        std::env::vars().count(),
        std::env::args().count(),
        ["/", ".", "/etc"].iter().filter(|path| std::fs::read_dir(path).is_ok()).count(),
        std::io::stdin().read_line(&mut String::new()).ok(),
        if year > 2020 { "real" } else { "none" },
    ))
}
