//! Cost of the guard: compute units, binary size and heap use, measured on the built programs.
//!
//! Every figure is deterministic: it changes with the programs' code and their compiler, and with nothing else.

use std::fs;

use cpmm::{
    Direction, PerToken,
    instruction::{SwapAccounts, swap_base_input, swap_base_output},
};
use serde_json::Value;
use sluice_testkit::{
    figure::Figure,
    pool::{PoolSpec, TokenSpec, User},
    route::{Route, Trader},
    svm::{Executed, Svm, program},
};
use sluice_transaction::compute_table::{GUARD_ONE_HOP, GUARD_TWO_HOPS};
use solana_instruction::Instruction;
use solana_signer::Signer;
use swap_guard_interface::{
    ExactOutArgs, GuardError, NO_EXPIRY, SwapArgs, swap, swap_exact_out, swap_exact_out_to,
    swap_to, swap_two_hops, swap_two_hops_to,
};

/// The most that the guard may add to a swap of SPL tokens with all its checks, event and return data, compute units. A
/// wrapper that costs more would be a reason to go without.
const MAX_OVERHEAD: u64 = 2_000;

/// The same where the swap expires, which takes a look at the clock.
const MAX_EXPIRING: u64 = 2_120;

/// The same between Token-2022 tokens, whose accounts take longer to check.
const MAX_TOKEN_2022: u64 = 2_150;

/// The same for an exact output, and for another receiver.
const MAX_OTHER_FORM: u64 = 2_130;

/// What two hops may add to two direct swaps, compute units: less than twice what one hop adds. The walk over their accounts
/// is a loop, which is smaller and slower than the one over the accounts of one hop.
const MAX_TWO_HOPS: u64 = 3_550;

/// What a swap that expires may add without its event, compute units.
const MAX_SILENT_OVERHEAD: u64 = 1_800;

/// What an expired swap may cost in all, compute units: reading fourteen accounts and the clock, and no more.
const MAX_EXPIRED: u64 = 600;

/// The largest guard binary, bytes: what is deployed is paid for by the byte.
const MAX_GUARD_LEN: u64 = 14 * 1024;

/// Amounts of the measured swap, smallest units.
const AMOUNT: u64 = 1_000_000;

/// What the trader has of each token, smallest units.
const WEALTH: u64 = 100 * AMOUNT;

/// A slot that no chain of a test reaches.
const FAR: u64 = u64::MAX;

const UNITS: &str = "compute units";

/// Measures the guard.
///
/// # Panics
/// When a program is not built or a swap fails.
#[must_use]
pub fn figures() -> Vec<Figure> {
    let guard = program("swap_guard");
    let length = u64::try_from(guard.len()).expect("programs are small");
    let mut figures = one_hop(&guard);
    figures.extend(two_hops(&guard));
    figures.extend(proved());
    figures.push(Figure::exact(
        "refused as expired, in all",
        refused_as_expired(&guard),
        UNITS,
        MAX_EXPIRED,
    ));
    figures.push(Figure::exact(
        "swap_guard.so",
        length,
        "bytes",
        MAX_GUARD_LEN,
    ));
    figures.push(Figure::exact(
        "heap allocations of all six instructions",
        heap_allocations(),
        "allocations",
        0,
    ));
    figures
}

/// What no success can exceed, as the committed certificate of the guard's bytes states it.
fn proved() -> Vec<Figure> {
    let certificate = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proof.json");
    let text = fs::read_to_string(certificate).expect("the certificate is committed");
    let certificate: Value = serde_json::from_str(&text).expect("the prover writes JSON");
    let findings = certificate["findings"].as_array().expect("a list");
    let most = |is_of: fn(&str) -> bool| {
        let of = findings
            .iter()
            .filter(|each| each["of"].as_str().is_some_and(is_of));
        let most = of.filter_map(|each| each["most compute units of a success"].as_u64());
        most.max().expect("every instruction has its bound")
    };
    let is_two_hops = |name: &str| name.starts_with("swap_two_hops");
    vec![
        Figure::exact(
            "the guard itself in a swap through one pool, at most, proved",
            most(|name| !name.starts_with("swap_two_hops")),
            UNITS,
            GUARD_ONE_HOP.into(),
        ),
        Figure::exact(
            "the guard itself in a swap through two pools, at most, proved",
            most(is_two_hops),
            UNITS,
            GUARD_TWO_HOPS.into(),
        ),
    ]
}

