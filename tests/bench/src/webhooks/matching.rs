//! Cost of matching on one core, from the bytes of the stream to the webhooks that an update matches.
//!
//! The way goes through the fork tree, which holds an update until its slot is confirmed. It is everything that the
//! indexer does with an update, but for writing the messages.
//!
//! One webhook watches the program that owns every account, so that each update is streamed, and matches a webhook,
//! however many accounts others watch.

use std::{
    env, fs,
    hint::black_box,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use bytes::Bytes;
use cpmm::TokenProgram;
use service_kit::Clock;
use sluice_geyser::{
    AccountUpdate, BlockMeta, Body, SlotStatus, SlotUpdate, Update, scripted::wire_bytes,
};
use sluice_indexer::{
    events::subscription_index::{SubscriptionIndex, Subscriptions},
    slots::{Action, ForkTree, ResumePoint, SlotEvent},
    subscription_watcher::SubscriptionWatcher,
};
use sluice_store::{
    Access, Commitment, EventKind, Filters, NewWebhook, Secret, Store, Timestamp,
    WebhookDefinition, WebhookId,
};
use sluice_testkit::{
    figure::{Figure, Limit},
    population::Population,
};
use solana_pubkey::Pubkey;
use tokio::{process::Command, time::sleep};

/// Watched accounts.
const MANY: u64 = 1_000_000;

/// Watched accounts beside which many must not cost much more.
const FEW: u64 = 100;

/// Accounts of one webhook: as many as the API allows.
const PER_WEBHOOK: u64 = 100_000;

/// Updates of one round: each account is written once.
const UPDATES: u64 = MANY;

/// Updates of one slot.
const PER_SLOT: u64 = 2_000;

/// Slot in which the chain begins.
const FIRST: u64 = 1_000;

/// Rounds of each, in turns, of which the best counts: the others were interrupted by something else on the machine.
const ROUNDS: usize = 5;

/// First argument of the process that holds the index.
pub const CHILD: &str = "hold-an-index";

/// Time in which the allocator returns what only the reading of the webhooks needed.
const SETTLING: Duration = Duration::from_secs(2);

/// A number without a factor in common with that of the accounts: steps by it visit each once, in an order in which no
/// two neighbours are near each other in memory.
const STRIDE: u64 = 7_368_787;

const CHAIN: Population = Population {
    pools: MANY,
    per_pair: 1,
    quote_tokens: 1,
};

/// Measures matching, and the memory of a process that watches many accounts.
///
/// # Errors
/// When a process or a database fails.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let many = Watched::create(&folder.path().join("many.db"), MANY).await?;
    let few = Watched::create(&folder.path().join("few.db"), FEW).await?;
    let (wire, keys) = stream();
    let (mut best_many, mut best_few) = (Times::MOST, Times::MOST);
    for _ in 0..ROUNDS {
        best_few = best_few.min(few.round(&wire, &keys)?);
        best_many = best_many.min(many.round(&wire, &keys)?);
    }
    let bytes = (memory(&many.database).await? - memory(&few.database).await?) / count(MANY - FEW);
    Ok(vec![
        Figure::new(
            "updates matched, 1,000,000 accounts, from wire bytes",
            per_second(best_many.from_wire).round(),
            "updates/s",
            Limit::AtLeast(1_000_000.0),
        ),
        Figure::new(
            "the same against 100 accounts",
            best_few.from_wire.as_secs_f64() / best_many.from_wire.as_secs_f64(),
            "ratio",
            Limit::AtLeast(0.5),
        ),
        Figure::new(
            "look-ups alone, 1,000,000 accounts",
            per_second(best_many.alone).round(),
            "updates/s",
            Limit::None,
        ),
        Figure::new(
            "look-ups alone, 100 accounts",
            per_second(best_few.alone).round(),
            "updates/s",
            Limit::None,
        ),
        Figure::new(
            "resident memory of a watched account",
            bytes,
            "bytes",
            Limit::AtMost(200.0),
        ),
    ])
}

