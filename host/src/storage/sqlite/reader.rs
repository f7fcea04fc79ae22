//! Reading from the file, on threads of their own.

use super::{schema, spawn, stopped};
use crate::storage::{Commit, Failed, Page, Record, Space, Usage};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// Threads that read, each with a connection.
pub(super) const READERS: usize = 2;
/// Reads that may wait for one of them; who comes then waits outside.
const READS_WAITING_MAX: usize = 1_024;

/// Reads something and hands it over.
pub(super) type Read = Box<dyn FnOnce(&Connection) + Send>;

/// The threads that read. They end when this is dropped.
pub(super) struct Readers(mpsc::Sender<Read>);

impl Readers {
    pub(super) fn start(path: &Path) -> Result<Self, Failed> {
        let (reads, incoming) = mpsc::channel::<Read>(READS_WAITING_MAX);
        let incoming = Arc::new(Mutex::new(incoming));
        for _ in 0..READERS {
            let (connection, incoming) = (schema::open_reader(path)?, incoming.clone());
            spawn("storage-reader", move || {
                // The idle one that holds the lock waits for the next read, the others for the lock.
                let next = || incoming.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
                while let Some(read) = next() {
                    read(&connection);
                }
            })?;
        }
        Ok(Self(reads))
    }

    pub(super) async fn send(&self, read: Read) -> Result<(), Failed> {
        self.0.send(read).await.map_err(|_| stopped())
    }
}

pub(super) fn get(
    connection: &Connection,
    space: &Space,
    keys: &[String],
    bytes_max: usize,
) -> rusqlite::Result<Option<Vec<Option<Record>>>> {
    let Some((id, _)) = find_space(connection, space)? else { return Ok(Some(vec![None; keys.len()])) };
    let mut select = connection.prepare_cached("SELECT value, revision FROM entry WHERE space = ?1 AND key = ?2")?;
    let mut left = bytes_max;
    let mut records = Vec::new();
    for key in keys {
        let record = |row: &rusqlite::Row<'_>| {
            let value = row.get_ref(0)?.as_blob()?;
            let Some(rest) = left.checked_sub(value.len()) else { return Ok(None) };
            left = rest;
            Ok(Some(Record { value: Bytes::copy_from_slice(value), revision: unsigned(row.get(1)?) }))
        };
        match select.query_row((id, key), record).optional()? {
            Some(None) => return Ok(None),
            found => records.push(found.flatten()),
        }
    }
    Ok(Some(records))
}

pub(super) fn keys(connection: &Connection, space: &Space, after: Option<&str>, len: usize) -> rusqlite::Result<Page> {
    let Some((id, revision)) = find_space(connection, space)? else { return Ok(Page::default()) };
    // One more tells whether there are more. No key is empty, so that all come after the empty one.
    let mut select = connection.prepare_cached("SELECT key FROM entry WHERE space = ?1 AND key > ?2 ORDER BY key LIMIT ?3")?;
    let limit = i64::try_from(len).unwrap_or(i64::MAX).saturating_add(1);
    let found = select.query_map((id, after.unwrap_or_default(), limit), |row| row.get(0))?;
    let mut keys: Vec<String> = found.collect::<rusqlite::Result<_>>()?;
    let more = keys.len() > len;
    keys.truncate(len);
    Ok(Page { keys, more, revision })
}

pub(super) fn spaces(connection: &Connection, realm: &Arc<str>) -> rusqlite::Result<Vec<Space>> {
    let mut select = connection
        .prepare_cached("SELECT space.name FROM space JOIN realm ON realm.id = realm WHERE realm.name = ?1 ORDER BY space.name")?;
    let found = select.query_map([&**realm], |row| row.get::<_, String>(0))?;
    found.map(|name| Ok(Space { realm: realm.clone(), name: name?.into() })).collect()
}

pub(super) fn usage(connection: &Connection, realm: &str) -> rusqlite::Result<Usage> {
    let mut select = connection.prepare_cached("SELECT keys, bytes FROM realm WHERE name = ?1")?;
    let found = select.query_row([realm], |row| Ok(Usage { keys: unsigned(row.get(0)?), bytes: unsigned(row.get(1)?) }));
    Ok(found.optional()?.unwrap_or_default())
}

/// Whether all is as the maker of a commit saw it.
pub(super) fn is_as_seen(connection: &Connection, commit: &Commit) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached("SELECT revision FROM entry WHERE space = ?1 AND key = ?2")?;
    for part in &commit.parts {
        let space = find_space(connection, &part.space)?;
        if part.listed.is_some_and(|listed| listed != space.map_or(0, |(_, revision)| revision)) {
            return Ok(false);
        }
        for (key, seen) in &part.seen {
            let revision: Option<i64> = match space {
                Some((id, _)) => select.query_row((id, key), |row| row.get(0)).optional()?,
                None => None,
            };
            if revision.map(unsigned) != *seen {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A space's id and revision, if it has keys.
fn find_space(connection: &Connection, space: &Space) -> rusqlite::Result<Option<(i64, u64)>> {
    let mut select = connection.prepare_cached(
        "SELECT space.id, space.revision FROM space JOIN realm ON realm.id = realm WHERE realm.name = ?1 AND space.name = ?2",
    )?;
    select.query_row((&*space.realm, &*space.name), |row| Ok((row.get(0)?, unsigned(row.get(1)?)))).optional()
}

/// A number that was never below 0.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
