//! Folders that are granted: what a guest can do with them, and that there is no way out of them.

use crate::support::component;
use guesthouse::config::GuestConfig;
use guesthouse::config::grants::{DirGrant, Grants};
use guesthouse::host::{GuestSource, Host};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use serde_json::json;
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const SECRET: &str = "the neighbour's secret";

/// A folder with two granted ones, `rw` and `ro`, beside one that nobody granted.
struct Ground {
    root: tempfile::TempDir,
}

impl Ground {
    fn new() -> Ground {
        let root = tempfile::tempdir().unwrap();
        let outside = root.path().join("outside");
        std::fs::create_dir_all(outside.join("empty")).unwrap();
        std::fs::write(outside.join("secret.txt"), SECRET).unwrap();
        for name in ["rw", "ro"] {
            let folder = root.path().join(name);
            std::fs::create_dir_all(folder.join("sub")).unwrap();
            std::fs::write(folder.join("file.txt"), "file").unwrap();
            std::fs::write(folder.join("sub/inner.txt"), "inner").unwrap();
            for (link, target) in [
                ("in", "file.txt".into()),
                ("sub/up", "../file.txt".into()),
                ("out", "../outside".into()),
                ("deep", "sub/../../outside".into()),
                ("abs", outside.display().to_string()),
                ("secret", "../outside/secret.txt".into()),
                ("slash", "/".into()),
                ("proc", "/proc/self/root".into()),
                ("cwd", "/proc/self/cwd".into()),
                ("chain", "out".into()),
                ("loop", "loop".into()),
            ] {
                symlink(target, folder.join(link)).unwrap();
            }
        }
        Ground { root }
    }

    fn grants(&self) -> Grants {
        let dir = |name: &str, write| DirGrant { host: self.root.path().join(name), guest: format!("/{name}"), write };
        Grants { dirs: vec![dir("rw", true), dir("ro", false)], ..Grants::default() }
    }

    /// Everything in one of its folders: paths with contents, or the targets of links.
    fn snapshot(&self, folder: &str) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.root.path().join(folder)];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let kind = std::fs::symlink_metadata(&path).unwrap().file_type();
                let what = if kind.is_dir() {
                    open.push(path.clone());
                    "a folder".into()
                } else if kind.is_symlink() {
                    format!("to {}", std::fs::read_link(&path).unwrap().display())
                } else {
                    String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
                };
                found.insert(path, what);
            }
        }
        found
    }
}

async fn host(grants: Grants) -> anyhow::Result<Host> {
    let config = GuestConfig { grants, ..GuestConfig::default() };
    Host::start(crate::support::config(), vec![GuestSource { name: "explorer".into(), file: component("tests/guests/explorer"), config }])
        .await
}

