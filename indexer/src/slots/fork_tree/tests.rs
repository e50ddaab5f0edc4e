//! Forks, and everything that arrives in an order it should not.

use super::{
    super::content::fixtures::{account, transaction},
    *,
};

/// A tree whose session streams everything from slot 11 on.
fn tree() -> SlotTree {
    from(Beginning::default())
}

fn from(beginning: Beginning) -> SlotTree {
    SlotTree::new(Beginning {
        from_slot: Some(11),
        finality_wanted: true,
        ..beginning
    })
}

fn meta(slot: u64, parent: u64, hash: &str) -> BlockMeta {
    BlockMeta {
        slot,
        parent_slot: parent,
        blockhash: hash.to_owned(),
        parent_blockhash: String::new(),
        block_time: Some(1),
        block_height: None,
        executed_transaction_count: 1,
    }
}

fn status(slot: u64, status: SlotStatus) -> SlotUpdate {
    SlotUpdate {
        slot,
        parent: None,
        status,
        dead_error: None,
    }
}

/// What follows, in short: `p11` told at processed, `c11`, `f11` likewise, `C11` and `F11` settled, `-11`
/// taken back. A slot without content is told as `p11()`.
#[derive(Debug)]
struct Script {
    tree: SlotTree,
    said: Vec<String>,
}

impl Script {
    fn new(tree: SlotTree) -> Self {
        Self {
            tree,
            said: Vec::new(),
        }
    }

    fn take(&mut self, steps: Result<Vec<Step>, TreeFault>) -> &mut Self {
        for step in steps.expect("no fault") {
            self.said.push(match step {
                Step::Tell {
                    commitment,
                    block,
                    content,
                } => {
                    let letter = &commitment.name()[..1];
                    let empty = if content.is_empty() { "()" } else { "" };
                    format!("{letter}{}{empty}", block.slot)
                }
                Step::Revert { slot, reason } => format!("-{slot}{}", reason.name()),
                Step::Settled { commitment, slot } => {
                    format!("{}{slot}", commitment.name()[..1].to_uppercase())
                }
            });
        }
        self
    }

    fn write(&mut self, slot: u64, key: u8) -> &mut Self {
        let steps = self.tree.item(slot, Item::Account(account(slot, key, 1)));
        self.take(steps)
    }

    fn block(&mut self, slot: u64, parent: u64) -> &mut Self {
        self.block_of(slot, parent, &format!("hash{slot}"))
    }

    fn block_of(&mut self, slot: u64, parent: u64, hash: &str) -> &mut Self {
        let steps = self.tree.block(meta(slot, parent, hash));
        self.take(steps)
    }

    fn is(&mut self, slot: u64, status: SlotStatus) -> &mut Self {
        let steps = self.tree.status(&self::status(slot, status));
        self.take(steps)
    }

    /// Content, block and frozen bank.
    fn slot(&mut self, slot: u64, parent: u64) -> &mut Self {
        self.write(slot, 1)
            .block(slot, parent)
            .is(slot, SlotStatus::Processed)
    }

    fn says(&mut self, expected: &str) -> &mut Self {
        assert_eq!(self.said.join(" "), expected);
        self.said.clear();
        self
    }
}

use SlotStatus::{Confirmed, CreatedBank, Dead, Finalized, Processed};

#[test]
fn a_slot_is_told_at_each_commitment_once() {
    let mut script = Script::new(tree());
    script.write(11, 1).block(11, 10).says("");
    script.is(11, Processed).says("p11");
    script.is(11, Processed).says("");
    script.is(11, Confirmed).says("c11 C11");
    script.is(11, Confirmed).is(11, Processed).says("");
    script.is(11, Finalized).says("f11 F11");
    script.is(11, Finalized).is(11, Confirmed).says("");
}

#[test]
fn a_status_before_the_block_waits_for_it() {
    let mut script = Script::new(tree());
    script
        .write(11, 1)
        .is(11, Processed)
        .is(11, Confirmed)
        .says("");
    script.block(11, 10).says("p11 c11 C11");
}

