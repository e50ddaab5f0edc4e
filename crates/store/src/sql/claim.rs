//! Leases: who delivers what, for how long.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::{
    receivers::{Letter, Receiver},
    rows,
    store::Store,
    webhook_row,
};
use crate::{
    Access, Breaker, Claim, ClaimedDelivery, EndpointState, StoreError, Ticket, Timestamp,
    WebhookId,
    backend::{
        Connection, Durability, Row, Sql, bound_rows, json_rows, over_rows, unsigned, values,
    },
};

/// Active webhooks with something that is or will be due, and when the first of it is, not before the
/// receiver's pause ends. It goes from webhook to webhook through the index of what is due, so it costs
/// a few look-ups per webhook that is owed something, however much that is and however many others
/// there are. The order by all columns of that index, where the smallest webhook would do, keeps PostgreSQL from
/// taking the primary key, in which everything that was ever delivered lies before what is due.
const WAITING: &str = "
    WITH RECURSIVE owed (webhook) AS (
        SELECT (SELECT d.webhook FROM deliveries d WHERE d.due_at IS NOT NULL
                ORDER BY d.webhook, d.due_at, d.sequence LIMIT 1)
        UNION ALL
        SELECT (SELECT d.webhook FROM deliveries d WHERE d.due_at IS NOT NULL AND d.webhook > owed.webhook
                ORDER BY d.webhook, d.due_at, d.sequence LIMIT 1)
        FROM owed WHERE owed.webhook IS NOT NULL
    ), waiting AS MATERIALIZED (
        SELECT w.ordinal, e.breaker, e.concurrency_limit, coalesce(e.paused_until, 0) AS paused_until,
            (SELECT d.due_at FROM deliveries d
             WHERE d.webhook = w.ordinal AND d.due_at IS NOT NULL
             ORDER BY d.due_at, d.sequence LIMIT 1) AS oldest
        FROM owed
        JOIN webhooks w ON w.ordinal = owed.webhook
        JOIN endpoints e ON e.webhook = w.ordinal
        WHERE w.active = 1 AND w.deleted = 0 AND w.relay_until IS NULL
    )
    SELECT ordinal, breaker, concurrency_limit,
        CASE WHEN paused_until > oldest THEN paused_until ELSE oldest END AS due_at
    FROM waiting WHERE oldest IS NOT NULL";

/// The temporary webhook `$1` of a key (`$2`, null for everybody's), if it has not ended at `$3`.
const RELAYED: &str = "
    SELECT w.ordinal, 'closed' AS breaker, e.concurrency_limit, CAST(0 AS BIGINT) AS due_at
    FROM webhooks w JOIN endpoints e ON e.webhook = w.ordinal
    LEFT JOIN api_keys k ON k.ordinal = w.api_key
    WHERE w.id = $1 AND (CAST($2 AS TEXT) IS NULL OR k.id = $2)
        AND w.active = 1 AND w.deleted = 0 AND w.relay_until > $3";

/// Leases the messages of webhook `$1` that are due at `$2`: at most `$5`, and no more than `$6` together
/// with those under lease already.
const CLAIM: Sql = Sql {
    sqlite: "
        UPDATE deliveries SET lease_token = $3, due_at = $4
        WHERE webhook = $1 AND sequence IN (
            SELECT d.sequence FROM deliveries d WHERE d.webhook = $1 AND d.due_at <= $2
            ORDER BY d.due_at, d.sequence
            LIMIT (SELECT CASE WHEN count(*) >= $6 THEN 0 WHEN $6 - count(*) < $5 THEN $6 - count(*) ELSE $5 END
                   FROM deliveries l WHERE l.webhook = $1 AND l.lease_token IS NOT NULL AND l.due_at > $2))
        RETURNING sequence",
    postgres: "
        UPDATE deliveries SET lease_token = $3, due_at = $4
        WHERE webhook = $1 AND sequence IN (
            SELECT d.sequence FROM deliveries d WHERE d.webhook = $1 AND d.due_at <= $2
            ORDER BY d.due_at, d.sequence
            LIMIT (SELECT CASE WHEN count(*) >= $6 THEN 0 WHEN $6 - count(*) < $5 THEN $6 - count(*) ELSE $5 END
                   FROM deliveries l WHERE l.webhook = $1 AND l.lease_token IS NOT NULL AND l.due_at > $2)
            FOR UPDATE SKIP LOCKED)
        RETURNING sequence",
};

/// A webhook of which something may be claimed.
struct Candidate {
    ordinal: i64,
    breaker: Breaker,
    concurrency_limit: Option<u32>,
    due_at: Timestamp,
}

