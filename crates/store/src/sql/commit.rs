//! Storing what a slot means.

use serde::Serialize;

use super::{
    insert::{Expected, Inserted, insert_messages},
    store::Store,
};
use crate::{
    Claim, ClaimedDelivery, Commit, Committed, StoreError,
    backend::{Connection, Durability, Written, json_rows, over_rows, signed, values},
};

#[derive(Serialize)]
struct SlotRow<'a> {
    slot: i64,
    blockhash: Option<&'a str>,
}

/// A commit that the process can no longer lose, though the machine can.
#[derive(Debug)]
#[must_use = "nothing of it may be told before it is on the disk"]
pub struct Staged {
    committed: Committed,
    claimed: Vec<ClaimedDelivery>,
    written: Written,
}

impl Staged {
    /// Waits until it is on the disk, and returns what was done and what was claimed.
    ///
    /// # Errors
    /// A failure of the database: what was stored may be lost with the machine.
    pub async fn on_disk(self) -> Result<(Committed, Vec<ClaimedDelivery>), StoreError> {
        self.written.on_disk().await?;
        Ok((self.committed, self.claimed))
    }
}

impl Store {
    /// Stores messages, numbers them in the order given, and moves a checkpoint: all of it or nothing. On
    /// disk when it returns. Known messages and those of webhooks that were deleted meanwhile are
    /// skipped.
    ///
    /// # Errors
    /// A failure of the database; nothing is stored then.
    pub async fn commit(&self, commit: &Commit<'_>) -> Result<Committed, StoreError> {
        let (committed, _) = self.stage(commit, None).await?.on_disk().await?;
        Ok(committed)
    }

    /// As [`Store::commit`], but the next one can be made while this one waits for the disk. Takes what it stores under
    /// a lease, as far as the claim goes: nobody needs to look for it then. Of a webhook to which other messages are
    /// due, or whose receiver pauses, nothing is taken.
    ///
    /// # Errors
    /// A failure of the database; nothing is stored then.
    pub async fn stage(
        &self,
        commit: &Commit<'_>,
        claim: Option<Claim>,
    ) -> Result<Staged, StoreError> {
        if let Some(staged) = self.try_stage(commit, claim, Expected::New).await? {
            return Ok(staged);
        }
        let staged = self.try_stage(commit, claim, Expected::Known).await?;
        staged.ok_or(StoreError::Corrupt {
            what: "messages.id",
        })
    }

    async fn try_stage(
        &self,
        commit: &Commit<'_>,
        claim: Option<Claim>,
        expected: Expected,
    ) -> Result<Option<Staged>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let inserted = insert_messages(&mut write, commit, claim, expected).await?;
        let Some(Inserted { count, claimed }) = inserted else {
            return Ok(None);
        };
        let checkpoint = match commit.checkpoint {
            Some((commitment, slot)) => {
                Some(move_checkpoint(&mut write, commitment.name(), slot).await?)
            }
            None => None,
        };
        note_slots(&mut write, commit).await?;
        Ok(Some(Staged {
            committed: Committed {
                inserted: count,
                checkpoint,
            },
            claimed,
            written: write.write_out().await?,
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

async fn note_slots(write: &mut Connection, commit: &Commit<'_>) -> Result<(), StoreError> {
    let slot_row = |slot: u64, blockhash| -> Result<SlotRow<'_>, StoreError> {
        Ok(SlotRow {
            slot: signed(slot, "slot")?,
            blockhash,
        })
    };
    if !commit.opened.is_empty() {
        let opened = commit
            .opened
            .iter()
            .map(|open| slot_row(open.slot, open.blockhash.as_deref()))
            .collect::<Result<Vec<_>, _>>()?;
        write
            .execute(
                over_rows!(
                    [slot bigint, blockhash text],
                    "INSERT INTO open_slots (slot, blockhash) SELECT slot, blockhash FROM v WHERE true
                     ON CONFLICT (slot) DO UPDATE
                     SET blockhash = coalesce(excluded.blockhash, open_slots.blockhash)"
                ),
                values![json_rows(&opened)?],
            )
            .await?;
    }
    if !commit.settled.is_empty() {
        let settled = commit
            .settled
            .iter()
            .map(|slot| slot_row(*slot, None))
            .collect::<Result<Vec<_>, _>>()?;
        write
            .execute(
                over_rows!(
                    [slot bigint],
                    "DELETE FROM open_slots WHERE slot IN (SELECT slot FROM v)"
                ),
                values![json_rows(&settled)?],
            )
            .await?;
    }
    Ok(())
}
