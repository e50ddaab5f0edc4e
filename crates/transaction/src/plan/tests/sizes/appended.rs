//! Sizes with a platform's fee, and where the limit of what may be loaded has no room.

use super::*;
use crate::platform_fee::PlatformFee;

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

/// Every combination of a row, with the fee.
fn with_fee(row: &TransactionPlan) -> Vec<(Options, TransactionPlan)> {
    let mut plans = combinations(row);
    for (_, plan) in &mut plans {
        plan.platform_fee = Some(platform_fee());
    }
    plans
}

/// As [`LARGEST`], of all combinations with the fee and its account.
const LARGEST_WITH_FEE: [(&str, [usize; 4]); 10] = [
    ("A-B", [1_016, 1_018, 897, 980]),
    ("SOL-B", [1_013, 1_015, 894, 980]),
    ("A-SOL", [1_157, 1_159, 1_069, 1_124]),
    ("A-SOL-B", [1_225, 1_227, 1_052, 1_199]),
    ("A-M-B", [1_201, 1_203, 1_051, 1_167]),
    ("SOL-M-B", [1_198, 1_200, 1_048, 1_167]),
    ("A-M-SOL", [1_334, 1_336, 1_223, 1_311]),
    ("A-B exact out", [1_016, 1_018, 897, 980]),
    ("SOL-B exact out", [1_179, 1_181, 1_060, 1_148]),
    ("A-SOL exact out", [1_157, 1_159, 1_069, 1_124]),
];

#[test]
fn the_largest_of_each_row_with_a_platform_fee_is_known() {
    let mut largest = BTreeMap::new();
    for (name, row) in rows() {
        for (options, plan) in with_fee(&row) {
            let size = unsigned_of(&plan).bytes.len();
            let most = largest.entry((name, options.format)).or_insert(0);
            *most = size.max(*most);
        }
    }
    let found: Vec<_> = rows()
        .iter()
        .map(|(name, _)| (*name, FORMATS.map(|format| largest[&(*name, format)])))
        .collect();
    assert_eq!(found, LARGEST_WITH_FEE);
}

/// With the fee, only two hops that end in SOL exceed the packet.
#[test]
fn only_two_hops_to_sol_need_a_remedy_with_a_platform_fee() {
    let mut too_large = BTreeMap::new();
    for (name, row) in rows() {
        for (options, plan) in with_fee(&row) {
            let size = unsigned_of(&plan).bytes.len();
            if size > plan.version.size_limit() {
                *too_large.entry((name, options.format)).or_insert(0) += 1;
            }
        }
    }
    let [legacy, v0, ..] = FORMATS;
    let expected = [(("A-M-SOL", legacy), 32), (("A-M-SOL", v0), 32)];
    assert_eq!(too_large, BTreeMap::from(expected));
}

/// Bytes of the instruction that limits what is loaded.
const LIMIT_INSTRUCTION: usize = 8;

#[test]
fn the_limit_of_what_is_loaded_is_left_out_only_where_it_has_no_room() {
    let (mut with, mut without) = (0, 0);
    for (_, row) in rows() {
        for (options, plan) in combinations(&row).into_iter().chain(with_fee(&row)) {
            let built = unsigned_of(&plan);
            let names = built.instructions.iter().map(|planned| planned.name);
            let instructed = names
                .into_iter()
                .any(|name| name == "setLoadedAccountsDataSizeLimit");
            let is_v1 = plan.version == TransactionVersion::V1;
            assert_eq!(built.loaded_bytes.is_some(), instructed || is_v1);
            let free = plan.version.size_limit().checked_sub(built.bytes.len());
            match built.loaded_bytes {
                Some(_) => with += 1,
                None => {
                    without += 1;
                    let room = free.unwrap_or(0);
                    assert!(room < LIMIT_INSTRUCTION, "{room} bytes: {options:?}");
                }
            }
            // As much as is left is left free without it, and a byte more costs it.
            let Some(free) = free.filter(|_| instructed) else {
                continue;
            };
            let tight = |size_headroom| {
                let plan = TransactionPlan {
                    size_headroom,
                    ..plan.clone()
                };
                unsigned_of(&plan).loaded_bytes
            };
            assert_eq!(tight(free), built.loaded_bytes);
            assert_eq!(tight(free + 1), None);
        }
    }
    assert!(
        with > without && without > 0,
        "{with} with, {without} without"
    );
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
            let remedies = plan.remedies(Hash::new_from_array([7; 32]));
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
