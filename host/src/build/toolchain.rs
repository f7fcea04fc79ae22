//! Finds, fetches or makes a Rust compiler that can target WebAssembly.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::{BuildContext, Tool};

pub(super) const RUSTC: Tool =
    Tool { name: "rustc", remedy: "install Rust from rustup.rs, and make sure that `rustc` and `cargo` are on the PATH" };

/// How long `rustup target add` may take; behind some firewalls it would wait much longer for nothing.
const RUSTUP_SECONDS_MAX: u64 = 120;
const POLL_MS: u64 = 50;

/// The fallback: Debian's compiler in a folder of its own, made by a script.
const SETUP: &str = include_str!("fallback/setup.sh");
const STUBS: &str = include_str!("fallback/pthread_stubs.rs");

/// A compiler that has std for the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toolchain {
    /// The program for cargo to use.
    pub(super) rustc: PathBuf,
    /// Its version and commit: what it has compiled is of no use to another.
    pub(super) key: String,
}

/// The compiler to use for a project in `dir`; the first of these that works: the one on the PATH, the fallback where it is there
/// already, the one on the PATH after rustup has added the target, the fallback made now.
pub(super) fn find(dir: &Path, target: &str, ctx: &mut BuildContext) -> anyhow::Result<Toolchain> {
    let own = Path::new("rustc");
    let version = version(own, dir)?;
    if has_target(own, target, dir) {
        return Ok(Toolchain { rustc: own.into(), key: key(&version)? });
    }
    let prefix = ctx.cache_dir.join("rust-wasm");
    let fallback = prefix.join("bin").join("rustc");
    if fallback.is_file() && has_target(&fallback, target, dir) {
        return toolchain(fallback, dir);
    }
    ctx.say(format_args!("this Rust has no {target} yet; trying `rustup target add {target}`"));
    let refused = match add_target(target, dir) {
        Ok(()) if has_target(own, target, dir) => return Ok(Toolchain { rustc: own.into(), key: key(&version)? }),
        Ok(()) => "it reports success, but this rustc still lacks the target (is another rustc first on the PATH?)".into(),
        Err(refused) => refused,
    };
    if !runs("apt-get") || !runs("dpkg") {
        bail!(
            "no Rust here can compile for {target}: `rustup target add {target}` failed ({refused}). Run it again when rustup's server \
             can be reached, or install a Rust that brings {target}"
        );
    }
    ctx.say(format_args!("rustup could not add it ({refused}); making a toolchain from Debian's packages in {}", prefix.display()));
    make_fallback(&prefix, target, dir, ctx)?;
    if !has_target(&fallback, target, dir) {
        bail!("the toolchain in {} lacks {target}; remove that folder and build again", prefix.display());
    }
    toolchain(fallback, dir)
}

fn toolchain(rustc: PathBuf, dir: &Path) -> anyhow::Result<Toolchain> {
    let key = key(&version(&rustc, dir)?)?;
    Ok(Toolchain { rustc, key })
}

/// What `rustc -vV` prints.
fn version(rustc: &Path, dir: &Path) -> anyhow::Result<String> {
    let output = Command::new(rustc).current_dir(dir).arg("-vV").stdin(Stdio::null()).output();
    let output = output.map_err(|error| RUSTC.not_started(error))?;
    if !output.status.success() {
        bail!("`{} -vV` failed: {}", rustc.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Version and commit, as part of a folder's name.
fn key(version: &str) -> anyhow::Result<String> {
    let field = |name: &str| version.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let release = field("release:").with_context(|| format!("`rustc -vV` printed something unexpected: {version}"))?;
    let commit = field("commit-hash:").unwrap_or("unknown");
    let key = format!("{release}-{}", commit.get(..9).unwrap_or(commit));
    Ok(key.chars().map(|c| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '_' }).collect())
}

fn has_target(rustc: &Path, target: &str, dir: &Path) -> bool {
    let output = Command::new(rustc).current_dir(dir).args(["--print", "target-libdir", "--target", target]).stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn runs(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The error says in a few words why not.
fn add_target(target: &str, dir: &Path) -> Result<(), String> {
    let mut command = Command::new("rustup");
    command.current_dir(dir).args(["target", "add", target]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("rustup: {error}"))?;
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if began.elapsed() < Duration::from_secs(RUSTUP_SECONDS_MAX) => std::thread::sleep(Duration::from_millis(POLL_MS)),
            Ok(None) => {
                // Both may fail only because it has just ended.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no answer in {RUSTUP_SECONDS_MAX} s"));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(last_error(&String::from_utf8_lossy(&output.stderr))),
    }
}

/// The line that says most: the first that begins with `error`, else the last.
fn last_error(stderr: &str) -> String {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    lines().find(|line| line.starts_with("error")).or(lines().next_back()).unwrap_or("it gave no reason").into()
}

fn make_fallback(prefix: &Path, target: &str, dir: &Path, ctx: &mut BuildContext) -> anyhow::Result<()> {
    std::fs::create_dir_all(&ctx.cache_dir).with_context(|| format!("cannot create {}", ctx.cache_dir.display()))?;
    let lock_path = ctx.cache_dir.join("rust-wasm.lock");
    let lock = File::create(&lock_path).with_context(|| format!("cannot create {}", lock_path.display()))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            ctx.say("another build is making that toolchain; waiting for it");
            lock.lock().with_context(|| format!("cannot lock {}", lock_path.display()))?;
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(|| format!("cannot lock {}", lock_path.display())),
    }
    if has_target(&prefix.join("bin").join("rustc"), target, dir) {
        return Ok(());
    }
    let scripts = tempfile::tempdir_in(&ctx.cache_dir)?;
    let setup = scripts.path().join("setup.sh");
    std::fs::write(&setup, SETUP)?;
    std::fs::write(scripts.path().join("pthread_stubs.rs"), STUBS)?;
    let mut command = Command::new("bash");
    command.arg(&setup).arg(prefix).arg(target);
    for variable in super::rust::FOREIGN_VARIABLES {
        command.env_remove(variable);
    }
    ctx.run(&mut command, &Tool { name: "the script that makes the fallback toolchain", remedy: "install bash" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_names_release_and_commit() {
        let version =
            "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\ncommit-hash: 59807616e1fa2540\nrelease: 1.95.0\nLLVM version: 22";
        assert_eq!(key(version).unwrap(), "1.95.0-59807616e");
        assert_eq!(key("release: 1.96.0-beta (x)\ncommit-hash: unknown").unwrap(), "1.96.0-beta__x_-unknown");
        assert!(key("nonsense").unwrap_err().to_string().contains("nonsense"));
    }

    #[test]
    fn the_reason_of_rustup_is_one_line() {
        let stderr = "info: syncing\nerror: could not download file\n\nCaused by: dns\n";
        assert_eq!(last_error(stderr), "error: could not download file");
        assert_eq!(last_error("info: a\nwarn: b\n"), "warn: b");
        assert_eq!(last_error(""), "it gave no reason");
    }

    #[test]
    fn a_target_that_nobody_has_is_missing() {
        assert!(!has_target(Path::new("rustc"), "wasm32-unknown-nowhere", Path::new("/")));
        assert!(!has_target(Path::new("no-such-rustc"), "wasm32-wasip2", Path::new("/")));
    }

    #[test]
    fn the_fallback_script_is_valid_shell() {
        let mut command = Command::new("bash");
        let status = command.args(["-n", concat!(env!("CARGO_MANIFEST_DIR"), "/src/build/fallback/setup.sh")]).status();
        assert!(status.unwrap().success());
    }
}
