//! Tests of explanations: instructions of any transaction, what is unknown, what is to be looked at twice.

use solana_instruction::{AccountMeta, Instruction};
use solana_message::{Message, v0};
use solana_system_interface::instruction as system_instruction;
use spl_token_interface::instruction as token_instruction;

use super::*;

fn key(n: u8) -> Pubkey {
    Pubkey::from([n; 32])
}

fn explained(instructions: &[Instruction]) -> Explanation {
    let message = v0::Message::try_compile(&key(1), instructions, &[], Hash::default());
    let message = VersionedMessage::V0(message.expect("it is small"));
    let signatures = usize::from(message.header().num_required_signatures);
    let transaction = VersionedTransaction {
        signatures: vec![Signature::default(); signatures],
        message,
    };
    let bytes = wincode::serialize(&transaction).expect("it has bytes");
    Explanation::read(&bytes, LookedUp::In(None), &cpmm::ids::PROGRAM_ID).expect("a transaction")
}

fn only(instruction: Instruction) -> Step {
    explained(&[instruction]).steps.remove(0)
}

#[test]
fn a_transfer_says_from_whom_to_whom_and_how_much() {
    let step = only(system_instruction::transfer(&key(1), &key(2), 7));
    assert_eq!(
        (step.program_name, step.name),
        (Some("system"), Some("transfer"))
    );
    assert_eq!(
        step.says,
        format!("moves 7 lamports from {} to {}", key(1), key(2))
    );
    assert_eq!(
        step.spend,
        Some(Spend {
            from: Some(key(1)),
            what: Spent::Lamports,
            amount: 7,
        })
    );
    let roles: Vec<_> = step.accounts.iter().map(|account| account.role).collect();
    assert_eq!(roles, [Some("from"), Some("to")]);
    assert!(step.accounts[0].is_signer && !step.accounts[1].is_signer);
    assert!(step.accounts[1].is_writable);
}

#[test]
fn what_lets_others_spend_or_gives_away_is_to_be_looked_at_twice() {
    let token = |instruction: Result<Instruction, _>| instruction.expect("a token program");
    let program = &cpmm::ids::TOKEN_2022;
    let owner = token_instruction::AuthorityType::AccountOwner;
    for instruction in [
        token(token_instruction::approve(
            &cpmm::ids::SPL_TOKEN,
            &key(3),
            &key(4),
            &key(1),
            &[],
            9,
        )),
        Instruction {
            program_id: *program,
            ..token(token_instruction::set_authority(
                &cpmm::ids::SPL_TOKEN,
                &key(3),
                Some(&key(4)),
                owner,
                &key(1),
                &[],
            ))
        },
        system_instruction::assign(&key(1), &key(5)),
        Instruction::new_with_bytes(key(9), &[1, 2], vec![AccountMeta::new(key(1), true)]),
    ] {
        let step = only(instruction);
        assert!(step.caution.is_some(), "{}", step.says);
    }
}

#[test]
fn what_is_not_known_is_neither_named_nor_guessed() {
    for (program, data) in [
        (key(9), &[0; 32][..]),
        (swap_guard_interface::PROGRAM_ID, &[0; 32]),
        (cpmm::ids::PROGRAM_ID, &[1; 24]),
        (cpmm::ids::SPL_TOKEN, &[]),
        (cpmm::ids::TOKEN_2022, &[200, 1]),
        (solana_system_interface::program::ID, &[255; 4]),
        (solana_compute_budget_interface::ID, &[9]),
    ] {
        let instruction = Instruction::new_with_bytes(program, data, Vec::new());
        let read = explained(&[instruction]);
        assert!(!read.is_known());
        let step = &read.steps[0];
        assert_eq!((step.name, step.spend), (None, None));
        assert!(step.says.contains("not known"), "{}", step.says);
        assert_eq!(step.data, data);
    }
}

#[test]
fn a_seed_that_claims_to_be_endless_is_unknown() {
    // createAccountWithSeed, whose seed says to have 2^64 - 1 bytes.
    let mut data = vec![3, 0, 0, 0];
    data.extend_from_slice(&[7; 32]);
    data.extend_from_slice(&[255; 8]);
    let program = solana_system_interface::program::ID;
    let step = only(Instruction::new_with_bytes(program, &data, Vec::new()));
    assert_eq!(step.name, None);
}

#[test]
fn costs_are_the_most_that_the_chain_charges() {
    let budget = |kind: u8, value: u64, length: usize| {
        let data = [&[kind], &value.to_le_bytes()[..length]].concat();
        Instruction::new_with_bytes(solana_compute_budget_interface::ID, &data, Vec::new())
    };
    let transfer = system_instruction::transfer(&key(1), &key(2), 7);
    let free = explained(std::slice::from_ref(&transfer)).costs;
    assert_eq!(
        (free.base_fee, free.priority_fee, free.unit_limit),
        (5_000, 0, None)
    );
    let stated = explained(&[
        budget(3, 2_000_000, 8),
        budget(2, 1_000, 4),
        transfer.clone(),
    ]);
    assert_eq!(stated.costs.priority_fee, 2_000);
    assert_eq!(stated.costs.unit_limit, Some(1_000));
    // Without a limit each instruction but those of the budget is granted 200,000 units.
    let granted = explained(&[budget(3, 1_000_000, 8), transfer.clone(), transfer]);
    assert_eq!(granted.costs.priority_fee, 400_000);
    // Signatures that a program of the chain verifies cost as much as the transaction's own.
    let verified = Instruction::new_with_bytes(
        solana_pubkey::pubkey!("Ed25519SigVerify111111111111111111111111111"),
        &[2, 0],
        Vec::new(),
    );
    assert_eq!(explained(&[verified]).costs.base_fee, 15_000);
}

#[test]
fn only_whole_transactions_are_read() {
    let message = Message::new(
        &[system_instruction::transfer(&key(1), &key(2), 7)],
        Some(&key(1)),
    );
    let transaction = VersionedTransaction {
        signatures: vec![Signature::default()],
        message: VersionedMessage::Legacy(message),
    };
    let mut bytes = wincode::serialize(&transaction).expect("it has bytes");
    let read = Explanation::read(&bytes, LookedUp::In(None), &cpmm::ids::PROGRAM_ID)
        .expect("a transaction");
    assert_eq!(read.version, TransactionVersion::Legacy);
    assert_eq!(read.signers, [(key(1), false)]);
    assert_eq!(read.signature, None);
    bytes.push(0);
    assert_eq!(
        Explanation::read(&bytes, LookedUp::In(None), &cpmm::ids::PROGRAM_ID),
        Err(NoTransaction)
    );
    bytes.truncate(10);
    assert_eq!(
        Explanation::read(&bytes, LookedUp::In(None), &cpmm::ids::PROGRAM_ID),
        Err(NoTransaction)
    );
    assert_eq!(
        Explanation::read(&[], LookedUp::In(None), &cpmm::ids::PROGRAM_ID),
        Err(NoTransaction)
    );
}
