//! Slot assembly against a model of the reference server: cuts, replays, forks, replaced blocks, several servers.

mod ahead;
mod bank_ids;
mod late;
mod late_deaths;
mod left_forks;
mod server_model;
mod world;

use sluice_chain_types::SlotStatus;

use self::world::World;
use super::*;
use crate::update::SlotUpdate;

fn run(seeds: u64, servers: usize, forks: bool, ignores_later: bool) {
    run_prepared(seeds, servers, forks, ignores_later, |_| {});
}

fn run_prepared(
    seeds: u64,
    servers: usize,
    forks: bool,
    ignores_later: bool,
    prepare: impl Fn(&mut World) + std::panic::RefUnwindSafe,
) {
    let mut total = Ran::default();
    for seed in 0..seeds {
        let ran = std::panic::catch_unwind(|| {
            let mut world = World::new(seed, servers, forks, ignores_later);
            prepare(&mut world);
            // Every other world, so that both ways are met.
            let gives_ahead = seed % 2 == 1;
            if gives_ahead {
                world.give_ahead();
            }
            for server in 0..servers {
                world.connect(2 * server, None);
            }
            for _ in 0..600 {
                world.step(true);
            }
            world.finish();
            let (came_ahead, void) = world.consumer.came_ahead;
            assert!(gives_ahead || came_ahead + void == 0, "nothing was wanted");
            Ran {
                asked: world.asked.iter().sum(),
                reconnects: world.reconnects,
                came_ahead,
                void,
            }
        });
        let ran = ran.unwrap_or_else(|_| panic!("seed {seed}"));
        total.asked += ran.asked;
        total.reconnects += ran.reconnects;
        total.came_ahead += ran.came_ahead;
        total.void += ran.void;
    }
    // The runs would prove nothing if nothing had been cut or asked for, or had come ahead.
    assert!(
        total.reconnects > seeds && total.asked > seeds / 2,
        "{total:?}"
    );
    assert!(total.came_ahead > seeds && total.void > seeds, "{total:?}");
}

/// What happened in a world.
#[derive(Debug, Default)]
struct Ran {
    asked: u64,
    reconnects: u64,
    came_ahead: u64,
    void: u64,
}

#[test]
fn a_chain_without_forks_is_given_out_whole_through_every_cut() {
    run(20, 1, false, false);
}

#[test]
fn forks_dead_slots_and_replaced_blocks_are_given_out_whole_through_every_cut() {
    run(40, 1, true, false);
}

#[test]
fn a_server_that_ignores_later_replays_is_asked_on_a_side_stream() {
    run(100, 1, true, true);
}

#[test]
fn of_two_servers_each_slot_is_taken_whole_and_once() {
    run(30, 2, true, false);
}

#[test]
fn of_three_servers_that_lag_and_stand_still_each_slot_is_taken_whole_and_once() {
    run_prepared(10, 3, true, false, |world| {
        world.freezes = true;
        // The second is always behind, and the third far.
        world.pace = vec![1, 3, 12];
    });
}

#[test]
fn banks_of_a_slot_that_are_numbered_are_given_out_whole_though_written_in_turns() {
    run_prepared(40, 1, true, false, World::number_banks);
    run_prepared(20, 2, true, true, World::number_banks);
}

/// A server that ignores the request repeats a block behind the replay that it began with, in the midst of which the request comes
/// into force; and a commitment names a bank that its server, connected to since, has not delivered.
#[test]
fn the_rest_of_a_repeated_block_is_no_replay_and_an_unknown_bank_confirms_nothing() {
    let mut world = World::new(530, 3, true, true);
    world.number_banks();
    world.freezes = true;
    world.pace = vec![1, 3, 12];
    for server in 0..3 {
        world.connect(2 * server, None);
    }
    for _ in 0..600 {
        world.step(true);
    }
    world.finish();
}

#[test]
fn a_replay_of_more_slots_than_are_held_is_given_out_whole() {
    let mut world = World::new(3, 1, false, false);
    let first = world.validator.next_slot();
    world.pass(MAX_SLOTS + MAX_SLOTS / 2);
    world.connect(0, Some(first));
    world.finish();
    // Each part of the replay comes twice, since its slots had ended unseen.
    assert!(world.requests() < 30, "{} requests", world.requests());
}

