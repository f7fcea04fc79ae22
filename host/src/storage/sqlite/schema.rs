//! How the file is laid out, and how connections to it are set up.

use crate::storage::Failed;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Version of the layout below, kept in the file's `user_version`.
const LAYOUT: i64 = 1;
/// Says in the file whose it is: `GHst`.
const APPLICATION_ID: i64 = 0x4748_7374;
/// How long another process may hold the file.
const BUSY_MS_MAX: u64 = 10_000;
/// How long to wait before trying again what SQLite itself does not wait for.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// What the file's log may keep of its size when it starts over.
const LOG_BYTES_MAX: i64 = 16 << 20;

/// Names are text for the people who look into the file. A space is gone when its last key is.
const TABLES: &str = "
    CREATE TABLE revision (last INTEGER NOT NULL);
    INSERT INTO revision VALUES (0);
    CREATE TABLE realm (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        keys INTEGER NOT NULL DEFAULT 0,
        bytes INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE space (
        id INTEGER PRIMARY KEY,
        realm INTEGER NOT NULL REFERENCES realm (id),
        name TEXT NOT NULL,
        revision INTEGER NOT NULL,
        UNIQUE (realm, name)
    );
    CREATE TABLE entry (
        id INTEGER PRIMARY KEY,
        space INTEGER NOT NULL REFERENCES space (id),
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        revision INTEGER NOT NULL,
        UNIQUE (space, key)
    );";

/// Opens the file for writing, and lays it out if it is new.
pub(super) fn open(path: &Path) -> Result<Connection, Failed> {
    let shown = path.display();
    let opened = when_free(|| {
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
        let layout = lay_out(&mut connection)?;
        Ok((connection, layout))
    });
    match opened {
        Ok((connection, LAYOUT)) => Ok(connection),
        Ok((_, layout)) => Err(Failed(format!(
            "the storage `{shown}` was made by another version of this program (layout {layout}, and this one knows {LAYOUT}); use that version, or name another file with `path` in [storage]"
        ))),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(Failed(format!("the storage `{shown}` is no SQLite file; name another with `path` in [storage], or remove it")))
        }
        Err(error) => Err(Failed(format!("the storage `{shown}` cannot be opened ({error}); name another file with `path` in [storage]"))),
    }
}

/// Opens the file for reading.
pub(super) fn open_reader(path: &Path) -> Result<Connection, Failed> {
    let opened = when_free(|| {
        // Readers of a log need to write to its index.
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    });
    opened.map_err(|error| Failed(format!("the storage `{}` cannot be read ({error}); check its permissions", path.display())))
}

/// Runs a read in a transaction of its own, so that it sees the file as it is at one moment.
pub(super) fn at_one_moment<T>(connection: &Connection, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Failed> {
    let result = (|| {
        let moment = connection.unchecked_transaction()?;
        let result = read(&moment)?;
        moment.commit()?;
        Ok(result)
    })();
    result.map_err(|error: rusqlite::Error| Failed(format!("the storage cannot be read: {error}")))
}

fn connect(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_millis(BUSY_MS_MAX))?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Lays a new file out; says which layout a file has.
fn lay_out(connection: &mut Connection) -> rusqlite::Result<i64> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let layout: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if layout != 0 || tables != 0 {
        return Ok(layout);
    }
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", LAYOUT)?;
    transaction.commit()?;
    Ok(LAYOUT)
}

/// Tries until no other process is in the way. SQLite waits by itself for most things, but not while a file gets its log.
fn when_free<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let until = Instant::now() + Duration::from_millis(BUSY_MS_MAX);
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < until => sleep(BUSY_PAUSE),
            outcome => return outcome,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
