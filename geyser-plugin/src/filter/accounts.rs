//! Account filters of a subscription.
//!
//! Their fields are joined by AND, the lists in `account` and `owner` by OR, and the conditions in `filters` by AND. An
//! absent field matches everything.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use yellowstone_grpc_proto::geyser::{
    SubscribeRequestFilterAccounts, SubscribeRequestFilterAccountsFilter,
    SubscribeRequestFilterAccountsFilterMemcmp,
    subscribe_request_filter_accounts_filter::Filter as Condition,
    subscribe_request_filter_accounts_filter_lamports::Cmp,
    subscribe_request_filter_accounts_filter_memcmp::Data,
};

use super::{FilterError, address_set::AddressSet};
use crate::{config::AccountLimits, message::AccountUpdate};

/// Most conditions in one filter; the same as the validator's own `getProgramAccounts` allows.
const CONDITIONS_MAX: usize = 4;

/// Longest byte string of a memcmp condition; the same as `getProgramAccounts` allows.
const MEMCMP_MAX_BYTES: usize = 128;

/// Longest base58 or base64 text that can encode [`MEMCMP_MAX_BYTES`], checked before decoding.
const MEMCMP_MAX_TEXT: usize = 176;

#[derive(Debug)]
pub(super) struct AccountFilter {
    accounts: AddressSet,
    owners: AddressSet,
    conditions: Vec<DataCondition>,
    written_by_transaction: Option<bool>,
}

#[derive(Debug)]
enum DataCondition {
    Memcmp { offset: usize, bytes: Vec<u8> },
    DataSize(u64),
    TokenAccount,
    Lamports(Cmp),
}

impl AccountFilter {
    pub fn compile(
        filter: &SubscribeRequestFilterAccounts,
        limits: &AccountLimits,
    ) -> Result<Self, FilterError> {
        if filter.filters.len() > CONDITIONS_MAX {
            return Err(FilterError::Conditions {
                count: filter.filters.len(),
                max: CONDITIONS_MAX,
            });
        }
        let accounts =
            AddressSet::listed(&filter.account, limits.account_max, &limits.account_reject)?
                .or_cuckoo(
                    filter.cuckoo_accounts_filter.as_ref(),
                    limits.cuckoo_max_size,
                )?;
        let owners = AddressSet::listed(&filter.owner, limits.owner_max, &limits.owner_reject)?;
        if accounts.is_absent() && owners.is_absent() && !limits.any {
            return Err(FilterError::Any);
        }
        Ok(Self {
            accounts,
            owners,
            conditions: filter
                .filters
                .iter()
                .map(DataCondition::compile)
                .collect::<Result<_, _>>()?,
            written_by_transaction: filter.nonempty_txn_signature,
        })
    }

    pub fn matches(&self, account: &AccountUpdate) -> bool {
        self.accounts.admits(&account.address)
            && self.owners.admits(&account.owner)
            && self
                .written_by_transaction
                .is_none_or(|wanted| wanted == account.txn_signature.is_some())
            && self
                .conditions
                .iter()
                .all(|condition| condition.holds(account))
    }
}

impl DataCondition {
    fn compile(filter: &SubscribeRequestFilterAccountsFilter) -> Result<Self, FilterError> {
        let missing = FilterError::Account("a filter without a condition");
        match filter.filter.as_ref().ok_or(missing)? {
            Condition::Memcmp(memcmp) => Self::memcmp(memcmp),
            Condition::Datasize(bytes) => Ok(Self::DataSize(*bytes)),
            Condition::TokenAccountState(true) => Ok(Self::TokenAccount),
            Condition::TokenAccountState(false) => {
                Err(FilterError::Account("token_account_state can only be true"))
            }
            Condition::Lamports(lamports) => lamports
                .cmp
                .map(Self::Lamports)
                .ok_or(FilterError::Account("lamports without a comparison")),
        }
    }

    fn memcmp(memcmp: &SubscribeRequestFilterAccountsFilterMemcmp) -> Result<Self, FilterError> {
        let offset = usize::try_from(memcmp.offset)
            .map_err(|_| FilterError::Account("memcmp offset is out of range"))?;
        let too_long = FilterError::Account("memcmp data is longer than 128 bytes");
        let bytes = match memcmp.data.as_ref() {
            None => return Err(FilterError::Account("memcmp without data")),
            Some(Data::Base58(text) | Data::Base64(text)) if text.len() > MEMCMP_MAX_TEXT => {
                return Err(too_long);
            }
            Some(Data::Bytes(bytes)) => bytes.clone(),
            Some(Data::Base58(text)) => bs58::decode(text)
                .into_vec()
                .map_err(|_| FilterError::Account("memcmp data is not base58"))?,
            Some(Data::Base64(text)) => BASE64
                .decode(text)
                .map_err(|_| FilterError::Account("memcmp data is not base64"))?,
        };
        if bytes.len() > MEMCMP_MAX_BYTES {
            return Err(too_long);
        }
        Ok(Self::Memcmp { offset, bytes })
    }

    fn holds(&self, account: &AccountUpdate) -> bool {
        match self {
            Self::Memcmp { offset, bytes } => account
                .data
                .get(*offset..)
                .is_some_and(|data| data.starts_with(bytes)),
            Self::DataSize(bytes) => account.data.len() as u64 == *bytes,
            Self::TokenAccount => is_token_account(&account.data),
            Self::Lamports(Cmp::Eq(lamports)) => account.lamports == *lamports,
            Self::Lamports(Cmp::Ne(lamports)) => account.lamports != *lamports,
            Self::Lamports(Cmp::Lt(lamports)) => account.lamports < *lamports,
            Self::Lamports(Cmp::Gt(lamports)) => account.lamports > *lamports,
        }
    }
}

/// Whether data is an initialized token account of either token program. The owner is not looked at.
fn is_token_account(data: &[u8]) -> bool {
    /// Length of a token account without extensions.
    const ACCOUNT_BYTES: usize = 165;
    /// Length of a multisig, which Token-2022 never extends and which is no token account.
    const MULTISIG_BYTES: usize = 355;
    /// Where a token account holds its state; 0 is uninitialized.
    const STATE_OFFSET: usize = 108;
    /// What Token-2022 writes right after the base layout of an extended token account.
    const EXTENDED_ACCOUNT_TYPE: u8 = 2;

    let initialized = data.get(STATE_OFFSET).is_some_and(|state| *state != 0);
    let is_account = match data.len() {
        ACCOUNT_BYTES => true,
        MULTISIG_BYTES => false,
        _ => data.get(ACCOUNT_BYTES) == Some(&EXTENDED_ACCOUNT_TYPE),
    };
    initialized && is_account
}