#[test]
fn a_status_that_never_comes_is_implied_by_a_descendants() {
    let mut script = Script::new(tree());
    script
        .slot(11, 10)
        .slot(12, 11)
        .slot(13, 12)
        .says("p11 p12 p13");
    script.is(13, Confirmed).says("c11 c12 c13 C13");
    script.is(12, Finalized).says("f11 f12 F12");
    let mut script = Script::new(tree());
    script.write(11, 1).block(11, 10).is(11, Finalized);
    script.says("p11 c11 C11 f11 F11");
}

#[test]
fn what_the_confirmed_chain_passes_by_is_taken_back_before_it_goes_on() {
    let mut script = Script::new(tree());
    script.slot(11, 10).slot(12, 10).slot(13, 11).write(14, 1);
    script.says("p11 p12 p13");
    script.is(13, Confirmed).says("-12abandoned c11 c13 C13");
    // Nothing of the abandoned slot is ever heard again.
    script
        .write(12, 2)
        .block(12, 10)
        .is(12, Processed)
        .is(12, Confirmed)
        .says("");
    script.block(14, 13).is(14, Confirmed).says("p14 c14 C14");
    script.is(14, Finalized).says("f11 f13 f14 F14");
}

#[test]
fn a_skipped_slot_is_nothing() {
    let mut script = Script::new(tree());
    script.slot(15, 10).is(15, Confirmed).says("p15 c15 C15");
}

#[test]
fn a_dead_slot_is_taken_back_if_it_was_told_and_told_anew_when_it_returns() {
    let mut script = Script::new(tree());
    script.write(11, 1).is(11, Dead).says("");
    script.slot(12, 10).says("p12");
    script.is(12, Dead).says("-12dead");
    script.is(12, Dead).says("");
    script.write(12, 1);
    script
        .block_of(12, 10, "hash12")
        .is(12, Processed)
        .says("p12");
    script.is(12, Confirmed).says("c12 C12");
    script.is(12, Dead).says("");
}

#[test]
fn another_block_of_the_same_slot_replaces_what_was_told() {
    let mut script = Script::new(tree());
    script.slot(11, 10).says("p11");
    script.write(11, 2).says("p11");
    script.block_of(11, 10, "other").says("-11replaced");
    script.is(11, Processed).says("p11");
    script.is(11, Confirmed).says("c11 C11");
    script.block_of(11, 10, "third").says("");
}

#[test]
fn what_two_blocks_of_a_slot_have_in_common_is_told_of_both() {
    let mut script = Script::new(tree());
    let executed = |script: &mut Script| {
        let transaction = Item::Transaction(Box::new(transaction(11, 3)));
        let steps = script.tree.item(11, transaction);
        script.take(steps).write(11, 1);
    };
    executed(&mut script);
    script.block(11, 10).is(11, Processed).says("p11");
    executed(&mut script);
    script.says("");
    script.block_of(11, 10, "other").says("-11replaced");
    let steps = script.tree.status(&status(11, Confirmed));
    let Ok([Step::Tell { content, .. }, ..]) = steps.as_deref() else {
        panic!("{steps:?}")
    };
    assert_eq!(content.transactions().count(), 1);
    assert_eq!(content.accounts().len(), 1);
}

#[test]
fn what_comes_after_a_bank_was_created_once_more_belongs_to_another_block() {
    let mut script = Script::new(tree());
    script.slot(11, 10).write(11, 2).says("p11 p11");
    script.is(11, CreatedBank).write(11, 3).says("");
    script.block_of(11, 10, "other").says("-11replaced");
    let steps = script.tree.status(&status(11, Processed));
    let Ok([Step::Tell { content, .. }]) = steps.as_deref() else {
        panic!("{steps:?}")
    };
    let accounts = content.accounts();
    assert_eq!(accounts.len(), 1);
    assert_eq!(accounts[0].pubkey, account(11, 3, 1).pubkey);
}

#[test]
fn what_is_decided_already_is_not_told_before_the_chain_reaches_it() {
    let mut script = Script::new(from(Beginning {
        decided: Some(12),
        ..Beginning::default()
    }));
    script.slot(11, 10).slot(12, 10).says("");
    script.is(12, Dead).slot(12, 10).slot(13, 12).says("p13");
    script.is(12, Confirmed).says("p12 c12 C12");
    script.is(13, Confirmed).says("c13 C13");
}

