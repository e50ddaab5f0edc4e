//! Transaction filters of a subscription.
//!
//! Their fields are joined by AND; an absent field matches everything. With an expansion to token accounts, a
//! transaction also counts as naming the owners of the token accounts in its balances.

use yellowstone_grpc_proto::geyser::{
    SubscribeRequestFilterTransactions, TokenAccountExpansionControlFlag as Expansion,
};

use super::{
    FilterError,
    address_set::{AddressSet, base58},
};
use crate::{
    config::{AddressList, TransactionLimits},
    message::{Address, TransactionUpdate},
};

#[derive(Debug)]
pub(super) struct TransactionFilter {
    vote: Option<bool>,
    failed: Option<bool>,
    signature: Option<[u8; 64]>,
    include: AddressSet,
    exclude: AddressSet,
    required: AddressSet,
    expansion: Option<Expansion>,
}

impl TransactionFilter {
    pub fn compile(
        filter: &SubscribeRequestFilterTransactions,
        limits: &TransactionLimits,
    ) -> Result<Self, FilterError> {
        let signature = filter
            .signature
            .as_ref()
            .map(|text| base58(text).ok_or_else(|| FilterError::Signature(text.clone())))
            .transpose()?;
        let expansion = filter
            .token_accounts
            .map(|flag| Expansion::try_from(flag).map_err(|_| FilterError::TokenAccounts(flag)))
            .transpose()?;
        let nothing = AddressList::default();
        let compiled = Self {
            vote: filter.vote,
            failed: filter.failed,
            signature,
            include: AddressSet::listed(
                &filter.account_include,
                limits.account_include_max,
                &limits.account_include_reject,
            )?
            .or_cuckoo(
                filter.cuckoo_account_include.as_ref(),
                limits.cuckoo_max_size,
            )?,
            exclude: AddressSet::listed(
                &filter.account_exclude,
                limits.account_exclude_max,
                &nothing,
            )?,
            required: AddressSet::listed(
                &filter.account_required,
                limits.account_required_max,
                &nothing,
            )?,
            expansion,
        };
        if compiled.restricts_nothing() && !limits.any {
            return Err(FilterError::Any);
        }
        Ok(compiled)
    }

    fn restricts_nothing(&self) -> bool {
        self.vote.is_none()
            && self.failed.is_none()
            && self.signature.is_none()
            && self.include.is_absent()
            && self.exclude.is_absent()
            && self.required.is_absent()
    }

    pub fn matches(&self, transaction: &TransactionUpdate) -> bool {
        let names = |address: &Address| {
            transaction.keys.contains(address) || self.owners(transaction).any(|one| one == address)
        };
        let named = || transaction.keys.iter().chain(self.owners(transaction));
        self.vote.is_none_or(|vote| vote == transaction.is_vote)
            && self
                .failed
                .is_none_or(|failed| failed == transaction.failed)
            && self
                .signature
                .is_none_or(|signature| signature == transaction.signature)
            && (self.include.is_absent() || named().any(|key| self.include.contains(key)))
            && (self.exclude.is_absent() || !named().any(|key| self.exclude.contains(key)))
            && self.required.iter_listed().all(names)
    }

    /// The owners of token accounts that count as named by the transaction.
    fn owners<'a>(
        &self,
        transaction: &'a TransactionUpdate,
    ) -> impl Iterator<Item = &'a Address> + use<'a> {
        let expansion = self.expansion;
        let counts = move |changed: bool| match expansion {
            None => false,
            Some(Expansion::All) => true,
            Some(Expansion::BalanceChanged) => changed,
        };
        transaction
            .token_owners
            .iter()
            .filter(move |one| counts(one.balance_changed))
            .map(|one| &one.owner)
    }
}
