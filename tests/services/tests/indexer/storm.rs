//! Filter changes while ten thousand updates a second stream by.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use serde_json::Value;
use sluice_geyser::{
    Body, Request, SlotStatus,
    scripted::{ClientGone, Connection, ScriptedServer},
};
use sluice_store::{
    Access, DeliveryQuery, DeliveryState, EventKind, FilterChange, FilterEdit, FilterLimits,
    Filters, Revision, WebhookDefinition, WebhookId,
};
use solana_pubkey::Pubkey;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use sluice_harness::indexer::{IndexerHarness, PATIENCE, request, soon};
use sluice_testkit::{
    updates::{account_of, block, key, program, slot},
    webhook_receiver::ReceivedRequest,
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(filters_that_change_at_full_speed_miss_nothing_and_let_nothing_else_in);

/// Accounts that are written in every slot.
const ACCOUNTS: u8 = 20;

/// Writes of each account in a slot. All of them pass the wire and the tree; the last one is the news.
const WRITES: u64 = 25;

/// One slot: with the numbers above, ten thousand writes a second.
const SLOT_TIME: Duration = Duration::from_millis(50);

const FIRST_SLOT: u64 = 10;

/// Webhooks that come while the stream runs, one after the other.
const WEBHOOKS: u8 = 4;

/// Accounts that come to one of them, and of which every second one goes again.
const ADDED: std::ops::Range<u8> = 10..16;

const LIMITS: FilterLimits = FilterLimits {
    accounts: 100,
    programs: 100,
};

/// A chain that goes on whether anybody listens or not, and a server that replays what it is asked for and sends
/// what the filter in force lets through, to as many as ask.
struct Feed {
    server: ScriptedServer,
    chain: Chain,
}

#[derive(Clone)]
struct Chain {
    started: Instant,
    /// The highest slot that was sent as a whole.
    sent: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Feed {
    async fn run(mut self) {
        let mut clients = JoinSet::new();
        while !self.chain.stop.load(Ordering::SeqCst) {
            let Ok(mut connection) =
                tokio::time::timeout(Duration::from_millis(100), self.server.accept()).await
            else {
                continue;
            };
            let chain = self.chain.clone();
            clients.spawn(async move {
                let request = request(&mut connection).await;
                // Until the client is gone.
                let _ = chain.serve(connection, request).await;
            });
        }
        clients.join_all().await;
    }
}

impl Chain {
    async fn serve(
        &self,
        mut connection: Connection,
        mut request: Request,
    ) -> Result<(), ClientGone> {
        let live = self.sent.load(Ordering::SeqCst) + 1;
        let mut number = request.from_slot.unwrap_or(live);
        while !self.stop.load(Ordering::SeqCst) {
            // What is over is sent as fast as it is read.
            let slots = u32::try_from(number - FIRST_SLOT).expect("few");
            sleep_until(self.started + SLOT_TIME * slots).await;
            if let Some(received) = connection.received().now_or_never() {
                request = received.ok_or(ClientGone)?.request;
            }
            send_slot(&connection, &request, number).await?;
            self.sent.fetch_max(number, Ordering::SeqCst);
            number += 1;
        }
        Ok(())
    }
}

async fn send_slot(
    connection: &Connection,
    request: &Request,
    number: u64,
) -> Result<(), ClientGone> {
    let name = request.slots.clone().expect("always asked for");
    let wanted: BTreeSet<Pubkey> = request
        .accounts
        .values()
        .flat_map(|filter| filter.pubkeys.clone())
        .collect();
    connection
        .send(slot(&name, number, SlotStatus::CreatedBank))
        .await?;
    for version in 0..WRITES {
        for account in (0..ACCOUNTS).map(key).filter(|key| wanted.contains(key)) {
            let mut update = account_of(number, account, program(), Bytes::new());
            if let Body::Account(account) = &mut update.body {
                account.write_version = version;
            }
            connection.send(update).await?;
        }
    }
    connection.send(block(number)).await?;
    connection
        .send(slot(&name, number, SlotStatus::Processed))
        .await?;
    connection
        .send(slot(&name, number, SlotStatus::Confirmed))
        .await
}

fn accounts(numbers: std::ops::Range<u8>) -> Filters {
    Filters {
        accounts: numbers.map(key).collect(),
        programs: Vec::new(),
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
    sent: &AtomicU64,
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
                at: sent.load(Ordering::SeqCst) + 1,
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
    let (sent, stop) = (
        Arc::new(AtomicU64::new(FIRST_SLOT - 1)),
        Arc::new(AtomicBool::new(false)),
    );
    // No test reads what it is sent: it keeps the stream busy.
    harness
        .create_temporary(200, on_accounts(&harness, 0..ACCOUNTS))
        .await;
    let indexer = harness.start().await;
    let fresh = ScriptedServer::start().await.expect("listens");
    let started = Instant::now();
    let feed = Feed {
        server: std::mem::replace(&mut harness.server, fresh),
        chain: Chain {
            started,
            sent: Arc::clone(&sent),
            stop: Arc::clone(&stop),
        },
    };
    let feeding = tokio::spawn(feed.run());
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
    change_filters(&harness, &webhooks[0], &sent, &mut watched).await;
    for asked in watched.values() {
        in_force(&harness, asked.added).await;
    }
    let goal = sent.load(Ordering::SeqCst) + 20;
    indexer.until_checkpoint_past(goal).await;
    stop.store(true, Ordering::SeqCst);
    soon(feeding).await.expect("no panic");
    let last = sent.load(Ordering::SeqCst);
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
