//! Tests of transaction plans: instructions, costs, sizes and limits of every combination.

use std::collections::{BTreeMap, BTreeSet};

use cpmm::ExchangeIds;
use solana_message::VersionedMessage;
use solana_transaction::versioned::VersionedTransaction;

use super::*;
use crate::version::PACKET_LIMIT;

mod explained;
mod forms;
mod nonce;
mod sizes;

fn key(n: u8) -> Pubkey {
    Pubkey::from([n; 32])
}

fn side(kind: TokenKind) -> TokenSide {
    TokenSide {
        token: TokenShape::plain(kind),
        bump: 254,
        account: None,
    }
}

fn hop(input_mint: Pubkey, output_mint: Pubkey) -> SwapAccounts {
    SwapAccounts {
        exchange: ExchangeIds::MAINNET,
        payer: key(1),
        amm_config: key(2),
        pool_state: key(3),
        input_token_account: key(4),
        output_token_account: key(5),
        input_vault: key(6),
        output_vault: key(7),
        input_token_program: ids::SPL_TOKEN,
        output_token_program: ids::SPL_TOKEN,
        input_mint,
        output_mint,
        observation_state: key(10),
    }
}

fn plan(input_mint: Pubkey, output_mint: Pubkey) -> TransactionPlan {
    TransactionPlan {
        route: Route::ExactIn(hop(input_mint, output_mint)),
        terms: SwapTerms {
            amount_in: 1_000,
            minimum_out: 1,
            expiry_slot: None,
        },
        input: side(TokenKind::Spl),
        middle: None,
        output: side(TokenKind::Spl),
        fee_payer: key(1),
        receiver: None,
        platform_fee: None,
        nonce: None,
        apart: false,
        named_source: false,
        named_destination: false,
        wrap_and_unwrap_sol: true,
        wraps_all: false,
        priority_fee: 5_000,
        unit_headroom: 6_000,
        size_headroom: 0,
        version: TransactionVersion::V0,
        lookup_table: None,
        rent: Rent {
            lamports_per_byte: 6_960,
        },
        exchange_units: ExchangeUnits {
            modelled: 28_000,
            learned: 30_000,
            samples: 7,
        },
        unwraps_lamports: true,
    }
}

fn held(mint: Pubkey, amount: u64) -> Option<TokenAccount> {
    Some(TokenAccount {
        mint,
        owner: key(1),
        amount,
        frozen: false,
    })
}

fn unsigned_of(plan: &TransactionPlan) -> UnsignedTransaction {
    plan.transaction(Hash::new_from_array([7; 32]))
        .expect("it fits")
}

/// Names of the instructions after those of the compute budget, and how each token account is created.
fn outline(plan: &TransactionPlan) -> Vec<&'static str> {
    let instructions = unsigned_of(plan).instructions;
    let names: Vec<_> = instructions.iter().map(|planned| planned.name).collect();
    let budget = [
        "setComputeUnitPrice",
        "setComputeUnitLimit",
        "setLoadedAccountsDataSizeLimit",
    ];
    assert_eq!(names[..3], budget);
    instructions[3..]
        .iter()
        .map(
            |planned| match (planned.name, planned.instruction.data.as_slice()) {
                ("createTokenAccount", [0]) => "create",
                ("createTokenAccount", [1]) => "create if absent",
                (name, _) => name,
            },
        )
        .collect()
}

#[test]
fn sol_in_is_wrapped_in_an_account_that_the_transaction_makes_and_closes() {
    assert_eq!(
        outline(&plan(ids::WRAPPED_SOL, key(9))),
        [
            "create",
            "create if absent",
            "wrapSol",
            "syncWrappedSol",
            "guardedSwap",
            "unwrapSol"
        ]
    );
}

#[test]
fn sol_in_uses_what_is_wrapped_already_and_never_closes_it() {
    let mut plan = plan(ids::WRAPPED_SOL, key(9));
    plan.output.account = held(key(9), 0);
    plan.input.account = held(ids::WRAPPED_SOL, 400);
    assert_eq!(outline(&plan), ["wrapSol", "syncWrappedSol", "guardedSwap"]);
    let built = unsigned_of(&plan);
    let wrap = &built.instructions[3].instruction;
    assert_eq!(wrap.data[4..12], 600u64.to_le_bytes());
    assert_eq!(built.costs.wrapped, 600);
    plan.input.account = held(ids::WRAPPED_SOL, 1_000);
    assert_eq!(outline(&plan), ["guardedSwap"]);
    plan.wraps_all = true;
    assert_eq!(outline(&plan), ["wrapSol", "syncWrappedSol", "guardedSwap"]);
    assert_eq!(unsigned_of(&plan).costs.wrapped, 1_000);
    plan.named_source = true;
    assert_eq!(outline(&plan), ["guardedSwap"]);
}

