//! Block filters of a subscription: which content a block comes with.
//!
//! Every block matches; the addresses choose among its transactions and account writes.

use yellowstone_grpc_proto::geyser::{
    SubscribeRequestFilterBlocks, SubscribeUpdateAccountInfo, SubscribeUpdateBlock,
};

use super::{FilterError, address_set::AddressSet};
use crate::{
    config::BlockLimits,
    message::{AccountUpdate, Block},
};

#[derive(Debug)]
pub(super) struct BlockFilter {
    include: AddressSet,
    transactions: bool,
    accounts: bool,
    entries: bool,
}

impl BlockFilter {
    pub fn compile(
        filter: &SubscribeRequestFilterBlocks,
        limits: &BlockLimits,
    ) -> Result<Self, FilterError> {
        let include = AddressSet::listed(
            &filter.account_include,
            limits.account_include_max,
            &limits.account_include_reject,
        )?
        .or_cuckoo(
            filter.cuckoo_account_include.as_ref(),
            limits.cuckoo_max_size,
        )?;
        if include.is_absent() && !limits.account_include_any {
            return Err(FilterError::Any);
        }
        let compiled = Self {
            include,
            transactions: filter.include_transactions.unwrap_or(true),
            accounts: filter.include_accounts.unwrap_or(false),
            entries: filter.include_entries.unwrap_or(false),
        };
        let wanted = [
            (
                "include_transactions",
                compiled.transactions,
                limits.include_transactions,
            ),
            (
                "include_accounts",
                compiled.accounts,
                limits.include_accounts,
            ),
            ("include_entries", compiled.entries, limits.include_entries),
        ];
        match wanted
            .iter()
            .find(|(_, wanted, allowed)| *wanted && !allowed)
        {
            Some((name, ..)) => Err(FilterError::Include(name)),
            None => Ok(compiled),
        }
    }

    /// The wire form of a block for this filter; `account` makes that of an account write.
    pub fn render(
        &self,
        block: &Block,
        account: impl Fn(&AccountUpdate) -> SubscribeUpdateAccountInfo,
    ) -> SubscribeUpdateBlock {
        let meta = block.meta.as_ref().clone();
        let transactions = block.transactions.iter().filter(|transaction| {
            self.include.is_absent()
                || transaction
                    .keys
                    .iter()
                    .any(|key| self.include.contains(key))
        });
        let accounts = block
            .accounts
            .iter()
            .filter(|account| self.include.admits(&account.address));
        let entries = block.entries.iter();
        SubscribeUpdateBlock {
            slot: meta.slot,
            blockhash: meta.blockhash,
            rewards: meta.rewards,
            block_time: meta.block_time,
            block_height: meta.block_height,
            parent_slot: meta.parent_slot,
            parent_blockhash: meta.parent_blockhash,
            executed_transaction_count: meta.executed_transaction_count,
            transactions: when(self.transactions, || {
                transactions.map(|one| one.info.clone()).collect()
            }),
            updated_account_count: block.accounts.len() as u64,
            accounts: when(self.accounts, || accounts.map(|one| account(one)).collect()),
            entries_count: block.entries.len() as u64,
            entries: when(self.entries, || {
                entries.map(|one| one.as_ref().clone()).collect()
            }),
            bank_id: meta.bank_id,
        }
    }
}

fn when<T>(wanted: bool, list: impl FnOnce() -> Vec<T>) -> Vec<T> {
    if wanted { list() } else { Vec::new() }
}
