//! Units of the exchange in the chain in memory: what the API would allow a swap there, and what swaps teach it.

use std::{sync::Arc, time::Duration};

use cpmm::{
    AmmConfig, Amount, Clock, Direction, Mint, PerToken, PoolSnapshot, SwapOperands, TokenAccount,
    ids, instruction::SwapAccounts,
};
use sluice_testkit::{
    random_swaps::Terms,
    svm::{EPOCH, Svm, UNIX_TIMESTAMP},
};
use sluice_transaction::{
    Route, SwapTerms,
    compute_units::{Calibration, ExchangeUnits, Profile, Sample, exchange_calls},
};
use solana_pubkey::Pubkey;

use super::exchange;

/// A calibration of the exchange that the chain in memory runs.
pub struct Units {
    profile: Profile,
    calibration: Calibration,
    now: Duration,
}

impl Default for Units {
    fn default() -> Self {
        Self {
            profile: exchange().profile(),
            calibration: Calibration::new(Duration::ZERO),
            now: Duration::ZERO,
        }
    }
}

impl Units {
    /// What the API allows the exchange's part of a swap with these numbers.
    #[must_use]
    pub fn of(
        &self,
        pool: &Pubkey,
        snapshot: &PoolSnapshot,
        direction: Direction,
        operands: &SwapOperands,
        clock: &Clock,
    ) -> ExchangeUnits {
        let (shape, modelled) = self.profile.of_swap(snapshot, direction, operands, clock);
        let limit = self.calibration.limit(pool, shape, modelled, self.now);
        ExchangeUnits::of(modelled, limit)
    }

    /// What the API allows the exchange's part of a route in the pools as they are now.
    ///
    /// # Panics
    /// When the exchange would refuse it.
    #[must_use]
    pub fn of_route(&self, svm: &Svm, route: &Route, terms: SwapTerms) -> ExchangeUnits {
        let clock = Clock {
            epoch: EPOCH,
            unix_timestamp: UNIX_TIMESTAMP,
        };
        let hop = |accounts: &SwapAccounts, terms: &Terms| {
            let snapshot = snapshot(svm, accounts.pool_state);
            let direction = if snapshot.pool.mints.token_0 == accounts.input_mint {
                Direction::ZeroForOne
            } else {
                Direction::OneForZero
            };
            let operands = operands(&snapshot, direction, terms, &clock).expect("it pays");
            let pool = &accounts.pool_state;
            let units = self.of(pool, &snapshot, direction, &operands, &clock);
            (units, operands)
        };
        let exact_in = |amount_in| Terms::ExactIn {
            amount_in,
            minimum_amount_out: 1,
        };
        match route {
            Route::ExactIn(accounts) => hop(accounts, &exact_in(terms.amount_in)).0,
            Route::ExactOut(accounts) => {
                let exact_out = Terms::ExactOut {
                    maximum_amount_in: terms.amount_in,
                    amount_out: terms.minimum_out,
                };
                hop(accounts, &exact_out).0
            }
            Route::TwoHops(accounts) => {
                let (first, paid) = hop(&accounts.first, &exact_in(terms.amount_in));
                let between = paid.amount_out.saturating_sub(paid.output_transfer_fee);
                first.and(hop(&accounts.second, &exact_in(between.get())).0)
            }
        }
    }

    /// Takes in a transaction of one swap through this pool.
    ///
    /// # Panics
    /// When the logs do not show the swap.
    pub fn observe(
        &mut self,
        logs: &[String],
        snapshot: &Arc<PoolSnapshot>,
        clock: Clock,
    ) -> Sample {
        let (calls, _) = exchange_calls(logs, &ids::PROGRAM_ID);
        let sample = calls
            .first()
            .and_then(|call| call.sample(&self.profile, |_| Some((Arc::clone(snapshot), clock))));
        let sample = sample.expect("a swap with its event");
        self.now += Duration::from_secs(1);
        self.calibration.observe(&sample, self.now);
        sample
    }
}

/// The numbers of a swap; `None` where the exchange would refuse it.
#[must_use]
pub fn operands(
    snapshot: &PoolSnapshot,
    direction: Direction,
    terms: &Terms,
    clock: &Clock,
) -> Option<SwapOperands> {
    match terms {
        Terms::ExactIn { amount_in, .. } => snapshot
            .quote_exact_in(direction, Amount::new(*amount_in), clock)
            .ok()
            .map(|quote| SwapOperands::from(&quote)),
        Terms::ExactOut { amount_out, .. } => snapshot
            .quote_exact_out(direction, Amount::new(*amount_out), clock)
            .ok()
            .map(|quote| SwapOperands::from(&quote)),
    }
}

/// The pool at this address with all that a quote of it depends on.
///
/// # Panics
/// When an account is none of its kind.
#[must_use]
pub fn snapshot(svm: &Svm, pool: Pubkey) -> PoolSnapshot {
    let pool = svm.pool_state(pool);
    let config = AmmConfig::decode(&svm.account(pool.amm_config).data).expect("a configuration");
    let vault = |address| {
        let vault = TokenAccount::decode(&svm.account(address).data).expect("a vault");
        Amount::new(vault.amount)
    };
    let mint = |address| Arc::new(Mint::decode(&svm.account(address).data).expect("a mint"));
    PoolSnapshot {
        vault_amounts: PerToken::new(vault(pool.vaults.token_0), vault(pool.vaults.token_1)),
        vaults_frozen: false,
        mints: PerToken::new(mint(pool.mints.token_0), mint(pool.mints.token_1)),
        config: Arc::new(config),
        pool: Arc::new(pool),
    }
}
