//! Random scripts of forks, deaths and replacements, with a stream and an indexer that break.
//!
//! The same seed makes the same script; only the moments at which it meets the indexer differ.

use std::{collections::BTreeSet, time::Duration};

use futures::FutureExt;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use sluice_geyser::{
    SlotStatus,
    scripted::{Code, Connection},
};
use sluice_store::{Commitment, EventKind, WebhookDefinition, WebhookId};
use tokio::time::sleep;

use super::{
    chain::{Block, BlockIndex, Chain, Mark, Write},
    entry::{Entry, Transcript, entries},
};
use sluice_harness::indexer::{Indexer, IndexerHarness, soon};

/// The first slot, which is final when the script begins.
const FIRST_SLOT: u64 = 10;

/// Steps of one script: enough for several troubles to meet, few enough that a failure can be read.
const STEPS: u32 = 70;

/// Longest pause between two steps, microseconds.
const LONGEST_PAUSE: u64 = 4_000;

/// How likely things are in one script, in parts of a hundred.
struct Weather {
    forks: u32,
    deaths: u32,
    replacements: u32,
    stream_faults: u32,
    crashes: u32,
    /// Whether slots may be lost for good.
    windows_close: bool,
    /// Whether a webhook comes in the middle.
    webhook_comes: bool,
}

