//! Slot assembly against a model of the reference server: cuts, replays, forks, replaced blocks, several servers.

mod server_model;

use std::collections::{BTreeMap, BTreeSet};

use sluice_chain_types::SlotStatus;

use self::server_model::{BankTruth, Connection, Random, Validator};
use super::*;
use crate::update::SlotUpdate;

/// A consumer that checks what it is given against the truth.
#[derive(Default)]
struct Consumer {
    /// Hash of each slot that was given out and not withdrawn.
    given: BTreeMap<u64, String>,
    open: Option<(u64, Option<u64>, BankTruth)>,
    hash: Option<String>,
    commitments: BTreeSet<(u64, bool)>,
    in_force: Vec<(u64, Generation)>,
}

impl Consumer {
    fn take(&mut self, assembled: Assembled, validator: &Validator, start: Option<u64>) {
        let update = match assembled {
            Assembled::Update(update) => update,
            Assembled::InForce { filter, slot } => return self.in_force.push((slot, filter)),
            Assembled::Late { slot, .. } => panic!("slot {slot} was given out before it was whole"),
        };
        match update.body {
            Body::Account(account) => {
                let (slot, _, bank) = self.open.as_mut().expect("a slot is open");
                assert_eq!(account.slot, *slot);
                let before = bank
                    .last_writes
                    .insert(account.pubkey, account.write_version);
                assert!(before < Some(account.write_version), "in order, and once");
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
            SlotStatus::Dead => {
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
}

/// The assembler between servers and a consumer, with a driver that does what it asks for.
struct World {
    random: Random,
    /// Servers see one chain; each numbers writes in its own way, which the model leaves out.
    validator: Validator,
    connections: Vec<Option<Connection>>,
    assembler: SlotAssembler,
    consumer: Consumer,
    generation: Generation,
    ignores_later: bool,
    asked: u64,
    reconnects: u64,
    side: usize,
}

impl World {
    fn new(seed: u64, servers: usize, forks: bool, ignores_later: bool) -> Self {
        let mut random = Random::new(seed);
        let mut validator = Validator::new(forks);
        for _ in 0..40 {
            validator.step(&mut random);
        }
        let side = 1;
        Self {
            random,
            validator,
            connections: (0..2 * servers).map(|_| None).collect(),
            assembler: SlotAssembler::new(2 * servers),
            consumer: Consumer::default(),
            generation: Generation::default(),
            ignores_later,
            asked: 0,
            reconnects: 0,
            side,
        }
    }

    fn connect(&mut self, source: usize, from_slot: Option<u64>) {
        self.generation = self.generation.next();
        let request = SentRequest {
            generation: self.generation,
            filter: Generation(1),
            from_slot,
        };
        let mut connection = Connection::open(&self.validator, self.ignores_later);
        connection.request(request);
        self.connections[source] = Some(connection);
        self.assembler.connected(source, request);
    }

    fn step(&mut self, cuts: bool) {
        let mut connections = self.connections.iter().flatten();
        self.validator.may_replace = self.validator.forks
            && connections.all(|connection| connection.is_up_to_date(&self.validator));
        self.validator.step(&mut self.random);
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
            for _ in 0..self.random.below(5) {
                self.pump(source);
            }
            self.obey(source);
        }
    }

    fn pump(&mut self, source: usize) {
        let Some(connection) = &mut self.connections[source] else {
            return;
        };
        if let Some(update) = connection.step(&self.validator, &mut self.random) {
            self.assembler.update(source, update);
            self.take();
        }
    }

    fn obey(&mut self, source: usize) {
        let Some(due) = self.assembler.replay_due(source, false) else {
            if source == self.side && !self.assembler.has_suspect(0) {
                self.connections[source] = None;
                self.assembler.disconnected(source);
            }
            return;
        };
        self.asked += 1;
        match due.path {
            ReplayPath::SameStream => {
                assert!(self.assembler.may_request(source));
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
            ReplayPath::SideStream if self.connections[self.side].is_none() => {
                self.connect(self.side, Some(due.from_slot));
            }
            // The side stream has found out nothing: it is opened anew, at another moment.
            ReplayPath::SideStream if source == self.side => {
                self.connections[source] = None;
                self.assembler.disconnected(source);
            }
            ReplayPath::SideStream => {}
        }
    }

    fn take(&mut self) {
        let start = self.assembler.start;
        for assembled in self.assembler.take() {
            self.consumer.take(assembled, &self.validator, start);
        }
    }

    /// Runs on without cuts until all is delivered, and requires that everything confirmed was given out.
    fn finish(&mut self) {
        for _ in 0..1000 {
            self.step(false);
        }
        self.validator.settle();
        let drained = |world: &Self| {
            world
                .connections
                .iter()
                .flatten()
                .all(|connection| connection.is_up_to_date(&world.validator))
        };
        for _ in 0..5_000 {
            if drained(self) {
                break;
            }
            for source in 0..self.connections.len() {
                self.pump(source);
                self.obey(source);
            }
        }
        let drained = self.connections.iter().flatten();
        let undrained = drained
            .filter(|connection| !connection.is_up_to_date(&self.validator))
            .count();
        assert_eq!(undrained, 0);
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

fn run(seeds: u64, servers: usize, forks: bool, ignores_later: bool) {
    let (mut asked, mut reconnects) = (0, 0);
    for seed in 0..seeds {
        let ran = std::panic::catch_unwind(|| {
            let mut world = World::new(seed, servers, forks, ignores_later);
            for server in 0..servers {
                world.connect(2 * server, None);
            }
            for _ in 0..600 {
                world.step(true);
            }
            world.finish();
            (world.asked, world.reconnects)
        });
        let ran = ran.unwrap_or_else(|_| panic!("seed {seed}"));
        asked += ran.0;
        reconnects += ran.1;
    }
    // The runs would prove nothing if nothing had been cut or asked for.
    assert!(
        reconnects > seeds && asked > seeds / 2,
        "{reconnects} reconnects, {asked} asked"
    );
}

#[test]
fn a_chain_without_forks_is_given_out_whole_through_every_cut() {
    run(20, 1, false, false);
}

#[test]
fn forks_dead_slots_and_replaced_blocks_are_given_out_whole_through_every_cut() {
    run(20, 1, true, false);
}

#[test]
fn a_server_that_ignores_later_replays_is_asked_on_a_side_stream() {
    run(20, 1, true, true);
}

#[test]
fn of_two_servers_each_slot_is_taken_whole_and_once() {
    run(20, 2, true, false);
}

fn sent(generation: u64, from_slot: Option<u64>) -> SentRequest {
    SentRequest {
        generation: Generation(generation),
        filter: Generation(generation),
        from_slot,
    }
}

fn slot_status(slot: u64, parent: Option<u64>, status: SlotStatus) -> Body {
    Body::Slot(SlotUpdate {
        slot,
        parent,
        status,
        dead_error: None,
    })
}

fn created(slot: u64) -> Body {
    slot_status(slot, Some(slot - 1), SlotStatus::CreatedBank)
}

fn processed(slot: u64) -> Body {
    slot_status(slot, Some(slot - 1), SlotStatus::Processed)
}

fn meta(slot: u64) -> Body {
    Body::BlockMeta(crate::BlockMeta {
        slot,
        parent_slot: slot - 1,
        blockhash: format!("hash{slot}"),
        parent_blockhash: format!("hash{}", slot - 1),
        block_time: None,
        block_height: None,
        executed_transaction_count: 0,
    })
}

fn account(slot: u64, version: u64) -> Body {
    Body::Account(server_model::write(
        slot,
        solana_pubkey::Pubkey::default(),
        version,
    ))
}

/// Slots with the number of their writes.
type Slots = Vec<(u64, usize)>;

/// Filters with the first slot of each.
type Filters = Vec<(u64, u64)>;

/// Delivers updates under a generation, and returns the slots that were given out, each with its number of writes, and the
/// filters that came into force.
fn deliver(
    assembler: &mut SlotAssembler,
    generation: u64,
    bodies: impl IntoIterator<Item = Body>,
) -> (Slots, Filters) {
    let (mut slots, mut in_force) = (Slots::new(), Filters::new());
    for body in bodies {
        let update = Update {
            filters: vec![Generation(generation).name("filter")],
            created_at: None,
            body,
        };
        assembler.update(0, update);
    }
    for assembled in assembler.take() {
        match assembled {
            Assembled::Update(update) => match update.body {
                Body::Slot(slot) if slot.status == SlotStatus::CreatedBank => {
                    slots.push((slot.slot, 0))
                }
                Body::Account(_) => {
                    if let Some((_, writes)) = slots.last_mut() {
                        *writes += 1;
                    }
                }
                _ => {}
            },
            Assembled::InForce { filter, slot } => in_force.push((filter.0, slot)),
            Assembled::Late { slot, .. } => panic!("slot {slot} is late"),
        }
    }
    (slots, in_force)
}

#[test]
fn a_slot_that_begins_under_the_subscription_is_the_first() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    let open = [account(10, 1), meta(10), processed(10)];
    assert_eq!(deliver(&mut assembler, 1, open), (vec![], vec![]));
    let whole = [created(12), account(12, 2), meta(12), processed(12)];
    let given = deliver(&mut assembler, 1, whole);
    assert_eq!(given, (vec![(12, 1)], vec![(1, 12)]));
    assert_eq!(
        assembler.replay_due(0, false),
        None,
        "what was before the first slot is not asked for"
    );
}

#[test]
fn without_news_of_banks_the_third_complete_slot_is_the_first() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    for slot in [10, 11] {
        let complete = [account(slot, slot), meta(slot), processed(slot)];
        assert_eq!(deliver(&mut assembler, 1, complete), (vec![], vec![]));
    }
    let third = [account(12, 12), meta(12), processed(12)];
    assert_eq!(
        deliver(&mut assembler, 1, third),
        (vec![(12, 1)], vec![(1, 12)])
    );
    let next = [account(13, 13), meta(13), processed(13)];
    assert_eq!(deliver(&mut assembler, 1, next), (vec![(13, 1)], vec![]));
}

#[test]
fn the_slot_that_is_open_at_a_reconnect_is_asked_for_again_and_holds_back_what_builds_on_it() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, Some(10)));
    let replay = [account(10, 1), meta(10), processed(10)];
    assert_eq!(deliver(&mut assembler, 1, replay), (vec![], vec![(1, 10)]));
    // Slot 11 was open: its first write is in neither part.
    let rest = [account(11, 5), meta(11), processed(11)];
    deliver(&mut assembler, 1, rest);
    let (given, _) = deliver(&mut assembler, 1, [created(12)]);
    assert_eq!(given, [], "slot 10 may have ended live as well");
    let due = assembler.replay_due(0, false).expect("slot 10 is suspect");
    assert_eq!((due.from_slot, due.path), (10, ReplayPath::SameStream));
    assembler.requested(0, sent(2, Some(10)));
    assert_eq!(
        assembler.replay_due(0, false),
        None,
        "one request at a time"
    );
    let live = [account(12, 7), meta(12), processed(12), created(13)];
    assert_eq!(deliver(&mut assembler, 1, live).0, []);
    let again = [account(10, 1), meta(10), processed(10)];
    assert_eq!(deliver(&mut assembler, 2, again).0, [(10, 1)]);
    let again = [hidden(11, 4), account(11, 5), meta(11), processed(11)];
    assert_eq!(deliver(&mut assembler, 2, again).0, [(11, 2), (12, 1)]);
}

/// A write of another account.
fn hidden(slot: u64, version: u64) -> Body {
    let key = solana_pubkey::Pubkey::from([9; 32]);
    Body::Account(server_model::write(slot, key, version))
}

#[test]
fn a_slot_whose_block_lags_behind_its_child_is_not_whole_because_of_it() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, Some(10)));
    // The child existed before the connection; what came of slot 10 is its rest, live.
    let rest = [account(11, 6), account(10, 5), meta(10), processed(10)];
    assert_eq!(deliver(&mut assembler, 1, rest).0, []);
    let child = [meta(11), processed(11), created(12)];
    assert_eq!(deliver(&mut assembler, 1, child).0, []);
    let due = assembler.replay_due(0, false).expect("slot 10 is suspect");
    assembler.requested(0, sent(2, Some(due.from_slot)));
    let again = [hidden(10, 4), account(10, 5), meta(10), processed(10)];
    assert_eq!(deliver(&mut assembler, 2, again).0, [(10, 2)]);
}

