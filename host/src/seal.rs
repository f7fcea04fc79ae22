//! Sealed tokens: what the host hands to a client and wants back unread and unchanged.
//!
//! A token is AES-256-GCM over the payload, bound to a context (the associated data) that is not in the token: it opens
//! only for the purpose that it was made for. It names its key, so that keys can change while tokens are about.
//!
//! ```text
//! gh1.<key id>.<nonce>.<ciphertext and tag>      (base64url without padding)
//! ```

pub(crate) mod replay;
pub(crate) mod state;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use anyhow::{Context, Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;

/// Longest cursor that is looked at.
pub const TOKEN_LEN_MAX: usize = 64 << 10;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

const NONCE_BYTES: usize = 12;
const PREFIX: &str = "gh1";
const EPHEMERAL_ID: &str = "ephemeral";

/// A key, and the name by which tokens call it.
pub struct SealKey {
    /// Letters, digits, `-` and `_`.
    pub id: String,
    /// Known to nobody else.
    pub secret: [u8; KEY_BYTES],
}

/// Seals and opens tokens: seals with the active key, opens with any that is not revoked.
pub struct Sealer {
    active: usize,
    keys: Vec<(String, Aes256Gcm)>,
    revoked: Vec<String>,
}

/// Why a token does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsealable {
    /// It is none, was changed, or was made for another purpose.
    Invalid,
    /// It is longer than any that was made.
    TooLarge,
    /// Nobody here has its key.
    KeyUnknown,
    /// Its key is no longer trusted.
    KeyRevoked,
}

impl Sealer {
    /// A sealer with a fresh random key, which lives as long as the process.
    pub fn ephemeral() -> Result<Self> {
        let secret = random().context("cannot get randomness from the system")?;
        Self::new(vec![SealKey { id: EPHEMERAL_ID.into(), secret }], None, Vec::new())
    }

    /// A sealer with these keys. The active one, which seals, is the first unless another is named.
    pub fn new(keys: Vec<SealKey>, active: Option<&str>, revoked: Vec<String>) -> Result<Self> {
        for (index, key) in keys.iter().enumerate() {
            if keys.iter().take(index).any(|other| other.id == key.id) {
                bail!("the key id `{}` is there twice", key.id);
            }
        }
        let active = match active {
            None => 0,
            Some(id) => keys.iter().position(|key| key.id == id).ok_or_else(|| anyhow!("the active key `{id}` is not among the keys"))?,
        };
        let id = &keys.get(active).context("there is no key")?.id;
        if revoked.contains(id) {
            bail!("the active key `{id}` is revoked; name another with `active`");
        }
        let keys = keys.into_iter().map(|key| (key.id, Aes256Gcm::new(&Key::<Aes256Gcm>::from(key.secret)))).collect();
        Ok(Self { active, keys, revoked })
    }

    /// Seals `payload` for `context`.
    pub fn seal(&self, context: &str, payload: &[u8]) -> Result<String> {
        let (id, cipher) = self.keys.get(self.active).context("there is no key")?;
        let nonce: [u8; NONCE_BYTES] = random().context("cannot get randomness from the system")?;
        let sealed = cipher
            .encrypt(&Nonce::from(nonce), Payload { msg: payload, aad: bound(id, context).as_bytes() })
            .map_err(|_| anyhow!("cannot seal a token of {} bytes", payload.len()))?;
        Ok(format!("{PREFIX}.{id}.{}.{}", URL_SAFE_NO_PAD.encode(nonce), URL_SAFE_NO_PAD.encode(sealed)))
    }

    /// Opens a token that was sealed for `context`, and is no longer than `len_max`.
    pub fn open(&self, context: &str, token: &str, len_max: usize) -> Result<Vec<u8>, Unsealable> {
        if token.len() > len_max {
            return Err(Unsealable::TooLarge);
        }
        let mut segments = token.split('.');
        let (Some(PREFIX), Some(id), Some(nonce), Some(sealed), None) =
            (segments.next(), segments.next(), segments.next(), segments.next(), segments.next())
        else {
            return Err(Unsealable::Invalid);
        };
        if self.revoked.iter().any(|revoked| revoked == id) {
            return Err(Unsealable::KeyRevoked);
        }
        let (_, cipher) = self.keys.iter().find(|(known, _)| known == id).ok_or(Unsealable::KeyUnknown)?;
        let decode = |segment: &str| URL_SAFE_NO_PAD.decode(segment).map_err(|_| Unsealable::Invalid);
        let nonce: [u8; NONCE_BYTES] = decode(nonce)?.try_into().map_err(|_| Unsealable::Invalid)?;
        let (sealed, bound) = (decode(sealed)?, bound(id, context));
        cipher.decrypt(&Nonce::from(nonce), Payload { msg: &sealed, aad: bound.as_bytes() }).map_err(|_| Unsealable::Invalid)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.keys.iter().map(|(id, _)| id.as_str()).collect();
        f.debug_struct("Sealer").field("keys", &ids).field("active", &self.active).field("revoked", &self.revoked).finish()
    }
}