/// Calls a tool, and gives its text.
async fn call(host: &Host, tool: &str, arguments: serde_json::Value) -> String {
    let answer = host.connect(None).unwrap().request("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap();
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

async fn act(host: &Host, op: &str, folder: &str, path: &str) -> String {
    call(host, "act", json!({ "op": op, "folder": folder, "path": path })).await
}

async fn act_two(host: &Host, op: &str, from: (&str, &str), to: (&str, &str)) -> String {
    call(host, "act", json!({ "op": op, "folder": from.0, "path": from.1, "to_folder": to.0, "to": to.1 })).await
}

#[tokio::test]
async fn without_a_grant_there_is_no_folder_and_no_variable() {
    let host = host(Grants::default()).await.unwrap();
    for tool in ["folders", "variables"] {
        assert_eq!(call(&host, tool, json!({})).await, "");
    }
    assert!(call(&host, "read", json!({ "path": "/etc/hostname" })).await.starts_with("error"));
}

#[tokio::test]
async fn what_is_granted_can_be_done() {
    let ground = Ground::new();
    let host = host(ground.grants()).await.unwrap();
    assert_eq!(call(&host, "folders", json!({})).await, "/rw\n/ro");
    assert_eq!(call(&host, "read", json!({ "path": "/ro/sub/inner.txt" })).await, "ok inner");
    for folder in ["/rw", "/ro"] {
        for (op, path, answer) in [
            ("read", "file.txt", "ok file"),
            ("read", "./sub/../file.txt", "ok file"),
            ("read", "in", "ok file"),
            ("read", "sub/up", "ok file"),
            ("list", "sub", "ok inner.txt up"),
            ("list", "sub/", "ok inner.txt up"),
            ("stat", "sub/inner.txt", "ok 5"),
            ("readlink", "in", "ok file.txt"),
        ] {
            assert_eq!(act(&host, op, folder, path).await, answer, "{op} {folder} {path}");
        }
    }
    for (op, path) in
        [("write", "new.txt"), ("mkdir", "made"), ("touch", "file.txt"), ("truncate", "file.txt"), ("unlink", "new.txt"), ("rmdir", "made")]
    {
        let answer = act(&host, op, "/rw", path).await;
        assert!(answer.starts_with("ok"), "{op} {path}: {answer}");
    }
    assert_eq!(act_two(&host, "rename", ("/rw", "file.txt"), ("/rw", "sub/moved.txt")).await, "ok ");
    assert_eq!(act_two(&host, "link", ("/rw", "sub/moved.txt"), ("/rw", "again.txt")).await, "ok ");
    assert_eq!(std::fs::read_to_string(ground.root.path().join("rw/again.txt")).unwrap(), "");
}

#[tokio::test]
async fn nothing_is_changed_in_a_folder_that_can_only_be_read() {
    let ground = Ground::new();
    let host = host(ground.grants()).await.unwrap();
    let before = ground.snapshot("ro");
    for op in ["write", "truncate", "sneak", "mkdir", "rmdir", "unlink", "touch"] {
        for path in ["file.txt", "new.txt", "sub", "sub/inner.txt", "in"] {
            let answer = act(&host, op, "/ro", path).await;
            assert!(answer.starts_with("error"), "{op} {path}: {answer}");
        }
    }
    for op in ["rename", "link", "symlink"] {
        for (from, to) in [(("/ro", "file.txt"), ("/ro", "b")), (("/ro", "file.txt"), ("/rw", "b")), (("/rw", "file.txt"), ("/ro", "b"))] {
            // A symbolic link is made in the first folder.
            let answer = if op == "symlink" { act_two(&host, op, ("/ro", "b"), to).await } else { act_two(&host, op, from, to).await };
            assert!(answer.starts_with("error"), "{op} {from:?} {to:?}: {answer}");
        }
    }
    assert_eq!(ground.snapshot("ro"), before);
    assert_eq!(ground.snapshot("rw"), Ground::new_like(&ground, "rw"));
}

impl Ground {
    /// What a fresh folder of that name would hold, under this one's paths.
    fn new_like(ground: &Ground, folder: &str) -> BTreeMap<PathBuf, String> {
        let fresh = Ground::new();
        let (from, to) = (fresh.root.path().to_owned(), ground.root.path().to_owned());
        let moved = |text: &str| text.replace(from.to_str().unwrap(), to.to_str().unwrap());
        fresh.snapshot(folder).into_iter().map(|(path, what)| (to.join(path.strip_prefix(&from).unwrap()), moved(&what))).collect()
    }
}

#[tokio::test]
async fn no_path_leads_out() {
    let ground = Ground::new();
    let host = host(ground.grants()).await.unwrap();
    let outside = ground.root.path().join("outside");
    let absolute = outside.join("secret.txt").display().to_string();
    let before = ground.snapshot("outside");
    let paths = [
        "..",
        "../",
        "../outside",
        "../outside/",
        "../outside/secret.txt",
        "sub/../../outside/secret.txt",
        "./.././outside/secret.txt",
        "/",
        "//",
        "/etc/passwd",
        "/proc/self/root",
        &absolute,
        "out",
        "out/",
        "out/secret.txt",
        "out/empty",
        "deep/secret.txt",
        "abs/secret.txt",
        "secret",
        "secret/",
        "slash",
        "slash/etc/passwd",
        "proc",
        "proc/",
        "proc/etc/passwd",
        "cwd/Cargo.toml",
        "chain/secret.txt",
        "chain/../outside/secret.txt",
        "out/../outside/secret.txt",
        "sub/../out/../outside/secret.txt",
        "loop",
        "a\0b",
        "",
    ];
    for folder in ["/rw", "/ro"] {
        for path in paths {
            for op in ["read", "write", "truncate", "sneak", "list", "stat", "mkdir", "touch"] {
                let answer = act(&host, op, folder, path).await;
                assert!(answer.starts_with("error"), "{op} {folder} {path:?}: {answer}");
            }
        }
        // These would change the link or the folder itself, which is the guest's, but nothing behind it.
        for op in ["rmdir", "unlink"] {
            for path in ["../outside/empty", "out/empty", "out/secret.txt", "../outside/secret.txt", &absolute] {
                let answer = act(&host, op, folder, path).await;
                assert!(answer.starts_with("error"), "{op} {folder} {path:?}: {answer}");
            }
        }
    }
    for (from, to) in [
        (("/rw", "../outside/secret.txt"), ("/rw", "mine")),
        (("/rw", "out/secret.txt"), ("/rw", "mine")),
        (("/rw", absolute.as_str()), ("/rw", "mine")),
        (("/rw", "file.txt"), ("/rw", "../outside/file.txt")),
        (("/rw", "file.txt"), ("/rw", "out/file.txt")),
        (("/rw", "file.txt"), ("/rw", "../ro/file2.txt")),
        (("/rw", "../ro/file.txt"), ("/rw", "mine")),
    ] {
        for op in ["rename", "link"] {
            let answer = act_two(&host, op, from, to).await;
            assert!(answer.starts_with("error"), "{op} {from:?} {to:?}: {answer}");
        }
    }
    assert!(act_two(&host, "symlink", ("/rw", "../outside/made"), ("/rw", "x")).await.starts_with("error"));
    assert!(act_two(&host, "symlink", ("/rw", "made"), ("/rw", &absolute)).await.starts_with("error"), "an absolute target");
    assert_eq!(act_two(&host, "symlink", ("/rw", "made"), ("/rw", "../outside/secret.txt")).await, "ok ");
    assert!(act(&host, "read", "/rw", "made").await.starts_with("error"));
    assert_eq!(ground.snapshot("outside"), before);
}

/// One operation with two paths, of which most operations use the first.
type Step = (&'static str, &'static str, String, &'static str, String);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop::sample::select(vec![
        "read", "write", "truncate", "sneak", "list", "stat", "readlink", "mkdir", "rmdir", "unlink", "touch", "rename", "link", "symlink",
    ]);
    let parts = [
        "..",
        "..",
        ".",
        "",
        "sub",
        "file.txt",
        "inner.txt",
        "out",
        "abs",
        "deep",
        "secret",
        "chain",
        "slash",
        "proc",
        "outside",
        "secret.txt",
        "empty",
        "rw",
        "ro",
        "etc",
        "new",
        "newer",
        "in",
    ];
    let path = (any::<bool>(), prop::collection::vec(prop::sample::select(parts.to_vec()), 1..6), any::<bool>()).prop_map(
        |(lead, parts, trail)| {
            format!("{}{}{}", if lead && parts.len() > 3 { "/" } else { "" }, parts.join("/"), if trail { "/" } else { "" })
        },
    );
    let folder = prop::sample::select(vec!["/rw", "/rw", "/ro"]);
    prop::collection::vec((op, folder.clone(), path.clone(), folder, path), 1..12)
}

