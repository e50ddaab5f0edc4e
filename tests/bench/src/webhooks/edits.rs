//! Edits of a filter: slots from the edit to its being in force, on a chain whose transactions flow.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use sluice_harness::indexer::IndexerHarness;
use sluice_store::{
    Access, EventKind, FilterEdit, FilterLimits, Filters, Store, WebhookDefinition, WebhookId,
};
use sluice_testkit::{
    figure::{Figure, Limit},
    scripted_chain::{ScriptedChain, State},
    transaction_flow::{Pace, TransactionFlow},
    updates::key,
    yellowstone_server::YellowstoneServer,
};
use solana_pubkey::Pubkey;
use tokio::time::sleep;

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
    let slots = |permille: usize| {
        let at = (times.len() * permille / 1_000).min(times.len() - 1);
        times[at].as_secs_f64() / SLOT_TIME.as_secs_f64()
    };
    Ok(vec![
        Figure::new(
            "filter edited -> in force, p50",
            slots(500),
            "slots",
            Limit::None,
        ),
        Figure::new(
            "filter edited -> in force, p99",
            slots(990),
            "slots",
            Limit::AtMost(2.0),
        ),
    ])
}

/// Adds an account to the webhook, or takes the last one away again; returns the time until that is in force.
async fn edit(store: &Store, webhook: &WebhookId, number: u8) -> anyhow::Result<Duration> {
    let account = only(key(100 + number / 2));
    let (add, remove) = if number.is_multiple_of(2) {
        (account, Filters::default())
    } else {
        (Filters::default(), account)
    };
    let edit = FilterEdit { add, remove };
    // What the edit itself takes counts.
    let begun = Instant::now();
    let edited = store.edit_filters(&Access::All, webhook, &edit, LIMITS, None);
    edited.await?.context("the webhook is gone")?;
    let revision = store.webhook_revision().await?;
    while begun.elapsed() < PATIENCE {
        let state = store.filter_state().await?;
        if state.is_some_and(|state| state.revision >= revision) {
            return Ok(begun.elapsed());
        }
        sleep(LOOK).await;
    }
    bail!("edit {number} is not in force after {PATIENCE:?}")
}

fn only(account: Pubkey) -> Filters {
    Filters {
        accounts: vec![account],
        programs: Vec::new(),
        ..Filters::default()
    }
}
