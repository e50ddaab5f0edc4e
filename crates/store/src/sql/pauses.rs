//! Pauses: notes which slots a webhook that is switched off does not watch, until it was told of them.

use std::collections::HashSet;

use super::{retried::retried, rows, store::Store};
use crate::{
    Pause, StoreError, WebhookId,
    backend::{Connection, Durability, signed, values},
};

/// Notes the pauses of webhooks of `w` that are about to be switched off. One that was not told of an earlier pause is told of
/// both as one. Before the first checkpoint nothing was watched that could be missed.
macro_rules! begin {
    ($condition:literal) => {
        concat!(
            "INSERT INTO pauses (webhook, first_slot)
             SELECT w.ordinal, c.slot + 1 FROM webhooks w JOIN checkpoints c ON c.commitment =
                 CASE w.commitment WHEN 'finalized' THEN 'finalized' ELSE 'confirmed' END
             WHERE w.active = 1 AND w.deleted = 0 AND ",
            $condition,
            " ON CONFLICT (webhook) DO UPDATE SET last_slot = NULL"
        )
    };
}

impl Store {
    /// The pauses that are over, and of which their webhooks were not told yet.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn ended_pauses(&self) -> Result<Vec<Pause>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows(
                "SELECT w.id, w.commitment, p.first_slot, p.last_slot
                 FROM pauses p JOIN webhooks w ON w.ordinal = p.webhook
                 WHERE p.last_slot IS NOT NULL AND w.deleted = 0 ORDER BY p.webhook",
                values![],
            )
            .await?;
        let pause = |row| {
            Ok(Pause {
                webhook: rows::webhook_id(row, "id")?,
                commitment: rows::commitment(row)?,
                first_slot: row.unsigned("first_slot")?,
                last_slot: row.unsigned("last_slot")?,
            })
        };
        found.iter().map(pause).collect()
    }

    /// The webhooks that ask for heartbeats and were not told of a pause yet, whether it is over or not.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn paused_with_heartbeat(&self) -> Result<HashSet<WebhookId>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows(
                "SELECT w.id FROM pauses p JOIN webhooks w ON w.ordinal = p.webhook
                 WHERE w.heartbeat_seconds IS NOT NULL AND w.deleted = 0",
                values![],
            )
            .await?;
        found
            .iter()
            .map(|row| rows::webhook_id(row, "id"))
            .collect()
    }

    /// Forgets a pause of which its webhook was told, unless it was switched off again meanwhile.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn forget_pause(&self, pause: &Pause) -> Result<(), StoreError> {
        retried!(self.try_forget_pause(pause))
    }

    async fn try_forget_pause(&self, pause: &Pause) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        write
            .execute(
                "DELETE FROM pauses
                 WHERE webhook = (SELECT ordinal FROM webhooks WHERE id = $1) AND last_slot = $2",
                values![pause.webhook.as_str(), signed(pause.last_slot, "slot")?],
            )
            .await?;
        write.commit().await
    }
}

/// A webhook is about to be switched off.
pub(super) async fn begin(write: &mut Connection, webhook: i64) -> Result<(), StoreError> {
    write
        .execute(begin!("w.ordinal = $1"), values![webhook])
        .await?;
    Ok(())
}

/// All webhooks of an API key are about to be switched off.
pub(super) async fn begin_all_of(write: &mut Connection, api_key: i64) -> Result<(), StoreError> {
    write
        .execute(begin!("w.api_key = $1"), values![api_key])
        .await?;
    Ok(())
}

/// A webhook is switched on by the newest change of what is matched: it watches from the slot that this asks for. The checkpoint may
/// be further by now.
pub(super) async fn end(write: &mut Connection, webhook: i64) -> Result<(), StoreError> {
    write
        .execute(
            "UPDATE webhooks SET first_slot = (SELECT requested_slot FROM filter_changes
                 WHERE revision = (SELECT revision FROM webhook_revision))
             WHERE ordinal = $1",
            values![webhook],
        )
        .await?;
    write
        .execute(
            "UPDATE pauses SET last_slot = (SELECT first_slot - 1 FROM webhooks WHERE ordinal = $1)
             WHERE webhook = $1",
            values![webhook],
        )
        .await?;
    // Not a slot has passed.
    write
        .execute(
            "DELETE FROM pauses WHERE webhook = $1 AND last_slot < first_slot",
            values![webhook],
        )
        .await?;
    Ok(())
}
