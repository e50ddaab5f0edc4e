//! Refused filters: which webhooks the stream's server does not serve, and why.

use super::{retried::retried, store::Store};
use crate::{
    Revision, StoreError, WebhookId,
    backend::{Durability, json_rows, over_rows, signed, values},
};

impl Store {
    /// Records that the server refuses the filter of a webhook, in these words; false when the filter was written after
    /// `revision`, or the webhook is gone.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn record_refusal(
        &self,
        webhook: &WebhookId,
        revision: Revision,
        words: &str,
    ) -> Result<bool, StoreError> {
        retried!(self.try_record_refusal(webhook, revision, words))
    }

    async fn try_record_refusal(
        &self,
        webhook: &WebhookId,
        revision: Revision,
        words: &str,
    ) -> Result<bool, StoreError> {
        let mut write = self.write(Durability::Durable).await?;
        let recorded = write
            .execute(
                "UPDATE webhooks SET refused = $3 WHERE id = $1 AND deleted = 0 AND matched_revision <= $2",
                values![webhook.as_str(), signed(revision.0, "revision")?, words],
            )
            .await?;
        write.commit().await?;
        Ok(recorded > 0)
    }

    /// Records that the server refuses no webhook but these.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn clear_refusals_but(&self, refused: &[WebhookId]) -> Result<(), StoreError> {
        #[derive(serde::Serialize)]
        struct IdRow<'a> {
            id: &'a str,
        }
        let refused: Vec<_> = refused
            .iter()
            .map(|webhook| IdRow {
                id: webhook.as_str(),
            })
            .collect();
        let refused = json_rows(&refused)?;
        retried!(self.try_clear_refusals_but(&refused))
    }

    async fn try_clear_refusals_but(&self, refused: &str) -> Result<(), StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        // In the order of the key, as wherever several webhooks are written.
        write
            .lock(
                "SELECT w.ordinal FROM webhooks w WHERE w.refused IS NOT NULL AND w.id NOT IN (
                     SELECT t.id FROM json_to_recordset(CAST($1 AS json)) AS t (id text))
                 ORDER BY w.ordinal FOR UPDATE",
                values![refused],
            )
            .await?;
        write
            .execute(
                over_rows!(
                    [id text],
                    "UPDATE webhooks SET refused = NULL
                     WHERE refused IS NOT NULL AND id NOT IN (SELECT id FROM v)"
                ),
                values![refused],
            )
            .await?;
        write.commit().await
    }
}
