//! Builds the Rust guests of this repository, and looks at what they import and export.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::Path;
use std::sync::Mutex;

use guesthouse::build::{self, BuildContext, Built, Project};
use guesthouse::config::paths;
use wit_component::DecodedWasm;

/// Builds share a folder, and say what they do one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn build(dir: &str) -> anyhow::Result<Built> {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(dir);
    let project = Project::detect(&dir)?.unwrap();
    build::build(&project, &mut BuildContext::new(paths::cache()?, false))
}

/// Names of what a component imports and exports.
fn interfaces(component: &Path) -> (Vec<String>, Vec<String>) {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(&std::fs::read(component).unwrap()).unwrap() else {
        unreachable!("{} is a package", component.display())
    };
    let world = resolve.worlds.get(world).unwrap();
    let names = |keys: Vec<&wit_parser::WorldKey>| keys.into_iter().map(|key| resolve.name_world_key(key)).collect();
    (names(world.imports.keys().collect()), names(world.exports.keys().collect()))
}

fn ours(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("guesthouse:mcp/{name}@0.1.0")).collect()
}

fn check_exports(component: &Path, expected: &[&str]) {
    let (_, mut exports) = interfaces(component);
    exports.sort();
    assert_eq!(exports, ours(expected));
}

#[test]
fn a_guest_exports_what_it_declares_and_imports_nothing_of_wasi() {
    let built = build("sample-guests/rust/textkit").unwrap();
    check_exports(&built.component, &["completion", "lifecycle", "prompts", "resources", "tools"]);
    let (imports, _) = interfaces(&built.component);
    assert!(imports.iter().all(|import| import.starts_with("guesthouse:mcp/")), "{imports:?}");
    let again = build("sample-guests/rust/textkit").unwrap();
    assert_eq!(again, Built { changed: false, ..built }, "nothing has changed");
}

#[test]
fn a_guest_with_one_tool_exports_tools_alone_and_is_small() {
    let built = build("tests/guests/echo").unwrap();
    check_exports(&built.component, &["lifecycle", "tools"]);
    assert_eq!(interfaces(&built.component).0, ours(&["types", "context"]));
    let bytes = std::fs::metadata(&built.component).unwrap().len();
    assert!(bytes < 64 * 1024, "{bytes} bytes");
}

#[test]
fn a_guest_that_waits_imports_clocks() {
    let built = build("tests/guests/conformance").unwrap();
    check_exports(&built.component, &["completion", "lifecycle", "prompts", "resources", "subscriptions", "tools"]);
    let (imports, _) = interfaces(&built.component);
    assert!(imports.iter().any(|import| import.starts_with("wasi:clocks/monotonic-clock@0.2")), "{imports:?}");
    assert!(ours(&["changes"]).iter().all(|changes| imports.contains(changes)), "{imports:?}");
}
