//! Transaction filters of a subscription.
//!
//! Their fields are joined by AND; an absent field matches everything.

use std::collections::HashSet;

use yellowstone_grpc_proto::geyser::SubscribeRequestFilterTransactions;

use super::{FilterError, addresses, base58};
use crate::message::{Address, TransactionUpdate};

#[derive(Debug)]
pub(super) struct TransactionFilter {
    vote: Option<bool>,
    failed: Option<bool>,
    signature: Option<[u8; 64]>,
    include: HashSet<Address>,
    exclude: HashSet<Address>,
    required: Vec<Address>,
}

impl TransactionFilter {
    pub fn compile(filter: &SubscribeRequestFilterTransactions) -> Result<Self, FilterError> {
        if filter.cuckoo_account_include.is_some() {
            return Err(FilterError::Unsupported(
                "transactions.cuckoo_account_include",
            ));
        }
        if filter.token_accounts.is_some() {
            return Err(FilterError::Unsupported("transactions.token_accounts"));
        }
        let signature = filter
            .signature
            .as_ref()
            .map(|text| base58(text).ok_or_else(|| FilterError::Signature(text.clone())))
            .transpose()?;
        Ok(Self {
            vote: filter.vote,
            failed: filter.failed,
            signature,
            include: addresses("account_include addresses", &filter.account_include)?,
            exclude: addresses("account_exclude addresses", &filter.account_exclude)?,
            required: addresses("account_required addresses", &filter.account_required)?,
        })
    }

    pub fn matches(&self, transaction: &TransactionUpdate) -> bool {
        let keys = &transaction.keys;
        self.vote.is_none_or(|vote| vote == transaction.is_vote)
            && self
                .failed
                .is_none_or(|failed| failed == transaction.failed)
            && self
                .signature
                .is_none_or(|signature| signature == transaction.signature)
            && (self.include.is_empty() || keys.iter().any(|key| self.include.contains(key)))
            && !keys.iter().any(|key| self.exclude.contains(key))
            && self.required.iter().all(|key| keys.contains(key))
    }
}
