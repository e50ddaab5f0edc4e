//! Lookup table: addresses that version 0 names by one byte each, and the instructions that make a table (pure).
//!
//! One table serves all swaps. What every swap names is in it, and the exchange's fee configurations; wallets, pools and
//! their tokens stay in the message. Programs that a message calls itself cannot be looked up: they are in the table for
//! callers that reach the guard through a program of their own.

use cpmm::{AMM_CONFIG_DISCRIMINATOR, ExchangeIds, ids};
use solana_address_lookup_table_interface::{
    instruction::{create_lookup_table, extend_lookup_table},
    program,
    state::AddressLookupTable,
};
use solana_instruction::Instruction;
use solana_message::AddressLookupTableAccount;
use solana_pubkey::Pubkey;
use swap_guard_interface::ASSOCIATED_TOKEN_PROGRAM;
use thiserror::Error;

pub use solana_address_lookup_table_interface::state::{
    LOOKUP_TABLE_MAX_ADDRESSES, LOOKUP_TABLE_META_SIZE,
};

/// What must be in a table: the accounts that swaps of any pool name, and the programs.
#[must_use]
pub const fn fixed_addresses(exchange: &ExchangeIds) -> [Pubkey; 8] {
    [
        exchange.program,
        exchange.authority,
        ids::WRAPPED_SOL,
        ids::SPL_TOKEN,
        ids::TOKEN_2022,
        solana_system_interface::program::ID,
        ASSOCIATED_TOKEN_PROGRAM,
        swap_guard_interface::PROGRAM_ID,
    ]
}

/// First bytes of the exchange's accounts that are fee configurations.
pub const CONFIGURATION: [u8; 8] = AMM_CONFIG_DISCRIMINATOR;

/// Addresses that one instruction adds: with the creation beside it, they fit a transaction.
const EXTENSION: usize = 20;

/// Lookups from which a table saves bytes: it costs 34, and one for each account, which is 32 in the message itself.
pub(crate) const LEAST_LOOKUPS: usize = 2;

/// The deactivation slot of a table that was not deactivated.
const ACTIVE: u64 = u64::MAX;

/// A table as the chain has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupTable {
    pub(crate) account: AddressLookupTableAccount,
    /// Who may extend it; `None` when it is frozen.
    pub authority: Option<Pubkey>,
}

/// Why an account cannot serve as the table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LookupTableFault {
    /// There is no account.
    #[error("it does not exist; `sluice lookup-table create` makes one")]
    Absent,
    /// The account is another program's, or not yet initialized.
    #[error(
        "it is no lookup table, but an account of {owner}; name one that `sluice lookup-table create` made"
    )]
    Foreign {
        /// Its program.
        owner: Pubkey,
    },
    /// Its authority has begun to close it.
    #[error("it is being closed since slot {since}; `sluice lookup-table create` makes another")]
    Deactivated {
        /// The slot of the request.
        since: u64,
    },
    /// It is not for swaps, or not whole.
    #[error("it lacks {missing}; `sluice lookup-table create --extend` adds what is missing")]
    Lacks {
        /// The first address that is not in it.
        missing: Pubkey,
    },
}

impl LookupTable {
    /// A table of these addresses.
    #[must_use]
    pub const fn new(address: Pubkey, addresses: Vec<Pubkey>) -> Self {
        Self {
            account: AddressLookupTableAccount {
                key: address,
                addresses,
            },
            authority: None,
        }
    }

    /// Reads the account at `address`, if there is one: its program, and its data.
    ///
    /// # Errors
    /// [`LookupTableFault`], but for what it lacks.
    pub fn decode(
        address: Pubkey,
        found: Option<(Pubkey, &[u8])>,
    ) -> Result<Self, LookupTableFault> {
        let (owner, data) = found.ok_or(LookupTableFault::Absent)?;
        let foreign = LookupTableFault::Foreign { owner };
        if owner != program::ID {
            return Err(foreign);
        }
        let table = AddressLookupTable::deserialize(data).map_err(|_| foreign)?;
        if table.meta.deactivation_slot != ACTIVE {
            return Err(LookupTableFault::Deactivated {
                since: table.meta.deactivation_slot,
            });
        }
        Ok(Self {
            authority: table.meta.authority,
            ..Self::new(address, table.addresses.to_vec())
        })
    }

    /// As [`LookupTable::decode`], for a table that swaps at `exchange` are to use.
    ///
    /// # Errors
    /// [`LookupTableFault`].
    pub fn for_swaps(
        address: Pubkey,
        found: Option<(Pubkey, &[u8])>,
        exchange: &ExchangeIds,
    ) -> Result<Self, LookupTableFault> {
        let table = Self::decode(address, found)?;
        match table.missing(&fixed_addresses(exchange)).first() {
            Some(missing) => Err(LookupTableFault::Lacks { missing: *missing }),
            None => Ok(table),
        }
    }