impl Weather {
    fn draw(rng: &mut StdRng) -> Self {
        let mut one_of = |likely: [u32; 3]| *likely.choose(rng).unwrap_or(&0);
        Self {
            forks: one_of([5, 15, 40]),
            deaths: one_of([0, 5, 15]),
            replacements: one_of([0, 0, 8]),
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
    pub chain: Chain,
    pub listeners: Vec<Listener>,
}

struct Simulation {
    harness: IndexerHarness,
    indexer: Indexer,
    chain: Chain,
    rng: StdRng,
    weather: Weather,
    listeners: Vec<Listener>,
    /// Everything the server has said, with the slot that it is about.
    record: Vec<(u64, Entry)>,
    /// The open connections, each with the name of the slots filter in force.
    connections: Vec<(Connection, String)>,
    /// Writes of frozen blocks that are still on their way.
    late: Vec<(BlockIndex, Write)>,
    /// Slots that were not declared dead when they got another block: no chain gives them the first one back.
    replaced: BTreeSet<u64>,
    last_mark: Mark,
    transcript: Transcript,
}

/// Plays the script of this seed until everything that happened in it is final and known to be.
pub async fn play(seed: u64, harness: IndexerHarness, transcript: Transcript) -> Played {
    let mut rng = StdRng::seed_from_u64(seed);
    let weather = Weather::draw(&mut rng);
    let mut listeners = Vec::new();
    for (number, commitment) in (0..).zip(Commitment::ALL) {
        listeners.push(listen(&harness, number, commitment).await);
    }
    let indexer = harness.start_unseen();
    let mut script = Simulation {
        harness,
        indexer,
        chain: Chain::new(FIRST_SLOT),
        rng,
        weather,
        listeners,
        record: Vec::new(),
        connections: Vec::new(),
        late: Vec::new(),
        replaced: BTreeSet::new(),
        last_mark: 0,
        transcript,
    };
    script.begin().await;
    for _ in 0..STEPS {
        script.step().await;
        let pause = script.rng.random_range(0..LONGEST_PAUSE);
        sleep(Duration::from_micros(pause)).await;
    }
    script.end().await
}

impl Simulation {
    async fn begin(&mut self) {
        let (connection, request) = self.harness.accept().await;
        let name = request.slots.expect("slots are always asked for");
        self.connections.push((connection, name));
        self.report(FIRST_SLOT, Entry::Block(0)).await;
        for status in [
            SlotStatus::Processed,
            SlotStatus::Confirmed,
            SlotStatus::Finalized,
        ] {
            self.report(FIRST_SLOT, Entry::Status(status)).await;
        }
        self.until_checkpoint(Commitment::Finalized, FIRST_SLOT)
            .await;
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    async fn step(&mut self) {
        self.meet_client().await;
        if self.chance(self.weather.stream_faults) {
            self.break_stream().await;
        }
        if self.chance(self.weather.crashes) {
            self.crash().await;
        }
        if self.chance(self.weather.deaths) {
            self.kill().await;
        }
        if self.chance(self.weather.deaths) {
            self.revive().await;
        }
        if self.chance(self.weather.replacements) {
            self.replace().await;
        }
        if self.weather.webhook_comes && self.chance(3) {
            self.weather.webhook_comes = false;
            for (number, commitment) in (3..).zip([Commitment::Processed, Commitment::Confirmed]) {
                let late = listen(&self.harness, number, commitment).await;
                self.listeners.push(Listener {
                    from_the_beginning: false,
                    ..late
                });
            }
        }
        match self.rng.random_range(0..100) {
            0..65 => self.grow().await,
            65..75 => self.arrive_late().await,
            75..92 => self.confirm().await,
            _ => self.finalize().await,
        }
    }

    /// A new block, usually on the best one.
    async fn grow(&mut self) {
        let parent = if self.chance(self.weather.forks) {
            let open = self.chain.open();
            *open.choose(&mut self.rng).expect("the confirmed one")
        } else {
            self.chain.best()
        };
        let skipped = u64::from(self.chance(10));
        let slot = self.chain.highest_slot() + 1 + skipped;
        let block = self.block(slot, parent, "");
        let index = self.chain.put(block);
        self.report_block(index).await;
        if self.chance(20) {
            let write = self.write();
            self.chain.blocks[index].writes.push(write);
            self.late.push((index, write));
        }
    }

    fn block(&mut self, slot: u64, parent: BlockIndex, name: &str) -> Block {
        let writes = self.rng.random_range(0..3);
        let transactions = self.rng.random_range(0..3);
        Block {
            slot,
            hash: format!("hash{slot}{name}"),
            parent: Some(parent),
            writes: (0..writes).map(|_| self.write()).collect(),
            transactions: (0..transactions).map(|_| self.mark()).collect(),
            processed: self.chance(90),
        }
    }

    fn write(&mut self) -> Write {
        let mark = self.mark();
        Write {
            account: self.rng.random_range(1..5),
            version: mark,
            mark,
        }
    }

    fn mark(&mut self) -> Mark {
        self.last_mark += 1;
        self.last_mark
    }

    async fn report_block(&mut self, index: BlockIndex) {
        let block = self.chain.blocks[index].clone();
        for entry in entries(&block) {
            self.report(block.slot, entry).await;
        }
        self.report(block.slot, Entry::Block(index)).await;
        if block.processed {
            self.report(block.slot, Entry::Status(SlotStatus::Processed))
                .await;
        }
    }

    /// What is on its way to a block that lives arrives.
    async fn arrive_late(&mut self) {
        for (index, write) in std::mem::take(&mut self.late) {
            if self.chain.lives(index) {
                self.report(self.chain.blocks[index].slot, Entry::Write(write))
                    .await;
            }
        }
    }

    async fn confirm(&mut self) {
        let open = self.chain.open();
        let above: Vec<BlockIndex> = self
            .chain
            .ancestry(self.chain.best())
            .take_while(|index| *index != self.chain.confirmed)
            .filter(|index| open.contains(index))
            .collect();
        let Some(index) = above.choose(&mut self.rng).copied() else {
            return;
        };
        self.arrive_late().await;
        let status = if self.chance(15) {
            self.chain.finalized = index;
            SlotStatus::Finalized
        } else {
            SlotStatus::Confirmed
        };
        self.chain.confirmed = index;
        self.report(self.chain.blocks[index].slot, Entry::Status(status))
            .await;
    }

    async fn finalize(&mut self) {
        let above: Vec<BlockIndex> = self
            .chain
            .ancestry(self.chain.confirmed)
            .take_while(|index| *index != self.chain.finalized)
            .collect();
        if let Some(index) = above.choose(&mut self.rng).copied() {
            self.chain.finalized = index;
            let slot = self.chain.blocks[index].slot;
            self.report(slot, Entry::Status(SlotStatus::Finalized))
                .await;
        }
    }

    async fn kill(&mut self) {
        let mut open = self.chain.open();
        open.retain(|index| *index != self.chain.confirmed);
        let Some(index) = open.choose(&mut self.rng).copied() else {
            return;
        };
        for victim in self.chain.kill(index) {
            // Of those that stand on a dead one it need not be reported.
            if victim == index || self.chance(50) {
                let slot = self.chain.blocks[victim].slot;
                self.report(slot, Entry::Status(SlotStatus::Dead)).await;
            }
        }
    }

    /// A slot that had died has a block after all, the same or another one.
    async fn revive(&mut self) {
        let gone = self.chain.revivable();
        let Some(index) = gone.choose(&mut self.rng).copied() else {
            return;
        };
        let before = self.chain.blocks[index].clone();
        if self.chance(50) && !self.replaced.contains(&before.slot) {
            self.chain.put_back(index);
            return self.report_block(index).await;
        }
        let parent = before.parent.expect("the first one never dies");
        let name = format!("repaired{}", self.chain.blocks.len());
        let block = self.block(before.slot, parent, &name);
        let index = self.chain.put(block);
        self.report_block(index).await;
    }

    /// A slot turns out to have another block, without a word about the first one.
    async fn replace(&mut self) {
        let open = self.chain.open().into_iter();
        let leaves: Vec<BlockIndex> = open
            .filter(|index| *index != self.chain.confirmed && self.chain.is_leaf(*index))
            .collect();
        let Some(index) = leaves.choose(&mut self.rng).copied() else {
            return;
        };
        let before = self.chain.blocks[index].clone();
        let parent = before.parent.expect("the confirmed one is below");
        let name = format!("other{}", self.chain.blocks.len());
        let block = self.block(before.slot, parent, &name);
        self.replaced.insert(before.slot);
        let index = self.chain.put(block);
        self.report_block(index).await;
    }

    async fn break_stream(&mut self) {
        if self.connections.is_empty() {
            return;
        }
        self.transcript.add(format_args!("the stream breaks"));
        if self.weather.windows_close && self.chance(50) {
            let first = self.chain.blocks[self.chain.confirmed].slot + 1;
            let text =
                format!("broadcast from {FIRST_SLOT} is not available, last available: {first}");
            self.harness.server.refuse_next(Code::OutOfRange, &text);
        }
        let says_so = self.chance(50);
        for (connection, _) in std::mem::take(&mut self.connections) {
            if says_so {
                // The client may have gone by itself.
                let _ = connection.fail(Code::Unavailable, "restarting").await;
            }
        }
    }

    async fn crash(&mut self) {
        self.transcript.add(format_args!("the indexer is killed"));
        let next = self.harness.start_unseen();
        let killed = std::mem::replace(&mut self.indexer, next).abort().await;
        killed.expect("it runs until it is killed");
        self.connections.clear();
    }

    /// Reports something to the clients that are there, and to those who come later.
    async fn report(&mut self, slot: u64, entry: Entry) {
        let received = self.connections.len();
        self.transcript
            .add(format_args!("{slot}: {entry:?}, received by {received}"));
        self.record.push((slot, entry.clone()));
        for (mut connection, mut name) in std::mem::take(&mut self.connections) {
            // A filter that is replaced is in force at once.
            while let Some(Some(received)) = connection.received().now_or_never() {
                name = received.request.slots.expect("slots are always asked for");
            }
            let update = entry.update(slot, &self.chain, &name);
            if soon(connection.send(update)).await.is_ok() {
                self.connections.push((connection, name));
            }
        }
    }

    /// Takes the client in when it comes or comes back, and says to it what it asks for.
    async fn meet_client(&mut self) {
        let Some(mut connection) = self.harness.server.accept().now_or_never() else {
            return;
        };
        let Some(received) = soon(connection.received()).await else {
            // Killed since.
            return;
        };
        let asked = received.request;
        let name = asked.slots.expect("slots are always asked for");
        let entries = match asked.from_slot {
            None => Vec::new(),
            Some(from) if self.rng.random_bool(0.5) => self.recorded(from),
            Some(from) => self.as_another_node(from),
        };
        self.transcript
            .add(format_args!("client wants {:?}", asked.from_slot));
        for (slot, entry) in entries {
            self.transcript
                .add(format_args!("  again {slot}: {entry:?}"));
            let update = entry.update(slot, &self.chain, &name);
            if soon(connection.send(update)).await.is_err() {
                return;
            }
        }
        self.connections.push((connection, name));
    }

    /// Everything that was said, in the order in which it was.
    fn recorded(&self, from: u64) -> Vec<(u64, Entry)> {
        let entries = self.record.iter().filter(|(slot, _)| *slot >= from);
        entries.cloned().collect()
    }

    /// What a server reports that knows nothing but the blocks that live.
    fn as_another_node(&self, from: u64) -> Vec<(u64, Entry)> {
        let mut reported = Vec::new();
        let slots =
            [self.chain.confirmed, self.chain.finalized].map(|index| self.chain.blocks[index].slot);
        let below: BTreeSet<BlockIndex> = self.chain.ancestry(self.chain.confirmed).collect();
        let mut blocks: BTreeSet<BlockIndex> = self.chain.open().into_iter().collect();
        blocks.extend(below);
        let mut blocks: Vec<BlockIndex> = blocks.into_iter().collect();
        blocks.sort_by_key(|index| self.chain.blocks[*index].slot);
        for index in blocks {
            let block = &self.chain.blocks[index];
            if block.slot < from {
                continue;
            }
            let on_its_way = |write: &Write| {
                let mut late = self.late.iter();
                late.any(|(_, late)| late.mark == write.mark)
            };
            let mut arrived = block.clone();
            arrived.writes.retain(|write| !on_its_way(write));
            reported.extend(
                entries(&arrived)
                    .into_iter()
                    .map(|entry| (block.slot, entry)),
            );
            reported.push((block.slot, Entry::Block(index)));
            if block.processed {
                reported.push((block.slot, Entry::Status(SlotStatus::Processed)));
            }
        }
        for (slot, status) in slots
            .into_iter()
            .zip([SlotStatus::Confirmed, SlotStatus::Finalized])
        {
            if slot >= from {
                reported.push((slot, Entry::Status(status)));
            }
        }
        reported
    }

    /// The chain goes on until every fate is decided, and the indexer knows it.
    async fn end(mut self) -> Played {
        self.arrive_late().await;
        let slot = self.chain.highest_slot() + 1;
        let parent = self.chain.best();
        let mut block = self.block(slot, parent, "last");
        block.processed = true;
        let index = self.chain.put(block);
        self.report_block(index).await;
        self.chain.confirmed = index;
        self.report(slot, Entry::Status(SlotStatus::Confirmed))
            .await;
        self.chain.finalized = index;
        self.report(slot, Entry::Status(SlotStatus::Finalized))
            .await;
        self.until_checkpoint(Commitment::Confirmed, slot).await;
        self.until_checkpoint(Commitment::Finalized, slot).await;
        self.indexer.end().await.expect("stops cleanly");
        Played {
            harness: self.harness,
            chain: self.chain,
            listeners: self.listeners,
        }
    }

    async fn until_checkpoint(&mut self, commitment: Commitment, slot: u64) {
        let wait = async {
            loop {
                let at = self.harness.store.checkpoint(commitment).await;
                if at.expect("read") >= Some(slot) {
                    return;
                }
                self.meet_client().await;
                sleep(Duration::from_millis(5)).await;
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
