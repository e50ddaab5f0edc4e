//! Commits messages, checkpoints and unconfirmed slots in one transaction.

use serde::Serialize;

use super::{
    insert::{Expected, Inserted, insert_messages},
    known_accounts::write_known_accounts,
    retried::retried,
    store::Store,
};
use crate::{
    Checkpoints, Commit, Committed, LeaseRequest, LeasedDelivery, StoreError,
    backend::{Connection, Durability, PendingWrite, json_rows, over_rows, signed, values},
};

#[derive(Serialize)]
struct SlotRow<'a> {
    slot: i64,
    blockhash: Option<&'a str>,
}

/// A commit that the process can no longer lose, though the machine can.
#[derive(Debug)]
#[must_use = "nothing of it may be delivered before it is durable"]
pub struct PendingCommit {
    committed: Committed,
    leased: Vec<LeasedDelivery>,
    pending: PendingWrite,
}

impl PendingCommit {
    /// Waits until it is on the disk, and returns what was committed and what was leased.
    ///
    /// # Errors
    /// A failure of the database: what was stored may be lost with the machine.
    pub async fn durable(self) -> Result<(Committed, Vec<LeasedDelivery>), StoreError> {
        self.pending.durable().await?;
        Ok((self.committed, self.leased))
    }
}

impl Store {
    /// Stores messages, numbers them in the order given, and moves checkpoints: all of it or nothing. On
    /// disk when it returns. Known messages and those of webhooks that were deleted meanwhile are
    /// skipped.
    ///
    /// # Errors
    /// [`StoreError::DuplicateMessages`], or a failure of the database; nothing is stored then.
    pub async fn commit(&self, commit: &Commit<'_>) -> Result<Committed, StoreError> {
        let (committed, _) = self.commit_pending(commit, None).await?.durable().await?;
        Ok(committed)
    }

    /// As [`Store::commit`], but the next commit can be made while this one waits for the disk. The deliveries of its
    /// messages are inserted already leased, as far as the request goes. Of a webhook to which other deliveries are
    /// due, whose endpoint pauses, or that is full, none is leased.
    ///
    /// # Errors
    /// [`StoreError::DuplicateMessages`], or a failure of the database; nothing is stored then.
    pub async fn commit_pending(
        &self,
        commit: &Commit<'_>,
        request: Option<&LeaseRequest>,
    ) -> Result<PendingCommit, StoreError> {
        // To look up each message costs a fifth of storing it, so the first try takes all for new.
        for expected in [Expected::New, Expected::Known] {
            if let Some(pending) = retried!(self.try_commit(commit, request, expected))? {
                return Ok(pending);
            }
        }
        Err(StoreError::DuplicateMessages)
    }

    /// `None` when a message that was expected to be new is known; the transaction is undone then.
    async fn try_commit(
        &self,
        commit: &Commit<'_>,
        request: Option<&LeaseRequest>,
        expected: Expected,
    ) -> Result<Option<PendingCommit>, StoreError> {
        let mut write = match expected {
            Expected::New => self.begin(Durability::Durable).await?,
            Expected::Known => self.write(Durability::Durable).await?,
        };
        let inserted = insert_messages(self, &mut write, commit, request, expected).await?;
        let Some(Inserted {
            counts,
            leased,
            unleased,
            full,
            is_staged,
        }) = inserted
        else {
            return Ok(None);
        };
        let mut checkpoints = Checkpoints::NONE;
        for (commitment, slot) in commit.checkpoints.iter() {
            let moved = move_checkpoint(&mut write, commitment.name(), slot).await?;
            checkpoints.advance(commitment, moved);
        }
        write_unconfirmed_slots(&mut write, commit).await?;
        if let Some(changes) = commit.known_accounts {
            write_known_accounts(&mut write, changes).await?;
        }
        Ok(Some(PendingCommit {
            committed: Committed {
                inserted_at: counts,
                checkpoints,
                unleased,
                full,
                is_staged,
            },
            leased,
            pending: write.commit_pending().await?,
        }))
    }
}

async fn move_checkpoint(
    write: &mut Connection,
    commitment: &'static str,
    slot: u64,
) -> Result<u64, StoreError> {
    write
        .one_row(
            "INSERT INTO checkpoints (commitment, slot) VALUES ($1, $2)
             ON CONFLICT (commitment) DO UPDATE SET slot =
                 CASE WHEN excluded.slot > checkpoints.slot THEN excluded.slot ELSE checkpoints.slot END
             RETURNING slot",
            values![commitment, signed(slot, "slot")?],
        )
        .await?
        .unsigned("slot")
}

async fn write_unconfirmed_slots(
    write: &mut Connection,
    commit: &Commit<'_>,
) -> Result<(), StoreError> {
    let slot_row = |slot: u64, blockhash| -> Result<SlotRow<'_>, StoreError> {
        Ok(SlotRow {
            slot: signed(slot, "slot")?,
            blockhash,
        })
    };
    if !commit.unconfirmed.is_empty() {
        let unconfirmed = commit
            .unconfirmed
            .iter()
            .map(|(slot, blockhash)| slot_row(*slot, blockhash.as_deref()))
            .collect::<Result<Vec<_>, _>>()?;
        write
            .execute(
                over_rows!(
                    [slot bigint, blockhash text],
                    "INSERT INTO unconfirmed_slots (slot, blockhash) SELECT slot, blockhash FROM v WHERE true
                     ON CONFLICT (slot) DO UPDATE
                     SET blockhash = coalesce(excluded.blockhash, unconfirmed_slots.blockhash)"
                ),
                values![json_rows(&unconfirmed)?],
            )
            .await?;
    }
    if !commit.resolved.is_empty() {
        let resolved = commit
            .resolved
            .iter()
            .map(|slot| slot_row(*slot, None))
            .collect::<Result<Vec<_>, _>>()?;
        write
            .execute(
                over_rows!(
                    [slot bigint],
                    "DELETE FROM unconfirmed_slots WHERE slot IN (SELECT slot FROM v)"
                ),
                values![json_rows(&resolved)?],
            )
            .await?;
    }
    Ok(())
}
