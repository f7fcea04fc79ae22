//! Sealed tokens: what the host hands to a client and wants back unread and unchanged.
//!
//! A token is AES-256-GCM over the payload, bound to a context (the associated data) that is not in the token: it opens
//! only for the same purpose, endpoint and method that it was made for. The key lives as long as the process.

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes256Gcm, Key, Nonce};
use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Longest token that is looked at.
pub const TOKEN_LEN_MAX: usize = 64 << 10;
const NONCE_LEN: usize = 12;
const VERSION: u8 = 1;

/// Seals and opens tokens with one key.
pub struct Sealer {
    cipher: Aes256Gcm,
}

impl Sealer {
    /// A sealer with a fresh random key.
    pub fn ephemeral() -> Result<Self> {
        let mut key = [0u8; 32];
        getrandom::fill(&mut key).context("cannot get randomness from the system")?;
        Ok(Self { cipher: Aes256Gcm::new(&Key::<Aes256Gcm>::from(key)) })
    }

    /// Seals `payload` for `context`.
    pub fn seal(&self, context: &str, payload: &[u8]) -> Result<String> {
        let mut nonce = [0u8; NONCE_LEN];
        getrandom::fill(&mut nonce).context("cannot get randomness from the system")?;
        let sealed = self
            .cipher
            .encrypt(&Nonce::from(nonce), Payload { msg: payload, aad: context.as_bytes() })
            .map_err(|_| anyhow!("cannot seal a token of {} bytes", payload.len()))?;
        let mut token = Vec::with_capacity(1 + NONCE_LEN + sealed.len());
        token.push(VERSION);
        token.extend_from_slice(&nonce);
        token.extend_from_slice(&sealed);
        Ok(URL_SAFE_NO_PAD.encode(token))
    }

    /// Opens a token; `None` if it was not made by this key for this context, whatever the reason.
    pub fn open(&self, context: &str, token: &str) -> Option<Vec<u8>> {
        if token.len() > TOKEN_LEN_MAX {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (version, rest) = bytes.split_first()?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        if *version != VERSION {
            return None;
        }
        let nonce: [u8; NONCE_LEN] = nonce.try_into().ok()?;
        self.cipher.decrypt(&Nonce::from(nonce), Payload { msg: sealed, aad: context.as_bytes() }).ok()
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_token_opens_only_where_it_was_made_for() {
        let sealer = Sealer::ephemeral().unwrap();
        let token = sealer.seal("tools/list /mcp", b"500").unwrap();
        assert_eq!(sealer.open("tools/list /mcp", &token).as_deref(), Some(&b"500"[..]));
        assert_eq!(sealer.open("prompts/list /mcp", &token), None);
        assert_eq!(Sealer::ephemeral().unwrap().open("tools/list /mcp", &token), None);
    }

    #[test]
    fn whatever_is_changed_the_token_no_longer_opens() {
        let sealer = Sealer::ephemeral().unwrap();
        let token = sealer.seal("c", b"payload").unwrap();
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(sealer.open("c", &String::from_utf8(bytes).unwrap()), None, "byte {at}");
            assert_eq!(sealer.open("c", &token[..at]), None, "cut at {at}");
        }
        for garbage in ["", "!!", "AAAA", &"A".repeat(TOKEN_LEN_MAX + 1)] {
            assert_eq!(sealer.open("c", garbage), None);
        }
    }
}
