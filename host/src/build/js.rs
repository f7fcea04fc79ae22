//! Builds JavaScript and TypeScript projects: installs their packages, and has the SDK's build program make the component.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use super::declare::{About, declaration, place};
use super::inputs::digest;
use super::{BuildContext, Built, MissingTool, Project, Tool, finish, replace_if_changed, write_contract};
use crate::policy::Wants;
use crate::policy::declared::FORMAT;

const NODE: Tool = Tool {
    name: "node",
    remedy: "install Node.js 20 or newer from your system's packages or from nodejs.org, and make sure that `node` is on the PATH",
};
const NPM: Tool = Tool { name: "npm", remedy: "install npm, which usually comes with Node.js, and make sure that `npm` is on the PATH" };
const COMPILER: Tool = Tool { name: "the build program of @guesthouse/sdk", remedy: NODE.remedy };

const NODE_MAJOR_MIN: u32 = 20;
const SDK: &str = "@guesthouse/sdk";
const WASI: &str = include_str!("js/wasi.wit");
/// What `"guesthouse"` in `package.json` can be, besides the entry module alone.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// The entry module, relative to the project.
    entry: Option<String>,
    /// What the guest wants to be granted.
    wants: Option<Wants>,
}

/// Where the entry module is looked for when `package.json` names none.
const ENTRIES: [&str; 6] = ["src/server.ts", "src/server.js", "server.ts", "server.js", "index.ts", "index.js"];

/// Builds a JavaScript project. The compiler's output differs from run to run, so it runs only if something that it reads did change.
pub(super) fn build(project: &Project, ctx: &mut BuildContext) -> anyhow::Result<Built> {
    let package = read_package(&project.dir)?;
    let settings = settings(&project.dir, &package)?;
    let declaration = declaration(project, about(&package, &settings), &place(project.dir.join("package.json"), "guesthouse"))?;
    check_node()?;
    install(&project.dir, ctx)?;
    let sdk = find_sdk(&project.dir)?;
    // A linked checkout of the SDK has its packages in its own folder, where npm does not look.
    if !sdk.components().any(|part| part.as_os_str() == "node_modules") {
        install(&sdk, ctx)?;
    }
    let entry = entry_of(&project.dir, &package, &settings)?;
    let work = project.work_dir();
    let wit = work.join("wit");
    write_contract(&wit)?;
    replace_if_changed(&wit.join("wasi.wit"), WASI.as_bytes())?;

    let stamp = work.join("inputs");
    // What is declared is in the project's folder, and changes with it; how it is written changes with the host.
    let format = FORMAT.to_string();
    let inputs = || digest(&[&project.dir, &sdk, &wit], &[env!("CARGO_PKG_VERSION"), &format, &entry.to_string_lossy()]);
    let component = project.component();
    let now = inputs()?;
    if component.is_file() && std::fs::read_to_string(&stamp).is_ok_and(|last| last == now) {
        return Ok(Built { component, changed: false });
    }
    ctx.say(format_args!("bundle and compile {}", project.dir.join(&entry).display()));
    let fresh = work.join("fresh.wasm");
    // The author's modules run in the build program, and could end it early with success.
    remove(&fresh)?;
    ctx.run(&mut compile(project, &sdk, &entry, &wit, &fresh), &COMPILER)?;
    let bytes = std::fs::read(&fresh).with_context(|| {
        format!("the build program left no component in {}; does a module end the process while it loads?", fresh.display())
    })?;
    let built = finish(project, bytes, &declaration)?;
    // The program has written the guest's world, which is one of the things that it reads.
    replace_if_changed(&stamp, inputs()?.as_bytes())?;
    Ok(built)
}

fn remove(file: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).with_context(|| format!("cannot remove {}", file.display())),
        _ => Ok(()),
    }
}

