//! Scenario: one market between a server and a node, and the verbs in which scripts are written.

use std::{collections::VecDeque, time::Duration};

use cpmm::{PoolState, TokenAccount, ids};
use sluice_geyser::{AccountFilter, Request, SlotStatus, scripted::Code};
use sluice_harness::market::{MarketHarness, settings};
use sluice_market::Standing;
use sluice_testkit::{
    accounts::Content,
    network_link::NetworkLink,
    rpc_node::RpcNode,
    scripted_chain::Write,
    scripted_chain::{Ending, Message, ScriptedChain},
    scripted_pools::{self, ScriptedPool, ScriptedPools},
    yellowstone_server::YellowstoneServer,
};
use solana_pubkey::Pubkey;
use tokio::time::{Instant, sleep, timeout};

use super::{
    model::QuotedState,
    observed::{Level, Reader},
    watch::{Watch, differing},
};

/// The slot in which every script begins.
pub const GENESIS: u64 = 1_000;

/// No step of a script takes longer unless something hangs. Silence of a server is noticed after 30 seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time in which what was reported must arrive while the chain stands still: less than the 30 seconds without a slot after
/// which a market gives its stream up. One without a slot for 10 seconds shows nothing any more, so that all differences
/// on the way are reported.
const ARRIVAL: Duration = Duration::from_secs(25);

/// Time in which what is on its way arrives before a difference is reported.
const SETTLING: Duration = Duration::from_secs(1);

/// Between two looks at the market.
const LOOK: Duration = Duration::from_millis(2);

/// Slots after which a slot is finalized.
const FINALITY: usize = 32;

/// How long a slot lasts where a script lets the chain go on until the market has joined it. Real ones last 400 ms.
const SLOT_TIME: Duration = Duration::from_millis(60);

/// Part of the time that the market has had by which slots become longer: one that is a slot behind, because the machine
/// is busy, is not behind for ever.
const SLOWDOWN: u32 = 50;

/// A market and everything around it.
pub struct Scenario {
    /// The chain and what is reported of it.
    pub chain: ScriptedChain,
    /// The node.
    pub node: RpcNode,
    /// The server.
    pub server: YellowstoneServer,
    /// The link between market and server.
    pub link: NetworkLink,
    /// Who plays.
    pub exchange: ScriptedPools,
    /// The epoch that slots opened from now on are in.
    pub epoch: u64,
    /// The slot on which [`Scenario::pass`] builds.
    pub head: u64,
    market: MarketHarness,
    watch: Watch,
}

impl Scenario {
    /// A market that has just been started.
    ///
    /// # Panics
    /// When no port can be bound.
    pub async fn start() -> Self {
        Self::prepared(async |_, _| Vec::new()).await
    }

    /// A market that is started once `prepare` has set up the node and the server. It returns the addresses of servers
    /// that the market listens to besides.
    ///
    /// # Panics
    /// When no port can be bound.
    pub async fn prepared(
        prepare: impl AsyncFnOnce(&RpcNode, &YellowstoneServer) -> Vec<String>,
    ) -> Self {
        let exchange = ScriptedPools::default();
        let chain = ScriptedChain::new(GENESIS, exchange.state(GENESIS));
        let node = RpcNode::of_chain(chain.clone()).await.expect("a free port");
        let server = YellowstoneServer::start(chain.clone())
            .await
            .expect("a free port");
        let link = NetworkLink::to(server.address())
            .await
            .expect("a free port");
        let mut servers = prepare(&node, &server).await;
        servers.push(link.url());
        let head = chain.lock().tree.last();
        let market = MarketHarness::start(settings(&servers, &node.url()));
        let watch = Watch::start(chain.clone(), Reader::new(market.market().clone()));
        Self {
            chain,
            node,
            server,
            link,
            exchange,
            epoch: scripted_pools::EPOCH,
            head,
            market,
            watch,
        }
    }

    /// A market that has joined the chain.
    ///
    /// # Panics
    /// When it does not.
    pub async fn ready() -> Self {
        let mut scenario = Self::start().await;
        scenario.pass_until_agreed().await;
        scenario
    }

    /// How each server stands against the others, the one of [`Scenario::link`] last.
    #[must_use]
    pub fn standings(&self) -> Vec<Standing> {
        self.market.market().standings()
    }

