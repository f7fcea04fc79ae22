//! Sessions that have a bucket: what is in it goes when the session is over.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use super::names::session_space;
use crate::identity::Departures;
use crate::storage::Storage;

/// Which sessions of this process have written to a bucket of theirs, of whichever guest. Cloning is cheap.
#[derive(Clone, Default)]
pub struct Sessions(Arc<Mutex<HashSet<Arc<str>>>>);

impl Sessions {
    /// No session yet. The buckets of those that are over are emptied, on the runtime that this is called in.
    pub fn new(storage: &Storage, departures: &Departures) -> Self {
        let sessions = Self::default();
        let (written, storage, runtime) = (sessions.clone(), storage.clone(), Handle::current());
        departures.tell(move |session| {
            if written.lock().remove(session) {
                let (storage, session) = (storage.clone(), session.clone());
                runtime.spawn(async move {
                    let Some(backend) = storage.opened() else { return };
                    // What is left now goes when the next process looks.
                    if let Err(error) = backend.forget(session_space(backend.node(), &session).into()).await {
                        tracing::error!("the state of a session that is over cannot be removed: {error}");
                    }
                });
            }
        });
        sessions
    }

    /// A session may have something in its bucket.
    pub(super) fn note(&self, session: Arc<str>) {
        self.lock().insert(session);
    }

    /// No code panics while it holds the lock; were it ever to, the state would still be whole.
    fn lock(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::keyvalue::{forget_departed, realm};
    use crate::identity::{Identity, local};
    use crate::storage::{Backend, Commit, Part, Quota, Space, Sqlite};

    async fn put(backend: &dyn Backend, name: String) {
        let mut part = Part::new(Space { realm: realm("g"), name: name.into() }, Quota::NONE);
        part.writes = vec![("k".into(), Some("v".into()))];
        backend.commit(Commit { parts: vec![part] }).await.unwrap();
    }

    async fn names(backend: &dyn Backend) -> Vec<String> {
        backend.spaces(realm("g")).await.unwrap().into_iter().map(|space| space.name.to_string()).collect()
    }

    #[tokio::test]
    async fn what_a_session_wrote_goes_with_it() {
        let (storage, departures) = (Storage::memory(), Departures::default());
        let sessions = Sessions::new(&storage, &departures);
        let backend = storage.open().await.unwrap();
        let [one, two] = ["one", "two"].map(|session| Identity { session: Some(session.into()), ..local() });
        for caller in [&one, &two] {
            sessions.note(caller.session.clone().unwrap());
            put(backend, session_space("memory", caller.session.as_ref().unwrap())).await;
        }
        let lasting = departures.presence(&two);
        drop(departures.presence(&one));
        while names(backend).await.len() > 1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(names(backend).await, ["session/memory/two"]);
        drop(lasting);
    }

    #[tokio::test]
    async fn what_sessions_of_another_process_left_goes_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/state.db");
        let (here, there) = (Sqlite::open(&path).await.unwrap(), Sqlite::open(&path).await.unwrap());
        for name in [session_space(here.node(), "a"), session_space(there.node(), "b"), session_space("gone", "c"), "guest".into()] {
            put(&here, name).await;
        }
        let mut left = vec!["guest".to_owned(), session_space(here.node(), "a"), session_space(there.node(), "b")];
        left.sort();
        forget_departed(&here, "g").await.unwrap();
        assert_eq!(names(&here).await, left);
        let gone = session_space(there.node(), "b");
        drop(there);
        forget_departed(&here, "g").await.unwrap();
        left.retain(|name| *name != gone);
        assert_eq!(names(&here).await, left);
    }
}
