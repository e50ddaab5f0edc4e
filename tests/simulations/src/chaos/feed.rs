//! Feed of the chaos: lets slots of the numbered chain pass, streamed by a Yellowstone server that never dies.
//!
//! It stands for a validator with the reference server. It is stricter in that its slots are four times as short. That it never dies
//! is milder: streams that do are what the fault scripts are about. So is that it crawls while what is stored is far behind, which
//! only a machine that is too slow for its pace makes it do for long.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sluice_geyser::Endpoint;
use sluice_store::{Commitment, Store};
use sluice_testkit::yellowstone_server::YellowstoneServer;
use tokio::{
    task::AbortHandle,
    time::{MissedTickBehavior, interval, sleep},
};

use super::numbered_chain::{Block, NumberedChain};

/// Time of half a slot. A slot takes a quarter of mainnet's time, so that four times as much happens.
const HALF_SLOT: Duration = Duration::from_millis(50);

/// While a disaster lasts, one in so many of these times lets half a slot pass: what comes later must be caught up with, and a busy
/// machine would do nothing else.
const SLOWER: u32 = 2;

/// Slots by which the chain may be ahead of what is stored: more than pass while nobody leads. Beyond that one in so many of its times
/// lets half a slot pass. At its full pace a machine on which others work too would do nothing but catch up.
const MOST_AHEAD: u64 = 200;
const CRAWLING: u32 = 10;

/// Pause between two looks at what is stored.
const LOOK: Duration = Duration::from_secs(1);

/// Slots that the server keeps for replays: five minutes of them, which no process stays down, however slow the machine.
/// What becomes of slots that are lost for good is the subject of the fates.
const STORED_SLOTS: usize = 3_000;

/// The chain, and whether anything happens in it.
struct Playing {
    chain: NumberedChain,
    is_eventful: bool,
    is_slow: bool,
    /// The newest slot that is known to be stored.
    stored: Option<u64>,
}

impl Playing {
    /// One in how many of its times lets half a slot pass.
    fn pace(&self) -> u32 {
        let may_begin = self.stored.map(|stored| stored + MOST_AHEAD);
        match may_begin {
            Some(last) if self.chain.newest_slot() > last => CRAWLING,
            _ if self.is_slow => SLOWER,
            _ => 1,
        }
    }
}

/// The stream. Dropping it ends it.
pub struct Feed {
    server: YellowstoneServer,
    playing: Arc<Mutex<Playing>>,
    task: AbortHandle,
    looking: Option<AbortHandle>,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(looking) = &self.looking {
            looking.abort();
        }
    }
}

impl Feed {
    /// Starts to play the chain of a seed, without events at first.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(seed: u64) -> io::Result<Self> {
        let chain = NumberedChain::new(seed);
        let server = YellowstoneServer::start(chain.scripted().clone()).await?;
        server.configure(|settings| settings.stored_slots = STORED_SLOTS);
        let playing = Arc::new(Mutex::new(Playing {
            chain,
            is_eventful: false,
            is_slow: false,
            stored: None,
        }));
        let task = tokio::spawn(play(Arc::clone(&playing)));
        Ok(Self {
            server,
            playing,
            task: task.abort_handle(),
            looking: None,
        })
    }

    /// From now on it crawls while what is stored here is far behind.
    pub fn wait_for(&mut self, store: Store) {
        let playing = Arc::clone(&self.playing);
        let looking = tokio::spawn(async move {
            loop {
                // A database that does not answer says nothing of it.
                if let Ok(Some(stored)) = store.checkpoint(Commitment::Confirmed).await {
                    lock(&playing).stored = Some(stored);
                }
                sleep(LOOK).await;
            }
        });
        self.looking = Some(looking.abort_handle());
    }

    /// How it is reached.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        self.server.endpoint()
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Never, as it is made.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let addresses = self.endpoint().url.socket_addrs(|| None)?;
        let first = addresses.first().copied();
        first.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// Whether anything happens in the slots to come.
    pub fn set_eventful(&self, is_eventful: bool) {
        lock(&self.playing).is_eventful = is_eventful;
    }

    /// Whether slots take longer.
    pub fn set_slow(&self, is_slow: bool) {
        lock(&self.playing).is_slow = is_slow;
    }

    /// Every block with content so far.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        lock(&self.playing).chain.blocks()
    }

    /// The newest slot that began.
    #[must_use]
    pub fn newest_slot(&self) -> u64 {
        lock(&self.playing).chain.newest_slot()
    }
}

fn lock(playing: &Mutex<Playing>) -> MutexGuard<'_, Playing> {
    playing.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn play(playing: Arc<Mutex<Playing>>) {
    let mut ticks = interval(HALF_SLOT);
    // Where the machine has no time for the chain, it has none for what must keep up with it either.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in (0..SLOWER * CRAWLING).cycle() {
        ticks.tick().await;
        let mut playing = lock(&playing);
        if number % playing.pace() != 0 {
            continue;
        }
        let is_eventful = playing.is_eventful;
        playing.chain.step(is_eventful);
    }
}
