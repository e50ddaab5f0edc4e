//! Requested backfills: reads slots by RPC that an owner asks for, for one webhook, and tells or counts what they cause.
//!
//! What is told has the ids that it would have had when the slots were streamed, so what was told before stays told once. A
//! node's ledger does not have what accounts became, so changes of accounts are not among it. All that wait have turns of a few
//! slots each; the turns go round their owners, however many each of them asks for.

use std::{sync::Arc, time::Instant};

use service_kit::{CancellationToken, OutageLog};
use sluice_store::{
    ActiveWebhooks, Backfill, BackfillKind, BackfillState, BackfillTurn, Commitment, NewMessage,
    StoreError, Timestamp, WebhookId,
};
use solana_pubkey::Pubkey;
use tokio::{
    sync::watch,
    time::{Duration, sleep},
};

use super::outbox::{CommitPipeline, Outbox};
use crate::{
    events::{compose, idl::Idls, subscription_index::Subscriptions},
    rpc::{
        self, Node, NodeError,
        node::{Answer, Blocks},
    },
    slots::{Block, LastOwners, SlotEvent, SlotEvents},
    status::Status,
};

/// Slots that are read before another backfill has its turn: some seconds of a node's time.
const SLOTS_PER_TURN: u64 = 64;

/// Slots after those of a turn in which a block is looked for that names the last of them as its parent.
const WITNESS_SLOTS: u64 = 32;

/// Pause before it is asked again whether there is anything to read.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// Most bodies that a dry run shows.
const MAX_SAMPLES: usize = 10;

/// Most bytes of them together: a body may be as large as ten megabytes.
const MAX_SAMPLE_BYTES: usize = 256 * 1024;

/// Why nothing is read without a node.
const NO_NODE: &str =
    "the operator has switched reading by RPC off (indexer.backfill-calls-per-second is 0)";

/// The task that serves requested backfills.
#[derive(Debug)]
pub(crate) struct RequestedBackfills {
    pub(crate) node: Option<Node>,
    pub(crate) outbox: Outbox,
    pub(crate) idls: watch::Receiver<Arc<Idls>>,
    pub(crate) status: Status,
}

/// Why a turn ended early.
enum Fault {
    Node(NodeError),
    Store(StoreError),
}

