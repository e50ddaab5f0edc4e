//! Filters of a subscription, compiled once per request and matched against every event.

mod accounts;
mod address_set;
mod blocks;
mod error;
mod transactions;

pub use error::FilterError;

use std::{collections::HashMap, ops::Range};

use bytes::{Bytes, BytesMut};
use yellowstone_grpc_proto::geyser::{
    CommitmentLevel, SlotStatus, SubscribeRequest, SubscribeRequestAccountsDataSlice,
    SubscribeRequestFilterSlots, SubscribeUpdate, SubscribeUpdateAccount,
    SubscribeUpdateAccountInfo, SubscribeUpdateSlot, SubscribeUpdateTransaction,
    SubscribeUpdateTransactionStatus, subscribe_update::UpdateOneof,
};

use self::{accounts::AccountFilter, blocks::BlockFilter, transactions::TransactionFilter};
use crate::{
    config::{GrpcConfig, TransactionLimits},
    message::{AccountUpdate, Commitment, Event, SlotUpdate, TransactionUpdate, Update},
};

/// The filters of one kind by name, in name order.
type Named<T> = Vec<(String, T)>;

/// A compiled request.
#[derive(Debug, Default)]
pub struct Filter {
    commitment: Commitment,
    accounts: Named<AccountFilter>,
    slots: Named<SlotFilter>,
    transactions: Named<TransactionFilter>,
    transactions_status: Named<TransactionFilter>,
    entries: Named<()>,
    blocks: Named<BlockFilter>,
    blocks_meta: Named<()>,
    slices: Vec<Range<usize>>,
}

#[derive(Debug)]
struct SlotFilter {
    only: Option<SlotStatus>,
    interslot: bool,
}

impl Filter {
    /// Compiles a request, as far as the server's limits allow.
    ///
    /// # Errors
    ///
    /// [`FilterError`] names the first part that cannot be served.
    pub fn compile(request: &SubscribeRequest, config: &GrpcConfig) -> Result<Self, FilterError> {
        if !request.block_footer.is_empty() {
            return Err(FilterError::Unsupported("block_footer"));
        }
        let commitment = match request.commitment {
            None => Commitment::default(),
            Some(level) => CommitmentLevel::try_from(level)
                .map_err(|_| FilterError::Commitment(level))?
                .into(),
        };
        let limits = &config.filter_limits;
        let names = Names {
            max_bytes: config.filter_name_size_limit,
        };
        let transactions = |filters, limits: &TransactionLimits| {
            names.compile(filters, limits.max, |filter| {
                TransactionFilter::compile(filter, limits)
            })
        };
        Ok(Self {
            commitment,
            accounts: names.compile(&request.accounts, limits.accounts.max, |filter| {
                AccountFilter::compile(filter, &limits.accounts)
            })?,
            slots: names.compile(&request.slots, limits.slots.max, |filter| {
                Ok(SlotFilter::compile(filter, commitment))
            })?,
            transactions: transactions(&request.transactions, &limits.transactions)?,
            transactions_status: transactions(
                &request.transactions_status,
                &limits.transactions_status,
            )?,
            // Before Alpenglow no block changes its parent, so there is nothing to include.
            entries: names.compile(&request.entry, limits.entries.max, |_| Ok(()))?,
            blocks: names.compile(&request.blocks, limits.blocks.max, |filter| {
                BlockFilter::compile(filter, &limits.blocks)
            })?,
            blocks_meta: names.compile(&request.blocks_meta, limits.blocks_meta.max, |_| Ok(()))?,
            slices: slices(&request.accounts_data_slice, limits.accounts.data_slice_max)?,
        })
    }

    /// The stream it reads from.
    pub fn commitment(&self) -> Commitment {
        self.commitment
    }

    /// Appends the updates that an event makes for the subscriber, none if no filter matches.
    pub fn render(&self, event: &Event, updates: &mut Vec<SubscribeUpdate>) {
        let mut push = |filters: Vec<String>, update: UpdateOneof| {
            updates.push(SubscribeUpdate {
                filters,
                update_oneof: Some(update),
                created_at: Some(event.created_at),
            });
        };
        match &event.update {
            Update::Account(account) => {
                let names = matching(&self.accounts, |filter| filter.matches(account));
                if !names.is_empty() {
                    push(names, UpdateOneof::Account(self.account(account)));
                }
            }
            Update::Transaction(transaction) => {
                let names = matching(&self.transactions, |filter| filter.matches(transaction));
                if !names.is_empty() {
                    push(names, UpdateOneof::Transaction(full(transaction)));
                }
                let names = matching(&self.transactions_status, |filter| {
                    filter.matches(transaction)
                });
                if !names.is_empty() {
                    push(names, UpdateOneof::TransactionStatus(status(transaction)));
                }
            }
            Update::Entry(entry) => {
                let names = matching(&self.entries, |()| true);
                if !names.is_empty() {
                    push(names, UpdateOneof::Entry(entry.as_ref().clone()));
                }
            }
            Update::Block(block) => {
                for (name, filter) in &self.blocks {
                    let rendered = filter.render(block, |account| self.account_info(account));
                    push(vec![name.clone()], UpdateOneof::Block(rendered));
                }
            }
            Update::BlockMeta(meta) => {
                let names = matching(&self.blocks_meta, |()| true);
                if !names.is_empty() {
                    push(names, UpdateOneof::BlockMeta(meta.as_ref().clone()));
                }
            }
            Update::Slot(slot) => {
                let names = matching(&self.slots, |filter| filter.matches(slot.status));
                if !names.is_empty() {
                    push(names, UpdateOneof::Slot(slot_update(slot)));
                }
            }
        }
    }

