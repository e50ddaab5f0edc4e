//! World: servers, the assembler, and a consumer that holds what is given out against the truth.

use std::collections::{BTreeMap, BTreeSet};

use sluice_chain_types::SlotStatus;

use super::{
    super::{source::main_source, *},
    server_model::{BankTruth, Connection, Random, VERSIONS_OF_A_SERVER, Validator},
};
use crate::update::SlotUpdate;

/// A consumer that checks what it is given against the truth.
#[derive(Default)]
pub(super) struct Consumer {
    /// Hash of each slot that was given out and not withdrawn.
    pub(super) given: BTreeMap<u64, String>,
    open: Option<(u64, Option<u64>, BankTruth)>,
    /// The server whose numbers the writes of the open slot have.
    numbered_by: Option<u64>,
    hash: Option<String>,
    commitments: BTreeSet<(u64, bool)>,
    in_force: Vec<(u64, Generation)>,
    /// What came ahead of slots, the creation first.
    ahead: BTreeMap<u64, Vec<Body>>,
    /// How many slots were given out that had come ahead, and how many that came ahead were void.
    pub(super) came_ahead: (u64, u64),
}

impl Consumer {
    fn take(&mut self, assembled: Assembled, validator: &Validator, start: Option<u64>) {
        let update = match assembled {
            Assembled::Update(update) => update,
            Assembled::InForce { filter, slot } => return self.in_force.push((slot, filter)),
            Assembled::Replaced { slot } => return self.withdraw(slot, validator, start),
            Assembled::Ahead { slot, body } => return self.ahead(slot, body),
            Assembled::Void { slot } => {
                self.ahead.remove(&slot).expect("something came ahead");
                self.came_ahead.1 += 1;
                return;
            }
            Assembled::Late { slot, update } => {
                panic!("slot {slot} was given out before it was whole: {update:?}")
            }
        };
        self.body(update.body, validator, start);
    }

    /// What comes ahead is of a slot that was not given out, and begins with its creation.
    fn ahead(&mut self, slot: u64, body: Body) {
        assert!(!self.given.contains_key(&slot), "slot {slot} was given out");
        let is_creation = matches!(&body, Body::Slot(_));
        let came = self.ahead.entry(slot).or_default();
        assert_eq!(came.is_empty(), is_creation, "the creation comes first");
        came.push(body);
    }

    fn body(&mut self, body: Body, validator: &Validator, start: Option<u64>) {
        match body {
            Body::Account(account) => {
                let (slot, _, bank) = self.open.as_mut().expect("a slot is open");
                assert_eq!(account.slot, *slot);
                let by = account.write_version / VERSIONS_OF_A_SERVER;
                let version = account.write_version % VERSIONS_OF_A_SERVER;
                let one = *self.numbered_by.get_or_insert(by);
                assert_eq!(one, by, "slot {slot} is of two servers");
                let before = bank.last_writes.insert(account.pubkey, version);
                assert!(before < Some(version), "in order, and once");
            }
            Body::Transaction(transaction) => {
                let (slot, _, bank) = self.open.as_mut().expect("a slot is open");
                assert_eq!(transaction.slot, *slot);
                assert!(
                    bank.transactions.insert(transaction.signature),
                    "given twice"
                );
            }
            Body::BlockMeta(meta) => self.hash = Some(meta.blockhash),
            Body::Slot(status) => self.status(&status, validator, start),
        }
    }

    fn status(&mut self, status: &SlotUpdate, validator: &Validator, start: Option<u64>) {
        let slot = status.slot;
        if start.is_none_or(|start| slot < start) {
            return;
        }
        match status.status {
            SlotStatus::CreatedBank => {
                assert!(self.open.is_none());
                assert!(
                    !self.given.contains_key(&slot),
                    "slot {slot} is given twice"
                );
                self.open = Some((slot, status.parent, BankTruth::default()));
                self.numbered_by = None;
                let mut came = self.ahead.remove(&slot).unwrap_or_default().into_iter();
                if let Some(Body::Slot(created)) = came.next() {
                    assert_eq!(created.parent, status.parent);
                    self.came_ahead.0 += 1;
                }
                for body in came {
                    self.body(body, validator, start);
                }
            }
            SlotStatus::Processed => {
                let Some((open, parent, mut bank)) = self.open.take() else {
                    // A repeated status of a slot that is finalized.
                    assert!(self.given.contains_key(&slot), "slot {slot} was not given");
                    return;
                };
                assert_eq!(open, slot);
                bank.parent = parent.expect("every slot has a parent");
                assert_eq!(status.parent, parent);
                let hash = self.hash.take().expect("metadata comes before the status");
                let (_, truth) = &validator.truth[&hash];
                assert_eq!((&bank, slot), (truth, slot), "slot {slot} is not whole");
                let is_due =
                    bank.parent < start.unwrap_or(0) || self.given.contains_key(&bank.parent);
                assert!(is_due, "slot {slot} before its parent {}", bank.parent);
                self.given.insert(slot, hash);
            }
            SlotStatus::Dead => self.withdraw(slot, validator, start),
            SlotStatus::Confirmed | SlotStatus::Finalized => {
                assert!(
                    self.given.contains_key(&slot),
                    "slot {slot} is confirmed before it is given"
                );
                self.commitments
                    .insert((slot, status.status == SlotStatus::Finalized));
            }
            SlotStatus::FirstShredReceived | SlotStatus::Completed => {}
        }
    }

