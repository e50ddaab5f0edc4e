//! Market task against a scripted stream and a scripted node, both over sockets.

mod present;

use std::collections::BTreeSet;

use cpmm::ids;
use sluice_chain_types::{RawAccount, Slot, SlotStatus};
use sluice_geyser::{
    BlockMeta,
    scripted::{Code, Connection, ScriptedServer},
};
use sluice_testkit::{
    accounts::{Account, Content},
    rpc_node::{RpcNode, wire::Call},
    scripted_chain::{NodeSlot, ScriptedChain, State as Accounts},
};
use solana_pubkey::Pubkey;

use super::{
    super::{
        fixtures::*,
        freshness::Freshness,
        settings::ReadLimits,
        view::{NotReady, QuoteCommitment, Status},
    },
    *,
};

/// No step of a script takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("a step of the script hangs")
}

/// A node in a slot of the test's choice.
struct NodeAtSlot {
    chain: ScriptedChain,
    rpc: RpcNode,
}

impl NodeAtSlot {
    async fn start() -> Self {
        let chain = ScriptedChain::new(0, Accounts::new());
        let rpc = RpcNode::of_chain(chain.clone()).await.unwrap();
        Self { chain, rpc }
    }

    /// Is in this slot from now on, in which these accounts were written.
    fn set(&self, slot: u64, accounts: &[(u8, RawAccount)]) {
        let mut record = self.chain.lock();
        if !record.tree.contains(slot) {
            let last = record.tree.last();
            record.tree.open(slot, last);
        }
        for (byte, account) in accounts {
            let content = Content::Other(Account {
                owner: account.owner,
                lamports: account.lamports,
                data: account.data.clone(),
            });
            record.tree.write(slot, key(*byte), content);
        }
        record.node = NodeSlot::Fixed(slot);
    }

    /// Keys of every `getMultipleAccounts` answered.
    fn asked(&self) -> Vec<Vec<Pubkey>> {
        let calls = self.rpc.calls().into_iter();
        calls
            .filter_map(|call| match call {
                Call::MultipleAccounts { keys, .. } => Some(keys),
                _ => None,
            })
            .collect()
    }
}

struct MarketTest {
    server: ScriptedServer,
    node: NodeAtSlot,
    market: Market,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

/// One connection of the market, with the chain that is reported on it.
struct Chain {
    connection: Connection,
    slot: u64,
    /// Where the market asked to be replayed from.
    from_slot: Option<u64>,
    /// Names of the filters in force: of slots, of accounts, of block metadata.
    filters: [String; 3],
    /// Whether the bank after `slot` was created.
    created: bool,
}

impl MarketTest {
    async fn start() -> Self {
        Self::start_with(NO_SLOT_TIMEOUT).await
    }

    async fn start_with(no_slot_timeout: Duration) -> Self {
        Self::start_of(Market::default(), no_slot_timeout).await
    }

    async fn start_of(market: Market, no_slot_timeout: Duration) -> Self {
        let server = ScriptedServer::start().await.unwrap();
        let node = NodeAtSlot::start().await;
        let shutdown = CancellationToken::new();
        let settings = Settings {
            exchange: ExchangeIds::MAINNET,
            endpoints: vec![server.endpoint()],
            rpc_url: node.rpc.url().parse().unwrap(),
            read_limits: ReadLimits::default(),
            watch_closed_accounts: true,
            freshness: Freshness::default(),
        };
        let sources = Sources {
            no_slot_timeout,
            ..settings.into()
        };
        let task = tokio::spawn(run(market.clone(), sources, shutdown.clone()));
        Self {
            server,
            node,
            market,
            shutdown,
            task,
        }
    }

    async fn connect(&mut self, slot: u64) -> Chain {
        let mut connection = soon(self.server.accept()).await;
        let first = soon(connection.received()).await.expect("the subscription");
        let request = first.request;
        let names = [
            request.slots,
            request.accounts.into_keys().next(),
            request.blocks_meta,
        ];
        Chain {
            connection,
            slot,
            from_slot: request.from_slot,
            filters: names.map(|name| name.expect("the market asks for it")),
            created: false,
        }
    }

