//! Random scripts of forks, deaths, writes and faults, played against the model.
//!
//! The same seed makes the same script; only the moments at which it meets the market differ.

use std::{collections::BTreeSet, time::Duration};

use cpmm::ids;
use futures::StreamExt;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use sluice_geyser::{Body, SlotStatus, scripted::Code};
use sluice_testkit::{
    accounts::Content,
    rpc_node::Fault,
    scripted_chain::Message,
    scripted_pools::{self, ScriptedPool, Token},
    yellowstone_server::ReplayPolicy,
};
use tokio::time::sleep;

use super::{GENESIS, Scenario};

/// Steps of one script: enough for several faults to meet, few enough that a failure can be read.
const STEPS: u32 = 60;

/// Longest pause between two steps, microseconds. A lost stream is opened again after some ten steps, so that faults
/// meet a market in every state.
const LONGEST_PAUSE: u64 = 8_000;

/// Plays the script of this seed, and lets the chain go on until the market equals the model.
///
/// # Panics
/// When the market differs from the model, or a reader saw what never was.
pub async fn explore(seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let weather = Weather::draw(&mut rng);
    let scenario = if rng.random_bool(0.8) {
        Scenario::ready().await
    } else {
        Scenario::start().await
    };
    let bank_ids = rng.random_bool(0.5);
    let server = &scenario.server;
    server.configure(|settings| settings.bank_ids = bank_ids);
    let mut script = Exploration {
        pools: scenario.exchange.pools.clone(),
        scenario,
        rng,
        weather,
        open: BTreeSet::new(),
        closed: BTreeSet::new(),
    };
    for _ in 0..STEPS {
        script.step();
        let pause = script.rng.random_range(0..LONGEST_PAUSE);
        sleep(Duration::from_micros(pause)).await;
    }
    script.finish().await;
}

/// How likely things are in one script, in parts of a hundred.
struct Weather {
    forks: u32,
    deaths: u32,
    stream_faults: u32,
    node_faults: u32,
    repeats: u32,
}

impl Weather {
    fn draw(rng: &mut StdRng) -> Self {
        let mut one_of = |likely: [u32; 3]| *likely.choose(rng).unwrap_or(&0);
        Self {
            forks: one_of([0, 10, 40]),
            deaths: one_of([0, 3, 8]),
            stream_faults: one_of([0, 3, 8]),
            node_faults: one_of([0, 2, 10]),
            repeats: one_of([0, 5, 15]),
        }
    }
}

struct Exploration {
    scenario: Scenario,
    rng: StdRng,
    weather: Weather,
    pools: Vec<ScriptedPool>,
    /// Slots that are not frozen yet.
    open: BTreeSet<u64>,
    /// Open slots that have children: they are complete, and only the word of it is missing.
    closed: BTreeSet<u64>,
}

impl Exploration {
    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    fn step(&mut self) {
        if self.chance(self.weather.stream_faults) {
            self.break_stream();
        }
        if self.chance(self.weather.node_faults) {
            self.break_node();
        }
        if self.chance(self.weather.deaths) {
            self.kill();
        }
        if self.chance(self.weather.repeats) {
            self.repeat();
        }
        match self.rng.random_range(0..100) {
            0..45 => {
                let slot = self.open();
                self.write_some(slot);
                self.seal(slot);
            }
            45..55 => {
                let slot = self.open();
                self.write_some(slot);
            }
            55..70 => {
                if let Some(slot) = self.any_open(false) {
                    self.write_some(slot);
                }
            }
            70..85 => {
                if let Some(slot) = self.any_open(true) {
                    self.seal(slot);
                }
            }
            _ => self.confirm(),
        }
    }

    /// Opens a slot, usually on the best one.
    fn open(&mut self) -> u64 {
        let forks = self.chance(self.weather.forks);
        let parent = self.any_base(forks);
        if self.open.contains(&parent) {
            self.closed.insert(parent);
        }
        if self.chance(5) {
            self.scenario.epoch += 1;
        }
        let skipped = u64::from(self.chance(10));
        let slot = self.scenario.open_after(parent, skipped);
        self.open.insert(slot);
        slot
    }

    /// A slot to build on: not dead, and on the confirmed fork.
    fn any_base(&mut self, forks: bool) -> u64 {
        let record = self.scenario.chain.lock();
        let reported = &record.statuses;
        let best = reported.processed_slot();
        if !forks {
            return best;
        }
        let (tree, void) = (reported.tree(reported.confirmed_slot()), reported.void());
        let bases: Vec<u64> = tree.difference(&void).copied().collect();
        drop(record);
        *bases.choose(&mut self.rng).unwrap_or(&best)
    }

    fn any_open(&mut self, even_closed: bool) -> Option<u64> {
        let open = self.open.iter().copied();
        let open: Vec<u64> = open
            .filter(|slot| even_closed || !self.closed.contains(slot))
            .collect();
        open.choose(&mut self.rng).copied()
    }

    fn seal(&mut self, slot: u64) {
        self.open.remove(&slot);
        self.closed.remove(&slot);
        if self.chance(20) {
            self.scenario
                .status(slot, SlotStatus::FirstShredReceived, None);
            self.scenario.status(slot, SlotStatus::Completed, None);
        }
        self.scenario.seal(slot);
    }

