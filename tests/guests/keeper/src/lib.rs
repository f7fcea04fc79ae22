//! A guest that counts in its memory: how long that lives is what tests look at. It hands the count over, unless told otherwise.

use std::cell::{Cell, RefCell};
use std::hint::black_box;

wit_bindgen::generate!({
    inline: r#"
        package keeper:guest;
        world keeper {
            include guesthouse:mcp/handler@0.1.0;
            export guesthouse:mcp/tools@0.1.0;
            export guesthouse:mcp/handoff@0.1.0;
        }
    "#,
    path: "../../../wit",
    world: "keeper:guest/keeper",
    generate_all,
});

use exports::guesthouse::mcp::handoff::Guest as Handoff;
use exports::guesthouse::mcp::lifecycle::{Guest as Lifecycle, ServerInfo};
use exports::guesthouse::mcp::tools::{Guest as Tools, TaskSupport, Tool, ToolOutcome, ToolPage};
use guesthouse::mcp::context;
use guesthouse::mcp::types::{Content, Error, TextContent, ToolResult};

struct Keeper;

export!(Keeper);

thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(0) };
    /// What `save` does: `well`, or a misdeed.
    static SAVES: RefCell<String> = RefCell::new("well".into());
    static HOARD: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

const TOOLS: &[&str] = &["count", "fail", "trap", "loop", "stall", "flood", "hoard", "save-badly"];

impl Lifecycle for Keeper {
    fn describe() -> ServerInfo {
        ServerInfo {
            name: "keeper".into(),
            version: "7".into(),
            title: None,
            description: None,
            website_url: None,
            icons: Vec::new(),
            instructions: None,
            more: None,
        }
    }

    fn init(_: String) -> Result<(), String> {
        Ok(())
    }
}

impl Tools for Keeper {
    fn list_tools(_: Option<String>) -> Result<ToolPage, Error> {
        let tool = |name: &&str| Tool {
            name: (*name).into(),
            title: None,
            description: None,
            input_schema: r#"{"type":"object"}"#.into(),
            output_schema: None,
            annotations: None,
            icons: Vec::new(),
            task_support: TaskSupport::Forbidden,
            meta: None,
            more: None,
        };
        Ok(ToolPage { tools: TOOLS.iter().map(tool).collect(), next: None, cache: None })
    }

    fn call_tool(name: String, arguments: String) -> Result<ToolOutcome, Error> {
        match name.as_str() {
            "count" => {
                COUNT.set(COUNT.get() + 1);
                text(COUNT.get().to_string())
            }
            "fail" => Err(Error::Internal("as asked".into())),
            "trap" => std::process::abort(),
            "loop" => spin(),
            // Waits for its client.
            "stall" => text(format!("{:?}", context::report_progress(1.0, None, None))),
            "flood" => {
                (0..arguments.parse().unwrap_or(10_u32)).for_each(|at| context::log(context::LogLevel::Info, None, &at.to_string()));
                text("logged".into())
            }
            // Takes memory and keeps it; says whether there was some.
            "hoard" => HOARD.with_borrow_mut(|hoard| {
                let mut more = Vec::new();
                let there = more.try_reserve_exact(1 << 20).is_ok();
                hoard.push(more);
                text(there.to_string())
            }),
            "save-badly" => {
                SAVES.replace(arguments);
                text("noted".into())
            }
            _ => Err(Error::NotFound(name)),
        }
    }
}

impl Handoff for Keeper {
    fn save() -> Result<Vec<u8>, String> {
        match SAVES.take().as_str() {
            "fail" => Err("will not".into()),
            "trap" => std::process::abort(),
            "loop" => spin(),
            "much" => Ok(vec![1; 100_000]),
            "strangely" => Ok(b"nothing that can be read".to_vec()),
            _ => Ok(COUNT.get().to_le_bytes().to_vec()),
        }
    }

    fn restore(from_version: String, saved: Vec<u8>) -> Result<(), String> {
        // Half done, were it not for the host.
        COUNT.set(1_000);
        let count = <[u8; 4]>::try_from(saved).map_err(|_| "what is this?".to_owned())?;
        if from_version != "7" || context::request().is_some() {
            return Err("this is not how it was".into());
        }
        COUNT.set(u32::from_le_bytes(count));
        Ok(())
    }
}

fn text(text: String) -> Result<ToolOutcome, Error> {
    let content = vec![Content::Text(TextContent { text, annotations: None, meta: None })];
    Ok(ToolOutcome::Complete(ToolResult { content, structured_content: None, is_error: false, meta: None, more: None }))
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}
