//! Random swaps: predicted by the arithmetic and executed by the exchange's binary, the same for the same seed.

use std::sync::Arc;

use cpmm::{
    AmmConfig, Amount, Clock, Direction, FeeRate, Mint, PerToken, PoolSnapshot, PoolState,
    TokenProgram, TransferFee, TransferFeeConfig,
    fixtures::{ExecutedSwap, Outcome, blank_pool, published_config},
    instruction::{swap_base_input, swap_base_output},
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use crate::{
    pool::PoolSpec,
    svm::{EPOCH, Refused, Svm, UNIX_TIMESTAMP},
};

/// One swap with everything that it depends on.
#[derive(Clone, Debug)]
pub struct Swap {
    /// The pool. Its addresses are filled in when it is opened.
    pub snapshot: PoolSnapshot,
    /// The chain's time.
    pub clock: Clock,
    /// Which token goes in.
    pub direction: Direction,
    /// What the caller asks for.
    pub terms: Terms,
}

/// What the caller of a swap fixes and what it bounds, smallest units.
#[derive(Clone, Copy, Debug)]
pub enum Terms {
    /// An exact input.
    ExactIn {
        /// How much goes in.
        amount_in: u64,
        /// The least that the caller accepts.
        minimum_amount_out: u64,
    },
    /// An exact output.
    ExactOut {
        /// The most that the caller pays.
        maximum_amount_in: u64,
        /// How much must arrive.
        amount_out: u64,
    },
}

/// What a swap did.
#[derive(Debug, PartialEq, Eq)]
pub struct Traded {
    /// What left the user's account; nothing when the exchange refused.
    pub spent: u64,
    /// All else.
    pub outcome: Outcome,
}

impl From<&ExecutedSwap> for Swap {
    fn from(swap: &ExecutedSwap) -> Self {
        Self {
            snapshot: swap.snapshot(),
            clock: swap.clock(),
            direction: swap.direction(),
            terms: Terms::ExactIn {
                amount_in: swap.amount_in,
                minimum_amount_out: swap.minimum_amount_out,
            },
        }
    }
}

impl Swap {
    /// What the arithmetic says; `None` for a refusal that has no error code of the exchange.
    #[must_use]
    pub fn predict(&self) -> Option<Traded> {
        let (snapshot, direction) = (&self.snapshot, self.direction);
        let (offered, outcome) = match self.terms {
            Terms::ExactIn {
                amount_in,
                minimum_amount_out,
            } => {
                let quote = snapshot.quote_exact_in(direction, Amount::new(amount_in), &self.clock);
                let outcome = Outcome::predicted(snapshot, direction, quote, minimum_amount_out);
                (amount_in, outcome?)
            }
            Terms::ExactOut {
                maximum_amount_in,
                amount_out,
            } => {
                let quote =
                    snapshot.quote_exact_out(direction, Amount::new(amount_out), &self.clock);
                let offered = quote.map_or(0, |quote| quote.amount_in.get());
                let outcome =
                    Outcome::predicted_exact_out(snapshot, direction, quote, maximum_amount_in);
                (offered, outcome?)
            }
        };
        let spent = match outcome {
            Outcome::Ok { .. } => offered,
            Outcome::ErrorCode(_) => 0,
        };
        Some(Traded { spent, outcome })
    }

    /// The most that a trader can hold of the input: a mint never has more than 2^64 − 1 units, the vault's and the user's
    /// together, and token programs that rely on it do not check their sums.
    fn most_held(&self) -> u64 {
        u64::MAX - self.direction.input(&self.snapshot.vault_amounts).get()
    }

    /// Has the exchange execute it, without the guard.
    ///
    /// # Errors
    /// Why the transaction failed.
    pub fn execute(&self, svm: &mut Svm) -> Result<Traded, Refused> {
        svm.set_time(self.clock.epoch, self.clock.unix_timestamp);
        let pool = svm.open("parity", &PoolSpec::like(self.snapshot.clone()));
        let held = match self.terms {
            Terms::ExactIn { amount_in, .. } => amount_in,
            // All that the vault leaves: what a swap is refused for must not be that the trader is poor.
            Terms::ExactOut { .. } => self.most_held(),
        };
        let amounts = match self.direction {
            Direction::ZeroForOne => PerToken::new(held, 0),
            Direction::OneForZero => PerToken::new(0, held),
        };
        let user = svm.fund("trader", &pool, amounts);
        let accounts = pool.swap_accounts(&user, self.direction);
        let swap = match self.terms {
            Terms::ExactIn {
                amount_in,
                minimum_amount_out,
            } => swap_base_input(&accounts, amount_in, minimum_amount_out),
            Terms::ExactOut {
                maximum_amount_in,
                amount_out,
            } => swap_base_output(&accounts, maximum_amount_in, amount_out),
        };
        svm.send(&[swap], &[&user.keypair])?;
        let state = svm.pool_state(pool.address);
        Ok(Traded {
            spent: held - svm.balance(accounts.input_token_account),
            outcome: Outcome::Ok {
                received: svm.balance(accounts.output_token_account),
                input_vault: svm.balance(accounts.input_vault),
                output_vault: svm.balance(accounts.output_vault),
                protocol_fees: state.protocol_fees,
                fund_fees: state.fund_fees,
                creator_fees: state.creator_fees,
            },
        })
    }
}

/// An endless row of random swaps of an exact input, the same for the same seed. Both token programs, every fee mode,
/// balances from 1 to 2^63, amounts up to what the token programs can hold, and every refusal.
pub struct RandomSwaps(pub(crate) StdRng);

/// An endless row of random swaps for an exact output, from the same pools, the same for the same seed.
pub struct RandomExactOutSwaps(RandomSwaps);

impl RandomExactOutSwaps {
    /// The row of this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(RandomSwaps::from_seed(seed))
    }
}