fn compile(project: &Project, sdk: &Path, entry: &Path, wit: &Path, out: &Path) -> Command {
    let mut command = Command::new("node");
    command.current_dir(&project.dir).arg(sdk.join("build.js"));
    command.arg("--entry").arg(entry).arg("--wit").arg(wit).arg("--out").arg(out);
    command
}

fn read_package(dir: &Path) -> anyhow::Result<Value> {
    let file = dir.join("package.json");
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let package: Value = serde_json::from_str(&text).with_context(|| format!("{} is not valid JSON", file.display()))?;
    let depends = ["dependencies", "devDependencies"].iter().any(|kind| package.get(kind).and_then(|list| list.get(SDK)).is_some());
    if !depends {
        bail!("{} does not depend on {SDK}, so it is no guest; add it with `npm install {SDK}`", file.display());
    }
    Ok(package)
}

/// What `package.json` says of its guest: `"guesthouse": "FILE"`, or a table.
fn settings(dir: &Path, package: &Value) -> anyhow::Result<Settings> {
    match package.get("guesthouse") {
        None => Ok(Settings::default()),
        Some(Value::String(entry)) => Ok(Settings { entry: Some(entry.clone()), wants: None }),
        Some(table) => Settings::deserialize(table).with_context(|| format!("{}: guesthouse", dir.join("package.json").display())),
    }
}

fn about(package: &Value, settings: &Settings) -> About {
    let text = |key: &str| package.get(key).and_then(Value::as_str).map(str::to_owned);
    About { name: text("name"), version: text("version"), wants: settings.wants.clone() }
}

/// The entry module, relative to the project: the one that `"guesthouse"` names, else `main`, else a usual name.
fn entry_of(dir: &Path, package: &Value, settings: &Settings) -> anyhow::Result<PathBuf> {
    let named = settings.entry.as_deref().or_else(|| package.get("main")?.as_str());
    if let Some(name) = named {
        if !dir.join(name).is_file() {
            bail!("package.json names {name} as the guest's entry module, but there is no such file");
        }
        return Ok(name.into());
    }
    match ENTRIES.iter().find(|name| dir.join(name).is_file()) {
        Some(name) => Ok(name.into()),
        None => bail!("no entry module is there; write src/server.js, or name it in package.json: \"guesthouse\": \"FILE\""),
    }
}

fn check_node() -> anyhow::Result<()> {
    let output = Command::new("node").arg("--version").output().map_err(|error| NODE.not_started(error))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_string();
    if major(&version).is_some_and(|major| major >= NODE_MAJOR_MIN) {
        return Ok(());
    }
    Err(MissingTool { tool: format!("Node.js {NODE_MAJOR_MIN} or newer (found {version})"), remedy: NODE.remedy.into() }.into())
}

fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Installs a folder's packages unless that was done since its lock file, or `package.json`, last changed. Scripts of packages
/// are not run: a guest has no use for what they build, and they could do anything.
fn install(dir: &Path, ctx: &mut BuildContext) -> anyhow::Result<()> {
    let lock = dir.join("package-lock.json");
    let stamp = dir.join("node_modules/.guesthouse-installed");
    // The first of them is npm's own, and is there when the author has installed by hand.
    let installed = modified(&dir.join("node_modules/.package-lock.json")).max(modified(&stamp));
    let wanted = modified(&lock).max(modified(&dir.join("package.json")));
    if installed.is_some() && installed >= wanted {
        return Ok(());
    }
    let verb = if lock.is_file() { "ci" } else { "install" };
    ctx.say(format_args!("npm {verb} {}", dir.display()));
    let mut npm = Command::new(npm_program());
    npm.current_dir(dir).args([verb, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    ctx.run(&mut npm, &NPM).with_context(|| format!("cannot install the packages of {}", dir.display()))?;
    std::fs::write(&stamp, "").with_context(|| format!("cannot write {}", stamp.display()))
}

// On Windows npm is a batch file, which is started only under its full name.
fn npm_program() -> OsString {
    if cfg!(windows) { "npm.cmd".into() } else { "npm".into() }
}

fn modified(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|data| data.modified()).ok()
}

/// The folder of the SDK that Node would find, with links resolved.
fn find_sdk(dir: &Path) -> anyhow::Result<PathBuf> {
    for ancestor in dir.ancestors() {
        let candidate = ancestor.join("node_modules").join(SDK);
        if candidate.join("build.js").is_file() {
            return candidate.canonicalize().with_context(|| format!("cannot resolve {}", candidate.display()));
        }
    }
    bail!("{SDK} is not installed; run `npm install` in {}", dir.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(package: &str, files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("package.json"), package).unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        dir
    }

    #[test]
    fn the_entry_is_named_or_has_a_usual_name() {
        let cases = [
            (r#"{"guesthouse":"a.js","main":"b.js"}"#, "a.js"),
            (r#"{"guesthouse":{"entry":"a.js"},"main":"b.js"}"#, "a.js"),
            (r#"{"main":"b.js"}"#, "b.js"),
            ("{}", "src/server.js"),
        ];
        for (package, entry) in cases {
            let dir = project(package, &["a.js", "b.js", "src/server.js"]);
            let package = serde_json::from_str(package).unwrap();
            let settings = settings(dir.path(), &package).unwrap();
            assert_eq!(entry_of(dir.path(), &package, &settings).unwrap(), Path::new(entry), "{package}");
        }
    }

    #[test]
    fn an_entry_that_is_not_there_is_named() {
        let dir = project("{}", &[]);
        let entry = |package: Value| entry_of(dir.path(), &package, &Settings::default()).unwrap_err().to_string();
        let missing = entry(serde_json::json!({ "main": "gone.js" }));
        assert!(missing.contains("gone.js"), "{missing}");
        let none = entry(serde_json::json!({}));
        assert!(none.contains("src/server.js"), "{none}");
    }

    #[test]
    fn what_package_json_says_of_the_guest_is_read_and_unknown_keys_are_named() {
        let dir = Path::new("/p");
        let package = serde_json::json!({ "name": "@me/notes", "version": "1.0.0", "guesthouse": { "wants": { "state": true } } });
        let about = about(&package, &settings(dir, &package).unwrap());
        assert_eq!((about.name.as_deref(), about.version.as_deref()), (Some("@me/notes"), Some("1.0.0")));
        assert!(about.wants.unwrap().state.is_some());
        for (ours, part) in [
            (serde_json::json!({ "enrty": "a.js" }), "enrty"),
            (serde_json::json!({ "wants": { "http": [{ "patern": "x" }] } }), "patern"),
            (serde_json::json!(3), "guesthouse"),
        ] {
            let error = format!("{:#}", settings(dir, &serde_json::json!({ "guesthouse": ours })).unwrap_err());
            assert!(error.contains("/p/package.json") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_package_without_the_sdk_is_no_guest() {
        let dir = project(r#"{"dependencies":{"left-pad":"1"}}"#, &[]);
        let error = read_package(dir.path()).unwrap_err().to_string();
        assert!(error.contains(SDK), "{error}");
        let broken = project("{", &[]);
        assert!(read_package(broken.path()).unwrap_err().to_string().contains("not valid JSON"));
    }

    #[test]
    fn versions_of_node_are_read() {
        assert_eq!(major("v20.20.2"), Some(20));
        assert_eq!(major("v8"), Some(8));
        assert_eq!(major("deno"), None);
    }

    #[test]
    fn the_runtimes_wasi_goes_with_the_contract() {
        let world = "world w { import wasi:random/random@0.2.12; import wasi:cli/stderr@0.2.12; import wasi:clocks/monotonic-clock@0.2.12; export tools; }";
        let (resolve, package) = crate::build::parse_contract(&format!("{WASI}\n{world}")).unwrap();
        assert!(resolve.select_world(&[package], Some("w")).is_ok());
    }
}