#[test]
fn a_server_on_another_chain_changes_nothing_and_is_named() {
    for seed in 0..20 {
        let mut world = World::new(seed, 2, false, false);
        let mut rival = world.validator.clone();
        rival.name = "rival";
        world.connect(0, None);
        // What is complete and confirmed first counts, so the rival is well behind.
        while world.consumer.given.len() < 16 {
            world.step(false);
        }
        world.rival = Some((2, rival));
        world.connect(2, None);
        for _ in 0..600 {
            world.step(false);
        }
        world.finish();
        assert_eq!(
            world.asked[0], 0,
            "seed {seed}: what it has given is not doubted"
        );
        let contradicted = |finding: &Finding| match finding {
            Finding::Contradicted { source, .. } => Some(*source),
            _ => None,
        };
        let found: Vec<usize> = world.findings.iter().filter_map(contradicted).collect();
        assert!(found.len() > 10, "seed {seed}: {} are named", found.len());
        assert!(found.iter().all(|source| *source == 2), "seed {seed}");
    }
}

#[test]
fn servers_of_one_chain_contradict_each_other_never() {
    for seed in 0..5 {
        let mut world = World::new(seed, 2, true, false);
        world.connect(0, None);
        world.connect(2, None);
        for _ in 0..600 {
            world.step(true);
        }
        world.finish();
        let mut findings = world.findings.iter();
        assert!(!findings.any(|finding| matches!(finding, Finding::Contradicted { .. })));
        let taken_from = |from: usize| {
            let findings = world.findings.iter();
            findings
                .filter(
                    |finding| matches!(finding, Finding::Taken { source, .. } if *source == from),
                )
                .count()
        };
        assert!(
            taken_from(0) > 10 && taken_from(2) > 10,
            "either is first at times"
        );
    }
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

/// An update under a generation, without a bank's id.
fn update(generation: u64, body: Body) -> Update {
    Update {
        filters: vec![Generation(generation).name("filter")],
        created_at: None,
        bank_id: None,
        body,
    }
}

/// Delivers updates of a source under a generation.
fn take_in(
    assembler: &mut SlotAssembler,
    (source, generation): (usize, u64),
    bodies: impl IntoIterator<Item = Body>,
) {
    for body in bodies {
        assembler.update(source, update(generation, body));
    }
}

/// Delivers updates of the first source under a generation, and returns the slots that were given out, each with its number of writes, and the
/// filters that came into force.
fn deliver(
    assembler: &mut SlotAssembler,
    generation: u64,
    bodies: impl IntoIterator<Item = Body>,
) -> (Slots, Filters) {
    let (mut slots, mut in_force) = (Slots::new(), Filters::new());
    take_in(assembler, (0, generation), bodies);
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
            Assembled::Replaced { slot } => panic!("slot {slot} is replaced"),
            Assembled::Late { slot, .. } => panic!("slot {slot} is late"),
            Assembled::Ahead { slot, .. } | Assembled::Void { slot } => {
                panic!("nothing of {slot} is wanted ahead")
            }
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
                bank_id: None,
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
fn a_block_in_the_place_of_another_comes_once_it_is_built_on() {
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
        assembler.update(0, update(1, body));
    }
    let mut assembled = assembler.take().into_iter();
    assert_eq!(assembled.next(), Some(Assembled::Replaced { slot: 11 }));
    let statuses: Vec<(u64, SlotStatus)> = assembled
        .filter_map(|assembled| match assembled {
            Assembled::Update(Update {
                body: Body::Slot(slot),
                ..
            }) => Some((slot.slot, slot.status)),
            _ => None,
        })
        .collect();
    use SlotStatus::{CreatedBank, Processed};
    let expected = [
        (11, CreatedBank),
        (11, Processed),
        (12, CreatedBank),
        (12, Processed),
    ];
    assert_eq!(statuses, expected);
}

#[test]
fn what_builds_on_a_dead_slot_is_not_asked_for_again() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    let whole = |slot| [created(slot), meta(slot), processed(slot)];
    deliver(&mut assembler, 1, (10..14).flat_map(whole));
    let dead = slot_status(11, None, SlotStatus::Dead);
    deliver(&mut assembler, 1, [dead]);
    assert!(!assembler.has_suspect(0), "12 and 13 went with it");
    // Others build on it after all: the validator has it now, or soon.
    deliver(&mut assembler, 1, [created(12)]);
    assert!(assembler.has_suspect(0));
}

#[test]
fn a_message_costs_no_more_when_nothing_is_finalized() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    let mut looks = |slots: std::ops::Range<u64>| {
        let before = assembler.looks.get();
        let count = slots.end - slots.start;
        for slot in slots {
            let whole = [
                created(slot),
                account(slot, slot),
                meta(slot),
                processed(slot),
            ];
            assert_eq!(deliver(&mut assembler, 1, whole).0.len(), 1);
            assert!(!assembler.has_suspect(0));
        }
        (assembler.looks.get() - before) / count
    };
    looks(10..20);
    let first = looks(20..120);
    looks(120..5_010);
    let after_thousands = looks(5_010..5_110);
    assert!(first <= 10, "{first} looks for a slot");
    assert_eq!(
        after_thousands, first,
        "looks for a slot after thousands that are not finalized"
    );
}
