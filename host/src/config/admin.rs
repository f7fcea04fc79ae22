//! Table `[admin]`: how the host is watched and managed. Never by a client of the protocol.

use anyhow::{Result, bail};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What stands for standard error.
const STDERR: &str = "stderr";
/// What stands for no socket.
const OFF: &str = "off";
/// What stands for a socket at the usual place.
const AUTO: &str = "auto";
/// What a token's hash begins with.
const HASH_PREFIX: &str = "sha256:";

/// Table `[admin]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminConfig {
    /// The Unix socket for `guesthouse status` and for figures: a path, `auto` or `off`.
    socket: PathBuf,
    /// The same on TCP, for whoever has the token; off, if absent.
    pub listen: Option<SocketAddr>,
    /// `sha256:` and the SHA-256 of the token for TCP, in hexadecimal.
    token_hash: Option<String>,
    /// Where the audit trail goes: a file, or `stderr`; nowhere, if absent.
    audit: Option<PathBuf>,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self { socket: AUTO.into(), listen: None, token_hash: None, audit: None }
    }
}

/// Where the admin socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// At the usual place, under a name that follows from the port.
    Auto,
    /// At this path.
    At(PathBuf),
    /// Nowhere.
    Off,
}

/// Where the audit trail goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTo {
    /// Nowhere.
    Nowhere,
    /// Standard error.
    Stderr,
    /// The end of this file.
    File(PathBuf),
}

impl AdminConfig {
    /// Where the admin socket is.
    pub fn socket(&self) -> Socket {
        match self.socket.to_str() {
            Some(AUTO) => Socket::Auto,
            Some(OFF) => Socket::Off,
            _ => Socket::At(self.socket.clone()),
        }
    }

    /// Where the audit trail goes.
    pub fn audit(&self) -> AuditTo {
        match &self.audit {
            None => AuditTo::Nowhere,
            Some(file) if file.as_os_str() == STDERR => AuditTo::Stderr,
            Some(file) => AuditTo::File(file.clone()),
        }
    }

    /// The SHA-256 of the token for TCP.
    pub fn token_hash(&self) -> Option<[u8; 32]> {
        self.token_hash.as_deref().and_then(hash)
    }

    /// Makes relative paths relative to the configuration's folder.
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        if let Socket::At(path) = self.socket() {
            self.socket = folder.join(path);
        }
        if let AuditTo::File(file) = self.audit() {
            self.audit = Some(folder.join(file));
        }
    }

    /// Refuses what cannot work. The hash is not quoted.
    pub(super) fn check(&self) -> Result<()> {
        if self.token_hash.is_some() && self.token_hash().is_none() {
            bail!("`admin.token_hash` must be `{HASH_PREFIX}` and 64 hexadecimal digits, as `guesthouse token` prints them");
        }
        if self.listen.is_none() && self.token_hash.is_some() {
            bail!("`admin.token_hash` is of no use without `admin.listen`, the address on which whoever has the token is answered");
        }
        if self.listen.is_some() && self.token_hash.is_none() {
            bail!("`admin.listen` needs `admin.token_hash`: on TCP only whoever has a token is answered; `guesthouse token` makes one");
        }
        Ok(())
    }
}

/// The bytes of a hash as it is written.
fn hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix(HASH_PREFIX)?.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn places_are_read() {
        let parse = |text: &str| Config::parse(text).unwrap().admin;
        let default = parse("");
        assert_eq!((default.socket(), default.audit(), default.listen), (Socket::Auto, AuditTo::Nowhere, None));
        let other = parse("[admin]\nsocket = \"off\"\naudit = \"stderr\"");
        assert_eq!((other.socket(), other.audit()), (Socket::Off, AuditTo::Stderr));
        let mut paths = parse("[admin]\nsocket = \"a.sock\"\naudit = \"a.jsonl\"");
        paths.resolve_paths(Path::new("/etc"));
        assert_eq!((paths.socket(), paths.audit()), (Socket::At("/etc/a.sock".into()), AuditTo::File("/etc/a.jsonl".into())));
    }

    #[test]
    fn tcp_needs_a_sound_token_and_hashes_are_not_quoted() {
        let right = "ab".repeat(32);
        for (text, part) in [
            ("[admin]\nlisten = \"127.0.0.1:1\"".to_owned(), Some("admin.token_hash")),
            ("[admin]\ntoken_hash = \"sha256:c0ffee\"".to_owned(), Some("64 hexadecimal digits")),
            (format!("[admin]\ntoken_hash = \"sha256:+{}\"", &right[1..]), Some("64 hexadecimal digits")),
            (format!("[admin]\ntoken_hash = \"sha256:{right}\""), Some("without `admin.listen`")),
            (format!("[admin]\nlisten = \"127.0.0.1:1\"\ntoken_hash = \"sha256:{right}\""), None),
        ] {
            let said = Config::parse(&text).err().map(|error| format!("{error:#}"));
            assert_eq!(said.is_some(), part.is_some(), "{text}: {said:?}");
            assert!(said.is_none_or(|said| said.contains(part.unwrap()) && !said.contains("c0ffee")));
        }
    }
}
