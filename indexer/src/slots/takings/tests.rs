//! Takings: what transactions and writes of one block say of an account, in all orders in which they can be known.

use super::*;
use crate::slots::{SlotEvent, slot_events::fixtures};

const SYSTEM: Pubkey = Pubkey::new_from_array([0; 32]);

fn key(byte: u8) -> Pubkey {
    Pubkey::new_from_array([byte; 32])
}

/// The transaction at this place, which may write account 1 and mentions these programs.
fn transaction(index: u8, programs: &[Pubkey]) -> TransactionUpdate {
    TransactionUpdate {
        account_keys: [&[key(40), key(1)], programs].concat(),
        writable: vec![0, 1],
        instructions: Vec::new(),
        post_balances: vec![7, 8],
        ..fixtures::transaction(9, index)
    }
}

/// A write of account 1 by the transaction at this place, which leaves it with this owner.
fn write(version: u64, owner: Pubkey, by: Option<u8>) -> AccountUpdate {
    AccountUpdate {
        owner,
        lamports: u64::from(owner != SYSTEM),
        txn_signature: by.map(|index| Signature::from([index; 64])),
        ..fixtures::account(9, 1, version)
    }
}

fn events(transactions: &[TransactionUpdate], writes: &[AccountUpdate]) -> SlotEvents {
    let mut events = SlotEvents::default();
    for each in transactions {
        events.add(SlotEvent::Transaction(Box::new(each.clone())));
    }
    for each in writes {
        events.add(SlotEvent::Account(each.clone()));
    }
    events
}

/// Of account 1, which was the program's before the block: by which transaction it may have been taken.
fn taken(events: &SlotEvents) -> Option<u8> {
    let program = fixtures::program();
    let owner_before = |account: &Pubkey| (*account == key(1)).then_some(program);
    let found = find(events, owner_before, |each| *each == program);
    let taking = found.first()?;
    assert_eq!(found.len(), 1);
    assert_eq!((taking.account, taking.last_owner), (key(1), program));
    Some(taking.by.as_ref()[0])
}

#[test]
fn an_account_that_a_transaction_of_its_program_may_write_and_that_no_write_shows_was_taken() {
    let program = fixtures::program();
    let of_program = transaction(3, &[program]);
    assert_eq!(
        taken(&events(std::slice::from_ref(&of_program), &[])),
        Some(3)
    );
    // What is shown explains it: it stays, is closed, or is another's.
    for owner in [program, SYSTEM, key(50)] {
        let shown = write(1, owner, Some(3));
        assert_eq!(
            taken(&events(std::slice::from_ref(&of_program), &[shown])),
            None
        );
    }
    // Neither one that failed, nor one that cannot write it, nor one that does not mention the program.
    let failed = TransactionUpdate {
        error: Some("failed".to_owned()),
        ..of_program.clone()
    };
    let reads = TransactionUpdate {
        writable: vec![0],
        ..of_program
    };
    let of_others = transaction(3, &[key(50)]);
    for other in [failed, reads, of_others] {
        assert_eq!(taken(&events(&[other], &[])), None);
    }
}

#[test]
fn of_several_transactions_the_last_one_that_mentions_the_program_decides() {
    let program = fixtures::program();
    let (first, second) = (transaction(3, &[program]), transaction(5, &[program]));
    let both = [first, second, transaction(6, &[key(50)])];
    assert_eq!(taken(&events(&both, &[])), Some(5));
    let by_first = write(1, program, Some(3));
    assert_eq!(taken(&events(&both, &[by_first])), Some(5));
    let by_second = write(2, program, Some(5));
    assert_eq!(taken(&events(&both, &[by_second])), None);
    // A write of a later transaction shows that it stays.
    let by_last = write(2, program, Some(6));
    assert_eq!(taken(&events(&both, &[by_last])), None);
    // One of which nobody knows when it was executed leaves it open.
    for unknown in [None, Some(9)] {
        let by_unknown = write(2, program, unknown);
        assert_eq!(taken(&events(&both, &[by_unknown])), Some(5));
    }
}

#[test]
fn an_account_that_the_program_gets_and_gives_away_in_one_block_was_taken() {
    let program = fixtures::program();
    let made = write(1, program, Some(3));
    let transactions = [transaction(3, &[program]), transaction(4, &[program])];
    let found = find(
        &events(&transactions, &[made]),
        |_| None,
        |each| *each == program,
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].by, Signature::from([4; 64]));
}

#[test]
fn an_account_that_is_invoked_is_not_written() {
    let program = fixtures::program();
    let invoked = TransactionUpdate {
        instructions: vec![sluice_geyser::Instruction {
            program_index: 1,
            accounts: Vec::new(),
            data: Vec::new(),
        }],
        ..transaction(3, &[program])
    };
    assert_eq!(taken(&events(&[invoked], &[])), None);
}

#[test]
fn what_a_node_says_decides() {
    let program = fixtures::program();
    let stands = |slot, owner| {
        let taking = Taking {
            account: key(1),
            last_owner: program,
            by: Signature::from([3; 64]),
        };
        let state = AccountUpdate {
            slot,
            ..write(0, owner, None)
        };
        taking.with_state(state).map(|taken| taken.state.owner)
    };
    for slot in [9, 12] {
        assert_eq!(stands(slot, key(50)), Some(key(50)), "another's");
        assert_eq!(stands(slot, SYSTEM), Some(SYSTEM), "gone");
        // A validator reports no write of an account that a transaction left as it was.
        assert_eq!(stands(slot, program), None, "it stayed");
    }
}
