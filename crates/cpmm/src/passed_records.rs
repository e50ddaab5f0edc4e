//! Records of a mint that a transfer passes by: what its searches cost depends on the order of the mint's extensions.

use crate::extensions::{PERMANENT_DELEGATE, TRANSFER_FEE_CONFIG, TRANSFER_HOOK};

/// Records that Token-2022 passes by in the searches of one transfer, each of which begins at the mint's first record and
/// ends at the one that it looks for, or behind the last. The transfer fee's own record is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedRecords {
    /// In the search for the transfer fee.
    pub for_fee: u8,
    /// In those for the switch that pauses the mint, which none that is traded has, for the permanent delegate and for the
    /// hook, together; 255 stands for more as well.
    pub for_others: u8,
}

impl PassedRecords {
    /// Of a mint without other extensions.
    pub const NONE: Self = Self {
        for_fee: 0,
        for_others: 0,
    };
}

/// How far each search has come in a mint's records.
#[derive(Default)]
pub(crate) struct Searches {
    /// Records so far, without the fee's.
    records: u8,
    /// Those before the record that is looked for, once it was met.
    before_fee: Option<u8>,
    before_delegate: Option<u8>,
    before_hook: Option<u8>,
}

impl Searches {
    /// Takes in the next record of the mint.
    pub(crate) fn meet(&mut self, kind: u16) {
        let found = match kind {
            TRANSFER_FEE_CONFIG => {
                self.before_fee.get_or_insert(self.records);
                return;
            }
            PERMANENT_DELEGATE => Some(&mut self.before_delegate),
            TRANSFER_HOOK => Some(&mut self.before_hook),
            _ => None,
        };
        if let Some(before) = found {
            before.get_or_insert(self.records);
        }
        self.records = self.records.saturating_add(1);
    }

    /// What the searches have passed by when there are no more records.
    pub(crate) fn end(&self) -> PassedRecords {
        let passed = |before: Option<u8>| before.unwrap_or(self.records);
        PassedRecords {
            for_fee: passed(self.before_fee),
            for_others: self
                .records
                .saturating_add(passed(self.before_delegate))
                .saturating_add(passed(self.before_hook)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEE: u16 = TRANSFER_FEE_CONFIG;
    const DELEGATE: u16 = PERMANENT_DELEGATE;
    const HOOK: u16 = TRANSFER_HOOK;
    const METADATA: u16 = 19;

    fn passed(kinds: &[u16]) -> (u8, u8) {
        let mut searches = Searches::default();
        for kind in kinds {
            searches.meet(*kind);
        }
        let passed = searches.end();
        (passed.for_fee, passed.for_others)
    }

    #[test]
    fn each_search_ends_at_the_record_that_it_looks_for() {
        assert_eq!(passed(&[]), (0, 0));
        assert_eq!(passed(&[FEE]), (0, 0));
        assert_eq!(passed(&[METADATA, 18]), (2, 2 + 2 + 2));
        assert_eq!(passed(&[FEE, METADATA, 18]), (0, 2 + 2 + 2));
        assert_eq!(passed(&[METADATA, FEE, 18]), (1, 2 + 2 + 2));
        assert_eq!(passed(&[DELEGATE, METADATA, HOOK]), (3, 3 + 2));
        assert_eq!(passed(&[METADATA, HOOK, DELEGATE]), (3, 3 + 1 + 2));
    }

    #[test]
    fn more_records_than_a_byte_counts_are_255() {
        assert_eq!(passed(&[METADATA; 300]), (255, 255));
    }
}
