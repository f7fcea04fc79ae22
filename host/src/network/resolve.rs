//! From names to addresses.

use super::Failure;
use dns_lookup::{AddrInfoHints, LookupErrorKind, SockType};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::net::IpAddr;
use tokio::sync::Semaphore;

/// Lookups at a time: each takes a thread until the system has answered, which may be long after nobody wants to know any more.
const LOOKUPS_MAX: usize = 64;
/// Addresses of one name that are looked at; a name with more leads nowhere.
pub const ADDRESSES_MAX: usize = 64;

/// Knows the addresses of names.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of a name, at least one. [`Failure::Unresolved`] says for certain that there is none.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Failure>>;
}

/// Asks the system.
#[derive(Debug)]
pub struct SystemResolver {
    lookups: std::sync::Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { lookups: std::sync::Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, Failure>> {
        let name = name.to_owned();
        async move {
            let permit = std::sync::Arc::clone(&self.lookups).acquire_owned().await.map_err(|_| Failure::Stopped)?;
            let lookup = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                look_up(&name)
            });
            lookup.await.map_err(|_| Failure::Stopped)?
        }
        .boxed()
    }
}

/// Asks the system, which may take long.
fn look_up(name: &str) -> Result<Vec<IpAddr>, Failure> {
    // One entry for each address, and not one for each kind of socket.
    let hints = AddrInfoHints { socktype: SockType::Stream.into(), ..AddrInfoHints::default() };
    let found = dns_lookup::getaddrinfo(Some(name), None, Some(hints)).map_err(|error| failure(error.kind()))?;
    let mut addresses: Vec<IpAddr> = Vec::new();
    for entry in found {
        let address = entry.map_err(|_| Failure::ResolveFailed)?.sockaddr.ip();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
        if addresses.len() > ADDRESSES_MAX {
            return Err(Failure::TooManyAddresses);
        }
    }
    if addresses.is_empty() { Err(Failure::Unresolved) } else { Ok(addresses) }
}

/// Tells a name that does not exist from one that nobody could be asked about.
fn failure(kind: LookupErrorKind) -> Failure {
    match kind {
        LookupErrorKind::NoName | LookupErrorKind::NoData => Failure::Unresolved,
        _ => Failure::ResolveFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_that_does_not_exist_is_unresolved() {
        for (kind, expected) in [
            (LookupErrorKind::NoName, Failure::Unresolved),
            (LookupErrorKind::NoData, Failure::Unresolved),
            (LookupErrorKind::Again, Failure::ResolveFailed),
            (LookupErrorKind::Fail, Failure::ResolveFailed),
            (LookupErrorKind::System, Failure::ResolveFailed),
            (LookupErrorKind::Unknown, Failure::ResolveFailed),
        ] {
            assert_eq!(failure(kind), expected, "{kind:?}");
        }
    }

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let found = SystemResolver::default().resolve("localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