fn one_hop(guard: &[u8]) -> Vec<Figure> {
    let spl = OneHop::of(&PoolSpec::plain());
    let token_2022 = OneHop::of(&PoolSpec::of(
        TokenSpec::token_2022(1_000_000_000_000),
        TokenSpec::token_2022(2_000_000_000_000),
    ));
    let by_input = |accounts: &SwapAccounts| swap_base_input(accounts, AMOUNT, 1);
    let by_output = |accounts: &SwapAccounts| swap_base_output(accounts, WEALTH, AMOUNT);
    let expiring = |accounts: &SwapAccounts| swap(accounts, exact_in(FAR));
    let plain = |accounts: &SwapAccounts| swap(accounts, exact_in(NO_EXPIRY));
    let silent = program("guard_silent");
    vec![
        Figure::exact(
            "swap minus direct swap",
            spl.over(guard, plain, by_input),
            UNITS,
            MAX_OVERHEAD,
        ),
        Figure::exact(
            "swap minus direct swap, with expiry",
            spl.over(guard, expiring, by_input),
            UNITS,
            MAX_EXPIRING,
        ),
        Figure::exact(
            "swap minus direct swap, with expiry, Token-2022 both sides",
            token_2022.over(guard, expiring, by_input),
            UNITS,
            MAX_TOKEN_2022,
        ),
        Figure::exact(
            "swap_exact_out minus direct swap, with expiry",
            spl.over(
                guard,
                |accounts| swap_exact_out(accounts, exact_out(FAR)),
                by_output,
            ),
            UNITS,
            MAX_OTHER_FORM,
        ),
        Figure::exact(
            "swap_to minus direct swap, with expiry",
            spl.over(
                guard,
                |accounts| swap_to(accounts, exact_in(FAR), &accounts.payer),
                by_input,
            ),
            UNITS,
            MAX_OTHER_FORM,
        ),
        Figure::exact(
            "swap minus direct swap, with expiry, without the event",
            spl.over(&silent, expiring, by_input),
            UNITS,
            MAX_SILENT_OVERHEAD,
        ),
    ]
}

fn two_hops(guard: &[u8]) -> Vec<Figure> {
    let measure = |middle: TokenSpec| {
        let first = PoolSpec::of(TokenSpec::spl(1_000_000_000_000), middle);
        let route = TwoHops::of(&first, &PoolSpec::plain());
        let args = exact_in(FAR);
        route.units(guard, &[swap_two_hops(&route.trader.accounts, args)]) - route.direct(guard)
    };
    let fee = sluice_testkit::pool::constant_fee(100);
    vec![
        Figure::exact(
            "swap_two_hops minus two direct swaps, with expiry",
            measure(TokenSpec::spl(1_000_000_000_000)),
            UNITS,
            MAX_TWO_HOPS,
        ),
        Figure::exact(
            "swap_two_hops minus two direct swaps, with expiry, transfer fee in the middle",
            measure(TokenSpec::with_fee(1_000_000_000_000, fee)),
            UNITS,
            MAX_TWO_HOPS,
        ),
    ]
}

const fn exact_in(expiry_slot: u64) -> SwapArgs {
    SwapArgs {
        amount_in: AMOUNT,
        minimum_out: 1,
        expiry_slot,
    }
}

const fn exact_out(expiry_slot: u64) -> ExactOutArgs {
    ExactOutArgs {
        maximum_in: WEALTH,
        amount_out: AMOUNT,
        expiry_slot,
    }
}

/// A chain with this program as the guard. The exchange is always the stand-in, because a figure that is compared must
/// not depend on what else is on the machine.
fn chain(guard: &[u8]) -> Svm {
    Svm::with_programs(guard, &program("local_cpmm"))
}

/// One pool, on which each swap is measured anew.
struct OneHop(PoolSpec);

impl OneHop {
    fn of(setup: &PoolSpec) -> Self {
        Self(setup.clone())
    }

    fn set(&self, svm: &mut Svm) -> (User, SwapAccounts) {
        let pool = svm.open("pool", &self.0);
        let user = svm.fund("user", &pool, PerToken::new(WEALTH, 0));
        let accounts = pool.swap_accounts(&user, Direction::ZeroForOne);
        (user, accounts)
    }

    fn execute(&self, guard: &[u8], build: impl Fn(&SwapAccounts) -> Instruction) -> Executed {
        let mut svm = chain(guard);
        let (user, accounts) = self.set(&mut svm);
        svm.send(&[build(&accounts)], &[&user.keypair])
            .expect("the swap goes through")
    }

