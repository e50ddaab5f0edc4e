//! Shown mints: mints that the stream has shown and that no pool names yet, the latest of them (pure).
//!
//! A token is often issued some time before its first pool is opened. The stream shows every write of every mint of
//! Token-2022, so one that was shown once is known until it changes, and its pool is quoted in the slot that opens it.

use solana_pubkey::Pubkey;

use crate::decoded_account::{ByAddress, DecodedAccount};

/// Mints of one generation, of which there are two: so 100,000 to 200,000 mints are remembered, in at most some 50 MB. Of
/// mints of Token-2022 a few hundred are written in a second, most of them again and again, so this is at least as long as
/// it takes to open a pool, and forgetting costs one RPC call.
const GENERATION: usize = 100_000;

/// Mints at the confirmed head that belong to no pool.
#[derive(Default)]
pub(crate) struct ShownMints {
    /// Those that were written since the generation before was full.
    young: ByAddress<DecodedAccount>,
    /// Those of the generation before that were not written since.
    old: ByAddress<DecodedAccount>,
}

impl ShownMints {
    pub(crate) fn get(&self, pubkey: &Pubkey) -> Option<&DecodedAccount> {
        self.young.get(pubkey).or_else(|| self.old.get(pubkey))
    }

    /// Remembers a mint as it is now.
    pub(crate) fn insert(&mut self, pubkey: Pubkey, mint: DecodedAccount) {
        self.old.remove(&pubkey);
        self.young.insert(pubkey, mint);
    }

    pub(crate) fn remove(&mut self, pubkey: &Pubkey) {
        self.young.remove(pubkey);
        self.old.remove(pubkey);
    }

    /// Ends a generation that is full. Returns the mints of the one before, which are forgotten with that.
    pub(crate) fn take_oldest(&mut self) -> Option<ByAddress<DecodedAccount>> {
        let is_full = self.young.len() >= GENERATION;
        is_full.then(|| std::mem::replace(&mut self.old, std::mem::take(&mut self.young)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{decoded, mint};

    fn address(number: usize) -> Pubkey {
        let mut bytes = [7; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Pubkey::from(bytes)
    }

    #[test]
    fn the_latest_mints_are_remembered_and_the_oldest_are_handed_back() {
        let mut shown = ShownMints::default();
        let content = decoded(&address(0), &mint(1));
        for number in 0..GENERATION {
            assert!(shown.take_oldest().is_none(), "{number}");
            shown.insert(address(number), content.clone());
        }
        assert!(shown.take_oldest().is_some_and(|oldest| oldest.is_empty()));
        // Written again, so that it is young.
        shown.insert(address(3), content.clone());
        for number in GENERATION..2 * GENERATION - 1 {
            shown.insert(address(number), content.clone());
        }
        let oldest = shown.take_oldest().expect("it is full");
        assert_eq!(oldest.len(), GENERATION - 1);
        let is_remembered = |number| shown.get(&address(number)).is_some();
        assert_eq!([2, 3, GENERATION].map(is_remembered), [false, true, true]);
    }
}