#[test]
fn late_content_is_told_at_every_commitment_that_is_over() {
    let mut script = Script::new(tree());
    script.slot(11, 10).is(11, Confirmed).says("p11 c11 C11");
    script.write(11, 2).says("p11 c11");
    script.write(11, 2).says("");
    script.is(11, Finalized).says("f11 F11");
    let late = script
        .tree
        .item(11, Item::Transaction(Box::new(transaction(11, 3))));
    script.take(late).says("p11 c11 f11");
}

#[test]
fn without_anybody_at_finalized_content_is_dropped_at_confirmed() {
    let mut script = Script::new(SlotTree::new(Beginning {
        from_slot: Some(11),
        ..Beginning::default()
    }));
    script.slot(11, 10).is(11, Confirmed).says("p11 c11 C11");
    assert_eq!(script.tree.bytes, 0);
    script.is(11, Finalized).says("F11");
    // Finality may stand still for longer than blocks are remembered.
    for slot in 12..300 {
        script.slot(slot, slot - 1).is(slot, Confirmed);
    }
    script.said.clear();
    assert!(script.tree.nodes.len() <= usize::try_from(REMEMBERED).expect("small") + 1);
    script.is(299, Finalized).says("F299");
}

#[test]
fn what_an_earlier_session_told_is_taken_back_by_this_one() {
    let open = |slot: u64| UnconfirmedSlot {
        slot,
        blockhash: Some(format!("hash{slot}")),
    };
    let mut script = Script::new(from(Beginning {
        open: vec![open(9), open(11), open(12), open(13), open(14)],
        ..Beginning::default()
    }));
    script.slot(11, 10).says("p11");
    script.block_of(12, 11, "other").says("-12replaced");
    script.is(14, Dead).says("-14dead");
    script.is(12, Confirmed).says("p12() c11 c12() C12");
    script
        .slot(15, 12)
        .is(15, Confirmed)
        .says("p15 -13abandoned c15 C15");
}

#[test]
fn a_session_that_takes_what_comes_begins_with_its_first_block() {
    let mut script = Script::new(SlotTree::new(Beginning::default()));
    script
        .is(10, Confirmed)
        .write(10, 1)
        .write(12, 1)
        .is(11, Processed)
        .says("");
    script.block(12, 11).is(12, Processed).says("p12");
    assert_eq!(script.tree.base(), Some(11));
    script.is(11, Confirmed).says("");
    script.is(12, Confirmed).says("c12 C12");
}

#[test]
fn a_block_that_never_came_is_a_hole_until_it_is_accepted_as_one() {
    let break_off = |tree: SlotTree| {
        let mut script = Script::new(tree);
        script.slot(11, 10).is(11, Confirmed).says("p11 c11 C11");
        for slot in 14..30 {
            script.slot(slot, slot - 1).said.clear();
            let steps = script.tree.status(&SlotUpdate {
                slot,
                parent: None,
                status: Confirmed,
                dead_error: None,
            });
            match steps {
                Ok(steps) => {
                    script.take(Ok(steps));
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(script.said.join(" "))
    };
    let fault = TreeFault::Hole {
        first: 12,
        last: 13,
    };
    assert_eq!(break_off(tree()), Err(fault));
    let accepted = from(Beginning {
        missing: Some((12, 13)),
        ..Beginning::default()
    });
    assert_eq!(break_off(accepted), Ok("c29 C29".to_owned()));
}

#[test]
fn what_waits_is_bounded_in_slots_and_in_bytes() {
    let mut tree = tree();
    let mut slots = 11..;
    let fault = slots.find_map(|slot| tree.block(meta(slot, slot - 1, "hash")).err());
    assert!(matches!(fault, Some(TreeFault::Full { .. })));

    let mut tree = self::tree();
    let data = bytes::Bytes::from(vec![0; MAX_BYTES / 2]);
    let large = |key| {
        Item::Account(sluice_geyser::AccountUpdate {
            data: data.clone(),
            ..account(11, key, 1)
        })
    };
    tree.item(11, large(1)).expect("room");
    assert!(tree.item(11, large(2)).is_err());
}
