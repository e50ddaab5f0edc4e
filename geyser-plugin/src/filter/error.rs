//! Reasons for which a request is refused, in the words of Yellowstone servers where those have any.

use thiserror::Error;

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
    #[error("oversized filter name (max allowed size {max}), found {bytes}")]
    Name {
        /// Length of the name.
        bytes: usize,
        /// How long it may be.
        max: usize,
    },
    /// Too many filters of one kind, or data slices.
    #[error("Max amount of filters/data_slices reached, only {0} allowed")]
    Filters(usize),
    /// Too many addresses in one list of a filter.
    #[error("Max amount of Pubkeys reached, only {0} allowed")]
    Addresses(usize),
    /// A filter names an address that the server does not serve.
    #[error("Pubkey {0} in filters is not allowed")]
    Rejected(String),
    /// A filter restricts nothing, which the server does not serve.
    #[error("Subscribe on full stream with `any` is not allowed, at least one filter required")]
    Any,
    /// A block filter asks for content that the server does not serve.
    #[error("`{0}` is not allowed")]
    Include(&'static str),
    /// Too many conditions on the data of one account filter.
    #[error("too many account data filters: {count}, at most {max} are allowed")]
    Conditions {
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
    /// A cuckoo filter cannot be evaluated.
    #[error("invalid cuckoo filter: {0}")]
    Cuckoo(&'static str),
    /// A cuckoo filter is too large.
    #[error("cuckoo filter of {bytes} bytes, at most {max} bytes are allowed")]
    CuckooSize {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The expansion to owners of token accounts is none that is known.
    #[error("unknown token account expansion {0}")]
    TokenAccounts(i32),
    /// The data slices overlap, are out of order or exceed the address space.
    #[error("accounts_data_slice must be in ascending order without overlaps")]
    Slices,
}
