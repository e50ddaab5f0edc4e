//! Stored IDLs: uploads, reads and removes those of owners, and keeps what the chain has.

use solana_pubkey::Pubkey;

use super::{
    retried::retried,
    rows,
    store::Store,
    webhook_row::{api_key_ordinal, lock_api_key},
};
use crate::{
    Access, ChainIdl, MAX_OWNER_IDL_BYTES, StoreError, StoredIdls, Timestamp, UploadedIdl,
    backend::{Connection, Durability, Row, values},
};

/// The owner whose ordinal is `$1`, null for the keyless caller.
macro_rules! of_owner {
    ($rest:literal) => {
        concat!(
            "coalesce(api_key, 0) = coalesce(CAST($1 AS BIGINT), 0) AND ",
            $rest
        )
    };
}

impl Store {
    /// Keeps the IDL that an owner uploads for a program, in the place of the one before.
    ///
    /// # Errors
    /// [`StoreError::IdlQuota`], [`StoreError::NoSuchApiKey`], or a failure of the database.
    pub async fn upload_idl(
        &self,
        access: &Access,
        program: &Pubkey,
        idl: &UploadedIdl,
    ) -> Result<(), StoreError> {
        retried!(self.try_upload_idl(access, program, idl))
    }

    async fn try_upload_idl(
        &self,
        access: &Access,
        program: &Pubkey,
        idl: &UploadedIdl,
    ) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let owner = lock_owner(&mut write, access).await?;
        // Before counting, so that two uploads at once do not both find room.
        bump_revision(&mut write).await?;
        write
            .execute(
                concat!("DELETE FROM idls WHERE ", of_owner!("program = $2")),
                values![owner, program.to_string()],
            )
            .await?;
        write
            .execute(
                "INSERT INTO idls (api_key, program, idl, uploaded_at) VALUES ($1, $2, $3, $4)",
                values![owner, program.to_string(), idl.text.as_str(), idl.uploaded],
            )
            .await?;
        let kept = write
            .one_row(
                concat!(
                    "SELECT CAST(sum(length(idl)) AS BIGINT) AS bytes FROM idls WHERE ",
                    of_owner!("1 = 1")
                ),
                values![owner],
            )
            .await?;
        let bytes = kept.unsigned("bytes")?;
        if bytes > MAX_OWNER_IDL_BYTES {
            return Err(StoreError::IdlQuota {
                bytes,
                limit: MAX_OWNER_IDL_BYTES,
            });
        }
        write.commit().await
    }

    /// The IDL that the caller uploaded for a program.
    ///
    /// # Errors
    /// [`StoreError::NoSuchApiKey`], or a failure of the database.
    pub async fn uploaded_idl(
        &self,
        access: &Access,
        program: &Pubkey,
    ) -> Result<Option<UploadedIdl>, StoreError> {
        let mut read = self.read().await?;
        let owner = owner(&mut read, access).await?;
        let row = read
            .row(
                concat!(
                    "SELECT idl, uploaded_at FROM idls WHERE ",
                    of_owner!("program = $2")
                ),
                values![owner, program.to_string()],
            )
            .await?;
        row.map(|row| {
            Ok(UploadedIdl {
                text: row.text("idl")?,
                uploaded: row.time("uploaded_at")?,
            })
        })
        .transpose()
    }

    /// Removes the IDL that the caller uploaded for a program; false when there is none.
    ///
    /// # Errors
    /// [`StoreError::NoSuchApiKey`], or a failure of the database.
    pub async fn remove_idl(&self, access: &Access, program: &Pubkey) -> Result<bool, StoreError> {
        retried!(self.try_remove_idl(access, program))
    }

    async fn try_remove_idl(&self, access: &Access, program: &Pubkey) -> Result<bool, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let owner = lock_owner(&mut write, access).await?;
        bump_revision(&mut write).await?;
        let removed = write
            .execute(
                concat!("DELETE FROM idls WHERE ", of_owner!("program = $2")),
                values![owner, program.to_string()],
            )
            .await?;
        if removed == 0 {
            return Ok(false);
        }
        write.commit().await?;
        Ok(true)
    }

    /// What the IDL accounts of a program held when they were read last; `None` where they never were.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn chain_idl(&self, program: &Pubkey) -> Result<Option<ChainIdl>, StoreError> {
        let mut read = self.read().await?;
        let row = read
            .row(
                "SELECT idl, read_at FROM chain_idls WHERE program = $1",
                values![program.to_string()],
            )
            .await?;
        row.map(|row| {
            Ok(ChainIdl {
                text: row.optional_text("idl")?,
                read: row.time("read_at")?,
            })
        })
        .transpose()
    }

    /// Keeps what the IDL accounts of a program hold.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn keep_chain_idl(&self, program: &Pubkey, idl: &ChainIdl) -> Result<(), StoreError> {
        retried!(self.try_keep_chain_idl(program, idl))
    }

    async fn try_keep_chain_idl(&self, program: &Pubkey, idl: &ChainIdl) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        bump_revision(&mut write).await?;
        write
            .execute(
                "INSERT INTO chain_idls (program, idl, read_at) VALUES ($1, $2, $3)
                 ON CONFLICT (program) DO UPDATE SET idl = excluded.idl, read_at = excluded.read_at",
                values![program.to_string(), idl.text.clone(), idl.read],
            )
            .await?;
        write.commit().await
    }

    /// When the IDL accounts of programs were read last.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn chain_idl_times(&self) -> Result<Vec<(Pubkey, Timestamp)>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows("SELECT program, read_at FROM chain_idls", values![])
            .await?;
        let time = |row: &Row| Ok((program(row)?, row.time("read_at")?));
        found.iter().map(time).collect()
    }

    /// Forgets what the accounts of a program held, which nobody watches any more.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn forget_chain_idl(&self, program: &Pubkey) -> Result<(), StoreError> {
        retried!(self.try_forget_chain_idl(program))
    }

    async fn try_forget_chain_idl(&self, program: &Pubkey) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        bump_revision(&mut write).await?;
        write
            .execute(
                "DELETE FROM chain_idls WHERE program = $1",
                values![program.to_string()],
            )
            .await?;
        write.commit().await
    }

    /// All that are stored, read in one snapshot.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn stored_idls(&self) -> Result<StoredIdls, StoreError> {
        let mut snapshot = self.snapshot().await?;
        let revision = select_revision(&mut snapshot).await?;
        let uploaded = snapshot
            .rows("SELECT api_key, program, idl FROM idls", values![])
            .await?;
        let chain = snapshot
            .rows(
                "SELECT program, idl FROM chain_idls WHERE idl IS NOT NULL",
                values![],
            )
            .await?;
        let of_owner = |row: &Row| Ok((rows::tenant(row)?, program(row)?, row.text("idl")?));
        let of_chain = |row: &Row| Ok((program(row)?, row.text("idl")?));
        Ok(StoredIdls {
            revision,
            uploaded: uploaded
                .iter()
                .map(of_owner)
                .collect::<Result<_, StoreError>>()?,
            chain: chain
                .iter()
                .map(of_chain)
                .collect::<Result<_, StoreError>>()?,
        })
    }

    /// Counts the changes of what is stored: one row, cheap enough to be polled.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn idl_revision(&self) -> Result<u64, StoreError> {
        let mut read = self.read().await?;
        select_revision(&mut read).await
    }
}

