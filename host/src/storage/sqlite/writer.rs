//! Writing to the file, on one thread: what waits is carried out in one transaction, which makes one wait for the disk of many.

use super::reader::{is_as_seen, usage};
use crate::storage::{Commit, CommitError, Part, Space, Usage};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension as _, Savepoint, Transaction, TransactionBehavior};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Changes in one transaction: enough to share the wait for the disk, few enough that other processes get their turn.
const GROUP_MAX: usize = 128;
/// Bytes of the values in one transaction, beyond those of its last change.
const GROUP_BYTES_MAX: usize = 4 << 20;

/// What is to be done.
pub(super) enum Change {
    Commit(Commit),
    Forget(Arc<str>),
}

/// What is to be done, and who waits for it.
pub(super) struct Order {
    pub(super) change: Change,
    pub(super) answer: oneshot::Sender<Result<(), CommitError>>,
}

/// Carries out orders until nobody can give any.
pub(super) fn run(mut connection: Connection, mut orders: mpsc::Receiver<Order>) {
    while let Some(first) = orders.blocking_recv() {
        let mut bytes = first.change.bytes();
        let mut group = vec![first];
        while group.len() < GROUP_MAX
            && bytes < GROUP_BYTES_MAX
            && let Ok(order) = orders.try_recv()
        {
            bytes = bytes.saturating_add(order.change.bytes());
            group.push(order);
        }
        carry_out(&mut connection, group);
    }
}

/// Carries a group out and answers each order of it.
fn carry_out(connection: &mut Connection, group: Vec<Order>) {
    let mut done = Vec::with_capacity(group.len());
    let mut waiting = group.into_iter();
    let written = (|| {
        let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for Order { change, answer } in waiting.by_ref() {
            // Whoever does not wait any more has withdrawn it.
            if answer.is_closed() {
                continue;
            }
            let outcome = one(&mut transaction, &change);
            done.push((answer, outcome));
            // Some errors, such as a full disk, undo the whole transaction.
            if transaction.is_autocommit() {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT),
                    Some("the transaction was undone".into()),
                ));
            }
        }
        transaction.commit()
    })();
    done.extend(waiting.map(|order| (order.answer, Ok(()))));
    for (answer, outcome) in done {
        let outcome = match (&written, outcome) {
            (Ok(()), outcome) => outcome,
            // What was refused is refused whatever became of the others.
            (Err(_), Err(refused)) => Err(refused),
            (Err(error), Ok(())) => Err(CommitError::Failed(format!("the storage cannot be written: {error}"))),
        };
        drop(answer.send(outcome));
    }
}

/// Carries one change out, or leaves no trace of it in the transaction.
fn one(transaction: &mut Transaction<'_>, change: &Change) -> Result<(), CommitError> {
    let point = transaction.savepoint().map_err(failed)?;
    match change {
        Change::Commit(commit) => apply(&point, commit)?,
        Change::Forget(name) => forget(&point, name).map_err(failed)?,
    }
    point.commit().map_err(failed)
}

fn failed(error: rusqlite::Error) -> CommitError {
    CommitError::Failed(format!("the storage cannot be written: {error}"))
}

fn apply(point: &Savepoint<'_>, commit: &Commit) -> Result<(), CommitError> {
    if !is_as_seen(point, commit).map_err(failed)? {
        return Err(CommitError::Conflict);
    }
    let mut realms: HashMap<&Arc<str>, (Usage, Usage)> = HashMap::new();
    let revision = next_revision(point).map_err(failed)?;
    for part in &commit.parts {
        if !realms.contains_key(&part.space.realm) {
            let before = usage(point, &part.space.realm).map_err(failed)?;
            realms.insert(&part.space.realm, (before, before));
        }
        if let Some((_, after)) = realms.get_mut(&part.space.realm) {
            write(point, part, revision, after).map_err(failed)?;
        }
    }
    for part in &commit.parts {
        let (before, after) = realms.get(&part.space.realm).copied().unwrap_or_default();
        part.quota.allow(before, after)?;
    }
    for (realm, (_, after)) in realms {
        set_usage(point, realm, after).map_err(failed)?;
    }
    Ok(())
}

fn next_revision(point: &Connection) -> rusqlite::Result<i64> {
    point.prepare_cached("UPDATE revision SET last = last + 1 RETURNING last")?.query_row([], |row| row.get(0))
}

