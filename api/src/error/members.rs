//! Members of problem documents beside the standard ones, by which programs learn what `detail` says in words (pure).

use serde_json::{Map, Value, json};

use super::ApiError;

impl ApiError {
    /// Machine-readable members beside the standard ones.
    pub(super) fn members(&self) -> Map<String, Value> {
        let members = match self {
            Self::InvalidField { field, .. } | Self::UnknownField { field, .. } => {
                json!({ "field": field })
            }
            Self::MissingField { field } => json!({ "field": field }),
            Self::NotServed { field, limit, .. } => json!({ "field": field, "limit": limit }),
            Self::IdempotencyKeyReused { webhook } => {
                json!({ "field": "Idempotency-Key", "webhook": webhook })
            }
            Self::AmountTooLarge { pool } => json!({ "pool": pool }),
            Self::PoolNotOpen { pool, open_time } => json!({ "pool": pool, "openTime": open_time }),
            Self::PriceImpactTooHigh { impact, most } => {
                json!({ "priceImpactBps": impact, "maxPriceImpactBps": most })
            }
            Self::Swap(refusal) => return refusal.members(),
            Self::MarketNotReady { slot, lag, .. } => {
                json!({ "slot": slot, "slotLag": lag })
            }
            Self::VersionConflict { current } => json!({ "version": current }),
            Self::MissingScope { scope } => json!({ "scope": scope.name() }),
            _ => json!({}),
        };
        match members {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}
