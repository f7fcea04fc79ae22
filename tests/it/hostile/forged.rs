//! A guest that no compiler makes: it breaks the rules by which components hand values to their host.

use super::stage::{Era, Stage, Transport, beside_echo};
use super::starts::{House, Loading};
use super::{Expected, Harmless, Kind, ToolError};
use crate::support::root;
use serde_json::json;
use std::path::Path;
use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataSection, EntityType, ExportKind, ExportSection, Function, FunctionSection, GlobalSection,
    GlobalType, ImportSection, MemArg, MemorySection, MemoryType, Module, RefType, StartSection, TableSection, TableType, TypeSection,
    ValType,
};

const CRASH: Expected = Kind("handler_crash");
const MEMORY_PAGES: u64 = 4;

/// Where things are in the guest's memory. What is not said to be something is zero, which is a good answer of every callback.
const ZEROS: i32 = 1_024;
const LISTED: i32 = 2_048;
const TOOLS: i32 = 4_096;
const ANSWERS: i32 = 16_384;
const ITEM: i32 = 32_768;
const TEXT: i32 = 40_960;
const HEAP: i32 = 131_072;
const ANSWER_BYTES: i32 = 256;
const TOOL_BYTES: i32 = 112;

/// Offsets in an answer of `call-tool`.
const OUTCOME: i32 = 4;
const CONTENT: i32 = 8;
const CONTENT_LEN: i32 = 12;
const STRUCTURED: i32 = 16;
const IS_ERROR: i32 = 28;

/// A tool that hands its answer over wrongly.
struct Forgery {
    tool: &'static str,
    /// Where it says that its answer is; none for the place where it is.
    at: Option<i32>,
    /// Words of the answer that are not zero.
    answer: &'static [(i32, i32)],
    expected: Expected,
}

const fn forgery(tool: &'static str, answer: &'static [(i32, i32)], expected: Expected) -> Forgery {
    Forgery { tool, at: None, answer, expected }
}

const fn elsewhere(tool: &'static str, at: i32, expected: Expected) -> Forgery {
    Forgery { tool, at: Some(at), answer: &[], expected }
}

/// The first letters tell the tools apart.
const FORGERIES: &[Forgery] = &[
    forgery("good", &[(CONTENT, ITEM), (CONTENT_LEN, 1)], Harmless("as it should be")),
    forgery("empty", &[], Harmless("\"content\":[]")),
    elsewhere("beyond-the-end", -16, CRASH),
    elsewhere("across-the-end", (MEMORY_PAGES as i32) * 65_536 - 8, CRASH),
    elsewhere("misaligned", ANSWERS + 2, CRASH),
    forgery("no-such-outcome", &[(OUTCOME, 77)], CRASH),
    forgery("untrue-result", &[(0, 2)], CRASH),
    forgery("list-beyond", &[(CONTENT, -4_096), (CONTENT_LEN, 1)], CRASH),
    forgery("kilo-list", &[(CONTENT, ITEM), (CONTENT_LEN, 1 << 24)], CRASH),
    forgery("overflow", &[(CONTENT, ITEM), (CONTENT_LEN, -1)], CRASH),
    forgery("item-misaligned", &[(CONTENT, ITEM + 1), (CONTENT_LEN, 1)], CRASH),
    forgery("json-beyond", &[(STRUCTURED, 1), (STRUCTURED + 4, -8), (STRUCTURED + 8, 64)], CRASH),
    forgery(
        "whole-memory",
        &[(STRUCTURED, 1), (STRUCTURED + 4, 0), (STRUCTURED + 8, (MEMORY_PAGES as i32) * 65_536)],
        Kind("output_too_large"),
    ),
    // Whatever is not zero is true.
    forgery("flag", &[(IS_ERROR, 7)], ToolError),
    forgery(HOG, &[], Kind("handler_memory")),
    forgery(POST_RETURN, &[], CRASH),
];

/// Makes its table larger than it may be.
const HOG: &str = "table-hog";
/// Calls the host once its answer was taken.
const POST_RETURN: &str = "post-return";

/// What is wrong with the module as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Sound,
    /// Instantiation itself does not end.
    StartLoops,
    LargeTable,
    LargeMemory,
    /// What the host asks for memory, to hand over an argument, ...
    ReallocBeyond,
    ReallocMisaligned,
    ReallocLoops,
    /// ... and calls the host back from there.
    ReallocTalks,
}

const I32: ValType = ValType::I32;
/// The functions of the module; `log` is imported, and so comes first.
const LOG: u32 = 0;
const START: u32 = 6;

