//! Accounts of one slot as JSON text, ready to be sent.

use std::{collections::HashMap, io, iter};

use axum::body::{Body, Bytes};
use serde_json::json;
use sluice_chain_types::RawAccount;
use solana_pubkey::{Pubkey, pubkey};

use super::{
    Request,
    wire::{self, Call, Condition, Reading},
};

/// Rent of the chain: 6,960 lamports a byte.
const RENT: (u64, f64) = (3_480, 2.0);

const RENT_SYSVAR: Pubkey = pubkey!("SysvarRent111111111111111111111111111111111");

/// Owner of sysvars.
const SYSVAR_OWNER: Pubkey = pubkey!("Sysvar1111111111111111111111111111111111111");

/// How many blocks a blockhash is valid.
const BLOCKHASH_LIFE: u64 = 150;

/// Largest piece of the list of all pools that is handed to the socket at once, bytes.
const PIECE: usize = 256 * 1024;

/// The accounts.
pub(super) struct Rendered {
    /// The slot that they are all of.
    pub(super) slot: u64,
    /// By address.
    accounts: HashMap<String, String>,
    /// Addresses of pools, in the order in which they came.
    pools: Vec<String>,
    /// The list of all pools, while none has changed since it was made.
    listed: Option<Bytes>,
}

impl Default for Rendered {
    /// Nothing but the chain's rent, in slot 0.
    fn default() -> Self {
        let mut rendered = Self {
            slot: 0,
            accounts: HashMap::new(),
            pools: Vec::new(),
            listed: None,
        };
        let (lamports, threshold) = RENT;
        let data = [
            &lamports.to_le_bytes()[..],
            &threshold.to_le_bytes()[..],
            &[50],
        ];
        rendered.set(RawAccount {
            pubkey: RENT_SYSVAR,
            owner: SYSVAR_OWNER,
            lamports: 1_009_200,
            data: data.concat().into(),
        });
        rendered
    }
}

impl Rendered {
    /// Replaces an account.
    pub(super) fn set(&mut self, account: RawAccount) {
        let RawAccount {
            pubkey,
            owner,
            lamports,
            data,
        } = account;
        let key = pubkey.to_string();
        let text = wire::account(&owner, lamports, &data, Reading::default()).to_string();
        if is_pool(&owner, &data) {
            self.listed = None;
            if !self.accounts.contains_key(&key) {
                self.pools.push(key.clone());
            }
        }
        self.accounts.insert(key, text);
    }

    /// Removes an account.
    pub(super) fn remove(&mut self, address: &Pubkey) {
        let key = address.to_string();
        self.accounts.remove(&key);
        self.pools.retain(|pool| *pool != key);
        self.listed = None;
    }

    /// The answer to a call; or what is not understood of it.
    pub(super) fn answer(
        &mut self,
        request: &Request<'_>,
        least: Option<u64>,
    ) -> Result<Body, String> {
        let slot = self.slot;
        if least.is_some_and(|least| least > slot) {
            let id = serde_json::from_str(request.id.get()).unwrap_or_default();
            return Ok(wire::not_reached(&id, slot).to_string().into());
        }
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, request.id);
        let context = format!(r#"{head}{{"context":{{"slot":{slot}}},"value":"#);
        match &*request.method {
            "getSlot" => Ok(format!("{head}{slot}}}").into()),
            "getLatestBlockhash" => {
                // The height that belongs to a blockhash can be read from it.
                let mut bytes = [7; 32];
                bytes[..8].copy_from_slice(&slot.to_le_bytes());
                let value = json!({
                    "blockhash": Pubkey::from(bytes).to_string(),
                    "lastValidBlockHeight": slot + BLOCKHASH_LIFE,
                });
                Ok(format!("{context}{value}}}}}").into())
            }
            "getMultipleAccounts" => {
                let keys = request.params.first().map_or("null", |keys| keys.get());
                let keys: Vec<&str> =
                    serde_json::from_str(keys).map_err(|error| error.to_string())?;
                let text = |key| self.accounts.get(key).map_or("null", String::as_str);
                let accounts: Vec<&str> = keys.into_iter().map(text).collect();
                Ok(format!("{context}[{}]}}}}", accounts.join(",")).into())
            }
            _ => {
                self.require_pools(request)?;
                Ok(self.all_pools(context))
            }
        }
    }

    /// Only pools are ever listed, whole; a chain's node takes any filter at its word.
    fn require_pools(&self, request: &Request<'_>) -> Result<(), String> {
        let call = wire::parse(&request.method, &request.params())?;
        let Call::ProgramAccounts {
            owner,
            conditions,
            reading,
        } = call
        else {
            return Err(format!("{} is not answered here", request.method));
        };
        let discriminator = |condition: &Condition| {
            let Condition::Bytes(0, bytes) = condition else {
                return matches!(condition, Condition::Size(_));
            };
            *bytes == cpmm::POOL_STATE_DISCRIMINATOR
        };
        let understood = owner == cpmm::ids::PROGRAM_ID
            && conditions.iter().all(discriminator)
            && reading.slice.is_none();
        understood
            .then_some(())
            .ok_or_else(|| format!("a list of {owner} under {conditions:?}"))
    }

    fn all_pools(&mut self, context: String) -> Body {
        let (pools, accounts) = (&self.pools, &self.accounts);
        let listed = self.listed.get_or_insert_with(|| {
            let mut list = String::from("[");
            for pool in pools {
                let comma = if list.len() > 1 { "," } else { "" };
                let account = &accounts[pool];
                list.push_str(&format!(
                    r#"{comma}{{"pubkey":"{pool}","account":{account}}}"#
                ));
            }
            list.push(']');
            list.into()
        });
        let listed = listed.clone();
        let count = listed.len().div_ceil(PIECE);
        let pieces = (0..count).map(move |piece| {
            let end = ((piece + 1) * PIECE).min(listed.len());
            listed.slice(piece * PIECE..end)
        });
        let pieces = iter::once(Bytes::from(context))
            .chain(pieces)
            .chain([Bytes::from_static(b"}}")]);
        Body::from_stream(futures::stream::iter(pieces.map(io::Result::Ok)))
    }
}

fn is_pool(owner: &Pubkey, data: &[u8]) -> bool {
    *owner == cpmm::ids::PROGRAM_ID && data.starts_with(&cpmm::POOL_STATE_DISCRIMINATOR)
}
