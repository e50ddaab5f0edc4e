//! Recovery of an endpoint: what waits for a retry is due at once when it accepts again.
//!
//! However much waits is made due in rounds, so that no transaction is long. The first is part of the one that records the
//! acceptance. They go from what would be due last to what would be due first: of a process that ends between two rounds the least
//! is left waiting, and what is refused again meanwhile, and waits a little for its next retry, is not pulled forward in each of them.

use super::{retried::retried, rows, store::Store};
use crate::{
    Breaker, Recovering, StoreError, Timestamp,
    backend::{Connection, Durability, Sql, values},
};

/// What waits for a retry at webhook `$1` after `$2`, and would be due before the one that is due at `$3` with the sequence `$4`.
/// Leased ones are under way.
macro_rules! waiting {
    ($select:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM deliveries d
             WHERE d.webhook = $1 AND d.due_at > $2 AND d.lease_token IS NULL AND (d.due_at, d.sequence) < ($3, $4)
             ORDER BY d.due_at DESC, d.sequence DESC ",
            $rest
        )
    };
}

/// The last of a round, `$5` being one less than how many it may have; none where fewer wait.
const LAST: &str = waiting!("d.due_at, d.sequence", "LIMIT 1 OFFSET $5");

/// At most `$5`.
const PULL: Sql = Sql {
    sqlite: concat!(
        "UPDATE deliveries SET due_at = $2 WHERE webhook = $1 AND sequence IN (",
        waiting!("d.sequence", "LIMIT $5"),
        ")"
    ),
    postgres: concat!(
        "UPDATE deliveries SET due_at = $2 WHERE webhook = $1 AND sequence IN (",
        waiting!("d.sequence", "LIMIT $5 FOR UPDATE SKIP LOCKED"),
        ")"
    ),
};

impl Store {
    /// Goes on with a recovery, in one transaction of at most `most` deliveries; `None` when nothing is left of it, or the endpoint
    /// fails again: whatever waits then is pulled forward when it recovers from that.
    ///
    /// # Errors
    /// A failure of the database; the same round may be tried again.
    pub async fn pull_forward(
        &self,
        recovering: &Recovering,
        most: u32,
    ) -> Result<Option<Recovering>, StoreError> {
        retried!(self.try_pull_forward(recovering, most))
    }

    async fn try_pull_forward(
        &self,
        recovering: &Recovering,
        most: u32,
    ) -> Result<Option<Recovering>, StoreError> {
        let mut write = self.write(Durability::Relaxed).await?;
        let endpoint = write
            .row(
                "SELECT breaker FROM endpoints WHERE webhook = $1",
                values![recovering.webhook],
            )
            .await?;
        let breaker = endpoint.as_ref().map(rows::breaker).transpose()?;
        if breaker != Some(Breaker::Closed) {
            return Ok(None);
        }
        let rest = round(&mut write, recovering, most).await?;
        write.commit().await?;
        Ok(rest)
    }
}

/// Makes the waiting deliveries of these webhooks due at `now`, at most `most` of each; returns of which there are more. They keep
/// their place in the retry schedule. Of those with lanes only the first of each lane waits for a time, and the others follow it.
pub(super) async fn begin(
    write: &mut Connection,
    webhooks: &[i64],
    now: Timestamp,
    most: u32,
) -> Result<Vec<Recovering>, StoreError> {
    let mut rest = Vec::new();
    for webhook in webhooks {
        let whole = Recovering {
            webhook: *webhook,
            now,
            before: (Timestamp::from_unix_millis(i64::MAX), i64::MAX),
        };
        rest.extend(round(write, &whole, most).await?);
    }
    Ok(rest)
}

async fn round(
    write: &mut Connection,
    recovering: &Recovering,
    most: u32,
) -> Result<Option<Recovering>, StoreError> {
    let Recovering {
        webhook,
        now,
        before: (due_at, sequence),
    } = *recovering;
    let bounded = |count: u32| values![webhook, now, due_at, sequence, i64::from(count)];
    let last = write.row(LAST, bounded(most.saturating_sub(1))).await?;
    write.execute(PULL, bounded(most)).await?;
    let rest = last.map(|last| {
        Ok::<_, StoreError>(Recovering {
            before: (last.time("due_at")?, last.integer("sequence")?),
            ..*recovering
        })
    });
    rest.transpose()
}
