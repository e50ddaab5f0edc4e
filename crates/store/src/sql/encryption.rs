//! Encryption of what is stored: refuses keys that do not open it, seals what is plaintext, and changes to another key.
//!
//! A database keeps what is replaced for a while. SQLite's file is rid of it before plaintext counts as sealed. PostgreSQL rids
//! itself of it: the rows that were replaced stay in the table's file until a vacuum and until their place is used again, and what
//! was written before stays in the write-ahead log, its archive, and backups, none of which is in the hands of a client.

use super::{
    retried::retried,
    rows,
    store::{Database, Store},
};
use crate::{
    EncryptionKeys, StoreError,
    backend::{Durability, Row, Value, values},
    model::{SealFault, SealedColumn},
};

/// Webhooks that one transaction seals: few enough that no other write waits noticeably for its turn.
const BATCH: i64 = 100;

/// The sealed columns, and what follows the beginning `$1` in each that has it: the id of the key.
const KEYS_IN_USE: &str = "
    SELECT DISTINCT substr(stored, length(CAST($1 AS TEXT)) + 1, 16) AS key_id FROM (
        SELECT secret AS stored FROM webhooks UNION ALL SELECT previous_secrets FROM webhooks
        UNION ALL SELECT headers FROM webhooks
    ) kept WHERE substr(stored, 1, length(CAST($1 AS TEXT))) = $1";

/// Webhooks of which some column does not begin with `$1`.
const UNSEALED: &str = "
    SELECT ordinal, id, secret, previous_secrets, headers FROM webhooks
    WHERE substr(secret, 1, length(CAST($1 AS TEXT))) <> $1
        OR substr(previous_secrets, 1, length(CAST($1 AS TEXT))) <> $1
        OR substr(headers, 1, length(CAST($1 AS TEXT))) <> $1
    ORDER BY ordinal LIMIT $2";

/// Replaces what is stored, unless it was replaced since it was read.
const REPLACE: &str = "
    UPDATE webhooks SET secret = $2, previous_secrets = $3, headers = $4
    WHERE ordinal = $1 AND secret = $5 AND headers = $7
        AND coalesce(previous_secrets, '') = coalesce(CAST($6 AS TEXT), '')";

impl Store {
    /// The store as it reads and writes under these keys. What is plaintext is sealed first when they have a current one; a
    /// process that ends before all is sealed has spoilt nothing, and the next start goes on. An SQLite file is then written anew,
    /// so that nothing of the plaintext is left in it, as is one that a build sealed which did not do so.
    ///
    /// # Errors
    /// [`StoreError::NoEncryptionKey`] when something is sealed by another key, before anything is changed, or a failure of the
    /// database. The connections are closed then.
    pub async fn encrypted(mut self, keys: EncryptionKeys) -> Result<Self, StoreError> {
        self.keys = keys;
        match self.take_keys().await {
            Ok(()) => Ok(self),
            Err(error) => {
                self.close().await;
                Err(error)
            }
        }
    }

    async fn take_keys(&self) -> Result<(), StoreError> {
        self.check_keys().await?;
        if self.keys.current_id().is_some() {
            self.seal_all(EncryptionKeys::sealed_beginning()).await?;
        } else if let Database::Sqlite(database) = &self.database {
            database.expect_plaintext().await?;
        }
        Ok(())
    }

    /// Seals by the current key whatever another one has sealed, so that the previous one is not needed any more; returns of how
    /// many webhooks. It may be ended at any time and called again. `None` without a current key.
    ///
    /// # Errors
    /// [`StoreError::NoEncryptionKey`] when something is sealed by a third key, or a failure of the database.
    pub async fn reencrypt(&self) -> Result<Option<u64>, StoreError> {
        self.check_keys().await?;
        match self.keys.current_beginning() {
            None => Ok(None),
            Some(beginning) => self.seal_all(&beginning).await.map(Some),
        }
    }

    /// The id of the key by which the store seals.
    #[must_use]
    pub fn encryption_key_id(&self) -> Option<&str> {
        self.keys.current_id()
    }

    /// Refuses keys without one that something is sealed by.
    async fn check_keys(&self) -> Result<(), StoreError> {
        let mut read = self.read().await?;
        let beginning = EncryptionKeys::sealed_beginning();
        for row in &read.rows(KEYS_IN_USE, values![beginning]).await? {
            self.keys.check(&row.text("key_id")?)?;
        }
        Ok(())
    }

    /// Seals every webhook of which some column does not begin so, and rids SQLite's file of the plaintext; returns how many.
    async fn seal_all(&self, beginning: &str) -> Result<u64, StoreError> {
        let mut sealed = 0_u64;
        while let Some(batch) = retried!(self.seal_batch(beginning))? {
            sealed = sealed.saturating_add(batch);
        }
        // Whether or not this process has sealed it: the one that has may not have come so far.
        if let Database::Sqlite(database) = &self.database {
            database.clean().await?;
        }
        Ok(sealed)
    }

    /// `None` when nothing is left.
    async fn seal_batch(&self, beginning: &str) -> Result<Option<u64>, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let found = write.rows(UNSEALED, values![beginning, BATCH]).await?;
        if found.is_empty() {
            write.commit().await?;
            return Ok(None);
        }
        let mut sealed = 0_u64;
        for row in &found {
            let replaced = write.execute(REPLACE, resealed(row, &self.keys)?).await?;
            sealed = sealed.saturating_add(replaced);
        }
        let plaintext = found.iter().map(has_plaintext);
        if plaintext.collect::<Result<Vec<_>, _>>()?.contains(&true) {
            write.note_replaced_plaintext().await?;
        }
        write.commit().await?;
        Ok(Some(sealed))
    }
}

/// Whether something of a webhook is not sealed, by any key.
fn has_plaintext(row: &Row) -> Result<bool, StoreError> {
    let columns = [
        Some(row.text("secret")?),
        row.optional_text("previous_secrets")?,
        Some(row.text("headers")?),
    ];
    let is_plain = |stored: &String| !stored.starts_with(EncryptionKeys::sealed_beginning());
    Ok(columns.iter().flatten().any(is_plain))
}

/// The parameters of [`REPLACE`]: the columns sealed by the current key, and as they are.
fn resealed(row: &Row, keys: &EncryptionKeys) -> Result<Vec<Value>, StoreError> {
    let id = rows::webhook_id(row, "id")?;
    let reseal = |column, stored: String| -> Result<String, StoreError> {
        Ok(keys.seal(&id, column, keys.open(&id, column, stored)?)?)
    };
    let (secret, headers) = (row.text("secret")?, row.text("headers")?);
    let previous = row.optional_text("previous_secrets")?;
    let sealed_previous = previous
        .clone()
        .map(|stored| reseal(SealedColumn::PreviousSecrets, stored))
        .transpose()?;
    Ok(values![
        row.integer("ordinal")?,
        reseal(SealedColumn::Secret, secret.clone())?,
        sealed_previous,
        reseal(SealedColumn::Headers, headers.clone())?,
        secret,
        previous,
        headers,
    ])
}

impl From<SealFault> for StoreError {
    fn from(fault: SealFault) -> Self {
        match fault {
            SealFault::UnknownKey { id } => Self::NoEncryptionKey { id },
            SealFault::Damaged => Self::Corrupt {
                what: "encrypted secret or header of a webhook",
            },
        }
    }
}