    /// A slot and what builds on it are not there any more.
    fn withdraw(&mut self, slot: u64, validator: &Validator, start: Option<u64>) {
        let mut parents = self.ahead.values().filter_map(|came| match came.first() {
            Some(Body::Slot(created)) => created.parent,
            _ => None,
        });
        assert!(!parents.any(|parent| parent == slot), "void before");
        self.given.remove(&slot);
        loop {
            let given = &self.given;
            let orphan = given.iter().find(|(_, hash)| {
                let parent = validator.truth[*hash].1.parent;
                parent >= start.unwrap_or(0) && !given.contains_key(&parent)
            });
            let Some(orphan) = orphan.map(|(slot, _)| *slot) else {
                break;
            };
            self.given.remove(&orphan);
        }
    }
}

/// The assembler between servers and a consumer, with a driver that does what it asks for.
pub(super) struct World {
    random: Random,
    /// Servers see one chain.
    pub(super) validator: Validator,
    connections: Vec<Option<Connection>>,
    assembler: SlotAssembler,
    pub(super) consumer: Consumer,
    generation: Generation,
    ignores_later: bool,
    /// Replays asked for, by source.
    pub(super) asked: Vec<u64>,
    /// Requests sent for a slot that was to be delivered again, by source and slot.
    pub(super) asked_for: BTreeMap<(usize, u64), u64>,
    pub(super) reconnects: u64,
    /// Steps of the others for one of a server.
    pub(super) pace: Vec<u64>,
    /// Whether a server stands still now and then, without being lost.
    pub(super) freezes: bool,
    frozen: Vec<bool>,
    pub(super) findings: Vec<Finding>,
    /// A server of another chain from some slot on.
    pub(super) rival: Option<(usize, Validator)>,
}

impl World {
    pub(super) fn new(seed: u64, servers: usize, forks: bool, ignores_later: bool) -> Self {
        let mut random = Random::new(seed);
        let mut validator = Validator::new(forks);
        for _ in 0..40 {
            validator.step(&mut random);
        }
        Self {
            random,
            validator,
            connections: (0..2 * servers).map(|_| None).collect(),
            assembler: SlotAssembler::new(2 * servers),
            consumer: Consumer::default(),
            generation: Generation::default(),
            ignores_later,
            asked: vec![0; 2 * servers],
            asked_for: BTreeMap::new(),
            reconnects: 0,
            pace: vec![1; servers],
            freezes: false,
            frozen: vec![false; 2 * servers],
            findings: Vec::new(),
            rival: None,
        }
    }

    /// Requests sent, on whatever connection.
    pub(super) const fn requests(&self) -> u64 {
        self.generation.0
    }

    /// Lets so many slots pass while nobody listens.
    pub(super) fn pass(&mut self, slots: usize) {
        let last = self.validator.next_slot() + slots as u64;
        while self.validator.next_slot() < last {
            self.validator.step(&mut self.random);
        }
    }

    /// Begins anew with a validator that numbers banks.
    pub(super) fn number_banks(&mut self) {
        self.validator = Validator::new(self.validator.forks);
        self.validator.numbers_banks = true;
        for _ in 0..40 {
            self.validator.step(&mut self.random);
        }
    }

    /// Lets the assembler give ahead.
    pub(super) const fn give_ahead(&mut self) {
        self.assembler.give_ahead();
    }

    pub(super) fn connect(&mut self, source: usize, from_slot: Option<u64>) {
        self.generation = self.generation.next();
        let request = SentRequest {
            generation: self.generation,
            filter: Generation(1),
            from_slot,
        };
        let mut connection = Connection::open(
            self.validator_of(source),
            self.ignores_later,
            source as u64 / 2,
        );
        connection.request(request);
        self.connections[source] = Some(connection);
        self.assembler.connected(source, request);
    }