impl Shape {
    /// A component of this shape.
    fn component(self) -> Vec<u8> {
        let mut resolve = wit_parser::Resolve::default();
        resolve.push_dir(root().join("wit")).unwrap();
        let world = "package forged:guest;\nworld forged {\n  import guesthouse:mcp/context@0.1.0;\n  \
                     export guesthouse:mcp/lifecycle@0.1.0;\n  export guesthouse:mcp/tools@0.1.0;\n}\n";
        let package = resolve.push_str("forged.wit", world).unwrap();
        let world = resolve.select_world(&[package], Some("forged")).unwrap();
        let mut module = self.module();
        wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8).unwrap();
        wit_component::ComponentEncoder::default().validate(true).module(&module).unwrap().encode().unwrap()
    }

    fn module(self) -> Vec<u8> {
        let mut types = TypeSection::new();
        for (params, results) in [(6, 0), (0, 1), (2, 1), (3, 1), (4, 1), (1, 0), (0, 0)] {
            types.ty().function(vec![I32; params], vec![I32; results]);
        }
        let mut imports = ImportSection::new();
        imports.import("guesthouse:mcp/context@0.1.0", "log", EntityType::Function(0));
        let mut functions = FunctionSection::new();
        let mut exports = ExportSection::new();
        for (name, ty, index) in [
            ("guesthouse:mcp/lifecycle@0.1.0#describe", 1, 1),
            ("guesthouse:mcp/lifecycle@0.1.0#init", 2, 2),
            ("guesthouse:mcp/tools@0.1.0#list-tools", 3, 3),
            ("guesthouse:mcp/tools@0.1.0#call-tool", 4, 4),
            ("cabi_post_guesthouse:mcp/tools@0.1.0#call-tool", 5, 5),
        ] {
            functions.function(ty);
            exports.export(name, ExportKind::Func, index);
        }
        functions.function(6).function(4);
        exports.export("cabi_realloc", ExportKind::Func, START + 1).export("memory", ExportKind::Memory, 0);
        let mut tables = TableSection::new();
        let elements = if self == Shape::LargeTable { 20_001 } else { 1 };
        tables.table(TableType { element_type: RefType::FUNCREF, table64: false, minimum: elements, maximum: None, shared: false });
        let mut memories = MemorySection::new();
        let pages = if self == Shape::LargeMemory { 1_025 } else { MEMORY_PAGES };
        memories.memory(MemoryType { minimum: pages, maximum: None, memory64: false, shared: false, page_size_log2: None });
        let mut globals = GlobalSection::new();
        for initial in [HEAP, 0] {
            globals.global(GlobalType { val_type: I32, mutable: true, shared: false }, &ConstExpr::i32_const(initial));
        }
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions).section(&tables).section(&memories).section(&globals);
        module.section(&exports).section(&StartSection { function_index: START }).section(&self.code()).section(&data());
        module.finish()
    }

    fn code(self) -> CodeSection {
        let mut code = CodeSection::new();
        for answer in [ZEROS, ZEROS, LISTED] {
            let mut function = Function::new([]);
            function.instructions().i32_const(answer).end();
            code.function(&function);
        }
        code.function(&call_tool());
        // The second global says that this is the tool that does not end with its answer.
        let mut post_return = Function::new([]);
        let mut body = post_return.instructions();
        body.global_get(1).if_(BlockType::Empty);
        talk(&mut body);
        body.end().end();
        code.function(&post_return);
        let mut start = Function::new([]);
        let mut body = start.instructions();
        if self == Shape::StartLoops {
            body.loop_(BlockType::Empty).br(0).end();
        }
        body.end();
        code.function(&start);
        code.function(&self.realloc());
        code
    }

    /// Memory is never given back, and what is asked for is given from one end to the other.
    fn realloc(self) -> Function {
        let mut realloc = Function::new([]);
        let mut body = realloc.instructions();
        match self {
            Shape::ReallocBeyond => {
                body.i32_const(-16).return_();
            }
            Shape::ReallocMisaligned => {
                body.i32_const(-1).return_();
            }
            Shape::ReallocLoops => {
                body.loop_(BlockType::Empty).br(0).end();
            }
            Shape::ReallocTalks => talk(&mut body),
            Shape::Sound | Shape::StartLoops | Shape::LargeTable | Shape::LargeMemory => {}
        }
        // Aligned to eight, whatever was asked for.
        body.global_get(0).global_get(0).local_get(3).i32_add().i32_const(7).i32_add().i32_const(-8).i32_and().global_set(0).end();
        realloc
    }
}

