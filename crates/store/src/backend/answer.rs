//! Answer: what a database server says to a statement, waited for no longer than a limit.

use std::time::Duration;

use crate::StoreError;

/// How long any statement may take. None takes a second but on a database that is overloaded; a network that swallows
/// everything would hold its caller for a quarter of an hour.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The answer to a statement, or an error once it takes too long.
pub(super) async fn answered<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    in_time(ANSWER_TIMEOUT, answer).await
}

/// An answer, or an error once it takes longer than this.
pub(super) async fn in_time<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(StoreError::NoAnswer {
            seconds: limit.as_secs(),
        }),
    }
}
