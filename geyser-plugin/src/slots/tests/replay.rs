//! Replay: frozen blocks alone, in the order of the live stream.

use super::*;

#[test]
fn a_replay_is_what_the_stream_would_have_said() {
    let mut ring = from_genesis();
    for slot in 1..=3 {
        streams(&mut ring, good_slot(slot));
    }
    streams(&mut ring, [confirmed(2)]);
    let replay = |commitment| names(&ring.replay(2, commitment).unwrap());
    assert_eq!(
        replay(Commitment::Processed),
        "a2/21 a2/22 t2 e2 b2 m2 ?2 P2 C2 a3/31 a3/32 t3 e3 b3 m3 ?3 P3"
    );
    assert_eq!(
        replay(Commitment::Confirmed),
        "a2/21 a2/22 t2 e2 b2 m2 ?2 P2 C2"
    );
    assert_eq!(replay(Commitment::Finalized), "");
    // A slot of the future has nothing to repeat.
    assert_eq!(ring.replay(9, Commitment::Processed), Ok(Vec::new()));
}

#[test]
fn nothing_is_replayed_before_the_first_frozen_block() {
    let mut ring = from_genesis();
    let open = [account(1, 1, 1), entry(1), processed(1)];
    streams(&mut ring, open);
    let replay = ring.replay(0, Commitment::Processed);
    assert_eq!(replay, Err(ReplayError::NotReady));
    streams(&mut ring, [meta(1, 0)]);
    let replay = ring.replay(1, Commitment::Processed).unwrap();
    assert_eq!(names(&replay), "a1/1 e1 b1 m1 P1");
}

#[test]
fn of_the_open_slot_nothing_is_replayed() {
    let mut ring = from_genesis();
    streams(&mut ring, good_slot(1));
    let open = [
        status(2, SlotStatus::SlotCreatedBank),
        account(2, 1, 20),
        transaction(2, 0),
    ];
    streams(&mut ring, open);
    let replay = || ring.replay(1, Commitment::Processed).unwrap();
    assert_eq!(names(&replay()), "a1/11 a1/12 t1 e1 b1 m1 ?1 P1");
    // Frozen, but a transaction is still on its way.
    streams(&mut ring, [entry(2), meta(2, 2), processed(2)]);
    let replay = || ring.replay(1, Commitment::Processed).unwrap();
    assert_eq!(names(&replay()), "a1/11 a1/12 t1 e1 b1 m1 ?1 P1");
    streams(&mut ring, [transaction(2, 1)]);
    let replay = ring.replay(2, Commitment::Processed).unwrap();
    assert_eq!(names(&replay), "a2/20 t2 t2 e2 b2 m2 ?2 P2");
}

#[test]
fn a_dead_slot_is_not_replayed() {
    let mut ring = from_genesis();
    streams(&mut ring, good_slot(1));
    let dead = [account(2, 1, 20), status(2, SlotStatus::SlotDead)];
    streams(&mut ring, dead);
    streams(&mut ring, good_slot(3));
    let replay = ring.replay(2, Commitment::Processed).unwrap();
    assert_eq!(names(&replay), "a3/31 a3/32 t3 e3 b3 m3 ?3 P3");
}

#[test]
fn every_replayed_status_has_a_parent_even_where_the_validator_gave_none() {
    let mut ring = from_genesis();
    let orphan = |of| {
        let Update::Slot(status) = status(1, of).update else {
            unreachable!("a status")
        };
        event(Update::Slot(SlotUpdate {
            parent: None,
            ..status
        }))
    };
    let completed_first = [
        orphan(SlotStatus::SlotCompleted),
        entry(1),
        meta(1, 0),
        orphan(SlotStatus::SlotProcessed),
        orphan(SlotStatus::SlotConfirmed),
    ];
    let [at_processed, ..] = streams(&mut ring, completed_first);
    assert_eq!(names(&at_processed), "?1 e1 b1 m1 P1 P0 C0 C1");
    let replay = ring.replay(1, Commitment::Processed).unwrap();
    assert_eq!(names(&replay), "e1 b1 m1 ?1 P1 C1");
    for event in replay {
        if let Update::Slot(status) = event.update {
            assert_eq!(status.parent, Some(0), "{:?}", status.status);
        }
    }
}

#[test]
fn replay_can_be_turned_off() {
    let mut ring = SlotRing::new(RingLimits {
        replay_slots: 0,
        ..LIMITS
    });
    streams(&mut ring, good_slot(1));
    assert_eq!(ring.first_available(), None);
    assert_eq!(
        ring.replay(1, Commitment::Processed),
        Err(ReplayError::Disabled)
    );
}