#[test]
fn sol_out_arrives_native_and_leaves_an_account_that_was_there_alone() {
    let mut plan = plan(key(9), ids::WRAPPED_SOL);
    plan.input.account = held(key(9), 1_000);
    assert_eq!(outline(&plan), ["create", "guardedSwap", "unwrapSol"]);
    plan.output.account = held(ids::WRAPPED_SOL, 7);
    assert_eq!(
        outline(&plan),
        [
            "createTemporaryAccount",
            "initializeTemporaryAccount",
            "guardedSwap",
            "unwrapSol"
        ]
    );
    let built = unsigned_of(&plan);
    assert_eq!(built.sol_output, Some(SolOutput::Unwrapped));
    let wrapped = plan.route.last().output_token_account;
    let touched = |planned: &PlannedInstruction| {
        let mut accounts = planned.instruction.accounts.iter();
        accounts.any(|meta| meta.pubkey == wrapped)
    };
    assert!(!built.instructions.iter().any(touched));
    let [created] = &built.costs.created[..] else {
        panic!("one account is created");
    };
    assert_eq!(created.rent_to, Some(key(1)));
    assert_eq!(created.rent, 2_039_280);
}

#[test]
fn an_account_of_one_transaction_has_an_address_that_nobody_knows_before_its_blockhash() {
    // The chain makes no account with a seed where lamports lie already, so anybody could block an address that is known.
    let mut plan = plan(key(9), ids::WRAPPED_SOL);
    plan.input.account = held(key(9), 1_000);
    plan.output.account = held(ids::WRAPPED_SOL, 7);
    let address = |number: u8| {
        // Of one length as text: one that is 58 times another reads like it but for a digit at its end.
        let mut blockhash = [number; 32];
        blockhash[0] = u8::MAX;
        let built = plan.transaction(Hash::new_from_array(blockhash));
        let instructions = built.expect("it fits").instructions;
        let mut names = instructions.iter();
        let creation = names.find(|planned| planned.name == "createTemporaryAccount");
        creation.expect("it makes one").instruction.accounts[1].pubkey
    };
    let addresses: BTreeSet<Pubkey> = (0..100).map(address).collect();
    assert_eq!(addresses.len(), 100);
}

#[test]
fn sol_stays_wrapped_in_an_account_that_the_user_named() {
    let mut plan = plan(key(9), ids::WRAPPED_SOL);
    plan.input.account = held(key(9), 1_000);
    plan.output.account = held(ids::WRAPPED_SOL, 7);
    plan.named_destination = true;
    assert_eq!(outline(&plan), ["guardedSwap"]);
    assert_eq!(unsigned_of(&plan).sol_output, Some(SolOutput::LeftWrapped));
}

#[test]
fn without_wrapping_native_sol_is_not_touched() {
    for (input, output) in [(ids::WRAPPED_SOL, key(9)), (key(9), ids::WRAPPED_SOL)] {
        let mut plan = plan(input, output);
        plan.wrap_and_unwrap_sol = false;
        assert_eq!(
            outline(&plan),
            ["create if absent", "create if absent", "guardedSwap"]
        );
        let built = unsigned_of(&plan);
        assert_eq!(built.sol_output, None);
        assert_eq!(built.costs.wrapped, 0);
    }
}

#[test]
fn the_costs_add_up() {
    let mut plan = plan(ids::WRAPPED_SOL, key(9));
    plan.output.token.kind = TokenKind::Token2022WithFee;
    let built = unsigned_of(&plan);
    let (rents, fee) = (2_039_280 + 2_157_600, built.costs.priority_fee);
    assert!(fee <= 5_000);
    assert_eq!(built.costs.base_fee, 5_000);
    let returned: Vec<bool> = built
        .costs
        .created
        .iter()
        .map(|one| one.rent_to.is_some())
        .collect();
    assert_eq!(returned, [true, false]);
    assert_eq!(
        built.costs.required,
        5_000 + fee + rents + 1_000 + 890_880,
        "and the wallet's own rent"
    );
}

/// Bits of the options that are there or not, and a version.
fn combinations_of_options() -> impl Iterator<Item = (u32, TransactionVersion)> {
    (0..32).flat_map(|bits| TransactionVersion::ALL.map(|version| (bits, version)))
}