#[test]
fn a_side_stream_is_judged_by_what_the_stream_has_seen() {
    for (is_opened_before, expected) in [(true, vec![]), (false, vec![(10, 2)])] {
        let mut assembler = SlotAssembler::new(2);
        assembler.connected(0, sent(1, Some(10)));
        if is_opened_before {
            assembler.sending(Generation(2));
        }
        let rest = [account(10, 5), meta(10), processed(10), created(12)];
        assert_eq!(deliver(&mut assembler, 1, rest).0, []);
        assembler.connected(1, sent(2, Some(10)));
        for body in [hidden(10, 4), account(10, 5), meta(10), processed(10)] {
            let filters = vec![Generation(2).name("filter")];
            let update = Update {
                filters,
                created_at: None,
                body,
            };
            assembler.update(1, update);
        }
        assert_eq!(deliver(&mut assembler, 1, []).0, expected);
    }
}

#[test]
fn a_new_filter_is_in_force_from_the_first_slot_that_begins_under_it() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    deliver(
        &mut assembler,
        1,
        [created(10), meta(10), processed(10), created(11)],
    );
    assembler.requested(0, sent(2, None));
    assert!(!assembler.may_request(0));
    let (_, in_force) = deliver(&mut assembler, 2, [account(11, 3)]);
    assert_eq!(in_force, [(2, 12)]);
    assert!(assembler.may_request(0));
}

