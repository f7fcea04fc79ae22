//! Where the host keeps things: the folders that the XDG base directory specification names.

use anyhow::{Result, anyhow};
use std::path::PathBuf;

/// The folder of what can be made again: compiled code, toolchains (`$XDG_CACHE_HOME/guesthouse`).
pub fn cache() -> Result<PathBuf> {
    base("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("guesthouse"))
}

/// The folder of what must not be lost (`$XDG_STATE_HOME/guesthouse`).
pub fn state() -> Result<PathBuf> {
    base("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("guesthouse"))
}

/// The folder of sockets (`$XDG_RUNTIME_DIR/guesthouse`). Where the system has no such folder, one among what is kept, which
/// nobody but this user can enter, either.
pub fn runtime() -> Result<PathBuf> {
    match absolute("XDG_RUNTIME_DIR") {
        Some(folder) => Ok(folder.join("guesthouse")),
        None => state().map(|folder| folder.join("run")),
    }
}

/// An absolute folder from the environment, else the one below the home folder.
fn base(variable: &str, below_home: &str) -> Result<PathBuf> {
    absolute(variable)
        .or_else(|| absolute("HOME").map(|home| home.join(below_home)))
        .ok_or_else(|| anyhow!("neither {variable} nor HOME names an absolute folder; set one of them"))
}

#[expect(clippy::disallowed_methods, reason = "the configuration is the one reader of the environment")]
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
