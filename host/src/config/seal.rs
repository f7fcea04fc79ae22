//! Table `[seal]`: the keys under which clients are handed sealed tokens.

use super::units::Span;
use crate::seal::{KEY_BYTES, SealKey, Sealer};
use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// Longest that a token may stay valid. A client that takes longer begins anew.
const TTL_MS_MAX: u64 = 24 * 3_600_000;

/// Most keys in a ring.
const KEYS_MAX: usize = 16;

/// Longest id of a key, which is in every token.
const ID_LEN_MAX: usize = 32;

/// Table `[seal]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SealConfig {
    /// The keys. Without any, a random one lives as long as the process.
    pub keys: Vec<KeyConfig>,
    /// Id of the key that seals; the first, where the key is absent. The others still open.
    pub active: Option<String>,
    /// Ids of keys whose tokens are refused from now on.
    pub revoked: Vec<String>,
    /// How long the state of a call that asked its client stays valid.
    pub ttl: Span,
    /// By how much the clocks of several hosts may differ.
    pub skew: Span,
    /// Whether such a state may be used once only.
    pub single_use: bool,
}

/// One key: 32 bytes in Base64, in one of three places.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// How tokens call it.
    pub id: String,
    /// The key itself.
    pub key: Option<Secret>,
    /// The environment variable that has it.
    pub env: Option<String>,
    /// The file that has it, relative to the configuration file.
    pub file: Option<PathBuf>,
}

/// A text that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        // Whatever is wrong with the value, the error must not show it.
        String::deserialize(source).map(Self).map_err(|_| serde::de::Error::custom("a key must be a text"))
    }
}

impl Default for SealConfig {
    fn default() -> Self {
        Self { keys: Vec::new(), active: None, revoked: Vec::new(), ttl: Span(900_000), skew: Span(30_000), single_use: false }
    }
}

impl SealConfig {
    /// Checks what can be checked without the keys themselves.
    pub(super) fn check(&self) -> Result<()> {
        if self.ttl.0 < 1_000 || self.ttl.0 > TTL_MS_MAX {
            bail!("`seal.ttl` must be between 1s and 24h");
        }
        if self.skew.0 > self.ttl.0 {
            bail!("`seal.skew` must not be more than `seal.ttl`");
        }
        if self.keys.len() > KEYS_MAX {
            bail!("`seal.keys` has more than {KEYS_MAX} keys");
        }
        if self.keys.is_empty() && self.active.is_some() {
            bail!("`seal.active` names a key, and `seal.keys` has none");
        }
        for KeyConfig { id, key, env, file } in &self.keys {
            if id.is_empty()
                || id.len() > ID_LEN_MAX
                || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            {
                bail!("the key id `{id}` is not allowed: an id has 1 to {ID_LEN_MAX} letters, digits, hyphens and underscores");
            }
            let sources = [key.is_some(), env.is_some(), file.is_some()].into_iter().filter(|given| *given).count();
            if sources != 1 {
                bail!("the key `{id}` needs exactly one of `key`, `env` and `file`");
            }
        }
        Ok(())
    }

    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        for file in self.keys.iter_mut().filter_map(|key| key.file.as_mut()) {
            *file = folder.join(&*file);
        }
    }

    /// Reads the keys and puts the ring together.
    pub fn sealer(&self) -> Result<Sealer> {
        if self.keys.is_empty() {
            return Sealer::ephemeral();
        }
        let keys = self.keys.iter().map(KeyConfig::read).collect::<Result<Vec<_>>>().context("in the table [seal]")?;
        Sealer::new(keys, self.active.as_deref(), self.revoked.clone()).context("in the table [seal]")
    }
}

impl KeyConfig {
    fn read(&self) -> Result<SealKey> {
        let id = self.id.clone();
        let (text, place) = match (&self.key, &self.env, &self.file) {
            (Some(Secret(key)), ..) => (key.clone(), "in the configuration".to_owned()),
            (None, Some(name), _) => {
                (variable(name).with_context(|| format!("key `{id}`"))?, format!("in the environment variable {name}"))
            }
            (None, None, Some(file)) => {
                let text =
                    std::fs::read_to_string(file).with_context(|| format!("cannot read the key `{id}` from `{}`", file.display()))?;
                (text, format!("in `{}`", file.display()))
            }
            (None, None, None) => bail!("the key `{id}` has no source"),
        };
        let secret = decode(text.trim()).filter(|secret| secret.len() == KEY_BYTES).and_then(|secret| secret.try_into().ok());
        let Some(secret) = secret else {
            bail!("the key `{id}` {place} is not {KEY_BYTES} bytes in Base64; `openssl rand -base64 {KEY_BYTES}` makes one");
        };
        Ok(SealKey { id, secret })
    }
}

