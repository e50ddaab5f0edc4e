//! Sizes with what integrators add to a swap: a platform's fee, and a limit of the bytes that accounts may have.

use solana_compute_budget_interface::ComputeBudgetInstruction;

use super::*;
use crate::{
    platform_fee::PlatformFee,
    unsigned::{self, Format as WireFormat, MessageBudget},
};

/// What is added: the fee, the limit, both.
const ADDED: [(bool, bool); 3] = [(true, false), (false, true), (true, true)];

/// The platform's wallet, and its account of the input token.
const PLATFORM: u8 = 30;
const PLATFORM_ACCOUNT: u8 = 31;

/// A platform's fee, whose account is to be created.
fn platform_fee() -> PlatformFee {
    PlatformFee {
        amount: 1_000,
        wallet: key(PLATFORM),
        account: key(PLATFORM_ACCOUNT),
        bump: 254,
        is_there: false,
        decimals: 6,
    }
}

/// The size of the transaction with the additions. Version 1 states the limit in the message, whatever it is.
fn size_with(plan: &TransactionPlan, (fee, limit): (bool, bool)) -> usize {
    let plan = &TransactionPlan {
        platform_fee: fee.then(platform_fee),
        ..plan.clone()
    };
    let built = unsigned_of(plan);
    let mut instructions = built.instructions;
    if limit && plan.version.has_budget_instructions() {
        let limit = ComputeBudgetInstruction::set_loaded_accounts_data_size_limit(1 << 20);
        let planned = PlannedInstruction {
            name: "setLoadedAccountsDataSizeLimit",
            roles: &[],
            instruction: limit,
            units: 0,
        };
        instructions.insert(0, planned);
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

/// As [`LARGEST`], of all combinations: with the fee and its account, with the limit, with both.
const LARGEST_WITH: [(&str, [[usize; 3]; 4]); 10] = [
    (
        "A-B",
        [
            [1_008, 925, 1_016],
            [1_010, 927, 1_018],
            [889, 775, 897],
            [980, 887, 980],
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
            [1_149, 1_034, 1_157],
            [1_151, 1_036, 1_159],
            [1_061, 915, 1_069],
            [1_124, 999, 1_124],
        ],
    ),
    (
        "A-SOL-B",
        [
            [1_225, 1_174, 1_233],
            [1_227, 1_176, 1_235],
            [1_044, 993, 1_052],
            [1_199, 1_138, 1_199],
        ],
    ),
    (
        "A-M-B",
        [
            [1_193, 1_142, 1_201],
            [1_195, 1_144, 1_203],
            [1_043, 992, 1_051],
            [1_167, 1_106, 1_167],
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
            [1_334, 1_283, 1_342],
            [1_336, 1_285, 1_344],
            [1_215, 1_133, 1_223],
            [1_311, 1_250, 1_311],
        ],
    ),
    (
        "A-B exact out",
        [
            [1_008, 925, 1_016],
            [1_010, 927, 1_018],
            [889, 775, 897],
            [980, 887, 980],
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
            [1_149, 1_034, 1_157],
            [1_151, 1_036, 1_159],
            [1_061, 915, 1_069],
            [1_124, 999, 1_124],
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

/// With both, only two hops exceed the packet: a lookup table, version 1 or another remedy makes them fit.
#[test]
fn only_two_hops_with_sol_need_a_remedy_with_both() {
    let mut too_large = BTreeMap::new();
    for (name, row) in rows() {
        for (options, plan) in combinations(&row) {
            if size_with(&plan, (true, true)) > plan.version.size_limit() {
                *too_large.entry((name, options.format)).or_insert(0) += 1;
            }
        }
    }
    let [legacy, v0, ..] = FORMATS;
    let expected = [
        (("A-M-SOL", legacy), 32),
        (("A-M-SOL", v0), 32),
        (("A-SOL-B", legacy), 2),
        (("A-SOL-B", v0), 2),
    ];
    assert_eq!(too_large, BTreeMap::from(expected));
}

#[test]
fn without_the_fee_or_with_its_account_there_a_transaction_may_fit() {
    let mut helped = BTreeMap::new();
    for (name, row) in rows() {
        for (options, mut plan) in combinations(&row) {
            plan.platform_fee = Some(platform_fee());
            if unsigned_of(&plan).bytes.len() <= plan.version.size_limit() {
                continue;
            }
            let remedies = plan.remedies(Hash::new_from_array([7; 32]), 0);
            assert!(!remedies.is_empty(), "{name}: {options:?}");
            let account = Remedy::WithAccount {
                account: key(PLATFORM_ACCOUNT),
                mint: plan.route.first().input_mint,
            };
            for remedy in [Remedy::WithoutPlatformFee, account] {
                if remedies.contains(&remedy) {
                    *helped.entry(remedy == account).or_insert(0) += 1;
                }
            }
        }
    }
    assert_eq!(helped, BTreeMap::from([(false, 48), (true, 20)]));
}
