//! Exact outputs, two pools, other receivers and other fee payers: instructions, and who gets what.

use super::*;

const RECEIVER: u8 = 20;
const FEE_PAYER: u8 = 21;
const MIDDLE_ACCOUNT: u8 = 30;

/// A plan through two pools.
pub(super) fn two_hops(input: Pubkey, middle: Pubkey, output: Pubkey) -> TransactionPlan {
    let mut plan = plan(input, output);
    let first = SwapAccounts {
        output_token_account: key(MIDDLE_ACCOUNT),
        ..hop(input, middle)
    };
    let second = SwapAccounts {
        pool_state: key(13),
        input_token_account: key(MIDDLE_ACCOUNT),
        input_vault: key(16),
        output_vault: key(17),
        observation_state: key(19),
        ..hop(middle, output)
    };
    plan.route = Route::two_hops(first, second);
    plan.middle = Some(side(TokenKind::Spl));
    plan
}

/// The same plan for an exact output.
pub(super) fn exact_out(mut plan: TransactionPlan) -> TransactionPlan {
    plan.route = Route::ExactOut(plan.route.first().clone());
    plan
}

/// A platform's fee of 40 units.
fn platform_fee(is_there: bool) -> PlatformFee {
    PlatformFee {
        amount: 40,
        wallet: key(40),
        account: key(41),
        bump: 254,
        is_there,
        decimals: 6,
    }
}

#[test]
fn a_platform_is_paid_before_the_swap_from_the_account_that_pays_or_in_native_sol() {
    let mut plan = plan(key(8), key(9));
    plan.input.account = held(key(8), 1_040);
    plan.output.account = held(key(9), 0);
    plan.platform_fee = Some(platform_fee(true));
    assert_eq!(outline(&plan), ["payPlatformFee", "guardedSwap"]);
    plan.platform_fee = Some(platform_fee(false));
    let created = ["create if absent", "payPlatformFee", "guardedSwap"];
    assert_eq!(outline(&plan), created);
    let built = unsigned_of(&plan);
    let [creation] = &built.costs.created[..] else {
        panic!("one account is created");
    };
    assert_eq!((creation.owner, creation.rent_to), (key(40), None));
    let pay = &built.instructions[4].instruction;
    assert_eq!(pay.data, [&[12][..], &40u64.to_le_bytes(), &[6]].concat());
    let paid: Vec<_> = pay.accounts.iter().map(|meta| meta.pubkey).collect();
    assert_eq!(paid, [key(4), key(8), key(41), key(1)]);

    // Native SOL needs no account, and is beside what is wrapped.
    let mut plan = self::plan(ids::WRAPPED_SOL, key(9));
    plan.output.account = held(key(9), 0);
    plan.input.account = held(ids::WRAPPED_SOL, 1_000);
    plan.platform_fee = Some(platform_fee(false));
    assert_eq!(outline(&plan), ["payPlatformFee", "guardedSwap"]);
    let built = unsigned_of(&plan);
    assert_eq!((built.costs.wrapped, built.costs.platform_fee), (0, 40));
    assert_eq!(
        built.instructions[3].instruction.accounts[1].pubkey,
        key(40)
    );
    let user_pays = built.costs.required;
    plan.fee_payer = key(21);
    let costs = unsigned_of(&plan).costs;
    assert_eq!(costs.required_of_user, 40 + 890_880);
    assert_eq!(costs.required, user_pays + 5_000 - 40);
    // As tokens where the wrapped SOL was named.
    plan.named_source = true;
    let created = ["create if absent", "payPlatformFee", "guardedSwap"];
    assert_eq!(outline(&plan), created);
    assert_eq!(unsigned_of(&plan).costs.required_of_user, 0);
}