impl Iterator for RandomExactOutSwaps {
    type Item = Swap;

    fn next(&mut self) -> Option<Swap> {
        loop {
            let swap = self.swap();
            // One that would take more than can be held has an outcome on no chain.
            if swap
                .predict()
                .is_none_or(|traded| traded.spent <= swap.most_held())
            {
                return Some(swap);
            }
        }
    }
}

impl RandomExactOutSwaps {
    fn swap(&mut self) -> Swap {
        let random = &mut self.0;
        let (snapshot, direction, clock) = random.market();
        // Mostly what the pool holds; now and then more than that, and nothing.
        let held = direction.output(&snapshot.vault_amounts).get();
        let amount_out = match random.0.random_range(0..50) {
            0 => 0,
            1 => random.magnitude(u64::MAX),
            _ => random.magnitude(held),
        };
        let mut swap = Swap {
            snapshot,
            clock,
            direction,
            terms: Terms::ExactOut {
                maximum_amount_in: u64::MAX,
                amount_out,
            },
        };
        let paid = |traded: &Traded| matches!(traded.outcome, Outcome::Ok { .. });
        if let (true, Some(traded)) = (random.chance(40), swap.predict().filter(paid)) {
            // At what is spent, one below, and one above.
            let step = random.0.random_range(0..=2);
            swap.terms = Terms::ExactOut {
                maximum_amount_in: traded.spent.saturating_add(step).saturating_sub(1),
                amount_out,
            };
        }
        swap
    }
}

/// An endless row of swaps of the exact input that an exact output was found to cost, with that output as the minimum:
/// [`RandomExactOutSwaps`] turned round, without those that are refused.
pub struct RandomReturns(RandomExactOutSwaps);

impl RandomReturns {
    /// The row of this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(RandomExactOutSwaps::from_seed(seed))
    }
}

impl Iterator for RandomReturns {
    type Item = Swap;

    fn next(&mut self) -> Option<Swap> {
        self.0.find_map(|swap| {
            let Terms::ExactOut { amount_out, .. } = swap.terms else {
                return None;
            };
            let traded = swap.predict()?;
            matches!(traded.outcome, Outcome::Ok { .. }).then_some(Swap {
                terms: Terms::ExactIn {
                    amount_in: traded.spent,
                    minimum_amount_out: amount_out,
                },
                ..swap
            })
        })
    }
}

impl RandomSwaps {
    /// The row of this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// 1 to `max`, every order of magnitude equally likely: what makes the edges common.
    pub(crate) fn magnitude(&mut self, max: u64) -> u64 {
        let bits = self.0.random_range(0..=max.ilog2());
        let top = max.min(u64::MAX >> (63 - bits));
        self.0.random_range((1 << bits)..=top)
    }

    pub(crate) fn chance(&mut self, percent: u32) -> bool {
        self.0.random_ratio(percent, 100)
    }

    fn rate(&mut self) -> FeeRate {
        let usual = [0, 1, 100, 500, 2_500, 10_000, 120_000, 999_999, 1_000_000];
        let random = self.0.random_range(0..=1_000_000);
        FeeRate(*usual.choose(&mut self.0).unwrap_or(&random))
    }