    /// What stands at this index, if `table` is this one.
    pub(crate) fn entry(&self, table: &Pubkey, index: u8) -> Option<Pubkey> {
        let entry = self.account.addresses.get(usize::from(index)).copied();
        entry.filter(|_| *table == self.account.key)
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> Pubkey {
        self.account.key
    }

    /// What is in it.
    #[must_use]
    pub fn addresses(&self) -> &[Pubkey] {
        &self.account.addresses
    }

    /// Those of `wanted` that are not in it, each once.
    #[must_use]
    pub fn missing(&self, wanted: &[Pubkey]) -> Vec<Pubkey> {
        let mut missing = Vec::new();
        for address in wanted {
            if !self.account.addresses.contains(address) && !missing.contains(address) {
                missing.push(*address);
            }
        }
        missing
    }
}

/// The instruction that makes an empty table, and its address. `recent_slot` must be a block's, of the last minutes.
#[must_use]
pub fn creation(authority: Pubkey, recent_slot: u64) -> (Instruction, Pubkey) {
    create_lookup_table(authority, authority, recent_slot)
}

/// The instructions that add these addresses, one for a transaction each; the first may stand beside the creation.
#[must_use]
pub fn extensions(table: Pubkey, authority: Pubkey, addresses: &[Pubkey]) -> Vec<Instruction> {
    let chunks = addresses.chunks(EXTENSION);
    chunks
        .map(|chunk| extend_lookup_table(table, authority, Some(authority), chunk.to_vec()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use solana_address_lookup_table_interface::state::LookupTableMeta;

    use super::*;

    const EXCHANGE: &ExchangeIds = &ExchangeIds::MAINNET;

    const FIXED_ADDRESSES: [Pubkey; 8] = fixed_addresses(EXCHANGE);

    const TABLE: Pubkey = Pubkey::new_from_array([7; 32]);

    fn data(addresses: &[Pubkey], deactivation_slot: u64) -> Vec<u8> {
        let meta = LookupTableMeta {
            deactivation_slot,
            authority: Some(Pubkey::new_from_array([8; 32])),
            ..LookupTableMeta::default()
        };
        let table = AddressLookupTable {
            meta,
            addresses: Cow::Borrowed(addresses),
        };
        table.serialize_for_tests().expect("a table has bytes")
    }

    fn read(data: &[u8]) -> Result<LookupTable, LookupTableFault> {
        LookupTable::for_swaps(TABLE, Some((program::ID, data)), EXCHANGE)
    }

    #[test]
    fn a_table_that_holds_what_swaps_name_is_used() {
        let table = read(&data(&FIXED_ADDRESSES, ACTIVE)).expect("usable");
        assert_eq!(table.address(), TABLE);
        assert_eq!(table.addresses(), FIXED_ADDRESSES);
        assert_eq!(table.authority, Some(Pubkey::new_from_array([8; 32])));
        let other = Pubkey::new_from_array([9; 32]);
        assert_eq!(table.missing(&[ids::AUTHORITY, other, other]), [other]);
    }

    #[test]
    fn a_table_that_is_closed_foreign_or_not_whole_is_not() {
        assert_eq!(
            LookupTable::for_swaps(TABLE, None, EXCHANGE),
            Err(LookupTableFault::Absent)
        );
        let whole = data(&FIXED_ADDRESSES, ACTIVE);
        let owner = ids::SPL_TOKEN;
        let foreign = LookupTable::for_swaps(TABLE, Some((owner, &whole)), EXCHANGE);
        assert_eq!(foreign, Err(LookupTableFault::Foreign { owner }));
        let owner = program::ID;
        for cut in [&[][..], &whole[..10], &whole[..60]] {
            assert_eq!(read(cut), Err(LookupTableFault::Foreign { owner }));
        }
        assert_eq!(
            read(&data(&FIXED_ADDRESSES, 5)),
            Err(LookupTableFault::Deactivated { since: 5 })
        );
        for missing in FIXED_ADDRESSES {
            let rest: Vec<_> = FIXED_ADDRESSES
                .into_iter()
                .filter(|address| *address != missing)
                .collect();
            let lacking = read(&data(&rest, ACTIVE));
            assert_eq!(lacking, Err(LookupTableFault::Lacks { missing }));
        }
    }

    #[test]
    fn every_address_is_added_once_and_in_order() {
        let addresses: Vec<_> = (0..45).map(|n| Pubkey::new_from_array([n; 32])).collect();
        let added = extensions(TABLE, Pubkey::default(), &addresses);
        assert_eq!(added.len(), 3);
        // Number of the instruction and count, then 32 bytes for each.
        let bytes: Vec<u8> = added
            .iter()
            .flat_map(|one| one.data[12..].to_vec())
            .collect();
        let expected: Vec<u8> = addresses.iter().flat_map(|one| one.to_bytes()).collect();
        assert_eq!(bytes, expected);
    }
}