    pub(super) fn step(&mut self, cuts: bool) {
        let mut connections = self.connections.iter().flatten();
        self.validator.may_replace = self.validator.forks
            && !self.validator.numbers_banks
            && connections.all(|connection| connection.is_up_to_date(&self.validator));
        self.validator.step(&mut self.random);
        if let Some((_, rival)) = &mut self.rival
            && self.random.one_in(3)
        {
            rival.step(&mut self.random);
            // A fork of its own, of a slot that the others have skipped, may be given out too.
            let truth = rival.truth.iter();
            let truth = truth.map(|(hash, bank)| (hash.clone(), bank.clone()));
            self.validator.truth.extend(truth);
        }
        for source in 0..self.connections.len() {
            if self.connections[source].is_none() {
                if source % 2 == 0 && self.random.one_in(6) {
                    self.reconnects += 1;
                    self.connect(source, self.assembler.resume_slot());
                }
                continue;
            }
            if cuts && self.random.one_in(120) {
                self.connections[source] = None;
                self.assembler.disconnected(source);
                self.take();
                continue;
            }
            if cuts && self.freezes && self.random.one_in(60) {
                self.frozen[source] = !self.frozen[source];
            }
            let stands_still =
                (cuts && self.frozen[source]) || !self.random.one_in(self.pace[source / 2]);
            for _ in 0..self.random.below(5) {
                if !stands_still {
                    self.pump(source);
                }
            }
            self.obey(source);
        }
    }

    /// The chain that a server sees.
    fn validator_of(&self, source: usize) -> &Validator {
        let rival = self.rival.as_ref();
        match rival.filter(|(rival, _)| *rival == source) {
            Some((_, validator)) => validator,
            None => &self.validator,
        }
    }

    fn pump(&mut self, source: usize) {
        let Some(mut connection) = self.connections[source].take() else {
            return;
        };
        let mut random = std::mem::replace(&mut self.random, Random::new(0));
        let update = connection.step(self.validator_of(source), &mut random);
        self.random = random;
        self.connections[source] = Some(connection);
        if let Some(update) = update {
            self.assembler.update(source, update);
            self.take();
        }
    }

    fn obey(&mut self, source: usize) {
        let (main, side) = (main_source(source), main_source(source) + 1);
        let Some(due) = self.assembler.replay_due(source, false) else {
            if source == side && !self.assembler.has_suspect(main) {
                self.connections[source] = None;
                self.assembler.disconnected(source);
            }
            return;
        };
        self.asked[source] += 1;
        match due.path {
            ReplayPath::SameStream => {
                assert!(self.assembler.may_request(source));
                self.note_asked(source);
                self.generation = self.generation.next();
                let request = SentRequest {
                    generation: self.generation,
                    filter: Generation(1),
                    from_slot: Some(due.from_slot),
                };
                if let Some(connection) = &mut self.connections[source] {
                    connection.request(request);
                }
                self.assembler.requested(source, request);
            }
            ReplayPath::SideStream if self.connections[side].is_none() => {
                self.note_asked(source);
                self.connect(side, Some(due.from_slot));
            }
            // The side stream has found out nothing: it is opened anew, at another moment.
            ReplayPath::SideStream if source == side => {
                self.connections[source] = None;
                self.assembler.disconnected(source);
            }
            ReplayPath::SideStream => {}
        }
    }

    /// A request is sent for the first slot that a source is to deliver again.
    fn note_asked(&mut self, source: usize) {
        if let Some(slot) = self.assembler.first_suspect(source) {
            *self.asked_for.entry((source, slot)).or_default() += 1;
        }
    }

    fn take(&mut self) {
        let start = self.assembler.start;
        for assembled in self.assembler.take() {
            self.consumer.take(assembled, &self.validator, start);
        }
        self.findings.extend(self.assembler.take_findings());
    }

    /// Runs on without cuts until all is delivered, and requires that everything confirmed was given out.
    pub(super) fn finish(&mut self) {
        for _ in 0..1000 {
            self.step(false);
        }
        self.validator.settle();
        let undrained = |world: &Self| {
            let connections = world.connections.iter().enumerate();
            connections
                .filter_map(|(source, connection)| Some((source, connection.as_ref()?)))
                .filter(|(source, connection)| {
                    !connection.is_up_to_date(world.validator_of(*source))
                })
                .count()
        };
        for _ in 0..200_000 {
            if undrained(self) == 0 {
                break;
            }
            for source in 0..self.connections.len() {
                self.pump(source);
                self.obey(source);
            }
            let held = self.assembler.slots.len();
            assert!(held <= MAX_SLOTS + 1, "{held} slots are held");
        }
        assert_eq!(undrained(self), 0);
        let start = self.assembler.start.expect("it began");
        let mut chain = self.validator.confirmed_chain();
        // What was confirmed last may wait for what is still open.
        chain.truncate(chain.len().saturating_sub(8));
        for (slot, hash) in chain.into_iter().filter(|(slot, _)| *slot >= start) {
            assert_eq!(
                self.consumer.given.get(&slot),
                Some(&hash),
                "slot {slot} is confirmed"
            );
        }
        assert!(
            self.assembler.slots.len() < 120,
            "{} slots are kept",
            self.assembler.slots.len()
        );
    }
}
