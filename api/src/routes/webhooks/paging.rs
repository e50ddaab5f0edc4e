//! Parameters of lists.

use crate::{error::ApiError, extract::QueryMap};

/// How many entries a page may have.
pub(super) struct PageSize {
    /// When the caller does not say.
    pub(super) default: u32,
    /// At most.
    pub(super) most: u32,
}

impl PageSize {
    /// The parameter `limit`.
    pub(super) fn of(&self, query: &QueryMap) -> Result<u32, ApiError> {
        let Some(text) = query.get("limit") else {
            return Ok(self.default);
        };
        let limit = text.parse().ok();
        limit
            .filter(|limit| (1..=self.most).contains(limit))
            .ok_or_else(|| {
                ApiError::invalid(
                    "limit",
                    format!("must be an integer from 1 to {}", self.most),
                )
            })
    }
}

/// The parameter `cursor`, which the page before gave.
pub(super) fn cursor(query: &QueryMap) -> Result<Option<i64>, ApiError> {
    let Some(text) = query.get("cursor") else {
        return Ok(None);
    };
    let position = text.parse().ok().filter(|position| *position >= 0);
    position
        .map(Some)
        .ok_or_else(|| ApiError::invalid("cursor", "must be the nextCursor of an earlier page"))
}

/// A parameter that is a number of a message.
pub(super) fn number(query: &QueryMap, name: &'static str) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get(name) else {
        return Ok(None);
    };
    let number = text.parse().ok();
    number.map(Some).ok_or_else(|| {
        ApiError::invalid(name, "must be the sequence number of a message, 0 or more")
    })
}
