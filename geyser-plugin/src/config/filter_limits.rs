//! Limits on what a subscription may ask for, under the names that Yellowstone servers use for them.

use std::collections::HashSet;

use serde::{Deserialize, Deserializer, de::Error as _};

use crate::message::Address;

/// Most filters of one kind in one request. Every filter is tried on every event.
pub const DEFAULT_FILTERS: usize = 256;

/// Most addresses in one list of a filter. A request of the default size holds about 91,000.
pub const DEFAULT_ADDRESSES: usize = 100_000;

/// Most account data slices in one request. Each is a copy per account update.
pub const DEFAULT_SLICES: usize = 16;

/// Most bytes of one cuckoo filter: two million accounts, and no more than a request of the default size holds.
pub const DEFAULT_CUCKOO_BYTES: usize = 4 << 20;

/// Limits of every kind of filter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilterLimits {
    /// Of `accounts`.
    pub accounts: AccountLimits,
    /// Of `slots`.
    pub slots: CountLimit,
    /// Of `transactions`.
    pub transactions: TransactionLimits,
    /// Of `transactions_status`.
    pub transactions_status: TransactionLimits,
    /// Of `blocks`.
    pub blocks: BlockLimits,
    /// Of `blocks_meta`.
    pub blocks_meta: CountLimit,
    /// Of `entry`.
    pub entries: CountLimit,
}

/// Limit of a kind of filter that has no lists.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CountLimit {
    /// Filters in one request.
    pub max: usize,
}

/// Limits of account filters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccountLimits {
    /// Filters in one request.
    pub max: usize,
    /// Whether a filter may name neither an account nor an owner.
    pub any: bool,
    /// Accounts in one filter.
    pub account_max: usize,
    /// Accounts that no filter may name.
    pub account_reject: AddressList,
    /// Owners in one filter.
    pub owner_max: usize,
    /// Owners that no filter may name.
    pub owner_reject: AddressList,
    /// Data slices in one request.
    pub data_slice_max: usize,
    /// Bytes of one cuckoo filter.
    pub cuckoo_max_size: usize,
}

/// Limits of transaction filters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransactionLimits {
    /// Filters in one request.
    pub max: usize,
    /// Whether a filter may restrict nothing.
    pub any: bool,
    /// Addresses in one `account_include`.
    pub account_include_max: usize,
    /// Addresses that no `account_include` may name.
    pub account_include_reject: AddressList,
    /// Addresses in one `account_exclude`.
    pub account_exclude_max: usize,
    /// Addresses in one `account_required`.
    pub account_required_max: usize,
    /// Bytes of one cuckoo filter.
    pub cuckoo_max_size: usize,
}

/// Limits of block filters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BlockLimits {
    /// Filters in one request.
    pub max: usize,
    /// Addresses in one `account_include`.
    pub account_include_max: usize,
    /// Whether `account_include` may be empty.
    pub account_include_any: bool,
    /// Addresses that no `account_include` may name.
    pub account_include_reject: AddressList,
    /// Whether blocks may come with their transactions.
    pub include_transactions: bool,
    /// Whether blocks may come with their account writes.
    pub include_accounts: bool,
    /// Whether blocks may come with their entries.
    pub include_entries: bool,
    /// Bytes of one cuckoo filter.
    pub cuckoo_max_size: usize,
}

impl Default for CountLimit {
    fn default() -> Self {
        Self {
            max: DEFAULT_FILTERS,
        }
    }
}

impl Default for AccountLimits {
    fn default() -> Self {
        Self {
            max: DEFAULT_FILTERS,
            any: true,
            account_max: DEFAULT_ADDRESSES,
            account_reject: AddressList::default(),
            owner_max: DEFAULT_ADDRESSES,
            owner_reject: AddressList::default(),
            data_slice_max: DEFAULT_SLICES,
            cuckoo_max_size: DEFAULT_CUCKOO_BYTES,
        }
    }
}

impl Default for TransactionLimits {
    fn default() -> Self {
        Self {
            max: DEFAULT_FILTERS,
            any: true,
            account_include_max: DEFAULT_ADDRESSES,
            account_include_reject: AddressList::default(),
            account_exclude_max: DEFAULT_ADDRESSES,
            account_required_max: DEFAULT_ADDRESSES,
            cuckoo_max_size: DEFAULT_CUCKOO_BYTES,
        }
    }
}

impl Default for BlockLimits {
    fn default() -> Self {
        Self {
            max: DEFAULT_FILTERS,
            account_include_max: DEFAULT_ADDRESSES,
            account_include_any: true,
            account_include_reject: AddressList::default(),
            include_transactions: true,
            include_accounts: true,
            include_entries: true,
            cuckoo_max_size: DEFAULT_CUCKOO_BYTES,
        }
    }
}

/// Addresses, in base 58 in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressList(pub HashSet<Address>);

impl<'de> Deserialize<'de> for AddressList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let parsed = texts.iter().map(|text| {
            let mut address = [0; 32];
            match bs58::decode(text).onto(&mut address) {
                Ok(length) if length == address.len() => Ok(address),
                _ => Err(D::Error::custom(format!("invalid address `{text}`"))),
            }
        });
        parsed.collect::<Result<_, _>>().map(Self)
    }
}
