//! Idle chain: slots that write nothing but the clock, streamed to every client, with a node that keeps up.
//!
//! It stands for a chain under a market that starts: what is measured is the start. A client gets nothing before its
//! subscription came; each slot begins under it, is reported in the order of real servers, and is confirmed at once, when the
//! node has reached it, and finalized 32 slots later.

use std::{io, time::Duration};

use cpmm::ids;
use sluice_geyser::{
    AccountUpdate, BlockMeta, Body, Request, SlotStatus, SlotUpdate, Update,
    scripted::{ClientGone, Connection, Received, ScriptedServer},
};
use solana_pubkey::Pubkey;
use tokio::{task::AbortHandle, time::sleep};

use crate::{population::clock, rpc_node::RpcNode};

/// Slots after which a slot is finalized.
const FINALITY: u64 = 32;

/// The chain. Dropping it ends it.
pub struct IdleChain {
    url: String,
    task: AbortHandle,
}

impl Drop for IdleChain {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl IdleChain {
    /// Lets slots pass at this pace, beginning after the one that `node` has reached.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(node: RpcNode, slot_time: Duration) -> io::Result<Self> {
        let mut server = ScriptedServer::start().await?;
        let url = server.endpoint().url.to_string();
        let task = tokio::spawn(async move {
            loop {
                let mut connection = server.accept().await;
                let Some(Received { request, .. }) = connection.received().await else {
                    continue;
                };
                // A client that goes may come again.
                let _ = pass_slots(&connection, &request, &node, slot_time).await;
            }
        });
        Ok(Self {
            url,
            task: task.abort_handle(),
        })
    }

    /// Address of the stream.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Slots pass, each confirmed at once, until the client goes.
async fn pass_slots(
    connection: &Connection,
    request: &Request,
    node: &RpcNode,
    slot_time: Duration,
) -> Result<(), ClientGone> {
    let with_clock = request.accounts.iter();
    let with_clock = with_clock.filter(|(_, filter)| filter.pubkeys.contains(&ids::CLOCK));
    let clocks: Vec<String> = with_clock.map(|(name, _)| name.clone()).collect();
    let slots: Vec<String> = request.slots.iter().cloned().collect();
    let blocks_meta: Vec<String> = request.blocks_meta.iter().cloned().collect();
    for slot in node.slot() + 1.. {
        let status_of = |slot, status| {
            Body::Slot(SlotUpdate {
                slot,
                parent: Some(slot - 1),
                status,
                dead_error: None,
            })
        };
        let status_update = |status| status_of(slot, status);
        let finalized = status_of(slot - FINALITY, SlotStatus::Finalized);
        let bodies = [
            (&slots, status_update(SlotStatus::CreatedBank)),
            (&clocks, clock_update(slot)),
            (&blocks_meta, block_meta(slot)),
            (&slots, status_update(SlotStatus::Processed)),
            (&slots, status_update(SlotStatus::Confirmed)),
            (&slots, finalized),
        ];
        node.reach(slot);
        // What no filter matches is not sent.
        for (filters, body) in bodies
            .into_iter()
            .filter(|(filters, _)| !filters.is_empty())
        {
            let update = Update {
                filters: filters.clone(),
                created_at: None,
                body,
            };
            connection.send(update).await?;
        }
        sleep(slot_time).await;
    }
    Ok(())
}

fn clock_update(slot: u64) -> Body {
    let clock = clock(slot);
    Body::Account(AccountUpdate {
        slot,
        pubkey: clock.pubkey,
        owner: clock.owner,
        lamports: clock.lamports,
        executable: false,
        rent_epoch: u64::MAX,
        data: clock.data,
        write_version: slot,
        txn_signature: None,
        is_startup: false,
    })
}

fn block_meta(slot: u64) -> Body {
    let hash = |slot: u64| {
        let mut bytes = [9; 32];
        bytes[..8].copy_from_slice(&slot.to_le_bytes());
        Pubkey::from(bytes).to_string()
    };
    Body::BlockMeta(BlockMeta {
        slot,
        parent_slot: slot - 1,
        blockhash: hash(slot),
        parent_blockhash: hash(slot - 1),
        block_time: None,
        block_height: Some(slot),
        executed_transaction_count: 0,
    })
}