/// Writes one part, and takes in what that does to the usage of its realm.
fn write(point: &Connection, part: &Part, revision: i64, usage: &mut Usage) -> rusqlite::Result<()> {
    if part.writes.is_empty() {
        return Ok(());
    }
    let space = space_id(point, &part.space, revision)?;
    let mut select = point.prepare_cached("SELECT id, length(value) FROM entry WHERE space = ?1 AND key = ?2")?;
    let mut insert = point.prepare_cached("INSERT INTO entry (space, key, value, revision) VALUES (?1, ?2, ?3, ?4)")?;
    let mut update = point.prepare_cached("UPDATE entry SET value = ?2, revision = ?3 WHERE id = ?1")?;
    let mut delete = point.prepare_cached("DELETE FROM entry WHERE id = ?1")?;
    let mut keys_changed = false;
    for (key, value) in &part.writes {
        let old: Option<(i64, i64)> = select.query_row((space, key), |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        match (old, value) {
            (Some((id, _)), Some(value)) => update.execute((id, &value[..], revision))?,
            (None, Some(value)) => insert.execute((space, key, &value[..], revision))?,
            (Some((id, _)), None) => delete.execute([id])?,
            (None, None) => 0,
        };
        keys_changed |= old.is_some() != value.is_some();
        let old = old.map(|(_, len)| usize::try_from(len).unwrap_or_default());
        usage.replace(key, old, value.as_ref().map(Bytes::len));
    }
    if keys_changed {
        point.prepare_cached("UPDATE space SET revision = ?2 WHERE id = ?1")?.execute((space, revision))?;
    }
    remove_if_empty(point, space)
}

fn remove_if_empty(point: &Connection, space: i64) -> rusqlite::Result<()> {
    let mut delete = point.prepare_cached("DELETE FROM space WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM entry WHERE space = ?1)")?;
    delete.execute([space]).map(drop)
}

/// A space's id; it and its realm are made where they are missing.
fn space_id(point: &Connection, space: &Space, revision: i64) -> rusqlite::Result<i64> {
    point.prepare_cached("INSERT INTO realm (name) VALUES (?1) ON CONFLICT DO NOTHING")?.execute([&*space.realm])?;
    let mut insert = point
        .prepare_cached("INSERT INTO space (realm, name, revision) SELECT id, ?2, ?3 FROM realm WHERE name = ?1 ON CONFLICT DO NOTHING")?;
    insert.execute((&*space.realm, &*space.name, revision))?;
    let mut select =
        point.prepare_cached("SELECT space.id FROM space JOIN realm ON realm.id = realm WHERE realm.name = ?1 AND space.name = ?2")?;
    select.query_row((&*space.realm, &*space.name), |row| row.get(0))
}

fn set_usage(point: &Connection, realm: &str, usage: Usage) -> rusqlite::Result<()> {
    let mut update = point.prepare_cached("UPDATE realm SET keys = ?2, bytes = ?3 WHERE name = ?1")?;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    update.execute((realm, signed(usage.keys), signed(usage.bytes))).map(drop)
}

fn forget(point: &Connection, name: &str) -> rusqlite::Result<()> {
    let mut select = point.prepare_cached(
        "SELECT space.id, space.realm, count(entry.id), coalesce(sum(length(CAST(key AS BLOB)) + length(value)), 0)
         FROM space LEFT JOIN entry ON entry.space = space.id WHERE space.name = ?1 GROUP BY space.id",
    )?;
    let found = select.query_map([name], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    let found: Vec<(i64, i64, i64, i64)> = found.collect::<rusqlite::Result<_>>()?;
    for (space, realm, keys, bytes) in found {
        point.prepare_cached("DELETE FROM entry WHERE space = ?1")?.execute([space])?;
        point.prepare_cached("DELETE FROM space WHERE id = ?1")?.execute([space])?;
        let mut update = point.prepare_cached("UPDATE realm SET keys = max(keys - ?2, 0), bytes = max(bytes - ?3, 0) WHERE id = ?1")?;
        update.execute((realm, keys, bytes))?;
    }
    Ok(())
}

impl Change {
    /// Bytes of the values in it.
    fn bytes(&self) -> usize {
        match self {
            Change::Commit(commit) => {
                let writes = commit.parts.iter().flat_map(|part| &part.writes);
                writes.filter_map(|(_, value)| value.as_ref()).map(Bytes::len).fold(0, usize::saturating_add)
            }
            Change::Forget(_) => 0,
        }
    }
}
