//! SQLite and PostgreSQL behind one interface: connections, statements, rows.
//!
//! The two understand the same SQL nearly everywhere, so a statement is written once, with `$1`, `$2`, …
//! for its parameters, and only where they differ twice ([`Sql`]). Many rows travel as one JSON
//! parameter ([`over_rows`]), or where that is too slow as many parameters ([`Bound`]): one statement for a
//! batch costs little more than one for a row. Every
//! number is a 64-bit integer and every flag 0 or 1, so that there is one way to read a column.

mod answer;
mod backup_file;
mod bound;
mod connection;
mod file;
mod folding;
mod network_disk;
mod other_writers;
mod postgres;
#[cfg(feature = "private-cluster")]
pub mod private_cluster;
#[cfg(feature = "private-cluster")]
mod recording;
mod room;
mod row;
mod schema;
mod sqlite;
mod statement;
mod syncs;
mod table;
mod turn;

pub use self::schema::SchemaVersion;
pub(crate) use self::{
    backup_file::{BackupFile, UnfinishedBackup},
    bound::{Bound, bound_rows},
    connection::{Connection, Durability, PendingWrite},
    postgres::{PostgresDatabase, PostgresLeadership},
    row::{Row, signed, unsigned},
    sqlite::{SqliteDatabase, SqliteLeadership},
    statement::{Kind, Sql, Value, Values, database_time, json_rows, over_rows, values},
    table::{Table, number_on},
};
