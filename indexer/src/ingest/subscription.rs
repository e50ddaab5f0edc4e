//! Subscription: the filter that the stream is asked for, made from the active webhooks (pure).

use std::collections::BTreeSet;

use sluice_geyser::{AccountFilter, Commitment, Request, TransactionFilter};
use solana_pubkey::Pubkey;

use crate::events::subscription_index::Subscriptions;

/// Filter of accounts by address.
const ACCOUNTS: &str = "accounts";

/// Filter of accounts by owner. One filter with addresses and owners would ask for accounts that satisfy
/// both.
const OWNERS: &str = "owners";

/// Filter of accounts that are closed, of any owner: a filter by owner does not select the write that closes one.
const CLOSED: &str = "closed";

/// Filter of transactions: those that webhooks ask for, and of the programs whose accounts are watched those that may have given
/// an account away with its lamports, since neither filter of accounts selects that write. In one filter, though failed ones, which
/// webhooks are sent, give nothing away: servers limit filters, and a key that moved from one to another could move to another strand.
const TRANSACTIONS: &str = "transactions";

/// Filter of transactions by the owners of the token accounts in their balances. In one filter with the addresses that must
/// be named, each of those would be looked for among the owners, too.
const TOKEN_OWNERS: &str = "token_owners";

/// Filter of block metadata.
const BLOCKS_META: &str = "blocks_meta";

/// Filter of slots.
const SLOTS: &str = "slots";

/// The subscription that serves `subscriptions`, whatever commitments they ask for. Slots and blocks are always asked for:
/// whole slots are known by them.
#[must_use]
pub fn request(subscriptions: &Subscriptions, from_slot: Option<u64>) -> Request {
    let mut request = Request {
        commitment: Commitment::Processed,
        slots: Some(SLOTS.to_owned()),
        blocks_meta: Some(BLOCKS_META.to_owned()),
        from_slot,
        ..Request::default()
    };
    let accounts = addresses(subscriptions.watched_accounts());
    if !accounts.is_empty() {
        let filter = AccountFilter {
            pubkeys: accounts,
            ..AccountFilter::default()
        };
        request.accounts.insert(ACCOUNTS.to_owned(), filter);
    }
    let owners = addresses(subscriptions.watched_owners());
    if !owners.is_empty() {
        let filter = AccountFilter {
            owners,
            ..AccountFilter::default()
        };
        request.accounts.insert(OWNERS.to_owned(), filter);
        let closed = AccountFilter {
            lamports: Some(0),
            ..AccountFilter::default()
        };
        request.accounts.insert(CLOSED.to_owned(), closed);
    }
    let mentioned = subscriptions.mentioned_addresses();
    let mentioned = addresses(mentioned.chain(subscriptions.takers()));
    if !mentioned.is_empty() {
        let filter = TransactionFilter {
            account_include: mentioned,
            ..TransactionFilter::default()
        };
        request.transactions.insert(TRANSACTIONS.to_owned(), filter);
    }
    let token_owners = addresses(subscriptions.token_owners());
    if !token_owners.is_empty() {
        let filter = TransactionFilter {
            account_include: token_owners,
            token_owners: true,
            ..TransactionFilter::default()
        };
        request.transactions.insert(TOKEN_OWNERS.to_owned(), filter);
    }
    request
}

/// Each address once, in a fixed order.
fn addresses<'a>(addresses: impl Iterator<Item = &'a Pubkey>) -> Vec<Pubkey> {
    addresses
        .copied()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use sluice_store::{ActiveWebhook, ActiveWebhooks, EventKind, Filters, Revision};

    use super::*;
    use crate::events::subscriber::fixtures::active_webhook;

    fn address(number: u8) -> Pubkey {
        Pubkey::new_from_array([number; 32])
    }

    #[test]
    fn accounts_and_programs_become_separate_filters() {
        let filters = Filters {
            accounts: vec![address(2), address(1)],
            programs: vec![address(3)],
            token_owners: vec![address(4)],
        };
        let webhook = active_webhook(1, sluice_store::Commitment::Confirmed, filters);
        let live = ActiveWebhooks {
            revision: Revision(4),
            webhooks: vec![webhook],
        };
        let request = request(&Subscriptions::new(&live), Some(9));
        assert_eq!(request.commitment, Commitment::Processed);
        assert_eq!(request.from_slot, Some(9));
        assert!(request.blocks_meta.is_some());
        assert_eq!(request.accounts[ACCOUNTS].pubkeys, [address(1), address(2)]);
        assert!(request.accounts[ACCOUNTS].owners.is_empty());
        assert_eq!(request.accounts[OWNERS].owners, [address(3)]);
        assert!(request.accounts[OWNERS].pubkeys.is_empty());
        assert_eq!(request.accounts[CLOSED].lamports, Some(0));
        let transactions = &request.transactions[TRANSACTIONS];
        assert_eq!(
            transactions.account_include,
            [address(1), address(2), address(3)]
        );
        assert_eq!(
            (transactions.votes, transactions.failed),
            (None, None),
            "failed ones are news too"
        );
        assert!(!transactions.token_owners);
        let token_owners = &request.transactions[TOKEN_OWNERS];
        assert_eq!(token_owners.account_include, [address(4)]);
        assert!(token_owners.token_owners);
    }

    #[test]
    fn a_program_whose_accounts_are_watched_is_asked_for_by_its_transactions_too() {
        let filters = Filters {
            accounts: vec![address(2)],
            programs: vec![address(3)],
            token_owners: Vec::new(),
        };
        let webhook = ActiveWebhook {
            events: [EventKind::AccountChange].into_iter().collect(),
            ..active_webhook(1, sluice_store::Commitment::Confirmed, filters)
        };
        let live = ActiveWebhooks {
            revision: Revision(4),
            webhooks: vec![webhook],
        };
        let request = request(&Subscriptions::new(&live), None);
        assert_eq!(request.transactions.len(), 1);
        let transactions = &request.transactions[TRANSACTIONS];
        assert_eq!(transactions.account_include, [address(3)]);
    }

    #[test]
    fn without_webhooks_only_slots_and_blocks_are_asked_for() {
        let request = request(&Subscriptions::default(), None);
        assert!(request.accounts.is_empty() && request.transactions.is_empty());
        assert!(request.slots.is_some() && request.blocks_meta.is_some());
    }
}
