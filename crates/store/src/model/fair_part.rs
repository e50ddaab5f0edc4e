//! Max-min fair part of the room for messages: what a tenant may keep whatever others keep.

/// What is kept of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
}

impl Kept {
    /// About how many messages are too many where no more than `limit` bytes are to be kept, of messages of mean size: rounded
    /// up, so never none where there are too many bytes.
    pub(crate) fn excess(self, limit: u64) -> i64 {
        let over = u128::from(self.bytes.saturating_sub(limit));
        let excess = (over * u128::from(self.messages)).div_ceil(u128::from(self.bytes.max(1)));
        i64::try_from(excess).unwrap_or(i64::MAX)
    }

    /// What is left when so many messages, which have so many bytes together, are removed.
    pub(crate) fn without(self, messages: u64, bytes: u64) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(bytes),
            messages: self.messages.saturating_sub(messages),
        }
    }
}

/// The most bytes that each tenant may keep so that all of them together keep no more than `limit`. Who has less leaves the
/// rest to the others (max-min fairness), so nobody is above it because another one keeps much. Rounded down.
pub(crate) fn fair_part(bytes: impl IntoIterator<Item = u64>, limit: u64) -> u64 {
    let mut bytes: Vec<_> = bytes.into_iter().collect();
    bytes.sort_unstable();
    let (mut room, mut tenants) = (limit, bytes.len());
    for kept in bytes {
        let part = room / u64::try_from(tenants).unwrap_or(u64::MAX);
        if kept > part {
            return part;
        }
        room -= kept;
        tenants -= 1;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_little_is_below_the_part_of_those_who_keep_much() {
        let tenants = std::iter::repeat_n(5, 98).chain([9_000, 500]);
        assert_eq!(fair_part(tenants, 8_192), 8_192 - 98 * 5 - 500);
        assert_eq!(fair_part([70, 80, 10], 100), 45);
        assert_eq!(fair_part([3, 3], 3), 1, "rounded down");
    }

    #[test]
    fn where_all_fits_there_is_no_limit() {
        assert_eq!(fair_part([40, 60], 100), u64::MAX);
        assert_eq!(fair_part([], 0), u64::MAX);
    }

    #[test]
    fn the_excess_is_of_messages_of_mean_size_and_never_none() {
        let kept = Kept {
            bytes: 1_000,
            messages: 10,
        };
        assert_eq!(kept.excess(750), 3);
        assert_eq!(kept.excess(999), 1);
        assert_eq!(kept.excess(1_000), 0);
        let left = kept.without(3, 300);
        assert_eq!((left.bytes, left.messages), (700, 7));
    }
}
