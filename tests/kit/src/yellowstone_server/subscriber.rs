//! Subscriber of the server: its place in the live ring, the request in force, and the newest one that waits.

use std::{ops::ControlFlow, sync::Arc};

use sluice_geyser::{
    BlockMeta, Body, Request, Update,
    scripted::{ClientGone, Code, Connection, Received, Unsent},
};

use super::{
    ReplayPolicy, Shared, lock,
    replay::{Blocks, NoReplay, Numbered},
    ring::LiveRing,
};
use crate::{
    filters,
    scripted_chain::{Ending, Message, ScriptedChain},
};

/// Data of an account that no filter asked for belongs to a filter of the server's making.
const OVERSIZED_FILTER: &str = "pools";

/// How a server ends a stream: with a status, or without.
type End = Option<(Code, String)>;

/// What is done next: go on, or end the stream.
type Next = Result<ControlFlow<End>, ClientGone>;

/// One call of a client.
pub struct Subscriber {
    connection: Connection,
    chain: ScriptedChain,
    shared: Arc<Shared>,
    /// Number of the message of the live ring that comes next.
    at: usize,
    ring: LiveRing,
    in_force: Option<Request>,
    /// The newest request that was not applied yet.
    pending: Option<Request>,
    /// Requests received, pings not counted.
    received: usize,
    _open: Open,
}

/// Counts a stream as open for as long as it lives.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: Arc<Shared>) -> Self {
        lock(&shared.seen).open += 1;
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        lock(&self.0.seen).open -= 1;
    }
}

impl Subscriber {
    /// Joins the live ring with an empty filter.
    pub fn join(connection: Connection, chain: ScriptedChain, shared: Arc<Shared>) -> Self {
        let behind = lock(&shared.settings).behind;
        let at = chain.lock().messages.len().saturating_sub(behind);
        Self {
            connection,
            chain,
            _open: Open::new(Arc::clone(&shared)),
            shared,
            at,
            ring: LiveRing::default(),
            in_force: None,
            pending: None,
            received: 0,
        }
    }

    /// Serves the call until it ends or the client goes.
    ///
    /// # Errors
    /// When the client goes.
    pub async fn serve(mut self) -> Result<(), ClientGone> {
        let mut held = self.shared.held.subscribe();
        let mut reported = self.chain.listen();
        loop {
            let at = self.at + lock(&self.shared.settings).behind;
            // Requests and the ring are looked at in any order, as by the server's own loop.
            let next = tokio::select! {
                received = self.connection.received() => match received {
                    Some(received) => self.take(received),
                    // Read to its end, or a request was too large: either way there is no status.
                    None => return Ok(()),
                },
                applying = async { held.wait_for(|held| !held.requests).await.is_ok() },
                    if self.pending.is_some() => match applying {
                    true => self.apply().await?,
                    false => return Ok(()),
                },
                more = async { reported.wait_for(|len| *len > at).await.is_ok() } => match more {
                    true => self.live().await?,
                    false => return Ok(()),
                },
            };
            if let ControlFlow::Break(end) = next {
                return match end {
                    Some((code, text)) => self.connection.fail(code, &text).await,
                    // Dropping the connection ends the stream.
                    None => Ok(()),
                };
            }
        }
    }

    /// Notes what the client sent. A ping is answered for itself, whatever else is in the message.
    fn take(&mut self, received: Received) -> ControlFlow<End> {
        let mut seen = lock(&self.shared.seen);
        if received.ping.is_some() {
            seen.pongs += 1;
            return ControlFlow::Continue(());
        }
        self.received += 1;
        let is_first = self.received == 1;
        let requests = if is_first {
            &mut seen.first
        } else {
            &mut seen.later
        };
        requests.push(received.request.clone());
        drop(seen);
        if is_first && let Some(refusal) = lock(&self.shared.refusals).pop() {
            return ControlFlow::Break(Some(refusal));
        }
        if let Err(words) = lock(&self.shared.settings).limits.check(&received.request) {
            let text = format!("failed to create filter: {words}");
            return ControlFlow::Break(Some((Code::InvalidArgument, text)));
        }
        let from_slot = received.request.from_slot;
        let ignored = !is_first && !lock(&self.shared.settings).replays_later;
        self.pending = Some(Request {
            from_slot: from_slot.filter(|_| !ignored),
            ..received.request
        });
        ControlFlow::Continue(())
    }

