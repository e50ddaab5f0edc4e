//! What is given ahead: the creation and the writes of a bank as they come, and what makes that void.

use super::*;

/// An assembler of this many servers that gives ahead, of which slot 10 was given out by the first.
fn begun(servers: usize) -> SlotAssembler {
    let mut assembler = SlotAssembler::new(SOURCES_OF_SERVER * servers);
    for server in 0..servers {
        assembler.connected(SOURCES_OF_SERVER * server, sent(1, None));
    }
    assembler.give_ahead();
    let first = [created(10), account(10, 1), meta(10), processed(10)];
    take_in(&mut assembler, (0, 1), first);
    assembler.take();
    assembler
}

/// What was given out since, in words.
fn given(assembler: &mut SlotAssembler) -> Vec<String> {
    let word = |body: &Body| match body {
        Body::Account(account) => format!("write {}", account.write_version),
        Body::Slot(status) => format!("{:?} {}", status.status, status.slot),
        Body::BlockMeta(meta) => meta.blockhash.clone(),
        Body::Transaction(_) => "transaction".to_owned(),
    };
    let words = assembler
        .take()
        .into_iter()
        .map(|assembled| match assembled {
            Assembled::Update(update) => word(&update.body),
            Assembled::Ahead { body, .. } => format!("ahead {}", word(&body)),
            Assembled::Void { slot } => format!("void {slot}"),
            Assembled::Replaced { slot } => format!("replaced {slot}"),
            Assembled::Late { slot, .. } => format!("late {slot}"),
            Assembled::InForce { slot, .. } => format!("in force {slot}"),
        });
    words.collect()
}

#[test]
fn what_a_bank_writes_comes_at_once_and_not_again_when_its_slot_is_given_out() {
    let mut assembler = begun(1);
    take_in(&mut assembler, (0, 1), [created(11), account(11, 2)]);
    assert_eq!(
        given(&mut assembler),
        ["ahead CreatedBank 11", "ahead write 2"]
    );
    // A write that is older than the last one is none.
    take_in(
        &mut assembler,
        (0, 1),
        [account(11, 2), account(11, 3), meta(11)],
    );
    assert_eq!(given(&mut assembler), ["ahead write 3"]);
    take_in(&mut assembler, (0, 1), [processed(11)]);
    assert_eq!(
        given(&mut assembler),
        ["CreatedBank 11", "hash11", "Processed 11"]
    );
}

#[test]
fn what_its_child_has_written_comes_with_the_end_of_a_slot_that_is_announced_late() {
    let mut assembler = begun(1);
    take_in(
        &mut assembler,
        (0, 1),
        [created(11), meta(11), created(12), account(12, 2)],
    );
    assert_eq!(given(&mut assembler), ["ahead CreatedBank 11"]);
    take_in(&mut assembler, (0, 1), [processed(11), account(12, 3)]);
    assert_eq!(
        given(&mut assembler),
        [
            "CreatedBank 11",
            "hash11",
            "Processed 11",
            "ahead CreatedBank 12",
            "ahead write 2",
            "ahead write 3"
        ]
    );
}

#[test]
fn what_came_ahead_is_void_when_another_server_is_the_first_to_complete_the_slot() {
    let mut assembler = begun(2);
    take_in(&mut assembler, (0, 1), [created(11), account(11, 2)]);
    let other = [created(11), account(11, 7), meta(11), processed(11)];
    take_in(&mut assembler, (2, 1), [processed(10)]);
    take_in(&mut assembler, (2, 1), other);
    assert_eq!(
        given(&mut assembler),
        [
            "ahead CreatedBank 11",
            "ahead write 2",
            "void 11",
            "CreatedBank 11",
            "write 7",
            "hash11",
            "Processed 11"
        ]
    );
}

#[test]
fn what_came_ahead_is_void_when_its_connection_is_lost_or_its_bank_is_dead() {
    for lost in [true, false] {
        let mut assembler = begun(1);
        take_in(&mut assembler, (0, 1), [created(11), account(11, 2)]);
        given(&mut assembler);
        if lost {
            assembler.disconnected(0);
            assert_eq!(given(&mut assembler), ["void 11"]);
            continue;
        }
        take_in(
            &mut assembler,
            (0, 1),
            [slot_status(11, Some(10), SlotStatus::Dead)],
        );
        assert_eq!(given(&mut assembler), ["void 11", "Dead 11"]);
        take_in(&mut assembler, (0, 1), [created(11), account(11, 3)]);
        assert_eq!(
            given(&mut assembler),
            ["ahead CreatedBank 11", "ahead write 3"]
        );
    }
}

#[test]
fn what_came_ahead_is_void_when_what_it_builds_on_is_taken_back() {
    let mut assembler = begun(1);
    take_in(&mut assembler, (0, 1), [created(11), account(11, 2)]);
    given(&mut assembler);
    take_in(
        &mut assembler,
        (0, 1),
        [slot_status(10, Some(9), SlotStatus::Dead)],
    );
    assert_eq!(given(&mut assembler), ["void 11", "Dead 10"]);
}

#[test]
fn nothing_comes_ahead_of_what_is_not_known_to_begin_under_the_filter() {
    let mut assembler = begun(1);
    // Of slot 11 the creation was not reported.
    take_in(&mut assembler, (0, 1), [account(11, 2), account(11, 3)]);
    assert_eq!(given(&mut assembler), [] as [&str; 0]);
}