/// Gives one owner's IDLs to another, but for those of programs of which that one has its own.
pub(super) async fn adopt(
    write: &mut Connection,
    from: Option<i64>,
    to: i64,
) -> Result<(), StoreError> {
    bump_revision(write).await?;
    write
        .execute(
            concat!(
                "UPDATE idls SET api_key = $2 WHERE ",
                of_owner!(
                    "program NOT IN (SELECT own.program FROM idls own WHERE own.api_key = $2)"
                )
            ),
            values![from, to],
        )
        .await?;
    Ok(())
}

/// The ordinal of the caller's key.
async fn owner(connection: &mut Connection, access: &Access) -> Result<Option<i64>, StoreError> {
    match access {
        Access::All => Ok(None),
        Access::Key(key) => Ok(Some(api_key_ordinal(connection, key).await?)),
    }
}

/// The same for who writes: until the transaction ends the key is not revoked.
async fn lock_owner(write: &mut Connection, access: &Access) -> Result<Option<i64>, StoreError> {
    match access {
        Access::All => Ok(None),
        Access::Key(key) => Ok(Some(lock_api_key(write, key).await?)),
    }
}

/// Until the transaction ends all others that would change an IDL wait for it.
async fn bump_revision(write: &mut Connection) -> Result<(), StoreError> {
    let bump = "UPDATE idl_revision SET revision = revision + 1";
    write.execute(bump, values![]).await?;
    Ok(())
}

async fn select_revision(connection: &mut Connection) -> Result<u64, StoreError> {
    let select = "SELECT revision FROM idl_revision";
    connection
        .one_row(select, values![])
        .await?
        .unsigned("revision")
}

fn program(row: &Row) -> Result<Pubkey, StoreError> {
    row.text("program")?
        .parse()
        .map_err(|_| StoreError::Corrupt {
            what: "idls.program",
        })
}