    /// Puts the newest request in force, and replays what it asks for before the ring goes on.
    async fn apply(&mut self) -> Next {
        let request = self.pending.take();
        let from_slot = request.as_ref().and_then(|request| request.from_slot);
        self.in_force = request;
        let Some(from_slot) = from_slot else {
            return Ok(ControlFlow::Continue(()));
        };
        let mut held = self.shared.held.subscribe();
        // The server is gone when no replay can be held up any more.
        let _ = held.wait_for(|held| !held.replays).await;
        let replayed = match self.replay(from_slot) {
            Ok(replayed) => replayed,
            Err(refusal) => return Ok(ControlFlow::Break(Some(refusal))),
        };
        for numbered in replayed {
            if let Some(update) = self.filtered(numbered) {
                self.connection.send(update).await?;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn replay(&self, from: u64) -> Result<Vec<Numbered>, (Code, String)> {
        let settings = lock(&self.shared.settings).clone();
        match &settings.replay {
            ReplayPolicy::Refused(code, text) => return Err((*code, text.clone())),
            ReplayPolicy::Nothing => return Ok(Vec::new()),
            _ if settings.stored_slots == 0 => {
                return Err((Code::Internal, "from_slot is not supported".to_owned()));
            }
            _ => {}
        }
        let kept_from = *lock(&self.shared.kept_from);
        let blocks = {
            let record = self.chain.lock();
            let known = record.messages.len().saturating_sub(settings.behind);
            Blocks::after(record.reported(kept_from..known))
        };
        let replayed = blocks.replay(from, &settings);
        replayed.map_err(|refused| match refused {
            NoReplay::NotStarted => (Code::Internal, "failed to get replay response".to_owned()),
            NoReplay::TooOld { first } => (
                Code::OutOfRange,
                format!("broadcast from {from} is not available, last available: {first}"),
            ),
        })
    }

    /// Passes the next message of the ring on, if it is for this client.
    async fn live(&mut self) -> Next {
        let ring = lock(&self.shared.settings).ring;
        let (message, behind) = {
            let record = self.chain.lock();
            let behind = record.messages.len() - self.at;
            (record.messages[self.at].clone(), behind)
        };
        if behind > ring {
            let text = "lagged to receive geyser messages".to_owned();
            return Ok(ControlFlow::Break(Some((Code::Internal, text))));
        }
        let number = self.at;
        self.at += 1;
        match message {
            Message::End(Ending::Close) => return Ok(ControlFlow::Break(None)),
            Message::End(Ending::Error(code, text)) => {
                return Ok(ControlFlow::Break(Some((code, text))));
            }
            Message::Ping => self.connection.ping().await?,
            Message::Garbage => self.connection.send_garbage().await?,
            Message::Oversized(len) => self.connection.send(oversized(len)).await?,
            Message::Update(_) => return self.pass_on(number),
        }
        Ok(ControlFlow::Continue(()))
    }

    fn pass_on(&mut self, number: usize) -> Next {
        let Some(request) = &self.in_force else {
            return Ok(ControlFlow::Continue(()));
        };
        let commitment = request.commitment;
        let carried = self.ring.carried(&self.chain.lock(), number, commitment);
        for update in carried
            .into_iter()
            .filter_map(|numbered| self.filtered(numbered))
        {
            match self.connection.try_send(update) {
                Ok(()) => {}
                Err(Unsent::QueueFull) => {
                    let text = "lagged to send an update".to_owned();
                    return Ok(ControlFlow::Break(Some((Code::Internal, text))));
                }
                Err(Unsent::ClientGone(gone)) => return Err(gone),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The update with the names of the filters that let it through, if any does.
    fn filtered(&self, (bank, body): Numbered) -> Option<Update> {
        let settings = lock(&self.shared.settings);
        let (rival_from, sends_ids) = (settings.rival_from, settings.bank_ids);
        drop(settings);
        let body = match rival_from {
            Some(first) => of_rival(first, body)?,
            None => body,
        };
        let filters = filters::names(self.in_force.as_ref()?, &body);
        (!filters.is_empty()).then_some(Update {
            filters,
            created_at: None,
            bank_id: bank.filter(|_| sends_ids),
            body,
        })
    }
}

/// What a server says that is of another chain from `first` on.
fn of_rival(first: u64, body: Body) -> Option<Body> {
    let renamed = |slot: u64, hash: String| match slot {
        slot if slot >= first => format!("rival-{hash}"),
        _ => hash,
    };
    match body {
        Body::BlockMeta(block) => Some(Body::BlockMeta(BlockMeta {
            blockhash: renamed(block.slot, block.blockhash),
            parent_blockhash: renamed(block.parent_slot, block.parent_blockhash),
            ..block
        })),
        Body::Account(account) if account.slot >= first && account.pubkey != cpmm::ids::CLOCK => {
            None
        }
        Body::Transaction(transaction) if transaction.slot >= first => None,
        body => Some(body),
    }
}

fn oversized(len: usize) -> Update {
    Update {
        filters: vec![OVERSIZED_FILTER.to_owned()],
        created_at: None,
        bank_id: None,
        body: Body::Account(sluice_geyser::AccountUpdate {
            slot: 0,
            pubkey: solana_pubkey::Pubkey::default(),
            owner: cpmm::ids::PROGRAM_ID,
            lamports: 1,
            executable: false,
            rent_epoch: u64::MAX,
            data: vec![0; len].into(),
            write_version: 0,
            txn_signature: None,
            is_startup: false,
        }),
    }
}
