//! Bank ids: several banks of a slot, written in turns, are told apart by their numbers.

use super::*;

/// Of a bank of slot 10.
fn update(bank_id: u64, body: Body) -> Update {
    Update {
        filters: vec!["filter#1".into()],
        created_at: None,
        bank_id: Some(bank_id),
        body,
    }
}

/// Metadata of a block of slot 10 with this hash.
fn meta_of(hash: &str) -> Body {
    match meta(10) {
        Body::BlockMeta(meta) => Body::BlockMeta(crate::BlockMeta {
            blockhash: hash.into(),
            ..meta
        }),
        body => body,
    }
}

/// Slot 11 on the block of slot 10 with this hash.
fn child_of(hash: &str) -> [Body; 3] {
    let meta = match meta(11) {
        Body::BlockMeta(meta) => Body::BlockMeta(crate::BlockMeta {
            parent_blockhash: hash.into(),
            ..meta
        }),
        body => body,
    };
    [created(11), meta, processed(11)]
}

/// Two banks of slot 10, written in turns, of which both are open.
fn two_open_banks() -> SlotAssembler {
    let mut assembler = SlotAssembler::new(2);
    assembler.connected(0, sent(1, None));
    let banks = [
        (1, created(10)),
        (2, created(10)),
        (1, account(10, 1)),
        (2, account(10, 2)),
        (1, account(10, 3)),
        (2, account(10, 4)),
    ];
    for (bank, body) in banks {
        assembler.update(0, update(bank, body));
    }
    assert_eq!(
        assembler.take(),
        [Assembled::InForce {
            filter: Generation(1),
            slot: 10
        }]
    );
    assembler
}

fn end(assembler: &mut SlotAssembler, bank: u64, hash: &str) {
    assembler.update(0, update(bank, meta_of(hash)));
    assembler.update(0, update(bank, processed(10)));
}

/// What was given out: versions of writes, hashes of blocks, and the slots that were withdrawn.
fn given(assembler: &mut SlotAssembler) -> Vec<String> {
    let taken = assembler.take().into_iter();
    let words = taken.filter_map(|assembled| match assembled {
        Assembled::Replaced { slot } => Some(format!("{slot} replaced")),
        Assembled::Late { slot, .. } => Some(format!("{slot} late")),
        Assembled::InForce { .. } | Assembled::Ahead { .. } | Assembled::Void { .. } => None,
        Assembled::Update(update) => match update.body {
            Body::Account(account) => Some(format!("write {}", account.write_version)),
            Body::BlockMeta(meta) => Some(format!("block {}", meta.blockhash)),
            Body::Slot(status) if status.status == SlotStatus::Dead => {
                Some(format!("{} dead", status.slot))
            }
            _ => None,
        },
    });
    words.collect()
}

#[test]
fn each_of_two_banks_written_in_turns_is_whole_without_being_asked_for_again() {
    for first in [1, 2] {
        let second = 3 - first;
        let hash = |bank: u64| if bank == 1 { "one" } else { "two" };
        let writes = |bank: u64| [bank, bank + 2].map(|version| format!("write {version}"));
        let expected = |bank: u64| {
            let block = format!("block {}", hash(bank));
            writes(bank).into_iter().chain([block]).collect::<Vec<_>>()
        };
        let mut assembler = two_open_banks();
        end(&mut assembler, first, hash(first));
        assert_eq!(given(&mut assembler), expected(first), "it is complete");
        end(&mut assembler, second, hash(second));
        assert_eq!(
            given(&mut assembler),
            [""; 0],
            "nothing builds on the other"
        );
        for body in child_of(hash(second)) {
            assembler.update(0, update(3, body));
        }
        let mut replaced = vec!["10 replaced".to_owned()];
        replaced.extend(expected(second));
        replaced.push("block hash11".into());
        assert_eq!(given(&mut assembler), replaced, "the other is built on");
        assert_eq!(assembler.replay_due(0, true), None);
    }
}

#[test]
fn without_numbers_such_banks_are_asked_for_again() {
    let mut assembler = SlotAssembler::new(2);
    assembler.connected(0, sent(1, None));
    let banks = [created(10), created(10), account(10, 1), account(10, 2)];
    deliver(&mut assembler, 1, banks);
    deliver(
        &mut assembler,
        1,
        [account(11, 1), meta_of("one"), processed(10)],
    );
    deliver(&mut assembler, 1, child_of("one"));
    assert!(assembler.has_suspect(0));
}

