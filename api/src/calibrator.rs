//! Calibrator: learns from the confirmed chain what the exchange's swaps use, and says what new ones may use.

mod kept;
mod task;

use std::time::{Duration, SystemTime};

use cpmm::SwapOperands;
use parking_lot::RwLock;
use service_kit::Clock;
use sluice_market::{Market, QuoteCommitment};
use sluice_transaction::{
    Exchange,
    compute_units::{
        Calibration, ExchangeUnits, Profile, Sample, SwapShape, Trigger, exchange_calls,
    },
};

use self::kept::Kept;
pub use self::task::{Sources, run};
use crate::{
    metrics::Metrics,
    pricing::{HopQuote, Priced, PricedHop},
};

/// See the module. Readers wait for no more than one swap to be taken in.
pub struct Calibrator {
    profile: Profile,
    clock: Clock,
    metrics: Metrics,
    calibration: RwLock<Calibration>,
}

impl Calibrator {
    /// Nothing learned yet of the program at the exchange's address.
    #[must_use]
    pub fn new(exchange: Exchange, clock: Clock, metrics: Metrics) -> Self {
        let calibration = Calibration::new(since_1970(&clock));
        show(&metrics, &calibration);
        Self {
            profile: exchange.profile(),
            clock,
            metrics,
            calibration: RwLock::new(calibration),
        }
    }

    /// What the exchange's part of a route may use.
    #[must_use]
    pub fn units(&self, priced: &Priced) -> ExchangeUnits {
        let first = self.hop(&priced.first);
        match &priced.second {
            Some(second) => first.and(self.hop(second)),
            None => first,
        }
    }

    /// Takes in that a swap through `hop` ran out of `units`. Of one that had less than it would be allowed now nothing is learned: who
    /// built it had it fail.
    pub fn ran_short(&self, hop: &PricedHop, units: u32) {
        let (shape, modelled) = self.modelled(hop);
        let (pool, now) = (hop.view.address, since_1970(&self.clock));
        let mut calibration = self.calibration.write();
        if units < calibration.limit(&pool, shape, modelled, now).units {
            return;
        }
        let sample = Sample {
            pool,
            shape,
            modelled,
            used: units,
        };
        let trigger = calibration.ran_short(&sample, units, now);
        show(&self.metrics, &calibration);
        drop(calibration);
        self.metrics.short_of_units();
        tracing::warn!(%pool, units, "a swap that was sent here ran out of compute units; more are allowed from now on");
        report(trigger);
    }

    fn modelled(&self, hop: &PricedHop) -> (SwapShape, u32) {
        let operands = match &hop.quote {
            HopQuote::ExactIn(quote) => SwapOperands::from(quote),
            HopQuote::ExactOut(quote) => SwapOperands::from(quote),
        };
        let view = &hop.view;
        self.profile
            .of_swap(&view.snapshot, hop.direction, &operands, &view.clock)
    }

    fn hop(&self, hop: &PricedHop) -> ExchangeUnits {
        let (shape, modelled) = self.modelled(hop);
        let now = since_1970(&self.clock);
        let limit = self
            .calibration
            .read()
            .limit(&hop.view.address, shape, modelled, now);
        ExchangeUnits::of(modelled, limit)
    }

    /// Takes in the logs of a transaction of the confirmed chain. Of a pool that the market does not have, and of all while
    /// it is not ready, nothing is learned.
    fn observe(&self, market: &Market, logs: &[String]) {
        let Ok(view) = market.view(QuoteCommitment::Confirmed) else {
            return;
        };
        let (calls, _) = exchange_calls(logs, &view.exchange().program);
        for call in calls {
            let sample = call.sample(&self.profile, |pool| {
                let pool = view.pool(pool)?;
                Some((pool.snapshot, pool.clock))
            });
            if let Some(sample) = sample {
                self.learn(&sample);
            }
        }
    }

    /// Takes in a swap. One that used more than a limit of the moment before would have failed, had it been built here.
    fn learn(&self, sample: &Sample) {
        let now = since_1970(&self.clock);
        let mut calibration = self.calibration.write();
        let limit = calibration.limit(&sample.pool, sample.shape, sample.modelled, now);
        if sample.used > limit.units {
            self.metrics.short_of_units();
        }
        let trigger = calibration.observe(sample, now);
        show(&self.metrics, &calibration);
        drop(calibration);
        report(trigger);
    }

    /// Takes in the slot in which the exchange was deployed last.
    fn deployed(&self, slot: u64) {
        let now = since_1970(&self.clock);
        let mut calibration = self.calibration.write();
        let trigger = calibration.deployed(slot, now);
        show(&self.metrics, &calibration);
        drop(calibration);
        report(trigger);
    }

    /// What is worth keeping, as text.
    fn kept(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Kept::new(
            &self.profile,
            &self.calibration.read().learned(),
        ))
    }

    /// Goes on from what an earlier process kept. What is about another profile, or cannot be read, is learned anew.
    fn restore(&self, text: &str) {
        match serde_json::from_str::<Kept>(text) {
            Ok(kept) => {
                if let Some(learned) = kept.learned(&self.profile) {
                    let now = since_1970(&self.clock);
                    let mut calibration = self.calibration.write();
                    *calibration = Calibration::restore(&learned, now);
                    show(&self.metrics, &calibration);
                }
            }
            Err(error) => tracing::warn!(%error, "learned compute units cannot be read"),
        }
    }
}

fn since_1970(clock: &Clock) -> Duration {
    clock
        .now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

fn show(metrics: &Metrics, calibration: &Calibration) {
    metrics.learned_units(calibration.learned());
}

fn report(trigger: Option<Trigger>) {
    match trigger {
        None => {}
        Some(Trigger::Deployed) => {
            tracing::warn!("the exchange was deployed anew; its compute units are learned anew");
        }
        Some(Trigger::Outliers) => tracing::warn!(
            "several pools use more compute units than the exchange did; they are learned anew"
        ),
    }
}
