//! Scripted validator in front of the real server, and a subscriber that names what it receives.
//!
//! The validator stands for the one that calls the plugin. It is stricter in that nothing comes by itself: a status, a parent or
//! a write that a test leaves out is missing, which on a real one is rare. The server behind it is the one of production.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use sluice_geyser_plugin::{
    config::Config,
    message::{AccountUpdate, Event, Slot, SlotUpdate, TransactionUpdate, Update},
    server::Server,
};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Channel};
use yellowstone_grpc_proto::{
    geyser::{
        SlotStatus, SubscribeRequest, SubscribeRequestFilterSlots, SubscribeRequestPing,
        SubscribeUpdate, SubscribeUpdateBlockMeta, SubscribeUpdateEntry,
        SubscribeUpdateTransactionInfo, geyser_client::GeyserClient, subscribe_update::UpdateOneof,
    },
    solana::storage::confirmed_block::BlockHeight,
};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How the filter is named that proves a request to be in force, with a number of its own: it matches the statuses that
/// the chain makes up for it. A pong proves nothing, because the reader of requests gives it.
const PROOF: &str = "in force ";

/// Pause between two of these statuses.
const PROOF_INTERVAL: Duration = Duration::from_millis(5);

pub struct Chain {
    server: Option<Server>,
    proofs: AtomicU64,
}

