//! Refusals of each form, with their codes, on the guard and on its reference alike.

use cpmm::{PoolState, fixtures::blank_pool, ids};
use sluice_testkit::{
    names::{address, keypair},
    pool::{PoolSpec, TokenSpec, constant_fee},
};
use solana_instruction::error::InstructionError;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::{GuardError, PROGRAM_ID};

use super::forms::{ASKED, Form, NOW, OFFERED, START, Twins, readonly, with};

/// The framework's codes for a writable account that occurs twice, and for one that is not writable.
const DUPLICATE_WRITABLE: u32 = 2040;
const NOT_WRITABLE: u32 = 2000;

/// Where the middle account and the second pool stand in the list of two hops.
const MIDDLE: usize = 6;
const SECOND_POOL: usize = 12;
/// Where configuration, pool, vaults and observations of the two hops stand in that list.
const HOPS: [(usize, usize); 5] = [(3, 11), (4, 12), (8, 13), (9, 14), (10, 15)];
/// The exchange's code for an account that is not the one that another account names.
const WRONG_ADDRESS: u32 = 2012;
/// Where the input account stands in both lists.
const INPUT: usize = 5;

fn assert_guard_refuses(
    twins: &mut Twins,
    instruction: solana_instruction::Instruction,
    error: GuardError,
) {
    twins.assert_refused(instruction, PROGRAM_ID, error.code());
}

#[test]
fn arguments_that_guard_nothing() {
    for form in Form::ALL {
        let mut twins = Twins::set();
        let me = twins.trader.keypair.pubkey();
        let build = |twins: &Twins, terms| form.build(&twins.trader.accounts, terms, &me);
        let instruction = build(&twins, [0, ASKED, 0]);
        assert_guard_refuses(&mut twins, instruction, GuardError::ZeroAmountIn);
        let instruction = build(&twins, [OFFERED, 0, 0]);
        assert_guard_refuses(&mut twins, instruction, GuardError::ZeroMinimumOut);
        let instruction = build(&twins, [OFFERED, ASKED, NOW - 1]);
        assert_guard_refuses(&mut twins, instruction, GuardError::Expired);
        for expiry in [NOW, NOW + 1, 0] {
            let instruction = build(&twins, [OFFERED, ASKED, expiry]);
            twins.send(&[instruction]).expect("not expired");
        }
    }
}

#[test]
fn data_of_another_length() {
    for form in Form::ALL {
        let mut twins = Twins::set();
        let own = twins.accepted(form).data.len();
        // 32 more hold an address, and 64 two: what another form, or a receiver behind a receiver, would look like.
        let lengths = [0, 7, 8, 24, 31, 32, 33, 40, 63, 64, 65, own + 32, own + 64];
        for length in lengths.into_iter().filter(|length| *length != own) {
            let mut instruction = twins.accepted(form);
            instruction.data.resize(length, 1);
            let refused = twins.refused(instruction);
            assert_eq!(
                refused.error,
                InstructionError::InvalidInstructionData,
                "{form:?}, {length} bytes"
            );
        }
    }
}

#[test]
fn a_plain_swap_with_a_receiver_behind_it() {
    for form in [Form::Swap, Form::ExactOut, Form::TwoHops] {
        let mut twins = Twins::set();
        let mut instruction = twins.accepted(form);
        // One receiver, then two.
        for receiver in ["receiver", "another receiver"] {
            instruction.data.extend(address(receiver).to_bytes());
            let refused = twins.refused(instruction.clone());
            assert_eq!(refused.error, InstructionError::InvalidInstructionData);
        }
    }
}

#[test]
fn another_exchange_and_a_user_who_did_not_sign() {
    for form in Form::ALL {
        let mut twins = Twins::set();
        let instruction = with(twins.accepted(form), 1, ids::SPL_TOKEN);
        assert_guard_refuses(&mut twins, instruction, GuardError::WrongExchange);
        let mut instruction = twins.accepted(form);
        instruction.accounts[0].is_signer = false;
        let refused = twins.refused(instruction);
        assert_eq!(refused.error, InstructionError::MissingRequiredSignature);
        assert_eq!(refused.raised_by(), PROGRAM_ID);
    }
}

