//! Resumed sessions: what an earlier one emitted, where one begins, and gaps.

use super::*;

#[test]
fn what_an_earlier_session_emitted_is_retracted_by_this_one() {
    let emitted = |slot: u64| (slot, Some(format!("hash{slot}")));
    let mut script = Script::new(from(ResumePoint {
        unconfirmed: [9, 11, 12, 13, 14].map(emitted).into(),
        ..ResumePoint::default()
    }));
    script.slot(11, 10).does("p11");
    script.block_of(12, 11, "other").does("-12replaced");
    script.is(14, Dead).does("-14dead");
    script.is(12, Confirmed).does("p12() c11 c12() C12");
    script
        .slot(15, 12)
        .is(15, Confirmed)
        .does("p15 -13abandoned c15 C15");
}

#[test]
fn an_emission_whose_block_is_not_known_counts_as_one_of_another_block() {
    let mut script = Script::new(from(ResumePoint {
        unconfirmed: [(11, None)].into(),
        ..ResumePoint::default()
    }));
    script.write(11, 1).block(11, 10).does("-11replaced");
    script.is(11, Processed).does("p11");
    script.is(11, Confirmed).does("c11 C11");
}

#[test]
fn a_session_from_the_tip_begins_with_its_first_block() {
    let mut script = Script::new(ForkTree::new(&ResumePoint::default()));
    script
        .is(10, Confirmed)
        .write(10, 1)
        .write(12, 1)
        .is(11, Processed)
        .does("");
    script.block(12, 11).is(12, Processed).does("p12");
    assert_eq!(script.tree.floor(), Some(11));
    script.is(11, Confirmed).does("");
    script.is(12, Confirmed).does("c12 C12");
}

#[test]
fn a_block_that_never_came_is_a_fault_until_it_is_known_as_a_gap() {
    let break_off = |tree: ForkTree| {
        let mut script = Script::new(tree);
        script.slot(11, 10).is(11, Confirmed).does("p11 c11 C11");
        for slot in 14..30 {
            script.slot(slot, slot - 1).done.clear();
            let actions = script.tree.status(&SlotUpdate {
                slot,
                parent: None,
                status: Confirmed,
                dead_error: None,
            });
            match actions {
                Ok(actions) => {
                    script.take(Ok(actions));
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(script.done.join(" "))
    };
    let gap = Gap {
        first: 12,
        last: 13,
    };
    assert_eq!(break_off(tree()), Err(ForkTreeError::Gap(gap)));
    let known = from(ResumePoint {
        gap: Some(gap),
        ..ResumePoint::default()
    });
    assert_eq!(break_off(known), Ok("c29 C29".to_owned()));
}
