//! Scripted validator in front of the real server, and a subscriber that names what it receives.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use sluice_geyser_plugin::{
    config::Config,
    message::{AccountUpdate, Event, Slot, SlotUpdate, Update},
    server::Server,
};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Channel};
use yellowstone_grpc_proto::{
    geyser::{
        SlotStatus, SubscribeRequest, SubscribeRequestPing, SubscribeUpdate,
        SubscribeUpdateBlockMeta, geyser_client::GeyserClient, subscribe_update::UpdateOneof,
    },
    solana::storage::confirmed_block::BlockHeight,
};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Chain {
    server: Option<Server>,
}

impl Chain {
    pub fn start(extra: &str) -> Self {
        let text = format!(r#"{{libpath: "none", grpc: {{address: "127.0.0.1:0"}}, {extra}}}"#);
        Self::with(&text)
    }

    pub fn with(config: &str) -> Self {
        let config = Config::parse(config).unwrap();
        Self {
            server: Some(Server::start(&config).unwrap()),
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

    pub fn completes(&self, slot: Slot) {
        self.says(Update::BlockMeta(Arc::new(SubscribeUpdateBlockMeta {
            slot,
            blockhash: bs58::encode([slot as u8; 32]).into_string(),
            block_height: Some(BlockHeight { block_height: slot }),
            parent_slot: slot - 1,
            ..SubscribeUpdateBlockMeta::default()
        })));
        self.reports(slot, SlotStatus::SlotProcessed);
    }

    pub fn reports(&self, slot: Slot, status: SlotStatus) {
        self.says(Update::Slot(SlotUpdate {
            slot,
            parent: Some(slot - 1),
            status,
            dead_error: None,
        }));
    }

    pub async fn client(&self) -> GeyserClient<Channel> {
        let endpoint = format!("http://{}", self.server().address());
        GeyserClient::connect(endpoint).await.unwrap()
    }

    pub async fn subscribe(&self, request: SubscribeRequest) -> Subscription {
        let (requests, receiver) = mpsc::channel(8);
        requests.send(request).await.unwrap();
        let updates = self
            .client()
            .await
            .subscribe(ReceiverStream::new(receiver))
            .await
            .unwrap()
            .into_inner();
        let mut subscription = Subscription { requests, updates };
        // A pong is given in order, so what was asked before it is being served.
        subscription.pong(-1).await;
        subscription
    }

    /// Stops the server outside of the test's runtime, as the validator does.
    pub async fn stop(mut self) {
        let server = self.server.take();
        tokio::task::spawn_blocking(move || drop(server))
            .await
            .unwrap();
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

    pub async fn next(&mut self) -> Result<Option<SubscribeUpdate>, Status> {
        timeout(PATIENCE, self.updates.message())
            .await
            .expect("an update in time")
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
