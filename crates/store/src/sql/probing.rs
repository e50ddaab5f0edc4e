//! Probing: while the breaker of an endpoint is not closed, the first delivery that waits for it is tried as soon as the breaker lets
//! one through, whenever its own retry would be due. Otherwise an endpoint to which nothing new is sent, or nothing before its oldest
//! message, would be tried hours after it heals.
//!
//! A probe ahead of its time takes no part of the delivery's schedule: when it fails, the retry is due when it was.

use crate::{
    Breaker, EndpointState, StoreError, Timestamp,
    backend::{Connection, Sql, values},
};

/// Makes the first of what waits at webhook `$1` due at `$2`, if it would be later. What is leased is under way.
macro_rules! bring_forward {
    ($lock:literal) => {
        concat!(
            "UPDATE deliveries
             SET scheduled_at = CASE WHEN scheduled_at > due_at THEN scheduled_at ELSE due_at END, due_at = $2
             WHERE webhook = $1 AND due_at > $2 AND sequence = (
                 SELECT d.sequence FROM deliveries d
                 WHERE d.webhook = $1 AND d.due_at IS NOT NULL AND d.lease_token IS NULL
                 ORDER BY d.due_at, d.sequence LIMIT 1 ",
            $lock,
            ")"
        )
    };
}

const BRING_FORWARD: Sql = Sql {
    sqlite: bring_forward!(""),
    postgres: bring_forward!("FOR UPDATE SKIP LOCKED"),
};

/// When an endpoint in this state may be probed, at `now` at the earliest; `None` while its breaker is closed.
pub(super) fn next_probe(state: &EndpointState, now: Timestamp) -> Option<Timestamp> {
    match state.breaker {
        Breaker::Closed => None,
        Breaker::Open | Breaker::HalfOpen => {
            Some(state.paused_until.map_or(now, |until| until.max(now)))
        }
    }
}

/// Has the first of what waits at this webhook's endpoint tried at `at`.
pub(super) async fn probe(
    write: &mut Connection,
    webhook: i64,
    at: Timestamp,
) -> Result<(), StoreError> {
    write
        .execute(BRING_FORWARD, values![webhook, at])
        .await
        .map(drop)
}
