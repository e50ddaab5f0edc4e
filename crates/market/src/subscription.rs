//! Subscription of the market: the filters of the stream (pure).

use std::collections::BTreeMap;

use cpmm::{ExchangeIds, ids};
use sluice_chain_types::Commitment;
use sluice_geyser::{AccountFilter, Request};
use solana_pubkey::Pubkey;

/// Offset of the owner in a token account, bytes.
const TOKEN_ACCOUNT_OWNER_OFFSET: u64 = 32;

/// Offset of the byte that says what kind of account an extended Token-2022 account is.
const ACCOUNT_TYPE_OFFSET: u64 = 165;

/// That byte for a mint.
const ACCOUNT_TYPE_MINT: u8 = 1;

/// The whole subscription. It names no pool, vault or mint, so it is as short for hundreds of thousands
/// of pools as for one, and never changes:
///
/// - pools and configurations by their owner, vaults by their authority under both token programs;
/// - Token-2022 mints, all of the chain's, those with extensions by their type byte, the others by their length: transfer
///   fees change, and of a pool that is opened together with its token the mint is known at once. What a quote needs of an
///   SPL mint is known by its pools;
/// - accounts without lamports: a closed account drops out of every filter on owner or data. Some
///   servers refuse a filter without an owner; `watch_closed` leaves it out for them.
pub(crate) fn request(
    exchange: &ExchangeIds,
    watch_closed: bool,
    from_slot: Option<u64>,
) -> Request {
    let mut accounts = account_filters(exchange);
    if watch_closed {
        let closed = AccountFilter {
            lamports: Some(0),
            ..AccountFilter::default()
        };
        accounts.insert("closed", closed);
    }
    Request {
        commitment: Commitment::Processed,
        accounts: accounts
            .into_iter()
            .map(|(name, filter)| (name.to_owned(), filter))
            .collect(),
        transactions: BTreeMap::new(),
        slots: Some("slots".to_owned()),
        blocks_meta: Some("blocks".to_owned()),
        from_slot,
    }
}

/// Those that every server takes.
fn account_filters(exchange: &ExchangeIds) -> BTreeMap<&'static str, AccountFilter> {
    let owned = |owner: Pubkey, len: Option<usize>, memcmp: (u64, Vec<u8>)| AccountFilter {
        owners: vec![owner],
        datasize: len.and_then(|len| u64::try_from(len).ok()),
        memcmp: vec![memcmp],
        ..AccountFilter::default()
    };
    let of_exchange = |len: usize, discriminator: [u8; 8]| {
        owned(exchange.program, Some(len), (0, discriminator.to_vec()))
    };
    let vaults = |token_program: Pubkey| AccountFilter {
        token_account_state: true,
        ..owned(
            token_program,
            None,
            (
                TOKEN_ACCOUNT_OWNER_OFFSET,
                exchange.authority.to_bytes().to_vec(),
            ),
        )
    };
    BTreeMap::from([
        (
            "pools",
            of_exchange(cpmm::POOL_STATE_LEN, cpmm::POOL_STATE_DISCRIMINATOR),
        ),
        (
            "configs",
            of_exchange(cpmm::AMM_CONFIG_LEN, cpmm::AMM_CONFIG_DISCRIMINATOR),
        ),
        ("vaults-spl", vaults(ids::SPL_TOKEN)),
        ("vaults-2022", vaults(ids::TOKEN_2022)),
        (
            "mints-2022",
            owned(
                ids::TOKEN_2022,
                None,
                (ACCOUNT_TYPE_OFFSET, vec![ACCOUNT_TYPE_MINT]),
            ),
        ),
        (
            "mints-2022-plain",
            AccountFilter {
                owners: vec![ids::TOKEN_2022],
                datasize: u64::try_from(cpmm::MINT_LEN).ok(),
                ..AccountFilter::default()
            },
        ),
        (
            "clock",
            AccountFilter {
                pubkeys: vec![ids::CLOCK],
                ..AccountFilter::default()
            },
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mint_of_token_2022_is_asked_for_and_none_of_spl_token() {
        let accounts = request(&ExchangeIds::MAINNET, true, None).accounts;
        let plain = accounts
            .values()
            .filter(|filter| filter.datasize == Some(82));
        let owners: Vec<_> = plain.map(|filter| filter.owners.as_slice()).collect();
        assert_eq!(owners, [[ids::TOKEN_2022].as_slice()]);
        let extended = (ACCOUNT_TYPE_OFFSET, vec![ACCOUNT_TYPE_MINT]);
        let extended = accounts
            .values()
            .filter(|filter| filter.memcmp == [extended.clone()]);
        assert_eq!(extended.count(), 1);
    }

    #[test]
    fn pools_and_vaults_are_those_of_the_exchange_that_is_named() {
        let exchange = ExchangeIds::DEVNET;
        let accounts = request(&exchange, true, None).accounts;
        for name in ["pools", "configs"] {
            assert_eq!(accounts[name].owners, [exchange.program]);
        }
        for name in ["vaults-spl", "vaults-2022"] {
            let owner = exchange.authority.to_bytes().to_vec();
            assert_eq!(accounts[name].memcmp, [(TOKEN_ACCOUNT_OWNER_OFFSET, owner)]);
        }
    }

    #[test]
    fn the_filter_on_closed_accounts_can_be_left_out() {
        let exchange = &ExchangeIds::MAINNET;
        let names = |watch_closed| request(exchange, watch_closed, None).accounts.len();
        assert_eq!(names(true), names(false) + 1);
    }
}
