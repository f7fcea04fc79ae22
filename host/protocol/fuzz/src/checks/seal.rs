//! Sealed tokens: what was sealed opens as it was, for its context alone; what was not opens never.

use std::sync::LazyLock;

use super::super::host::seal::{Sealer, TOKEN_LEN_MAX};
use super::{first, split};

static SEALER: LazyLock<Sealer> = LazyLock::new(|| Sealer::ephemeral().expect("randomness"));

/// The first byte says which byte of the token is changed; a context and a payload follow, a line each.
pub fn check(data: &[u8]) {
    let (at, rest) = first(data);
    let (context, payload) = split(rest, b"\n");
    let context = String::from_utf8_lossy(context);
    let opened = |context: &str, token: &str| SEALER.open(context, token, TOKEN_LEN_MAX).ok();
    // Whatever a client makes up does not open.
    assert_eq!(opened(&context, &String::from_utf8_lossy(payload)), None);
    let Ok(token) = SEALER.seal(&context, payload) else { return };
    assert_eq!(opened(&context, &token).as_deref(), Some(payload));
    assert_eq!(opened(&format!("{context} "), &token), None);
    let mut changed = token.clone().into_bytes();
    let at = usize::from(at) * 31 % changed.len();
    changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
    assert_eq!(opened(&context, &String::from_utf8(changed).expect("ASCII")), None);
    assert_eq!(opened(&context, token.get(..at).unwrap_or_default()), None);
}
