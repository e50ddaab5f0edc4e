//! Recorded swaps: what each form's instruction must be, and which event the guard logged when it was executed.

use std::str::FromStr;

use anchor_lang::{prelude::Pubkey, solana_program::instruction::AccountMeta};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

/// Written by `tests/programs`, by a test that says how.
const FILE: &str = include_str!("swaps.json");

/// All of them, and what they have in common.
pub struct Recorded {
    /// What goes in, or the most of it.
    pub offered: u64,
    /// What comes out, or the least of it.
    pub asked: u64,
    pub expiry_slot: u64,
    pub receiver: Pubkey,
    pub swaps: Vec<Swap>,
}

/// One swap.
pub struct Swap(Value);

pub fn all() -> Recorded {
    let file: Value = serde_json::from_str(FILE).expect("the file is JSON");
    let swaps = file["swaps"].as_array().expect("a list").iter();
    let swaps = swaps.cloned().map(Swap).collect();
    let head = Swap(file);
    Recorded {
        offered: head.amount("offered"),
        asked: head.amount("asked"),
        expiry_slot: head.amount("expirySlot"),
        receiver: head.address("receiver"),
        swaps,
    }
}

impl Swap {
    pub fn name(&self) -> &str {
        text(&self.0, "name")
    }

    pub fn address(&self, field: &str) -> Pubkey {
        address(&self.0, field)
    }

    pub fn amount(&self, field: &str) -> u64 {
        self.0[field].as_u64().expect("an amount")
    }

    pub fn bytes(&self, field: &str) -> Vec<u8> {
        STANDARD.decode(text(&self.0, field)).expect("base64")
    }

    fn accounts(&self) -> &[Value] {
        self.0["accounts"].as_array().expect("a list")
    }

    /// The account of this name.
    pub fn account(&self, name: &str) -> Pubkey {
        let mut accounts = self.accounts().iter();
        let found = accounts.find(|account| text(account, "name") == name);
        address(found.expect("an account of this name"), "pubkey")
    }

    pub fn metas(&self) -> Vec<AccountMeta> {
        let accounts = self.accounts().iter();
        let metas = accounts.map(|account| AccountMeta {
            pubkey: address(account, "pubkey"),
            is_signer: account["isSigner"].as_bool().expect("a flag"),
            is_writable: account["isWritable"].as_bool().expect("a flag"),
        });
        metas.collect()
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().expect("a text")
}

fn address(value: &Value, field: &str) -> Pubkey {
    Pubkey::from_str(text(value, field)).expect("an address")
}
