//! Subscription request: the server, and filters for accounts, transactions, slots and blocks.

use std::collections::BTreeMap;

use secrecy::SecretString;
use sluice_chain_types::Commitment;
use solana_pubkey::Pubkey;
use url::Url;

use crate::generation::Generation;

/// A Yellowstone gRPC server.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// `http://` or `https://` address; the latter is verified against the system's and the
    /// well-known root certificates.
    pub url: Url,
    /// Sent as the `x-token` header.
    pub x_token: Option<SecretString>,
}

impl Endpoint {
    /// Host and port, since the rest of an address may hold a key.
    #[must_use]
    pub fn name(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }
}

/// The whole subscription of a stream. Updates name the filters they matched. The default subscribes to
/// nothing, at [`Commitment::Processed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Commitment that a slot must have reached before its updates are sent.
    pub commitment: Commitment,
    /// Account filters by name.
    pub accounts: BTreeMap<String, AccountFilter>,
    /// Transaction filters by name.
    pub transactions: BTreeMap<String, TransactionFilter>,
    /// Name of the slots filter; `None` subscribes to no slot. Every status is sent, dead slots
    /// included, whatever the commitment.
    pub slots: Option<String>,
    /// Name of the filter of block metadata; `None` subscribes to none.
    pub blocks_meta: Option<String>,
    /// Replays from this slot on before going live; servers keep a short window only.
    pub from_slot: Option<u64>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            commitment: Commitment::Processed,
            accounts: BTreeMap::new(),
            transactions: BTreeMap::new(),
            slots: None,
            blocks_meta: None,
            from_slot: None,
        }
    }
}

impl Request {
    /// The same subscription with every filter named by `generation`, so that each update shows under
    /// which request it was sent: see [`Update::generation`](crate::Update::generation).
    #[must_use]
    pub fn in_generation(&self, generation: Generation) -> Self {
        let named = |name: &String| generation.name(name);
        Self {
            accounts: renamed(&self.accounts, named),
            transactions: renamed(&self.transactions, named),
            slots: self.slots.as_ref().map(named),
            blocks_meta: self.blocks_meta.as_ref().map(named),
            ..*self
        }
    }

    /// The names of all filters.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        let content = self.accounts.keys().chain(self.transactions.keys());
        content.chain(&self.slots).chain(&self.blocks_meta)
    }
}

fn renamed<F: Clone>(
    filters: &BTreeMap<String, F>,
    named: impl Fn(&String) -> String,
) -> BTreeMap<String, F> {
    let renamed = filters.iter();
    renamed
        .map(|(name, filter)| (named(name), filter.clone()))
        .collect()
}

/// Which accounts to send. The fields are joined by AND, the keys of one field by OR; an empty
/// field does not restrict. A filter with every field empty would mean every account of the chain
/// and is refused by [`crate::Stream::open`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountFilter {
    /// These accounts.
    pub pubkeys: Vec<Pubkey>,
    /// Accounts of these owner programs. Closing an account changes its owner, so an owner filter
    /// never shows it.
    pub owners: Vec<Pubkey>,
    /// Data equal to these bytes at these offsets; at most [`AccountFilter::MAX_DATA_FILTERS`]
    /// together with the three fields below.
    pub memcmp: Vec<(u64, Vec<u8>)>,
    /// Data of this length.
    pub datasize: Option<u64>,
    /// A balance of exactly this many lamports; 0 shows accounts as they are closed.
    pub lamports: Option<u64>,
    /// Whether the data must have the shape of a token account of either token program.
    pub token_account_state: bool,
}

impl AccountFilter {
    /// Servers refuse more conditions on the data of one filter.
    pub const MAX_DATA_FILTERS: usize = 4;

    /// Whether it names neither an account nor an owner. Some servers refuse that.
    pub(crate) const fn is_keyless(&self) -> bool {
        self.pubkeys.is_empty() && self.owners.is_empty()
    }
}

/// Which transactions to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionFilter {
    /// Must name one of these; empty does not restrict.
    pub account_include: Vec<Pubkey>,
    /// Must name none of these.
    pub account_exclude: Vec<Pubkey>,
    /// Must name all of these.
    pub account_required: Vec<Pubkey>,
    /// Only votes, or none; `None` for both.
    pub votes: Option<bool>,
    /// Only failed transactions, or none; `None` for both.
    pub failed: Option<bool>,
    /// Whether a transaction names the owners of the token accounts in its balances, too. Servers that do not know the option
    /// go by what is named alone.
    pub token_owners: bool,
}
