//! A side stream may be ahead of the stream: what it has shown must not fall with a dead bank that the stream shows afterwards.

use super::*;

/// Of the other block of slot 11, and of what builds on it.
const OTHER: &str = "other";

/// What is given out, as text.
fn given(assembler: &mut SlotAssembler) -> Vec<String> {
    let assembled = assembler.take().into_iter();
    let lines = assembled.filter_map(|each| match each {
        Assembled::Update(update) => match update.body {
            Body::Slot(slot) => Some(format!("{} {:?}", slot.slot, slot.status)),
            _ => None,
        },
        Assembled::InForce { .. } => None,
        other => Some(format!("{other:?}")),
    });
    lines.collect()
}

fn pass(assembler: &mut SlotAssembler, (source, generation): (usize, u64), bodies: Vec<Body>) {
    for body in bodies {
        assembler.update(source, update(generation, body));
    }
}

fn whole(slot: u64) -> Vec<Body> {
    vec![
        created(slot),
        account(slot, slot),
        meta(slot),
        processed(slot),
    ]
}

/// The other block of slot 11, and slot 12 upon it.
fn others() -> Vec<Body> {
    let mut bodies = whole(11);
    bodies.extend(whole(12));
    for body in &mut bodies {
        match body {
            Body::BlockMeta(meta) if meta.slot == 11 => meta.blockhash = OTHER.to_owned(),
            Body::BlockMeta(meta) => meta.parent_blockhash = OTHER.to_owned(),
            _ => {}
        }
    }
    bodies
}

fn dead() -> Vec<Body> {
    vec![slot_status(11, None, SlotStatus::Dead)]
}

/// Slot 10 from the stream, and then slots 11 and 12 from a side stream, which is over.
fn with_a_side_stream_ahead(of_side: Vec<Vec<Body>>) -> SlotAssembler {
    let mut assembler = SlotAssembler::new(2);
    assembler.connected(0, sent(1, None));
    pass(&mut assembler, (0, 1), whole(10));
    let of_the_same_filter = SentRequest {
        filter: Generation(1),
        ..sent(2, Some(10))
    };
    assembler.connected(1, of_the_same_filter);
    for bodies in of_side {
        pass(&mut assembler, (1, 2), bodies);
    }
    assembler.disconnected(1);
    let given = given(&mut assembler);
    let last = given.last().map(String::as_str);
    assert_eq!(last, Some("12 Processed"), "{given:?}");
    assembler
}

#[test]
fn a_bank_that_died_before_another_took_its_place_takes_nothing_with_it() {
    let side = vec![whole(11), dead(), others()];
    let mut assembler = with_a_side_stream_ahead(side);
    pass(&mut assembler, (0, 1), whole(11));
    pass(&mut assembler, (0, 1), dead());
    assert_eq!(given(&mut assembler), Vec::<String>::new());
    pass(&mut assembler, (0, 1), others());
    let confirmed = slot_status(12, None, SlotStatus::Confirmed);
    pass(&mut assembler, (0, 1), vec![confirmed]);
    pass(&mut assembler, (0, 1), whole(13));
    assert_eq!(
        given(&mut assembler),
        ["12 Confirmed", "13 CreatedBank", "13 Processed"]
    );
}

#[test]
fn what_builds_on_a_dead_slot_is_taken_back_though_the_stream_that_brought_it_is_over() {
    let mut side = whole(11);
    side.extend(whole(12));
    let mut assembler = with_a_side_stream_ahead(vec![side]);
    // The stream has joined too late for the bank itself.
    pass(&mut assembler, (0, 1), dead());
    assert_eq!(given(&mut assembler), ["11 Dead"]);
    // It was repaired, and what builds on it comes anew.
    pass(&mut assembler, (0, 1), others());
    assert_eq!(
        given(&mut assembler),
        [
            "11 CreatedBank",
            "11 Processed",
            "12 CreatedBank",
            "12 Processed"
        ]
    );
}
