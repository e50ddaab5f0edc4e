//! Late content: what comes of a slot after its end is reported, once, whichever copy of the block it comes for.

use super::*;

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

/// One server, which has delivered slot 10 with one write.
fn slot_10_given() -> SlotAssembler {
    let mut assembler = SlotAssembler::new(1);
    assembler.connected(0, sent(1, None));
    let block = [created(10), account(10, 5), meta(10), processed(10)];
    deliver(&mut assembler, 1, block);
    assembler
}

#[test]
fn content_of_a_slot_that_was_given_out_is_reported() {
    let mut assembler = slot_10_given();
    assert_eq!(
        deliver(&mut assembler, 1, [account(10, 5), account(10, 4)]).0,
        [],
        "known"
    );
    let update = update(1, account(10, 6));
    assembler.update(0, update.clone());
    assert_eq!(assembler.take(), [Assembled::Late { slot: 10, update }]);
}

#[test]
fn content_that_only_a_copy_of_the_block_holds_is_reported() {
    let mut assembler = slot_10_given();
    assembler.requested(0, sent(2, Some(10)));
    let late = |generation: u64, version| Assembled::Late {
        slot: 10,
        update: Update {
            filters: vec![format!("filter#{generation}")],
            created_at: None,
            bank_id: None,
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
                bank_id: None,
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
            bank_id: None,
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

#[test]
fn content_after_the_metadata_is_none_of_a_replay_that_has_passed_its_slot() {
    let mut assembler = slot_10_given();
    deliver(&mut assembler, 1, [created(11), account(11, 7), meta(11)]);
    // A replay of slots 10 and 11 is asked for that holds neither: the server has nothing to replay.
    assembler.requested(0, sent(2, Some(10)));
    let next = [created(12), account(12, 8), meta(12), processed(12)];
    let confirmed = slot_status(11, None, SlotStatus::Confirmed);
    let live = next.into_iter().chain([account(11, 9), confirmed]);
    let (given, _) = deliver(&mut assembler, 2, live);
    assert_eq!(given, [(11, 2), (12, 1)], "before its slot was given out");

    assembler.update(0, update(2, account(11, 10)));
    assert_eq!(reported(&assembler.take()), [account(11, 10)], "and after");
}

#[test]
fn content_that_is_taken_for_a_replay_is_reported_once_the_replay_has_passed_its_slot() {
    let mut assembler = slot_10_given();
    assembler.requested(0, sent(2, Some(10)));
    // It may be the beginning of a replay of slot 10.
    let confirmed = slot_status(10, None, SlotStatus::Confirmed);
    let open = [created(11), account(10, 6), confirmed, account(11, 7)];
    assert_eq!(deliver(&mut assembler, 2, open).0, []);
    assembler.update(0, update(2, meta(11)));
    assert_eq!(reported(&assembler.take()), [account(10, 6)]);
}

/// A write of an account by the transaction of this number.
fn written(slot: u64, key: u8, version: u64, transaction: u8) -> Body {
    let key = solana_pubkey::Pubkey::from([key; 32]);
    let mut write = server_model::write(slot, key, version);
    write.txn_signature = Some(solana_signature::Signature::from([transaction; 64]));
    Body::Account(write)
}

/// Slot 10 as one of two servers delivers it, each numbering writes in its own way.
fn block(content: impl IntoIterator<Item = Body>) -> Vec<Body> {
    let end = [meta(10), processed(10)];
    [created(10)]
        .into_iter()
        .chain(content)
        .chain(end)
        .collect()
}

const fn of_first_filter(request: SentRequest) -> SentRequest {
    SentRequest {
        filter: Generation(1),
        ..request
    }
}

/// Two servers, of which the first has delivered slot 10 with two writes of account 1.
fn taken_from_the_first() -> SlotAssembler {
    let mut assembler = SlotAssembler::new(4);
    assembler.connected(0, sent(1, None));
    assembler.connected(2, of_first_filter(sent(2, None)));
    let content = [written(10, 1, 5, 1), written(10, 1, 6, 2)];
    for body in block(content) {
        assembler.update(0, update(1, body));
    }
    let given = assembler.take();
    assert_eq!(given.iter().filter(|each| is_created(each)).count(), 1);
    assembler
}

fn deliver_second(
    assembler: &mut SlotAssembler,
    bodies: impl IntoIterator<Item = Body>,
) -> Vec<Body> {
    for body in bodies {
        assembler.update(2, update(2, body));
    }
    reported(&assembler.take())
}

#[test]
fn what_a_lost_server_had_still_to_deliver_is_taken_from_the_other() {
    let same = [written(10, 1, 905, 1), written(10, 1, 906, 2)];
    let missing = [written(10, 2, 907, 3), written(10, 1, 908, 4)];
    let all = || block(same.iter().chain(&missing).cloned());
    // The second one delivered it before the first was lost,
    let mut assembler = taken_from_the_first();
    assert_eq!(
        deliver_second(&mut assembler, all()),
        [],
        "it is awaited of the first"
    );
    assembler.disconnected(0);
    assert_eq!(reported(&assembler.take()), missing);
    // or after that,
    let mut assembler = taken_from_the_first();
    assembler.disconnected(0);
    assert_eq!(deliver_second(&mut assembler, all()), missing);
    // or after its own block was complete, before or after that.
    for is_before in [true, false] {
        let mut assembler = taken_from_the_first();
        assert_eq!(deliver_second(&mut assembler, block(same.clone())), []);
        if !is_before {
            assembler.disconnected(0);
        }
        let expected = if is_before { &[][..] } else { &missing };
        assert_eq!(deliver_second(&mut assembler, missing.clone()), expected);
        assembler.disconnected(0);
        let expected = if is_before { &missing[..] } else { &[] };
        assert_eq!(
            reported(&assembler.take()),
            expected,
            "each is reported once"
        );
    }
}

#[test]
fn what_a_server_delivered_late_before_it_was_lost_is_not_reported_again() {
    let mut assembler = taken_from_the_first();
    let late = written(10, 2, 7, 3);
    let content = [written(10, 1, 906, 2), written(10, 2, 907, 3)];
    assert_eq!(deliver_second(&mut assembler, block(content)), []);
    assembler.update(0, update(1, late.clone()));
    assert_eq!(reported(&assembler.take()), [late]);
    assembler.disconnected(0);
    assert_eq!(reported(&assembler.take()), []);
    // It comes back, and replays with other numbers what it had delivered, and what it had not.
    assembler.connected(0, of_first_filter(sent(3, Some(10))));
    let missing = written(10, 3, 3, 5);
    let replayed = [
        written(10, 1, 1, 2),
        written(10, 2, 2, 3),
        missing.clone(),
        meta(10),
        processed(10),
    ];
    for body in replayed {
        assembler.update(0, update(3, body));
    }
    assert_eq!(reported(&assembler.take()), [missing]);
}

/// A server that joined in the middle of slot 10, and delivered it whole on its side stream.
fn taken_from_a_side_stream(servers: usize) -> SlotAssembler {
    let mut assembler = SlotAssembler::new(SOURCES_OF_SERVER * servers);
    assembler.connected(0, sent(1, Some(10)));
    let rest = [account(10, 5), meta(10), processed(10), created(11)];
    assert_eq!(deliver(&mut assembler, 1, rest).0, [], "it is suspect");
    assembler.connected(1, of_first_filter(sent(2, Some(10))));
    for body in [hidden(10, 4), account(10, 5), meta(10), processed(10)] {
        assembler.update(1, update(2, body));
    }
    let given = assembler.take();
    assert_eq!(given.iter().filter(|each| is_created(each)).count(), 1);
    assembler
}

#[test]
fn what_came_on_the_side_stream_is_not_missing_when_the_stream_is_lost_before_it() {
    let mut assembler = taken_from_a_side_stream(1);
    assembler.disconnected(0);
    assembler.disconnected(1);
    assembler.connected(0, of_first_filter(sent(3, Some(10))));
    for body in [hidden(10, 4), account(10, 5), meta(10), processed(10)] {
        assembler.update(0, update(3, body));
    }
    assert_eq!(reported(&assembler.take()), []);
    // What neither of them had delivered is.
    let missing = written(10, 3, 6, 3);
    assembler.update(0, update(3, missing.clone()));
    assert_eq!(reported(&assembler.take()), [missing]);
}

#[test]
fn what_came_on_the_side_stream_is_not_taken_from_another_server_when_the_stream_is_lost() {
    let mut assembler = taken_from_a_side_stream(2);
    assembler.connected(2, of_first_filter(sent(4, None)));
    for body in block([hidden(10, 904), account(10, 905)]) {
        assembler.update(2, update(4, body));
    }
    for source in [0, 1] {
        assembler.disconnected(source);
        assert_eq!(reported(&assembler.take()), [], "source {source}");
    }
}

#[test]
fn what_another_filter_selects_is_not_late() {
    let mut assembler = taken_from_the_first();
    assembler.requested(2, sent(3, None));
    let wider = block([written(10, 1, 906, 2), written(10, 7, 907, 3)]);
    for body in wider {
        assembler.update(2, update(3, body));
    }
    assembler.disconnected(0);
    assert_eq!(reported(&assembler.take()), []);
}