/// Calls `context.log` with nothing to say.
fn talk(body: &mut wasm_encoder::InstructionSink<'_>) {
    for _ in 0..6 {
        body.i32_const(0);
    }
    body.call(LOG);
}

/// Answers by the first letter of the tool's name.
fn call_tool() -> Function {
    let mut function = Function::new([]);
    let mut body = function.instructions();
    for (index, forgery) in FORGERIES.iter().enumerate() {
        let letter = i32::from(forgery.tool.as_bytes()[0]);
        body.local_get(0).i32_load8_u(MemArg { offset: 0, align: 0, memory_index: 0 }).i32_const(letter).i32_eq().if_(BlockType::Empty);
        if forgery.tool == HOG {
            body.ref_null(wasm_encoder::HeapType::FUNC).i32_const(20_000).table_grow(0);
            body.i32_const(-1).i32_eq().if_(BlockType::Empty).unreachable().end();
        }
        if forgery.tool == POST_RETURN {
            body.i32_const(1).global_set(1);
        }
        body.i32_const(forgery.at.unwrap_or(place(index))).return_().end();
    }
    body.unreachable().end();
    function
}

fn place(index: usize) -> i32 {
    ANSWERS + i32::try_from(index).unwrap() * ANSWER_BYTES
}

/// The list of tools, their answers, and what these refer to.
fn data() -> DataSection {
    const SCHEMA: &str = r#"{"type":"object"}"#;
    const SAID: &str = "as it should be";
    let mut data = DataSection::new();
    let mut put = |at: i32, bytes: &[u8]| {
        data.active(0, &ConstExpr::i32_const(at), bytes.iter().copied());
    };
    let mut text_at = TEXT;
    let mut text = |text: &str, put: &mut dyn FnMut(i32, &[u8])| {
        let (at, len) = (text_at, i32::try_from(text.len()).unwrap());
        put(at, text.as_bytes());
        text_at += len;
        words(&[at, len])
    };
    put(LISTED + 4, &words(&[TOOLS, i32::try_from(FORGERIES.len()).unwrap()]));
    for (index, forgery) in FORGERIES.iter().enumerate() {
        let tool = TOOLS + i32::try_from(index).unwrap() * TOOL_BYTES;
        let (name, schema) = (text(forgery.tool, &mut put), text(SCHEMA, &mut put));
        put(tool, &name);
        put(tool + 32, &schema);
        for (offset, word) in forgery.answer {
            put(place(index) + offset, &words(&[*word]));
        }
    }
    let said = text(SAID, &mut put);
    put(ITEM + 8, &said);
    data
}

fn words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn write(folder: &Path, shape: Shape) -> String {
    let file = folder.join("forged.wasm");
    std::fs::write(&file, shape.component()).unwrap();
    let limits = "limits = { cpu = \"300ms\", wall = \"2s\", output = \"64KiB\", table = 20000, memory = \"64MiB\" }";
    format!("[guest.forged]\nfile = {:?}\n{limits}\n", file.display().to_string())
}

async fn check(transport: Transport, era: Era) {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage::open(transport, era, &beside_echo(&write(folder.path(), Shape::Sound))).await;
    let mut wrong = Vec::new();
    for forgery in FORGERIES {
        let params = json!({ "name": format!("forged_{}", forgery.tool), "arguments": {} });
        let ran = stage.attack("tools/call", params).await;
        wrong.extend(forgery.expected.problem(&ran).map(|problem| format!("{}: {problem}", forgery.tool)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http() {
    check(Transport::Http, Era::Modern).await;
}

#[tokio::test]
async fn over_stdio() {
    check(Transport::Stdio, Era::Handshake).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn modules_that_are_wrong_as_a_whole_are_refused() {
    let house = House::open().await;
    let mut wrong = Vec::new();
    for (shape, expected) in [
        (Shape::Sound, Loading::Served(FORGERIES.len())),
        (Shape::StartLoops, Loading::Refused("used up its processor time")),
        (Shape::LargeTable, Loading::Refused("declares a table")),
        (Shape::LargeMemory, Loading::Refused("declares a memory")),
        (Shape::ReallocBeyond, Loading::Refused("the guest did not start")),
        (Shape::ReallocMisaligned, Loading::Refused("the guest did not start")),
        (Shape::ReallocLoops, Loading::Refused("used up its processor time")),
        (Shape::ReallocTalks, Loading::Refused("the guest did not start")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let config = guesthouse::config::Config::parse(&write(folder.path(), shape)).unwrap();
        let guest = super::stage::sources(&config).remove(0);
        wrong.extend(house.receive(guest, "tools/list", expected).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
