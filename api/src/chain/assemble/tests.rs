use super::*;

/// The network's limit on a transaction, bytes.
const PACKET_LIMIT: usize = 1_232;

fn key(n: u8) -> Pubkey {
    Pubkey::from([n; 32])
}

fn plan(input_mint: Pubkey, output_mint: Pubkey) -> Plan {
    Plan {
        accounts: SwapAccounts {
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
        },
        amount_in: 1_000,
        minimum_out: 1,
        input: None,
        output: None,
        wrap_and_unwrap_sol: true,
        priority_fee: 5_000,
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

/// First bytes of each instruction's data under its program, for reading an order at a glance.
fn outline(plan: &Plan) -> Vec<(Pubkey, Vec<u8>)> {
    plan.instructions()
        .into_iter()
        .map(|instruction| {
            let head = instruction.data.iter().take(1).copied().collect();
            (instruction.program_id, head)
        })
        .collect()
}

const ATA: Pubkey = swap_guard_interface::ASSOCIATED_TOKEN_PROGRAM;
const GUARD: Pubkey = swap_guard_interface::PROGRAM_ID;
const SYSTEM: Pubkey = Pubkey::new_from_array([0; 32]);

fn programs_after_budget(plan: &Plan) -> Vec<(Pubkey, u8)> {
    outline(plan)
        .into_iter()
        .skip(2)
        .map(|(program, head)| (program, head[0]))
        .collect()
}

const CREATE: u8 = 0;
const CREATE_IDEMPOTENT: u8 = 1;
const TRANSFER: u8 = 2;
const SYNC_NATIVE: u8 = 17;
const CLOSE: u8 = 9;

fn guard_head() -> u8 {
    swap_guard_interface::SWAP_DISCRIMINATOR[0]
}

#[test]
fn sol_in_wraps_into_an_account_that_is_created_and_closed() {
    let plan = plan(ids::WRAPPED_SOL, key(9));
    assert_eq!(
        programs_after_budget(&plan),
        [
            (ATA, CREATE),
            (ATA, CREATE_IDEMPOTENT),
            (SYSTEM, TRANSFER),
            (ids::SPL_TOKEN, SYNC_NATIVE),
            (GUARD, guard_head()),
            (ids::SPL_TOKEN, CLOSE),
        ]
    );
}

#[test]
fn sol_in_uses_what_is_wrapped_already_and_never_closes_it() {
    let mut plan = plan(ids::WRAPPED_SOL, key(9));
    plan.output = held(key(9), 0);
    plan.input = held(ids::WRAPPED_SOL, 400);
    let wrapped = plan.wrap();
    assert_eq!(wrapped[0].data[4..12], 600u64.to_le_bytes());
    plan.input = held(ids::WRAPPED_SOL, 1_000);
    assert_eq!(programs_after_budget(&plan), [(GUARD, guard_head())]);
}

#[test]
fn sol_out_arrives_native_only_when_no_wrapped_account_was_there() {
    let mut plan = plan(key(9), ids::WRAPPED_SOL);
    plan.input = held(key(9), 1_000);
    assert_eq!(
        programs_after_budget(&plan),
        [
            (ATA, CREATE),
            (GUARD, guard_head()),
            (ids::SPL_TOKEN, CLOSE)
        ]
    );
    plan.output = held(ids::WRAPPED_SOL, 7);
    assert_eq!(programs_after_budget(&plan), [(GUARD, guard_head())]);
    assert_eq!(plan.sol_output(), Some(SolOutput::LeftWrapped));
}

#[test]
fn without_wrapping_native_sol_is_not_touched() {
    for (input, output) in [(ids::WRAPPED_SOL, key(9)), (key(9), ids::WRAPPED_SOL)] {
        let mut plan = plan(input, output);
        plan.wrap_and_unwrap_sol = false;
        assert_eq!(
            programs_after_budget(&plan),
            [
                (ATA, CREATE_IDEMPOTENT),
                (ATA, CREATE_IDEMPOTENT),
                (GUARD, guard_head())
            ]
        );
        assert_eq!(plan.sol_output(), None);
    }
}

#[test]
fn the_largest_transaction_fits_a_packet_and_waits_for_one_signature() {
    let mut plan = plan(ids::WRAPPED_SOL, key(9));
    plan.accounts.output_token_program = ids::TOKEN_2022;
    let assembled = plan.transaction(Hash::default()).expect("fits");
    assert!(
        assembled.bytes.len() <= PACKET_LIMIT,
        "{}",
        assembled.bytes.len()
    );
    assert_eq!(assembled.bytes[0], 1, "one signature");
    assert_eq!(assembled.bytes[1..65], [0; 64], "not signed yet");
}

#[test]
fn the_unit_limit_grows_with_the_work() {
    let mut small = plan(key(8), key(9));
    small.input = held(key(8), 1);
    small.output = held(key(9), 1);
    let mut large = plan(ids::WRAPPED_SOL, key(9));
    large.accounts.output_token_program = ids::TOKEN_2022;
    assert!(small.unit_limit() < large.unit_limit());
}
