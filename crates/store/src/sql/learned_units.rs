//! Learned units: what the API has learned of the exchange's compute units, kept for its next process.

use super::{retried::retried, store::Store};
use crate::{
    StoreError,
    backend::{Durability, values},
};

impl Store {
    /// Keeps what was learned, in the place of what was kept before. Of several processes the last one's stays: each learns
    /// the same from the same chain.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn keep_learned_units(&self, learned: &str) -> Result<(), StoreError> {
        retried!(self.try_keep_learned_units(learned))
    }

    async fn try_keep_learned_units(&self, learned: &str) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        write
            .execute(
                "INSERT INTO learned_units (one, learned) VALUES (1, $1)
                 ON CONFLICT (one) DO UPDATE SET learned = excluded.learned",
                values![learned],
            )
            .await?;
        write.commit().await
    }

    /// What was kept last.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn learned_units(&self) -> Result<Option<String>, StoreError> {
        let mut read = self.read().await?;
        let found = read
            .rows("SELECT learned FROM learned_units WHERE one = 1", values![])
            .await?;
        found.first().map(|row| row.text("learned")).transpose()
    }
}