    /// Reads the market.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(self.market.market().clone())
    }

    // What happens on the chain, and is reported at once.

    /// Opens a slot with the next number.
    pub fn open(&mut self, parent: u64) -> u64 {
        self.open_after(parent, 0)
    }

    /// Opens a slot whose number leaves this many out.
    pub fn open_after(&mut self, parent: u64, skipped: u64) -> u64 {
        let slot = self.open_unreported(parent, skipped);
        self.status(slot, SlotStatus::CreatedBank, Some(parent));
        self.set(slot, ids::CLOCK, scripted_pools::clock(slot, self.epoch));
        slot
    }

    /// Opens a slot of which nothing is reported.
    pub fn open_unreported(&mut self, parent: u64, skipped: u64) -> u64 {
        let mut record = self.chain.lock();
        let slot = record.tree.last() + 1 + skipped;
        record.tree.open(slot, parent);
        slot
    }

    /// Writes an account.
    pub fn set(&self, slot: u64, key: Pubkey, content: Content) {
        let write = self.set_unreported(slot, key, content);
        self.report_write(slot, write);
    }

    /// Writes an account without reporting it.
    pub fn set_unreported(&self, slot: u64, key: Pubkey, content: Content) -> Write {
        self.chain.lock().tree.write(slot, key, content)
    }

    /// Reports a write.
    pub fn report_write(&self, slot: u64, write: Write) {
        self.chain.report(Message::write(slot, &write));
    }

    /// Reports a status.
    pub fn status(&self, slot: u64, status: SlotStatus, parent: Option<u64>) {
        self.chain.report(Message::status(slot, status, parent));
    }

    /// Freezes a slot.
    pub fn seal(&self, slot: u64) {
        let parent = self.chain.lock().tree.parent(slot);
        self.status(slot, SlotStatus::Processed, parent);
    }

    /// Confirms a slot. Servers name no parent here.
    pub fn confirm(&self, slot: u64) {
        self.status(slot, SlotStatus::Confirmed, None);
    }

    /// Gives a slot up.
    pub fn kill(&self, slot: u64) {
        self.status(slot, SlotStatus::Dead, None);
    }

    /// The three writes of a swap of `amount`, each with its account.
    #[must_use]
    pub fn swap_writes(
        &self,
        slot: u64,
        scripted: &ScriptedPool,
        amount: u64,
    ) -> [(Pubkey, Content); 3] {
        let record = self.chain.lock();
        let moved = |key: &Pubkey, change: fn(u64, u64) -> u64| {
            let Some(Content::Vault {
                program,
                account,
                kind,
            }) = record.tree.get(slot, key)
            else {
                panic!("{key} is no vault in slot {slot}");
            };
            let account = TokenAccount {
                amount: change(account.amount, amount),
                ..*account
            };
            let vault = Content::Vault {
                program: *program,
                account,
                kind: *kind,
            };
            (*key, vault)
        };
        let Some(Content::Pool(pool)) = record.tree.get(slot, &scripted.pool) else {
            panic!("{} is no pool in slot {slot}", scripted.pool);
        };
        let mut pool = PoolState::clone(pool);
        pool.protocol_fees.token_0 += 1;
        [
            moved(&scripted.vaults.token_0, u64::wrapping_add),
            moved(&scripted.vaults.token_1, u64::wrapping_sub),
            (scripted.pool, Content::pool(pool)),
        ]
    }

    /// A swap in a pool: its vaults and its fees change.
    pub fn swap(&self, slot: u64, scripted: &ScriptedPool, amount: u64) {
        for (key, content) in self.swap_writes(slot, scripted, amount) {
            self.set(slot, key, content);
        }
    }

    /// One of the pools of the beginning.
    #[must_use]
    pub fn pool(&self, index: usize) -> ScriptedPool {
        self.exchange.pools[index]
    }

    /// Changes a pool's fields.
    pub fn change(&self, slot: u64, scripted: &ScriptedPool, change: impl FnOnce(&mut PoolState)) {
        let content = self.chain.lock().tree.get(slot, &scripted.pool).cloned();
        let Some(Content::Pool(mut pool)) = content else {
            panic!("{} is no pool in slot {slot}", scripted.pool);
        };
        change(&mut pool);
        self.set(slot, scripted.pool, Content::Pool(pool));
    }

    /// A whole slot on `parent`, with a swap in the first pool, frozen.
    pub fn pass_on(&mut self, parent: u64) -> u64 {
        let slot = self.open(parent);
        let pool = self.pool(0);
        self.swap(slot, &pool, slot);
        self.seal(slot);
        slot
    }

    /// A whole slot on the head, which becomes the head.
    pub fn pass(&mut self) -> u64 {
        self.head = self.pass_on(self.head);
        self.head
    }

    // What happens to the stream.

    /// Ends every open stream with an error.
    pub fn fail(&self, code: Code, text: &str) {
        self.chain
            .report(Message::End(Ending::Error(code, text.to_owned())));
    }

    /// Ends every open stream without a word.
    pub fn close(&self) {
        self.chain.report(Message::End(Ending::Close));
    }

    // What must be so.

    /// Both views equal the model, now or after what was reported has arrived; the chain stands still meanwhile.
    ///
    /// # Panics
    /// When they do not.
    pub async fn agree(&self) {
        let mut differences = Vec::new();
        let agreed = timeout(ARRIVAL, async {
            while let Some(difference) = self.difference() {
                if differences.last() != Some(&difference) {
                    differences.push(difference);
                }
                sleep(LOOK).await;
            }
        });
        if agreed.await.is_err() {
            panic!("the market and the model differ: {differences:#?}");
        }
        self.was_true();
    }

    /// Lets the chain go on until both views equal the model.
    ///
    /// # Panics
    /// When they never do.
    pub async fn pass_until_agreed(&mut self) {
        let begun = Instant::now();
        let mut unfinalized = VecDeque::new();
        loop {
            let slot = self.pass();
            self.confirm(slot);
            unfinalized.push_back(slot);
            if unfinalized.len() > FINALITY
                && let Some(finalized) = unfinalized.pop_front()
            {
                self.status(finalized, SlotStatus::Finalized, None);
            }
            let slot_end = Instant::now() + SLOT_TIME + begun.elapsed() / SLOWDOWN;
            while Instant::now() < slot_end {
                if self.difference().is_none() {
                    self.was_true();
                    return;
                }
                sleep(LOOK).await;
            }
            if begun.elapsed() > PATIENCE {
                // What differs when all that was reported has arrived is what is wrong.
                sleep(SETTLING).await;
                let (difference, reason) = (self.difference(), self.reader().not_ready());
                panic!("the market did not join the chain: {difference:?}, {reason:?}");
            }
        }
    }

    /// Waits until the market says that it is not ready, and returns why.
    ///
    /// # Panics
    /// When it does not.
    pub async fn not_ready(&self) -> String {
        let reader = self.reader();
        let waiting = timeout(PATIENCE, async {
            loop {
                if let Some(reason) = reader.not_ready() {
                    return reason;
                }
                sleep(Duration::from_micros(200)).await;
            }
        });
        waiting
            .await
            .expect("the market is ready although it cannot be")
    }

    /// Waits until the server has been subscribed to this often, since the beginning.
    ///
    /// # Panics
    /// When it is not.
    pub async fn subscribed(&self, times: usize) {
        let waiting = timeout(PATIENCE, async {
            while self.server.requests().len() < times {
                sleep(LOOK).await;
            }
        });
        waiting.await.expect("the market does not subscribe");
    }

    /// What the processed view must show now.
    #[must_use]
    pub fn processed(&self) -> QuotedState {
        QuotedState::processed(&self.chain.lock())
    }

    /// How the market differs from the model, if it does.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        let reader = self.reader();
        let (processed, confirmed) = {
            let record = self.chain.lock();
            (
                QuotedState::processed(&record),
                QuotedState::confirmed(&record),
            )
        };
        compare(&reader, Level::Processed, &processed)
            .or_else(|| compare(&reader, Level::Confirmed, &confirmed))
            .or_else(|| self.pairs_differ(&reader, &processed))
    }

    /// Looking pools up by their mints must find what looking them up one by one finds.
    fn pairs_differ(&self, reader: &Reader, moment: &QuotedState) -> Option<String> {
        self.exchange.pools.iter().find_map(|scripted| {
            let (a, b) = (scripted.tokens.token_0.mint, scripted.tokens.token_1.mint);
            let is_of_pair = |pool: &cpmm::PoolSnapshot| {
                (pool.pool.mints.token_0, pool.pool.mints.token_1) == (a, b)
            };
            let pools = moment.pools.iter();
            let expected: Vec<Pubkey> = pools
                .filter(|(_, pool)| is_of_pair(pool))
                .map(|(key, _)| *key)
                .collect();
            let found = [reader.pools_for(&a, &b), reader.pools_for(&b, &a)];
            let wrong = found.into_iter().find(|found| *found != expected)?;
            Some(format!("pools of {a} and {b}: {wrong:?}, not {expected:?}"))
        })
    }

    /// Everything that any reader saw so far was true.
    ///
    /// # Panics
    /// When something was not.
    pub fn was_true(&self) {
        let faults = self.watch.faults();
        assert!(faults.is_empty(), "readers saw what never was: {faults:#?}");
        let unknown = self.node.not_understood();
        assert!(unknown.is_empty(), "calls no node answers: {unknown:?}");
        let (first, later) = (self.server.requests(), self.server.later_requests());
        let asked = |request: &Request| (filters_of(request), request.commitment);
        let changed = later
            .iter()
            .chain(&first)
            .find(|request| asked(request) != asked(&first[0]));
        assert_eq!(changed, None, "what is subscribed to never changes");
    }

    /// Ends the market, and checks once more that every reader saw the truth.
    ///
    /// # Panics
    /// When something was not true, or the market's task panicked.
    pub async fn end(self) {
        self.was_true();
        let Self { market, .. } = self;
        timeout(PATIENCE, market.stop())
            .await
            .expect("the market's task does not end");
    }
}

/// What a request asks for, whatever its filters are called.
fn filters_of(request: &Request) -> Vec<AccountFilter> {
    let mut filters: Vec<AccountFilter> = request.accounts.values().cloned().collect();
    filters.sort_by_key(|filter| format!("{filter:?}"));
    filters
}

fn compare(reader: &Reader, level: Level, real: &QuotedState) -> Option<String> {
    let Some(seen) = reader.moment(level) else {
        return Some(format!("{level:?}: the market is not ready"));
    };
    differing(&seen, real, |_, _| false).map(|difference| format!("{level:?}: {difference}"))
}
