//! Edits of a filter: slots from the edit to its being in force, on a chain whose transactions flow.
//!
//! Once one edit after the other, beside nothing else, and once ten a second, by turns of 10,000 webhooks with ten accounts each.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use service_kit::Clock;
use sluice_harness::indexer::IndexerHarness;
use sluice_store::{
    Access, EventKind, FilterEdit, FilterLimits, Filters, NewWebhook, Secret, Store, Timestamp,
    WebhookDefinition, WebhookId,
};
use sluice_testkit::{
    figure::{Figure, Limit},
    scripted_chain::{ScriptedChain, State},
    transaction_flow::{Pace, TransactionFlow},
    updates::key,
    yellowstone_server::YellowstoneServer,
};
use solana_pubkey::Pubkey;
use tokio::{
    task::JoinSet,
    time::{interval, sleep},
};

/// What a slot lasts.
const SLOT_TIME: Duration = Duration::from_millis(400);

/// Slots of this time, with transactions spread over each.
const PACE: Pace = Pace {
    genesis: 1_000,
    transactions: 20,
    between: Duration::from_millis(20),
    confirmed_after: 2,
    finalized_after: 32,
};

/// Edits, and the time between two of them: no multiple of a slot, so that they meet every part of one.
const EDITS: u8 = 100;
const BETWEEN_EDITS: Duration = Duration::from_millis(270);

/// Webhooks of which each has [`ACCOUNTS`].
const CROWD: u64 = 10_000;
const ACCOUNTS: u64 = 10;

/// Edits by turns of theirs, and the time between the beginnings of two: ten in a second, whatever each of them takes.
const CROWD_EDITS: u64 = 200;
const BETWEEN_CROWD_EDITS: Duration = Duration::from_millis(100);

/// Between two looks at the database.
const LOOK: Duration = Duration::from_millis(2);

/// When to give up.
const PATIENCE: Duration = Duration::from_secs(60);

const LIMITS: FilterLimits = FilterLimits {
    accounts: 100,
    programs: 100,
    token_owners: 100,
};

/// Measures edits.
///
/// # Errors
/// When the server cannot be started, or an edit is never in force.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let alone = alone().await?;
    let crowd = crowd().await?;
    Ok(vec![
        Figure::new(
            "filter edited -> in force, p50",
            slots(&alone, 500),
            "slots",
            Limit::None,
        ),
        Figure::new(
            "filter edited -> in force, p99",
            slots(&alone, 990),
            "slots",
            Limit::AtMost(2.0),
        ),
        Figure::new(
            "10,000 webhooks of 10 accounts, 10 edits/s -> in force, p50",
            slots(&crowd, 500),
            "slots",
            Limit::None,
        ),
        Figure::new(
            "10,000 webhooks of 10 accounts, 10 edits/s -> in force, p99",
            slots(&crowd, 990),
            "slots",
            // An edit that comes during a round waits for its end and for the next one.
            Limit::AtMost(4.0),
        ),
    ])
}

/// So many of a thousand took no longer than this, in slots.
fn slots(times: &[Duration], permille: usize) -> f64 {
    let at = (times.len() * permille / 1_000).min(times.len().saturating_sub(1));
    times.get(at).map_or(f64::NAN, |time| {
        time.as_secs_f64() / SLOT_TIME.as_secs_f64()
    })
}

/// What edits of one webhook take, one after the other, the shortest first.
async fn alone() -> anyhow::Result<Vec<Duration>> {
    let chain = ScriptedChain::new(PACE.genesis, State::new());
    let server = YellowstoneServer::start(chain.clone()).await?;
    let mut harness = IndexerHarness::sqlite().await;
    harness.listen_to(server.endpoint());
    let definition = WebhookDefinition {
        events: [EventKind::Transaction].into_iter().collect(),
        filters: only(key(1)),
        ..harness.definition()
    };
    let webhook = harness.create_temporary(1, definition).await;
    let _flow = TransactionFlow::start(chain, PACE, |_| vec![key(9), key(1)]);
    let indexer = harness.start().await;
    indexer
        .until_checkpoint_past(PACE.genesis + PACE.confirmed_after)
        .await;

    let mut times = Vec::new();
    for number in 0..EDITS {
        sleep(BETWEEN_EDITS).await;
        times.push(edit(&harness.store, &webhook, number).await?);
    }
    indexer.end().await?;
    times.sort_unstable();
    Ok(times)
}

