//! Late content: what comes of a slot after its end is reported, once, whichever copy of the block it comes for.

use super::*;

fn update(generation: u64, body: Body) -> Update {
    Update {
        filters: vec![Generation(generation).name("filter")],
        created_at: None,
        body,
    }
}

/// What was reported to be late.
fn reported(assembled: &[Assembled]) -> Vec<Body> {
    let late = assembled.iter().filter_map(|each| match each {
        Assembled::Late { update, .. } => Some(update.body.clone()),
        _ => None,
    });
    late.collect()
}

/// Whether a slot begins here.
fn is_created(assembled: &Assembled) -> bool {
    let Assembled::Update(update) = assembled else {
        return false;
    };
    matches!(&update.body, Body::Slot(slot) if slot.status == SlotStatus::CreatedBank)
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
    for body in [account(10, 5), meta(10), processed(10), account(10, 6)] {
        assembler.update(0, update(1, body));
    }
    assembler.connected(1, sent(2, Some(10)));
    for body in [account(10, 5), meta(10), processed(10)] {
        assembler.update(1, update(2, body));
    }
    assembler.update(1, update(2, created(12)));
    let assembled = assembler.take();
    assert_eq!(reported(&assembled), [account(10, 6)]);
}

#[test]
fn content_of_a_copy_is_reported_though_the_slot_is_given_out_and_forgotten_at_once() {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, Some(10)));
    deliver(&mut assembler, 1, [account(10, 5), created(11)]);
    // The server reports the end of slots 10 and 11 only after this replay was asked for, so its copies prove nothing.
    assembler.requested(0, sent(2, Some(10)));
    let block = |slot| [account(slot, 5), meta(slot), processed(slot)];
    let live = [meta(10), processed(10)].into_iter().chain(block(11));
    deliver(&mut assembler, 1, live);
    deliver(&mut assembler, 2, block(10).into_iter().chain(block(11)));
    // It belongs to the block of slot 11 that is to be given out, and comes for its copy.
    let late = account(11, 6);
    let next = [created(12)].into_iter().chain(block(12));
    let finalized = slot_status(12, None, SlotStatus::Finalized);
    let rest = next.chain([created(13), late.clone(), finalized]);
    assert_eq!(deliver(&mut assembler, 2, rest).0, [], "slot 10 is suspect");

    assembler.requested(0, sent(3, Some(10)));
    for body in block(10) {
        assembler.update(0, update(3, body));
    }
    let assembled = assembler.take();
    let given = assembled.iter().filter(|each| is_created(each)).count();
    assert_eq!(given, 3, "slots 10 to 12, of which the last is final");
    assert_eq!(reported(&assembled), [late]);
}
