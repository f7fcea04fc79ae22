//! From names to addresses.

use super::Failure;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::net::IpAddr;
use tokio::sync::Semaphore;

/// Lookups at a time: each takes a thread until the system has answered, which may be long after nobody wants to know any more.
const LOOKUPS_MAX: usize = 64;
/// Addresses of one name that are looked at; a name with more is not resolved.
const ADDRESSES_MAX: usize = 64;

/// Knows the addresses of names.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of a name, at least one.
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
                let found = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 0)).map_err(|_| Failure::Unresolved)?;
                let mut addresses: Vec<IpAddr> = Vec::new();
                for address in found.map(|address| address.ip()) {
                    if !addresses.contains(&address) {
                        addresses.push(address);
                    }
                }
                if addresses.is_empty() || addresses.len() > ADDRESSES_MAX { Err(Failure::Unresolved) } else { Ok(addresses) }
            });
            lookup.await.map_err(|_| Failure::Stopped)?
        }
        .boxed()
    }
}
