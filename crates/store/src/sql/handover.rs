//! Messages that whoever stores them delivers at once: they are inserted under a lease, so that nobody has to look for
//! them.

use std::collections::HashMap;

use super::{
    receivers::{self, Letter, Receiver},
    rows,
};
use crate::{
    Claim, ClaimedDelivery, NewMessage, StoreError, Timestamp,
    backend::{Connection, Sql, over_rows, values},
};

/// The webhooks of `v` whose receivers are believed to work and wait for nothing else at `$2`, and how many of their
/// messages are under lease. What is due already goes first, so of those nothing is handed over. The oldest is asked for
/// in the order of the index of what is due, so that PostgreSQL takes that one.
const FREE: Sql = over_rows!(
    [webhook bigint],
    "SELECT w.ordinal, w.id, w.url, w.secret, w.previous_secrets, w.previous_secrets_until, w.headers, w.gzip,
         e.concurrency_limit,
         (SELECT count(*) FROM deliveries l
          WHERE l.webhook = w.ordinal AND l.lease_token IS NOT NULL AND l.due_at > $2) AS leased
     FROM v JOIN webhooks w ON w.ordinal = v.webhook JOIN endpoints e ON e.webhook = w.ordinal
     WHERE w.active = 1 AND w.deleted = 0 AND w.relay_until IS NULL
         AND e.breaker = 'closed' AND coalesce(e.paused_until, 0) <= $2
         AND NOT EXISTS (
             SELECT 1 FROM (
                 SELECT d.due_at FROM deliveries d WHERE d.webhook = w.ordinal AND d.due_at IS NOT NULL
                 ORDER BY d.due_at, d.sequence LIMIT 1) oldest
             WHERE oldest.due_at <= $2)"
);

struct Free {
    receiver: Receiver,
    places: u32,
}

/// What may be handed over in one transaction.
pub(super) struct Handover {
    claim: Claim,
    left: u32,
    free: HashMap<i64, Free>,
    claimed: Vec<ClaimedDelivery>,
}

impl Handover {
    /// Messages of these webhooks, as far as the claim goes. Until the transaction ends nobody else claims of them.
    pub(super) async fn of(
        write: &mut Connection,
        webhooks: impl Iterator<Item = i64>,
        claim: Claim,
    ) -> Result<Self, StoreError> {
        let mut webhooks = receivers::named(webhooks)?;
        let locked = write
            .lock(
                "SELECT webhook FROM endpoints WHERE webhook IN (
                     SELECT t.webhook FROM json_to_recordset(CAST($1 AS json)) AS t (webhook bigint))
                 ORDER BY webhook FOR UPDATE SKIP LOCKED",
                values![webhooks.clone()],
            )
            .await?;
        if let Some(locked) = locked {
            let ours = locked.iter().map(|row| row.integer("webhook"));
            webhooks = receivers::named(ours.collect::<Result<Vec<_>, _>>()?)?;
        }
        let found = write.rows(FREE, values![webhooks, claim.now]).await?;
        let mut free = HashMap::new();
        for row in &found {
            let share = rows::concurrency_limit(row)?
                .unwrap_or(u32::MAX)
                .min(claim.limits.per_webhook);
            let webhook = Free {
                receiver: Receiver::of(row, claim.now)?,
                places: share.saturating_sub(row.count("leased")?),
            };
            free.insert(row.integer("ordinal")?, webhook);
        }
        Ok(Self {
            left: claim.limits.total,
            claim,
            free,
            claimed: Vec::new(),
        })
    }

    /// A place for a message of this webhook that is due at once, if the webhook is free and there is one.
    pub(super) fn place(&mut self, webhook: i64) -> Option<Place<'_>> {
        let free = self.free.get_mut(&webhook)?;
        let (left, places) = (self.left.checked_sub(1)?, free.places.checked_sub(1)?);
        (self.left, free.places) = (left, places);
        Some(Place {
            receiver: &free.receiver,
            claim: &self.claim,
            claimed: &mut self.claimed,
        })
    }

    /// What was taken, in order.
    pub(super) fn claimed(self) -> Vec<ClaimedDelivery> {
        self.claimed
    }
}

/// A place for one message.
pub(super) struct Place<'a> {
    receiver: &'a Receiver,
    claim: &'a Claim,
    claimed: &'a mut Vec<ClaimedDelivery>,
}

impl Place<'_> {
    /// Takes a message; returns the end and the number of its lease.
    pub(super) fn take(
        self,
        message: &NewMessage,
        sequence: u64,
        body: &str,
        in_order: bool,
    ) -> (Timestamp, i64) {
        let letter = Letter {
            id: message.id.clone(),
            sequence,
            kind: message.kind,
            body: body.to_owned(),
            created: self.claim.now,
            attempts_before: 0,
            probe: false,
            in_order,
        };
        let delivery = self.receiver.delivery(letter, self.claim.lease);
        self.claimed.push(delivery);
        (self.claim.until, self.claim.lease.0)
    }
}
