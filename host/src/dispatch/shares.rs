//! Calls of tools that go to a version which is not in force yet: so many in a hundred, for as long as it is tried.

use crate::config::Config;
use crate::registry::{Endpoint, Loaded, Registry, View};
use anyhow::Result;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The versions that are tried.
#[derive(Default)]
pub(super) struct Shares(ArcSwap<HashMap<Arc<str>, Arc<Share>>>);

struct Share {
    /// The version alone, so that nothing else is kept by it.
    registry: Registry,
    percent: u64,
    calls: AtomicU64,
}

impl Shares {
    /// Gives a share of its guest's calls to a version; another version that has one loses it.
    pub(super) fn give(&self, registry: &Registry, config: &Config, guest: &Arc<Loaded>, percent: u8) -> Result<()> {
        let registry = registry.alone(config, guest.clone())?;
        let share = Arc::new(Share { registry, percent: percent.into(), calls: AtomicU64::new(0) });
        self.0.rcu(|shares| {
            let mut shares = HashMap::clone(shares);
            shares.insert(guest.name.clone(), share.clone());
            shares
        });
        Ok(())
    }

    /// All calls of a guest go to the version in force.
    pub(super) fn end(&self, guest: &str) {
        if self.0.load().contains_key(guest) {
            self.0.rcu(|shares| {
                let mut shares = HashMap::clone(shares);
                shares.remove(guest);
                shares
            });
        }
    }

    /// Where a call of a tool goes instead, if it is one of those, and the version has the tool.
    pub(super) fn view(&self, endpoint: &Endpoint, view: &View, tool: &str) -> Option<Arc<View>> {
        let shares = self.0.load();
        if shares.is_empty() {
            return None;
        }
        let share = shares.get(&view.tool(tool)?.guest.name)?;
        let other = share.registry.view(endpoint).filter(|other| other.tool(tool).is_some())?;
        share.takes_next().then(|| other.clone())
    }
}

impl Share {
    /// Spreads its calls evenly over all.
    fn takes_next(&self) -> bool {
        let before = self.calls.fetch_add(1, Ordering::Relaxed) % 100;
        (before + 1) * self.percent / 100 > before * self.percent / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_calls_so_many_are_taken_and_they_are_spread() {
        for percent in [1, 10, 33, 50, 99] {
            let registry = Registry::new(&Config::default(), Vec::new(), 1).unwrap();
            let share = Share { registry, percent, calls: AtomicU64::new(0) };
            let taken: Vec<bool> = (0..200).map(|_| share.takes_next()).collect();
            assert_eq!(taken.iter().filter(|taken| **taken).count() as u64, 2 * percent);
            let together = taken.windows(2).any(|two| two == [true, true]);
            assert_eq!(together, percent > 50, "{percent}");
            assert_eq!(taken[..100], taken[100..]);
        }
    }
}
