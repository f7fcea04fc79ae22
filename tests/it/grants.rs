//! Grants on the command line: flags, what `inspect` shows, what `add` and `remove` write, and guests that are refused.

use crate::support::{PROGRAM, component};
use guesthouse::policy::Declaration;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use wasm_encoder::{
    Component, ComponentExportKind, ComponentExportSection, ComponentImportSection, ComponentTypeRef, ComponentTypeSection, CustomSection,
    InstanceType,
};

const EXPLORER: &str = "tests/guests/explorer";
const WANTS: &str = "state = { required = true }\nhttp = [\"https://api.example.com/*\"]\nenv = [\"TZ\"]\n\
                     dirs = [{ guest = \"/data\", write = true, required = true }]\ninstance = \"session\"";

/// A component that could be a guest's as far as it is read without being run.
pub fn guest(folder: &Path, name: &str, imports: &[&str], wants: Option<&str>) -> PathBuf {
    let mut types = ComponentTypeSection::new();
    types.instance(&InstanceType::new());
    let mut importing = ComponentImportSection::new();
    imports.iter().chain(&["guesthouse:mcp/context@0.1.0"]).for_each(|name| {
        importing.import(*name, ComponentTypeRef::Instance(0));
    });
    let mut exporting = ComponentExportSection::new();
    exporting.export("guesthouse:mcp/lifecycle@0.1.0", ComponentExportKind::Instance, 0, None);
    let mut component = Component::new();
    component.section(&types).section(&importing).section(&exporting);
    if let Some(wants) = wants {
        let said = Declaration::new("My notes".into(), "1.2.3".into(), Some(toml::from_str(wants).unwrap())).unwrap();
        component.section(&CustomSection { name: "guesthouse:manifest".into(), data: said.to_bytes().unwrap().into() });
    }
    let file = folder.join(name);
    std::fs::write(&file, component.finish()).unwrap();
    file
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env("XDG_STATE_HOME", crate::support::state_home());
    command.current_dir(folder).env("XDG_STATE_HOME", folder.join("state"));
    command
}

fn guesthouse(folder: &Path, arguments: &[&str]) -> Output {
    program(folder).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a command that must succeed prints, and says.
fn done(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = guesthouse(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

/// Runs a command that must fail, and checks that every part is in what it says.
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let output = guesthouse(folder, arguments);
    let said = text(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?} succeeded: {said}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?} says nothing of `{part}`: {said}");
    }
}

#[test]
fn flags_grant_what_the_file_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::copy(component(EXPLORER), at.join("explorer.wasm")).unwrap();
    std::fs::create_dir(at.join("data")).unwrap();
    std::fs::write(at.join("data/a.txt"), "here").unwrap();
    let variables = |grants: &[&str]| {
        let mut command = program(at);
        command.args(["call", "explorer.wasm", "variables"]).args(grants.iter().flat_map(|grant| ["--grant", grant]));
        let output = command.env("ONE", "first").env("TWO", "second").env_remove("THREE").output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(variables(&[]), "");
    assert_eq!(variables(&["env=TWO", "env=THREE"]), "TWO=second");
    std::fs::write(at.join("guesthouse.toml"), "[guest.explorer.grants]\nenv = [\"ONE\"]\n").unwrap();
    assert_eq!(variables(&["explorer:env=TWO"]), "ONE=first\nTWO=second");

    let read = ["call", "explorer.wasm", "read", r#"{"path":"/d/a.txt"}"#];
    assert!(done(at, &read).0.contains("error"));
    assert!(done(at, &[&read[..], &["--grant", "dir=data:/d"]].concat()).0.contains("ok here"));

    refused(at, &[&read[..], &["--grant", "dirs=data:/d"]].concat(), &["`dirs=data:/d` is no grant", "env=NAME"]);
    refused(at, &[&read[..], &["--grant", "other:state"]].concat(), &["`other`"]);
    refused(at, &[&read[..], &["--grant", "dir=none:/d"]].concat(), &["`none`", "cannot be opened"]);
    std::fs::copy(component(EXPLORER), at.join("second.wasm")).unwrap();
    refused(at, &["up", "--stdio", "--grant", "env=ONE"], &["names no guest", "--grant NAME:state"]);
}

#[test]
fn the_values_of_variables_are_never_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = component(EXPLORER);
    let output = program(folder.path())
        .args(["call", file.to_str().unwrap(), "folders", "--log", "trace", "--grant", "env=HUSH"])
        .env("HUSH", "a-value-to-keep")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(!text(&output.stderr).contains("a-value-to-keep") && !text(&output.stdout).contains("a-value-to-keep"));
}

