//! IDLs: those that owners uploaded, and those that programs publish on the chain.

use solana_pubkey::Pubkey;

use super::{tenant::Tenant, timestamp::Timestamp};

/// Most bytes of the text of an IDL: the largest that are published have a few hundred kilobytes.
pub const MAX_IDL_BYTES: usize = 1024 * 1024;

/// Most bytes of all IDLs of an owner together. Every indexer holds what is uploaded in memory.
pub const MAX_OWNER_IDL_BYTES: u64 = 8 * 1024 * 1024;

/// An IDL that an owner uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedIdl {
    /// Its text.
    pub text: String,
    /// When it was uploaded.
    pub uploaded: Timestamp,
}

/// What the IDL accounts of a program held when they were read last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainIdl {
    /// The text; `None` where there is none that is understood.
    pub text: Option<String>,
    /// When they were read.
    pub read: Timestamp,
}

/// All IDLs that are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredIdls {
    /// Counts their changes.
    pub revision: u64,
    /// Those that owners uploaded, by owner and program.
    pub uploaded: Vec<(Tenant, Pubkey, String)>,
    /// Those that programs publish.
    pub chain: Vec<(Pubkey, String)>,
}