/// What edits take by turns of many webhooks, the shortest first.
async fn crowd() -> anyhow::Result<Vec<Duration>> {
    let chain = ScriptedChain::new(PACE.genesis, State::new());
    let server = YellowstoneServer::start(chain.clone()).await?;
    let mut harness = IndexerHarness::sqlite().await;
    harness.listen_to(server.endpoint());
    let mut webhooks = Vec::new();
    for number in 0..CROWD {
        webhooks.push(create(&harness, number).await?);
    }
    let _flow = TransactionFlow::start(chain, PACE, |_| vec![key(9), watched(CROWD - 1, 0)]);
    let indexer = harness.start().await;
    indexer
        .until_checkpoint_past(PACE.genesis + PACE.confirmed_after)
        .await;

    let mut edits = JoinSet::new();
    let mut ticks = interval(BETWEEN_CROWD_EDITS);
    for number in 0..CROWD_EDITS {
        ticks.tick().await;
        // Far apart from each other.
        let turn = number * (CROWD / CROWD_EDITS);
        let webhook = webhooks[usize::try_from(turn)?].clone();
        let store = harness.store.clone();
        let filters = FilterEdit {
            add: only(watched(turn, ACCOUNTS)),
            remove: only(watched(turn, 0)),
        };
        edits.spawn(async move { in_force(&store, &webhook, &filters).await });
    }
    let mut times = Vec::new();
    while let Some(time) = edits.join_next().await {
        times.push(time??);
    }
    indexer.end().await?;
    times.sort_unstable();
    Ok(times)
}

/// A temporary webhook on [`ACCOUNTS`] accounts of its own.
async fn create(harness: &IndexerHarness, number: u64) -> anyhow::Result<WebhookId> {
    let now = Timestamp::from(Clock::system().now());
    let new = NewWebhook {
        id: WebhookId::from_random(u128::from(number).to_be_bytes()),
        owner: Access::All,
        definition: WebhookDefinition {
            events: [EventKind::Transaction].into_iter().collect(),
            filters: Filters {
                accounts: (0..ACCOUNTS).map(|nth| watched(number, nth)).collect(),
                ..Filters::default()
            },
            ..harness.definition()
        },
        secret: Secret::from_random([1; 32]),
        created: now,
        relay_until: Some(now.after(Duration::from_secs(24 * 60 * 60))),
    };
    Ok(harness.store.create_webhook(&new, u32::MAX).await?.id)
}

/// An account of a webhook.
fn watched(webhook: u64, nth: u64) -> Pubkey {
    let mut address = [2; 32];
    address[..8].copy_from_slice(&webhook.to_be_bytes());
    address[8..16].copy_from_slice(&nth.to_be_bytes());
    Pubkey::new_from_array(address)
}

/// Adds an account to the webhook, or takes the last one away again; returns the time until that is in force.
async fn edit(store: &Store, webhook: &WebhookId, number: u8) -> anyhow::Result<Duration> {
    let account = only(key(100 + number / 2));
    let (add, remove) = if number.is_multiple_of(2) {
        (account, Filters::default())
    } else {
        (Filters::default(), account)
    };
    in_force(store, webhook, &FilterEdit { add, remove }).await
}

/// The time until an edit is in force.
async fn in_force(
    store: &Store,
    webhook: &WebhookId,
    edit: &FilterEdit,
) -> anyhow::Result<Duration> {
    // What the edit itself takes counts.
    let begun = Instant::now();
    let edited = store.edit_filters(&Access::All, webhook, edit, LIMITS, None);
    edited.await?.context("the webhook is gone")?;
    let revision = store.webhook_revision().await?;
    while begun.elapsed() < PATIENCE {
        let state = store.filter_state().await?;
        if state.is_some_and(|state| state.revision >= revision) {
            return Ok(begun.elapsed());
        }
        sleep(LOOK).await;
    }
    bail!("an edit of {webhook} is not in force after {PATIENCE:?}")
}

fn only(account: Pubkey) -> Filters {
    Filters {
        accounts: vec![account],
        programs: Vec::new(),
        ..Filters::default()
    }
}
