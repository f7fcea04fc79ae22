//! Table `[auth]`: who may call over HTTP.

use crate::principals::PrincipalCap;
use anyhow::{Result, bail};
use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fmt::{self, Write as _};

/// Most tokens. All of them are compared with what a client sends.
const TOKENS_MAX: usize = 1_000;

/// Longest name of a token, a principal or a tenant.
const NAME_BYTES_MAX: usize = 128;

/// How a hash begins.
const HASH_PREFIX: &str = "sha256:";

const HASH_BYTES: usize = 32;

/// Table `[auth]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// How callers prove who they are.
    pub kind: AuthKind,
    /// The tokens that are known.
    pub tokens: Vec<TokenConfig>,
}

/// How callers prove who they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthKind {
    /// They do not: whoever reaches the server may call.
    #[default]
    None,
    /// By a bearer token.
    Tokens,
}

/// A token, and whose it is. The token itself is nowhere in the configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenConfig {
    /// What people call it, to find it again when it is to be taken away.
    pub name: String,
    /// `sha256:` and the hash of the token in hexadecimal. A token is as random as the hash is long, so that a slow hash
    /// would not make it any safer.
    pub hash: TokenHash,
    /// Who sends it.
    pub principal: String,
    /// The organisation that the principal belongs to.
    pub tenant: Option<String>,
}

/// The hash of a token. Not shown, since there is no need to.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; HASH_BYTES]);

impl TokenHash {
    /// The hash of a token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(HASH_PREFIX)?.as_bytes();
        let (pairs, []) = digits.as_chunks::<2>() else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect::<Option<_>>()?;
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for TokenHash {
    /// As the configuration has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HASH_PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hash)")
    }
}

impl<'de> Deserialize<'de> for TokenHash {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        // Whatever is wrong with the value, the error must not show it: it may be the token itself.
        let text = String::deserialize(source).map_err(|_| serde::de::Error::custom("a hash must be a text"))?;
        let wrong = || serde::de::Error::custom("a hash must be `sha256:` and 64 hexadecimal digits; `guesthouse token NAME` makes one");
        Self::parse(&text).ok_or_else(wrong)
    }
}

impl TokenConfig {
    /// Checks the names.
    pub(crate) fn check(&self) -> Result<()> {
        let names = [("name", Some(&self.name)), ("principal", Some(&self.principal)), ("tenant", self.tenant.as_ref())];
        for (key, value) in names {
            if value.is_some_and(|value| value.is_empty() || value.len() > NAME_BYTES_MAX || value.chars().any(char::is_control)) {
                bail!("the `{key}` of each of `auth.tokens` must have 1 to {NAME_BYTES_MAX} bytes, none of them a control character");
            }
        }
        Ok(())
    }

    /// The entry as it stands in the list.
    pub(crate) fn to_toml(&self) -> String {
        let text = |value: &str| toml::Value::from(value).to_string();
        let mut out = format!("{{ name = {}, hash = \"{}\", principal = {}", text(&self.name), self.hash, text(&self.principal));
        if let Some(tenant) = &self.tenant {
            // Writing into a String cannot fail.
            let _ = write!(out, ", tenant = {}", text(tenant));
        }
        out.push_str(" }");
        out
    }
}

impl AuthConfig {
    /// Refuses what makes no sense.
    pub(super) fn check(&self) -> Result<()> {
        match (self.kind, self.tokens.is_empty()) {
            (AuthKind::None, false) => {
                bail!("`auth.tokens` has tokens, and `auth.kind` does not say that they are needed: write kind = \"tokens\"")
            }
            (AuthKind::Tokens, true) => bail!("`auth.kind` is \"tokens\", and there is none: `guesthouse token NAME` makes one"),
            (AuthKind::None, true) | (AuthKind::Tokens, false) => {}
        }
        if self.tokens.len() > TOKENS_MAX {
            bail!("`auth.tokens` has more than {TOKENS_MAX} tokens");
        }
        let (mut names, mut hashes) = (HashSet::new(), HashSet::new());
        for token in &self.tokens {
            token.check()?;
            if !names.insert(token.name.as_str()) {
                bail!("the token `{}` is there twice", token.name);
            }
            if !hashes.insert(&token.hash) {
                bail!("the token `{}` has the hash of another one", token.name);
            }
        }
        Ok(())
    }