    fn write_some(&mut self, slot: u64) {
        for _ in 0..self.rng.random_range(0..4) {
            let pool = *self.pools.choose(&mut self.rng).expect("there are pools");
            self.write(slot, &pool);
        }
    }

    /// Some write that concerns this pool, whatever state it is in.
    fn write(&mut self, slot: u64, pool: &ScriptedPool) {
        let state = self.scenario.chain.lock().tree.state(slot);
        let exists = |key| {
            state
                .get(key)
                .is_some_and(|content| *content != Content::Closed)
        };
        let [vault_0, vault_1, itself] =
            [&pool.vaults.token_0, &pool.vaults.token_1, &pool.pool].map(exists);
        if !(vault_0 && vault_1 && itself) {
            return self.open_pool(slot, pool);
        }
        let amount = self.rng.random_range(1..1_000);
        match self.rng.random_range(0..20) {
            0 => self.close_pool(slot, pool),
            1 => self.scenario.change(slot, pool, |pool| pool.status ^= 4),
            2 => self
                .scenario
                .change(slot, pool, |pool| pool.open_time += amount),
            3 => self
                .scenario
                .set(slot, pool.config, scripted_pools::config(amount)),
            4 => self.change_fee(slot, pool),
            5 => self.new_pool(slot),
            6 => self.swap_out_of_order(slot, pool, amount),
            _ => self.scenario.swap(slot, pool, amount),
        }
    }

    fn open_pool(&mut self, slot: u64, pool: &ScriptedPool) {
        let mut accounts = pool.opening().to_vec();
        for token in [pool.tokens.token_0, pool.tokens.token_1] {
            let is_new = self
                .scenario
                .chain
                .lock()
                .tree
                .get(slot, &token.mint)
                .is_none();
            if is_new {
                accounts.insert(0, (token.mint, token.content(200)));
            }
        }
        // Torn apart now and then: a later slot completes what is missing.
        let torn = self.chance(25);
        for (key, content) in accounts {
            let keep = !torn || self.chance(60);
            let is_mint = matches!(content, Content::Mint(..));
            if keep || is_mint {
                self.scenario.set(slot, key, content);
            }
        }
    }

    fn close_pool(&mut self, slot: u64, pool: &ScriptedPool) {
        let keys = [pool.pool, pool.vaults.token_0, pool.vaults.token_1];
        let all = self.chance(50);
        let count = if all { 3 } else { 1 };
        for key in keys.into_iter().take(count) {
            self.scenario.set(slot, key, Content::Closed);
        }
    }

    fn change_fee(&mut self, slot: u64, pool: &ScriptedPool) {
        let tokens = [pool.tokens.token_0, pool.tokens.token_1];
        for token in tokens.iter().filter(|token| token.has_fee) {
            let basis_points = self.rng.random_range(0..10_000);
            self.scenario
                .set(slot, token.mint, token.content(basis_points));
        }
    }

    fn new_pool(&mut self, slot: u64) {
        let name = format!("pool {} of slot {slot}", self.pools.len());
        let config = *self
            .scenario
            .exchange
            .configs
            .choose(&mut self.rng)
            .expect("two");
        let known = *self
            .scenario
            .exchange
            .tokens
            .choose(&mut self.rng)
            .expect("four");
        let new = format!("token of {name}");
        let other = match self.rng.random_range(0..4) {
            0 => Token::spl(&new),
            1 => Token::with_fee(&new),
            2 => Token::plain_2022(&new),
            _ => self.scenario.exchange.tokens[0],
        };
        if other != known {
            let pool = ScriptedPool::new(&name, config, known, other);
            self.pools.push(pool);
            self.open_pool(slot, &pool);
        }
    }

    /// The writes of a swap, arriving in another order than they were made in.
    fn swap_out_of_order(&mut self, slot: u64, pool: &ScriptedPool, amount: u64) {
        let writes = self.scenario.swap_writes(slot, pool, amount);
        let mut writes: Vec<_> = writes
            .into_iter()
            .map(|(key, content)| self.scenario.set_unreported(slot, key, content))
            .collect();
        writes.rotate_left(self.rng.random_range(0..3));
        for write in writes {
            self.scenario.report_write(slot, write);
        }
    }

    fn confirm(&mut self) {
        let unconfirmed: Vec<u64> = {
            let record = self.scenario.chain.lock();
            let reported = &record.statuses;
            let confirmed = reported.confirmed_slot();
            let ancestry = reported.ancestry(reported.processed_slot());
            ancestry.take_while(|slot| *slot > confirmed).collect()
        };
        let Some(slot) = unconfirmed.choose(&mut self.rng).copied() else {
            return;
        };
        let status = if self.chance(20) {
            SlotStatus::Finalized
        } else {
            SlotStatus::Confirmed
        };
        self.scenario.status(slot, status, None);
    }