/// What is streamed, and the accounts and owners in it.
fn stream() -> (Vec<Bytes>, Vec<(Pubkey, Pubkey)>) {
    let (mut wire, mut keys) = (Vec::new(), Vec::new());
    let mut put = |filter: &str, body| {
        wire.push(wire_bytes(Update {
            filters: vec![filter.to_owned()],
            created_at: Some(Clock::system().now()),
            bank_id: None,
            body,
        }));
    };
    for number in 0..UPDATES {
        let slot = FIRST + number / PER_SLOT;
        let update = write(slot, number, number * STRIDE % MANY);
        keys.push((update.pubkey, update.owner));
        put("owners", Body::Account(update));
        if (number + 1) % PER_SLOT == 0 {
            put("blocks_meta", Body::BlockMeta(block(slot)));
            for status in [SlotStatus::Processed, SlotStatus::Confirmed] {
                let update = SlotUpdate {
                    slot,
                    parent: Some(slot - 1),
                    status,
                    dead_error: None,
                };
                put("slots", Body::Slot(update));
            }
        }
    }
    (wire, keys)
}

fn block(slot: u64) -> BlockMeta {
    BlockMeta {
        slot,
        parent_slot: slot - 1,
        blockhash: format!("hash{slot}"),
        parent_blockhash: format!("hash{}", slot - 1),
        block_time: None,
        block_height: None,
        executed_transaction_count: 1,
    }
}

/// The best rounds.
#[derive(Clone, Copy)]
struct Times {
    /// From the bytes of the stream.
    from_wire: Duration,
    /// Of updates that were read beforehand.
    alone: Duration,
}

impl Times {
    const MOST: Self = Self {
        from_wire: Duration::MAX,
        alone: Duration::MAX,
    };

    fn min(self, other: Self) -> Self {
        Self {
            from_wire: self.from_wire.min(other.from_wire),
            alone: self.alone.min(other.alone),
        }
    }
}

/// Webhooks that watch accounts, beside one that watches all of a program.
struct Watched {
    database: std::path::PathBuf,
    subscriptions: Subscriptions,
    /// Webhooks that all updates concern together.
    concerned: u64,
}

impl Watched {
    async fn create(database: &Path, accounts: u64) -> anyhow::Result<Self> {
        let store = Store::open(database).await?;
        for first in (0..accounts).step_by(usize::try_from(PER_WEBHOOK)?) {
            let watched = (first..accounts.min(first + PER_WEBHOOK)).map(account);
            let filters = Filters {
                accounts: watched.collect(),
                programs: Vec::new(),
                ..Filters::default()
            };
            create(&store, first, filters).await?;
        }
        let filters = Filters {
            accounts: Vec::new(),
            programs: vec![TokenProgram::Spl.id()],
            ..Filters::default()
        };
        create(&store, accounts, filters).await?;
        let live = store.active_webhooks().await?;
        store.close().await;
        Ok(Self {
            database: database.to_owned(),
            subscriptions: Subscriptions::new(&live),
            concerned: UPDATES + accounts,
        })
    }

    fn round(&self, wire: &[Bytes], keys: &[(Pubkey, Pubkey)]) -> anyhow::Result<Times> {
        let index = self.subscriptions.at(Commitment::Confirmed);
        Ok(Times {
            from_wire: self.match_wire(index, wire)?,
            alone: self.alone(index, keys)?,
        })
    }

