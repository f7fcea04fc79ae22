//! The sample `files`: a granted folder as resources, and nothing of the host beside it.

use crate::support::{component, root};
use guesthouse::config::grants::{DirGrant, Grants};
use guesthouse::config::{Config, GuestConfig};
use guesthouse::host::{GuestSource, Host};
use serde_json::{Value, json};
use std::path::Path;

const FILES: &str = "sample-guests/rust/files";

async fn host(folder: Option<&Path>) -> anyhow::Result<Host> {
    // More is granted than the component declares, which is reading.
    let dirs = folder.map(|folder| DirGrant { host: folder.to_owned(), guest: "/files".into(), write: true });
    let grants = Grants { dirs: dirs.into_iter().collect(), ..Grants::default() };
    let config = GuestConfig { grants, ..GuestConfig::default() };
    Host::start(crate::support::config(), vec![GuestSource { name: "files".into(), file: component(FILES), config }]).await
}

async fn ask(host: &Host, method: &str, params: Value) -> Value {
    host.connect(None).unwrap().request(method, params).await.unwrap()
}

#[tokio::test]
async fn files_of_the_granted_folder_are_listed_read_and_completed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    std::fs::write(folder.path().join("notes/a b.md"), "# Hello").unwrap();
    std::fs::write(folder.path().join("raw"), [0xff, 0xfe]).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("users")).unwrap();
    let host = host(Some(folder.path())).await.unwrap();

    let listed = ask(&host, "resources/list", json!({})).await;
    let uris: Vec<&str> = listed["result"]["resources"].as_array().unwrap().iter().map(|entry| entry["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["files:///notes/a%20b.md", "files:///raw"]);
    let read = ask(&host, "resources/read", json!({ "uri": "files:///notes/a%20b.md" })).await;
    let contents = &read["result"]["contents"][0];
    assert_eq!((contents["text"].as_str(), contents["mimeType"].as_str()), (Some("# Hello"), Some("text/markdown")));
    let read = ask(&host, "resources/read", json!({ "uri": "files:///raw" })).await;
    assert_eq!(read["result"]["contents"][0]["blob"], "//4=");
    let reference = json!({ "type": "ref/resource", "uri": "files:///{+path}" });
    let completed =
        ask(&host, "completion/complete", json!({ "ref": reference, "argument": { "name": "path", "value": "notes/a" } })).await;
    assert_eq!(completed["result"]["completion"]["values"], json!(["notes/a b.md"]));

    for uri in
        ["files:///users", "files:///..", "files:///../", "files:///notes/../../x", "files:///%2e%2e/etc/passwd", "files:////etc/passwd"]
    {
        let answer = ask(&host, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer["error"]["data"]["uri"], uri, "{answer}");
    }
    // What appears later is there for the next call.
    std::fs::write(folder.path().join("late.txt"), "late").unwrap();
    let read = ask(&host, "resources/read", json!({ "uri": "files:///late.txt" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "late");
}

#[tokio::test]
async fn without_its_folder_the_sample_is_refused_with_the_line_to_add() {
    let error = host(None).await.err().unwrap().to_string();
    for part in [
        "requires a folder at `/files` to read (wasi:filesystem) for guest `files`",
        "`dirs = [{ host = \"FOLDER\", guest = \"/files\", write = false }]` to [guest.files.grants]",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_samples_grant_it_a_folder_of_their_own() {
    let config = Config::read(&root().join("sample-guests/guesthouse.toml")).unwrap();
    let dirs = &config.guest["rust-files"].grants.dirs;
    assert!(matches!(dirs.as_slice(), [dir] if dir.host.is_dir() && dir.guest == "/files" && !dir.write), "{dirs:?}");
}