/// Every combination of what decides about a transaction's content.
fn every_plan() -> Vec<TransactionPlan> {
    let mut plans = Vec::new();
    let assets = [ids::WRAPPED_SOL, key(8), key(9)];
    for input_mint in assets {
        for output_mint in assets {
            if input_mint == output_mint {
                continue;
            }
            for (bits, version) in combinations_of_options() {
                let flag = |bit: u32| bits & (1 << bit) != 0;
                let mut plan = plan(input_mint, output_mint);
                let account = |present: bool, mint, amount| present.then(|| held(mint, amount));
                plan.input.account = account(flag(0), input_mint, 400).flatten();
                plan.output.account = account(flag(1), output_mint, 7).flatten();
                plan.wrap_and_unwrap_sol = flag(2);
                plan.named_destination = flag(3) && flag(1);
                plan.version = version;
                if flag(4) {
                    plan.terms = SwapTerms {
                        amount_in: u64::MAX,
                        minimum_out: u64::MAX,
                        expiry_slot: Some(u64::MAX),
                    };
                    plan.priority_fee = u64::MAX;
                    // Two programs are more accounts than one.
                    plan.route.last_mut().output_token_program = ids::TOKEN_2022;
                    plan.output.token.kind = TokenKind::Token2022WithFee;
                    if output_mint == ids::WRAPPED_SOL {
                        plan.route.last_mut().output_token_program = ids::SPL_TOKEN;
                        plan.route.first_mut().input_token_program = ids::TOKEN_2022;
                    }
                }
                plans.push(plan);
            }
        }
    }
    plans
}

#[test]
fn every_transaction_fits_a_packet_and_waits_for_one_signature() {
    let mut longest = BTreeMap::new();
    for plan in every_plan() {
        let built = unsigned_of(&plan);
        let size = built.bytes.len();
        assert!(size <= PACKET_LIMIT, "{size}: {plan:?}");
        let signature = if plan.version == TransactionVersion::V1 {
            assert_eq!(
                built.bytes[..2],
                [0x81, 1],
                "one signature, after the message"
            );
            &built.bytes[size - 64..]
        } else {
            assert_eq!(built.bytes[0], 1, "one signature, before the message");
            let is_0 = built.bytes[65] == 0x80;
            assert_eq!(is_0, plan.version == TransactionVersion::V0);
            &built.bytes[1..65]
        };
        assert_eq!(signature, [0; 64], "not signed yet");
        let longest = longest.entry(plan.version).or_insert(0);
        *longest = size.max(*longest);
    }
    // A figure that grows unnoticed would one day be too large.
    let [legacy, version_0, version_1] = TransactionVersion::ALL;
    let expected = [(legacy, 939), (version_0, 941), (version_1, 904)];
    assert_eq!(longest, BTreeMap::from(expected));
}

#[test]
fn every_account_of_every_instruction_has_a_role() {
    for plan in every_plan() {
        for planned in unsigned_of(&plan).instructions {
            assert_eq!(planned.roles.len(), planned.instruction.accounts.len());
        }
    }
}

#[test]
fn the_limit_is_the_sum_of_the_instructions_with_headroom_and_the_price_is_what_the_fee_allows() {
    for plan in every_plan() {
        let built = unsigned_of(&plan);
        let sum: u32 = built.instructions.iter().map(|planned| planned.units).sum();
        assert_eq!(built.planned_units, sum);
        let limit = sum + plan.unit_headroom;
        assert_eq!(built.unit_limit, limit);
        if plan.version == TransactionVersion::V1 {
            assert_budget_of_the_message(&plan, &built);
            continue;
        }
        assert_eq!(
            built.instructions[0].instruction.data[1..],
            built.unit_price.to_le_bytes()
        );
        assert_eq!(
            built.instructions[1].instruction.data[1..],
            limit.to_le_bytes()
        );
        let loaded = built.loaded_bytes.expect("there is room");
        assert_eq!(
            built.instructions[2].instruction.data[1..],
            loaded.to_le_bytes()
        );
    }
}

#[track_caller]
fn assert_budget_of_the_message(plan: &TransactionPlan, built: &UnsignedTransaction) {
    let transaction: VersionedTransaction =
        wincode::deserialize_exact(&built.bytes).expect("a transaction");
    let VersionedMessage::V1(message) = transaction.message else {
        panic!("another version");
    };
    message.validate().expect("the chain takes it");
    assert_eq!(message.config.compute_unit_limit, Some(built.unit_limit));
    assert_eq!(message.config.priority_fee, Some(plan.priority_fee));
    assert_eq!(built.costs.priority_fee, plan.priority_fee);
    let loaded = message.config.loaded_accounts_data_size_limit;
    assert!(loaded.is_some(), "without it nothing may be loaded");
    assert_eq!(loaded, built.loaded_bytes);
    let budget = |planned: &PlannedInstruction| planned.name.starts_with("set");
    assert!(!built.instructions.iter().any(budget));
}
