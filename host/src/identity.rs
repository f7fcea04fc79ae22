//! Who calls, where the host knows it without asking.

pub use guesthouse_protocol::Identity;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The principal of whoever sits at this machine: stdio, in process, and HTTP on the loopback interface without
/// authentication.
pub const LOCAL: &str = "local";

/// Whoever sits at this machine.
pub fn local() -> Identity {
    Identity { principal: Some(LOCAL.into()), ..Identity::default() }
}

/// How a session is called behind the transport, where its id on the wire, which opens it, has no business.
pub(crate) fn session_name(wire_id: &[u8]) -> Arc<str> {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    URL_SAFE_NO_PAD.encode(Sha256::digest(wire_id)).into()
}

/// Whoever sits at this machine, on a connection that is a session of its own.
pub(crate) fn local_session() -> anyhow::Result<Identity> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("cannot get randomness from the system: {error}"))?;
    Ok(Identity { session: Some(session_name(&random)), ..local() })
}