#[test]
fn a_dead_bank_leaves_the_other_of_its_slot() {
    let dead = || slot_status(10, None, SlotStatus::Dead);
    // Before the other has ended,
    let mut assembler = two_open_banks();
    assembler.update(0, update(1, dead()));
    end(&mut assembler, 2, "two");
    assert_eq!(given(&mut assembler), ["write 2", "write 4", "block two"]);
    // after the other was given out,
    let mut assembler = two_open_banks();
    end(&mut assembler, 2, "two");
    assembler.update(0, update(1, dead()));
    assert_eq!(given(&mut assembler), ["write 2", "write 4", "block two"]);
    // and after it was given out itself.
    let mut assembler = two_open_banks();
    end(&mut assembler, 1, "one");
    end(&mut assembler, 2, "two");
    given(&mut assembler);
    assembler.update(0, update(1, dead()));
    let expected = ["10 dead", "write 2", "write 4", "block two"];
    assert_eq!(given(&mut assembler), expected);
}

#[test]
fn a_commitment_counts_for_the_bank_that_it_names() {
    let mut assembler = two_open_banks();
    end(&mut assembler, 1, "one");
    end(&mut assembler, 2, "two");
    given(&mut assembler);
    for status in [SlotStatus::Confirmed, SlotStatus::Finalized] {
        assembler.update(0, update(1, slot_status(10, None, status)));
    }
    assert_eq!(given(&mut assembler), [""; 0], "it stays");
    let mut findings = assembler.take_findings().into_iter();
    assert!(!findings.any(|finding| matches!(finding, Finding::Contradicted { .. })));

    let mut assembler = two_open_banks();
    end(&mut assembler, 1, "one");
    end(&mut assembler, 2, "two");
    given(&mut assembler);
    let confirmed = slot_status(10, None, SlotStatus::Confirmed);
    assembler.update(0, update(2, confirmed));
    let expected = ["10 replaced", "write 2", "write 4", "block two"];
    assert_eq!(given(&mut assembler), expected, "it is replaced");
}

#[test]
fn content_that_comes_late_is_of_the_bank_that_it_names() {
    let mut assembler = two_open_banks();
    end(&mut assembler, 1, "one");
    given(&mut assembler);
    assembler.update(0, update(2, account(10, 5)));
    assert_eq!(given(&mut assembler), [""; 0], "it is of the open bank");
    assembler.update(0, update(1, account(10, 6)));
    assert_eq!(given(&mut assembler), ["10 late"]);
}

#[test]
fn a_bank_whose_creation_has_no_number_is_the_one_of_its_content() {
    let mut assembler = SlotAssembler::new(2);
    assembler.connected(0, sent(1, None));
    deliver(&mut assembler, 1, [created(10)]);
    assembler.update(0, update(1, account(10, 1)));
    end(&mut assembler, 1, "one");
    assert_eq!(given(&mut assembler), ["write 1", "block one"]);
}

#[test]
fn a_bank_that_a_server_has_not_delivered_confirms_no_other_one() {
    let mut assembler = SlotAssembler::new(SOURCES_OF_SERVER * 2);
    assembler.connected(0, sent(1, None));
    for body in [created(10), account(10, 1), meta_of("first"), processed(10)] {
        assembler.update(0, update(1, body));
    }
    let taken = given(&mut assembler);
    assert!(taken.contains(&"block first".to_owned()), "{taken:?}");
    // One that was connected to since has a number of its own for whatever it has confirmed.
    assembler.connected(2, sent(2, None));
    let confirmed = || slot_status(10, None, SlotStatus::Confirmed);
    let of_second = Update {
        filters: vec!["filter#2".into()],
        ..update(7, confirmed())
    };
    assembler.update(2, of_second.clone());
    assert_eq!(assembler.confirmed, None, "it may be another block");
    assembler.update(0, update(1, confirmed()));
    assert_eq!(assembler.confirmed, Some(10));
    // Of what is confirmed, nothing but the chain's block can be finalized.
    let finalized = slot_status(10, None, SlotStatus::Finalized);
    assembler.update(
        2,
        Update {
            body: finalized,
            ..of_second
        },
    );
    assert_eq!(assembler.root, Some(10));
}
