//! Subscription to a validator, read as what it is of and which slot it belongs to.

use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use yellowstone_grpc_proto::geyser::{
    SlotStatus, SubscribeRequest, SubscribeRequestFilterBlocks, SubscribeRequestFilterSlots,
    SubscribeRequestFilterTransactions, SubscribeUpdate, SubscribeUpdateBlock,
    geyser_client::GeyserClient, subscribe_update::UpdateOneof,
};

use crate::validator::{MAX_ANSWER_BYTES, PATIENCE, Validator};

/// What an update is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Account,
    Transaction,
    Entry,
    Block,
    BlockMeta,
    Status(SlotStatus),
}

/// A subscription.
pub struct Watch {
    // Kept open: a closed one would end some servers' streams.
    _requests: mpsc::Sender<SubscribeRequest>,
    updates: Streaming<SubscribeUpdate>,
}

impl Watch {
    pub async fn open(validator: &Validator, request: SubscribeRequest) -> Self {
        let (requests, receiver) = mpsc::channel(1);
        requests.send(request).await.unwrap();
        let mut client = GeyserClient::new(validator.channel().await)
            .max_decoding_message_size(MAX_ANSWER_BYTES);
        let updates = client.subscribe(ReceiverStream::new(receiver)).await;
        Self {
            _requests: requests,
            updates: updates.unwrap().into_inner(),
        }
    }

    /// The next update that is no ping.
    pub async fn next(&mut self) -> UpdateOneof {
        loop {
            let received = timeout(PATIENCE, self.updates.message());
            let update = received.await.expect("an update in time").unwrap();
            match update.expect("the stream is open").update_oneof.unwrap() {
                UpdateOneof::Ping(_) | UpdateOneof::Pong(_) => {}
                update => return update,
            }
        }
    }

    pub async fn next_block(&mut self) -> SubscribeUpdateBlock {
        loop {
            if let UpdateOneof::Block(block) = self.next().await {
                return block;
            }
        }
    }

    /// All updates until the last of that many blocks.
    pub async fn until_blocks(&mut self, blocks: usize) -> Vec<(u64, Kind)> {
        let mut updates = Vec::new();
        let mut seen = 0;
        while seen < blocks {
            let update = match self.next().await {
                UpdateOneof::Account(one) => (one.slot, Kind::Account),
                UpdateOneof::Transaction(one) => (one.slot, Kind::Transaction),
                UpdateOneof::Entry(one) => (one.slot, Kind::Entry),
                UpdateOneof::Block(one) => (one.slot, Kind::Block),
                UpdateOneof::BlockMeta(one) => (one.slot, Kind::BlockMeta),
                UpdateOneof::Slot(one) => (one.slot, Kind::Status(one.status())),
                other => panic!("{other:?}"),
            };
            updates.push(update);
            seen += usize::from(update.1 == Kind::Block);
        }
        updates
    }
}

pub fn sysvar_clock() -> String {
    "SysvarC1ock11111111111111111111111111111111".to_owned()
}

/// Blocks with their transactions, as by default.
pub fn blocks() -> SubscribeRequest {
    SubscribeRequest {
        blocks: [("b".to_owned(), SubscribeRequestFilterBlocks::default())].into(),
        ..SubscribeRequest::default()
    }
}

/// Blocks with all that they contain.
pub fn full_blocks() -> SubscribeRequest {
    let filter = SubscribeRequestFilterBlocks {
        include_accounts: Some(true),
        include_entries: Some(true),
        ..SubscribeRequestFilterBlocks::default()
    };
    SubscribeRequest {
        blocks: [("b".to_owned(), filter)].into(),
        ..SubscribeRequest::default()
    }
}

/// Every kind of update there is, with every status.
pub fn all_kinds() -> SubscribeRequest {
    let every_status = SubscribeRequestFilterSlots {
        interslot_updates: Some(true),
        ..SubscribeRequestFilterSlots::default()
    };
    let votes = SubscribeRequestFilterTransactions {
        vote: Some(true),
        ..SubscribeRequestFilterTransactions::default()
    };
    SubscribeRequest {
        accounts: [("a".to_owned(), Default::default())].into(),
        slots: [("s".to_owned(), every_status)].into(),
        // All there is on an idle chain.
        transactions: [("t".to_owned(), votes)].into(),
        entry: [("e".to_owned(), Default::default())].into(),
        blocks_meta: [("m".to_owned(), Default::default())].into(),
        ..full_blocks()
    }
}
