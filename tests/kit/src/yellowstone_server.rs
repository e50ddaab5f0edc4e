//! Yellowstone server: streams a scripted chain as the reference server 15.1.2 does, with its limits and words.
//!
//! It stands for a validator's plugin with the Yellowstone service. A call joins the live ring with an empty filter, and what
//! passes before its first request is applied is lost to it. At processed the ring carries single writes as they happen; at
//! confirmed and finalized, whole blocks. A replay holds frozen blocks alone. It is stricter in this: a script decides when
//! a request is applied and a replay put together, statuses that others imply are never filled in, and some policies play
//! other servers.

mod limits;
mod preencoded;
mod replay;
mod ring;
mod subscriber;
#[cfg(test)]
mod tests;

pub use limits::FilterLimits;
pub use preencoded::Preencoded;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sluice_geyser::{
    Endpoint, Request,
    scripted::{Code, ScriptedServer},
};
use tokio::{sync::watch, task::AbortHandle};

use self::subscriber::Subscriber;
use crate::scripted_chain::{Ending, Message, ScriptedChain};

/// What a server does when it is asked to replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReplayPolicy {
    /// The last write of each account in each frozen block, as the reference server.
    #[default]
    Reference,
    /// Every write of each frozen block, in order: servers that keep the stream itself.
    EveryWrite,
    /// The last writes, numbered by another validator, whose write versions are smaller and unrelated.
    OtherVersions,
    /// It says no.
    Refused(Code, String),
    /// It says nothing and goes on from now.
    Nothing,
}

/// How a server is configured. The default is the reference server's, with its default of slots kept for replays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// What it does when it is asked to replay.
    pub replay: ReplayPolicy,
    /// Frozen blocks that it keeps for replays, `replay_stored_slots`; without any it refuses.
    pub stored_slots: usize,
    /// Whether it honours `from_slot` on later requests of a stream. The reference server does, others ignore it.
    pub replays_later: bool,
    /// What it accepts in a request.
    pub limits: FilterLimits,
    /// Messages by which a subscriber may be behind the live ring, `channel_capacity`.
    pub ring: usize,
    /// Messages by which its validator is behind the chain.
    pub behind: usize,
    /// The slot from which on it is of another chain: its blocks have other hashes, and nothing is written in them but the
    /// clock.
    pub rival_from: Option<u64>,
    /// Whether it sends the numbers of banks, and keeps all banks of a slot for replays. No released server does.
    pub bank_ids: bool,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            replay: ReplayPolicy::Reference,
            stored_slots: 150,
            replays_later: true,
            limits: FilterLimits::default(),
            ring: 250_000,
            behind: 0,
            rival_from: None,
            bank_ids: false,
        }
    }
}

/// Updates that may wait for one client.
const CLIENT_QUEUE: usize = 100_000;

/// What a script holds up.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    requests: bool,
    replays: bool,
}

/// What the server and its subscribers share.
#[derive(Debug)]
struct Shared {
    settings: Mutex<ServerSettings>,
    seen: Mutex<Seen>,
    refusals: Mutex<Vec<(Code, String)>>,
    held: watch::Sender<Held>,
    /// Number of the first message since the server was started last: what came before is not kept for replays.
    kept_from: Mutex<usize>,
}

/// What clients have sent.
#[derive(Debug, Default)]
struct Seen {
    first: Vec<Request>,
    later: Vec<Request>,
    pongs: usize,
    open: usize,
}

/// The server. Dropping it ends it.
pub struct YellowstoneServer {
    chain: ScriptedChain,
    endpoint: Endpoint,
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

impl Drop for YellowstoneServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl YellowstoneServer {
    /// A server of this chain.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(chain: ScriptedChain) -> io::Result<Self> {
        Self::with_queue(chain, CLIENT_QUEUE).await
    }

    /// A server that keeps this many updates for a client that does not take them.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn with_queue(chain: ScriptedChain, client_queue: usize) -> io::Result<Self> {
        let scripted = ScriptedServer::with_queue(client_queue).await?;
        let endpoint = scripted.endpoint();
        let address = endpoint.url.socket_addrs(|| None)?.first().copied();
        let shared = Arc::new(Shared {
            settings: Mutex::default(),
            seen: Mutex::default(),
            refusals: Mutex::default(),
            held: watch::Sender::default(),
            kept_from: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(scripted, chain.clone(), Arc::clone(&shared)));
        Ok(Self {
            chain,
            endpoint,
            address: address.ok_or(io::ErrorKind::AddrNotAvailable)?,
            shared,
            accepting: accepting.abort_handle(),
        })
    }

    /// The chain that it streams.
    #[must_use]
    pub const fn chain(&self) -> &ScriptedChain {
        &self.chain
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How a client reaches it.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Changes how it is configured, for requests that are applied from now on.
    pub fn configure(&self, change: impl FnOnce(&mut ServerSettings)) {
        change(&mut lock(&self.shared.settings));
    }

    /// What it does when it is asked to replay, from now on.
    pub fn on_replay(&self, replay: ReplayPolicy) {
        self.configure(|settings| settings.replay = replay);
    }

    /// Ends the next subscription right after it was opened.
    pub fn refuse_next(&self, code: Code, text: &str) {
        lock(&self.shared.refusals).push((code, text.to_owned()));
    }

    /// Whether requests wait. Live updates go by meanwhile, under the filter applied before, and of the requests that wait
    /// only the newest is kept.
    pub fn hold_requests(&self, held: bool) {
        self.shared
            .held
            .send_modify(|holding| holding.requests = held);
    }

    /// Whether replays wait for being put together. The filter is in force meanwhile, and the live ring stands still: what is
    /// frozen now comes twice, by the replay and by the ring.
    pub fn hold_replays(&self, held: bool) {
        self.shared
            .held
            .send_modify(|holding| holding.replays = held);
    }

    /// Ends every stream and forgets every block, as a server that is started again.
    pub fn restart(&self) {
        self.chain.report(Message::End(Ending::Close));
        *lock(&self.shared.kept_from) = self.chain.lock().messages.len();
    }

    /// The first request of every subscription opened so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.seen).first.clone()
    }

    /// Every request that was to replace another on an open stream.
    #[must_use]
    pub fn later_requests(&self) -> Vec<Request> {
        lock(&self.shared.seen).later.clone()
    }

    /// How many streams are open.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        lock(&self.shared.seen).open
    }

    /// How many pings were answered.
    #[must_use]
    pub fn pongs(&self) -> usize {
        lock(&self.shared.seen).pongs
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(mut scripted: ScriptedServer, chain: ScriptedChain, shared: Arc<Shared>) {
    loop {
        let connection = scripted.accept().await;
        let subscriber = Subscriber::join(connection, chain.clone(), Arc::clone(&shared));
        // Whichever way a client goes, the chain goes on without it.
        tokio::spawn(async move {
            let _ = subscriber.serve().await;
        });
    }
}
