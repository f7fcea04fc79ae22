//! Rules about the source tree that no compiler checks.

use std::path::{Path, PathBuf};

const LINES_MAX: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Rust files of the repository, build products left out.
fn rust_files(below: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(below)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && name != "node_modules" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "no Rust file below {below}");
    found
}

#[test]
fn every_file_says_what_it_is_for_and_is_short() {
    let mut wrong = Vec::new();
    for below in ["host", "guest-sdk", "tests"] {
        for (path, text) in rust_files(below) {
            let shown = path.strip_prefix(root()).unwrap().display().to_string();
            let data = shown.contains("/ui/") || shown.contains("/trybuild/");
            if shown.contains("/bindings/") {
                continue; // generated
            }
            if !data && !text.starts_with("//!") {
                wrong.push(format!("{shown}: does not begin with a `//!` line"));
            }
            if text.lines().count() > LINES_MAX {
                wrong.push(format!("{shown}: {} lines, more than {LINES_MAX}", text.lines().count()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn layers_know_only_what_they_may() {
    let rules: [(&str, &[&str]); 5] = [
        ("host/protocol/src", &["tokio", "wasmtime", "hyper::", "std::fs", "std::net", "std::env", "Instant::now", "SystemTime"]),
        ("host/src/guest", &["guesthouse_protocol", "hyper", "serde_json::Value"]),
        ("host/src/capability", &["guesthouse_protocol", "hyper"]),
        ("host/src/transport", &["wasmtime", "guest::bindings"]),
        ("host/src/registry", &["hyper", "wasmtime"]),
    ];
    let mut wrong = Vec::new();
    for (below, forbidden) in rules {
        for (path, text) in rust_files(below) {
            let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
            for word in forbidden.iter().filter(|word| code.contains(**word)) {
                wrong.push(format!("{}: `{word}` does not belong in {below}", path.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_two_modules_know_both_protocol_and_contract() {
    let mut both = Vec::new();
    for (path, text) in rust_files("host/src") {
        if text.contains("guesthouse_protocol") && text.contains("guest::bindings") {
            both.push(path.strip_prefix(root().join("host/src")).unwrap().display().to_string());
        }
    }
    both.retain(|path| !path.starts_with("dispatch") && path != "convert.rs" && path != "registry/load.rs");
    assert!(both.is_empty(), "{both:?}");
}

#[test]
fn the_readme_names_only_files_that_exist() {
    for page in ["ARCHITECTURE.md", "README.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        for quoted in text.split('`').skip(1).step_by(2) {
            let names_a_file = ["host/", "wit/", "guest-sdk/", "sample-guests/", "tests/"].iter().any(|folder| quoted.starts_with(folder));
            if names_a_file && !quoted.contains(['*', ' ', '<']) {
                assert!(root().join(quoted).exists(), "{page} names `{quoted}`, which does not exist");
            }
        }
    }
}
