//! [`Turn`]: the turn to write to SQLite's file within this process, with the one connection that does, and [`WriteTransaction`].
//!
//! The connection is handed on with the turn. In the library's pool each transaction would wait until it was given back and answered
//! a ping, which takes as long as a small statement.

use std::sync::Arc;

use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{runtime::Handle, sync::OwnedMutexGuard};

use super::folding::Folding;

/// Who holds this writes.
#[derive(Debug)]
pub(super) struct Turn {
    options: SqliteConnectOptions,
    /// None where it was not known what it was in the middle of; another is opened when it is needed.
    connection: Option<SqliteConnection>,
    is_closed: bool,
    /// Is told of each transaction that was committed.
    folding: Arc<Folding>,
}

/// A transaction that writes. Dropping it undoes it, before anybody else has a turn.
#[derive(Debug)]
pub(crate) struct WriteTransaction(Option<OwnedMutexGuard<Turn>>);

impl Turn {
    /// A turn with this connection, and with others as these options say when it is lost.
    pub(super) const fn of(
        connection: SqliteConnection,
        options: SqliteConnectOptions,
        folding: Arc<Folding>,
    ) -> Self {
        Self {
            options,
            connection: Some(connection),
            is_closed: false,
            folding,
        }
    }

    pub(super) const fn options(&self) -> &SqliteConnectOptions {
        &self.options
    }

    /// The connection, in no transaction.
    pub(super) async fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        if self.is_closed {
            return Err(sqlx::Error::PoolClosed);
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => SqliteConnection::connect_with(&self.options).await?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Closes the connection for good.
    pub(super) async fn close(&mut self) {
        self.is_closed = true;
        if let Some(connection) = self.connection.take() {
            // What is in the log stays there, where everybody reads it.
            let _ = connection.close().await;
        }
    }

    /// Undoes what was not committed. Where a disk is full SQLite has undone it by itself, and refuses to do it once more; a
    /// connection that cannot is in no known state.
    async fn undo(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && sqlx::query("ROLLBACK")
                .execute(&mut connection)
                .await
                .is_ok()
        {
            self.connection = Some(connection);
        }
    }
}

impl WriteTransaction {
    /// A transaction that has not begun.
    pub(super) const fn of(turn: OwnedMutexGuard<Turn>) -> Self {
        Self(Some(turn))
    }

    /// Takes the write lock. IMMEDIATE takes it at once: a transaction that began by reading could not be upgraded after another
    /// process wrote, and would fail without waiting.
    pub(super) async fn begin(&mut self) -> Result<(), sqlx::Error> {
        let turn = self.0.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        let connection = turn.connection().await?;
        let begun = sqlx::query("BEGIN IMMEDIATE").execute(connection).await;
        begun.map(drop)
    }

    pub(super) fn connection(&mut self) -> Result<&mut SqliteConnection, sqlx::Error> {
        let turn = self.0.as_mut();
        let connection = turn.and_then(|turn| turn.connection.as_mut());
        connection.ok_or(sqlx::Error::PoolClosed)
    }

    pub(super) async fn commit(mut self) -> Result<(), sqlx::Error> {
        sqlx::query("COMMIT").execute(self.connection()?).await?;
        if let Some(turn) = self.0.take() {
            turn.folding.committed();
        }
        Ok(())
    }
}

impl Drop for WriteTransaction {
    fn drop(&mut self) {
        let Some(mut turn) = self.0.take() else {
            return;
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { turn.undo().await })),
            // Closing it undoes the transaction too.
            Err(_) => turn.connection = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sqlx::{Row as _, SqlitePool};
    use tokio::{runtime::Runtime, sync::Mutex};

    use super::*;
    use crate::backend::file::DatabaseFile;

    /// A turn with a table, and with a temporary one that goes with the connection.
    async fn turn(folder: &Path) -> Arc<Mutex<Turn>> {
        let path = folder.join("sluice.db");
        let options = SqliteConnectOptions::new().filename(&path);
        let options = options.create_if_missing(true);
        let opened = SqliteConnection::connect_with(&options).await;
        let mut connection = opened.expect("opens");
        for table in ["CREATE TABLE numbers (n)", "CREATE TEMP TABLE kept (n)"] {
            let created = sqlx::query(table).execute(&mut connection).await;
            created.expect("creates");
        }
        let file = Arc::new(DatabaseFile::identify(&path, &path).expect("exists"));
        let pool = SqlitePool::connect_lazy_with(options.clone());
        let folding = Arc::new(Folding::of(file, pool));
        Arc::new(Mutex::new(Turn::of(connection, options, folding)))
    }

    async fn inserted(turn: &Arc<Mutex<Turn>>) -> WriteTransaction {
        let mut transaction = WriteTransaction::of(Arc::clone(turn).lock_owned().await);
        transaction.begin().await.expect("begins");
        run(&mut transaction, "INSERT INTO numbers VALUES (1)").await;
        transaction
    }

    async fn run(transaction: &mut WriteTransaction, statement: &'static str) {
        let connection = transaction.connection().expect("is open");
        let done = sqlx::query(statement).execute(connection).await;
        done.expect("runs");
    }

    /// How many numbers there are, and whether the connection is the one from the beginning.
    async fn found(turn: &Arc<Mutex<Turn>>) -> (i64, bool) {
        let mut turn = turn.lock().await;
        let connection = turn.connection().await.expect("is open");
        let found =
            "SELECT (SELECT count(*) FROM numbers), (SELECT count(*) FROM sqlite_temp_schema)";
        let found = sqlx::query(found).fetch_one(connection).await;
        let found = found.expect("reads");
        (found.get(0), found.get::<i64, _>(1) == 1)
    }

    #[tokio::test]
    async fn what_is_dropped_is_undone_before_the_next_turn_and_the_connection_is_handed_on() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let turn = turn(folder.path()).await;
        drop(inserted(&turn).await);
        assert_eq!(found(&turn).await, (0, true));
        inserted(&turn).await.commit().await.expect("commits");
        assert_eq!(found(&turn).await, (1, true));
    }

    #[tokio::test]
    async fn a_connection_that_refuses_to_undo_is_replaced() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let turn = turn(folder.path()).await;
        let mut transaction = inserted(&turn).await;
        // As SQLite does by itself where the disk is full.
        run(&mut transaction, "ROLLBACK").await;
        drop(transaction);
        assert_eq!(found(&turn).await, (0, false));
        inserted(&turn).await.commit().await.expect("commits");
        assert_eq!(found(&turn).await, (1, false));
    }

    #[test]
    fn what_is_dropped_when_the_runtime_is_gone_is_undone_too() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let first = Runtime::new().expect("starts");
        let (turn, transaction) = first.block_on(async {
            let turn = turn(folder.path()).await;
            let transaction = inserted(&turn).await;
            (turn, transaction)
        });
        drop(first);
        drop(transaction);
        let second = Runtime::new().expect("starts");
        assert_eq!(second.block_on(found(&turn)), (0, false));
    }

    #[tokio::test]
    async fn nothing_is_written_after_it_is_closed() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let turn = turn(folder.path()).await;
        turn.lock().await.close().await;
        let mut transaction = WriteTransaction::of(Arc::clone(&turn).lock_owned().await);
        let begun = transaction.begin().await;
        assert!(matches!(begun, Err(sqlx::Error::PoolClosed)), "{begun:?}");
    }
}
