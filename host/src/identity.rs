//! Who calls, where the host knows it without asking.

pub use guesthouse_protocol::Identity;
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Mutex, PoisonError};

/// The principal of whoever sits at this machine: stdio, in process, and without authentication HTTP on the loopback
/// interface that no proxy has passed on.
pub const LOCAL: &str = "local";

/// Whoever sits at this machine.
pub fn local() -> Identity {
    Identity { principal: Some(LOCAL.into()), ..Identity::default() }
}

/// A caller who proves nothing: whoever sits at this machine, if it comes from there, and nobody in particular otherwise.
pub(crate) fn unproven(local: bool) -> Identity {
    if local { self::local() } else { Identity::default() }
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

type Hook = Box<dyn Fn(&Arc<str>) + Send + Sync>;

/// Where sessions that are over are told of, to whoever keeps something for them. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Departures(Arc<Mutex<Vec<Hook>>>);

/// Held for as long as a session lasts. When it is dropped, the session is over.
#[derive(Default)]
pub struct Presence(Option<(Arc<str>, Departures)>);

impl Departures {
    /// Calls `hook` with the name of each session that is over. It must not block.
    pub fn tell(&self, hook: impl Fn(&Arc<str>) + Send + Sync + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(hook));
    }

    /// The caller's session, if it has one, lasts until what is returned is dropped.
    pub fn presence(&self, caller: &Identity) -> Presence {
        Presence(caller.session.clone().map(|session| (session, self.clone())))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let Some((session, departures)) = &self.0 {
            departures.0.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|hook| hook(session));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_is_over_once() {
        let departures = Departures::default();
        let over = Arc::new(Mutex::new(Vec::new()));
        let told = over.clone();
        departures.tell(move |session| told.lock().unwrap().push(session.to_string()));
        let one = Identity { session: Some("one".into()), ..local() };
        let presence = departures.presence(&one);
        drop(departures.presence(&local()));
        assert!(over.lock().unwrap().is_empty());
        drop(presence);
        assert_eq!(*over.lock().unwrap(), ["one"]);
    }
}