/// What a token is bound to: its format, its key, and its purpose. No id has a line break.
fn bound(id: &str, context: &str) -> String {
    format!("{PREFIX}.{id}\n{context}")
}

/// Random bytes of the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("{error}"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, byte: u8) -> SealKey {
        SealKey { id: id.into(), secret: [byte; KEY_BYTES] }
    }

    fn sealer(ids: &[(&str, u8)], active: &str, revoked: &[&str]) -> Sealer {
        let keys = ids.iter().map(|(id, byte)| key(id, *byte)).collect();
        Sealer::new(keys, Some(active), revoked.iter().map(|id| (*id).to_owned()).collect()).unwrap()
    }

    #[test]
    fn a_token_opens_only_where_it_was_made_for() {
        let sealer = Sealer::ephemeral().unwrap();
        let token = sealer.seal("tools/list /mcp", b"500").unwrap();
        assert_eq!(sealer.open("tools/list /mcp", &token, TOKEN_LEN_MAX).as_deref(), Ok(&b"500"[..]));
        assert_eq!(sealer.open("prompts/list /mcp", &token, TOKEN_LEN_MAX), Err(Unsealable::Invalid));
        assert_eq!(Sealer::ephemeral().unwrap().open("tools/list /mcp", &token, TOKEN_LEN_MAX), Err(Unsealable::Invalid));
    }

    #[test]
    fn whatever_is_changed_the_token_no_longer_opens() {
        let sealer = sealer(&[("a", 1), ("b", 2)], "a", &[]);
        let token = sealer.seal("c", b"payload").unwrap();
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            for other in [b'A', b'B', b'b', b'.', b'=', b' '] {
                bytes[at] = other;
                let changed = String::from_utf8(bytes.clone()).unwrap();
                assert!(changed == token || sealer.open("c", &changed, TOKEN_LEN_MAX).is_err(), "byte {at}: {changed}");
            }
            assert!(sealer.open("c", &token[..at], TOKEN_LEN_MAX).is_err(), "cut at {at}");
        }
        for garbage in ["", "!!", "AAAA", "gh1.a..", "gh1.a.AAAAAAAAAAAAAAAA.AAAA", "gh2.a.AAAAAAAAAAAAAAAA.AAAA"] {
            assert_eq!(sealer.open("c", garbage, TOKEN_LEN_MAX), Err(Unsealable::Invalid), "{garbage}");
        }
        assert_eq!(sealer.open("c", &format!("{token}."), TOKEN_LEN_MAX), Err(Unsealable::Invalid));
        assert_eq!(sealer.open("c", &token, token.len() - 1), Err(Unsealable::TooLarge));
    }

    #[test]
    fn keys_change_while_tokens_are_about() {
        let old = sealer(&[("old", 1)], "old", &[]).seal("c", b"x").unwrap();
        let table = [
            (sealer(&[("new", 2), ("old", 1)], "new", &[]), Ok(b"x".to_vec())),
            (sealer(&[("new", 2)], "new", &[]), Err(Unsealable::KeyUnknown)),
            (sealer(&[("new", 2), ("old", 1)], "new", &["old"]), Err(Unsealable::KeyRevoked)),
            (sealer(&[("new", 2)], "new", &["old"]), Err(Unsealable::KeyRevoked)),
            (sealer(&[("old", 2)], "old", &[]), Err(Unsealable::Invalid)),
        ];
        for (sealer, expected) in table {
            assert_eq!(sealer.open("c", &old, TOKEN_LEN_MAX), expected, "{sealer:?}");
        }
        let ring = sealer(&[("new", 2), ("old", 1)], "new", &[]);
        assert!(ring.seal("c", b"x").unwrap().starts_with("gh1.new."));
    }

    #[test]
    fn a_ring_that_makes_no_sense_is_refused() {
        let refused = |keys, active, revoked: &[&str]| {
            let revoked = revoked.iter().map(|id| (*id).to_owned()).collect();
            Sealer::new(keys, active, revoked).unwrap_err().to_string()
        };
        assert!(refused(vec![], None, &[]).contains("no key"));
        assert!(refused(vec![key("a", 1), key("a", 2)], None, &[]).contains("twice"));
        assert!(refused(vec![key("a", 1)], Some("b"), &[]).contains("`b`"));
        assert!(refused(vec![key("a", 1)], None, &["a"]).contains("revoked"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?}", sealer(&[("a", 77)], "a", &[]));
        assert!(shown.contains("\"a\"") && !shown.contains("77"), "{shown}");
    }
}
