//! A chain for calibration: executed swaps again and again, with the units that the formula says, times a factor that the
//! test sets. What each used is read from logs as a validator writes them.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use cpmm::{
    Amount, Clock, Direction, ExactInQuote, PerToken, PoolSnapshot, SWAP_EVENT_DISCRIMINATOR,
    SwapOperands,
    fixtures::{ExecutedSwap, executed_compute_units, executed_swaps},
    ids,
};
use solana_pubkey::Pubkey;

use super::known;
use crate::compute_units::{Calibration, Limit, Profile, Sample, SwapShape, exchange_calls};

/// Swaps that others build and land, each second; beside them one is ours.
const OF_OTHERS: u64 = 4;

/// From the building of our transactions to their landing, seconds.
pub const LANDS_AFTER: u64 = 10;

const POOLS: u64 = 200;

/// A swap with the pool and the numbers of an executed one.
#[derive(Clone)]
pub struct Trade {
    snapshot: Arc<PoolSnapshot>,
    clock: Clock,
    /// The exchange's, but for the address of the pool.
    event: Vec<u8>,
    pub shape: SwapShape,
    pub modelled: u32,
}

impl Trade {
    fn of(swap: &ExecutedSwap) -> Self {
        let (mut snapshot, direction, clock) = (swap.snapshot(), swap.direction(), swap.clock());
        let mints = PerToken::new(Pubkey::from([1; 32]), Pubkey::from([2; 32]));
        Arc::make_mut(&mut snapshot.pool).mints = mints;
        let quote = snapshot
            .quote_exact_in(direction, Amount::new(swap.amount_in), &clock)
            .expect("it paid");
        let operands = SwapOperands::from(&quote);
        let (shape, modelled) = Profile::MAINNET.of_swap(&snapshot, direction, &operands, &clock);
        Self {
            event: event(&quote, direction, &mints),
            snapshot: Arc::new(snapshot),
            clock,
            shape,
            modelled,
        }
    }

    /// What Sluice reads from the logs of a swap like this one through `pool`, which used so many units.
    fn sample(&self, pool: Pubkey, used: u64) -> Sample {
        let mut event = self.event.clone();
        event[8..40].copy_from_slice(pool.as_array());
        let (exchange, event) = (ids::PROGRAM_ID, BASE64_STANDARD.encode(event));
        let logs = [
            format!("Program {exchange} invoke [1]"),
            format!("Program data: {event}"),
            format!("Program {exchange} consumed {used} of 200000 compute units"),
            format!("Program {exchange} success"),
        ];
        let (calls, _) = exchange_calls(&logs, &exchange);
        let found = |_: &Pubkey| Some((Arc::clone(&self.snapshot), self.clock));
        let sample = calls[0].sample(&Profile::MAINNET, found).expect("a sample");
        assert_eq!((sample.pool, sample.modelled), (pool, self.modelled));
        sample
    }
}

fn event(quote: &ExactInQuote, direction: Direction, mints: &PerToken<Pubkey>) -> Vec<u8> {
    let amounts = |amounts: &[Amount]| -> Vec<u8> {
        amounts
            .iter()
            .flat_map(|amount| amount.get().to_le_bytes())
            .collect()
    };
    let in_net = quote.amount_in.saturating_sub(quote.input_transfer_fee);
    let moved = [
        quote.reserve_in,
        quote.reserve_out,
        in_net,
        quote.amount_out,
        quote.input_transfer_fee,
        quote.output_transfer_fee,
    ];
    [
        &SWAP_EVENT_DISCRIMINATOR[..],
        &[0; 32],
        &amounts(&moved),
        // The input is what was fixed.
        &[1],
        direction.input_ref(mints).as_array(),
        direction.output_ref(mints).as_array(),
        &amounts(&[quote.trade_fee, quote.creator_fee]),
        &[u8::from(quote.creator_fee_on_input)],
    ]
    .concat()
}

fn trades() -> Vec<Trade> {
    let executed = executed_swaps().into_iter().zip(executed_compute_units());
    let paid = executed.filter(|(_, used)| used.is_some());
    paid.map(|(swap, _)| Trade::of(&swap)).collect()
}