    /// Lets slots pass until the market is ready, the node following two slots behind.
    async fn until_ready(&self, chain: &mut Chain) {
        soon(async {
            while !matches!(self.market.status(), Status::Ready { .. }) {
                chain.pass().await;
                self.node.set(chain.slot - 2, &[]);
            }
        })
        .await;
    }

    /// Open time and vault balances of the pool as handlers see it.
    fn quoted(&self) -> Option<(u64, u64, u64)> {
        let view = self.market.view(QuoteCommitment::Processed).ok()?;
        let view = view.pool(&key(POOL))?;
        let vaults = view.snapshot.vault_amounts;
        assert_eq!(
            view.clock.unix_timestamp,
            i64::try_from(view.slot.get()).unwrap()
        );
        Some((
            view.snapshot.pool.open_time,
            vaults.token_0.get(),
            vaults.token_1.get(),
        ))
    }

    async fn until_quoted(&self, expected: Option<(u64, u64, u64)>) {
        soon(async {
            while self.quoted() != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

impl Chain {
    async fn send(&self, body: Body) {
        let [slots, accounts, blocks] = &self.filters;
        let filter = match &body {
            Body::Slot(_) => slots,
            Body::BlockMeta(_) => blocks,
            Body::Account(_) | Body::Transaction(_) => accounts,
        };
        let update = Update {
            filters: vec![filter.clone()],
            created_at: None,
            bank_id: None,
            body,
        };
        soon(self.connection.send(update))
            .await
            .expect("the market listens");
    }

    async fn status(&self, slot: u64, parent: Option<u64>, status: SlotStatus) {
        let status = SlotUpdate {
            slot,
            parent,
            status,
            dead_error: None,
        };
        self.send(Body::Slot(status)).await;
    }

    async fn write(&mut self, write_version: u64, pubkey: Pubkey, account: RawAccount) {
        if !std::mem::replace(&mut self.created, true) {
            self.status(self.slot + 1, Some(self.slot), SlotStatus::CreatedBank)
                .await;
        }
        let update = written(self.slot + 1, write_version, pubkey, account);
        self.send(Body::Account(update)).await;
    }

    /// Completes the next slot: its clock, whose time is the slot's number, its block and its status.
    async fn pass(&mut self) {
        let fields = [self.slot + 1, 0, 600, 601, self.slot + 1];
        let data: Vec<u8> = fields
            .iter()
            .flat_map(|field| field.to_le_bytes())
            .collect();
        self.write(0, ids::CLOCK, raw(key(99), data)).await;
        let (slot, parent) = (self.slot + 1, self.slot);
        let block = BlockMeta {
            slot,
            parent_slot: parent,
            blockhash: format!("hash{slot}"),
            parent_blockhash: format!("hash{parent}"),
            block_time: None,
            block_height: None,
            executed_transaction_count: 0,
        };
        self.send(Body::BlockMeta(block)).await;
        self.status(slot, Some(parent), SlotStatus::Processed).await;
        (self.slot, self.created) = (slot, false);
        // Time for the market to make its calls, as slots of a chain leave it.
        sleep(Duration::from_millis(20)).await;
    }

    async fn confirm(&self, slot: u64) {
        self.status(slot, None, SlotStatus::Confirmed).await;
    }
}

fn whole_pool() -> [(u8, RawAccount); 6] {
    [
        (POOL, pool(1)),
        (CONFIG, config()),
        (VAULT_0, vault(0, 100)),
        (VAULT_1, vault(1, 200)),
        (MINT_0, mint(0)),
        (MINT_1, mint(1)),
    ]
}

async fn ready() -> (MarketTest, Chain) {
    let mut script = MarketTest::start().await;
    script.node.set(0, &whole_pool());
    let mut chain = script.connect(50).await;
    script.until_ready(&mut chain).await;
    assert_eq!(script.quoted(), Some((1, 100, 200)));
    (script, chain)
}

#[tokio::test]
async fn the_market_is_ready_once_the_snapshot_has_joined_the_stream_and_then_follows_it() {
    let (script, mut chain) = ready().await;
    chain.write(1, key(VAULT_0), vault(0, 110)).await;
    chain.write(2, key(POOL), pool(2)).await;
    chain.write(3, key(VAULT_1), vault(1, 190)).await;
    assert_eq!(script.quoted(), Some((1, 100, 200)));
    chain.pass().await;
    script.until_quoted(Some((2, 110, 190))).await;
    let view = script
        .market
        .view(QuoteCommitment::Processed)
        .expect("ready");
    let pools: Vec<_> = view.pools_for(&key(MINT_1), &key(MINT_0)).collect();
    assert_eq!(pools.len(), 1);
    assert_eq!(
        (pools[0].address, pools[0].slot.get()),
        (key(POOL), chain.slot)
    );
    let confirmed = script
        .market
        .view(QuoteCommitment::Confirmed)
        .expect("ready");
    assert!(confirmed.slot().get() < chain.slot);
}

#[tokio::test]
async fn a_chain_may_take_longer_to_read_than_a_slot_may_take_to_come() {
    // So much longer than a slot of this chain that a busy machine does not miss one for so long.
    let no_slot = Duration::from_secs(1);
    let mut script = MarketTest::start_with(no_slot).await;
    script.node.set(0, &whole_pool());
    script.node.rpc.delay(2 * no_slot);
    let mut chain = script.connect(50).await;
    let begun = Instant::now();
    let mut reasons = Vec::new();
    soon(async {
        while let Status::NotReady(NotReady { reason, .. }) = script.market.status() {
            reasons.push(reason);
            chain.pass().await;
            script.node.set(chain.slot - 2, &[]);
        }
    })
    .await;
    assert!(begun.elapsed() > 4 * no_slot);
    assert_eq!(script.quoted(), Some((1, 100, 200)));
    for step in ["listing the pools", "1 of 7 accounts, 1 of 2 calls"] {
        let shown = reasons.iter().any(|reason| reason.contains(step));
        assert!(shown, "{step} is not among {reasons:?}");
    }
}

#[tokio::test]
async fn an_exchange_without_pools_is_ready_and_a_new_pool_appears_without_restart() {
    let mut script = MarketTest::start().await;
    let mut chain = script.connect(50).await;
    script.until_ready(&mut chain).await;
    assert!(matches!(
        script.market.status(),
        Status::Ready {
            pools: 0,
            incomplete: 0,
            ..
        }
    ));

    let asked_before = script.node.asked().len();
    script.node.set(chain.slot, &whole_pool());
    for (byte, account) in whole_pool().into_iter().take(4) {
        chain.write(byte.into(), key(byte), account).await;
    }
    soon(async {
        while script.quoted().is_none() {
            chain.pass().await;
            script.node.set(chain.slot, &[]);
            assert!(
                matches!(script.market.status(), Status::Ready { .. }),
                "others stay quotable"
            );
        }
    })
    .await;
    assert_eq!(script.quoted(), Some((1, 100, 200)));
    // Both at once, or again the one that the node did not have yet.
    let asked: BTreeSet<_> = script
        .node
        .asked()
        .split_off(asked_before)
        .concat()
        .into_iter()
        .collect();
    assert_eq!(
        asked,
        BTreeSet::from([key(MINT_0), key(MINT_1)]),
        "only what the stream did not deliver is read"
    );
}

async fn lost(script: &MarketTest, chain: Chain, message: &str) -> u64 {
    let last = chain.slot;
    soon(chain.connection.fail(Code::Internal, message))
        .await
        .unwrap();
    soon(async {
        loop {
            if let Status::NotReady(NotReady { reason, slot, .. }) = script.market.status() {
                assert_eq!(slot.map(Slot::get), Some(last));
                assert!(!reason.is_empty());
                break;
            }
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    last
}

#[tokio::test]
async fn a_lost_stream_is_resumed_from_the_last_confirmed_slot() {
    let (mut script, mut chain) = ready().await;
    let confirmed = chain.slot;
    chain.confirm(confirmed).await;
    chain.write(1, key(VAULT_0), vault(0, 666)).await;
    chain.pass().await;
    script.until_quoted(Some((1, 666, 200))).await;
    let last = lost(&script, chain, "lagged to receive geyser messages").await;

    let mut chain = script.connect(confirmed - 1).await;
    assert_eq!(chain.from_slot, Some(confirmed));
    chain.pass().await;
    // The replay shows a replacement block of the last one.
    chain.write(901, key(VAULT_0), vault(0, 777)).await;
    assert!(matches!(script.market.status(), Status::NotReady(_)));
    chain.pass().await;
    assert_eq!(chain.slot, last);
    script.until_quoted(Some((1, 777, 200))).await;
    let read = script.node.asked().len();
    chain.pass().await;
    assert_eq!(script.node.asked().len(), read, "nothing was read again");
}

#[tokio::test]
async fn where_the_replay_is_gone_the_market_reads_the_chain_again() {
    let (mut script, chain) = ready().await;
    let message = "broadcast from 9 is not available, last available: 70";
    script.server.refuse_next(Code::OutOfRange, message);
    let last = lost(&script, chain, "boom").await;
    script.node.set(last, &[(VAULT_0, vault(0, 777))]);
    let mut chain = script.connect(last + 10).await;
    assert_eq!(chain.from_slot, None);
    script.until_ready(&mut chain).await;
    assert_eq!(script.quoted(), Some((1, 777, 200)));
}

#[tokio::test]
async fn a_closed_pool_is_not_quoted() {
    let (script, mut chain) = ready().await;
    chain.write(1, key(POOL), closed()).await;
    chain.pass().await;
    script.until_quoted(None).await;
    let view = script
        .market
        .view(QuoteCommitment::Processed)
        .expect("ready");
    assert_eq!(view.pools_for(&key(MINT_0), &key(MINT_1)).count(), 0);
}

#[tokio::test]
async fn shutting_down_ends_the_task_at_once_and_leaves_the_market_not_ready() {
    let (script, _chain) = ready().await;
    script.shutdown.cancel();
    soon(script.task).await.expect("the task does not panic");
    assert!(matches!(script.market.status(), Status::NotReady(_)));
}

#[tokio::test]
async fn a_server_that_refuses_does_not_end_the_task() {
    let mut script = MarketTest::start().await;
    let mut first = script.connect(50).await;
    first.pass().await;
    script
        .server
        .refuse_next(Code::Unauthenticated, "no valid token");
    drop(first);
    script.node.set(0, &whole_pool());
    let mut chain = script.connect(80).await;
    script.until_ready(&mut chain).await;
    assert_eq!(script.quoted(), Some((1, 100, 200)));
}

#[test]
fn readers_are_shown_no_words_of_a_server_or_a_node() {
    const SECRET: &str = "dns error: grpc.internal.example:443/key";
    let words = || SECRET.to_owned();
    let ends = [
        SessionEnd::from(StreamError::Connect(words())),
        SessionEnd::from(StreamError::Refused(words())),
        SessionEnd::from(StreamError::Other(words())),
        SessionEnd::from(SnapshotError::Unreachable {
            method: "getProgramAccounts",
            reason: words(),
        }),
        SessionEnd::from(SnapshotError::Unavailable {
            method: "getProgramAccounts",
            message: words(),
        }),
    ];
    for end in ends {
        assert!(end.to_string().contains(SECRET), "the log has them: {end}");
        let shown = end.shown();
        assert!(!shown.contains("internal"), "{shown}");
        assert!(shown.len() > 10, "{shown}");
    }
}
