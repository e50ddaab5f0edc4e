//! Address limits: what the indexer found of the stream's servers, for the processes that have no stream.

use super::{retried::retried, store::Store};
use crate::{
    AddressLimits, StoreError,
    backend::{Durability, signed, unsigned, values},
};

impl Store {
    /// Records how many addresses the stream serves, and whether it shows closes.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn record_address_limits(&self, limits: AddressLimits) -> Result<(), StoreError> {
        retried!(self.try_record_address_limits(limits))
    }

    async fn try_record_address_limits(&self, limits: AddressLimits) -> Result<(), StoreError> {
        let column = |limit: Option<u64>| limit.map(|limit| signed(limit, "limit")).transpose();
        let mut write = self.write(Durability::Durable).await?;
        write
            .execute(
                "INSERT INTO address_limits (one, accounts, owners, mentioned, closes_unseen) VALUES (1, $1, $2, $3, $4)
                 ON CONFLICT (one) DO UPDATE
                 SET accounts = excluded.accounts, owners = excluded.owners, mentioned = excluded.mentioned,
                     closes_unseen = excluded.closes_unseen",
                values![
                    column(limits.accounts)?,
                    column(limits.owners)?,
                    column(limits.mentioned)?,
                    limits.closes_unseen
                ],
            )
            .await?;
        write.commit().await
    }

    /// How many addresses the stream serves, and whether it shows closes, as it was found last.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn address_limits(&self) -> Result<AddressLimits, StoreError> {
        let mut read = self.read().await?;
        let row = read
            .row(
                "SELECT accounts, owners, mentioned, closes_unseen FROM address_limits",
                values![],
            )
            .await?;
        let Some(row) = row else {
            return Ok(AddressLimits::default());
        };
        let limit = |name: &'static str| -> Result<Option<u64>, StoreError> {
            let stored = row.optional_integer(name)?;
            stored.map(|limit| unsigned(limit, name)).transpose()
        };
        Ok(AddressLimits {
            accounts: limit("accounts")?,
            owners: limit("owners")?,
            mentioned: limit("mentioned")?,
            closes_unseen: row.flag("closes_unseen")?,
        })
    }
}