    fn match_wire(&self, index: &SubscriptionIndex, wire: &[Bytes]) -> anyhow::Result<Duration> {
        let mut tree = ForkTree::new(&ResumePoint {
            from_slot: Some(FIRST),
            ..ResumePoint::default()
        });
        let (mut found, mut concerned) = (Vec::new(), 0);
        let begun = Instant::now();
        for message in wire {
            let update = sluice_geyser::decode(message.clone())?.context("it is an update")?;
            let actions = match update.body {
                Body::Account(account) => tree.event(account.slot, SlotEvent::Account(account))?,
                Body::BlockMeta(block) => tree.block(block)?,
                Body::Slot(slot) => tree.status(&slot)?,
                Body::Transaction(_) => bail!("none was sent"),
            };
            for action in actions {
                let Action::Emit {
                    commitment: Commitment::Confirmed,
                    events,
                    ..
                } = action
                else {
                    continue;
                };
                let accounts = events.accounts();
                let watchers = index.look_up(accounts.iter().map(|each| &each.pubkey));
                for (account, watchers) in accounts.into_iter().zip(watchers) {
                    index.account_change(watchers, &account.owner, &mut found);
                    concerned += found.len();
                }
            }
        }
        let took = begun.elapsed();
        self.check(concerned)?;
        Ok(took)
    }

    fn alone(
        &self,
        index: &SubscriptionIndex,
        keys: &[(Pubkey, Pubkey)],
    ) -> anyhow::Result<Duration> {
        let (mut found, mut concerned) = (Vec::new(), 0);
        let begun = Instant::now();
        for slot in keys.chunks(usize::try_from(PER_SLOT)?) {
            let watchers = index.look_up(slot.iter().map(|(account, _)| account));
            for ((_, owner), watchers) in slot.iter().zip(watchers) {
                index.account_change(watchers, owner, &mut found);
                concerned += black_box(&found).len();
            }
        }
        let took = begun.elapsed();
        self.check(concerned)?;
        Ok(took)
    }

    fn check(&self, concerned: usize) -> anyhow::Result<()> {
        anyhow::ensure!(
            u64::try_from(concerned)? == self.concerned,
            "{concerned} webhooks were concerned, and not {}",
            self.concerned
        );
        Ok(())
    }
}

fn account(number: u64) -> Pubkey {
    let [_, vault, _] = CHAIN.swapped(number, 0);
    vault.pubkey
}

/// A swap writes the vault of a pool.
fn write(slot: u64, version: u64, number: u64) -> AccountUpdate {
    let [_, vault, _] = CHAIN.swapped(number, 1);
    AccountUpdate {
        slot,
        pubkey: vault.pubkey,
        owner: vault.owner,
        lamports: vault.lamports,
        executable: false,
        rent_epoch: u64::MAX,
        data: vault.data,
        write_version: version,
        txn_signature: None,
        is_startup: false,
    }
}

async fn create(store: &Store, number: u64, filters: Filters) -> anyhow::Result<()> {
    let kinds = [EventKind::AccountChange].into_iter().collect();
    let url = "https://example.com/hook".to_owned();
    let new = NewWebhook {
        id: WebhookId::from_random(u128::from(number).to_be_bytes()),
        owner: Access::All,
        definition: WebhookDefinition::new(url, kinds, filters),
        secret: Secret::from_random([1; 32]),
        created: Timestamp::from(Clock::system().now()),
        relay_until: None,
    };
    store.create_webhook(&new, u32::MAX).await?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "some millions")]
fn count(number: u64) -> f64 {
    number as f64
}

fn per_second(took: Duration) -> f64 {
    count(UPDATES) / took.as_secs_f64()
}

/// Resident memory of a process that follows the webhooks of this database, bytes.
async fn memory(database: &Path) -> anyhow::Result<f64> {
    let child = Command::new(env::current_exe()?)
        .args([CHILD.as_ref(), database.as_os_str()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .output();
    let text = String::from_utf8(child.await?.stdout)?;
    match text.trim().parse() {
        Ok(bytes) => Ok(bytes),
        Err(_) => bail!("the process that holds the index said {text:?}"),
    }
}

/// The process that holds the index: says how many bytes are resident.
///
/// # Errors
/// When the database cannot be read, or this is no Linux.
pub async fn hold(database: &Path) -> anyhow::Result<()> {
    let store = Store::open(database).await?;
    let (watcher, subscriptions) = SubscriptionWatcher::start(store).await?;
    sleep(SETTLING).await;
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    println!("{}", kilobytes.context("the system does not say")? * 1_024);
    drop((watcher, subscriptions));
    Ok(())
}
