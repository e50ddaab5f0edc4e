//! Ten thousand random lists of accounts: the guard's own entrypoint against the framework's dispatcher.

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use sluice_testkit::{names::address, pool::PoolSpec};
use solana_instruction::{AccountMeta, Instruction};

use super::forms::{Form, Twins};

const LISTS: usize = 10_000;

/// Changes the list, and now and then the data: swaps, repeats, cuts, appends, exchanges and unflags accounts.
fn damage(random: &mut StdRng, instruction: &mut Instruction, strange: &[AccountMeta]) {
    for _ in 0..random.random_range(0..4) {
        let accounts = &mut instruction.accounts;
        if accounts.is_empty() {
            return;
        }
        let (one, other) = (
            random.random_range(0..accounts.len()),
            random.random_range(0..accounts.len()),
        );
        match random.random_range(0..10) {
            0 => accounts.swap(one, other),
            1 | 2 => accounts[one].pubkey = accounts[other].pubkey,
            3 => accounts.truncate(accounts.len() - random.random_range(0..2)),
            4 => accounts.push(accounts[one].clone()),
            5 => accounts[one].is_writable = !accounts[one].is_writable,
            6 => accounts[one].is_signer = false,
            7 | 8 => accounts[one].pubkey = strange.choose(random).expect("some").pubkey,
            _ => {
                let length = instruction.data.len();
                match random.random_range(0..3) {
                    0 => instruction.data.truncate(random.random_range(0..=length)),
                    1 => instruction.data.push(0),
                    _ => instruction.data[random.random_range(0..length.min(32))] ^= 1,
                }
                return;
            }
        }
    }
}

#[test]
fn both_entrypoints_end_alike_for_every_list() {
    let mut random = StdRng::seed_from_u64(14);
    let plain = PoolSpec::plain();
    let mut twins = Twins::set();
    let output = twins.own()[2];
    // Accounts of other lengths, owners and kinds.
    let strange: Vec<AccountMeta> = [0_usize, 1, 7, 82, 165, 166, 170, 355, 4_075, 10_000]
        .into_iter()
        .map(|length| {
            let account = address(&format!("{length} strange bytes"));
            let owner = if length % 2 == 0 {
                cpmm::ids::TOKEN_2022
            } else {
                cpmm::ids::SPL_TOKEN
            };
            let mut data = twins.account(output).data;
            data.resize(length, 2);
            twins.place(account, owner, &data);
            AccountMeta::new(account, false)
        })
        .collect();
    let mut accepted = 0;
    for index in 0..LISTS {
        let form = *Form::ALL.choose(&mut random).expect("six");
        let mut instruction = twins.accepted(form);
        let signer = instruction.accounts[0].pubkey;
        damage(&mut random, &mut instruction, &strange);
        // No other key can sign: a list that asks for another signature reaches no program.
        for account in &mut instruction.accounts {
            account.is_signer &= account.pubkey == signer;
        }
        // `send` compares how both ended.
        if twins.send(&[instruction]).is_ok() {
            accepted += 1;
        }
        if index % 100 == 99 {
            twins.reset(&plain, &plain);
        }
    }
    assert!(accepted > LISTS / 10, "only {accepted} were accepted");
}