    fn account(&self, account: &AccountUpdate) -> SubscribeUpdateAccount {
        SubscribeUpdateAccount {
            account: Some(self.account_info(account)),
            slot: account.slot,
            is_startup: account.is_startup,
            bank_id: None,
        }
    }

    fn account_info(&self, account: &AccountUpdate) -> SubscribeUpdateAccountInfo {
        SubscribeUpdateAccountInfo {
            pubkey: account.address.to_vec(),
            lamports: account.lamports,
            owner: account.owner.to_vec(),
            executable: account.executable,
            rent_epoch: account.rent_epoch,
            data: self.slice(&account.data),
            write_version: account.write_version,
            txn_signature: account.txn_signature.map(|signature| signature.to_vec()),
        }
    }

    /// The requested parts of account data, concatenated. A part that the data does not hold in full
    /// is left out, as Yellowstone servers do.
    fn slice(&self, data: &Bytes) -> Bytes {
        let mut held = self.slices.iter().filter(|range| range.end <= data.len());
        match self.slices.as_slice() {
            [] => data.clone(),
            [_] => held
                .next()
                .map_or_else(Bytes::new, |range| data.slice(range.clone())),
            _ => {
                let mut parts = BytesMut::new();
                for range in held {
                    parts.extend_from_slice(&data[range.clone()]);
                }
                parts.freeze()
            }
        }
    }
}

impl SlotFilter {
    fn compile(filter: &SubscribeRequestFilterSlots, commitment: Commitment) -> Self {
        Self {
            only: filter
                .filter_by_commitment
                .unwrap_or(false)
                .then(|| commitment.slot_status()),
            interslot: filter.interslot_updates.unwrap_or(false),
        }
    }

    fn matches(&self, status: SlotStatus) -> bool {
        match status {
            SlotStatus::SlotProcessed | SlotStatus::SlotConfirmed | SlotStatus::SlotFinalized => {
                self.only.is_none_or(|only| only == status)
            }
            SlotStatus::SlotFirstShredReceived
            | SlotStatus::SlotCompleted
            | SlotStatus::SlotCreatedBank
            | SlotStatus::SlotDead => self.interslot,
        }
    }
}

/// Rules for the names of filters.
#[derive(Clone, Copy)]
struct Names {
    max_bytes: usize,
}

impl Names {
    /// Compiles the filters of one kind, at most `max`.
    fn compile<Request, Compiled>(
        self,
        filters: &HashMap<String, Request>,
        max: usize,
        compile: impl Fn(&Request) -> Result<Compiled, FilterError>,
    ) -> Result<Named<Compiled>, FilterError> {
        if filters.len() > max {
            return Err(FilterError::Filters(max));
        }
        let compiled = filters.iter().map(|(name, filter)| {
            if name.len() > self.max_bytes {
                return Err(FilterError::Name {
                    bytes: name.len(),
                    max: self.max_bytes,
                });
            }
            Ok((name.clone(), compile(filter)?))
        });
        let mut compiled = compiled.collect::<Result<Named<_>, _>>()?;
        compiled.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(compiled)
    }
}

fn matching<T>(filters: &Named<T>, matches: impl Fn(&T) -> bool) -> Vec<String> {
    filters
        .iter()
        .filter(|(_, filter)| matches(filter))
        .map(|(name, _)| name.clone())
        .collect()
}

fn slices(
    slices: &[SubscribeRequestAccountsDataSlice],
    max: usize,
) -> Result<Vec<Range<usize>>, FilterError> {
    if slices.len() > max {
        return Err(FilterError::Filters(max));
    }
    let mut ranges: Vec<Range<usize>> = Vec::with_capacity(slices.len());
    for slice in slices {
        let start = usize::try_from(slice.offset).map_err(|_| FilterError::Slices)?;
        let end = usize::try_from(slice.length)
            .ok()
            .and_then(|length| start.checked_add(length))
            .ok_or(FilterError::Slices)?;
        if ranges.last().is_some_and(|last| start < last.end) {
            return Err(FilterError::Slices);
        }
        ranges.push(start..end);
    }
    Ok(ranges)
}

fn full(transaction: &TransactionUpdate) -> SubscribeUpdateTransaction {
    SubscribeUpdateTransaction {
        transaction: Some(transaction.info.clone()),
        slot: transaction.slot,
        bank_id: 0,
    }
}

fn status(transaction: &TransactionUpdate) -> SubscribeUpdateTransactionStatus {
    SubscribeUpdateTransactionStatus {
        slot: transaction.slot,
        signature: transaction.signature.to_vec(),
        is_vote: transaction.is_vote,
        index: transaction.info.index,
        err: transaction
            .info
            .meta
            .as_ref()
            .and_then(|meta| meta.err.clone()),
        bank_id: 0,
    }
}

fn slot_update(slot: &SlotUpdate) -> SubscribeUpdateSlot {
    SubscribeUpdateSlot {
        slot: slot.slot,
        parent: slot.parent,
        status: slot.status.into(),
        dead_error: slot.dead_error.as_deref().map(str::to_owned),
        bank_id: None,
    }
}

#[cfg(test)]
mod tests;
