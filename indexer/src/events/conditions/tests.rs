//! Conditions: each alone lets through what meets it, and nothing else.

use sluice_geyser::{InnerInstruction, Instruction};
use swap_guard_interface::{GUARDED_SWAP_DISCRIMINATOR, PROGRAM_ID};

use super::*;
use crate::{
    events::{idl::Idls, program_events::EventPath},
    slots::slot_events::fixtures,
};

fn key(number: u8) -> Pubkey {
    Pubkey::new_from_array([number; 32])
}

/// Mentions accounts 1 and 2 and program 3, which it calls with data 7 8 9, and which calls itself with 5 6.
fn sample() -> TransactionUpdate {
    TransactionUpdate {
        account_keys: vec![key(1), key(2), key(3)],
        instructions: vec![Instruction {
            program_index: 2,
            accounts: vec![0],
            data: vec![7, 8, 9],
        }],
        inner_instructions: vec![(
            0,
            vec![InnerInstruction {
                program_index: 2,
                accounts: Vec::new(),
                data: vec![5, 6],
                stack_height: Some(2),
            }],
        )],
        ..fixtures::transaction(7, 1)
    }
}

fn calls(program: u8, discriminator: &[u8]) -> Conditions {
    Conditions {
        instructions: vec![InstructionPrefix {
            program: key(program),
            discriminator: discriminator.to_vec(),
        }],
        ..Conditions::default()
    }
}

#[test]
fn transactions_are_told_apart_by_outcome_and_votes() {
    let succeeded = sample();
    let failed = TransactionUpdate {
        error: Some("failed".to_owned()),
        ..sample()
    };
    let vote = TransactionUpdate {
        is_vote: true,
        ..sample()
    };
    let of = |outcome| Conditions {
        outcome,
        ..Conditions::default()
    };
    for (outcome, met) in [
        (TransactionOutcome::Any, (true, true)),
        (TransactionOutcome::Succeeded, (true, false)),
        (TransactionOutcome::Failed, (false, true)),
    ] {
        let conditions = of(outcome);
        let found = (
            transaction(&conditions, &succeeded),
            transaction(&conditions, &failed),
        );
        assert_eq!(found, met, "{}", outcome.name());
    }
    let without_votes = Conditions {
        without_votes: true,
        ..Conditions::default()
    };
    assert!(transaction(&without_votes, &succeeded) && !transaction(&without_votes, &vote));
    assert!(transaction(&Conditions::default(), &vote));
}

#[test]
fn a_transaction_mentions_all_that_is_required_and_none_that_is_excluded() {
    let mentions = |required: &[u8], excluded: &[u8]| {
        let conditions = Conditions {
            accounts_required: required.iter().copied().map(key).collect(),
            accounts_excluded: excluded.iter().copied().map(key).collect(),
            ..Conditions::default()
        };
        transaction(&conditions, &sample())
    };
    assert!(mentions(&[1, 2], &[]) && mentions(&[3], &[4]));
    assert!(!mentions(&[1, 4], &[]), "all of them");
    assert!(!mentions(&[], &[4, 2]), "none of them");
}

#[test]
fn an_instruction_is_found_at_any_depth_by_its_program_and_first_bytes() {
    assert!(transaction(&calls(3, &[7, 8]), &sample()));
    assert!(transaction(&calls(3, &[5, 6]), &sample()), "a nested one");
    assert!(!transaction(&calls(3, &[8]), &sample()), "not the first");
    assert!(!transaction(&calls(3, &[5, 6, 0]), &sample()), "longer");
    assert!(!transaction(&calls(2, &[7]), &sample()), "another program");
    let mut either = calls(2, &[7]);
    either.instructions.extend(calls(3, &[7]).instructions);
    assert!(transaction(&either, &sample()), "one of them is enough");
}

#[test]
fn an_account_is_compared_as_it_is_after_the_change() {
    let data = fixtures::account(7, 50, 1);
    assert_eq!(data.data.as_ref(), [1, 2, 3]);
    let met = |memcmp: &[(u64, &[u8])], data_size| {
        let memcmp = memcmp.iter().map(|(offset, bytes)| Memcmp {
            offset: *offset,
            bytes: bytes.to_vec(),
        });
        let conditions = Conditions {
            memcmp: memcmp.collect(),
            data_size,
            ..Conditions::default()
        };
        account(&conditions, &data)
    };
    assert!(met(&[(1, &[2, 3])], None) && met(&[(0, &[1]), (2, &[3])], Some(3)));
    assert!(!met(&[(0, &[1]), (2, &[4])], None), "all of them");
    assert!(!met(&[(2, &[3, 0])], None), "beyond its end");
    assert!(!met(&[(4, &[1])], None) && !met(&[(u64::MAX, &[1])], None));
    assert!(!met(&[], Some(2)));
}

#[test]
fn an_event_is_wanted_by_the_name_that_its_idl_gives_it() {
    let mut data = GUARDED_SWAP_DISCRIMINATOR.to_vec();
    data.extend([0; 4 * 32 + 4 * 8]);
    let event = |program| ProgramEvent {
        program,
        path: EventPath::Log { ordinal: 0 },
        data: data.clone(),
        invocation: None,
    };
    let idls = Idls::built_in().expect("understood");
    let named = |names: &[&str]| Conditions {
        event_names: names.iter().map(ToString::to_string).collect(),
        ..Conditions::default()
    };
    let known = event(PROGRAM_ID);
    let name = EventName::new(&known, idls.shared());
    assert!(name.is_wanted(&named(&[])) && name.is_wanted(&named(&["Other", "GuardedSwap"])));
    assert!(!name.is_wanted(&named(&["guardedSwap"])));
    let unknown = event(key(9));
    let name = EventName::new(&unknown, idls.shared());
    assert!(name.is_wanted(&named(&[])) && !name.is_wanted(&named(&["GuardedSwap"])));
}
