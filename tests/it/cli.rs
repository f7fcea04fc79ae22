//! The command line: what it prints, what it exits with, and what it says when something is wrong.

use crate::support::{PROGRAM, component, root};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const TEXTKIT: &str = "sample-guests/rust/textkit";
const LIST_TOOLS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn guesthouse(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).env("XDG_STATE_HOME", crate::support::state_home()).args(arguments).current_dir(root()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must fail, and checks that every part is in what it says.
fn refused(arguments: &[&str], parts: &[&str]) {
    let output = guesthouse(arguments);
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{arguments:?} succeeded: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed: {}", text(&output.stdout));
    for part in parts {
        assert!(said.contains(part), "{arguments:?} says nothing of `{part}`: {said}");
    }
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_tool_is_called_and_its_result_printed() {
    let file = component(TEXTKIT);
    let output = guesthouse(&["call", shown(&file), "word_count", r#"{"text":"a b"}"#]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["structuredContent"]["words"], 2);

    let failed = guesthouse(&["call", shown(&file), "slugify", r#"{"text":"!"}"#]);
    assert_eq!(failed.status.code(), Some(1), "a tool error is a failure");
    assert!(text(&failed.stdout).contains("no letter or digit"));
}

#[test]
fn without_a_folder_for_compiled_code_guests_are_served_and_the_log_is_plain() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = Command::new(PROGRAM)
        .env("XDG_STATE_HOME", crate::support::state_home())
        .args(["call", shown(&component(TEXTKIT)), "word_count", r#"{"text":"a b"}"#])
        .env("XDG_CACHE_HOME", &file)
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("XDG_CACHE_HOME") && said.contains(shown(&file)), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn wrong_calls_are_explained() {
    let file = component(TEXTKIT);
    refused(&["call", shown(&file), "word_count", "{"], &["not JSON"]);
    refused(&["call", shown(&file), "word_count", "[]"], &["JSON object"]);
    refused(&["call", shown(&file), "nothing", "{}"], &["nothing", "-32602"]);
}

#[test]
fn a_component_is_inspected() {
    let file = component(TEXTKIT);
    for arguments in [&["inspect", shown(&file)] as &[&str], &["inspect", "--static", shown(&file)]] {
        let output = guesthouse(arguments);
        let said = text(&output.stdout);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(said.contains("guesthouse:mcp/tools@0.1.0") && said.contains("prompts"), "{said}");
        assert_eq!(said.contains("slugify"), !arguments.contains(&"--static"), "{said}");
    }
    let json: serde_json::Value = serde_json::from_slice(&guesthouse(&["inspect", "--json", shown(&file)]).stdout).unwrap();
    assert_eq!(json["offers"], serde_json::json!(["tools", "resources", "prompts", "completion"]));
    assert!(!json["imports"].as_array().unwrap().iter().any(|import| import.as_str().unwrap().starts_with("wasi:")), "{json}");
}

#[test]
fn files_that_are_no_guest_are_refused_with_cause_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        file
    };
    let no_wasm = write("text.wasm", b"hello");
    let core = write("core.wasm", b"\0asm\x01\0\0\0");
    let other_world = write("other.wasm", b"\0asm\x0d\0\x01\0");
    let cut = write("cut.wasm", &std::fs::read(component(TEXTKIT)).unwrap()[..5_000]);
    for command in ["inspect", "run", "call"] {
        let with = |file: &Path, parts: &[&str]| {
            let mut arguments = vec![command, shown(file)];
            if command == "call" {
                arguments.push("tool");
            }
            refused(&arguments, parts);
        };
        with(&no_wasm, &["text.wasm", "not a WebAssembly component", "guesthouse build"]);
        with(&core, &["core.wasm", "core WebAssembly module", "guesthouse build"]);
        with(&other_world, &["other.wasm", "guesthouse:mcp"]);
        with(&cut, &["cut.wasm"]);
        with(&folder.path().join("none.wasm"), &["none.wasm"]);
    }
}

#[test]
fn folders_that_hold_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = shown(folder.path());
    refused(&["up", path, "--listen", "127.0.0.1:0"], &["holds no guest", path]);
    refused(&["build", path], &["Cargo.toml", "go.mod", "package.json"]);
    refused(&["build", "no/such/folder"], &["no/such/folder"]);
    refused(&["serve", "--config", shown(&folder.path().join("guesthouse.toml"))], &["guesthouse.toml"]);
}

#[test]
fn a_wrong_configuration_names_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("guesthouse.toml");
    for (toml, parts) in [
        ("[servr]\n", &["servr"] as &[&str]),
        ("[server]\nlisten = \"nowhere\"\n", &["listen"]),
        ("", &["no guest to serve", "[guest."]),
        ("[guest.a]\n", &["guest `a`", "file"]),
        ("[guest.a]\nfile = \"a.wasm\"\n[guest.a.limits]\nmemory = \"much\"\n", &["much"]),
        ("[guest.a]\nfile = \"missing.wasm\"\n", &["guest `a`", "missing.wasm"]),
    ] {
        std::fs::write(&file, toml).unwrap();
        refused(&["serve", "--config", shown(&file), "--listen", "127.0.0.1:0"], parts);
    }
}

#[test]
fn a_port_in_use_is_said_before_anything_is_built() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(&["up", "sample-guests", "--listen", &address], &[&address, "--listen"]);
}

#[test]
fn names_that_collide_are_refused_with_both_owners() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one.wasm", "two.wasm"] {
        std::fs::copy(component(TEXTKIT), folder.path().join(name)).unwrap();
    }
    refused(&["up", shown(folder.path()), "--prefix", "never", "--stdio"], &["`one`", "`two`", "word_count", "prefix"]);
}

#[test]
fn a_guest_whose_language_is_missing_is_skipped_and_the_rest_served() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(component(TEXTKIT), folder.path().join("here.wasm")).unwrap();
    for (project, file, content) in [
        ("gone", "go.mod", "module gone\n"),
        ("gone-and-rust", "Cargo.toml", ""),
        ("gone-and-rust", "go.mod", ""),
        ("node", "package.json", r#"{"name":"node","dependencies":{"@guesthouse/sdk":"*"}}"#),
    ] {
        std::fs::create_dir_all(folder.path().join(project)).unwrap();
        std::fs::write(folder.path().join(project).join(file), content).unwrap();
    }
    // No program is found in an empty PATH, and the end of the input ends the host.
    let mut host = Command::new(PROGRAM)
        .env("XDG_STATE_HOME", crate::support::state_home())
        .args(["up", "--stdio"])
        .arg(folder.path())
        .env("PATH", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    host.stdin.take().unwrap().write_all(format!("{LIST_TOOLS}\n").as_bytes()).unwrap();
    let output = host.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    for part in ["skipped: guest `gone`", "skipped: guest `node`", "not installed", "gone-and-rust holds both"] {
        assert!(said.contains(part), "{said}");
    }
    // Names are prefixed although one guest is left: installing Go later must not rename its tools.
    assert!(text(&output.stdout).contains("\"here_word_count\""), "{}", text(&output.stdout));
}

#[test]
fn every_configuration_in_the_readme_is_one() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let blocks: Vec<&str> = readme.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() > 5);
    for block in blocks.into_iter().filter(|block| !block.contains("[package.metadata")) {
        // Hashes and keys are left out of the text, and cannot be made up.
        let text = block.replace("sha256:…", &format!("sha256:{}", "ab".repeat(32)));
        if let Err(error) = guesthouse::config::Config::parse(&text) {
            panic!("{error:#} in\n{block}");
        }
    }
}
