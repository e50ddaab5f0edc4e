//! Accounts of one slot as JSON text, ready to be sent.

use std::{collections::HashMap, io, iter};

use axum::body::{Body, Bytes};
use serde_json::json;
use sluice_chain_types::RawAccount;
use solana_pubkey::{Pubkey, pubkey};

use super::{
    answering::Request,
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

/// Offset of the address of the first vault in a pool, bytes, the only one but 0 that a list is filtered by.
const VAULT_0_OFFSET: u64 = 72;

/// The accounts.
pub(super) struct Rendered {
    /// The slot that they are all of.
    pub(super) slot: u64,
    /// By address.
    accounts: HashMap<String, String>,
    /// In the order in which they came.
    pools: Vec<Listed>,
    /// For each exchange's program the list of all its pools, while none has changed since it was made.
    lists: HashMap<Pubkey, Bytes>,
}

/// A pool, as lists select it.
struct Listed {
    address: String,
    exchange: Pubkey,
    /// Address of its first vault.
    vault_0: [u8; 32],
}

/// Which pools a call lists.
struct Part {
    exchange: Pubkey,
    /// How the address of the first vault begins.
    prefix: Vec<u8>,
}

impl Part {
    fn has(&self, pool: &Listed) -> bool {
        pool.exchange == self.exchange && pool.vault_0.starts_with(&self.prefix)
    }
}

impl Default for Rendered {
    /// Nothing but the chain's rent, in slot 0.
    fn default() -> Self {
        let mut rendered = Self {
            slot: 0,
            accounts: HashMap::new(),
            pools: Vec::new(),
            lists: HashMap::new(),
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
        if let Some(vault_0) = first_vault(&data) {
            self.lists.clear();
            if !self.accounts.contains_key(&key) {
                self.pools.push(Listed {
                    address: key.clone(),
                    exchange: owner,
                    vault_0,
                });
            }
        }
        self.accounts.insert(key, text);
    }

    /// Removes an account.
    pub(super) fn remove(&mut self, address: &Pubkey) {
        let key = address.to_string();
        self.accounts.remove(&key);
        self.pools.retain(|pool| pool.address != key);
        self.lists.clear();
    }

    /// The answer to a call; or what is not understood of it. `sends` decides by its length whether a list is sent at all.
    pub(super) fn answer(
        &mut self,
        request: &Request<'_>,
        least: Option<u64>,
        sends: impl FnOnce(usize) -> bool,
    ) -> Result<Option<Body>, String> {
        let slot = self.slot;
        if least.is_some_and(|least| least > slot) {
            let id = serde_json::from_str(request.id.get()).unwrap_or_default();
            return Ok(Some(wire::not_reached(&id, slot).to_string().into()));
        }
        let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, request.id);
        let context = format!(r#"{head}{{"context":{{"slot":{slot}}},"value":"#);
        match &*request.method {
            "getSlot" => Ok(Some(format!("{head}{slot}}}").into())),
            "getLatestBlockhash" => {
                // The height that belongs to a blockhash can be read from it.
                let mut bytes = [7; 32];
                bytes[..8].copy_from_slice(&slot.to_le_bytes());
                let value = json!({
                    "blockhash": Pubkey::from(bytes).to_string(),
                    "lastValidBlockHeight": slot + BLOCKHASH_LIFE,
                });
                Ok(Some(format!("{context}{value}}}}}").into()))
            }
            "getMultipleAccounts" => {
                let keys = request.params.first().map_or("null", |keys| keys.get());
                let keys: Vec<&str> =
                    serde_json::from_str(keys).map_err(|error| error.to_string())?;
                let text = |key| self.accounts.get(key).map_or("null", String::as_str);
                let accounts: Vec<&str> = keys.into_iter().map(text).collect();
                Ok(Some(
                    format!("{context}[{}]}}}}", accounts.join(",")).into(),
                ))
            }
            _ => {
                let part = listed_part(request)?;
                let length = self.pools.iter().filter(|pool| part.has(pool)).count();
                Ok(sends(length).then(|| self.pools(context, &part)))
            }
        }
    }

    /// The pools of this part.
    fn pools(&mut self, context: String, part: &Part) -> Body {
        let list = |pools: &[Listed], accounts: &HashMap<String, String>| -> Bytes {
            let mut list = String::from("[");
            for Listed { address, .. } in pools.iter().filter(|pool| part.has(pool)) {
                let comma = if list.len() > 1 { "," } else { "" };
                let account = &accounts[address];
                list.push_str(&format!(
                    r#"{comma}{{"pubkey":"{address}","account":{account}}}"#
                ));
            }
            list.push(']');
            list.into()
        };
        let (pools, accounts) = (&self.pools, &self.accounts);
        let listed = if part.prefix.is_empty() {
            let whole = self.lists.entry(part.exchange);
            Bytes::clone(whole.or_insert_with(|| list(pools, accounts)))
        } else {
            list(pools, accounts)
        };
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

/// Which pools a call lists. Nothing but pools is ever listed; a chain's node takes any filter at its word.
fn listed_part(request: &Request<'_>) -> Result<Part, String> {
    let call = wire::parse(&request.method, &request.params())?;
    let Call::ProgramAccounts {
        owner,
        conditions,
        reading,
    } = call
    else {
        return Err(format!("{} is not answered here", request.method));
    };
    let not_understood = || format!("a list of {owner} under {conditions:?}");
    if reading.slice.is_some() {
        return Err(not_understood());
    }
    let mut prefix = Vec::new();
    for condition in &conditions {
        match condition {
            Condition::Size(_) => {}
            Condition::Bytes(0, bytes) if *bytes == cpmm::POOL_STATE_DISCRIMINATOR => {}
            Condition::Bytes(VAULT_0_OFFSET, bytes) => prefix.clone_from(bytes),
            Condition::Bytes(..) => return Err(not_understood()),
        }
    }
    Ok(Part {
        exchange: owner,
        prefix,
    })
}

/// The address of a pool's first vault; `None` of any other account.
fn first_vault(data: &[u8]) -> Option<[u8; 32]> {
    let is_pool = data.starts_with(&cpmm::POOL_STATE_DISCRIMINATOR);
    let at = usize::try_from(VAULT_0_OFFSET).ok()?;
    is_pool.then(|| data.get(at..)?.first_chunk().copied())?
}
