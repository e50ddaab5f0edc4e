//! Pooler: finds out whether something between this process and PostgreSQL shares its connections.
//!
//! A pooler that gives a connection away between two transactions takes the leader's lock with it, and one that leaves
//! out the settings of a session leaves out what ends the session of a leader that stands still. Either would let two
//! processes lead, so both are refused.

use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Row as _, pool::PoolConnection};

use super::SESSION;
use crate::error::Cause;

/// Which process of the server answers, asked without a prepared statement, which a shared connection may not have.
const WHO_ANSWERS: &str = "SELECT pg_backend_pid() AS pid";

/// A setting as the session began with it: what is about TCP reads as 0 otherwise where there is none.
const SETTING: &str = "SELECT reset_val FROM pg_settings WHERE name = ";

/// What PostgreSQL's poolers answer to a client that brings settings, unless they are told to leave them out.
const REFUSES_SETTINGS: &str = "unsupported startup parameter";

/// Why a database behind a pooler is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum PoolerError {
    #[error(
        "a pooler shares its connections among transactions, so that no process can be sure to lead: give store.url the \
         server's own address, or a pooler in session mode"
    )]
    SharesConnections,
    #[error(
        "a pooler refuses or leaves out the session setting {setting}, without which a leader that stands still is not \
         followed: give store.url the server's own address, or a pooler in session mode before a user who has the \
         settings that docs/operations.md lists"
    )]
    DropsSettings { setting: &'static str },
}

/// Refuses a pooler that shares connections or drops settings.
pub(super) async fn refuse(pool: &PgPool) -> Result<(), Cause> {
    let (mut one, mut other) = match acquire_two(pool).await {
        Ok(both) => both,
        Err(error) if error.to_string().contains(REFUSES_SETTINGS) => {
            let setting = SESSION[0].0;
            return Err(PoolerError::DropsSettings { setting }.into());
        }
        Err(error) => return Err(error.into()),
    };
    let first = who_answers(&mut one).await?;
    // Holds its connection of the server until it ends.
    sqlx::raw_sql("BEGIN").execute(&mut *other).await?;
    if who_answers(&mut other).await? == first || who_answers(&mut one).await? != first {
        return Err(PoolerError::SharesConnections.into());
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await?;
    for (setting, wanted) in SESSION {
        let asked = AssertSqlSafe(format!("{SETTING}'{setting}'"));
        let row = sqlx::raw_sql(asked).fetch_one(&mut *one).await?;
        if row.try_get::<String, _>("reset_val")? != wanted {
            return Err(PoolerError::DropsSettings { setting }.into());
        }
    }
    Ok(())
}

async fn acquire_two(
    pool: &PgPool,
) -> Result<(PoolConnection<Postgres>, PoolConnection<Postgres>), sqlx::Error> {
    let one = pool.acquire().await?;
    let other = pool.acquire().await?;
    Ok((one, other))
}

async fn who_answers(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    let row = sqlx::raw_sql(WHO_ANSWERS).fetch_one(connection).await?;
    row.try_get("pid")
}
