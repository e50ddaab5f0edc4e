//! Request limits: how many keys a server takes in one request (pure).

use crate::request::Request;

/// Largest request that servers decode unless they are set to more, bytes. They end the stream of a larger one without a word.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of a request that are left to what is no key, as names of filters.
const RESERVED_BYTES: usize = 4096;

/// Most bytes of a key in a request: 44 of base 58, and what says so.
const KEY_BYTES: usize = 46;

/// What a server takes in one request. `None` is a limit that is not known, or that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Addresses of one account filter.
    pub pubkeys: Option<usize>,
    /// Owners of one account filter.
    pub owners: Option<usize>,
    /// Addresses of which a transaction filter wants one.
    pub account_include: Option<usize>,
    /// Account filters, those without keys among them.
    pub account_filters: Option<usize>,
    /// Transaction filters.
    pub transaction_filters: Option<usize>,
    /// Keys of all filters together, which follow from the bytes of a request.
    pub keys: usize,
    /// Whether account filters that name no key are taken; where not, they are left out.
    pub keyless: bool,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            pubkeys: None,
            owners: None,
            account_include: None,
            account_filters: None,
            transaction_filters: None,
            keys: (MAX_REQUEST_BYTES - RESERVED_BYTES) / KEY_BYTES,
            keyless: true,
        }
    }
}

impl Request {
    /// How many keys all its filters have together.
    #[must_use]
    pub fn keys(&self) -> usize {
        let accounts = self.accounts.values();
        let accounts =
            accounts.map(|filter| filter.pubkeys.len().saturating_add(filter.owners.len()));
        let transactions = self.transactions.values().map(|filter| {
            let (include, exclude) = (filter.account_include.len(), filter.account_exclude.len());
            include
                .saturating_add(exclude)
                .saturating_add(filter.account_required.len())
        });
        accounts.chain(transactions).sum()
    }
}