impl Chain {
    pub fn start(extra: &str) -> Self {
        let text = format!(r#"{{libpath: "none", grpc: {{address: "127.0.0.1:0"}}, {extra}}}"#);
        Self::with(&text)
    }

    /// A chain whose first slot the plugin has seen from its beginning, so that the next one counts as whole.
    pub fn from_genesis(extra: &str) -> Self {
        let chain = Self::start(extra);
        chain.reports(0, SlotStatus::SlotCreatedBank);
        chain
    }

    pub fn with(config: &str) -> Self {
        let config = Config::parse(config).unwrap();
        Self {
            server: Some(Server::start(&config).unwrap()),
            proofs: AtomicU64::new(0),
        }
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    #[expect(clippy::disallowed_methods, reason = "an update says when it was made")]
    pub fn says(&self, update: Update) {
        self.server().intake().push(Event {
            update,
            created_at: SystemTime::now().into(),
        });
    }

    pub fn writes(&self, slot: Slot, key: u8, write_version: u64, data: &[u8]) {
        self.says(Update::Account(Arc::new(AccountUpdate {
            slot,
            address: [key; 32],
            owner: [key / 10; 32],
            lamports: 1,
            executable: false,
            rent_epoch: 0,
            data: Bytes::copy_from_slice(data),
            write_version,
            txn_signature: None,
            is_startup: false,
        })));
    }

    pub fn executes(&self, slot: Slot, index: u64) {
        self.says(Update::Transaction(Arc::new(TransactionUpdate {
            slot,
            signature: [index as u8; 64],
            is_vote: false,
            failed: false,
            keys: Vec::new(),
            token_owners: Vec::new(),
            info: SubscribeUpdateTransactionInfo {
                index,
                ..SubscribeUpdateTransactionInfo::default()
            },
            wire_bytes: 8,
        })));
    }

    pub fn records(&self, slot: Slot, index: u64, hash: u8) {
        self.says(Update::Entry(Arc::new(SubscribeUpdateEntry {
            slot,
            index,
            hash: vec![hash; 32],
            ..SubscribeUpdateEntry::default()
        })));
    }

    /// A block without transactions, of one entry.
    pub fn completes(&self, slot: Slot) {
        self.records(slot, 0, slot as u8);
        self.freezes(slot, 0);
        self.reports(slot, SlotStatus::SlotProcessed);
    }

    /// The block meta; the entry whose hash is the slot is the last one.
    pub fn freezes(&self, slot: Slot, transactions: u64) {
        self.says(Update::BlockMeta(Arc::new(SubscribeUpdateBlockMeta {
            slot,
            blockhash: bs58::encode([slot as u8; 32]).into_string(),
            block_height: Some(BlockHeight { block_height: slot }),
            parent_slot: slot - 1,
            executed_transaction_count: transactions,
            ..SubscribeUpdateBlockMeta::default()
        })));
    }

    pub fn reports(&self, slot: Slot, status: SlotStatus) {
        self.says(Update::Slot(SlotUpdate {
            slot,
            parent: slot.checked_sub(1),
            status,
            dead_error: None,
        }));
    }

    pub async fn client(&self) -> GeyserClient<Channel> {
        let endpoint = format!("http://{}", self.server().address());
        GeyserClient::connect(endpoint).await.unwrap()
    }

    /// Opens a stream and asks for nothing yet.
    pub async fn open(&self) -> Subscription {
        let (requests, receiver) = mpsc::channel(8);
        let updates = self
            .client()
            .await
            .subscribe(ReceiverStream::new(receiver))
            .await
            .unwrap()
            .into_inner();
        Subscription { requests, updates }
    }

    /// Subscribes and returns at once, with nothing known to be in force.
    pub async fn call(&self, request: SubscribeRequest) -> Subscription {
        let subscription = self.open().await;
        subscription.send(request).await;
        subscription
    }

    /// Subscribes and waits until the request is in force.
    pub async fn subscribe(&self, request: SubscribeRequest) -> Subscription {
        let mut subscription = self.open().await;
        self.replace(&mut subscription, request).await;
        subscription
    }

    /// Replaces the filter of a subscription and waits until it is in force. Drops what comes before.
    pub async fn replace(&self, subscription: &mut Subscription, mut request: SubscribeRequest) {
        let proof = format!("{PROOF}{}", self.proofs.fetch_add(1, Ordering::Relaxed));
        let every_status = SubscribeRequestFilterSlots {
            interslot_updates: Some(true),
            ..SubscribeRequestFilterSlots::default()
        };
        request.slots.insert(proof.clone(), every_status);
        subscription.send(request).await;
        loop {
            self.reports(0, SlotStatus::SlotFirstShredReceived);
            tokio::select! {
                () = subscription.proven(&proof) => return,
                () = sleep(PROOF_INTERVAL) => {}
            }
        }
    }

    /// Stops the server outside of the test's runtime, as the validator does.
    pub async fn stop(mut self) {
        let server = self.server.take();
        tokio::task::spawn_blocking(move || drop(server))
            .await
            .unwrap();
    }
}

/// Whether an update is of the status that the chain makes up for proofs, which no test reports.
fn is_made_up(update: &SubscribeUpdate) -> bool {
    match &update.update_oneof {
        Some(UpdateOneof::Slot(slot)) => {
            (slot.slot, slot.status()) == (0, SlotStatus::SlotFirstShredReceived)
        }
        _ => false,
    }
}

pub struct Subscription {
    pub requests: mpsc::Sender<SubscribeRequest>,
    pub updates: Streaming<SubscribeUpdate>,
}

impl Subscription {
    pub async fn send(&self, request: SubscribeRequest) {
        self.requests.send(request).await.unwrap();
    }

    /// The next update that is no proof. Several may have been made up for one request.
    pub async fn next(&mut self) -> Result<Option<SubscribeUpdate>, Status> {
        loop {
            let received = timeout(PATIENCE, self.updates.message());
            let mut received = received.await.expect("an update in time")?;
            if let Some(update) = &mut received {
                let count = update.filters.len();
                update.filters.retain(|name| !name.starts_with(PROOF));
                let proves = update.filters.len() < count;
                if proves && (update.filters.is_empty() || is_made_up(update)) {
                    continue;
                }
            }
            return Ok(received);
        }
    }

    /// Waits for an update that answers the filter.
    async fn proven(&mut self, proof: &str) {
        loop {
            let received = timeout(PATIENCE, self.updates.message());
            let update = received.await.expect("an update in time").unwrap();
            let update = update.expect("the stream is open");
            if update.filters.iter().any(|name| name == proof) {
                return;
            }
        }
    }

    /// The next update as `filters:what`.
    pub async fn name(&mut self) -> String {
        let update = self.next().await.unwrap().expect("the stream is open");
        let what = match update.update_oneof.unwrap() {
            UpdateOneof::Account(account) => {
                let slot = account.slot;
                let account = account.account.unwrap();
                format!(
                    "account {} in {slot} v{}",
                    account.pubkey[0], account.write_version
                )
            }
            UpdateOneof::Slot(slot) => format!("{} {}", slot.slot, slot.status().as_str_name()),
            UpdateOneof::Transaction(transaction) => format!(
                "transaction {} in {}",
                transaction.transaction.unwrap().index,
                transaction.slot
            ),
            UpdateOneof::Entry(entry) => format!("entry {} in {}", entry.index, entry.slot),
            UpdateOneof::Block(block) => format!(
                "whole block {}: {} accounts, {} transactions, {} entries",
                block.slot,
                block.accounts.len(),
                block.transactions.len(),
                block.entries.len()
            ),
            UpdateOneof::BlockMeta(meta) => format!("block {}", meta.slot),
            UpdateOneof::Pong(pong) => format!("pong {}", pong.id),
            other => format!("{other:?}"),
        };
        format!("{}:{what}", update.filters.join(","))
    }

    pub async fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(self.name().await);
        }
        names
    }

    pub async fn pong(&mut self, id: i32) {
        self.send(SubscribeRequest {
            ping: Some(SubscribeRequestPing { id }),
            ..SubscribeRequest::default()
        })
        .await;
        while self.name().await != format!(":pong {id}") {}
    }

    /// Reads to the end, which comes without a status, and returns how many updates came before it.
    pub async fn plain_end(&mut self) -> usize {
        let mut updates = 0;
        while self.next().await.expect("no status").is_some() {
            updates += 1;
        }
        updates
    }

    /// Reads to the end and returns the status and how many updates came before it.
    pub async fn end(&mut self) -> (Status, usize) {
        let mut updates = 0;
        loop {
            match self.next().await {
                Ok(Some(_)) => updates += 1,
                Ok(None) => panic!("ended without a status"),
                Err(status) => return (status, updates),
            }
        }
    }
}
