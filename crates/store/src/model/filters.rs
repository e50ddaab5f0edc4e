//! Filters: the addresses that a webhook subscribes to, and edits of them (pure).

use std::collections::HashSet;

use sha2::{Digest, Sha256};
use solana_pubkey::Pubkey;

use super::event_kind::EventKinds;

/// The addresses that a webhook subscribes to. An event matches when it touches one of them; the store
/// refuses a webhook that names none, unless it is told of operations alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Accounts, in the subscriber's order.
    pub accounts: Vec<Pubkey>,
    /// Programs, in the subscriber's order.
    pub programs: Vec<Pubkey>,
    /// Owners of token accounts, in the subscriber's order: a transaction touches one when its token balances before or after
    /// it are this one's, though it may name nothing but the token account.
    pub token_owners: Vec<Pubkey>,
}

impl Filters {
    /// Whether no event of these kinds can match: there is no address of a role that matches one of them.
    #[must_use]
    pub const fn match_nothing(&self, events: EventKinds) -> bool {
        if events.is_empty() {
            return true;
        }
        let programs_only = !events.account_change && !events.transaction;
        self.programs.is_empty()
            && (programs_only || self.accounts.is_empty())
            && (!events.transaction || self.token_owners.is_empty())
    }

    /// How many addresses there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.accounts
            .len()
            .saturating_add(self.programs.len())
            .saturating_add(self.token_owners.len())
    }

    /// Hexadecimal SHA-256 by which a subscriber checks that the set in force is the one it means,
    /// whatever its order: of `accounts`, their count (u32, little endian) and their bytes in ascending
    /// order, then of `programs` the same, and of `tokenOwners` where there are any.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let roles = [
            (&b"accounts"[..], &self.accounts),
            (b"programs", &self.programs),
            (b"tokenOwners", &self.token_owners),
        ];
        // Sets without token owners keep the digest that they had before there was such a role.
        let there = if self.token_owners.is_empty() { 2 } else { 3 };
        for (role, addresses) in roles.into_iter().take(there) {
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
    /// Most owners of token accounts.
    pub token_owners: usize,
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
            ..Filters::default()
        };
        let kinds = |kinds: &[EventKind]| kinds.iter().copied().collect::<EventKinds>();
        let all = kinds(&EventKind::ALL);
        let program_events = kinds(&[EventKind::ProgramEvent]);
        assert!(addresses(0, 0).match_nothing(all));
        assert!(!addresses(1, 0).match_nothing(all));
        assert!(!addresses(0, 1).match_nothing(all));
        assert!(addresses(1, 1).match_nothing(EventKinds::default()));
        assert!(addresses(1, 0).match_nothing(program_events));
        assert!(!addresses(1, 1).match_nothing(program_events));
        let owners = Filters {
            token_owners: vec![Pubkey::default()],
            ..Filters::default()
        };
        assert!(!owners.match_nothing(kinds(&[EventKind::Transaction])));
        assert!(owners.match_nothing(kinds(&[EventKind::AccountChange, EventKind::ProgramEvent])));
    }

    #[test]
    fn the_digest_names_the_role_of_each_address_and_is_as_ever_without_token_owners() {
        let address = |number| Pubkey::new_from_array([number; 32]);
        let filters = |accounts: &[u8], token_owners: &[u8]| Filters {
            accounts: accounts.iter().copied().map(address).collect(),
            token_owners: token_owners.iter().copied().map(address).collect(),
            ..Filters::default()
        };
        let mut known = Sha256::new();
        known.update(b"accounts\x01\0\0\0");
        known.update([1; 32]);
        known.update(b"programs\0\0\0\0");
        assert_eq!(
            filters(&[1], &[]).digest(),
            hex::encode(known.clone().finalize())
        );
        known.update(b"tokenOwners\x02\0\0\0");
        known.update([2; 32]);
        known.update([3; 32]);
        assert_eq!(
            filters(&[1], &[3, 2]).digest(),
            hex::encode(known.finalize())
        );
    }
}