#[test]
fn whatever_a_guest_does_nothing_outside_is_read_or_changed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let succeeded = AtomicUsize::new(0);
    let mut runner = TestRunner::new(Cases { cases: 48, failure_persistence: None, ..Cases::default() });
    let outcome = runner.run(&steps(), |steps| {
        let ground = Ground::new();
        let (outside, read_only) = (ground.snapshot("outside"), ground.snapshot("ro"));
        runtime.block_on(async {
            let host = host(ground.grants()).await.unwrap();
            for (op, folder, path, to_folder, to) in &steps {
                let answer = act_two(&host, op, (folder, path), (to_folder, to)).await;
                prop_assert!(!answer.contains(SECRET), "{op} {folder} {path}: {answer}");
                succeeded.fetch_add(usize::from(answer.starts_with("ok")), Ordering::Relaxed);
                prop_assert!(answer.starts_with("ok") || answer.starts_with("error"), "{answer}");
            }
            prop_assert_eq!(ground.snapshot("outside"), outside.clone());
            prop_assert_eq!(ground.snapshot("ro"), read_only.clone());
            Ok(())
        })
    });
    outcome.unwrap();
    assert!(succeeded.into_inner() > 0, "no step of any run did anything");
}

#[tokio::test]
async fn a_folder_is_the_one_that_was_opened_whatever_its_name_leads_to_later() {
    let ground = Ground::new();
    let host = host(ground.grants()).await.unwrap();
    let (path, moved) = (ground.root.path().join("ro"), ground.root.path().join("moved"));
    std::fs::rename(&path, &moved).unwrap();
    symlink("outside", &path).unwrap();
    assert_eq!(act(&host, "read", "/ro", "file.txt").await, "ok file");
    assert!(act(&host, "read", "/ro", "secret.txt").await.starts_with("error"));
}

#[tokio::test]
async fn what_is_no_folder_is_refused_when_the_guest_is_loaded() {
    let ground = Ground::new();
    for host_path in ["ro/file.txt", "missing"] {
        let dirs = vec![DirGrant { host: ground.root.path().join(host_path), guest: "/d".into(), write: false }];
        let error = host(Grants { dirs, ..Grants::default() }).await.err().unwrap().to_string();
        let named = error.contains(host_path) && error.contains("guest `explorer`") && error.contains("cannot be opened");
        assert!(named && Path::new(host_path).is_relative(), "{error}");
    }
}
