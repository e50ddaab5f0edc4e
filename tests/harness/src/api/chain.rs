//! Chain whose slots pass, over a real stream, for the API.
//!
//! It stands for a validator without forks or faults, and its node: what it does not do, the simulations do. It is
//! stricter in one thing: the node is always behind the stream.

use std::time::{Duration, SystemTime};

use cpmm::ids;
use service_kit::CancellationToken;
use sluice_chain_types::RawAccount;
use sluice_geyser::{
    AccountUpdate, BlockMeta, Body, Request, SlotStatus, SlotUpdate, Update,
    scripted::{ClientGone, Connection, Received, ScriptedServer},
};
use sluice_testkit::rpc_node::RpcNode;
use solana_pubkey::Pubkey;
use tokio::sync::mpsc;

/// Time between two slots: faster than a real chain, so that a test does not wait.
const SLOT: Duration = Duration::from_millis(25);

/// The first slot.
const FIRST_SLOT: u64 = 1_000;

/// The epoch, in which every transfer fee is in force.
const EPOCH: u64 = 500;

/// The node is this many slots behind the stream, as nodes are.
const NODE_LAG: u64 = 2;

/// Handle to the chain.
#[derive(Clone)]
pub struct Chain {
    writes: mpsc::UnboundedSender<RawAccount>,
    node: RpcNode,
}

impl Chain {
    /// Streams slots to each subscriber, until `shutdown`.
    pub(super) fn play(
        mut server: ScriptedServer,
        node: RpcNode,
        shutdown: CancellationToken,
    ) -> Self {
        let (writes, mut written) = mpsc::unbounded_channel();
        let chain = Self {
            writes,
            node: node.clone(),
        };
        tokio::spawn(shutdown.run_until_cancelled_owned(async move {
            let mut slot = FIRST_SLOT;
            loop {
                let connection = server.accept().await;
                // A client that goes may come again.
                let _ = stream(connection, &mut slot, &node, &mut written).await;
            }
        }));
        chain
    }

    /// Writes an account in the next slot.
    pub fn write(&self, account: RawAccount) {
        self.node.set(account.clone());
        // The chain ends with the test.
        let _ = self.writes.send(account);
    }

    /// The slot that the node has reached.
    #[must_use]
    pub fn slot(&self) -> u64 {
        self.node.slot()
    }
}

async fn stream(
    mut connection: Connection,
    slot: &mut u64,
    node: &RpcNode,
    written: &mut mpsc::UnboundedReceiver<RawAccount>,
) -> Result<(), ClientGone> {
    let mut in_force = Request::default();
    let mut pass = tokio::time::interval(SLOT);
    loop {
        tokio::select! {
            received = connection.received() => match received {
                Some(Received { request, ping: None }) => {
                    in_force = request;
                }
                Some(_) => {}
                None => return Err(ClientGone),
            },
            _ = pass.tick(), if in_force.slots.is_some() => {
                *slot += 1;
                let client = Client { connection: &connection, request: &in_force };
                client.status(*slot, SlotStatus::CreatedBank).await?;
                let mut version = 0;
                while let Ok(account) = written.try_recv() {
                    version += 1;
                    let body = account_body(*slot, version, account);
                    client.send(body).await?;
                }
                let clock = account_body(*slot, 0, clock(*slot));
                client.send(clock).await?;
                client.send(Body::BlockMeta(block(*slot))).await?;
                client.status(*slot, SlotStatus::Processed).await?;
                node.reach(*slot - NODE_LAG);
            }
        }
    }
}

/// A client with the request that it has in force.
struct Client<'a> {
    connection: &'a Connection,
    request: &'a Request,
}

impl Client<'_> {
    async fn status(&self, slot: u64, status: SlotStatus) -> Result<(), ClientGone> {
        let update = SlotUpdate {
            slot,
            parent: Some(slot - 1),
            status,
            dead_error: None,
        };
        self.send(Body::Slot(update)).await
    }

    /// Sends an update under the name of a filter of its kind.
    async fn send(&self, body: Body) -> Result<(), ClientGone> {
        let filter = match &body {
            Body::Slot(_) => self.request.slots.iter().next(),
            Body::BlockMeta(_) => self.request.blocks_meta.iter().next(),
            Body::Account(_) | Body::Transaction(_) => self.request.accounts.keys().next(),
        };
        let update = Update {
            filters: filter.into_iter().cloned().collect(),
            created_at: None,
            body,
        };
        self.connection.send(update).await
    }
}

fn block(slot: u64) -> BlockMeta {
    BlockMeta {
        slot,
        parent_slot: slot - 1,
        blockhash: format!("hash{slot}"),
        parent_blockhash: format!("hash{}", slot - 1),
        block_time: None,
        block_height: Some(slot),
        executed_transaction_count: 0,
    }
}

fn account_body(slot: u64, write_version: u64, account: RawAccount) -> Body {
    Body::Account(AccountUpdate {
        slot,
        pubkey: account.pubkey,
        owner: account.owner,
        lamports: account.lamports,
        executable: false,
        rent_epoch: u64::MAX,
        data: account.data,
        write_version,
        txn_signature: None,
        is_startup: false,
    })
}

/// The Clock sysvar: slot, epoch start, epoch, leader schedule epoch, time.
fn clock(slot: u64) -> RawAccount {
    let now = service_kit::Clock::system().now();
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let fields = [slot, 0, EPOCH, EPOCH + 1, now.as_secs()];
    RawAccount {
        pubkey: ids::CLOCK,
        owner: Pubkey::new_from_array([9; 32]),
        lamports: 1_169_280,
        data: fields.map(u64::to_le_bytes).concat().into(),
    }
}
