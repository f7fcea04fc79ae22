//! The storage as the hosts of one configuration see it: with realms of their own, in a file that all of a user's hosts share.

use super::{Backend, Commit, CommitError, Failed, Page, Part, Record, Space, Usage};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Kinds of realms that are everybody's: a token that one host has seen used is used for all hosts that can open it.
const SHARED: [&str; 1] = ["replays"];

/// A storage in which every realm is the owner's, but those that are everybody's.
pub(super) struct Owned {
    pub(super) whole: Box<dyn Backend>,
    pub(super) owner: String,
}

impl Owned {
    /// What a realm is called in the whole storage: the owner comes after its kind. Neither has a slash.
    fn realm(&self, realm: &str) -> Arc<str> {
        let owner = &self.owner;
        match realm.split_once('/') {
            Some((kind, _)) if SHARED.contains(&kind) => realm.into(),
            Some((kind, rest)) => format!("{kind}/{owner}/{rest}").into(),
            None => format!("{realm}/{owner}").into(),
        }
    }

    fn space(&self, space: Space) -> Space {
        Space { realm: self.realm(&space.realm), ..space }
    }
}

impl Backend for Owned {
    fn get_within(&self, space: Space, keys: Vec<String>, bytes_max: usize) -> BoxFuture<'_, Result<Option<Vec<Option<Record>>>, Failed>> {
        self.whole.get_within(self.space(space), keys, bytes_max)
    }

    fn keys(&self, space: Space, after: Option<String>, len: usize) -> BoxFuture<'_, Result<Page, Failed>> {
        self.whole.keys(self.space(space), after, len)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), CommitError>> {
        let parts = commit.parts.into_iter().map(|part| Part { space: self.space(part.space.clone()), ..part });
        self.whole.commit(Commit { parts: parts.collect() })
    }

    fn spaces(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Vec<Space>, Failed>> {
        let found = self.whole.spaces(self.realm(&realm));
        Box::pin(async move {
            let found = found.await?.into_iter();
            Ok(found.map(|space| Space { realm: realm.clone(), ..space }).collect())
        })
    }

    fn usage(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Usage, Failed>> {
        self.whole.usage(self.realm(&realm))
    }

    fn forget(&self, name: Arc<str>) -> BoxFuture<'_, Result<(), Failed>> {
        self.whole.forget(name)
    }

    fn node(&self) -> &str {
        self.whole.node()
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, Failed>> {
        self.whole.nodes()
    }
}