impl From<NodeError> for Fault {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl RequestedBackfills {
    /// Serves them until `shutdown`.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut outage = OutageLog::new("serving requested backfills");
        let mut last = None;
        loop {
            let served = tokio::select! {
                () = shutdown.cancelled() => return,
                served = self.serve_next(&mut last) => served,
            };
            match &served {
                Ok(_) => outage.recovered(),
                Err(error) => outage.failed(error.outage(), error),
            }
            if !matches!(served, Ok(true)) {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = sleep(IDLE_PAUSE) => {}
                }
            }
        }
    }

    /// Gives a turn to a backfill of the tenant that comes after the one with the `last` turn; false when there is none.
    async fn serve_next(&self, last: &mut Option<WebhookId>) -> Result<bool, StoreError> {
        // What all webhooks miss is read first, and the node has one rate for both.
        if !self.status.is_connected() {
            return Ok(false);
        }
        let store = &self.outbox.store;
        let Some(backfill) = store.next_backfill(last.as_ref()).await? else {
            return Ok(false);
        };
        // Also where nothing comes of it now: one that cannot go on must not hold up other tenants.
        *last = Some(backfill.webhook.clone());
        let Some(webhook) = store.as_active(&backfill.webhook).await? else {
            return Ok(false);
        };
        let subscriptions = Subscriptions::new(&ActiveWebhooks {
            webhooks: vec![webhook],
            ..ActiveWebhooks::default()
        });
        let subscriptions = Arc::new(subscriptions.for_every_slot());
        let turn = match self.turn(&backfill, &subscriptions).await {
            Ok(Some(turn)) => turn,
            Ok(None) => return Ok(false),
            Err(Fault::Store(error)) => return Err(error),
            Err(Fault::Node(error)) => {
                tracing::warn!(webhook = %backfill.webhook, %error, "a requested backfill is given up");
                self.given_up(&backfill, error.to_string())
            }
        };
        store.record_backfill(&backfill, &turn).await?;
        Ok(true)
    }

    fn given_up(&self, backfill: &Backfill, error: String) -> BackfillTurn {
        BackfillTurn {
            next_slot: backfill.next_slot,
            state: BackfillState::Failed,
            error: Some(error),
            matched: 0,
            told: 0,
            lost: 0,
            samples: None,
            now: self.now(),
        }
    }

    /// Reads some slots; `None` while the node has not come so far.
    async fn turn(
        &self,
        backfill: &Backfill,
        subscriptions: &Arc<Subscriptions>,
    ) -> Result<Option<BackfillTurn>, Fault> {
        let Some(node) = &self.node else {
            return Ok(Some(self.given_up(backfill, NO_NODE.to_owned())));
        };
        let asked = backfill.next_slot;
        let last = backfill
            .last_slot
            .min(asked.saturating_add(SLOTS_PER_TURN - 1));
        let newest = node.slot(Commitment::Confirmed).await?;
        if newest < last {
            return Ok(None);
        }
        // What the ledger has no more, none of its blocks shows.
        let ledger = node.first_available_block().await?;
        let first = asked.max(ledger.min(last.saturating_add(1)));
        let mut found = Found::new(backfill);
        found.lost = first.saturating_sub(asked);
        if first <= last {
            let through = newest.min(last.saturating_add(WITNESS_SLOTS));
            let (mut slots, _) = node.slots_with_blocks(first, through).await?;
            // One after the last shows by its parent whether those at the end are there.
            slots.truncate(slots.partition_point(|slot| *slot <= last) + 1);
            self.read(node, (first, last), slots, subscriptions, &mut found)
                .await?;
        }
        let next_slot = last.saturating_add(1);
        Ok(Some(BackfillTurn {
            next_slot,
            state: if next_slot > backfill.last_slot {
                BackfillState::Done
            } else {
                BackfillState::Pending
            },
            error: None,
            matched: found.matched,
            told: found.told,
            lost: found.lost,
            samples: found.samples(),
            now: self.now(),
        }))
    }

    /// Reads the blocks of these slots, and takes what those up to the last one cause.
    async fn read(
        &self,
        node: &Node,
        (first, last): (u64, u64),
        slots: Vec<u64>,
        subscriptions: &Arc<Subscriptions>,
        found: &mut Found,
    ) -> Result<(), Fault> {
        let served = Arc::clone(subscriptions);
        let wanted = Arc::new(move |mentioned: &[Pubkey], token_owners: &[Pubkey]| {
            served.reads(mentioned, token_owners)
        });
        let mut blocks: Blocks<_> = node.blocks(slots, wanted);
        let mut known = first.saturating_sub(1);
        while let Some((slot, answer)) = blocks.next().await? {
            // What the node does not have shows in the parent of the next block.
            let Answer::Block(block) = answer else {
                continue;
            };
            let parent = block.meta.parent_slot.min(last);
            found.lost = found.lost.saturating_add(parent.saturating_sub(known));
            if slot > last {
                return Ok(());
            }
            let messages = self.messages(subscriptions, block);
            self.take(messages, found).await?;
            known = slot;
        }
        Ok(())
    }

    /// What a block causes for the webhook.
    fn messages(&self, subscriptions: &Subscriptions, read: rpc::Block) -> Vec<NewMessage> {
        let mut events = SlotEvents::default();
        for transaction in read.transactions {
            events.add(SlotEvent::Transaction(Box::new(transaction)));
        }
        let block = Block {
            slot: read.meta.slot,
            hash: read.meta.blockhash,
            parent: read.meta.parent_slot,
            time: read.meta.block_time,
        };
        let Some(webhook) = subscriptions.webhooks().first() else {
            return Vec::new();
        };
        let events = (&events, &LastOwners::default());
        let (idls, now) = (Arc::clone(&self.idls.borrow()), self.now());
        compose::events(
            subscriptions,
            &idls,
            webhook.commitment,
            &block,
            events,
            now,
        )
        .collect()
    }

    async fn take(&self, messages: Vec<NewMessage>, found: &mut Found) -> Result<(), StoreError> {
        let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        found.matched = found.matched.saturating_add(count);
        match found.kind {
            BackfillKind::DryRun => found.show(&messages),
            BackfillKind::Tell => {
                let mut pipeline = CommitPipeline::new(Instant::now());
                pipeline.batch.messages = messages;
                let inserted = pipeline.flush(&self.outbox).await?;
                found.told = found.told.saturating_add(inserted.new);
            }
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        Timestamp::from(self.outbox.clock.now())
    }
}

/// What was found in a turn.
struct Found {
    kind: BackfillKind,
    matched: u64,
    told: u64,
    lost: u64,
    /// JSON texts; those of earlier turns included.
    bodies: Vec<String>,
    bytes: usize,
    shown_before: usize,
}

impl Found {
    fn new(backfill: &Backfill) -> Self {
        let values: Vec<Box<serde_json::value::RawValue>> =
            serde_json::from_str(&backfill.samples).unwrap_or_default();
        let bodies: Vec<String> = values.iter().map(|body| body.get().to_owned()).collect();
        Self {
            kind: backfill.kind,
            matched: 0,
            told: 0,
            lost: 0,
            bytes: bodies.iter().map(String::len).sum(),
            shown_before: bodies.len(),
            bodies,
        }
    }

    /// Keeps the first bodies. Nothing of a dry run is numbered, so their number is 0.
    fn show(&mut self, messages: &[NewMessage]) {
        for message in messages {
            let length = usize::try_from(message.body.len_at_most()).unwrap_or(usize::MAX);
            let bytes = self.bytes.saturating_add(length);
            if self.bodies.len() >= MAX_SAMPLES || bytes > MAX_SAMPLE_BYTES {
                return;
            }
            self.bytes = bytes;
            self.bodies.push(message.body.with_sequence(0));
        }
    }

    /// The bodies as a JSON array; `None` where none was added.
    fn samples(&self) -> Option<String> {
        (self.bodies.len() > self.shown_before).then(|| format!("[{}]", self.bodies.join(",")))
    }
}