    fn kill(&mut self) {
        let slots: Vec<u64> = {
            let record = self.scenario.chain.lock();
            let reported = &record.statuses;
            let confirmed: BTreeSet<u64> = reported.ancestry(reported.confirmed_slot()).collect();
            let slots = reported.parents.keys().copied();
            slots.filter(|slot| !confirmed.contains(slot)).collect()
        };
        let Some(slot) = slots.choose(&mut self.rng).copied() else {
            return;
        };
        self.scenario.kill(slot);
        let void = self.scenario.chain.lock().statuses.void();
        self.open.retain(|slot| !void.contains(slot));
        self.closed.retain(|slot| !void.contains(slot));
    }

    /// Says again something that was said lately, as far as servers do.
    fn repeat(&mut self) {
        let message = {
            let record = self.scenario.chain.lock();
            let lately = &record.messages[record.messages.len().saturating_sub(30)..];
            let repeated: Vec<&Message> = lately
                .iter()
                .filter(|message| match message {
                    // A second creation would be another bank's.
                    Message::Update(Body::Slot(update)) => update.status != SlotStatus::CreatedBank,
                    Message::Update(Body::Account(write)) => self.open.contains(&write.slot),
                    _ => false,
                })
                .collect();
            repeated
                .choose(&mut self.rng)
                .map(|message| Message::clone(message))
        };
        if let Some(message) = message {
            self.scenario.chain.report(message);
        }
    }

    fn break_stream(&mut self) {
        let replay = match self.rng.random_range(0..8) {
            0..2 => ReplayPolicy::EveryWrite,
            2..4 => ReplayPolicy::Reference,
            4 => ReplayPolicy::OtherVersions,
            5 => ReplayPolicy::Refused(
                Code::OutOfRange,
                format!("broadcast from {GENESIS} is not available, last available: {GENESIS}"),
            ),
            6 => {
                let texts = [
                    "from_slot is not supported",
                    "failed to get replay response",
                ];
                let text = texts.choose(&mut self.rng).unwrap_or(&"");
                ReplayPolicy::Refused(Code::Internal, (*text).to_owned())
            }
            _ => ReplayPolicy::Nothing,
        };
        self.scenario.server.on_replay(replay);
        match self.rng.random_range(0..6) {
            0 => self
                .scenario
                .fail(Code::Internal, "lagged to receive geyser messages"),
            1 => self
                .scenario
                .fail(Code::Internal, "lagged to send an update"),
            2 => self
                .scenario
                .fail(Code::Unavailable, "the server is going away"),
            3 => self.scenario.chain.report(Message::Garbage),
            4 => self.scenario.link.cut(),
            _ => self.scenario.close(),
        }
    }

    fn break_node(&mut self) {
        let fault = match self.rng.random_range(0..6) {
            0 => Fault::Http(502),
            1 => Fault::Refused(-32005, "Node is behind by 42 slots".to_owned()),
            2 => Fault::HangsUp,
            3 => Fault::Garbage,
            4 => Fault::Slow(Duration::from_millis(30)),
            _ => {
                let drifts = self.chance(50);
                return self.scenario.node.drift(drifts);
            }
        };
        self.scenario.node.fail([fault]);
    }

    /// Everything works again, and the chain goes on from its best slot.
    async fn finish(mut self) {
        self.scenario.node.heal();
        self.scenario.server.on_replay(ReplayPolicy::default());
        self.scenario.head = self.scenario.chain.lock().statuses.processed_slot();
        let pool = self.scenario.pool(0);
        let state = self.scenario.chain.lock().tree.state(self.scenario.head);
        let whole = pool.opening().iter().all(|(key, _)| {
            state
                .get(key)
                .is_some_and(|content| *content != Content::Closed)
        });
        if !whole {
            // Passing slots swap in the first pool, so it must be there.
            let slot = self.scenario.open(self.scenario.head);
            for (key, content) in pool.opening() {
                self.scenario.set(slot, key, content);
            }
            self.scenario.seal(slot);
            self.scenario.head = slot;
        }
        debug_assert!(state.contains_key(&ids::CLOCK));
        self.scenario.pass_until_agreed().await;
        self.scenario.agree().await;
        self.scenario.end().await;
    }
}

/// Scripts played at a time. Each waits most of the time.
const AT_A_TIME: usize = 12;

/// A script that did not end as it must.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// The seed that makes the script.
    pub seed: u64,
    /// What was wrong.
    pub what: String,
}

/// Plays the scripts of `runs` seeds from `first` on, several at a time, and returns those that went wrong.
/// `progress` is called with how many are done.
pub async fn explore_many(first: u64, runs: u64, progress: impl Fn(u64)) -> Vec<Divergence> {
    let scripts = (first..first.saturating_add(runs)).map(|seed| async move {
        let played = tokio::spawn(explore(seed)).await;
        (seed, played)
    });
    let mut played = futures::stream::iter(scripts).buffer_unordered(AT_A_TIME);
    let (mut done, mut found) = (0, Vec::new());
    while let Some((seed, outcome)) = played.next().await {
        done += 1;
        progress(done);
        if let Err(error) = outcome {
            let what = said(error);
            found.push(Divergence { seed, what });
        }
    }
    found
}

/// What a panicking script said.
fn said(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "it was ended".to_owned();
    };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "it panicked".to_owned())
}