#[test]
fn a_block_in_the_place_of_another_comes_after_its_death_once_it_is_built_on() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    let first = [
        created(10),
        meta(10),
        processed(10),
        created(11),
        account(11, 1),
        meta(11),
        processed(11),
    ];
    deliver(&mut assembler, 1, first);
    let other = |body: Body, hash: &str| match body {
        Body::BlockMeta(meta) if hash == "own" => Body::BlockMeta(crate::BlockMeta {
            blockhash: "other".into(),
            ..meta
        }),
        Body::BlockMeta(meta) => Body::BlockMeta(crate::BlockMeta {
            parent_blockhash: "other".into(),
            ..meta
        }),
        body => body,
    };
    let second = [
        created(11),
        account(11, 2),
        account(11, 3),
        other(meta(11), "own"),
        processed(11),
    ];
    assert_eq!(
        deliver(&mut assembler, 1, second).0,
        [],
        "nothing says which one counts"
    );
    let child = [created(12), other(meta(12), "parent"), processed(12)];
    for body in child {
        let update = Update {
            filters: vec!["filter#1".into()],
            created_at: None,
            body,
        };
        assembler.update(0, update);
    }
    let statuses: Vec<(u64, SlotStatus)> = assembler
        .take()
        .into_iter()
        .filter_map(|assembled| match assembled {
            Assembled::Update(Update {
                body: Body::Slot(slot),
                ..
            }) => Some((slot.slot, slot.status)),
            _ => None,
        })
        .collect();
    use SlotStatus::{CreatedBank, Dead, Processed};
    let expected = [
        (11, Dead),
        (11, CreatedBank),
        (11, Processed),
        (12, CreatedBank),
        (12, Processed),
    ];
    assert_eq!(statuses, expected);
}

