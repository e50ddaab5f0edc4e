//! What the market subscribes to, and from which slot on a subscription is known to be complete.

use std::collections::{BTreeMap, BTreeSet};

use cpmm::ids;
use sluice_geyser::{AccountFilter, Commitment, Request};
use solana_pubkey::Pubkey;

/// Offset of the owner in a token account, bytes.
const TOKEN_ACCOUNT_OWNER_OFFSET: u64 = 32;

/// A subscription by its number. Servers acknowledge nothing, so every subscription names its slots
/// filter after its generation: an update that bears the name proves that the filters are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Generation(pub(super) u64);

impl Generation {
    fn slots_filter(self) -> String {
        format!("slots-{}", self.0)
    }

    /// The whole subscription: pools and configurations by owner, vaults by their authority under
    /// both token programs, the clock, and by key what is known. The keys show accounts that are
    /// closed, which drop out of every other filter, and mints, which no other filter finds.
    pub(super) fn request(self, known: &BTreeSet<Pubkey>) -> Request {
        let exchange = |len: usize, discriminator: [u8; 8]| AccountFilter {
            owners: vec![ids::PROGRAM_ID],
            datasize: u64::try_from(len).ok(),
            memcmp: vec![(0, discriminator.to_vec())],
            ..AccountFilter::default()
        };
        let vaults = |token_program: Pubkey| AccountFilter {
            owners: vec![token_program],
            memcmp: vec![(
                TOKEN_ACCOUNT_OWNER_OFFSET,
                ids::AUTHORITY.to_bytes().to_vec(),
            )],
            token_account_state: true,
            ..AccountFilter::default()
        };
        let keys = std::iter::once(ids::CLOCK).chain(known.iter().copied());
        let accounts = [
            (
                "pools",
                exchange(cpmm::POOL_STATE_LEN, cpmm::POOL_STATE_DISCRIMINATOR),
            ),
            (
                "configs",
                exchange(cpmm::AMM_CONFIG_LEN, cpmm::AMM_CONFIG_DISCRIMINATOR),
            ),
            ("vaults-spl", vaults(ids::SPL_TOKEN)),
            ("vaults-2022", vaults(ids::TOKEN_2022)),
            (
                "known",
                AccountFilter {
                    pubkeys: keys.collect(),
                    ..AccountFilter::default()
                },
            ),
        ];
        Request {
            commitment: Commitment::Processed,
            accounts: accounts
                .map(|(name, filter)| (name.to_owned(), filter))
                .into(),
            transactions: BTreeMap::new(),
            slots: Some(self.slots_filter()),
            blocks_meta: false,
            from_slot: None,
        }
    }
}

/// Slots that must be sealed under a subscription before the next one counts as complete. When the
/// first of them is sealed, the filters were in force, but the slot after it may have begun before:
/// validators announce a frozen slot with a delay, while its child already writes. The child of the
/// second one begins after the second one is frozen, and so after the first was announced.
const SLOTS_BEFORE_COMPLETE: u32 = 2;

/// Watches one subscription come into force.
#[derive(Debug)]
pub(super) struct Coverage {
    name: String,
    sealed: u32,
    complete_from: Option<u64>,
}

impl Coverage {
    pub(super) fn new(generation: Generation) -> Self {
        Self {
            name: generation.slots_filter(),
            sealed: 0,
            complete_from: None,
        }
    }

    /// Takes in a sealed slot and the filters that its status matched.
    pub(super) fn sealed(&mut self, slot: u64, filters: &[String]) {
        if self.complete_from.is_some() || !filters.contains(&self.name) {
            return;
        }
        if self.sealed == SLOTS_BEFORE_COMPLETE {
            self.complete_from = Some(slot);
        } else {
            self.sealed = self.sealed.saturating_add(1);
        }
    }

    /// The first slot of which every write to the accounts subscribed to was delivered.
    pub(super) fn complete_from(&self) -> Option<u64> {
        self.complete_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_is_complete_two_slots_after_its_name_first_shows() {
        let mut coverage = Coverage::new(Generation(2));
        let (old, new) = (["slots-1".to_owned()], ["slots-2".to_owned()]);
        coverage.sealed(10, &old);
        coverage.sealed(11, &new);
        coverage.sealed(13, &new);
        assert_eq!(coverage.complete_from(), None);
        coverage.sealed(14, &new);
        coverage.sealed(15, &new);
        assert_eq!(coverage.complete_from(), Some(14));
    }

    #[test]
    fn the_clock_is_always_subscribed_and_keys_are_added_to_it() {
        let key = Pubkey::from([1; 32]);
        let known = |keys: &BTreeSet<Pubkey>| {
            Generation(1).request(keys).accounts["known"]
                .pubkeys
                .clone()
        };
        assert_eq!(known(&BTreeSet::new()), [ids::CLOCK]);
        assert_eq!(known(&BTreeSet::from([key])), [ids::CLOCK, key]);
    }
}
