//! Active webhooks, their revisions, and the filters that are in force.

use super::{retried::retried, rows, store::Store};
use crate::{
    ActiveChanges, ActiveWebhooks, FilterChange, FilterState, Revision, StoreError,
    backend::{Connection, Durability, Row, signed, values},
};

/// Active webhooks whose matching changed after a revision.
const CHANGED: &str = "
    SELECT w.*, f.accounts, f.programs, f.token_owners, f.digest, f.conditions
    FROM webhooks w JOIN filters f ON f.webhook = w.ordinal
    WHERE w.active = 1 AND w.deleted = 0 AND w.matched_revision > $1
    ORDER BY w.ordinal";

/// Less than every revision.
const BEFORE_ALL: i64 = -1;

impl Store {
    /// Every active webhook with the revision it belongs to, read in one snapshot.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn active_webhooks(&self) -> Result<ActiveWebhooks, StoreError> {
        let mut snapshot = self.snapshot().await?;
        let revision = select_revision(&mut snapshot).await?;
        let found = snapshot.rows(CHANGED, values![BEFORE_ALL]).await?;
        let webhooks = found
            .iter()
            .map(rows::active_webhook)
            .collect::<Result<_, _>>()?;
        Ok(ActiveWebhooks { revision, webhooks })
    }

    /// What changed among the active webhooks after `known`, read in one snapshot: it costs what changed,
    /// however large the filters of all others are.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn active_changes(&self, known: Revision) -> Result<ActiveChanges, StoreError> {
        let mut snapshot = self.snapshot().await?;
        let revision = select_revision(&mut snapshot).await?;
        let active = snapshot
            .rows(
                "SELECT id FROM webhooks WHERE active = 1 AND deleted = 0 ORDER BY ordinal",
                values![],
            )
            .await?;
        let changed = snapshot
            .rows(CHANGED, values![signed(known.0, "revision")?])
            .await?;
        Ok(ActiveChanges {
            revision,
            active: active
                .iter()
                .map(|row| rows::webhook_id(row, "id"))
                .collect::<Result<_, _>>()?,
            changed: changed
                .iter()
                .map(rows::active_webhook)
                .collect::<Result<_, _>>()?,
        })
    }

    /// The current webhook revision: one row, cheap enough to be polled.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn webhook_revision(&self) -> Result<Revision, StoreError> {
        let mut read = self.read().await?;
        select_revision(&mut read).await
    }

    /// The change that made `revision`; `None` for a revision never made, or made so long ago that it was
    /// removed.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn filter_change(
        &self,
        revision: Revision,
    ) -> Result<Option<FilterChange>, StoreError> {
        let mut read = self.read().await?;
        let row = read
            .row(
                "SELECT revision, requested_slot, in_force_slot FROM filter_changes WHERE revision = $1",
                values![signed(revision.0, "revision")?],
            )
            .await?;
        row.as_ref().map(change_of).transpose()
    }

    /// Every change after `known`, in order: what the indexer must put in force, and from which slot on.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn filter_changes(&self, known: Revision) -> Result<Vec<FilterChange>, StoreError> {
        select_filter_changes(&mut self.read().await?, known).await
    }

    /// Records that the filter of `state` is in force, and with it every change up to its revision that was
    /// not before. Recording the same revision again, after a reconnect for example, keeps the first slot, and an earlier
    /// one changes nothing.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn record_filter_state(&self, state: FilterState) -> Result<(), StoreError> {
        retried!(self.try_record_filter_state(state))
    }

    async fn try_record_filter_state(&self, state: FilterState) -> Result<(), StoreError> {
        let (revision, since) = (
            signed(state.revision.0, "revision")?,
            signed(state.in_force_slot, "slot")?,
        );
        let mut write = self.write(Durability::Durable).await?;
        write
            .execute(
                "INSERT INTO filter_state (one, revision, in_force_slot) VALUES (1, $1, $2)
                 ON CONFLICT (one) DO UPDATE
                 SET revision = excluded.revision, in_force_slot = excluded.in_force_slot
                 WHERE filter_state.revision < excluded.revision",
                values![revision, since],
            )
            .await?;
        write
            .execute(
                "UPDATE filter_changes SET in_force_slot = $2 WHERE revision <= $1 AND in_force_slot IS NULL",
                values![revision, since],
            )
            .await?;
        write.commit().await
    }

    /// The newest filter that is in force; `None` before the first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn filter_state(&self) -> Result<Option<FilterState>, StoreError> {
        select_filter_state(&mut self.read().await?).await
    }
}

pub(super) async fn select_filter_state(
    read: &mut Connection,
) -> Result<Option<FilterState>, StoreError> {
    let row = read
        .row(
            "SELECT revision, in_force_slot FROM filter_state",
            values![],
        )
        .await?;
    row.map(|row| {
        Ok(FilterState {
            revision: Revision(row.unsigned("revision")?),
            in_force_slot: row.unsigned("in_force_slot")?,
        })
    })
    .transpose()
}

/// The filter changes after a revision, in order.
pub(super) async fn select_filter_changes(
    read: &mut Connection,
    known: Revision,
) -> Result<Vec<FilterChange>, StoreError> {
    let found = read
        .rows(
            "SELECT revision, requested_slot, in_force_slot FROM filter_changes
             WHERE revision > $1 ORDER BY revision",
            values![signed(known.0, "revision")?],
        )
        .await?;
    found.iter().map(change_of).collect()
}

async fn select_revision(connection: &mut Connection) -> Result<Revision, StoreError> {
    let row = connection
        .one_row("SELECT revision FROM webhook_revision", values![])
        .await?;
    Ok(Revision(row.unsigned("revision")?))
}

fn change_of(row: &Row) -> Result<FilterChange, StoreError> {
    Ok(FilterChange {
        revision: Revision(row.unsigned("revision")?),
        requested_slot: row.optional_unsigned("requested_slot")?,
        in_force_slot: row.optional_unsigned("in_force_slot")?,
    })
}
