//! Program watch: a program's transactions as they are executed, and what becomes of their slots.
//!
//! Quotes do not depend on it. A connection that is lost is opened again where the last confirmed slot was, and what that
//! does not bring back is said to be missed.

use std::collections::BTreeMap;

use service_kit::{Backoff, CancellationToken, OutageLog};
use sluice_chain_types::{Commitment, SlotStatus};
use sluice_geyser::{
    Body, Endpoint, Request, SlotUpdate, Stream, StreamError, TransactionFilter,
    limits::LONGEST_RECONNECT_PAUSE,
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tokio::{sync::mpsc, time::sleep};

/// Sightings that may wait for their consumer, which takes each in microseconds.
const WAITING: usize = 1_024;

/// What the stream shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sighting {
    /// The stream begins: what is executed from now on is shown.
    Begun {
        /// Whether what was executed since it was lost is shown too.
        is_resumed: bool,
    },
    /// The stream was lost.
    Lost,
    /// A transaction was executed.
    Executed {
        /// Its first signature.
        signature: Signature,
        /// The slot.
        slot: u64,
        /// Why it failed, if it did.
        error: Option<String>,
        /// Its logs, in order; the validator may have cut them.
        logs: Vec<String>,
    },
    /// A bank of a slot was created.
    Opened(u64),
    /// The block of a slot was frozen, after all that it executed.
    Block {
        /// The slot.
        slot: u64,
        /// Slot of the parent block.
        parent: u64,
        /// Number of blocks below it.
        height: Option<u64>,
    },
    /// A slot was given up.
    Dead(u64),
    /// A slot is confirmed, and all that it builds on.
    Confirmed(u64),
    /// A slot is finalized, and all that it builds on.
    Finalized(u64),
}

/// Watches a program at these servers, one after the other where one fails, until `shutdown`.
#[must_use]
pub fn watch_program(
    program: Pubkey,
    endpoints: Vec<Endpoint>,
    shutdown: CancellationToken,
) -> mpsc::Receiver<Sighting> {
    let (sightings, receiver) = mpsc::channel(WAITING);
    let watch = Watch {
        program,
        sightings,
        resume_at: None,
    };
    tokio::spawn(async move {
        shutdown.run_until_cancelled(watch.run(&endpoints)).await;
    });
    receiver
}

struct Watch {
    program: Pubkey,
    sightings: mpsc::Sender<Sighting>,
    /// The slot to be replayed from, where there is something to go on with.
    resume_at: Option<u64>,
}

impl Watch {
    async fn run(mut self, endpoints: &[Endpoint]) {
        let mut backoff = Backoff::up_to(LONGEST_RECONNECT_PAUSE);
        let mut outage = OutageLog::new("stream of sent transactions");
        for endpoint in endpoints.iter().cycle() {
            let end = self.session(endpoint, &mut backoff, &mut outage).await;
            if self.sightings.send(Sighting::Lost).await.is_err() {
                return;
            }
            if end.is_replay_unavailable() {
                self.resume_at = None;
            }
            outage.failed("the stream ended", &end);
            sleep(backoff.next_pause(rand::random())).await;
        }
    }

    async fn session(
        &mut self,
        endpoint: &Endpoint,
        backoff: &mut Backoff,
        outage: &mut OutageLog,
    ) -> StreamError {
        let request = request(self.program, self.resume_at);
        let mut stream = match Stream::open(endpoint, request).await {
            Ok(stream) => stream,
            Err(error) => return error,
        };
        // That the request was accepted does not say that its filters apply yet: an update does.
        let mut begun = Some(Sighting::Begun {
            is_resumed: self.resume_at.is_some(),
        });
        loop {
            let update = match stream.next().await {
                Ok(update) => update,
                Err(error) => return error,
            };
            backoff.reset();
            outage.recovered();
            for sighting in begun.take().into_iter().chain(of(update.body)) {
                if let Sighting::Confirmed(slot) = sighting {
                    self.resume_at = self.resume_at.max(Some(slot));
                }
                if self.sightings.send(sighting).await.is_err() {
                    return StreamError::Closed;
                }
            }
        }
    }
}

fn of(body: Body) -> Option<Sighting> {
    match body {
        Body::Transaction(transaction) => Some(Sighting::Executed {
            signature: transaction.signature,
            slot: transaction.slot,
            error: transaction.error,
            logs: transaction.log_messages,
        }),
        Body::BlockMeta(block) => Some(Sighting::Block {
            slot: block.slot,
            parent: block.parent_slot,
            height: block.block_height,
        }),
        Body::Slot(SlotUpdate { slot, status, .. }) => match status {
            SlotStatus::CreatedBank => Some(Sighting::Opened(slot)),
            SlotStatus::Confirmed => Some(Sighting::Confirmed(slot)),
            SlotStatus::Finalized => Some(Sighting::Finalized(slot)),
            SlotStatus::Dead => Some(Sighting::Dead(slot)),
            SlotStatus::Processed | SlotStatus::FirstShredReceived | SlotStatus::Completed => None,
        },
        Body::Account(_) => None,
    }
}

/// At processed. Failed transactions are among them: that it failed is what a sender wants to know.
fn request(program: Pubkey, from_slot: Option<u64>) -> Request {
    let transactions = TransactionFilter {
        account_include: vec![program],
        votes: Some(false),
        ..TransactionFilter::default()
    };
    Request {
        commitment: Commitment::Processed,
        transactions: BTreeMap::from([("program".to_owned(), transactions)]),
        slots: Some("slots".to_owned()),
        blocks_meta: Some("blocks".to_owned()),
        from_slot,
        ..Request::default()
    }
}