struct Taken {
    webhook: i64,
    sequence: i64,
}

impl Store {
    /// Takes due messages of active webhooks under a lease. A message whose lease ran out is due again.
    /// Of a webhook whose receiver pauses nothing is taken; while its breaker is not closed, one message
    /// at a time. The longest waiting webhook comes first.
    ///
    /// # Errors
    /// A failure of the database; what was claimed all the same returns when the lease runs out.
    pub async fn claim_due(&self, claim: &Claim) -> Result<Vec<ClaimedDelivery>, StoreError> {
        // Asked on a reading connection first: mostly nothing is due, and then nobody waits for a turn.
        let mut candidates = self.waiting().await?;
        candidates.retain(|candidate| candidate.due_at <= claim.now);
        candidates.sort_by_key(|candidate| candidate.due_at);
        self.claim(&candidates, claim).await
    }

    /// Takes due messages of one temporary webhook under a lease; nothing when there is none of this id, or
    /// it has ended.
    ///
    /// # Errors
    /// As [`Store::claim_due`].
    pub async fn claim_relayed(
        &self,
        access: &Access,
        id: &WebhookId,
        claim: &Claim,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows(
                RELAYED,
                values![id.as_str(), webhook_row::api_key_text(access), claim.now],
            )
            .await?;
        drop(read);
        let candidates = found
            .iter()
            .map(candidate_of)
            .collect::<Result<Vec<_>, _>>()?;
        self.claim(&candidates, claim).await
    }

    /// When the next message of any active webhook is due; it may have been for a while. `None` when nothing
    /// waits.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let waiting = self.waiting().await?;
        Ok(waiting.iter().map(|candidate| candidate.due_at).min())
    }

    async fn waiting(&self) -> Result<Vec<Candidate>, StoreError> {
        let mut read = self.read().await?;
        let found = read.rows(WAITING, values![]).await?;
        found.iter().map(candidate_of).collect()
    }

    async fn claim(
        &self,
        candidates: &[Candidate],
        claim: &Claim,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        if candidates.is_empty() || claim.limits.total == 0 {
            return Ok(Vec::new());
        }
        let mut write = self.write(Durability::Relaxed).await?;
        let mut taken = Vec::new();
        let mut left = claim.limits.total;
        for candidate in candidates {
            if left == 0 {
                break;
            }
            let sequences = take(&mut write, candidate, claim, left).await?;
            left = left.saturating_sub(u32::try_from(sequences.len()).unwrap_or(u32::MAX));
            let webhook = candidate.ordinal;
            taken.extend(
                sequences
                    .into_iter()
                    .map(|sequence| Taken { webhook, sequence }),
            );
        }
        if taken.is_empty() {
            return Ok(Vec::new());
        }
        // What is delivered must not be forgotten, so whoever stored it may still be waiting for the disk, but not this.
        write.commit_durably_with_reads().await?;
        // Nobody waits for their turn to write while this is read.
        let mut read = self.read().await?;
        fetch(&mut read, &taken, candidates, claim).await
    }

    /// Gives claimed messages back at once, unattempted.
    ///
    /// # Errors
    /// A failure of the database; the messages return when their leases run out.
    pub async fn release(&self, tickets: &[Ticket], now: Timestamp) -> Result<(), StoreError> {
        #[derive(Serialize)]
        struct Released {
            webhook: i64,
            sequence: i64,
            lease: i64,
        }
        if tickets.is_empty() {
            return Ok(());
        }
        let released = tickets
            .iter()
            .map(|ticket| {
                Ok(Released {
                    webhook: ticket.ordinal,
                    sequence: crate::backend::signed(ticket.sequence, "sequence")?,
                    lease: ticket.lease.0,
                })
            })
            .collect::<Result<Vec<_>, StoreError>>()?;
        let mut write = self.write(Durability::Relaxed).await?;
        write
            .execute(
                over_rows!(
                    [webhook bigint, sequence bigint, lease_token bigint],
                    "UPDATE deliveries SET lease_token = NULL, due_at = $2 FROM v
                     WHERE deliveries.webhook = v.webhook AND deliveries.sequence = v.sequence
                         AND deliveries.lease_token = v.lease_token"
                ),
                values![json_rows(&released)?, now],
            )
            .await?;
        write.commit().await
    }

    /// How a webhook's receiver does; `None` when there is no such webhook.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn endpoint(&self, id: &WebhookId) -> Result<Option<EndpointState>, StoreError> {
        let mut read = self.read().await?;
        let row = read
            .row(
                "SELECT e.* FROM endpoints e JOIN webhooks w ON w.ordinal = e.webhook
                 WHERE w.id = $1 AND w.deleted = 0",
                values![id.as_str()],
            )
            .await?;
        row.as_ref().map(rows::endpoint).transpose()
    }
}

