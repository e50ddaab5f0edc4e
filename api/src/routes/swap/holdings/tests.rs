//! Holdings: each fault of a token account is refused, and the rent of a receiver of SOL.

use cpmm::{TokenAccountKind, ids};

use super::*;

fn key(n: u8) -> Pubkey {
    Pubkey::from([n; 32])
}

fn fault(change: impl FnOnce(&mut TokenAccount), program: Pubkey) -> Option<String> {
    let mut account = TokenAccount {
        mint: key(1),
        owner: key(2),
        amount: 3,
        frozen: false,
    };
    change(&mut account);
    let found = HeldAccount {
        program,
        lamports: 1,
        data: account.encode(TokenAccountKind::Plain),
    };
    let required = RequiredAccount {
        field: "destinationTokenAccount",
        owner: (key(2), "userPublicKey"),
        address: key(9),
        mint: key(1),
        program: ids::SPL_TOKEN,
        moves: Moves::In,
    };
    let checked = required.check(Some(&found));
    checked.err().map(|error| error.to_string())
}

#[test]
fn only_a_usable_account_of_the_user_and_the_mint_passes() {
    assert_eq!(fault(|_| {}, ids::SPL_TOKEN), None);
    let says = |change: fn(&mut TokenAccount), program, part: &str| {
        let fault = fault(change, program).expect("refused");
        assert!(fault.contains(part), "{fault}");
    };
    says(|account| account.mint = key(7), ids::SPL_TOKEN, "of mint");
    says(
        |account| account.owner = key(7),
        ids::SPL_TOKEN,
        "another wallet",
    );
    says(|account| account.frozen = true, ids::SPL_TOKEN, "frozen");
    says(|_| {}, ids::TOKEN_2022, "other token program");
    says(|_| {}, key(8), "no token account");
}

#[test]
fn an_account_whose_extensions_stop_the_transfer_is_refused() {
    let account = TokenAccount {
        mint: key(1),
        owner: key(2),
        amount: 3,
        frozen: false,
    };
    let fault = |extension: u16, value: &[u8], moves| {
        let mut data = account.encode(TokenAccountKind::WithTransferFee);
        data.extend(extension.to_le_bytes());
        data.extend(u16::try_from(value.len()).expect("short").to_le_bytes());
        data.extend(value);
        let found = HeldAccount {
            program: ids::TOKEN_2022,
            lamports: 1,
            data,
        };
        let required = RequiredAccount {
            field: "sourceTokenAccount",
            owner: (key(2), "userPublicKey"),
            address: key(9),
            mint: key(1),
            program: ids::TOKEN_2022,
            moves,
        };
        let checked = required.check(Some(&found));
        checked.err().map(|error| error.to_string())
    };
    let says = |extension, moves, part: &str| {
        let value: &[u8] = if extension == 13 { &[] } else { &[1] };
        let fault = fault(extension, value, moves).expect("refused");
        assert!(fault.contains(part), "{fault}");
    };
    for moves in [Moves::In, Moves::InAndOut] {
        says(8, moves, "requires a memo");
        assert_eq!(fault(8, &[0], moves), None, "switched off");
    }
    for moves in [Moves::Out, Moves::InAndOut] {
        says(11, moves, "CPI guard");
        assert_eq!(fault(11, &[0], moves), None, "switched off");
    }
    assert_eq!(fault(8, &[1], Moves::Out), None);
    assert_eq!(fault(11, &[1], Moves::In), None);
    for moves in [Moves::In, Moves::Out, Moves::InAndOut] {
        says(13, moves, "cannot be transferred");
        assert_eq!(fault(7, &[], moves), None, "immutable owner");
    }
}

#[test]
fn a_receiver_of_sol_must_be_a_wallet_that_the_chain_lets_be() {
    let rent = Rent {
        lamports_per_byte: 6_960,
    };
    let exempt = rent.exempt(0);
    let held = |program, lamports| HeldAccount {
        program,
        lamports,
        data: Vec::new(),
    };
    let fault = |found: Option<HeldAccount>, arrives| wallet_fault(found.as_ref(), arrives, rent);
    assert_eq!(fault(None, None), None, "tokens arrive");
    assert_eq!(fault(None, Some(exempt)), None);
    assert!(fault(None, Some(exempt - 1)).is_some());
    let system = Pubkey::default();
    assert_eq!(fault(Some(held(system, exempt)), Some(1)), None);
    assert_eq!(fault(Some(held(system, 1)), Some(exempt - 1)), None);
    assert!(fault(Some(held(system, 1)), Some(exempt - 2)).is_some());
    for program in [ids::SPL_TOKEN, ids::TOKEN_2022] {
        assert!(fault(Some(held(program, exempt)), None).is_some());
    }
    assert_eq!(fault(Some(held(key(7), 1)), Some(1)), None, "a program's");
}
