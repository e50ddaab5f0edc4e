//! Refused filters: which webhooks the stream's server does not serve, and why.

use super::store::Store;
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
        let mut write = self.write(Durability::Relaxed).await?;
        write
            .execute(
                over_rows!(
                    [id text],
                    "UPDATE webhooks SET refused = NULL
                     WHERE refused IS NOT NULL AND id NOT IN (SELECT id FROM v)"
                ),
                values![json_rows(&refused)?],
            )
            .await?;
        write.commit().await
    }
}