    /// What one principal may have of something of which there is that much. Where nothing is configured, half of it, so that
    /// nobody takes all of it from the others; all of it where no others are known, and for whoever sits at this machine.
    pub fn cap(&self, all: usize, configured: Option<usize>) -> PrincipalCap {
        let principals: HashSet<_> = self.tokens.iter().map(|token| (&token.principal, &token.tenant)).collect();
        match configured {
            Some(most) => PrincipalCap::of_all(most.min(all)),
            None if principals.len() > 1 => PrincipalCap { most: (all / 2).max(1), local: all },
            None => PrincipalCap::of_all(all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn entry(name: &str, token: &str, principal: &str) -> String {
        TokenConfig { name: name.into(), hash: TokenHash::of(token), principal: principal.into(), tenant: None }.to_toml()
    }

    fn parse(kind: &str, entries: &[String]) -> Result<AuthConfig> {
        Config::parse(&format!("[auth]\nkind = \"{kind}\"\ntokens = [{}]", entries.join(", "))).map(|config| config.auth)
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let token =
            TokenConfig { name: "a \"b\"".into(), hash: TokenHash::of("x"), principal: "al\\ice".into(), tenant: Some("acme".into()) };
        let read = parse("tokens", &[token.to_toml()]).unwrap().tokens.remove(0);
        assert_eq!((&read.name, &read.hash, &read.principal, &read.tenant), (&token.name, &token.hash, &token.principal, &token.tenant));
        assert_eq!(TokenHash::of("abc").to_string(), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(!format!("{read:?}").contains("2d711642"), "{read:?}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_no_hash_is_shown() {
        let secret = "gh_c2VjcmV0LXNlY3JldA";
        let hash = TokenHash::of(secret).to_string();
        let with = |members: &str| vec![format!("{{ name = \"a\", principal = \"p\", {members} }}")];
        for (kind, entries, part) in [
            ("tokens", vec![], "guesthouse token"),
            ("none", vec![entry("a", secret, "p")], "kind = \"tokens\""),
            ("tokens", with(&format!("hash = \"{secret}\"")), "64 hexadecimal"),
            ("tokens", with(&format!("hash = \"{}\"", &hash[..70])), "64 hexadecimal"),
            ("tokens", with(&format!("hash = \"{hash}0\"")), "64 hexadecimal"),
            ("tokens", with(&format!("hash = \"{}\"", hash.trim_start_matches("sha256:"))), "64 hexadecimal"),
            ("tokens", with(&format!("hash = [\"{secret}\"]")), "must be a text"),
            ("tokens", with(&format!("hash = \"{hash}\", tken = \"{secret}\"")), "tken"),
            ("tokens", with(&format!("hash = \"{hash}\", tenant = \"{secret}")), "line 3"),
            ("tokens", with(&format!("hash = \"{hash}\", tenant = \"\"")), "`tenant`"),
            ("tokens", vec![entry("a", secret, "p"), entry("a", "other", "p")], "`a` is there twice"),
            ("tokens", vec![entry("a", secret, "p"), entry("b", secret, "q")], "`b` has the hash"),
            ("tokens", vec![entry("a", secret, "p\u{7}")], "control character"),
            ("tokns", vec![], "line 2"),
        ] {
            let error = format!("{:#}", parse(kind, &entries).unwrap_err());
            assert!(error.contains(part), "{entries:?}: {error}");
            assert!(!error.contains(secret) && !error.contains(&hash[10..60]), "{error}");
        }
    }

    #[test]
    fn the_default_share_leaves_room_for_the_others_there_are() {
        let one = parse("tokens", &[entry("a", "1", "p"), entry("b", "2", "p")]).unwrap();
        let two = parse("tokens", &[entry("a", "1", "p"), entry("b", "2", "q")]).unwrap();
        for (auth, all, configured, most, local) in [
            (&AuthConfig::default(), 64, None, 64, 64),
            (&AuthConfig::default(), 64, Some(3), 3, 3),
            (&one, 64, None, 64, 64),
            (&two, 64, None, 32, 64),
            (&two, 1, None, 1, 1),
            (&two, 64, Some(100), 64, 64),
        ] {
            assert_eq!(auth.cap(all, configured), PrincipalCap { most, local });
        }
    }
}
