//! Left forks: what the chain has left behind is not asked for, since nothing of it can be given out.

use super::*;

/// Delivers updates of source 0. Returns whether a slot is to be delivered again.
fn suspects_after(assembler: &mut SlotAssembler, bodies: impl IntoIterator<Item = Body>) -> bool {
    for body in bodies {
        assembler.update(0, update(1, body));
    }
    assembler.take();
    assembler.has_suspect(0)
}

/// A block as it happens: of this slot, on this one, each with its hash.
fn block((slot, hash): (u64, &str), (parent_slot, parent): (u64, &str)) -> [Body; 3] {
    let meta = match meta(slot) {
        Body::BlockMeta(meta) => Body::BlockMeta(crate::BlockMeta {
            parent_slot,
            blockhash: hash.into(),
            parent_blockhash: parent.into(),
            ..meta
        }),
        body => body,
    };
    let status = |status| slot_status(slot, Some(parent_slot), status);
    [
        status(SlotStatus::CreatedBank),
        meta,
        status(SlotStatus::Processed),
    ]
}

#[test]
fn what_builds_on_a_block_that_was_replaced_is_not_asked_for_again() {
    let mut assembler = SlotAssembler::new(2);
    assembler.connected(0, sent(1, None));
    let first = [
        block((10, "10"), (9, "9")),
        block((11, "11"), (10, "10")),
        block((12, "12"), (11, "11")),
        block((13, "13"), (12, "12")),
    ];
    assert!(!suspects_after(&mut assembler, first.into_iter().flatten()));
    let second = [
        block((11, "11, the other"), (10, "10")),
        block((14, "14"), (11, "11, the other")),
    ];
    let confirmed = slot_status(11, None, SlotStatus::Confirmed);
    let second = second.into_iter().flatten().chain([confirmed]);
    let is_asked_for = suspects_after(&mut assembler, second);
    assert!(
        !is_asked_for,
        "12 and 13 build on another block than 14 does"
    );
    let back = block((15, "15"), (13, "13"));
    let is_asked_for = suspects_after(&mut assembler, back);
    assert!(!is_asked_for, "nothing has brought the first block back");
}

#[test]
fn a_slot_below_a_confirmed_one_is_asked_for_once_that_is_withdrawn() {
    for servers in [1, 2] {
        let mut assembler = SlotAssembler::new(SOURCES_OF_SERVER * servers);
        assembler.connected(0, sent(1, Some(10)));
        suspects_after(&mut assembler, block((10, "10"), (9, "9")));
        // Its beginning was not seen.
        let [_, meta, processed] = block((11, "11"), (10, "10"));
        suspects_after(&mut assembler, [meta, processed]);
        let is_asked_for = suspects_after(&mut assembler, block((12, "12"), (10, "10")));
        assert!(is_asked_for, "the chain may go on from it");
        let confirmed = slot_status(12, None, SlotStatus::Confirmed);
        assert!(!suspects_after(&mut assembler, [confirmed]), "it does not");
        let others = [
            block((12, "12, the other"), (10, "10")),
            block((13, "13"), (12, "12, the other")),
        ];
        let is_asked_for = suspects_after(&mut assembler, others.into_iter().flatten());
        assert!(is_asked_for, "nothing is confirmed after all");
    }
}

/// While the chain stands still, a slot that the server does not replay keeps none above it from being asked for.
#[test]
fn a_slot_is_asked_for_though_one_on_a_dead_one_was_and_did_not_come() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    let alive = [
        block((10, "10"), (9, "9")),
        block((11, "11"), (10, "10")),
        block((12, "12"), (11, "11")),
    ];
    assert!(!suspects_after(&mut assembler, alive.into_iter().flatten()));
    let dead = slot_status(12, None, SlotStatus::Dead);
    suspects_after(&mut assembler, [dead]);
    let on_the_dead_one = block((13, "13"), (12, "12"));
    assert!(suspects_after(&mut assembler, on_the_dead_one));
    let due = assembler.replay_due(0, true).expect("12 is named again");
    assert!(due.from_slot <= 12);
    let again = |generation, from_slot| SentRequest {
        filter: Generation(1),
        ..sent(generation, Some(from_slot))
    };
    assembler.requested(0, again(2, due.from_slot));
    // The request comes into force in the midst of the next slot: what ends it may be a replay of another block.
    let [created, meta, processed] = block((14, "14"), (11, "11"));
    suspects_after(&mut assembler, [created]);
    let end = deliver(&mut assembler, 2, [meta.clone(), processed.clone()]);
    assert_eq!(end.0, [], "nothing proves that it is whole");
    let due = assembler.replay_due(0, true).expect("14 is suspect");
    assert_eq!((due.from_slot, due.path), (14, ReplayPath::SameStream));
    assembler.requested(0, again(3, 14));
    let replayed = deliver(&mut assembler, 3, [meta, processed]);
    assert_eq!(replayed.0, [(14, 0)]);
    assert_eq!(assembler.replay_due(0, true), None);
}

/// With banks that are written in turns many blocks are replaced, and each request that a stream ignores leads to side streams.
#[test]
fn no_slot_is_asked_for_without_end() {
    const MOST: u64 = 8;
    let mut asked_for = 0;
    for seed in [58, 99, 144, 169, 173, 232, 250] {
        let mut world = World::new(seed, 2, true, true);
        world.number_banks();
        world.connect(0, None);
        world.connect(2, None);
        for _ in 0..600 {
            world.step(true);
        }
        world.finish();
        for ((source, slot), asked) in &world.asked_for {
            let what = format!("seed {seed}: slot {slot} of source {source}");
            assert!(*asked <= MOST, "{what} is asked for {asked} times");
            asked_for += 1;
        }
    }
    assert!(asked_for > 10, "{asked_for} slots were asked for at all");
}