#[test]
fn a_swap_apart_uses_no_account_of_one_transaction_and_closes_none_that_was_there() {
    let names = |planned: &[PlannedInstruction]| -> Vec<&'static str> {
        planned.iter().map(|planned| planned.name).collect()
    };
    let mut plan = exact_out(plan(ids::WRAPPED_SOL, key(9)));
    plan.output.account = held(key(9), 0);
    let apart = plan.apart();
    let made = ["createTokenAccount", "wrapSol", "syncWrappedSol"];
    assert_eq!(names(&apart.parts.set_up), made);
    assert_eq!(names(&apart.parts.clean_up), ["unwrapSol"]);
    plan.input.account = held(ids::WRAPPED_SOL, 400);
    let apart = plan.apart();
    assert_eq!(names(&apart.parts.set_up), ["wrapSol", "syncWrappedSol"]);
    assert_eq!(names(&apart.parts.clean_up), [""; 0]);
    assert_eq!(apart.costs.wrapped, 600);
    let input = apart.parts.swap.instruction.accounts[5].pubkey;
    assert_eq!(input, plan.route.first().input_token_account);

    let mut plan = self::plan(key(8), ids::WRAPPED_SOL);
    plan.input.account = held(key(8), 1_000);
    let apart = plan.apart();
    assert_eq!(names(&apart.parts.set_up), ["createTokenAccount"]);
    assert_eq!(names(&apart.parts.clean_up), ["unwrapSol"]);
    assert_eq!(apart.sol_output, Some(SolOutput::Unwrapped));
    plan.output.account = held(ids::WRAPPED_SOL, 7);
    let apart = plan.apart();
    assert_eq!(apart.sol_output, Some(SolOutput::LeftWrapped));
    let units = [&apart.parts.swap, &apart.budget[0], &apart.budget[1]].map(|one| one.units);
    assert_eq!(apart.unit_limit, units.iter().sum::<u32>() + 6_000);
    let limit = &apart.budget[1].instruction.data;
    assert_eq!(limit[1..], apart.unit_limit.to_le_bytes());
    // What another wallet is to get stays in its own account.
    plan.output.account = None;
    plan.receiver = Some(key(RECEIVER));
    let apart = plan.apart();
    assert_eq!(apart.costs.created[0].owner, key(RECEIVER));
    assert_eq!(names(&apart.parts.clean_up), [""; 0]);
}

/// Destinations of what closes or unwraps accounts: name, the account, where it goes.
fn paid_back(built: &UnsignedTransaction) -> Vec<(&'static str, Pubkey, Pubkey)> {
    let ends = ["unwrapSol", "closeTokenAccount"];
    let planned = built.instructions.iter();
    planned
        .filter(|planned| ends.contains(&planned.name))
        .map(|planned| {
            let accounts = &planned.instruction.accounts;
            (planned.name, accounts[0].pubkey, accounts[1].pubkey)
        })
        .collect()
}

#[test]
fn sol_for_an_exact_output_is_wrapped_in_an_account_of_the_transactions_own() {
    let mut plan = exact_out(plan(ids::WRAPPED_SOL, key(9)));
    plan.output.account = held(key(9), 0);
    let own = ["wrapSol", "syncWrappedSol", "guardedSwap", "unwrapSol"];
    assert_eq!(outline(&plan), [&["create"], &own[..]].concat());
    // Beside wrapped SOL that was there, which is not touched.
    plan.input.account = held(ids::WRAPPED_SOL, 400);
    let temporary = ["createTemporaryAccount", "initializeTemporaryAccount"];
    assert_eq!(outline(&plan), [&temporary[..], &own[..]].concat());
    let built = unsigned_of(&plan);
    assert_eq!(built.costs.wrapped, 1_000, "all that may be spent");
    let account = built.costs.created[0].account;
    assert_eq!(paid_back(&built), [("unwrapSol", account, key(1))]);
    let held_before = plan.route.first().input_token_account;
    let touched = |planned: &PlannedInstruction| {
        let mut accounts = planned.instruction.accounts.iter();
        accounts.any(|meta| meta.pubkey == held_before)
    };
    assert!(!built.instructions.iter().any(touched));
}