    fn transfer_fee(&mut self, epoch: u64) -> TransferFee {
        let usual = [0, 1, 50, 500, 5_000, 9_999, 10_000];
        let caps = [0, 1, self.magnitude(u64::MAX), u64::MAX];
        TransferFee {
            epoch,
            maximum_fee: *caps.choose(&mut self.0).unwrap_or(&0),
            basis_points: *usual.choose(&mut self.0).unwrap_or(&0),
        }
    }

    fn token(&mut self) -> (TokenProgram, Mint) {
        let plain = Mint::plain(6, u64::MAX);
        if self.chance(40) {
            return (TokenProgram::Spl, plain);
        }
        let transfer_fee = self.chance(60).then(|| {
            // Announced for an epoch before, at, or after the present one.
            let newer = EPOCH + self.0.random_range(0..=2) - 1;
            TransferFeeConfig {
                older: self.transfer_fee(EPOCH - 10),
                newer: self.transfer_fee(newer),
            }
        });
        let mint = Mint {
            transfer_fee,
            ..plain
        };
        (TokenProgram::Token2022, mint)
    }

    /// Fees booked against a vault: usually a small part of it, now and then more than it holds.
    fn booked(&mut self, vault: u64) -> u64 {
        match self.0.random_range(0..20) {
            0 => self.magnitude(u64::MAX),
            1..10 => 0,
            _ => self.0.random_range(0..=vault / 10),
        }
    }

    fn pool(&mut self, vaults: PerToken<u64>) -> PoolState {
        let mut booked = || PerToken::new(self.booked(vaults.token_0), self.booked(vaults.token_1));
        let (protocol_fees, fund_fees, creator_fees) = (booked(), booked(), booked());
        let now = u64::try_from(UNIX_TIMESTAMP).unwrap_or(0);
        PoolState {
            protocol_fees,
            fund_fees,
            creator_fees,
            status: if self.chance(4) {
                4
            } else {
                self.0.random_range(0..4)
            },
            open_time: if self.chance(4) {
                now + 1
            } else {
                self.0.random_range(0..=now)
            },
            creator_fee_on: if self.chance(2) {
                3
            } else {
                self.0.random_range(0..3)
            },
            enable_creator_fee: self.chance(50),
            ..blank_pool()
        }
    }

    pub(crate) fn snapshot(&mut self) -> PoolSnapshot {
        let vaults = PerToken::new(self.magnitude(1 << 63), self.magnitude(1 << 63));
        let ((program_0, mint_0), (program_1, mint_1)) = (self.token(), self.token());
        PoolSnapshot {
            pool: Arc::new(PoolState {
                token_programs: PerToken::new(program_0.id(), program_1.id()),
                ..self.pool(vaults)
            }),
            config: Arc::new(AmmConfig {
                trade_fee_rate: self.rate(),
                protocol_fee_rate: self.rate(),
                fund_fee_rate: self.rate(),
                creator_fee_rate: self.rate(),
                ..published_config()
            }),
            vault_amounts: PerToken::new(Amount::new(vaults.token_0), Amount::new(vaults.token_1)),
            vaults_frozen: false,
            mints: PerToken::new(Arc::new(mint_0), Arc::new(mint_1)),
        }
    }

    fn market(&mut self) -> (PoolSnapshot, Direction, Clock) {
        let snapshot = self.snapshot();
        let direction = if self.chance(50) {
            Direction::ZeroForOne
        } else {
            Direction::OneForZero
        };
        let clock = Clock {
            epoch: EPOCH,
            unix_timestamp: UNIX_TIMESTAMP,
        };
        (snapshot, direction, clock)
    }
}

impl Iterator for RandomSwaps {
    type Item = Swap;

    fn next(&mut self) -> Option<Swap> {
        let (snapshot, direction, clock) = self.market();
        // A mint never has more than 2^64 − 1 units, the vault's and the user's together.
        let most = u64::MAX - direction.input(&snapshot.vault_amounts).get();
        let amount_in = if self.chance(2) {
            0
        } else {
            self.magnitude(most)
        };
        let terms = |minimum_amount_out| Terms::ExactIn {
            amount_in,
            minimum_amount_out,
        };
        let mut swap = Swap {
            snapshot,
            clock,
            direction,
            terms: terms(0),
        };
        let received = |traded: Traded| match traded.outcome {
            Outcome::Ok { received, .. } => Some(received),
            Outcome::ErrorCode(_) => None,
        };
        if let (true, Some(received)) = (self.chance(40), swap.predict().and_then(received)) {
            // At what is paid, one below, and one above.
            let step = self.0.random_range(0..=2);
            swap.terms = terms(received.saturating_add(step).saturating_sub(1));
        }
        Some(swap)
    }
}
