//! Random scripts of the chain, with a stream and an indexer that break.
//!
//! The same seed makes the same script; only the moments at which it meets the indexer differ.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex},
    time::Duration,
};

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use sluice_geyser::scripted::Code;
use sluice_store::{Commitment, EventKind, WebhookDefinition, WebhookId};
use tokio::time::sleep;

use sluice_harness::indexer::{Indexer, IndexerHarness, soon};
use sluice_testkit::{
    chain_script::{ChainScript, Weather},
    scripted_chain::{Ending, Message, ScriptedChain, State},
    yellowstone_server::{ReplayPolicy, YellowstoneServer},
};

use super::marks::Marks;

/// The first slot, which is final when the script begins.
const FIRST_SLOT: u64 = 10;

/// Steps of one script: enough for several troubles to meet, few enough that a failure can be read.
const STEPS: u32 = 70;

/// Longest pause between two steps, microseconds.
const LONGEST_PAUSE: u64 = 4_000;

/// Time between two looks at a checkpoint.
const LOOK: Duration = Duration::from_millis(5);

/// How likely the stream and the indexer break in one script, in parts of a hundred.
struct Troubles {
    stream_faults: u32,
    crashes: u32,
    /// Whether slots may be lost for good.
    windows_close: bool,
    /// Whether a webhook comes in the middle.
    webhook_comes: bool,
}

impl Troubles {
    fn draw(rng: &mut StdRng) -> Self {
        let mut one_of = |likely: [u32; 3]| *likely.choose(rng).unwrap_or(&0);
        Self {
            stream_faults: one_of([0, 4, 10]),
            crashes: one_of([0, 0, 4]),
            windows_close: one_of([0, 0, 1]) == 1,
            webhook_comes: one_of([0, 0, 1]) == 1,
        }
    }
}

/// A webhook of a script.
#[derive(Clone, Debug)]
pub struct Listener {
    pub id: WebhookId,
    pub commitment: Commitment,
    /// Whether it was there from the beginning.
    pub from_the_beginning: bool,
}

/// What a script leaves behind.
pub struct Played {
    pub harness: IndexerHarness,
    pub chain: ScriptedChain,
    pub listeners: Vec<Listener>,
}

/// What was done in a script, to find out why it failed.
#[derive(Clone)]
pub struct Transcript {
    chain: ScriptedChain,
    /// What was done beside the chain, and before which message.
    troubles: Arc<Mutex<Vec<(usize, String)>>>,
}

impl Transcript {
    /// The transcript of a script that begins.
    pub fn new() -> Self {
        Self {
            chain: ScriptedChain::new(FIRST_SLOT, State::new()),
            troubles: Arc::default(),
        }
    }

    fn add(&self, what: String) {
        let at = self.chain.lock().messages.len();
        let mut troubles = self.troubles.lock().expect("not poisoned");
        troubles.push((at, what));
    }

    /// Everything, in order.
    pub fn text(&self) -> String {
        let troubles = self.troubles.lock().expect("not poisoned");
        let mut troubles = troubles.iter().peekable();
        let mut text = String::new();
        for (at, message) in self.chain.lock().messages.iter().enumerate() {
            while let Some((_, what)) = troubles.next_if(|(before, _)| *before <= at) {
                writeln!(text, "{what}").expect("memory");
            }
            writeln!(text, "{message:?}").expect("memory");
        }
        text
    }
}

struct Simulation {
    harness: IndexerHarness,
    indexer: Indexer,
    server: YellowstoneServer,
    script: ChainScript,
    author: Marks,
    troubles: Troubles,
    listeners: Vec<Listener>,
    transcript: Transcript,
}

/// Plays the script of this seed until everything that happened in it is final and known to be.
pub async fn play(seed: u64, mut harness: IndexerHarness, transcript: Transcript) -> Played {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut weather, troubles) = (Weather::draw(&mut rng), Troubles::draw(&mut rng));
    let bank_ids = rng.random_bool(0.5);
    if !bank_ids {
        // Nothing would tell which of two banks that are written in turns the content is of.
        weather.rivals = 0;
    }
    let mut listeners = Vec::new();
    for (number, commitment) in (0..).zip(Commitment::ALL) {
        listeners.push(listen(&harness, number, commitment).await);
    }
    let chain = transcript.chain.clone();
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    server.configure(|settings| settings.bank_ids = bank_ids);
    transcript.add(format!("banks are numbered: {bank_ids}"));
    harness.listen_to(server.endpoint());
    let indexer = harness.start_unseen();
    let mut simulation = Simulation {
        harness,
        indexer,
        server,
        script: ChainScript::random(seed, weather, chain),
        author: Marks::default(),
        troubles,
        listeners,
        transcript,
    };
    simulation.begin().await;
    for _ in 0..STEPS {
        simulation.step().await;
        let pause = simulation.script.rng.random_range(0..LONGEST_PAUSE);
        sleep(Duration::from_micros(pause)).await;
    }
    simulation.end().await
}

