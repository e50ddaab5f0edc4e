//! Edits of a filter: slots from the edit to its being in force, on a chain whose transactions flow.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use sluice_geyser::{Body, SlotStatus, TransactionUpdate};
use sluice_harness::indexer::IndexerHarness;
use sluice_store::{
    Access, EventKind, FilterEdit, FilterLimits, Filters, Store, WebhookDefinition, WebhookId,
};
use sluice_testkit::{
    figure::{Figure, Limit},
    scripted_chain::{Message, ScriptedChain, State},
    updates::{key, transaction},
    yellowstone_server::YellowstoneServer,
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tokio::{task::AbortHandle, time::sleep};

/// Slot in which the chain begins, and what a slot lasts.
const GENESIS: u64 = 1_000;
const SLOT_TIME: Duration = Duration::from_millis(400);

/// Transactions of a slot.
const TRANSACTIONS: u32 = 20;

/// Slots after which a slot is confirmed, and finalized.
const CONFIRMED_AFTER: u64 = 2;
const FINALIZED_AFTER: u64 = 32;

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
};

/// Measures edits.
///
/// # Errors
/// When the server cannot be started, or an edit is never in force.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let chain = ScriptedChain::new(GENESIS, State::new());
    let server = YellowstoneServer::start(chain.clone()).await?;
    let mut harness = IndexerHarness::sqlite().await;
    harness.listen_to(server.endpoint());
    let definition = WebhookDefinition {
        events: [EventKind::Transaction].into_iter().collect(),
        filters: only(key(1)),
        ..harness.definition()
    };
    let webhook = harness.create_temporary(1, definition).await;
    let _flow = Flow::start(chain);
    let indexer = harness.start().await;
    indexer
        .until_checkpoint_past(GENESIS + CONFIRMED_AFTER)
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
    let edited = store.edit_filters(&Access::All, webhook, &edit, LIMITS, None);
    edited.await?.context("the webhook is gone")?;
    let begun = Instant::now();
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
    }
}

/// Transactions flow, spread over each slot, until this is dropped.
struct Flow(AbortHandle);

impl Drop for Flow {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Flow {
    fn start(chain: ScriptedChain) -> Self {
        let task = tokio::spawn(async move {
            for slot in GENESIS + 1.. {
                pass(&chain, slot).await;
            }
        });
        Self(task.abort_handle())
    }
}

async fn pass(chain: &ScriptedChain, slot: u64) {
    chain.lock().tree.open(slot, slot - 1);
    let status = |slot, status| chain.report(Message::status(slot, status, Some(slot - 1)));
    status(slot, SlotStatus::CreatedBank);
    for number in 0..TRANSACTIONS {
        chain.execute(slot, with_account(slot, number));
        sleep(SLOT_TIME / TRANSACTIONS).await;
    }
    status(slot, SlotStatus::Processed);
    for (after, level) in [
        (CONFIRMED_AFTER, SlotStatus::Confirmed),
        (FINALIZED_AFTER, SlotStatus::Finalized),
    ] {
        if slot > GENESIS + after {
            status(slot - after, level);
        }
    }
}

fn with_account(slot: u64, number: u32) -> TransactionUpdate {
    let Body::Transaction(update) = transaction(slot, 0).body else {
        unreachable!("it is one")
    };
    let mut signature = [0; 64];
    signature[..8].copy_from_slice(&slot.to_le_bytes());
    signature[8..12].copy_from_slice(&number.to_le_bytes());
    TransactionUpdate {
        signature: Signature::from(signature),
        account_keys: vec![key(9), key(1)],
        log_messages: Vec::new(),
        ..*update
    }
}
