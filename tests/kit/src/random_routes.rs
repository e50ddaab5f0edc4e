//! Random swaps through two pools: predicted by the arithmetic, executed by the guard and the exchange's binary.

use std::{collections::HashMap, sync::Arc};

use cpmm::{
    Amount, Clock, Direction, Hop, HopRefusal, PerToken, PoolSnapshot, PoolState,
    fixtures::Outcome, ids, quote_two_hops_exact_in, quote_two_hops_exact_out,
};
use rand::Rng;
use solana_pubkey::Pubkey;
use swap_guard_interface::{GuardError, PROGRAM_ID};

use crate::{
    pool::{Pool, PoolSpec, guarded_two_hops},
    random_swaps::RandomSwaps,
    route::Route,
    svm::{EPOCH, Refused, Svm, UNIX_TIMESTAMP},
};

/// What the trader's middle account holds before and after, smallest units: any number that is not zero.
const IN_THE_MIDDLE: u64 = 777;

/// One swap through two pools, both from token 0 to token 1, with everything that it depends on.
#[derive(Clone, Debug)]
pub struct RoutedSwap {
    /// The pools, the first's token 1 being the second's token 0. Their addresses are filled in when they are opened.
    pub pools: [PoolSnapshot; 2],
    /// The chain's time.
    pub clock: Clock,
    /// How much goes in, smallest units.
    pub amount_in: u64,
    /// The least that the caller accepts, smallest units.
    pub minimum_out: u64,
}

/// What a swap through two pools did.
#[derive(Debug, PartialEq, Eq)]
pub struct Routed {
    /// What left the input account.
    pub spent: u64,
    /// What the middle account holds.
    pub middle: u64,
    /// What reached the output account.
    pub received: u64,
    /// Each pool afterwards.
    pub pools: [PoolAfter; 2],
}

/// A pool's balances and booked fees after a swap.
#[derive(Debug, PartialEq, Eq)]
pub struct PoolAfter {
    /// Balance of the vault that was paid.
    pub input_vault: u64,
    /// Balance of the vault that paid.
    pub output_vault: u64,
    /// Booked for protocol, fund and creator.
    pub fees: [PerToken<u64>; 3],
}

/// The program that refuses, and its code; nothing for a refusal without a code.
pub type Refuser = Option<(Pubkey, u32)>;

impl RoutedSwap {
    fn hops(&self) -> [Hop<'_>; 2] {
        self.pools.each_ref().map(|pool| Hop {
            pool,
            direction: Direction::ZeroForOne,
        })
    }

    /// What the arithmetic says.
    ///
    /// # Errors
    /// Who refuses, and with which code.
    pub fn predict(&self) -> Result<Routed, Refuser> {
        let guard = |error: GuardError| Some((PROGRAM_ID, error.code()));
        if self.amount_in == 0 {
            return Err(guard(GuardError::ZeroAmountIn));
        }
        let quote = quote_two_hops_exact_in(self.hops(), Amount::new(self.amount_in), &self.clock);
        let quote = quote.map_err(|refusal| {
            let (HopRefusal::First(refusal) | HopRefusal::Second(refusal)) = refusal;
            refusal.exchange_code().map(|code| (ids::PROGRAM_ID, code))
        })?;
        let received = quote.second.received.get();
        if received < self.minimum_out {
            return Err(guard(GuardError::SlippageExceeded));
        }
        let [first, second] = &self.pools;
        let after = |pool, quote| {
            let outcome = Outcome::predicted(pool, Direction::ZeroForOne, Ok(quote), 0);
            PoolAfter::of(outcome.expect("a quote has an outcome"))
        };
        Ok(Routed {
            spent: self.amount_in,
            middle: IN_THE_MIDDLE,
            received,
            pools: [after(first, quote.first), after(second, quote.second)],
        })
    }

    /// Has the guard and the exchange execute it.
    ///
    /// # Errors
    /// Why the transaction failed.
    pub fn execute(&self, svm: &mut Svm) -> Result<Routed, Refused> {
        svm.set_time(self.clock.epoch, self.clock.unix_timestamp);
        let [first, second] = self.pools.clone().map(PoolSpec::like);
        let route = Route::open(svm, "parity", &first, &second);
        let trader = route.fund(svm, "trader", [self.amount_in, IN_THE_MIDDLE, 0]);
        let swap = guarded_two_hops(&trader.accounts, self.amount_in, self.minimum_out);
        svm.send(&[swap], &[&trader.keypair])?;
        let (first, second) = (&trader.accounts.first, &trader.accounts.second);
        Ok(Routed {
            spent: self.amount_in - svm.balance(first.input_token_account),
            middle: svm.balance(first.output_token_account),
            received: svm.balance(second.output_token_account),
            pools: [&route.first, &route.second].map(|pool| PoolAfter::on_chain(svm, pool)),
        })
    }
}

impl PoolAfter {
    fn of(outcome: Outcome) -> Self {
        let Outcome::Ok {
            input_vault,
            output_vault,
            protocol_fees,
            fund_fees,
            creator_fees,
            ..
        } = outcome
        else {
            panic!("a swap without a minimum is not refused for what it pays");
        };
        Self {
            input_vault,
            output_vault,
            fees: [protocol_fees, fund_fees, creator_fees],
        }
    }

