//! Sizes of every combination that the API can be asked for, against the network's limit.

use std::collections::BTreeMap;

use super::{
    forms::{exact_out, two_hops},
    *,
};
use crate::size::{Remedy, table_of};

mod appended;

const A: u8 = 8;
const M: u8 = 7;
const B: u8 = 9;

/// The rows of the table: name, and a plan with every account there.
pub(super) fn rows() -> Vec<(&'static str, TransactionPlan)> {
    let (a, m, b, sol) = (key(A), key(M), key(B), ids::WRAPPED_SOL);
    let exact_in = [
        ("A-B", plan(a, b)),
        ("SOL-B", plan(sol, b)),
        ("A-SOL", plan(a, sol)),
        ("A-SOL-B", two_hops(a, sol, b)),
        ("A-M-B", two_hops(a, m, b)),
        ("SOL-M-B", two_hops(sol, m, b)),
        ("A-M-SOL", two_hops(a, m, sol)),
    ];
    let exact_outs = [
        ("A-B exact out", exact_out(plan(a, b))),
        ("SOL-B exact out", exact_out(plan(sol, b))),
        ("A-SOL exact out", exact_out(plan(a, sol))),
    ];
    exact_in.into_iter().chain(exact_outs).collect()
}

/// What a combination has beside its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Options {
    receiver: bool,
    fee_payer: bool,
    token_2022: bool,
    two_configurations: bool,
    format: Format,
}

/// Wire format, and whether the service has a lookup table.
type Format = (TransactionVersion, bool);

const FORMATS: [Format; 4] = [
    (TransactionVersion::Legacy, false),
    (TransactionVersion::V0, false),
    (TransactionVersion::V0, true),
    (TransactionVersion::V1, false),
];

impl Options {
    fn all() -> impl Iterator<Item = Self> {
        let options = (0..16u8).flat_map(|bits| FORMATS.map(|format| (bits, format)));
        options.map(|(bits, format)| {
            let flag = |bit: u8| bits & (1 << bit) != 0;
            Self {
                receiver: flag(0),
                fee_payer: flag(1),
                token_2022: flag(2),
                two_configurations: flag(3),
                format,
            }
        })
    }
}

/// Every combination of a row: which accounts are there, and the options.
fn combinations(row: &TransactionPlan) -> Vec<(Options, TransactionPlan)> {
    let mut plans = Vec::new();
    for options in Options::all() {
        for bits in 0..8u8 {
            let flag = |bit: u8| bits & (1 << bit) != 0;
            let mut plan = row.clone();
            let input_mint = plan.route.first().input_mint;
            let output_mint = plan.route.last().output_mint;
            let account = |there: bool, mint| there.then(|| held(mint, 7)).flatten();
            // A token that goes in is there.
            let is_sol = input_mint == ids::WRAPPED_SOL;
            plan.input.account = account(flag(0) || !is_sol, input_mint);
            plan.output.account = account(flag(1), output_mint);
            if let Some(middle) = &mut plan.middle {
                middle.account = account(flag(2), key(M));
            } else if flag(2) {
                continue;
            }
            plan.terms.expiry_slot = Some(u64::MAX);
            plan.version = options.format.0;
            plan.receiver = options.receiver.then(|| key(20));
            if options.fee_payer {
                plan.fee_payer = key(21);
            }
            if options.two_configurations && plan.middle.is_some() {
                plan.route.last_mut().amm_config = key(12);
            }
            if options.token_2022 {
                token_2022_side(&mut plan);
            }
            if options.format.1 {
                plan.lookup_table = Some(Arc::new(table_of(&plan.route)));
            }
            plans.push((options, plan));
        }
    }
    plans
}

/// Makes a side that is not SOL one of Token-2022: a second token program is another account.
fn token_2022_side(plan: &mut TransactionPlan) {
    if plan.route.last().output_mint == ids::WRAPPED_SOL {
        plan.route.first_mut().input_token_program = ids::TOKEN_2022;
        plan.input.token.kind = TokenKind::Token2022;
    } else {
        plan.route.last_mut().output_token_program = ids::TOKEN_2022;
        plan.output.token.kind = TokenKind::Token2022;
    }
}

