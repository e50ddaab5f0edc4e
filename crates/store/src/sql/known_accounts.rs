//! Known accounts: written with the checkpoint that they belong to, and read by the next session.

use serde::Serialize;
use solana_pubkey::Pubkey;

use super::store::Store;
use crate::{
    KnownAccount, KnownAccountChanges, StoreError,
    backend::{Connection, json_rows, over_rows, signed, unsigned, values},
};

/// Rows of one statement: its parameter stays below two megabytes.
const ROWS_AT_ONCE: usize = 10_000;

#[derive(Serialize)]
struct KnownRow {
    address: String,
    since_slot: i64,
    owner: String,
    left_slot: Option<i64>,
}

/// Writes what has changed, as part of a commit.
pub(super) async fn write_known_accounts(
    write: &mut Connection,
    changes: &KnownAccountChanges,
) -> Result<(), StoreError> {
    let forgotten: Vec<_> = changes.forgotten.iter().collect();
    for forgotten in forgotten.chunks(ROWS_AT_ONCE) {
        let row = |(address, since_slot): &&(Pubkey, u64)| {
            Ok(KnownRow {
                address: address.to_string(),
                since_slot: signed(*since_slot, "slot")?,
                owner: String::new(),
                left_slot: None,
            })
        };
        let rows = forgotten
            .iter()
            .map(row)
            .collect::<Result<Vec<_>, StoreError>>()?;
        write
            .execute(
                over_rows!(
                    [address text, since_slot bigint],
                    "DELETE FROM known_accounts
                     WHERE (address, since_slot) IN (SELECT address, since_slot FROM v)"
                ),
                values![json_rows(&rows)?],
            )
            .await?;
    }
    let written: Vec<_> = changes.written.values().collect();
    for written in written.chunks(ROWS_AT_ONCE) {
        let row = |known: &&KnownAccount| {
            let left_slot = known.left_slot.map(|slot| signed(slot, "slot"));
            Ok(KnownRow {
                address: known.address.to_string(),
                since_slot: signed(known.since_slot, "slot")?,
                owner: known.owner.to_string(),
                left_slot: left_slot.transpose()?,
            })
        };
        let rows = written
            .iter()
            .map(row)
            .collect::<Result<Vec<_>, StoreError>>()?;
        write
            .execute(
                over_rows!(
                    [address text, since_slot bigint, owner text, left_slot bigint],
                    "INSERT INTO known_accounts (address, since_slot, owner, left_slot)
                     SELECT address, since_slot, owner, left_slot FROM v WHERE true
                     ON CONFLICT (address, since_slot) DO UPDATE
                     SET owner = excluded.owner, left_slot = excluded.left_slot"
                ),
                values![json_rows(&rows)?],
            )
            .await?;
    }
    Ok(())
}

impl Store {
    /// The known accounts, by address and first slot.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn known_accounts(&self) -> Result<Vec<KnownAccount>, StoreError> {
        let mut read = self.read().await?;
        let rows = read
            .rows(
                "SELECT address, since_slot, owner, left_slot FROM known_accounts
                 ORDER BY address, since_slot",
                values![],
            )
            .await?;
        let address = |text: String, what: &'static str| {
            text.parse::<Pubkey>()
                .map_err(|_| StoreError::Corrupt { what })
        };
        let known = rows.iter().map(|row| {
            let left_slot = row.optional_integer("left_slot")?;
            Ok(KnownAccount {
                address: address(row.text("address")?, "known_accounts.address")?,
                since_slot: row.unsigned("since_slot")?,
                owner: address(row.text("owner")?, "known_accounts.owner")?,
                left_slot: left_slot
                    .map(|slot| unsigned(slot, "left_slot"))
                    .transpose()?,
            })
        });
        known.collect()
    }
}
