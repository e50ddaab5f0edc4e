//! First fill at a provider, in virtual time: as many calls as 200,000 pools need, each as long as a busy provider takes.
//!
//! Jobs, pace and deadlines are those of a read; only the calls are not made, and no time passes that would have to be waited for.
//! What becomes of a call, and when, the played provider says: the same that simulations meet over HTTP, where it answers in a
//! fraction of the time, and pauses and deadlines are as they are here.

use std::{collections::BTreeMap, time::Duration};

use sluice_testkit::rpc_node::{Gateway, Provider, ProviderCounts, Verdict};
use solana_pubkey::Pubkey;
use tokio::time::Instant;

use crate::settings::ReadLimits;

use super::{
    error::SnapshotError,
    jobs::{CallTarget, Job, Jobs, Next},
    pace::Pace,
    part::Part,
    reading::MAX_ACCOUNTS_PER_CALL,
};

/// More pools than the exchange has.
const POOLS: usize = 200_000;

/// Parts in which a list is read that is too long as a whole.
const PARTS: usize = 256;

/// Accounts that a pool alone needs: its vaults and the mint that is no quote token.
const ACCOUNTS_PER_POOL: usize = 3;

/// How long a list takes a busy provider; other calls take up to as long.
const SLOWEST: Duration = Duration::from_secs(40);

/// What the faults may cost, as a multiple of the time without them.
const MOST: f64 = 3.0;

/// Without faults.
fn undisturbed(seed: u64) -> Provider {
    Provider {
        refuses_one_in: 0,
        drops_one_in: 0,
        slowest: SLOWEST,
        parallel: 24,
        most_listed: 20_000,
        seed,
    }
}

/// How a call ends that was made.
enum End {
    Refused(Option<Duration>),
    Late,
    Lost,
    Whole,
}

/// A read of everything, and the time in which it is.
struct Fill {
    jobs: Jobs,
    pace: Pace,
    limits: ReadLimits,
    gateway: Gateway,
    /// Calls under way by the time of their end, and a number that distinguishes those of one time.
    in_flight: BTreeMap<(Instant, u64), (Job, End)>,
    calls: u64,
    now: Instant,
    succeeded: Instant,
    /// Calls for pools that are not answered yet.
    listing: usize,
    /// Accounts for which there is no call yet.
    collected: usize,
    random: u32,
}

impl Fill {
    /// How long it takes at a provider, and what that did.
    fn at(provider: Provider) -> (Duration, ProviderCounts) {
        let (now, limits) = (Instant::now(), ReadLimits::default());
        let mut fill = Self {
            jobs: Jobs::default(),
            pace: Pace::new(limits.parallel_calls),
            limits,
            gateway: Gateway::new(provider),
            in_flight: BTreeMap::new(),
            calls: 0,
            now,
            succeeded: now,
            listing: 1,
            collected: 0,
            random: 1,
        };
        fill.jobs.add(CallTarget::Pools(Part::default()));
        fill.run();
        (fill.now - now, fill.gateway.counts())
    }

    fn run(&mut self) {
        loop {
            let next_at = loop {
                let in_flight = self.in_flight.len();
                match self.jobs.begin(&self.pace, in_flight, self.now) {
                    Ok(job) => self.call(job),
                    Err(next_at) => break next_at,
                }
            };
            let first = self.in_flight.first_key_value();
            let ends_at = first.map(|((at, _), _)| *at);
            let Some(at) = next_at.into_iter().chain(ends_at).min() else {
                return;
            };
            self.now = at;
            while let Some(over) = self
                .in_flight
                .first_entry()
                .filter(|each| each.key().0 <= at)
            {
                let (job, end) = over.remove();
                self.ended(job, &end);
            }
        }
    }

    fn call(&mut self, job: Job) {
        let lists = matches!(job.wanted, CallTarget::Pools(_));
        let (time, end) = match self.gateway.judge(lists) {
            Verdict::Refused(time, retry_after) => {
                let seconds = retry_after.map(|text| text.parse().expect("whole seconds"));
                (time, End::Refused(seconds.map(Duration::from_secs)))
            }
            Verdict::Passed { delay, .. } if delay > self.limits.idle_timeout => {
                (self.limits.idle_timeout, End::Late)
            }
            Verdict::Passed { delay, drops: true } => (delay, End::Lost),
            Verdict::Passed { delay, .. } => (delay, End::Whole),
        };
        self.calls += 1;
        let at = (self.now + time, self.calls);
        self.in_flight.insert(at, (job, end));
    }