    fn on_chain(svm: &Svm, pool: &Pool) -> Self {
        let PoolState {
            vaults,
            protocol_fees,
            fund_fees,
            creator_fees,
            ..
        } = svm.pool_state(pool.address);
        Self {
            input_vault: svm.balance(vaults.token_0),
            output_vault: svm.balance(vaults.token_1),
            fees: [protocol_fees, fund_fees, creator_fees],
        }
    }
}

/// Of the swaps that are given out, the most that are refused in all, percent. Two random pools refuse 85 % of them, mostly for
/// the same reasons.
const MOST_REFUSED: u32 = 38;

/// The same for one kind of refusal: rare ones are all kept.
const MOST_OF_A_KIND: u32 = 5;

/// An endless row of random swaps through two pools, the same for the same seed: pools, amounts and refusals are those of
/// [`RandomSwaps`], but for the refusals that are common.
pub struct RandomRoutes {
    random: RandomSwaps,
    given: Given,
}

/// What was given out.
#[derive(Default)]
struct Given {
    swaps: u32,
    refused: u32,
    kinds: HashMap<Refuser, u32>,
}

impl Given {
    /// Whether a swap of this outcome is given out; counts it then.
    fn takes(&mut self, outcome: Result<(), Refuser>) -> bool {
        if let Err(kind) = outcome {
            let of_kind = self.kinds.entry(kind).or_default();
            let share = |count: u32| count.saturating_mul(100) / self.swaps.max(1);
            if *of_kind > 0
                && (share(*of_kind) >= MOST_OF_A_KIND || share(self.refused) >= MOST_REFUSED)
            {
                return false;
            }
            *of_kind += 1;
            self.refused += 1;
        }
        self.swaps += 1;
        true
    }
}

/// An endless row of random swaps through two pools of the input that an exact output was found to cost, with that output
/// as the minimum, from the same pools, the same for the same seed.
pub struct RandomRoutedReturns(RandomRoutes);

impl RandomRoutes {
    /// The row of this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self {
            random: RandomSwaps::from_seed(seed),
            given: Given::default(),
        }
    }

    /// Two pools with a token in common.
    fn market(&mut self) -> ([PoolSnapshot; 2], Clock) {
        let first = self.random.snapshot();
        let mut second = self.random.snapshot();
        second.mints.token_0 = Arc::clone(&first.mints.token_1);
        let program = first.pool.token_programs.token_1;
        Arc::make_mut(&mut second.pool).token_programs.token_0 = program;
        let clock = Clock {
            epoch: EPOCH,
            unix_timestamp: UNIX_TIMESTAMP,
        };
        ([first, second], clock)
    }
}

impl RandomRoutedReturns {
    /// The row of this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(RandomRoutes::from_seed(seed))
    }
}

impl Iterator for RandomRoutes {
    type Item = RoutedSwap;

    fn next(&mut self) -> Option<RoutedSwap> {
        loop {
            let swap = self.candidate();
            if self.given.takes(swap.predict().map(drop)) {
                return Some(swap);
            }
        }
    }
}

impl RandomRoutes {
    fn candidate(&mut self) -> RoutedSwap {
        let (pools, clock) = self.market();
        // A mint never has more than 2^64 − 1 units, the vault's and the user's together.
        let [first, _] = &pools;
        let most = u64::MAX - first.vault_amounts.token_0.get();
        let amount_in = if self.random.chance(2) {
            0
        } else {
            self.random.magnitude(most)
        };
        let mut swap = RoutedSwap {
            pools,
            clock,
            amount_in,
            minimum_out: 1,
        };
        if let (true, Ok(routed)) = (self.random.chance(40), swap.predict()) {
            // At what is paid, one below, and one above.
            let step = self.random.0.random_range(0..=2);
            let minimum = routed.received.saturating_add(step).saturating_sub(1);
            swap.minimum_out = minimum.max(1);
        }
        swap
    }
}

impl Iterator for RandomRoutedReturns {
    type Item = RoutedSwap;

    fn next(&mut self) -> Option<RoutedSwap> {
        loop {
            let (pools, clock) = self.0.market();
            let [first, second] = &pools;
            let most = u64::MAX - first.vault_amounts.token_0.get();
            let minimum_out = self.0.random.magnitude(second.vault_amounts.token_1.get());
            let mut swap = RoutedSwap {
                pools,
                clock,
                amount_in: 0,
                minimum_out,
            };
            let quote = quote_two_hops_exact_out(swap.hops(), Amount::new(minimum_out), &clock);
            // One that would take more than can be held has an outcome on no chain.
            if let Some(quote) = quote
                .ok()
                .filter(|quote| quote.first.amount_in.get() <= most)
            {
                swap.amount_in = quote.first.amount_in.get();
                return Some(swap);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn most_routes_pay_and_no_kind_of_refusal_is_lost() {
        const CASES: usize = 20_000;
        let mut raw = RandomRoutes::from_seed(1);
        let refusals = (0..CASES).filter_map(|_| raw.candidate().predict().err());
        let all: HashSet<Refuser> = refusals.collect();
        let given = RandomRoutes::from_seed(1).take(CASES);
        let refused: Vec<Refuser> = given.filter_map(|swap| swap.predict().err()).collect();
        assert!(refused.len() * 100 <= CASES * 40, "{}", refused.len());
        let kinds: HashSet<Refuser> = refused.into_iter().collect();
        assert!(kinds.is_superset(&all), "{all:?} but {kinds:?}");
        assert!(kinds.len() >= 5, "{kinds:?}");
    }
}