impl Simulation {
    /// Slots in which nothing happens pass until the indexer has stored that it read one of them, at every commitment.
    async fn begin(&mut self) {
        let begun = async {
            while !self.has_read(FIRST_SLOT + 1).await {
                self.pass();
                sleep(LOOK).await;
            }
            let last = self.pass();
            while !self.has_read(last).await {
                sleep(LOOK).await;
            }
        };
        soon(begun).await;
    }

    async fn has_read(&self, slot: u64) -> bool {
        let store = &self.harness.store;
        let confirmed = store.checkpoint(Commitment::Confirmed).await;
        let finalized = store.checkpoint(Commitment::Finalized).await;
        confirmed.expect("read").min(finalized.expect("read")) >= Some(slot)
    }

    /// A slot in which nothing happens.
    fn pass(&self) -> u64 {
        let chain = &self.script.chain;
        let (slot, parent) = {
            let record = chain.lock();
            (record.tree.last() + 1, record.tree.best())
        };
        let block = chain.open(slot, parent);
        chain.seal(block);
        chain.confirm(block);
        chain.finalize(block);
        slot
    }

    async fn step(&mut self) {
        if self.script.chance(self.troubles.stream_faults) {
            self.break_stream();
        }
        if self.script.chance(self.troubles.crashes) {
            self.crash().await;
        }
        if self.troubles.webhook_comes && self.script.chance(3) {
            self.troubles.webhook_comes = false;
            for (number, commitment) in (3..).zip([Commitment::Processed, Commitment::Confirmed]) {
                let late = listen(&self.harness, number, commitment).await;
                self.listeners.push(Listener {
                    from_the_beginning: false,
                    ..late
                });
            }
        }
        self.script.step(&mut self.author);
    }

    fn break_stream(&mut self) {
        if self.server.open_streams() == 0 {
            return;
        }
        let policies = [ReplayPolicy::Reference, ReplayPolicy::EveryWrite];
        let policy = policies[usize::from(self.script.chance(50))].clone();
        self.transcript.add(format!("replays: {policy:?}"));
        self.server.on_replay(policy);
        if self.troubles.windows_close && self.script.chance(50) {
            let first = {
                let record = self.script.chain.lock();
                record.tree.block(record.tree.confirmed()).slot + 1
            };
            let text =
                format!("broadcast from {FIRST_SLOT} is not available, last available: {first}");
            self.transcript.add(text.clone());
            self.server.refuse_next(Code::OutOfRange, &text);
        }
        let ending = if self.script.chance(50) {
            Ending::Error(Code::Unavailable, "restarting".to_owned())
        } else {
            Ending::Close
        };
        self.script.chain.report(Message::End(ending));
    }

    async fn crash(&mut self) {
        self.transcript.add("the indexer is killed".to_owned());
        let next = self.harness.start_unseen();
        let killed = std::mem::replace(&mut self.indexer, next);
        killed.abort().await.expect("it runs until it is killed");
    }

    /// The chain goes on until every fate is decided, and the indexer knows it.
    async fn end(mut self) -> Played {
        let slot = self.script.end(&mut self.author);
        self.until_checkpoint(Commitment::Confirmed, slot).await;
        self.until_checkpoint(Commitment::Finalized, slot).await;
        self.indexer.end().await.expect("stops cleanly");
        Played {
            harness: self.harness,
            chain: self.script.chain,
            listeners: self.listeners,
        }
    }

    async fn until_checkpoint(&self, commitment: Commitment, slot: u64) {
        let wait = async {
            loop {
                let at = self.harness.store.checkpoint(commitment).await;
                if at.expect("read") >= Some(slot) {
                    return;
                }
                sleep(LOOK).await;
            }
        };
        soon(wait).await;
    }
}

async fn listen(harness: &IndexerHarness, number: u8, commitment: Commitment) -> Listener {
    let kinds = [EventKind::AccountChange, EventKind::Transaction];
    let definition = WebhookDefinition {
        commitment,
        events: kinds.into_iter().collect(),
        ..harness.definition()
    };
    Listener {
        id: harness.create_temporary(number, definition).await,
        commitment,
        from_the_beginning: true,
    }
}
