//! Filter changes while ten thousand updates a second stream by.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use sluice_store::{
    Access, DeliveryQuery, DeliveryState, EventKind, FilterChange, FilterEdit, FilterLimits,
    Filters, Revision, Store, WebhookDefinition, WebhookId,
};
use solana_pubkey::Pubkey;
use tokio::{
    task::yield_now,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use sluice_harness::indexer::{IndexerHarness, PATIENCE, soon};
use sluice_testkit::{
    accounts::{Account, Content},
    scripted_chain::{BlockId, ScriptedChain, State},
    updates::{key, program},
    webhook_receiver::ReceivedRequest,
    yellowstone_server::YellowstoneServer,
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(filters_that_change_at_full_speed_miss_nothing_and_let_nothing_else_in);

/// Accounts that are written in every slot.
const ACCOUNTS: u8 = 20;

/// Writes of each account in a slot. All of them pass the wire and the tree of the live stream; the last one is the news.
const WRITES: u64 = 25;

/// One slot: with the numbers above, ten thousand writes a second.
const SLOT_TIME: Duration = Duration::from_millis(50);

const FIRST_SLOT: u64 = 10;

/// Blocks after which a block is finalized.
const FINALITY: usize = 8;

/// Slots that the chain may be ahead of the checkpoint, which is three seconds of it. On a machine too busy to store as
/// many, the chain waits: a run in which every change is made on a backlog of minutes would show how long that takes,
/// and nothing of what comes into force between two slots.
const MOST_AHEAD: u64 = 60;

/// Slots that may pass before a change is in force, two thirds of those that the server keeps for replays. On a machine
/// too busy for that slots become as long as [`LONG_SLOT`]: what the server has forgotten is another test's matter.
const MOST_PENDING: u64 = 100;

const LONG_SLOT: Duration = Duration::from_secs(1);

/// Webhooks that come while the stream runs, one after the other.
const WEBHOOKS: u8 = 4;

/// Accounts that come to one of them, and of which every second one goes again.
const ADDED: std::ops::Range<u8> = 10..16;

const LIMITS: FilterLimits = FilterLimits {
    accounts: 100,
    programs: 100,
    token_owners: 100,
};

/// A chain on which all accounts are written in every slot, with or without a subscriber.
struct Storm {
    chain: ScriptedChain,
    /// Shows how far the indexer is.
    store: Store,
    /// The highest slot whose bank was created.
    opened: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Storm {
    async fn run(self) {
        let mut tip = self.chain.lock().tree.confirmed();
        let mut unfinalized = VecDeque::new();
        let mut ticks = interval(SLOT_TIME);
        // On a busy machine slots are longer, and do not come at once.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for slot in FIRST_SLOT.. {
            ticks.tick().await;
            self.wait_for_indexer(slot).await;
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            tip = self.chain.open(slot, tip);
            self.opened.store(slot, Ordering::SeqCst);
            self.write_all(tip).await;
            self.chain.freeze(tip);
            self.chain.seal(tip);
            self.chain.confirm(tip);
            unfinalized.push_back(tip);
            if unfinalized.len() > FINALITY
                && let Some(block) = unfinalized.pop_front()
            {
                self.chain.finalize(block);
            }
        }
    }

    /// Returns when the slot may come, or the chain is to stop.
    async fn wait_for_indexer(&self, slot: u64) {
        let newest = slot.saturating_sub(MOST_AHEAD);
        while newest >= FIRST_SLOT && !self.stop.load(Ordering::SeqCst) {
            let state = self.store.resume_state().await.expect("read");
            let requested = state.filter_changes.iter();
            let requested = requested.filter_map(|change| change.requested_slot).min();
            if requested.is_some_and(|requested| slot > requested + MOST_PENDING) {
                sleep(LONG_SLOT).await;
            }
            if state.confirmed >= Some(newest) {
                return;
            }
            sleep(SLOT_TIME).await;
        }
    }

    /// Writes each account in turn, again and again. The server looks for requests between two rounds as well.
    async fn write_all(&self, block: BlockId) {
        for version in 0..WRITES {
            for account in (0..ACCOUNTS).map(key) {
                let written = Account {
                    owner: program(),
                    lamports: 1,
                    data: Bytes::copy_from_slice(&version.to_le_bytes()),
                };
                let content = Content::Other(written);
                self.chain.write(block, account, content, None);
            }
            yield_now().await;
        }
    }
}

fn accounts(numbers: std::ops::Range<u8>) -> Filters {
    Filters {
        accounts: numbers.map(key).collect(),
        programs: Vec::new(),
        ..Filters::default()
    }
}

fn on_accounts(harness: &IndexerHarness, numbers: std::ops::Range<u8>) -> WebhookDefinition {
    WebhookDefinition {
        events: [EventKind::AccountChange].into_iter().collect(),
        filters: accounts(numbers),
        ..harness.definition()
    }
}

/// From when until when a webhook asked for an account.
#[derive(Debug)]
struct Asked {
    added: Revision,
    removed: Option<Removed>,
}

#[derive(Debug)]
struct Removed {
    revision: Revision,
    /// The slot that was streamed when this was known to be in force.
    at: u64,
}

type Watched = BTreeMap<(WebhookId, Pubkey), Asked>;

/// Adds accounts to a webhook and takes every second one away again.
async fn change_filters(
    harness: &IndexerHarness,
    webhook: &WebhookId,
    opened: &AtomicU64,
    watched: &mut Watched,
) {
    let edit = async |edit: FilterEdit| {
        let edited = harness
            .store
            .edit_filters(&Access::All, webhook, &edit, LIMITS, None)
            .await;
        edited.expect("written").expect("exists").webhook
    };
    for number in ADDED {
        let added = edit(FilterEdit {
            add: accounts(number..number + 1),
            ..FilterEdit::default()
        })
        .await;
        let asked = watched
            .entry((webhook.clone(), key(number)))
            .insert_entry(Asked {
                added: added.matched_revision,
                removed: None,
            });
        if number % 2 == 0 {
            // It comes into force while the stream runs, and goes while it is in force.
            in_force(harness, added.matched_revision).await;
            sleep(SLOT_TIME * 4).await;
            let removed = edit(FilterEdit {
                remove: accounts(number..number + 1),
                ..FilterEdit::default()
            })
            .await;
            let revision = removed.matched_revision;
            in_force(harness, revision).await;
            asked.into_mut().removed = Some(Removed {
                revision,
                at: opened.load(Ordering::SeqCst),
            });
        }
    }
}

async fn in_force(harness: &IndexerHarness, revision: Revision) -> FilterChange {
    let wait = async {
        loop {
            let change = harness.store.filter_change(revision).await.expect("read");
            if let Some(change) = change.filter(|change| change.in_force_slot.is_some()) {
                return change;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    soon(wait).await
}

/// The slots of which each of these webhooks was sent events, by account, once it is owed nothing any more.
async fn slots_sent(
    harness: &IndexerHarness,
    webhooks: &[WebhookId],
) -> BTreeMap<(WebhookId, Pubkey), Vec<u64>> {
    let owed = DeliveryQuery {
        state: Some(DeliveryState::Pending),
        ..DeliveryQuery::default()
    };
    let deadline = Instant::now() + PATIENCE;
    for id in webhooks {
        loop {
            let found = harness.store.deliveries(&Access::All, id, owed, 1).await;
            let found = found.expect("read").expect("exists");
            if found.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "still owed: {found:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }
    let mut sent = BTreeMap::<_, Vec<u64>>::new();
    for ReceivedRequest { body, .. } in harness.received(1).await {
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let webhook = WebhookId::parse(&text(&body["webhookId"])).expect("an id");
        let account: Pubkey = text(&body["data"]["pubkey"]).parse().expect("an address");
        let slot = body["slot"].as_u64().expect("a number");
        sent.entry((webhook, account)).or_default().push(slot);
    }
    sent
}

/// Each slot in which the account was asked for must have been sent, once, and no other, up to the last slot.
async fn check(harness: &IndexerHarness, asked: &Asked, mut slots: Vec<u64>, last: u64) {
    slots.sort_unstable();
    let added = in_force(harness, asked.added).await;
    let first = added.requested_slot.expect("a slot was read before");
    let (until, end) = match &asked.removed {
        None => (last + 1, last),
        Some(removed) => {
            let change = in_force(harness, removed.revision).await;
            (change.requested_slot.expect("a slot was read"), removed.at)
        }
    };
    let whole: Vec<u64> = (first..until).collect();
    let of_these = slots.iter().copied();
    let of_these: Vec<u64> = of_these.filter(|slot| whole.contains(slot)).collect();
    assert_eq!(of_these, whole, "{asked:?}: each slot, and once");
    let since = added.in_force_slot.expect("in force");
    assert!(
        slots.iter().all(|slot| (since..=end).contains(slot)),
        "{asked:?}: {slots:?} are not all from {since} to {end}"
    );
}

async fn filters_that_change_at_full_speed_miss_nothing_and_let_nothing_else_in(
    mut harness: IndexerHarness,
) {
    let (opened, stop) = (
        Arc::new(AtomicU64::new(FIRST_SLOT - 1)),
        Arc::new(AtomicBool::new(false)),
    );
    // No test reads what it is sent: it keeps the stream busy.
    harness
        .create_temporary(200, on_accounts(&harness, 0..ACCOUNTS))
        .await;
    let chain = ScriptedChain::new(FIRST_SLOT - 1, State::new());
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    harness.listen_to(server.endpoint());
    let indexer = harness.start().await;
    let started = Instant::now();
    let storm = Storm {
        chain,
        store: harness.store.clone(),
        opened: Arc::clone(&opened),
        stop: Arc::clone(&stop),
    };
    let passing = tokio::spawn(storm.run());
    indexer.until_checkpoint_past(FIRST_SLOT).await;

    let mut watched = Watched::new();
    let mut webhooks = Vec::new();
    for number in 1..=WEBHOOKS {
        let id = harness
            .create(number, on_accounts(&harness, number..number + 1))
            .await;
        let asked = Asked {
            added: Revision(u64::from(number) + 1),
            removed: None,
        };
        watched.insert((id.clone(), key(number)), asked);
        webhooks.push(id);
        sleep(SLOT_TIME * 6).await;
    }
    change_filters(&harness, &webhooks[0], &opened, &mut watched).await;
    for asked in watched.values() {
        in_force(&harness, asked.added).await;
    }
    let goal = opened.load(Ordering::SeqCst) + 20;
    indexer.until_checkpoint_past(goal).await;
    stop.store(true, Ordering::SeqCst);
    soon(passing).await.expect("no panic");
    let last = opened.load(Ordering::SeqCst);
    let writes = (last + 1 - FIRST_SLOT) * WRITES * u64::from(ACCOUNTS);
    let rate = writes as f64 / started.elapsed().as_secs_f64();
    println!("{writes} writes, {rate:.0} per second, while filters changed");
    indexer.until_checkpoint_past(last).await;

    let mut sent = slots_sent(&harness, &webhooks).await;
    for (of, asked) in watched {
        let slots = sent.remove(&of).unwrap_or_default();
        check(&harness, &asked, slots, last).await;
    }
    assert!(sent.is_empty(), "outside every filter: {sent:?}");
    indexer.stop().await;
}