    fn ended(&mut self, job: Job, end: &End) {
        const METHOD: &str = "getProgramAccounts";
        let nothing = String::new;
        if !matches!(end, End::Refused(_)) {
            self.gateway.ended();
        }
        let error = match end {
            End::Refused(retry_after) => {
                let random = self.random();
                self.pace.refused(self.now, *retry_after, random);
                return self.failed(
                    job,
                    SnapshotError::RateLimited {
                        method: METHOD,
                        message: nothing(),
                        retry_after: *retry_after,
                    },
                );
            }
            End::Late => SnapshotError::Late {
                method: METHOD,
                reason: nothing(),
            },
            End::Lost => SnapshotError::Lost {
                method: METHOD,
                reason: nothing(),
            },
            End::Whole if !self.is_sent(&job) => SnapshotError::TooLarge {
                method: METHOD,
                message: nothing(),
            },
            End::Whole => {
                self.pace.answered();
                self.succeeded = self.now;
                return self.answered(&job);
            }
        };
        self.pace.answered();
        self.failed(job, error);
    }

    /// Whether the provider sends an answer of this length.
    fn is_sent(&mut self, job: &Job) -> bool {
        let CallTarget::Pools(part) = &job.wanted else {
            return true;
        };
        let is_whole = *part == Part::default();
        let pools = if is_whole { POOLS } else { POOLS / PARTS };
        self.gateway.sends(pools)
    }

    fn answered(&mut self, job: &Job) {
        let CallTarget::Pools(_) = job.wanted else {
            return;
        };
        self.listing -= 1;
        self.collected += POOLS.div_ceil(PARTS) * ACCOUNTS_PER_POOL;
        while self.collected >= MAX_ACCOUNTS_PER_CALL || (self.listing == 0 && self.collected > 0) {
            let keys = self.collected.min(MAX_ACCOUNTS_PER_CALL);
            self.collected -= keys;
            self.jobs
                .add(CallTarget::Accounts(vec![Pubkey::default(); keys]));
        }
    }

    fn failed(&mut self, job: Job, error: SnapshotError) {
        let lists = matches!(job.wanted, CallTarget::Pools(_));
        let (fruitless, random) = (self.now - self.succeeded, self.random());
        match job.failed(error, fruitless, self.limits.patience(), random) {
            Next::GiveUp(error) => panic!("given up: {error}"),
            Next::Repeat(job, pause) => self.jobs.delay(job, self.now + pause),
            Next::Split(smaller) => {
                if lists {
                    self.listing += smaller.len() - 1;
                }
                for wanted in smaller {
                    self.jobs.add(wanted);
                }
            }
        }
    }

    /// A number that looks random, the same in every run.
    const fn random(&mut self) -> u32 {
        self.random = self
            .random
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223);
        self.random
    }
}

#[test]
fn a_third_refused_and_one_in_fifty_lost_cost_less_than_twice_the_time_again() {
    for seed in 1..=8 {
        let (calm, counts) = Fill::at(undisturbed(seed));
        let least = PARTS + POOLS * ACCOUNTS_PER_POOL / MAX_ACCOUNTS_PER_CALL;
        assert!(counts.passed >= least as u64, "{counts:?}");
        let (disturbed, counts) = Fill::at(Provider {
            refuses_one_in: 3,
            drops_one_in: 50,
            ..undisturbed(seed)
        });
        assert!(counts.refused > counts.passed / 3, "{counts:?}");
        assert!(counts.dropped > counts.passed / 75, "{counts:?}");
        let ratio = disturbed.as_secs_f64() / calm.as_secs_f64();
        assert!(
            ratio <= MOST,
            "{calm:?}, with faults {disturbed:?}: {counts:?}"
        );
        println!("seed {seed}: {calm:?}, with faults {disturbed:?}, {ratio:.2} times: {counts:?}");
    }
}