#[expect(clippy::disallowed_methods, reason = "the configuration is the one reader of the environment")]
fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| format!("cannot read the environment variable {name}"))
}

/// Either alphabet, with padding or without.
fn decode(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engines = [GeneralPurpose::new(&STANDARD, config), GeneralPurpose::new(&URL_SAFE, config)];
    engines.iter().find_map(|engine| engine.decode(text).ok())
}

/// What is wrong with a configuration that cannot be read. Where it may hold a key, its text is not shown.
pub(super) fn describe(text: &str, error: &toml::de::Error) -> String {
    if !text.contains("seal") && !text.contains("auth") {
        return error.to_string();
    }
    let start = error.span().map_or(0, |span| span.start);
    let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count().saturating_add(1);
    let message = error.message();
    // These quote the value that they found.
    let shown = if message.starts_with("invalid type") || message.starts_with("invalid value") {
        "a value of the wrong type or form"
    } else {
        message
    };
    format!("line {line}: {shown}")
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn sealer(text: &str) -> Result<Sealer> {
        Config::parse(text)?.seal.sealer()
    }

    #[test]
    fn without_keys_one_is_made() {
        let config = Config::parse("").unwrap().seal;
        assert!(!config.single_use);
        assert!(config.sealer().unwrap().seal("c", b"x").unwrap().starts_with("gh1.ephemeral."));
    }

    #[test]
    fn keys_come_from_three_places() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("old.key"), format!("{}\n", KEY.trim_end_matches('='))).unwrap();
        let file = folder.path().join("guesthouse.toml");
        std::fs::write(
            &file,
            format!("[seal]\nkeys = [{{ id = \"new\", key = \"{KEY}\" }}, {{ id = \"old\", file = \"old.key\" }}]\nactive = \"old\"\nttl = \"5m\"\nsingle_use = true"),
        )
        .unwrap();
        let config = Config::read(&file).unwrap();
        assert_eq!(config.seal.ttl, Span(300_000));
        assert!(config.seal.sealer().unwrap().seal("c", b"x").unwrap().starts_with("gh1.old."));
        let error = sealer("[seal]\nkeys = [{ id = \"e\", env = \"GUESTHOUSE_TEST_NO_SUCH_VARIABLE\" }]").unwrap_err();
        assert!(format!("{error:#}").contains("GUESTHOUSE_TEST_NO_SUCH_VARIABLE"), "{error:#}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_no_secret_is_shown() {
        let secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQ";
        for (text, part) in [
            (format!("[seal]\nkeys = [{{ id = \"a\", key = \"{secret}\" }}]"), "`a`"),
            (format!("[seal]\nkeys = [{{ id = \"a\", key = \"{secret}\", kye = 1 }}]"), "kye"),
            (format!("[seal]\nkeys = \"{secret}\""), "line 2"),
            (format!("[seal]\nkeys = [{{ id = \"a\", key = [\"{secret}\"] }}]"), "must be a text"),
            (format!("seal = {{ kesy = [\"{secret}\"] }}"), "kesy"),
            (format!("[seal]\nkeys = [{{ id = \"a b\", key = \"{secret}\" }}]"), "a b"),
            (format!("[seal]\nkeys = [{{ id = \"a\", key = \"{secret}\", env = \"B\" }}]"), "exactly one"),
            (format!("[seal]\nkeys = [{{ id = \"a\", key = \"{secret}\" "), "line 2"),
            ("[seal]\nkeys = [{ id = \"a\" }]".to_owned(), "exactly one"),
            ("[seal]\nactive = \"a\"".to_owned(), "seal.active"),
            ("[seal]\nttl = \"0s\"".to_owned(), "seal.ttl"),
            ("[seal]\nttl = \"10s\"\nskew = \"11s\"".to_owned(), "seal.skew"),
            (format!("[seal]\nkeys = [{{ id = \"a\", key = \"{KEY}\" }}]\nrevoked = [\"a\"]"), "revoked"),
            (format!("[seal]\nkeys = [{{ id = \"a\", key = \"{KEY}\" }}]\nactive = \"b\""), "`b`"),
        ] {
            let error = format!("{:#}", sealer(&text).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains(secret), "{error}");
        }
        let config = Config::parse(&format!("[seal]\nkeys = [{{ id = \"a\", key = \"{KEY}\" }}]")).unwrap();
        assert!(!format!("{config:?}").contains(KEY));
    }
}
