//! Filters: the addresses that a webhook subscribes to, and edits of them (pure).

use std::collections::HashSet;

use sha2::{Digest, Sha256};
use solana_pubkey::Pubkey;

use super::event_kind::EventKinds;

/// The addresses that a webhook subscribes to. An event matches when it touches one of them; the store
/// refuses a webhook that names none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Accounts, in the subscriber's order.
    pub accounts: Vec<Pubkey>,
    /// Programs, in the subscriber's order.
    pub programs: Vec<Pubkey>,
}

impl Filters {
    /// Whether no event of these kinds can match: there is no address, or only program events are wanted
    /// and there is no program.
    #[must_use]
    pub const fn match_nothing(&self, events: EventKinds) -> bool {
        let programs_only = !events.account_change && !events.transaction;
        self.programs.is_empty() && (programs_only || self.accounts.is_empty())
    }

    /// How many addresses there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.accounts.len().saturating_add(self.programs.len())
    }

    /// Hexadecimal SHA-256 by which a subscriber checks that the set in force is the one it means,
    /// whatever its order: of `accounts`, their count (u32, little endian) and their bytes in ascending
    /// order, then of `programs` the same.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (role, addresses) in [
            (&b"accounts"[..], &self.accounts),
            (b"programs", &self.programs),
        ] {
            let mut addresses = addresses.clone();
            addresses.sort_unstable();
            hash.update(role);
            hash.update(
                u32::try_from(addresses.len())
                    .unwrap_or(u32::MAX)
                    .to_le_bytes(),
            );
            for address in addresses {
                hash.update(address);
            }
        }
        hex::encode(hash.finalize())
    }
}

/// Addresses to be added to and removed from the filters of a webhook. Adding what is there and removing
/// what is not changes nothing; an address in both lists is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterEdit {
    /// Addresses to add.
    pub add: Filters,
    /// Addresses to remove.
    pub remove: Filters,
}

/// How many addresses a webhook may name.
#[derive(Clone, Copy, Debug)]
pub struct FilterLimits {
    /// Most accounts.
    pub accounts: usize,
    /// Most programs.
    pub programs: usize,
}

/// Edits one list of addresses; returns those that were added and those that were removed.
pub(crate) fn edit_addresses(
    addresses: &mut Vec<Pubkey>,
    add: &[Pubkey],
    remove: &[Pubkey],
) -> (Vec<Pubkey>, Vec<Pubkey>) {
    let remove: HashSet<&Pubkey> = remove.iter().collect();
    let mut removed = Vec::new();
    addresses.retain(|address| {
        let stays = !remove.contains(address);
        if !stays {
            removed.push(*address);
        }
        stays
    });
    let mut present: HashSet<Pubkey> = addresses.iter().copied().collect();
    let mut added = Vec::new();
    for address in add {
        if !remove.contains(address) && present.insert(*address) {
            addresses.push(*address);
            added.push(*address);
        }
    }
    (added, removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;

    #[test]
    fn filters_match_nothing_without_an_address_of_the_role_that_the_kinds_need() {
        let addresses = |accounts: usize, programs: usize| Filters {
            accounts: vec![Pubkey::default(); accounts],
            programs: vec![Pubkey::default(); programs],
        };
        let kinds = |kinds: &[EventKind]| kinds.iter().copied().collect::<EventKinds>();
        let all = kinds(&EventKind::ALL);
        let program_events = kinds(&[EventKind::ProgramEvent]);
        assert!(addresses(0, 0).match_nothing(all));
        assert!(!addresses(1, 0).match_nothing(all));
        assert!(!addresses(0, 1).match_nothing(all));
        assert!(addresses(1, 0).match_nothing(program_events));
        assert!(!addresses(1, 1).match_nothing(program_events));
    }
}
