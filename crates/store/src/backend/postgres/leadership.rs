//! Leadership in PostgreSQL: the advisory lock and the lease of the leader.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection, postgres::PgConnectOptions};

use crate::{
    StoreError,
    backend::{answer::in_time, statement::database_time},
};

/// How long the leader waits for an answer on the connection that holds its lock. The row of the lease may be held for
/// as long as [`super::SESSION`] lets a transaction stand still.
const LEADER_TIMEOUT: Duration = Duration::from_secs(10);

const ACQUIRE: &str = concat!(
    "UPDATE leadership SET epoch = epoch + 1, until = ",
    database_time!(postgres),
    " + $1 RETURNING epoch"
);

const RENEW: &str = concat!(
    "UPDATE leadership SET until = ",
    database_time!(postgres),
    " + $2 WHERE epoch = $1"
);

const GIVE_BACK: &str = "UPDATE leadership SET until = NULL WHERE epoch = $1";

/// Ends the session that holds the leader's lock, if its lease is over and it has said nothing for as long as a lease: its
/// process is stopped or cut off. There is no lease before a leader notes its first one, and none any more once it gives the
/// leadership back; who is stopped there holds the lock all the same. A time that has passed says nothing about a session
/// that took the free lock a moment ago and notes its own lease next, and one whose statement runs is waited for by its
/// process, not the other way round. Where another account's session does not show its state, the lease alone decides.
const DEPOSE: &str = concat!(
    "SELECT pg_terminate_backend(l.pid) FROM leadership, pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE (leadership.until IS NULL OR leadership.until < ",
    database_time!(postgres),
    ") AND a.state IS DISTINCT FROM 'active'
         AND CASE WHEN a.state_change IS NULL THEN leadership.until IS NOT NULL
             ELSE a.state_change < clock_timestamp() - CAST($2 AS BIGINT) * INTERVAL '1 millisecond' END
         AND l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
         AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND (CAST(CAST(l.classid AS BIGINT) AS BIT(32)) || CAST(CAST(l.objid AS BIGINT) AS BIT(32)))
             = CAST(CAST($1 AS BIGINT) AS BIT(64))"
);

/// Pause before another try to take the lock of a session that was ended, and how many tries.
const DEPOSED_PAUSE: Duration = Duration::from_millis(50);
const DEPOSED_TRIES: u32 = 20;

/// Number of the advisory lock of the leader: the first bytes of "sluice.l". Any number does that is not
/// used for something else in the same database.
const LEADER_LOCK: i64 = 0x736c_7569_6365_2e6c;

/// The connection that holds the lock of the leader, and the leader's epoch.
#[derive(Debug)]
pub(crate) struct PostgresLeadership {
    connection: PgConnection,
    epoch: i64,
}

impl PostgresLeadership {
    /// Takes the lock of the leader and a new epoch, unless another session holds the lock and its lease is not over. The
    /// lock lives and dies with a connection of its own.
    pub(super) async fn try_acquire(
        options: &PgConnectOptions,
        lease: Duration,
    ) -> Result<Option<Self>, StoreError> {
        let acquiring = async {
            let mut connection = PgConnection::connect_with(options).await?;
            if !lock_leadership(&mut connection, lease).await? {
                connection.close().await?;
                return Ok(None);
            }
            let epoch: i64 = sqlx::query_scalar(ACQUIRE)
                .bind(millis(lease))
                .fetch_one(&mut connection)
                .await?;
            Ok(Some(Self { connection, epoch }))
        };
        in_time(LEADER_TIMEOUT, acquiring).await
    }

    pub(crate) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Renews the lease. Fails when the connection, and with it the lock, is gone, or the epoch is another's.
    pub(crate) async fn renew(&mut self, lease: Duration) -> Result<(), StoreError> {
        let renewing = sqlx::query(RENEW)
            .bind(self.epoch)
            .bind(millis(lease))
            .execute(&mut self.connection);
        match in_time(LEADER_TIMEOUT, renewing).await?.rows_affected() {
            0 => Err(StoreError::NotLeader),
            _ => Ok(()),
        }
    }

    /// Gives the lease and the lock back.
    pub(crate) async fn release(mut self) -> Result<(), StoreError> {
        let releasing = async {
            sqlx::query(GIVE_BACK)
                .bind(self.epoch)
                .execute(&mut self.connection)
                .await?;
            // Not by closing alone, after which the server takes its time to end the session.
            sqlx::query("SELECT pg_advisory_unlock($1)")
                .bind(LEADER_LOCK)
                .execute(&mut self.connection)
                .await?;
            self.connection.close().await
        };
        in_time(LEADER_TIMEOUT, releasing).await
    }
}

/// Takes the leader's lock, from a session whose lease is over if need be. False when another one holds it rightly.
async fn lock_leadership(
    connection: &mut PgConnection,
    lease: Duration,
) -> Result<bool, sqlx::Error> {
    if try_lock(connection).await? {
        return Ok(true);
    }
    let deposed: Vec<bool> = sqlx::query_scalar(DEPOSE)
        .bind(LEADER_LOCK)
        .bind(millis(lease))
        .fetch_all(&mut *connection)
        .await?;
    if deposed.is_empty() {
        return Ok(false);
    }
    for _ in 0..DEPOSED_TRIES {
        if try_lock(connection).await? {
            return Ok(true);
        }
        tokio::time::sleep(DEPOSED_PAUSE).await;
    }
    Ok(false)
}

async fn try_lock(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
        .bind(LEADER_LOCK)
        .fetch_one(connection)
        .await
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
