//! Requested backfills: takes requests for slots to be read again, and records what came of them.

use super::{retried::retried, rows, store::Store, webhook_row};
use crate::{
    Access, ActiveWebhook, Backfill, BackfillKind, BackfillRequest, BackfillState, BackfillTurn,
    StoreError, WebhookId,
    backend::{Durability, Row, signed, values},
};

/// Backfills `b`, with their webhooks.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT w.id, b.dry_run, b.first_slot, b.last_slot, b.next_slot, b.state, b.error, b.matched, b.told, b.lost,
                 b.samples, b.created_at
             FROM backfills b JOIN webhooks w ON w.ordinal = b.webhook WHERE w.deleted = 0 AND ",
            $rest
        )
    };
}

/// The first backfill of the tenant that comes after the owner of webhook `$1`: the tenants go round in the order of their keys,
/// the keyless caller first. It is chosen by itself, so that no other one's samples are read.
const NEXT: &str = select!(
    "(b.webhook, b.dry_run) = (
         SELECT p.webhook, p.dry_run FROM backfills p JOIN webhooks o ON o.ordinal = p.webhook
         WHERE p.state = 'pending' AND o.deleted = 0
         ORDER BY CASE WHEN coalesce(o.api_key, 0) > coalesce(
                 (SELECT coalesce(l.api_key, 0) FROM webhooks l WHERE l.id = CAST($1 AS TEXT)), -1)
             THEN 0 ELSE 1 END, coalesce(o.api_key, 0), p.turn_at, p.webhook LIMIT 1)"
);

impl Store {
    /// Asks for slots to be read again for a webhook, in place of the request before. `None` when there is no such webhook.
    ///
    /// # Errors
    /// [`StoreError::BackfillPending`] while the one before of the same kind is not done, or a failure of the database.
    pub async fn request_backfill(
        &self,
        access: &Access,
        id: &WebhookId,
        request: &BackfillRequest,
    ) -> Result<Option<Backfill>, StoreError> {
        retried!(self.try_request_backfill(access, id, request))
    }

    async fn try_request_backfill(
        &self,
        access: &Access,
        id: &WebhookId,
        request: &BackfillRequest,
    ) -> Result<Option<Backfill>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let Some((webhook, _)) =
            webhook_row::lock(&mut write, access, id, None, &self.keys).await?
        else {
            return Ok(None);
        };
        let asked = write
            .execute(
                "INSERT INTO backfills
                     (webhook, dry_run, first_slot, last_slot, next_slot, state, created_at, turn_at)
                 VALUES ($1, $2, $3, $4, $3, 'pending', $5, $5)
                 ON CONFLICT (webhook, dry_run) DO UPDATE SET first_slot = excluded.first_slot,
                     last_slot = excluded.last_slot, next_slot = excluded.next_slot, state = 'pending', error = NULL,
                     matched = 0, told = 0, lost = 0, samples = '[]', created_at = excluded.created_at,
                     turn_at = excluded.turn_at
                 WHERE backfills.state <> 'pending'",
                values![
                    webhook,
                    request.kind == BackfillKind::DryRun,
                    signed(request.first_slot, "slot")?,
                    signed(request.last_slot, "slot")?,
                    request.now
                ],
            )
            .await?;
        if asked == 0 {
            return Err(StoreError::BackfillPending);
        }
        let row = write
            .one_row(
                select!("b.webhook = $1 AND b.dry_run = $2"),
                values![webhook, request.kind == BackfillKind::DryRun],
            )
            .await?;
        write.commit().await?;
        backfill(&row).map(Some)
    }

    /// The newest backfill of a kind for a webhook; `None` when there is no such webhook, or none was asked for.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn backfill(
        &self,
        access: &Access,
        id: &WebhookId,
        kind: BackfillKind,
    ) -> Result<Option<Backfill>, StoreError> {
        let mut read = self.read().await?;
        let row = read
            .row(
                select!(
                    "w.id = $1 AND b.dry_run = $2 AND (CAST($3 AS TEXT) IS NULL
                     OR w.api_key = (SELECT ordinal FROM api_keys WHERE id = $3))"
                ),
                values![
                    id.as_str(),
                    kind == BackfillKind::DryRun,
                    webhook_row::api_key_text(access)
                ],
            )
            .await?;
        row.as_ref().map(backfill).transpose()
    }

    /// A webhook as it would be matched, whether it is switched on or not; `None` when there is none.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn as_active(&self, id: &WebhookId) -> Result<Option<ActiveWebhook>, StoreError> {
        let mut read = self.read().await?;
        let row = webhook_row::select_row(&mut read, &Access::All, id).await?;
        row.as_ref().map(rows::active_webhook).transpose()
    }

    /// The backfill whose turn it is, where one for the webhook `last` had the last turn. The tenants with backfills that are not
    /// done have turns one after the other, however many each asks for; of a tenant's the one that has waited longest has it.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn next_backfill(
        &self,
        last: Option<&WebhookId>,
    ) -> Result<Option<Backfill>, StoreError> {
        let mut read = self.read().await?;
        let last = last.map(|last| last.as_str().to_owned());
        let row = read.row(NEXT, values![last]).await?;
        row.as_ref().map(backfill).transpose()
    }

    /// Records what came of some slots of a backfill, unless it was asked for anew or its webhook is gone.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn record_backfill(
        &self,
        done: &Backfill,
        turn: &BackfillTurn,
    ) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        write
            .execute(
                "UPDATE backfills SET next_slot = $4, state = $5, error = $6, matched = matched + $7, told = told + $8,
                     lost = lost + $9, samples = coalesce(CAST($10 AS TEXT), samples), turn_at = $11
                 WHERE webhook = (SELECT ordinal FROM webhooks WHERE id = $1) AND dry_run = $2 AND created_at = $3
                     AND state = 'pending'",
                values![
                    done.webhook.as_str(),
                    done.kind == BackfillKind::DryRun,
                    done.created,
                    signed(turn.next_slot, "slot")?,
                    turn.state.name(),
                    turn.error.clone(),
                    signed(turn.matched, "count")?,
                    signed(turn.told, "count")?,
                    signed(turn.lost, "count")?,
                    turn.samples.clone(),
                    turn.now
                ],
            )
            .await?;
        write.commit().await
    }
}

fn backfill(row: &Row) -> Result<Backfill, StoreError> {
    let state = BackfillState::from_name(&row.text("state")?);
    Ok(Backfill {
        webhook: rows::webhook_id(row, "id")?,
        kind: if row.flag("dry_run")? {
            BackfillKind::DryRun
        } else {
            BackfillKind::Tell
        },
        first_slot: row.unsigned("first_slot")?,
        last_slot: row.unsigned("last_slot")?,
        next_slot: row.unsigned("next_slot")?,
        state: state.ok_or(StoreError::Corrupt {
            what: "backfills.state",
        })?,
        error: row.optional_text("error")?,
        matched: row.unsigned("matched")?,
        told: row.unsigned("told")?,
        lost: row.unsigned("lost")?,
        samples: row.text("samples")?,
        created: row.time("created_at")?,
    })
}
