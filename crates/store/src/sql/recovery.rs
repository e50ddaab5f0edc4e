//! Recovery of an endpoint: what waits for a retry is due at once when it accepts again.

use crate::{
    StoreError, Timestamp,
    backend::{Connection, Sql, values},
};

/// Deliveries of one webhook that are made due together, those first that would have been due first: more than an endpoint
/// is sent before the next of its deliveries would be due anyway, and few enough for one transaction.
const MOST: i64 = 10_000;

/// Leased ones are under way.
const WAITING: Sql = Sql {
    sqlite: "
        UPDATE deliveries SET due_at = $2
        WHERE webhook = $1 AND sequence IN (
            SELECT d.sequence FROM deliveries d
            WHERE d.webhook = $1 AND d.due_at > $2 AND d.lease_token IS NULL
            ORDER BY d.due_at, d.sequence LIMIT $3)",
    postgres: "
        UPDATE deliveries SET due_at = $2
        WHERE webhook = $1 AND sequence IN (
            SELECT d.sequence FROM deliveries d
            WHERE d.webhook = $1 AND d.due_at > $2 AND d.lease_token IS NULL
            ORDER BY d.due_at, d.sequence LIMIT $3 FOR UPDATE SKIP LOCKED)",
};

/// Makes the waiting deliveries of these webhooks due at `now`. They keep their place in the retry schedule. Of those with
/// lanes only the first of each lane waits for a time, and the others follow it.
pub(super) async fn pull_forward(
    write: &mut Connection,
    webhooks: &[i64],
    now: Timestamp,
) -> Result<(), StoreError> {
    for webhook in webhooks {
        write.execute(WAITING, values![*webhook, now, MOST]).await?;
    }
    Ok(())
}