#[test]
fn what_is_required_and_not_granted_is_refused_with_the_line_to_add() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    guest(at, "keeper.wasm", &["wasi:keyvalue/store@0.2.0-draft"], None);
    guest(at, "caller.wasm", &["wasi:http/outgoing-handler@0.2.4"], None);
    guest(at, "notes.wasm", &[], Some(WANTS));
    std::fs::write(at.join("serve.toml"), "[guest.keeper]\nfile = \"keeper.wasm\"\n").unwrap();
    let serve = ["serve", "--stdio", "--config", "serve.toml"];
    refused(at, &serve, &["imports wasi:keyvalue/store@0.2.0-draft for guest `keeper`", "add `state = true` to [guest.keeper.grants]"]);
    refused(at, &["run", "caller.wasm"], &["imports wasi:http/outgoing-handler@0.2.4 for guest `caller`", "[guest.caller.grants]"]);
    refused(
        at,
        &["run", "notes.wasm"],
        &["requires a folder at `/data` to read and write", "guest `notes`", "--grant 'dir=FOLDER:/data:rw'"],
    );
    // `run` grants state, unless the file refuses it; then it is said, and not something else that is wrong with these bytes.
    std::fs::write(at.join("guesthouse.toml"), "[guest.keeper.grants]\nstate = false\n").unwrap();
    refused(at, &["run", "keeper.wasm"], &["imports wasi:keyvalue/store@0.2.0-draft for guest `keeper`, which is not granted it"]);
    std::fs::remove_file(at.join("guesthouse.toml")).unwrap();
    let said = text(&guesthouse(at, &["run", "keeper.wasm"]).stderr);
    assert!(!said.contains("not granted"), "{said}");
}

#[test]
fn a_declaration_that_cannot_be_used_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = guest(folder.path(), "notes.wasm", &[], Some("state = true"));
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(7).position(|window| window == b"\"format").unwrap();
    bytes[at] = b'?';
    std::fs::write(&file, &bytes).unwrap();
    for command in ["inspect", "add", "run"] {
        refused(folder.path(), &[command, "notes.wasm"], &["notes.wasm", "guesthouse:manifest", "cannot be used", "guesthouse build"]);
    }
}

#[test]
fn inspect_shows_what_is_declared_beside_what_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    guest(at, "notes.wasm", &[], Some(WANTS));
    std::fs::write(at.join("guesthouse.toml"), "[guest.notes.grants]\nenv = [\"TZ\", \"LANG\"]\n").unwrap();
    // The required folder is missing, so nothing of it can run; it is shown all the same.
    let (shown, _) = done(at, &["inspect", "notes.wasm"]);
    for part in [
        "My notes 1.2.3",
        "state: required, granted by `run`, `up` and `call`, and not by `serve`",
        "http https://api.example.com/*: wanted, not granted",
        "dir /data: required to read and write, not granted",
        "env TZ: wanted, granted",
        "env LANG: not declared, granted and so not given",
        "it requires a folder at `/data`",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    let json: serde_json::Value = serde_json::from_str(&done(at, &["inspect", "--static", "--json", "notes.wasm"]).0).unwrap();
    assert_eq!(json["declaration"]["wants"]["dirs"][0]["guest"], "/data");
    let dir = json["grants"].as_array().unwrap().iter().find(|row| row["kind"] == "dir").unwrap();
    assert_eq!((&dir["wanted"], &dir["granted"]), (&"required".into(), &false.into()));
    assert_eq!(json["instances"], "call", "the operator has not allowed more");
}