async fn take(
    write: &mut Connection,
    candidate: &Candidate,
    claim: &Claim,
    left: u32,
) -> Result<Vec<i64>, StoreError> {
    // Whoever claims from a webhook does so alone, so that the share of a receiver is not given twice.
    let locked = write
        .lock(
            "SELECT webhook FROM endpoints WHERE webhook = $1 FOR UPDATE SKIP LOCKED",
            values![candidate.ordinal],
        )
        .await?;
    if locked.is_some_and(|locked| locked.is_empty()) {
        return Ok(Vec::new());
    }
    let share = match candidate.breaker {
        Breaker::Closed => candidate
            .concurrency_limit
            .unwrap_or(u32::MAX)
            .min(claim.limits.per_webhook),
        Breaker::Open | Breaker::HalfOpen => 1,
    };
    let found = write
        .rows(
            CLAIM,
            values![
                candidate.ordinal,
                claim.now,
                claim.lease.0,
                claim.until,
                left,
                share
            ],
        )
        .await?;
    found.iter().map(|row| row.integer("sequence")).collect()
}

/// What was taken, with all that delivering it needs, webhook by webhook in order.
async fn fetch(
    read: &mut Connection,
    taken: &[Taken],
    candidates: &[Candidate],
    claim: &Claim,
) -> Result<Vec<ClaimedDelivery>, StoreError> {
    let place: HashMap<i64, (usize, &Candidate)> = candidates
        .iter()
        .enumerate()
        .map(|(place, candidate)| (candidate.ordinal, (place, candidate)))
        .collect();
    let receivers = receivers(read, taken, claim).await?;
    let given = taken
        .iter()
        .map(|each| values![each.webhook, each.sequence]);
    let found = read
        .rows_over(
            bound_rows!(
                [webhook bigint, sequence bigint],
                "SELECT m.id, m.kind, m.body, m.created_at, m.webhook, m.sequence, d.retry_index, d.lane
                 FROM v JOIN messages m ON m.webhook = v.webhook AND m.sequence = v.sequence
                 JOIN deliveries d ON d.webhook = v.webhook AND d.sequence = v.sequence"
            ),
            given.collect(),
        )
        .await?;
    let corrupt = || StoreError::Corrupt {
        what: "messages.webhook",
    };
    let mut claimed = found
        .iter()
        .map(|row| {
            let ordinal = row.integer("webhook")?;
            let (place, candidate) = place.get(&ordinal).ok_or_else(corrupt)?;
            let receiver = receivers.get(&ordinal).ok_or_else(corrupt)?;
            let letter = Letter {
                id: rows::message_id(row)?,
                sequence: unsigned(row.integer("sequence")?, "messages.sequence")?,
                kind: rows::kind(row)?,
                body: row.text("body")?,
                created: row.time("created_at")?,
                attempts_before: row.count("retry_index")?,
                in_order: row.optional_text("lane")?.is_some(),
                probe: candidate.breaker != Breaker::Closed,
            };
            let delivery = receiver.delivery(letter, claim.lease);
            Ok((*place, delivery))
        })
        .collect::<Result<Vec<_>, StoreError>>()?;
    claimed.sort_unstable_by_key(|(place, delivery)| (*place, delivery.ticket.sequence));
    Ok(claimed.into_iter().map(|(_, delivery)| delivery).collect())
}

async fn receivers(
    read: &mut Connection,
    taken: &[Taken],
    claim: &Claim,
) -> Result<HashMap<i64, Receiver>, StoreError> {
    let ordinals: BTreeSet<i64> = taken.iter().map(|each| each.webhook).collect();
    let found = read
        .rows_over(
            bound_rows!(
                [webhook bigint],
                "SELECT w.ordinal, w.id, w.url, w.secret, w.previous_secrets, w.previous_secrets_until,
                     w.headers, w.gzip
                 FROM v JOIN webhooks w ON w.ordinal = v.webhook"
            ),
            ordinals.into_iter().map(|ordinal| values![ordinal]).collect(),
        )
        .await?;
    found
        .iter()
        .map(|row| {
            let receiver = Receiver::of(row, claim.now)?;
            Ok((row.integer("ordinal")?, receiver))
        })
        .collect()
}

fn candidate_of(row: &Row) -> Result<Candidate, StoreError> {
    Ok(Candidate {
        ordinal: row.integer("ordinal")?,
        breaker: rows::breaker(row)?,
        concurrency_limit: rows::concurrency_limit(row)?,
        due_at: row.time("due_at")?,
    })
}
