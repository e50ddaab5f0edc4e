//! Sizes with what integrators add to a swap: a platform's fee, and a limit of the bytes that accounts may have.

use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_instruction::{AccountMeta, Instruction};

use super::*;
use crate::unsigned::{self, Format as WireFormat, MessageBudget};

/// What is added: the fee, the limit, both.
const ADDED: [(bool, bool); 3] = [(true, false), (false, true), (true, true)];

/// The platform's wallet, and its account of the input token.
const PLATFORM: u8 = 30;
const PLATFORM_ACCOUNT: u8 = 31;

/// `TransferChecked` of both token programs: tag, amount, decimals.
const TRANSFER_CHECKED: [u8; 10] = [12, 0, 0, 0, 0, 0, 0, 0, 0, 6];

/// The fee of the input, moved before the swap.
fn platform_fee(plan: &TransactionPlan) -> Instruction {
    let first = plan.route.first();
    if first.input_mint == ids::WRAPPED_SOL {
        return solana_system_interface::instruction::transfer(&first.payer, &key(PLATFORM), 1_000);
    }
    Instruction {
        program_id: first.input_token_program,
        accounts: vec![
            AccountMeta::new(first.input_token_account, false),
            AccountMeta::new_readonly(first.input_mint, false),
            AccountMeta::new(key(PLATFORM_ACCOUNT), false),
            AccountMeta::new_readonly(first.payer, true),
        ],
        data: TRANSFER_CHECKED.to_vec(),
    }
}

/// The size of the transaction with the additions. Version 1 states the limit in the message, whatever it is.
fn size_with(plan: &TransactionPlan, (fee, limit): (bool, bool)) -> usize {
    let built = unsigned_of(plan);
    let mut instructions = built.instructions;
    let mut insert_first = |name, instruction| {
        let planned = PlannedInstruction {
            name,
            roles: &[],
            instruction,
            units: 0,
        };
        instructions.insert(0, planned);
    };
    if fee {
        insert_first("platformFee", platform_fee(plan));
    }
    if limit && plan.version.has_budget_instructions() {
        let limit = ComputeBudgetInstruction::set_loaded_accounts_data_size_limit(1 << 20);
        insert_first("setLoadedAccountsDataSizeLimit", limit);
    }
    let format = WireFormat {
        version: plan.version,
        lookup_table: plan.lookup_table.as_deref(),
    };
    let budget = MessageBudget {
        unit_limit: built.unit_limit,
        priority_fee: 5_000,
    };
    let hash = Hash::new_from_array([7; 32]);
    let compiled = unsigned::compile(&plan.fee_payer, &instructions, format, budget, hash);
    compiled.expect("its accounts fit a message").bytes.len()
}

/// As [`LARGEST`], of all combinations: with the fee, with the limit, with both.
const LARGEST_WITH: [(&str, [[usize; 3]; 4]); 10] = [
    (
        "A-B",
        [
            [966, 925, 974],
            [968, 927, 976],
            [847, 775, 855],
            [937, 887, 937],
        ],
    ),
    (
        "SOL-B",
        [
            [1_005, 964, 1_013],
            [1_007, 966, 1_015],
            [886, 845, 894],
            [980, 930, 980],
        ],
    ),
    (
        "A-SOL",
        [
            [1_075, 1_034, 1_083],
            [1_077, 1_036, 1_085],
            [987, 915, 995],
            [1_049, 999, 1_049],
        ],
    ),
    (
        "A-SOL-B",
        [
            [1_215, 1_174, 1_223],
            [1_217, 1_176, 1_225],
            [1_034, 993, 1_042],
            [1_188, 1_138, 1_188],
        ],
    ),
    (
        "A-M-B",
        [
            [1_183, 1_142, 1_191],
            [1_185, 1_144, 1_193],
            [1_033, 992, 1_041],
            [1_156, 1_106, 1_156],
        ],
    ),
    (
        "SOL-M-B",
        [
            [1_190, 1_181, 1_198],
            [1_192, 1_183, 1_200],
            [1_040, 1_031, 1_048],
            [1_167, 1_149, 1_167],
        ],
    ),
    (
        "A-M-SOL",
        [
            [1_324, 1_283, 1_332],
            [1_326, 1_285, 1_334],
            [1_205, 1_133, 1_213],
            [1_300, 1_250, 1_300],
        ],
    ),
    (
        "A-B exact out",
        [
            [966, 925, 974],
            [968, 927, 976],
            [847, 775, 855],
            [937, 887, 937],
        ],
    ),
    (
        "SOL-B exact out",
        [
            [1_171, 1_130, 1_179],
            [1_173, 1_132, 1_181],
            [1_052, 1_011, 1_060],
            [1_148, 1_098, 1_148],
        ],
    ),
    (
        "A-SOL exact out",
        [
            [1_075, 1_034, 1_083],
            [1_077, 1_036, 1_085],
            [987, 915, 995],
            [1_049, 999, 1_049],
        ],
    ),
];

#[test]
fn the_largest_of_each_row_with_a_platform_fee_and_a_limit_is_known() {
    let mut largest = BTreeMap::new();
    for (name, row) in rows() {
        for (options, plan) in combinations(&row) {
            let most = largest.entry((name, options.format)).or_insert([0; 3]);
            for (most, added) in most.iter_mut().zip(ADDED) {
                *most = size_with(&plan, added).max(*most);
            }
        }
    }
    let found: Vec<_> = rows()
        .iter()
        .map(|(name, _)| (*name, FORMATS.map(|format| largest[&(*name, format)])))
        .collect();
    assert_eq!(found, LARGEST_WITH);
}

/// With both, nothing else exceeds the packet than without: a lookup table, version 1 or another remedy makes it fit.
#[test]
fn only_two_hops_that_end_in_sol_need_a_remedy_with_both() {
    let mut too_large = BTreeMap::new();
    for (name, row) in rows() {
        for (options, plan) in combinations(&row) {
            if size_with(&plan, (true, true)) > plan.version.size_limit() {
                *too_large.entry((name, options.format)).or_insert(0) += 1;
            }
        }
    }
    let [legacy, v0, ..] = FORMATS;
    let expected = [(("A-M-SOL", legacy), 26), (("A-M-SOL", v0), 26)];
    assert_eq!(too_large, BTreeMap::from(expected));
}