#[test]
fn a_guest_is_added_with_what_it_wants_and_taken_out_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    guest(at, "notes.wasm", &[], Some(WANTS));
    let before = "# kept\n[server]\nlisten = \"127.0.0.1:0\" # as it was\n";
    std::fs::write(at.join("guesthouse.toml"), before).unwrap();
    let (_, said) = done(at, &["add", "notes.wasm", "--yes"]);
    for part in [
        "My notes 1.2.3",
        "state (required)",
        "http https://api.example.com/*",
        "dir /data to read and write (required)",
        "env TZ",
        "fill in",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let file = std::fs::read_to_string(at.join("guesthouse.toml")).unwrap();
    assert!(file.starts_with(before) && file.contains("#   { host = \"FOLDER\", guest = \"/data\", write = true },"), "{file}");
    refused(at, &["add", "notes.wasm", "--yes"], &["`notes` already", "--name"]);
    refused(at, &["serve", "--stdio"], &["requires a folder at `/data`"]);

    done(at, &["add", "notes.wasm", "--yes", "--name", "other"]);
    done(at, &["remove", "notes"]);
    let file = std::fs::read_to_string(at.join("guesthouse.toml")).unwrap();
    assert!(file.starts_with(before) && !file.contains("guest.notes") && file.contains("[guest.other]"), "{file}");
    refused(at, &["remove", "notes"], &["no guest called `notes`"]);
    done(at, &["remove", "other"]);
    assert_eq!(std::fs::read_to_string(at.join("guesthouse.toml")).unwrap().trim_end(), before.trim_end());
}

#[test]
fn nothing_is_added_without_a_yes() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    guest(at, "caller.wasm", &["wasi:http/outgoing-handler@0.2.4", "wasi:keyvalue/store@0.2.0-draft"], None);
    for (answer, added) in [("", false), ("\n", false), ("no\n", false), ("y\n", true)] {
        let mut add =
            program(at).args(["add", "caller.wasm", "--config", "mine.toml"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        add.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let output = add.wait_with_output().unwrap();
        assert_eq!((output.status.success(), at.join("mine.toml").exists()), (added, added), "{answer:?}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("state (required)"));
    }
    let file = std::fs::read_to_string(at.join("mine.toml")).unwrap();
    assert!(file.contains("# http = [\"https://HOST/*\"]") && file.contains("state = true"), "{file}");
    refused(at, &["add", "caller.wasm", "--name", "No", "--yes"], &["`No` is no guest name"]);
    refused(at, &["add", "caller.wasm", "--config", "no/folder/x.toml", "--yes"], &["no/folder"]);
    std::fs::write(at.join("bad.toml"), "[servr]\n").unwrap();
    refused(at, &["add", "caller.wasm", "--config", "bad.toml", "--yes"], &["servr"]);
    assert_eq!(std::fs::read_to_string(at.join("bad.toml")).unwrap(), "[servr]\n");
}

#[test]
fn what_becomes_of_the_file_while_a_person_is_asked_is_not_undone() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    guest(at, "notes.wasm", &[], Some(WANTS));
    let file = at.join("guesthouse.toml");
    std::fs::write(&file, "[guest.old.grants]\nstate = true\n").unwrap();
    for (meanwhile, added) in [("# taken back\n", true), ("[guest.notes.grants]\nstate = false\n", false)] {
        let mut add = program(at).args(["add", "notes.wasm"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = add.stderr.take().unwrap();
        let mut said = Vec::new();
        while !said.ends_with(b"[y/N] ") {
            let mut byte = [0];
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{}", text(&said));
            said.push(byte[0]);
        }
        std::fs::write(&file, meanwhile).unwrap();
        add.stdin.take().unwrap().write_all(b"y\n").unwrap();
        stderr.read_to_end(&mut said).unwrap();
        assert_eq!(add.wait().unwrap().success(), added, "{}", text(&said));
        let now = std::fs::read_to_string(&file).unwrap();
        assert!(now.starts_with(meanwhile) && now.contains("file = \"notes.wasm\"") == added, "{now}");
        std::fs::write(&file, "").unwrap();
    }
}