#[test]
fn a_middle_account_is_used_when_it_is_there_and_made_and_closed_when_not() {
    let mut plan = two_hops(key(8), key(7), key(9));
    plan.input.account = held(key(8), 1_000);
    plan.output.account = held(key(9), 0);
    plan.middle.as_mut().expect("two hops").account = held(key(7), 777);
    assert_eq!(outline(&plan), ["guardedSwapTwoHops"]);
    plan.middle = Some(side(TokenKind::Spl));
    let made = ["create", "guardedSwapTwoHops", "closeTokenAccount"];
    assert_eq!(outline(&plan), made);
    let built = unsigned_of(&plan);
    assert_eq!(built.costs.created[0].rent_to, Some(key(1)));
    let back = ("closeTokenAccount", key(MIDDLE_ACCOUNT), key(1));
    assert_eq!(paid_back(&built), [back]);
}

#[test]
fn a_middle_account_that_keeps_a_transfer_fee_stays_and_its_rent_is_the_users() {
    let mut plan = two_hops(key(8), key(7), key(9));
    plan.input.account = held(key(8), 1_000);
    plan.output.account = held(key(9), 0);
    plan.middle = Some(side(TokenKind::Token2022WithFee));
    assert_eq!(outline(&plan), ["create if absent", "guardedSwapTwoHops"]);
    let built = unsigned_of(&plan);
    let [created] = &built.costs.created[..] else {
        panic!("one account is created");
    };
    assert_eq!((created.rent_to, created.owner), (None, key(1)));
}

#[test]
fn tokens_for_another_wallet_go_to_its_own_account_and_the_data_says_so() {
    for mut plan in [
        plan(key(8), key(9)),
        exact_out(plan(key(8), key(9))),
        two_hops(key(8), key(7), key(9)),
    ] {
        plan.input.account = held(key(8), 1_000);
        plan.receiver = Some(key(RECEIVER));
        let built = unsigned_of(&plan);
        let creation = built.costs.created.last().expect("the receiver's account");
        assert_eq!((creation.owner, creation.rent_to), (key(RECEIVER), None));
        let mut swap = built.instructions.iter();
        let swap = swap.rfind(|planned| planned.name.starts_with("guardedSwap"));
        let data = &swap.expect("a swap").instruction.data;
        assert_eq!((data.len(), &data[32..]), (64, &[RECEIVER; 32][..]));
    }
}

#[test]
fn sol_for_another_wallet_is_unwrapped_to_it_and_the_rent_goes_back() {
    for (held_before, payer) in [(None, 1), (held(ids::WRAPPED_SOL, 7), FEE_PAYER)] {
        let mut plan = plan(key(8), ids::WRAPPED_SOL);
        plan.input.account = held(key(8), 1_000);
        plan.output.account = held_before;
        plan.receiver = Some(key(RECEIVER));
        plan.fee_payer = key(payer);
        let built = unsigned_of(&plan);
        let account = built.costs.created[0].account;
        let expected = [
            ("unwrapSol", account, key(RECEIVER)),
            ("closeTokenAccount", account, key(payer)),
        ];
        assert_eq!(paid_back(&built), expected);
        let mut swap = built.instructions.iter();
        let swap = swap.rfind(|planned| planned.name == "guardedSwap");
        let data = &swap.expect("a swap").instruction.data;
        assert_eq!(data.len(), 32, "the user's own account receives");
    }
}

#[test]
fn another_fee_payer_pays_fees_and_rents_and_gets_the_rents_back() {
    let mut plan = exact_out(plan(ids::WRAPPED_SOL, key(9)));
    plan.fee_payer = key(FEE_PAYER);
    let built = unsigned_of(&plan);
    assert_eq!(built.bytes[0], 2, "signatures");
    let creates = built.instructions.iter();
    let creates = creates.filter(|planned| planned.name.starts_with("create"));
    for create in creates {
        assert_eq!(create.instruction.accounts[0].pubkey, key(FEE_PAYER));
    }
    let account = plan.route.first().input_token_account;
    let expected = [
        ("unwrapSol", account, key(1)),
        ("closeTokenAccount", account, key(FEE_PAYER)),
    ];
    assert_eq!(paid_back(&built), expected, "the rest is the user's");
    let costs = &built.costs;
    let rents = 2 * 2_039_280;
    let fees = 10_000 + costs.priority_fee;
    assert_eq!(costs.required, fees + rents + 890_880);
    assert_eq!(costs.required_of_user, 1_000 + 890_880);
}
