//! Yellowstone server: streams a scripted chain, filtered as each subscriber asks, and replays what it missed.
//!
//! It stands for a Geyser server with the Yellowstone service. It is as strict as one with its filters, and stricter with a
//! replay: it may leave out all but the last write of an account, or number writes as another validator does.

mod preencoded;

pub use preencoded::Preencoded;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use sluice_geyser::{
    AccountUpdate, Body, Request, Update,
    scripted::{ClientGone, Code, Connection, Received, ScriptedServer},
};
use solana_pubkey::Pubkey;
use tokio::task::AbortHandle;

use crate::{
    filters,
    scripted_chain::Write,
    scripted_chain::{ChainRecord, Ending, Message, ScriptedChain},
};

/// What a server does when it is asked to replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReplayPolicy {
    /// It replays every write, in order.
    #[default]
    Whole,
    /// It replays the last write of each account in each slot.
    LastWrites,
    /// The same, from another validator, whose write versions are smaller and unrelated.
    OtherVersions,
    /// It says no.
    Refused(Code, String),
    /// It says nothing and goes on from now.
    Nothing,
}

#[derive(Default)]
struct Play {
    replay: ReplayPolicy,
    requests: Vec<Request>,
    replaced: usize,
    pongs: usize,
}

/// The server. Dropping it ends it.
pub struct YellowstoneServer {
    address: SocketAddr,
    play: Arc<Mutex<Play>>,
    refusals: Arc<Mutex<Vec<(Code, String)>>>,
    accepting: AbortHandle,
}

