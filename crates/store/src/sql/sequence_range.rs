//! Ranges of sequence numbers: what is written alike of many deliveries of a webhook takes one short statement.

/// Fewest deliveries of a range that is written by a statement of its own. Those of shorter ones are rows of one statement for all,
/// since each statement is a way to the database and back.
const WORTH_A_STATEMENT: i64 = 16;

/// Deliveries of one webhook whose sequence numbers follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SequenceRange {
    pub(super) webhook: i64,
    pub(super) first: i64,
    pub(super) last: i64,
}

impl SequenceRange {
    /// Whether its deliveries are so many that one statement for them alone is cheaper than a row for each.
    pub(super) const fn is_worth_a_statement(&self) -> bool {
        self.last.saturating_sub(self.first) >= WORTH_A_STATEMENT - 1
    }

    /// Whether so many deliveries are all of it.
    pub(super) fn has(&self, deliveries: u32) -> bool {
        self.last
            .checked_sub(self.first)
            .and_then(|others| others.checked_add(1))
            == Some(deliveries.into())
    }

    /// The ranges of these sequence numbers, each of which is there once.
    pub(super) fn of(webhook: i64, mut sequences: Vec<i64>) -> Vec<Self> {
        sequences.sort_unstable();
        let mut ranges: Vec<Self> = Vec::new();
        for sequence in sequences {
            match ranges.last_mut() {
                Some(range) if range.last.checked_add(1) == Some(sequence) => range.last = sequence,
                _ => ranges.push(Self {
                    webhook,
                    first: sequence,
                    last: sequence,
                }),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_one_another_are_one_range() {
        let ranges = |sequences: &[i64]| -> Vec<(i64, i64)> {
            let ranges = SequenceRange::of(1, sequences.to_vec());
            ranges
                .iter()
                .map(|range| (range.first, range.last))
                .collect()
        };
        assert_eq!(ranges(&[]), []);
        assert_eq!(ranges(&[7]), [(7, 7)]);
        assert_eq!(ranges(&[5, 4, 9, 6, 2]), [(2, 2), (4, 6), (9, 9)]);
        assert_eq!(ranges(&[i64::MAX]), [(i64::MAX, i64::MAX)]);
        let is_worth =
            |count: i64| SequenceRange::of(1, (1..=count).collect())[0].is_worth_a_statement();
        assert_eq!([1, 15, 16, 100].map(is_worth), [false, false, true, true]);
    }
}