/// The largest of each row in the legacy format, version 0, the same with a lookup table, and version 1: with neither of receiver and fee payer, with one,
/// with both. A figure that grows unnoticed would one day be too large.
const LARGEST: [(&str, [[usize; 3]; 4]); 10] = [
    (
        "A-B",
        [
            [765, 861, 925],
            [767, 863, 927],
            [615, 711, 775],
            [727, 823, 887],
        ],
    ),
    (
        "SOL-B",
        [
            [804, 900, 964],
            [806, 902, 966],
            [685, 781, 845],
            [770, 866, 930],
        ],
    ),
    (
        "A-SOL",
        [
            [897, 1_002, 1_034],
            [899, 1_004, 1_036],
            [778, 883, 915],
            [861, 967, 999],
        ],
    ),
    (
        "A-SOL-B",
        [
            [1_014, 1_110, 1_174],
            [1_016, 1_112, 1_176],
            [833, 929, 993],
            [978, 1_074, 1_138],
        ],
    ),
    (
        "A-M-B",
        [
            [982, 1_078, 1_142],
            [984, 1_080, 1_144],
            [832, 928, 992],
            [946, 1_042, 1_106],
        ],
    ),
    (
        "SOL-M-B",
        [
            [1_021, 1_117, 1_181],
            [1_023, 1_119, 1_183],
            [871, 967, 1_031],
            [989, 1_085, 1_149],
        ],
    ),
    (
        "A-M-SOL",
        [
            [1_146, 1_243, 1_275],
            [1_148, 1_245, 1_277],
            [996, 1_101, 1_133],
            [1_112, 1_218, 1_250],
        ],
    ),
    (
        "A-B exact out",
        [
            [765, 861, 925],
            [767, 863, 927],
            [615, 711, 775],
            [727, 823, 887],
        ],
    ),
    (
        "SOL-B exact out",
        [
            [961, 1_066, 1_130],
            [963, 1_068, 1_132],
            [842, 947, 1_011],
            [928, 1_034, 1_098],
        ],
    ),
    (
        "A-SOL exact out",
        [
            [897, 1_002, 1_034],
            [899, 1_004, 1_036],
            [778, 883, 915],
            [861, 967, 999],
        ],
    ),
];

#[test]
fn the_largest_of_each_row_is_known() {
    let mut largest = BTreeMap::new();
    for (name, row) in rows() {
        for (options, plan) in combinations(&row) {
            let asked = usize::from(options.receiver) + usize::from(options.fee_payer);
            let size = unsigned_of(&plan).bytes.len();
            let most = largest.entry((name, options.format)).or_insert([0; 3]);
            most[asked] = size.max(most[asked]);
        }
    }
    let found: Vec<_> = rows()
        .iter()
        .map(|(name, _)| (*name, FORMATS.map(|format| largest[&(*name, format)])))
        .collect();
    assert_eq!(found, LARGEST);
}

#[test]
fn a_transaction_that_does_not_fit_says_what_makes_it_fit() {
    let (mut too_large, mut helped) = (0, 0);
    for (name, row) in rows() {
        for (options, plan) in combinations(&row) {
            let size = unsigned_of(&plan).bytes.len();
            if size <= plan.version.size_limit() {
                continue;
            }
            too_large += 1;
            assert_eq!(name, "A-M-SOL", "{options:?}");
            assert_ne!(plan.version, TransactionVersion::V1, "{size}");
            let remedies = plan.remedies(Hash::new_from_array([7; 32]));
            assert!(options.fee_payer, "{size}: {options:?}");
            assert!(
                remedies.contains(&Remedy::WithoutFeePayer),
                "{size}: {options:?}"
            );
            assert!(remedies.contains(&Remedy::WithVersion1), "{options:?}");
            if options.format == (TransactionVersion::V0, false) {
                let mut with_table = plan.clone();
                with_table.lookup_table = Some(Arc::new(table_of(&plan.route)));
                let fits = unsigned_of(&with_table).bytes.len() <= PACKET_LIMIT;
                let named = remedies.contains(&Remedy::WithLookupTable);
                assert_eq!(named, fits, "{size}: {options:?}");
                helped += usize::from(named);
            }
        }
    }
    assert!(too_large > 0 && helped > 0, "{too_large}, {helped}");
}