impl Drop for YellowstoneServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl YellowstoneServer {
    /// A server of this record.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(record: ScriptedChain) -> io::Result<Self> {
        let scripted = ScriptedServer::start().await?;
        let url = scripted.endpoint().url;
        let address = url.socket_addrs(|| None)?.first().copied();
        let play = Arc::<Mutex<Play>>::default();
        let refusals = Arc::<Mutex<Vec<(Code, String)>>>::default();
        let accepting = tokio::spawn(accept(
            scripted,
            record,
            Arc::clone(&play),
            Arc::clone(&refusals),
        ));
        Ok(Self {
            address: address.ok_or(io::ErrorKind::AddrNotAvailable)?,
            play,
            refusals,
            accepting: accepting.abort_handle(),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it does when it is asked to replay, from now on.
    pub fn on_replay(&self, replay: ReplayPolicy) {
        lock(&self.play).replay = replay;
    }

    /// Ends the next subscription right after it was opened.
    pub fn refuse_next(&self, code: Code, text: &str) {
        lock(&self.refusals).push((code, text.to_owned()));
    }

    /// Every subscription opened so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.play).requests.clone()
    }

    /// How often a subscription was replaced on an open stream.
    #[must_use]
    pub fn replaced(&self) -> usize {
        lock(&self.play).replaced
    }

    /// How many pings were answered.
    #[must_use]
    pub fn pongs(&self) -> usize {
        lock(&self.play).pongs
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(
    mut scripted: ScriptedServer,
    record: ScriptedChain,
    play: Arc<Mutex<Play>>,
    refusals: Arc<Mutex<Vec<(Code, String)>>>,
) {
    loop {
        let mut connection = scripted.accept().await;
        let Some(Received { request, .. }) = connection.received().await else {
            continue;
        };
        lock(&play).requests.push(request.clone());
        let refusal = lock(&refusals).pop();
        if let Some((code, text)) = refusal {
            // The client may be gone already.
            let _ = connection.fail(code, &text).await;
            continue;
        }
        let replay = lock(&play).replay.clone();
        tokio::spawn(serve(
            connection,
            request,
            replay,
            record.clone(),
            Arc::clone(&play),
        ));
    }
}

/// Serves one subscription until it ends or the client goes.
async fn serve(
    connection: Connection,
    request: Request,
    replay: ReplayPolicy,
    record: ScriptedChain,
    play: Arc<Mutex<Play>>,
) {
    let (from, refused, missed) = {
        let record = record.lock();
        let (refused, missed) = match (request.from_slot, &replay) {
            (None, _) | (Some(_), ReplayPolicy::Nothing) => (None, Vec::new()),
            (Some(_), ReplayPolicy::Refused(code, text)) => {
                (Some((*code, text.clone())), Vec::new())
            }
            (Some(slot), kind) => (None, replayed(&record, slot, kind)),
        };
        (record.messages.len(), refused, missed)
    };
    if let Some((code, text)) = refused {
        // The client may be gone already.
        let _ = connection.fail(code, &text).await;
        return;
    }
    let client = Client {
        connection,
        request,
        play,
    };
    // Whichever way a client goes, the record goes on without it.
    let _ = client.follow(&record, missed, from).await;
}

struct Client {
    connection: Connection,
    request: Request,
    play: Arc<Mutex<Play>>,
}

impl Client {
    async fn follow(
        mut self,
        record: &ScriptedChain,
        missed: Vec<Message>,
        mut at: usize,
    ) -> Result<(), ClientGone> {
        let mut reported = record.listen();
        for message in missed {
            self.say(message).await?;
        }
        loop {
            let news = record.lock().messages[at..].to_vec();
            at += news.len();
            for message in news {
                match message {
                    // Dropping the connection ends the stream.
                    Message::End(Ending::Close) => return Ok(()),
                    Message::End(Ending::Error(code, text)) => {
                        return self.connection.fail(code, &text).await;
                    }
                    message => self.say(message).await?,
                }
            }
            tokio::select! {
                more = reported.wait_for(|len| *len > at) => {
                    if more.is_err() {
                        return Ok(());
                    }
                }
                received = self.connection.received() => match received {
                    Some(received) => self.note(&received),
                    None => return Ok(()),
                },
            }
        }
    }

    fn note(&self, received: &Received) {
        let mut play = lock(&self.play);
        if received.ping.is_some() {
            play.pongs += 1;
        } else {
            play.replaced += 1;
        }
    }

    async fn say(&self, message: Message) -> Result<(), ClientGone> {
        let (filters, body) = match message {
            Message::Ping => return self.connection.ping().await,
            Message::Garbage => return self.connection.send_garbage().await,
            Message::End(_) => return Ok(()),
            Message::Oversized(len) => (vec!["pools".to_owned()], Body::Account(oversized(len))),
            Message::Slot(update) => match &self.request.slots {
                Some(name) => (vec![name.clone()], Body::Slot(update)),
                None => return Ok(()),
            },
            Message::Account { slot, write } => {
                let account = write.content.account();
                let names = filters::names(&self.request, &write.key, &account);
                if names.is_empty() {
                    return Ok(());
                }
                let update = AccountUpdate {
                    slot,
                    pubkey: write.key,
                    owner: account.owner,
                    lamports: account.lamports,
                    executable: false,
                    rent_epoch: u64::MAX,
                    data: account.data,
                    write_version: write.version,
                    txn_signature: None,
                    is_startup: false,
                };
                (names, Body::Account(update))
            }
        };
        let update = Update {
            filters,
            created_at: None,
            body,
        };
        self.connection.send(update).await
    }
}

fn oversized(len: usize) -> AccountUpdate {
    AccountUpdate {
        slot: 0,
        pubkey: Pubkey::default(),
        owner: cpmm::ids::PROGRAM_ID,
        lamports: 1,
        executable: false,
        rent_epoch: u64::MAX,
        data: Bytes::from(vec![0; len]),
        write_version: 0,
        txn_signature: None,
        is_startup: false,
    }
}

/// Everything reported of `from` and later slots, slot by slot: content first, then statuses.
fn replayed(record: &ChainRecord, from: u64, kind: &ReplayPolicy) -> Vec<Message> {
    let mut contents: BTreeMap<u64, Vec<Write>> = BTreeMap::new();
    let mut statuses: BTreeMap<u64, Vec<Message>> = BTreeMap::new();
    for message in &record.messages {
        match message {
            Message::Account { slot, write } if *slot >= from => {
                contents.entry(*slot).or_default().push(write.clone());
            }
            Message::Slot(update) if update.slot >= from => {
                statuses
                    .entry(update.slot)
                    .or_default()
                    .push(message.clone());
            }
            _ => {}
        }
    }
    let slots: BTreeSet<u64> = contents.keys().chain(statuses.keys()).copied().collect();
    let mut messages = Vec::new();
    for slot in slots {
        let writes = contents.remove(&slot).unwrap_or_default();
        let writes = match kind {
            ReplayPolicy::Whole => writes,
            ReplayPolicy::LastWrites => last_writes(writes),
            _ => renumbered(last_writes(writes)),
        };
        messages.extend(
            writes
                .into_iter()
                .map(|write| Message::Account { slot, write }),
        );
        messages.extend(statuses.remove(&slot).unwrap_or_default());
    }
    messages
}

/// The write of the highest version of each account, in no particular order.
fn last_writes(writes: Vec<Write>) -> Vec<Write> {
    let mut last: BTreeMap<Pubkey, Write> = BTreeMap::new();
    for write in writes {
        match last.get(&write.key) {
            Some(held) if held.version > write.version => {}
            _ => drop(last.insert(write.key, write)),
        }
    }
    last.into_values().collect()
}

fn renumbered(writes: Vec<Write>) -> Vec<Write> {
    let numbered = writes.into_iter().zip(1..);
    numbered
        .map(|(write, version)| Write { version, ..write })
        .collect()
}
