//! `guesthouse:mcp/changes`: what a callback announces, held back until the callback succeeds.

use std::collections::BTreeSet;

use wasmtime::component::{HasData, Linker};

use crate::guest::bindings::changes;
use crate::guest::{CallContext, CallLimits, Change, State};

/// The distinct changes of one callback.
#[derive(Debug, Default)]
pub(crate) struct Changes(BTreeSet<Change>);

impl Changes {
    /// Notes a change. Where a resource's URI is too long, or there are too many, every resource may have changed.
    fn note(&mut self, change: Change, limits: &CallLimits) {
        if self.0.contains(&change) {
            return;
        }
        let fits = match &change {
            Change::Resource(uri) => uri.len() <= limits.change_uri_bytes && self.0.len() < limits.changes,
            Change::Tools | Change::Prompts | Change::Resources => true,
        };
        self.0.insert(if fits { change } else { Change::Resources });
    }

    /// Hands the changes over, each once.
    pub(crate) fn send(self, context: &mut dyn CallContext) {
        for change in self.0 {
            context.change(change);
        }
    }
}

struct View<'a>(&'a mut State);

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

impl View<'_> {
    fn note(&mut self, change: Change) {
        // What `init` announces on every instance is not news to anyone.
        if self.0.in_callback {
            let State { changes, guest, .. } = &mut *self.0;
            changes.note(change, &guest.limits);
        }
    }
}

impl changes::Host for View<'_> {
    fn tools_changed(&mut self) {
        self.note(Change::Tools);
    }

    fn prompts_changed(&mut self) {
        self.note(Change::Prompts);
    }

    fn resources_changed(&mut self) {
        self.note(Change::Resources);
    }

    fn resource_updated(&mut self, uri: String) {
        self.note(Change::Resource(uri));
    }
}

pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    changes::add_to_linker::<State, HasView>(linker, |state| View(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_coalesce_and_too_many_become_one() {
        let limits = CallLimits { changes: 2, change_uri_bytes: 3, ..CallLimits::default() };
        let resource = |uri: &str| Change::Resource(uri.into());
        let table: [(&[Change], &[Change]); 4] = [
            (&[Change::Tools, Change::Tools, Change::Prompts], &[Change::Tools, Change::Prompts]),
            (&[resource("b"), resource("a"), resource("a")], &[resource("a"), resource("b")]),
            (&[resource("a"), resource("b"), resource("c"), resource("d")], &[Change::Resources, resource("a"), resource("b")]),
            (&[resource("long")], &[Change::Resources]),
        ];
        for (noted, kept) in table {
            let mut changes = Changes::default();
            for change in noted {
                changes.note(change.clone(), &limits);
            }
            assert_eq!(changes.0.into_iter().collect::<Vec<_>>(), kept);
        }
    }
}
