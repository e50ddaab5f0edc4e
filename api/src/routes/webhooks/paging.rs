//! Paging parameters of lists: page size, cursor, sequence number.

use crate::{
    error::ApiError,
    extract::{Amount, QueryMap},
};

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
        let limit = digits(text).and_then(|limit| u32::try_from(limit).ok());
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
    let position = digits(text).and_then(|position| i64::try_from(position).ok());
    position
        .map(Some)
        .ok_or_else(|| ApiError::invalid("cursor", "must be the nextCursor of an earlier page"))
}

/// A parameter that is a number of a message.
pub(super) fn number(query: &QueryMap, name: &'static str) -> Result<Option<u64>, ApiError> {
    let Some(text) = query.get(name) else {
        return Ok(None);
    };
    digits(text).map(Some).ok_or_else(|| {
        ApiError::invalid(name, "must be the sequence number of a message, 0 or more")
    })
}

/// A number of 64 bits in decimal digits, without a sign: numbers are read as strictly as amounts.
pub(super) fn digits(text: &str) -> Option<u64> {
    Amount::parse(text).ok().map(|Amount(number)| number)
}
