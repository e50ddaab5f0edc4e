//! Leases the deliveries of a lane that go in one batch with its first one.

use crate::{
    Batch, LeaseRequest, Load, StoreError,
    backend::{Connection, unsigned, values},
};

/// Leases the deliveries of lane `$2` of webhook `$1` that follow its first one, `$4`, in its batch: at most `$5`, that were
/// refused as often as it, `$6`, and whose bodies are `$7` bytes together. They have no due time of their own: they go
/// with the first one, also when an earlier lease of it ran out.
const LEASE_FOLLOWERS: &str = "
    UPDATE deliveries SET lease_token = $3
    WHERE webhook = $1 AND sequence IN (
        SELECT followers.sequence FROM (
            SELECT c.sequence, sum(octet_length(m.body) + m.shared_bytes) OVER (ORDER BY c.sequence) AS bytes,
                max(CASE WHEN c.retry_index = $6 AND c.due_at IS NULL THEN 0 ELSE 1 END)
                    OVER (ORDER BY c.sequence) AS is_past
            FROM (
                SELECT d.sequence, d.retry_index, d.due_at FROM deliveries d
                WHERE d.webhook = $1 AND d.lane = $2 AND d.state = 'pending' AND d.sequence > $4
                ORDER BY d.sequence LIMIT $5
            ) c JOIN messages m ON m.webhook = $1 AND m.sequence = c.sequence
        ) followers WHERE followers.is_past = 0 AND followers.bytes <= $7)
    RETURNING sequence, (SELECT CAST(octet_length(m.body) + m.shared_bytes AS BIGINT) FROM messages m
        WHERE m.webhook = deliveries.webhook AND m.sequence = deliveries.sequence) AS bytes";

/// The first pending delivery of a lane, just leased.
pub(super) struct LaneHead {
    pub(super) lane: String,
    pub(super) sequence: i64,
    pub(super) refusals: u32,
    pub(super) bytes: u64,
}

/// Leases what goes in one batch with the first delivery of a lane, by sequence and bytes of their bodies.
pub(super) async fn lease_followers(
    write: &mut Connection,
    webhook: i64,
    head: &LaneHead,
    batch: Batch,
    request: &LeaseRequest,
    left: Load,
) -> Result<Vec<(i64, u64)>, StoreError> {
    let most = batch.messages_after(head.refusals).saturating_sub(1);
    let bytes = u64::from(batch.max_bytes)
        .saturating_sub(head.bytes)
        .min(left.bytes);
    let found = write
        .rows(
            LEASE_FOLLOWERS,
            values![
                webhook,
                head.lane.as_str(),
                request.token.0,
                head.sequence,
                most.min(left.deliveries),
                head.refusals,
                i64::try_from(bytes).unwrap_or(i64::MAX)
            ],
        )
        .await?;
    found
        .iter()
        .map(|row| {
            let bytes = unsigned(row.integer("bytes")?, "messages.body")?;
            Ok((row.integer("sequence")?, bytes))
        })
        .collect()
}