    /// What the guarded swap costs over the direct one.
    fn over(
        &self,
        guard: &[u8],
        guarded: impl Fn(&SwapAccounts) -> Instruction,
        direct: impl Fn(&SwapAccounts) -> Instruction,
    ) -> u64 {
        let [guarded, direct] = [
            self.execute(guard, guarded).compute_units,
            self.execute(guard, direct).compute_units,
        ];
        guarded - direct
    }
}

/// Two pools, on which each swap is measured anew.
struct TwoHops {
    first: PoolSpec,
    second: PoolSpec,
    trader: Trader,
}

impl TwoHops {
    fn of(first: &PoolSpec, second: &PoolSpec) -> Self {
        let trader = Self::set(&mut chain(&program("swap_guard")), first, second);
        Self {
            first: first.clone(),
            second: second.clone(),
            trader,
        }
    }

    fn set(svm: &mut Svm, first: &PoolSpec, second: &PoolSpec) -> Trader {
        let route = Route::open(svm, "route", first, second);
        route.fund(svm, "user", [WEALTH, WEALTH, 0])
    }

    fn units(&self, guard: &[u8], instructions: &[Instruction]) -> u64 {
        let mut svm = chain(guard);
        let trader = Self::set(&mut svm, &self.first, &self.second);
        svm.send(instructions, &[&trader.keypair])
            .expect("the swap goes through")
            .compute_units
    }

    /// Both swaps without the guard, of the same amounts.
    fn direct(&self, guard: &[u8]) -> u64 {
        let mut svm = chain(guard);
        let trader = Self::set(&mut svm, &self.first, &self.second);
        let accounts = &trader.accounts;
        let middle = accounts.first.output_token_account;
        let before = svm.balance(middle);
        let first = swap_base_input(&accounts.first, AMOUNT, 0);
        svm.send(std::slice::from_ref(&first), &[&trader.keypair])
            .expect("the first hop goes through");
        let delivered = svm.balance(middle) - before;
        let second = swap_base_input(&accounts.second, delivered, 0);
        self.units(guard, &[first, second])
    }
}

fn refused_as_expired(guard: &[u8]) -> u64 {
    let mut svm = chain(guard);
    svm.set_slot(1_000);
    let (user, accounts) = OneHop::of(&PoolSpec::plain()).set(&mut svm);
    let sent = svm.send(&[swap(&accounts, exact_in(999))], &[&user.keypair]);
    let Err(refused) = sent else {
        panic!("accepted after its expiry");
    };
    assert_eq!(refused.code(), GuardError::Expired.code());
    refused.compute_units
}

/// Asks the guard that counts: see `programs/bench-guard-heap`.
fn heap_allocations() -> u64 {
    let guard = program("guard_heap");
    let hop = OneHop::of(&PoolSpec::plain());
    let route = TwoHops::of(&PoolSpec::plain(), &PoolSpec::plain());
    let me = route.trader.keypair.pubkey();
    let mut executed = vec![
        hop.execute(&guard, |accounts| swap(accounts, exact_in(FAR))),
        hop.execute(&guard, |accounts| swap_to(accounts, exact_in(FAR), &me)),
        hop.execute(&guard, |accounts| swap_exact_out(accounts, exact_out(FAR))),
        hop.execute(&guard, |accounts| {
            swap_exact_out_to(accounts, exact_out(FAR), &me)
        }),
    ];
    for build in [
        swap_two_hops(&route.trader.accounts, exact_in(FAR)),
        swap_two_hops_to(&route.trader.accounts, exact_in(FAR), &me),
    ] {
        let mut svm = chain(&guard);
        let trader = TwoHops::set(&mut svm, &route.first, &route.second);
        let sent = svm.send(&[build], &[&trader.keypair]);
        executed.push(sent.expect("the swap goes through"));
    }
    executed.iter().map(counted).sum()
}

fn counted(executed: &Executed) -> u64 {
    let logged = executed.events.last().expect("it logs its counts");
    let (counts, _) = logged.as_chunks::<8>();
    let [before, after] = counts else {
        panic!("{} bytes are not two counts", logged.len());
    };
    let [before, after] = [before, after].map(|count| u64::from_le_bytes(*count));
    assert_eq!(before, 1, "the allocation made on purpose was not counted");
    after - before
}
