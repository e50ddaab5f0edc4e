//! Pooler: finds out whether something between this process and PostgreSQL shares its connections.
//!
//! A pooler that gives a connection away between two transactions takes the leader's lock with it, and one that leaves
//! out the settings of a session leaves out what ends the session of a leader that stands still. Either would let two
//! processes lead, so both are refused.

use std::mem;

use sqlx::{AssertSqlSafe, PgConnection, PgPool, Postgres, Row as _, pool::PoolConnection};

use super::SESSION;
use crate::{StoreError, backend::answer::answered, error::Cause};

/// Which process of the server answers, asked without a prepared statement, which a shared connection may not have; and the same
/// of a transaction that holds its connection of the server until it ends.
const WHO_ANSWERS: &str = "SELECT pg_backend_pid() AS pid";
const WHO_HOLDS: &str = "BEGIN; SELECT pg_backend_pid() AS pid";

/// How often two clients ask who answers them, one while the other holds a transaction. A pooler that shares its connections
/// passes a round in which chance gives both what they had before. That is likeliest where others keep all of its connections
/// busy but two: the first client is given either of these, and the second what is left. So all rounds are passed once in
/// 2^32 times at most, and where it has more to choose from much more rarely.
const ROUNDS: u32 = 32;

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
    if shares_connections(&mut one, &mut other).await? {
        return Err(PoolerError::SharesConnections.into());
    }
    for (setting, wanted) in SESSION {
        let asked = AssertSqlSafe(format!("{SETTING}'{setting}'"));
        let row = answered(sqlx::raw_sql(asked).fetch_one(&mut *one)).await?;
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

/// Whether one of two clients is ever answered by another process of the server than before, or both by the same one. The server
/// itself, and a pooler in session mode, give each client a process of its own for as long as it is connected.
async fn shares_connections(
    one: &mut PgConnection,
    other: &mut PgConnection,
) -> Result<bool, StoreError> {
    let (mut holder, mut asker) = (
        (who_answers(one, WHO_ANSWERS).await?, one),
        (who_answers(other, WHO_ANSWERS).await?, other),
    );
    if holder.0 == asker.0 {
        return Ok(true);
    }
    for round in 0..ROUNDS {
        if who_answers(holder.1, WHO_HOLDS).await? != holder.0
            || who_answers(asker.1, WHO_ANSWERS).await? != asker.0
        {
            return Ok(true);
        }
        answered(sqlx::raw_sql("ROLLBACK").execute(&mut *holder.1)).await?;
        // A pooler that nobody else uses deals its connections out in one order: the last one first, which shows when the other
        // client is first now, or the one that is free longest, which shows when the same one is.
        if round % 2 == 0 {
            mem::swap(&mut holder, &mut asker);
        }
    }
    Ok(false)
}

async fn who_answers(
    connection: &mut PgConnection,
    asked: &'static str,
) -> Result<i32, StoreError> {
    let row = answered(sqlx::raw_sql(asked).fetch_one(connection)).await?;
    Ok(row.try_get("pid")?)
}