#[test]
fn content_of_a_slot_that_was_given_out_is_reported() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    deliver(
        &mut assembler,
        1,
        [created(10), account(10, 5), meta(10), processed(10)],
    );
    assert_eq!(
        deliver(&mut assembler, 1, [account(10, 5), account(10, 4)]).0,
        [],
        "known"
    );
    let update = Update {
        filters: vec!["filter#1".into()],
        created_at: None,
        body: account(10, 6),
    };
    assembler.update(0, update.clone());
    assert_eq!(assembler.take(), [Assembled::Late { slot: 10, update }]);
}

#[test]
fn content_that_only_a_copy_of_the_block_holds_is_reported() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    deliver(
        &mut assembler,
        1,
        [created(10), account(10, 5), meta(10), processed(10)],
    );
    assembler.requested(0, sent(2, Some(10)));
    let late = |generation: u64, version| Assembled::Late {
        slot: 10,
        update: Update {
            filters: vec![format!("filter#{generation}")],
            created_at: None,
            body: account(10, version),
        },
    };
    for body in [account(10, 6), meta(10), processed(10), account(10, 6)] {
        let filters = vec!["filter#2".to_owned()];
        assembler.update(
            0,
            Update {
                filters,
                created_at: None,
                body,
            },
        );
    }
    let assembled = assembler.take();
    let reported = assembled
        .iter()
        .filter(|each| matches!(each, Assembled::Late { .. }));
    assert_eq!(reported.collect::<Vec<_>>(), [&late(2, 6)], "once");
    let filters = vec!["filter#2".to_owned()];
    assembler.update(
        0,
        Update {
            filters,
            created_at: None,
            body: account(10, 7),
        },
    );
    assert_eq!(
        assembler.take(),
        [late(2, 7)],
        "the copy is not collected any more"
    );
}

#[test]
fn content_that_came_for_the_stream_while_the_side_stream_was_taken_is_reported() {
    let mut assembler = SlotAssembler::new(2);
    assembler.connected(0, sent(1, Some(10)));
    let update = |generation: u64, body| Update {
        filters: vec![Generation(generation).name("filter")],
        created_at: None,
        body,
    };
    for body in [account(10, 5), meta(10), processed(10), account(10, 6)] {
        assembler.update(0, update(1, body));
    }
    assembler.connected(1, sent(2, Some(10)));
    for body in [account(10, 5), meta(10), processed(10)] {
        assembler.update(1, update(2, body));
    }
    assembler.update(1, update(2, created(12)));
    let assembled = assembler.take();
    let late = assembled.iter().filter_map(|each| match each {
        Assembled::Late { update, .. } => Some(update.body.clone()),
        _ => None,
    });
    assert_eq!(late.collect::<Vec<_>>(), [account(10, 6)]);
}
