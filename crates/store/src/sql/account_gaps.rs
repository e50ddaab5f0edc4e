//! Account gaps: slots whose changes of accounts were not read, until webhooks have got a `gap`.

use super::{retried::retried, rows, store::Store};
use crate::{
    AccountGap, Commitment, StoreError,
    backend::{Durability, signed, values},
};

impl Store {
    /// Notes that changes of accounts are missing from a slot on. Where that is noted already, the first slot stands.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn note_account_gap(&self, gap: AccountGap) -> Result<(), StoreError> {
        retried!(self.try_note_account_gap(gap))
    }

    async fn try_note_account_gap(&self, gap: AccountGap) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        write
            .execute(
                "INSERT INTO account_gaps (commitment, first_slot) VALUES ($1, $2)
                 ON CONFLICT (commitment) DO NOTHING",
                values![gap.commitment.name(), signed(gap.first_slot, "slot")?],
            )
            .await?;
        write.commit().await
    }

    /// The account gaps that were noted and not forgotten.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn account_gaps(&self) -> Result<Vec<AccountGap>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows(
                "SELECT commitment, first_slot FROM account_gaps ORDER BY commitment",
                values![],
            )
            .await?;
        let gap = |row| {
            Ok(AccountGap {
                commitment: rows::commitment(row)?,
                first_slot: row.unsigned("first_slot")?,
            })
        };
        found.iter().map(gap).collect()
    }

    /// Forgets the account gap of a commitment: webhooks have got a `gap` for it.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn forget_account_gap(&self, commitment: Commitment) -> Result<(), StoreError> {
        retried!(self.try_forget_account_gap(commitment))
    }

    async fn try_forget_account_gap(&self, commitment: Commitment) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        write
            .execute(
                "DELETE FROM account_gaps WHERE commitment = $1",
                values![commitment.name()],
            )
            .await?;
        write.commit().await
    }
}
