//! Subscription of the market, and the first slot that it is known to deliver whole (pure).

use std::collections::BTreeMap;

use cpmm::ids;
use sluice_chain_types::{Commitment, SlotStatus};
use sluice_geyser::{AccountFilter, Request, SlotUpdate};
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
/// - Token-2022 mints with extensions, all of the chain's: their transfer fees change. Mints without
///   extensions never change in what a quote needs, so they are only read;
/// - accounts without lamports: a closed account drops out of every filter on owner or data. Some
///   servers refuse a filter without an owner; `watch_closed` leaves it out for them.
pub(crate) fn request(watch_closed: bool, from_slot: Option<u64>) -> Request {
    let owned = |owner: Pubkey, len: Option<usize>, memcmp: (u64, Vec<u8>)| AccountFilter {
        owners: vec![owner],
        datasize: len.and_then(|len| u64::try_from(len).ok()),
        memcmp: vec![memcmp],
        ..AccountFilter::default()
    };
    let exchange = |len: usize, discriminator: [u8; 8]| {
        owned(ids::PROGRAM_ID, Some(len), (0, discriminator.to_vec()))
    };
    let vaults = |token_program: Pubkey| AccountFilter {
        token_account_state: true,
        ..owned(
            token_program,
            None,
            (
                TOKEN_ACCOUNT_OWNER_OFFSET,
                ids::AUTHORITY.to_bytes().to_vec(),
            ),
        )
    };
    let mut accounts = BTreeMap::from([
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
            "mints-2022",
            owned(
                ids::TOKEN_2022,
                None,
                (ACCOUNT_TYPE_OFFSET, vec![ACCOUNT_TYPE_MINT]),
            ),
        ),
        (
            "clock",
            AccountFilter {
                pubkeys: vec![ids::CLOCK],
                ..AccountFilter::default()
            },
        ),
    ]);
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
        blocks_meta: None,
        from_slot,
    }
}

/// Complete slots after which the next one counts as delivered whole, on servers that do not report
/// new banks. When the first of them completes, the filters were in force, but the slot after it may
/// have begun before: validators announce a complete slot with a delay, while its child already
/// writes. The child of the second one begins after the second one is complete, and so after the
/// first was announced.
const SLOTS_BEFORE_WHOLE: u32 = 2;

/// Watches a subscription come into force, up to the first slot of which every write is delivered.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    completed: u32,
    whole_from: Option<u64>,
}

impl Coverage {
    /// Takes in a slot status. A slot whose bank was created under the subscription is delivered
    /// whole, because transactions run in a bank only after its creation was announced.
    pub(crate) fn slot(&mut self, update: &SlotUpdate) {
        if self.whole_from.is_some() {
            return;
        }
        match update.status {
            SlotStatus::CreatedBank => self.whole_from = Some(update.slot),
            SlotStatus::Processed if self.completed == SLOTS_BEFORE_WHOLE => {
                self.whole_from = Some(update.slot);
            }
            SlotStatus::Processed => self.completed += 1,
            _ => {}
        }
    }

    /// The first slot of which every write is delivered.
    pub(crate) const fn whole_from(&self) -> Option<u64> {
        self.whole_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(coverage: &mut Coverage, slot: u64, status: SlotStatus) -> Option<u64> {
        coverage.slot(&SlotUpdate {
            slot,
            parent: None,
            status,
            dead_error: None,
        });
        coverage.whole_from()
    }

    #[test]
    fn a_slot_that_begins_under_the_subscription_is_whole() {
        let mut coverage = Coverage::default();
        assert_eq!(after(&mut coverage, 10, SlotStatus::Processed), None);
        assert_eq!(after(&mut coverage, 11, SlotStatus::Confirmed), None);
        assert_eq!(after(&mut coverage, 12, SlotStatus::CreatedBank), Some(12));
        assert_eq!(after(&mut coverage, 13, SlotStatus::CreatedBank), Some(12));
    }

    #[test]
    fn without_news_of_banks_the_third_complete_slot_is_whole() {
        let mut coverage = Coverage::default();
        assert_eq!(after(&mut coverage, 10, SlotStatus::Processed), None);
        assert_eq!(after(&mut coverage, 12, SlotStatus::Processed), None);
        assert_eq!(after(&mut coverage, 13, SlotStatus::Processed), Some(13));
    }

    #[test]
    fn the_filter_on_closed_accounts_can_be_left_out() {
        let names = |watch_closed| request(watch_closed, None).accounts.len();
        assert_eq!(names(true), names(false) + 1);
    }
}
