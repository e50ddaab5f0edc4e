//! Accounts of a scripted chain, as its node answers calls for them.

use serde_json::{Value, json};
use solana_pubkey::Pubkey;

use super::{
    Asked, too_long,
    wire::{self, Call, Condition, Reading},
};
use crate::{
    accounts::{Account, Content},
    filters::has,
    scripted_chain::{ChainRecord, ScriptedChain, State},
};

impl Asked {
    pub(super) fn answer_of_chain(&self, chain: &ScriptedChain, id: &Value, call: &Call) -> Value {
        let record = chain.lock();
        let mut play = self.play();
        let reading = call.reading();
        let newest = record.node_slot(reading.processed);
        if newest < reading.min_slot {
            return wire::not_reached(id, newest);
        }
        let back = if play.drifts { play.calls.len() % 3 } else { 0 };
        play.calls.push(call.clone());
        drop(play);
        let slot = ancestor(&record, newest, back, reading.min_slot);
        let state = record.tree.state(slot);
        drop(record);
        match call {
            Call::Slot { .. } => json!({"jsonrpc": "2.0", "id": id, "result": slot}),
            Call::MultipleAccounts { keys, .. } => {
                let accounts = keys.iter().map(|key| one(&state, key, reading)).collect();
                wire::success(id, slot, accounts)
            }
            Call::ProgramAccounts {
                owner, conditions, ..
            } => {
                let list = owned(&state, owner, conditions, reading);
                if !self.sends(list.as_array().map_or(0, Vec::len)) {
                    return too_long(id);
                }
                wire::success(id, slot, list)
            }
        }
    }
}

/// The ancestor this many steps back, as far as it is young enough.
fn ancestor(record: &ChainRecord, slot: u64, steps: usize, min_slot: u64) -> u64 {
    let ancestry = std::iter::successors(Some(slot), |slot| record.tree.parent(*slot));
    ancestry
        .take(steps + 1)
        .take_while(|slot| *slot >= min_slot)
        .last()
        .unwrap_or(slot)
}

fn existing(content: &Content) -> Option<Account> {
    (*content != Content::Closed).then(|| content.account())
}

fn rendered(account: &Account, reading: Reading) -> Value {
    wire::account(&account.owner, account.lamports, &account.data, reading)
}

fn one(state: &State, key: &Pubkey, reading: Reading) -> Value {
    let account = state.get(key).and_then(existing);
    account.map_or(Value::Null, |account| rendered(&account, reading))
}

fn owned(state: &State, owner: &Pubkey, conditions: &[Condition], reading: Reading) -> Value {
    let holds = |account: &Account, condition: &Condition| match condition {
        Condition::Size(size) => u64::try_from(account.data.len()) == Ok(*size),
        Condition::Bytes(offset, bytes) => has(account, *offset, bytes),
    };
    let accounts = state
        .iter()
        .filter_map(|(key, content)| Some((key, existing(content)?)));
    accounts
        .filter(|(_, account)| account.owner == *owner)
        .filter(|(_, account)| conditions.iter().all(|c| holds(account, c)))
        .map(|(key, account)| {
            json!({"pubkey": key.to_string(), "account": rendered(&account, reading)})
        })
        .collect()
}