pub fn pool(number: u64) -> Pubkey {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Pubkey::new_from_array(bytes)
}

/// One of our transactions, on its way.
struct Built {
    at: u64,
    pool: u64,
    trade: usize,
    limit: Limit,
}

/// One of our transactions that has landed.
#[derive(Clone, Copy)]
pub struct Landed {
    built_at: u64,
    pub pool: u64,
    /// Limit over used, thousandths; below 1,000 it ran out.
    pub over: i64,
}

/// The chain, and Sluice that builds some of its transactions.
pub struct Chain {
    pub trades: Vec<Trade>,
    pub calibration: Calibration,
    /// The most by which a swap uses less than the factor says, thousandths.
    less: u64,
    seed: u64,
    waiting: VecDeque<Built>,
    landed: Vec<Landed>,
}

impl Chain {
    /// One on which swaps use what the formula says.
    pub fn new() -> Self {
        Self::varying_by(0)
    }

    /// One on which they use up to so much less, thousandths.
    pub fn varying_by(less: u64) -> Self {
        Self {
            trades: trades(),
            calibration: known(Duration::ZERO),
            less,
            seed: 1,
            waiting: VecDeque::new(),
            landed: Vec::new(),
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        // xorshift64*
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
    }

    /// A pool, and one of its trades: it has one pair of tokens, and so one of few.
    fn pick(&mut self) -> (u64, usize) {
        let number = self.random(POOLS);
        let of_pool = number.wrapping_mul(31) + POOLS * self.random(5);
        let len = u64::try_from(self.trades.len()).expect("few");
        (number, usize::try_from(of_pool % len).expect("few"))
    }

    /// Lets time pass; `factor` says what a swap of this pool uses over the model, thousandths.
    pub fn run(&mut self, seconds: std::ops::Range<u64>, factor: impl Fn(u64) -> u64) {
        for second in seconds {
            let now = Duration::from_secs(second);
            self.build(second);
            while self
                .waiting
                .front()
                .is_some_and(|built| built.at + LANDS_AFTER <= second)
            {
                let built = self.waiting.pop_front().expect("there is one");
                let used = self.land(built.pool, built.trade, factor(built.pool), now);
                self.landed.push(Landed {
                    built_at: built.at,
                    pool: built.pool,
                    over: i64::from(built.limit.units) * 1_000 / i64::from(used),
                });
            }
            for _ in 0..OF_OTHERS {
                let (number, trade) = self.pick();
                self.land(number, trade, factor(number), now);
            }
        }
    }

    /// One of ours; the limit is of what was seen before this second.
    fn build(&mut self, second: u64) {
        let (number, trade) = self.pick();
        let Trade {
            shape, modelled, ..
        } = self.trades[trade];
        let now = Duration::from_secs(second);
        let limit = self.calibration.limit(&pool(number), shape, modelled, now);
        self.waiting.push_back(Built {
            at: second,
            pool: number,
            trade,
            limit,
        });
    }

    /// What it used. One that ran out is in the logs as failed, and teaches nothing; another program's would not have.
    fn land(&mut self, number: u64, trade: usize, factor: u64, now: Duration) -> u32 {
        let less = self.random(self.less + 1);
        let trade = &self.trades[trade];
        let used = u64::from(trade.modelled) * factor * (1_000 - less) / 1_000_000;
        let sample = trade.sample(pool(number), used);
        self.calibration.observe(&sample, now);
        sample.used
    }

    pub fn built(&self, seconds: std::ops::Range<u64>) -> impl Iterator<Item = &Landed> {
        self.landed
            .iter()
            .filter(move |landed| seconds.contains(&landed.built_at))
    }

    pub fn shorts(&self, seconds: std::ops::Range<u64>) -> usize {
        self.built(seconds)
            .filter(|landed| landed.over < 1_000)
            .count()
    }

    /// Of limit over used, thousandths above 1,000.
    pub fn median(&self, seconds: std::ops::Range<u64>) -> i64 {
        let mut over: Vec<i64> = self.built(seconds).map(|landed| landed.over).collect();
        over.sort_unstable();
        over[over.len() / 2] - 1_000
    }
}
