//! Storage in one SQLite file, which several processes may share.
//!
//! One thread writes, and carries out what waits for it in one transaction, each commit checked by itself; a few threads read. A
//! commit is answered when the file's log is on the disk.

mod nodes;
mod reader;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use super::{Backend, Commit, CommitError, Failed, Page, Record, Space, Usage, folder};
use futures_util::future::BoxFuture;
use nodes::Node;
use reader::{Read, Readers};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use writer::{Change, Order};

/// Commits that may wait for the writer; who comes then waits outside.
const COMMITS_WAITING_MAX: usize = 1_024;

/// Keeps everything in a file of SQLite.
pub struct Sqlite {
    orders: mpsc::Sender<Order>,
    readers: Readers,
    node: Arc<Node>,
}

impl Sqlite {
    /// Opens the file, or creates it, in a folder that is the owner's alone.
    pub async fn open(path: &Path) -> Result<Self, Failed> {
        let path = path.to_owned();
        let (answer, opened) = oneshot::channel();
        let start = move || drop(answer.send(Self::open_here(&path)));
        spawn("storage-open", start)?;
        opened.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// The same on this thread, which may have to wait for another process.
    pub fn open_here(path: &Path) -> Result<Self, Failed> {
        folder::prepare(path)?;
        let connection = schema::open(path)?;
        let node = Arc::new(Node::enter(path)?);
        let readers = Readers::start(path)?;
        let (orders, incoming) = mpsc::channel(COMMITS_WAITING_MAX);
        spawn("storage-writer", move || writer::run(connection, incoming))?;
        Ok(Self { orders, readers, node })
    }

    async fn change(&self, change: Change) -> Result<(), CommitError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.orders.send(Order { change, answer }).await;
        sent.map_err(|_| stopped())?;
        answered.await.unwrap_or_else(|_| Err(stopped().into()))
    }

    async fn read<T: Send + 'static>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static) -> Result<T, Failed> {
        let (answer, answered) = oneshot::channel();
        let read: Read = Box::new(move |connection| {
            // Whoever does not wait any more needs no answer, and nobody else is to wait for it.
            if answer.is_closed() {
                return;
            }
            drop(answer.send(schema::at_one_moment(connection, read)));
        });
        self.readers.send(read).await?;
        answered.await.unwrap_or_else(|_| Err(stopped()))
    }
}

impl Backend for Sqlite {
    fn get_within(&self, space: Space, keys: Vec<String>, bytes_max: usize) -> BoxFuture<'_, Result<Option<Vec<Option<Record>>>, Failed>> {
        Box::pin(self.read(move |connection| reader::get(connection, &space, &keys, bytes_max)))
    }

    fn keys(&self, space: Space, after: Option<String>, len: usize) -> BoxFuture<'_, Result<Page, Failed>> {
        Box::pin(self.read(move |connection| reader::keys(connection, &space, after.as_deref(), len)))
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<(), CommitError>> {
        Box::pin(async move {
            if commit.parts.iter().any(|part| !part.writes.is_empty()) {
                return self.change(Change::Commit(commit)).await;
            }
            let as_seen = self.read(move |connection| reader::is_as_seen(connection, &commit)).await?;
            if as_seen { Ok(()) } else { Err(CommitError::Conflict) }
        })
    }

    fn spaces(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Vec<Space>, Failed>> {
        Box::pin(self.read(move |connection| reader::spaces(connection, &realm)))
    }

    fn usage(&self, realm: Arc<str>) -> BoxFuture<'_, Result<Usage, Failed>> {
        Box::pin(self.read(move |connection| reader::usage(connection, &realm)))
    }

    fn forget(&self, name: Arc<str>) -> BoxFuture<'_, Result<(), Failed>> {
        Box::pin(async move {
            self.change(Change::Forget(name)).await.map_err(|error| match error {
                CommitError::Failed(text) | CommitError::Quota(text) => Failed(text),
                CommitError::Conflict => Failed("a space was changed while it was emptied".into()),
            })
        })
    }

    fn node(&self) -> &str {
        &self.node.name
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, Failed>> {
        let node = self.node.clone();
        // The folder is small, and yet it is one of the disk.
        Box::pin(async move { self.read(move |_| Ok(node.all())).await? })
    }
}

/// A thread of the storage. Those of the runtimes belong to guests and connections.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failed> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn(work);
    spawned.map(drop).map_err(|error| Failed(format!("no thread can be started for the storage: {error}")))
}

fn stopped() -> Failed {
    Failed("the storage has stopped".into())
}
