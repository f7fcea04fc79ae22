//! Tests of what is read from manifests and from cargo's output.

use super::*;

fn metadata(package: &str) -> Vec<u8> {
    format!(r#"{{"packages":[{package}],"workspace_root":"/w"}}"#).into_bytes()
}

fn read(metadata: &[u8]) -> anyhow::Result<Guest> {
    guest(metadata, "/w/Cargo.toml".into(), |_| Ok("[profile.release]\nlto = false\n".into()))
}

const LIBRARY: &str = r#""targets":[{"name":"my-guest","crate_types":["cdylib","rlib"]}]"#;

#[test]
fn a_package_with_a_cdylib_is_a_guest() {
    let guest =
        read(&metadata(&format!(r#"{{"name":"my-guest","version":"0.3.0","manifest_path":"/w/Cargo.toml",{LIBRARY},"metadata":null}}"#)))
            .unwrap();
    assert_eq!((guest.library.as_str(), guest.target()), ("my_guest", "wasm32-unknown-unknown"));
    let keys: Vec<_> = guest.profile.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, ["opt-level", "codegen-units", "panic", "strip"], "what the manifest says stays as it is");
}

#[test]
fn wasi_is_asked_for_in_the_manifest_and_unknown_keys_are_named() {
    let with = |settings: &str| {
        let package =
            format!(r#"{{"name":"g","version":"0.3.0","manifest_path":"/w/Cargo.toml",{LIBRARY},"metadata":{{"guesthouse":{settings}}}}}"#);
        read(&metadata(&package))
    };
    assert_eq!(with(r#"{"wasi":true}"#).unwrap().target(), "wasm32-wasip2");
    let error = format!("{:#}", with(r#"{"wsai":true}"#).err().unwrap());
    assert!(error.contains("/w/Cargo.toml") && error.contains("wsai") && error.contains("wasi"), "{error}");
    let about = with(r#"{"wants":{"state":{"required":true},"env":["TZ"]}}"#).unwrap().about;
    assert_eq!((about.name.as_deref(), about.version.as_deref()), (Some("g"), Some("0.3.0")));
    assert!(about.wants.is_some_and(|wants| wants.state.is_some_and(|want| want.required) && wants.env.len() == 1));
    let error = format!("{:#}", with(r#"{"wants":{"stat":true}}"#).err().unwrap());
    assert!(error.contains("/w/Cargo.toml") && error.contains("stat"), "{error}");
}

#[test]
fn what_is_no_guest_is_told_what_it_lacks() {
    let error = |package: &str| format!("{:#}", read(&metadata(package)).err().unwrap());
    let text = error(
        r#"{"name":"g","version":"0.3.0","manifest_path":"/w/Cargo.toml","targets":[{"name":"g","crate_types":["bin"]}],"metadata":null}"#,
    );
    assert!(text.contains(r#"crate-type = ["cdylib"]"#), "{text}");
    let text = error(r#"{"name":"member","version":"0.3.0","manifest_path":"/w/member/Cargo.toml","targets":[],"metadata":null}"#);
    assert!(text.contains("is a workspace") && text.contains("member"), "{text}");
}

#[test]
fn two_libraries_of_one_name_do_not_share_a_folder() {
    let cache = tempfile::tempdir().unwrap();
    let at = |library: &str, project: &str| target_dir(cache.path(), "1.95", library, Path::new(project)).unwrap();
    let first = at("textkit", "/a");
    assert_eq!(at("notes", "/b"), first);
    let second = at("textkit", "/b");
    assert_ne!(second, first);
    assert_ne!(at("textkit", "/c"), second);
    assert_eq!((at("textkit", "/a"), at("textkit", "/b")), (first, second));
}

#[test]
fn the_artifact_is_that_of_the_project() {
    let line = |manifest: &str, file: &str| {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"{manifest}","target":{{"name":"g","crate_types":["cdylib"]}},"filenames":["{file}"]}}"#
        )
    };
    let messages = [line("/dep/Cargo.toml", "/t/dep.wasm"), "not json".into(), line("/w/Cargo.toml", "/t/g.wasm")].join("\n");
    let guest =
        read(&metadata(&format!(r#"{{"name":"g","version":"0.3.0","manifest_path":"/w/Cargo.toml",{LIBRARY},"metadata":null}}"#))).unwrap();
    assert_eq!(artifact(messages.as_bytes(), &guest), Some("/t/g.wasm".into()));
    assert_eq!(artifact(b"", &guest), None);
}

#[test]
fn a_component_without_exports_is_refused() {
    let core = b"\0asm\x01\0\0\0";
    let component = encode(core, Adapter::None).unwrap();
    let error = refuse_without_exports(&component).unwrap_err().to_string();
    assert!(error.contains("#[guesthouse::server]"), "{error}");
}
