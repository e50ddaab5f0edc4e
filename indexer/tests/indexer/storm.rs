//! Webhooks come and go while ten thousand updates a second stream by.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::body::Bytes;
use futures::FutureExt;
use serde_json::Value;
use sluice_geyser::{
    Request, SlotStatus, Update,
    scripted::{ClientGone, Connection, ScriptedServer},
};
use sluice_store::{EventKind, Filters, Revision, WebhookDefinition};
use solana_pubkey::Pubkey;
use tokio::time::sleep;

use crate::{
    machine::{Machine, request, soon},
    updates::{account_of, block, key, program, slot},
};

/// Accounts that are written in every slot.
const ACCOUNTS: u8 = 100;

/// Writes of each account in a slot. All of them pass the wire; the last one is the news.
const WRITES: u64 = 5;

/// One slot: with the numbers above, ten thousand writes a second.
const SLOT_TIME: Duration = Duration::from_millis(50);

const FIRST_SLOT: u64 = 10;

/// A server that replays what it is asked for and sends what the filter in force lets through.
struct Feed {
    server: ScriptedServer,
    /// The slot that comes next.
    next: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Feed {
    async fn run(mut self) {
        while !self.stop.load(Ordering::SeqCst) {
            let Ok(mut connection) =
                tokio::time::timeout(Duration::from_millis(100), self.server.accept()).await
            else {
                continue;
            };
            let request = request(&mut connection).await;
            // Until the client is gone.
            let _ = self.serve(connection, request).await;
        }
    }

    async fn serve(
        &self,
        mut connection: Connection,
        mut request: Request,
    ) -> Result<(), ClientGone> {
        let live = self.next.load(Ordering::SeqCst);
        let mut number = request.from_slot.unwrap_or(live);
        while !self.stop.load(Ordering::SeqCst) {
            if let Some(received) = connection.received().now_or_never() {
                request = received.ok_or(ClientGone)?.request;
            }
            send_slot(&connection, &request, number).await?;
            number += 1;
            // What was replayed was paced when it was new.
            if self.next.fetch_max(number, Ordering::SeqCst) < number {
                sleep(SLOT_TIME).await;
            }
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
    let wanted: Vec<Pubkey> = request
        .accounts
        .values()
        .flat_map(|filter| filter.pubkeys.clone())
        .collect();
    for version in 0..WRITES {
        for account in (0..ACCOUNTS).map(key).filter(|key| wanted.contains(key)) {
            let mut update: Update = account_of(number, account, program(), Bytes::new());
            if let sluice_geyser::Body::Account(account) = &mut update.body {
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

fn on_accounts(machine: &Machine, accounts: std::ops::Range<u8>) -> WebhookDefinition {
    WebhookDefinition {
        events: [EventKind::AccountChange].into_iter().collect(),
        filters: Filters {
            accounts: accounts.map(key).collect(),
            programs: Vec::new(),
        },
        ..machine.definition()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filter_changes_at_full_speed_miss_nothing_and_let_nothing_else_in() {
    const WEBHOOKS: u8 = 9;
    let mut machine = Machine::new().await;
    let (next, stop) = (
        Arc::new(AtomicU64::new(FIRST_SLOT)),
        Arc::new(AtomicBool::new(false)),
    );
    // Matched, but never delivered: it keeps the stream busy.
    let everything = WebhookDefinition {
        url: "https://192.0.2.1/".to_owned(),
        ..on_accounts(&machine, 0..ACCOUNTS)
    };
    machine.create(200, everything).await;
    let indexer = machine.start().await;
    let server = std::mem::replace(
        &mut machine.server,
        ScriptedServer::start().await.expect("listens"),
    );
    let feed = Feed {
        server,
        next: Arc::clone(&next),
        stop: Arc::clone(&stop),
    };
    let feeding = tokio::spawn(feed.run());
    indexer.until_checkpoint_past(FIRST_SLOT).await;

    let mut requested = BTreeMap::new();
    for number in 1..=WEBHOOKS {
        let definition = on_accounts(&machine, number..number + 1);
        let id = machine.create(number, definition).await;
        let revision = Revision(u64::from(number) + 1);
        let change = machine.store.filter_change(revision).await.expect("read");
        let since = change
            .expect("known")
            .requested_slot
            .expect("a slot was read");
        requested.insert(id.as_str().to_owned(), (number, since));
        sleep(Duration::from_millis(300)).await;
    }
    let goal = next.load(Ordering::SeqCst) + 20;
    indexer.until_checkpoint_past(goal).await;
    stop.store(true, Ordering::SeqCst);
    soon(feeding).await.expect("no panic");

    let last = next.load(Ordering::SeqCst) - 1;
    indexer.until_checkpoint_past(last).await;
    let expected: u64 = requested.values().map(|(_, since)| last - since + 1).sum();
    let received = machine
        .received(usize::try_from(expected).expect("small"))
        .await;
    let mut slots: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (_, body) in received {
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        let webhook = body["webhookId"].as_str().expect("text").to_owned();
        let (number, _) = requested[&webhook];
        assert_eq!(body["data"]["pubkey"], key(number).to_string());
        let heard = slots.entry(webhook).or_default();
        heard.push(body["slot"].as_u64().expect("a number"));
    }
    for (webhook, (_, since)) in requested {
        let heard = slots.entry(webhook).or_default();
        heard.sort_unstable();
        heard.retain(|slot| *slot >= since);
        assert_eq!(*heard, (since..=last).collect::<Vec<_>>());
    }
    indexer.stop().await;
}
