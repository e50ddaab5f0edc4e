//! Absent or null: members of a change, where the one leaves a setting as it is and the other sets its default.

use serde::{Deserialize, Deserializer};

/// A member that is there, null or not; one that is absent is the default, `None`.
pub fn or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
