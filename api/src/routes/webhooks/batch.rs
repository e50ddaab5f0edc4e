//! Batches on the wire: how many messages of a webhook one POST carries.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_store::{Batch, MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, MAX_BATCH_WAIT, MIN_BATCH_BYTES};
use utoipa::ToSchema;

use crate::error::ApiError;

/// One POST of an array of messages, in order, under one signature. Null posts each message alone.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = BatchOptions)]
pub(super) struct BatchBody {
    /// Most messages; 100 unless given.
    #[schema(minimum = 1, maximum = 500)]
    max_messages: Option<u32>,
    /// Most bytes of their bodies; 1048576 unless given. A longer message is posted in a batch of its own.
    #[schema(minimum = 1024, maximum = 4194304)]
    max_bytes: Option<u32>,
    /// How long a message waits for others, milliseconds; 1000 unless given. In the orders `none` and `strict` no longer than until they fill a batch.
    #[schema(minimum = 0, maximum = 5000)]
    max_wait_ms: Option<u32>,
}

/// How messages are put together.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Batch)]
pub(super) struct BatchView {
    /// Most messages.
    max_messages: u32,
    /// Most bytes of their bodies.
    max_bytes: u32,
    /// How long a message waits for others, milliseconds.
    max_wait_ms: u64,
}

impl BatchView {
    pub(super) fn of(batch: Batch) -> Self {
        Self {
            max_messages: batch.max_messages,
            max_bytes: batch.max_bytes,
            max_wait_ms: u64::try_from(batch.max_wait.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Checks the bounds, and gives what is absent its default.
pub(super) fn check(body: BatchBody) -> Result<Batch, ApiError> {
    let default = Batch::default();
    let batch = Batch {
        max_messages: body.max_messages.unwrap_or(default.max_messages),
        max_bytes: body.max_bytes.unwrap_or(default.max_bytes),
        max_wait: body
            .max_wait_ms
            .map_or(default.max_wait, |wait| Duration::from_millis(wait.into())),
    };
    let refused = |field: &str, rule: String| Err(ApiError::invalid(field, rule));
    if !(1..=MAX_BATCH_MESSAGES).contains(&batch.max_messages) {
        return refused(
            "batch.maxMessages",
            format!("must be 1 to {MAX_BATCH_MESSAGES}"),
        );
    }
    if !(MIN_BATCH_BYTES..=MAX_BATCH_BYTES).contains(&batch.max_bytes) {
        let rule = format!("must be {MIN_BATCH_BYTES} to {MAX_BATCH_BYTES} bytes");
        return refused("batch.maxBytes", rule);
    }
    if batch.max_wait > MAX_BATCH_WAIT {
        let rule = format!("must be 0 to {} milliseconds", MAX_BATCH_WAIT.as_millis());
        return refused("batch.maxWaitMs", rule);
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(body: serde_json::Value) -> Result<Batch, ApiError> {
        check(serde_json::from_value(body).expect("a body"))
    }

    #[test]
    fn bounds_are_kept_and_named() {
        assert_eq!(checked(json!({})).expect("defaults"), Batch::default());
        let most = json!({ "maxMessages": 500, "maxBytes": 4_194_304, "maxWaitMs": 5000 });
        assert_eq!(checked(most).expect("in bounds").max_messages, 500);
        for (field, beyond) in [
            ("maxMessages", 0),
            ("maxMessages", 501),
            ("maxBytes", 1023),
            ("maxBytes", 4_194_305),
            ("maxWaitMs", 5001),
        ] {
            let error = checked(json!({ field: beyond })).expect_err(field);
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("batch.{field}: must be")),
                "{error}"
            );
        }
    }
}