/// What has the right mint and owner where a token account has them, passes the guard, and is no token account: name,
/// token program, contents.
fn almost_accounts(account: &[u8]) -> [(&'static str, Pubkey, Vec<u8>); 2] {
    /// Where a token account says whether it is initialised.
    const STATE: usize = 108;
    let mut uninitialised = account.to_vec();
    uninitialised[STATE] = 0;
    // The length that Token-2022 reserves for multisigs, with the byte by which it marks accounts with extensions.
    let mut multisig = account.to_vec();
    multisig.resize(355, 0);
    multisig[165] = 2;
    [
        ("not initialised", ids::SPL_TOKEN, uninitialised),
        ("a multisig", ids::TOKEN_2022, multisig),
    ]
}

fn assert_exchange_cannot_unpack(
    twins: &mut Twins,
    instruction: solana_instruction::Instruction,
    kind: &str,
) {
    let refused = twins.refused(instruction);
    assert_eq!(refused.raised_by(), ids::PROGRAM_ID, "{kind}");
}

#[test]
fn an_output_account_that_is_not_the_right_one() {
    for form in Form::ALL {
        let mut twins = Twins::set();
        let at = form.output();
        let output = twins.accepted(form).accounts[at].pubkey;
        let mint = ids::WRAPPED_SOL;
        let forged = twins.forged(output, None, |data| {
            data[..32].copy_from_slice(mint.as_ref())
        });
        let instruction = with(twins.accepted(form), at, forged);
        assert_guard_refuses(&mut twins, instruction, GuardError::OutputMintMismatch);

        let forged = twins.forged(output, None, |data| data[40] ^= 1);
        let instruction = with(twins.accepted(form), at, forged);
        assert_guard_refuses(&mut twins, instruction, GuardError::OutputOwnerMismatch);

        let forged = twins.forged(output, Some(address("fake token program")), |_| ());
        let instruction = with(twins.accepted(form), at, forged);
        assert_guard_refuses(&mut twins, instruction, GuardError::UnknownTokenProgram);

        // SPL Token knows no extensions.
        let forged = twins.forged(output, None, |data| {
            data.resize(178, 0);
            data[165] = 2;
        });
        let instruction = with(twins.accepted(form), at, forged);
        assert_guard_refuses(&mut twins, instruction, GuardError::UnknownTokenProgram);

        let mint = twins.accepted(form).accounts.last().map(|meta| meta.pubkey);
        let mint = if form.is_two_hops() {
            mint.expect("twenty-two accounts")
        } else {
            twins.accepted(form).accounts[12].pubkey
        };
        let instruction = with(twins.accepted(form), at, mint);
        assert_guard_refuses(&mut twins, instruction, GuardError::UnknownTokenProgram);

        let instruction = with(twins.accepted(form), at, twins.own()[0]);
        assert_guard_refuses(&mut twins, instruction, GuardError::SameTokenAccount);

        for (kind, owner, data) in almost_accounts(&twins.account(output).data) {
            let forged = twins.forged(output, Some(owner), |own| *own = data);
            let instruction = with(twins.accepted(form), at, forged);
            assert_exchange_cannot_unpack(&mut twins, instruction, kind);
        }

        /// The token programs' code for a frozen account.
        const ACCOUNT_FROZEN: u32 = 17;
        let forged = twins.forged(output, None, |data| data[108] = 2);
        let instruction = with(twins.accepted(form), at, forged);
        twins.assert_refused(instruction, ids::SPL_TOKEN, ACCOUNT_FROZEN);
    }
}

#[test]
fn an_account_of_somebody_else_than_the_receiver() {
    for form in Form::ALL {
        let mut twins = Twins::set();
        let receiver = keypair("receiver").pubkey();
        let terms = [OFFERED, ASKED, 0];
        let at = form.output();
        let own = twins.accepted(form).accounts[at].pubkey;
        let theirs = twins.forged(own, None, |data| {
            data[32..64].copy_from_slice(receiver.as_ref());
        });
        let instruction = form.build(&twins.trader.accounts, terms, &receiver);
        if form.has_receiver() {
            // The user's own account, where the receiver's is stated.
            assert_guard_refuses(
                &mut twins,
                instruction.clone(),
                GuardError::OutputOwnerMismatch,
            );
            twins
                .send(&[with(instruction, at, theirs)])
                .expect("the receiver's account");
            assert!(twins.balance(theirs) > START);
            assert_eq!(twins.balance(own), START);
        } else {
            // The receiver's account in a form that states none.
            let instruction = with(instruction, at, theirs);
            assert_guard_refuses(&mut twins, instruction, GuardError::OutputOwnerMismatch);
        }
    }
}

#[test]
fn accounts_that_are_read_only_or_stand_in_two_places() {
    for form in Form::ALL {
        let accepted = Twins::set().accepted(form);
        let written: Vec<usize> = (0..accepted.accounts.len())
            .filter(|at| accepted.accounts[*at].is_writable)
            .collect();
        let mut twins = Twins::set();
        for at in &written {
            let instruction = readonly(accepted.clone(), *at);
            twins.assert_refused(instruction, PROGRAM_ID, NOT_WRITABLE);
        }
        // Between accounts that are exempt from the framework's check, the guard or the exchange refuses.
        let exempt: &[usize] = if form.is_two_hops() {
            &[4, INPUT, MIDDLE, 7, SECOND_POOL]
        } else {
            &[INPUT, 6]
        };
        for (index, second) in written.iter().enumerate() {
            for first in &written[..index] {
                let account = accepted.accounts[*first].pubkey;
                let refused = twins.refused(with(accepted.clone(), *second, account));
                if !(exempt.contains(first) && exempt.contains(second)) {
                    assert_eq!(
                        (refused.raised_by(), refused.code()),
                        (PROGRAM_ID, DUPLICATE_WRITABLE),
                        "{form:?}: {first} as {second}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_exact_output_that_cannot_be_had() {
    /// The exchange's codes for a bound that is not met and for a pool that is not open.
    const EXCEEDED_SLIPPAGE: u32 = 6005;
    const NOT_APPROVED: u32 = 6000;
    /// The token programs' code for insufficient funds.
    const INSUFFICIENT_FUNDS: u32 = 1;
    for form in [Form::ExactOut, Form::ExactOutTo] {
        let mut twins = Twins::set();
        let me = twins.trader.keypair.pubkey();
        let executed = twins.send(&[twins.accepted(form)]).expect("accepted");
        let spent = u64::from_le_bytes(executed.return_data.1.try_into().expect("eight bytes"));
        let build = |twins: &Twins, spent, received| {
            form.build(&twins.trader.accounts, [spent, received, 0], &me)
        };
        twins.reset(&PoolSpec::plain(), &PoolSpec::plain());
        let instruction = build(&twins, spent - 1, ASKED);
        twins.assert_refused(instruction, ids::PROGRAM_ID, EXCEEDED_SLIPPAGE);
        twins
            .send(&[build(&twins, spent, ASKED)])
            .expect("the maximum is met to the unit");

        twins.reset(&PoolSpec::plain(), &PoolSpec::plain());
        let instruction = build(&twins, u64::MAX, 2_000_000_000_000);
        let refused = twins.refused(instruction);
        assert_eq!(
            refused.raised_by(),
            ids::PROGRAM_ID,
            "more than the pool holds"
        );
        // Without a code: the exchange panics, and the stand-in says that a sum overflowed.
        assert!(!matches!(refused.error, InstructionError::Custom(_)));
        let instruction = build(&twins, u64::MAX, 500_000_000_000);
        twins.assert_refused(instruction, ids::SPL_TOKEN, INSUFFICIENT_FUNDS);

        for pool in [closed(), opens_later()] {
            let mut twins = Twins::of(&pool, &PoolSpec::plain());
            let instruction = twins.accepted(form);
            twins.assert_refused(instruction, ids::PROGRAM_ID, NOT_APPROVED);
        }
    }
}

/// A mint that withholds everything, without a cap, can neither be paid in nor be had: the sums of the exchange overflow.
#[test]
fn an_exact_output_between_mints_that_withhold_everything() {
    let everything = || TokenSpec::with_fee(1_000_000_000_000, constant_fee(10_000));
    let plain = || TokenSpec::spl(1_000_000_000_000);
    for pool in [
        PoolSpec::of(everything(), plain()),
        PoolSpec::of(plain(), everything()),
    ] {
        for form in [Form::ExactOut, Form::ExactOutTo] {
            let mut twins = Twins::of(&pool, &PoolSpec::plain());
            let me = twins.trader.keypair.pubkey();
            let terms = [u64::MAX, ASKED, 0];
            let instruction = form.build(&twins.trader.accounts, terms, &me);
            let refused = twins.refused(instruction);
            assert_eq!(refused.raised_by(), ids::PROGRAM_ID);
            // Without a code: the exchange panics, and the stand-in says that a sum overflowed.
            assert!(!matches!(refused.error, InstructionError::Custom(_)));
        }
    }
}

/// A pool whose swaps are switched off.
fn closed() -> PoolSpec {
    PoolSpec {
        state: PoolState {
            status: 4,
            ..blank_pool()
        },
        ..PoolSpec::plain()
    }
}

/// A pool that is not open yet.
fn opens_later() -> PoolSpec {
    PoolSpec {
        state: PoolState {
            open_time: u64::MAX,
            ..blank_pool()
        },
        ..PoolSpec::plain()
    }
}

#[test]
fn a_middle_account_that_is_not_the_users() {
    for form in [Form::TwoHops, Form::TwoHopsTo] {
        let mut twins = Twins::set();
        let [input, middle, output] = twins.own();
        let mint = ids::WRAPPED_SOL;
        let forged = twins.forged(middle, None, |data| {
            data[..32].copy_from_slice(mint.as_ref())
        });
        let instruction = with(twins.accepted(form), MIDDLE, forged);
        assert_guard_refuses(&mut twins, instruction, GuardError::MiddleMintMismatch);

        let forged = twins.forged(middle, None, |data| data[40] ^= 1);
        let instruction = with(twins.accepted(form), MIDDLE, forged);
        assert_guard_refuses(&mut twins, instruction, GuardError::MiddleOwnerMismatch);

        let forged = twins.forged(middle, Some(address("fake token program")), |_| ());
        let instruction = with(twins.accepted(form), MIDDLE, forged);
        assert_guard_refuses(
            &mut twins,
            instruction,
            GuardError::MiddleUnknownTokenProgram,
        );

        let mint = twins.accepted(form).accounts[20].pubkey;
        let instruction = with(twins.accepted(form), MIDDLE, mint);
        assert_guard_refuses(
            &mut twins,
            instruction,
            GuardError::MiddleUnknownTokenProgram,
        );

        for (kind, owner, data) in almost_accounts(&twins.account(middle).data) {
            let forged = twins.forged(middle, Some(owner), |own| *own = data);
            let instruction = with(twins.accepted(form), MIDDLE, forged);
            assert_exchange_cannot_unpack(&mut twins, instruction, kind);
        }

        for other in [input, output] {
            let instruction = with(twins.accepted(form), MIDDLE, other);
            assert_guard_refuses(&mut twins, instruction, GuardError::SameTokenAccount);
        }
    }
}

#[test]
fn hops_that_do_not_fit() {
    for form in [Form::TwoHops, Form::TwoHopsTo] {
        let mut twins = Twins::set();
        let first_pool = twins.accepted(form).accounts[4].pubkey;
        let instruction = with(twins.accepted(form), SECOND_POOL, first_pool);
        assert_guard_refuses(&mut twins, instruction, GuardError::SamePool);

        // The pool's vaults are its own, whatever the user's accounts are.
        let foreign = twins.route.first.state.vaults.token_0;
        let mut instruction = twins.accepted(form);
        instruction.accounts.swap(4, SECOND_POOL);
        twins.assert_refused(instruction, ids::PROGRAM_ID, WRONG_ADDRESS);
        // Two whole pools in each other's place: the first one's vault is not of the input mint.
        let mut instruction = twins.accepted(form);
        for (of_first, of_second) in HOPS {
            instruction.accounts.swap(of_first, of_second);
        }
        let refused = twins.refused(instruction);
        assert_eq!(
            (refused.raised_by(), refused.code()),
            (ids::PROGRAM_ID, WRONG_ADDRESS)
        );
        let entered = |line: &&String| line.contains(&format!("{} invoke", ids::PROGRAM_ID));
        assert_eq!(
            refused.logs.iter().filter(entered).count(),
            1,
            "the first hop"
        );
        let instruction = with(twins.accepted(form), 13, foreign);
        twins.assert_refused(instruction, PROGRAM_ID, DUPLICATE_WRITABLE);
        // One of no pool: the exchange knows its own.
        let second_vault = twins.route.second.state.vaults.token_0;
        let foreign = twins.forged(second_vault, None, |_| ());
        let instruction = with(twins.accepted(form), 13, foreign);
        twins.assert_refused(instruction, ids::PROGRAM_ID, 2003);

        for (first, second) in [
            (closed(), PoolSpec::plain()),
            (PoolSpec::plain(), closed()),
            (opens_later(), PoolSpec::plain()),
            (PoolSpec::plain(), opens_later()),
        ] {
            let mut twins = Twins::of(&first, &second);
            let instruction = twins.accepted(form);
            twins.assert_refused(instruction, ids::PROGRAM_ID, 6000);
        }

        let mut twins = Twins::set();
        let me = twins.trader.keypair.pubkey();
        let executed = twins.send(&[twins.accepted(form)]).expect("accepted");
        let received = u64::from_le_bytes(executed.return_data.1.try_into().expect("eight bytes"));
        twins.reset(&PoolSpec::plain(), &PoolSpec::plain());
        let build = |twins: &Twins, received| {
            form.build(&twins.trader.accounts, [OFFERED, received, 0], &me)
        };
        let instruction = build(&twins, received + 1);
        assert_guard_refuses(&mut twins, instruction, GuardError::SlippageExceeded);
        let instruction = build(&twins, received);
        twins.send(&[instruction]).expect("met to the unit");
    }
}

#[test]
fn the_way_back_to_the_same_token_is_open() {
    // Out of one account of the token and, through two pools, into another one of the same.
    let mut twins = Twins::set();
    let accepted = twins.accepted(Form::TwoHops);
    let input_mint = accepted.accounts[19].pubkey;
    let me = twins.trader.keypair.pubkey();
    let route = twins.route.clone();
    let mut back = route.second.state.clone();
    back.mints.token_1 = input_mint;
    twins.place(route.second.address, ids::PROGRAM_ID, &back.encode());
    let token = sluice_testkit::pool::TokenSpec::spl(0);
    let vault = token.account(input_mint, ids::AUTHORITY, 1_000_000_000_000);
    twins.place(back.vaults.token_1, ids::SPL_TOKEN, &vault);
    let own = address("another account of the same token");
    twins.place(own, ids::SPL_TOKEN, &token.account(input_mint, me, START));
    let instruction = with(with(accepted, 7, own), 21, input_mint);
    twins.send(&[instruction]).expect("accepted");
    assert!(twins.balance(own) > START);
    assert_eq!(twins.account(own).owner, ids::SPL_TOKEN);
    let _: Pubkey = own;
}
