//! Filters of a subscription, compiled once per request and matched against every event.

mod accounts;
mod transactions;

use std::{collections::HashMap, ops::Range};

use bytes::{Bytes, BytesMut};
use thiserror::Error;
use yellowstone_grpc_proto::geyser::{
    CommitmentLevel, SlotStatus, SubscribeRequest, SubscribeRequestAccountsDataSlice,
    SubscribeRequestFilterSlots, SubscribeUpdate, SubscribeUpdateAccount,
    SubscribeUpdateAccountInfo, SubscribeUpdateSlot, SubscribeUpdateTransaction,
    SubscribeUpdateTransactionStatus, subscribe_update::UpdateOneof,
};

use self::{accounts::AccountFilter, transactions::TransactionFilter};
use crate::message::{
    AccountUpdate, Address, Commitment, Event, SlotUpdate, TransactionUpdate, Update,
};

/// Longest filter name in bytes; Yellowstone's default. Names travel with every update.
pub const NAME_MAX_BYTES: usize = 128;

/// Most filters of one kind in one request. Every filter is tried on every event.
pub const FILTERS_MAX: usize = 256;

/// Most addresses in one list of a filter. A request of Tonic's default 4 MiB holds about 90,000.
pub const ADDRESSES_MAX: usize = 100_000;

/// Most account data slices in one request. Each is a copy per account update.
pub const SLICES_MAX: usize = 16;

/// Why a request cannot be served.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FilterError {
    /// The server does not serve this filter.
    #[error("filter `{0}` is not supported by this server")]
    Unsupported(&'static str),
    /// The commitment is not one of the three levels.
    #[error("unknown commitment level {0}")]
    Commitment(i32),
    /// A filter name is too long.
    #[error("filter name of {0} bytes, at most {NAME_MAX_BYTES} are allowed")]
    Name(usize),
    /// A list is too long.
    #[error("too many {what}: {count}, at most {max} are allowed")]
    TooMany {
        /// What the list holds.
        what: &'static str,
        /// How many were sent.
        count: usize,
        /// How many are allowed.
        max: usize,
    },
    /// A text is not a base58 address.
    #[error("invalid address `{0}`")]
    Address(String),
    /// A text is not a base58 signature.
    #[error("invalid signature `{0}`")]
    Signature(String),
    /// An account data condition cannot be evaluated.
    #[error("invalid account filter: {0}")]
    Account(&'static str),
    /// The data slices overlap, are out of order or exceed the address space.
    #[error("accounts_data_slice must be in ascending order without overlaps")]
    Slices,
}

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
    blocks_meta: Named<()>,
    slices: Vec<Range<usize>>,
}

#[derive(Debug)]
struct SlotFilter {
    only: Option<SlotStatus>,
    interslot: bool,
}

impl Filter {
    /// Compiles a request.
    ///
    /// # Errors
    ///
    /// [`FilterError`] names the first part that cannot be served.
    pub fn compile(request: &SubscribeRequest) -> Result<Self, FilterError> {
        let unsupported = [
            ("blocks", request.blocks.is_empty()),
            ("entry", request.entry.is_empty()),
            ("block_footer", request.block_footer.is_empty()),
        ];
        if let Some((name, _)) = unsupported.into_iter().find(|(_, absent)| !absent) {
            return Err(FilterError::Unsupported(name));
        }
        let commitment = match request.commitment {
            None => Commitment::default(),
            Some(level) => CommitmentLevel::try_from(level)
                .map_err(|_| FilterError::Commitment(level))?
                .into(),
        };
        Ok(Self {
            commitment,
            accounts: named(
                "accounts filters",
                &request.accounts,
                AccountFilter::compile,
            )?,
            slots: named("slots filters", &request.slots, |filter| {
                Ok(SlotFilter::compile(filter, commitment))
            })?,
            transactions: named(
                "transactions filters",
                &request.transactions,
                TransactionFilter::compile,
            )?,
            transactions_status: named(
                "transactions_status filters",
                &request.transactions_status,
                TransactionFilter::compile,
            )?,
            blocks_meta: named("blocks_meta filters", &request.blocks_meta, |_| Ok(()))?,
            slices: slices(&request.accounts_data_slice)?,
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
            account: Some(SubscribeUpdateAccountInfo {
                pubkey: account.address.to_vec(),
                lamports: account.lamports,
                owner: account.owner.to_vec(),
                executable: account.executable,
                rent_epoch: account.rent_epoch,
                data: self.slice(&account.data),
                write_version: account.write_version,
                txn_signature: account.txn_signature.map(|signature| signature.to_vec()),
            }),
            slot: account.slot,
            is_startup: account.is_startup,
            bank_id: None,
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

fn named<Request, Compiled>(
    what: &'static str,
    filters: &HashMap<String, Request>,
    compile: impl Fn(&Request) -> Result<Compiled, FilterError>,
) -> Result<Named<Compiled>, FilterError> {
    at_most(what, filters.len(), FILTERS_MAX)?;
    let mut compiled = filters
        .iter()
        .map(|(name, filter)| {
            if name.len() > NAME_MAX_BYTES {
                return Err(FilterError::Name(name.len()));
            }
            Ok((name.clone(), compile(filter)?))
        })
        .collect::<Result<Named<_>, _>>()?;
    compiled.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(compiled)
}

fn matching<T>(filters: &Named<T>, matches: impl Fn(&T) -> bool) -> Vec<String> {
    filters
        .iter()
        .filter(|(_, filter)| matches(filter))
        .map(|(name, _)| name.clone())
        .collect()
}

fn at_most(what: &'static str, count: usize, max: usize) -> Result<(), FilterError> {
    if count > max {
        return Err(FilterError::TooMany { what, count, max });
    }
    Ok(())
}

/// Parses a list of base58 addresses.
fn addresses<C: FromIterator<Address>>(
    what: &'static str,
    texts: &[String],
) -> Result<C, FilterError> {
    at_most(what, texts.len(), ADDRESSES_MAX)?;
    texts
        .iter()
        .map(|text| base58(text).ok_or_else(|| FilterError::Address(text.clone())))
        .collect()
}

fn base58<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    match bs58::decode(text).onto(&mut bytes) {
        Ok(length) if length == BYTES => Some(bytes),
        _ => None,
    }
}

fn slices(slices: &[SubscribeRequestAccountsDataSlice]) -> Result<Vec<Range<usize>>, FilterError> {
    at_most("accounts_data_slice entries", slices.len(), SLICES_MAX)?;
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
