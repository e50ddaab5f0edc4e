//! The fork tree under forks, and under updates that arrive in an order they should not.

mod resumed;

use super::{
    super::slot_events::fixtures::{account, transaction},
    *,
};

/// A tree whose session streams everything from slot 11 on.
fn tree() -> ForkTree {
    from(ResumePoint::default())
}

fn from(resume: ResumePoint) -> ForkTree {
    ForkTree::new(&ResumePoint {
        from_slot: Some(11),
        finality_wanted: true,
        ..resume
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

/// The actions, in short: `p11` emitted at processed, `c11`, `f11` likewise, `C11` and `F11` checkpoints, `-11`
/// retracted. A slot without events is emitted as `p11()`.
#[derive(Debug)]
struct Script {
    tree: ForkTree,
    done: Vec<String>,
}

impl Script {
    fn new(tree: ForkTree) -> Self {
        Self {
            tree,
            done: Vec::new(),
        }
    }

    fn take(&mut self, actions: Result<Vec<Action>, ForkTreeError>) -> &mut Self {
        for action in actions.expect("no fault") {
            self.done.push(match action {
                Action::Emit {
                    commitment,
                    block,
                    events,
                } => {
                    let letter = &commitment.name()[..1];
                    let empty = if events.is_empty() { "()" } else { "" };
                    format!("{letter}{}{empty}", block.slot)
                }
                Action::Retract {
                    slot,
                    reason,
                    emitted,
                } => {
                    let level = if emitted == Commitment::Processed {
                        String::new()
                    } else {
                        format!("@{}", emitted.name())
                    };
                    format!("-{slot}{}{level}", reason.name())
                }
                Action::Checkpoint { commitment, slot } => {
                    format!("{}{slot}", commitment.name()[..1].to_uppercase())
                }
            });
        }
        self
    }

    fn write(&mut self, slot: u64, key: u8) -> &mut Self {
        let actions = self
            .tree
            .event(slot, SlotEvent::Account(account(slot, key, 1)));
        self.take(actions)
    }

    fn block(&mut self, slot: u64, parent: u64) -> &mut Self {
        self.block_of(slot, parent, &format!("hash{slot}"))
    }

    fn block_of(&mut self, slot: u64, parent: u64, hash: &str) -> &mut Self {
        let actions = self.tree.block(meta(slot, parent, hash));
        self.take(actions)
    }

    fn is(&mut self, slot: u64, status: SlotStatus) -> &mut Self {
        let actions = self.tree.status(&self::status(slot, status));
        self.take(actions)
    }

    /// Events, block and status of a sealed slot.
    fn slot(&mut self, slot: u64, parent: u64) -> &mut Self {
        self.write(slot, 1)
            .block(slot, parent)
            .is(slot, SlotStatus::Processed)
    }

    fn does(&mut self, expected: &str) -> &mut Self {
        assert_eq!(self.done.join(" "), expected);
        self.done.clear();
        self
    }
}

use SlotStatus::{Confirmed, CreatedBank, Dead, Finalized, Processed};

#[test]
fn a_slot_is_emitted_at_each_commitment_once() {
    let mut script = Script::new(tree());
    script.write(11, 1).block(11, 10).does("");
    script.is(11, Processed).does("p11");
    script.is(11, Processed).does("");
    script.is(11, Confirmed).does("c11 C11");
    script.is(11, Confirmed).is(11, Processed).does("");
    script.is(11, Finalized).does("f11 F11");
    script.is(11, Finalized).is(11, Confirmed).does("");
}

#[test]
fn a_status_before_the_block_waits_for_it() {
    let mut script = Script::new(tree());
    script
        .write(11, 1)
        .is(11, Processed)
        .is(11, Confirmed)
        .does("");
    script.block(11, 10).does("p11 c11 C11");
}

#[test]
fn a_status_that_never_comes_is_implied_by_a_descendants() {
    let mut script = Script::new(tree());
    script
        .slot(11, 10)
        .slot(12, 11)
        .slot(13, 12)
        .does("p11 p12 p13");
    script.is(13, Confirmed).does("c11 c12 c13 C13");
    script.is(12, Finalized).does("f11 f12 F12");
    let mut script = Script::new(tree());
    script.write(11, 1).block(11, 10).is(11, Finalized);
    script.does("p11 c11 C11 f11 F11");
}

#[test]
fn finality_waits_while_the_highest_confirmed_block_is_awaited() {
    let mut script = Script::new(tree());
    script.slot(11, 10).slot(12, 11).slot(13, 12);
    script
        .is(14, Confirmed)
        .is(12, Finalized)
        .does("p11 p12 p13");
    script.block(14, 13);
    script.does("p14() c11 c12 c13 c14() C14 f11 f12 F12");
}

#[test]
fn finality_waits_for_confirmation_without_a_webhook_at_finalized_too() {
    let mut script = Script::new(ForkTree::new(&ResumePoint {
        from_slot: Some(11),
        ..ResumePoint::default()
    }));
    script.slot(11, 10).slot(12, 11);
    script.is(13, Confirmed).is(11, Finalized).does("p11 p12");
    script.block(13, 12).does("p13() c11 c12 c13() C13 F11");
}

#[test]
fn what_the_confirmed_chain_does_not_contain_is_retracted_before_it_goes_on() {
    let mut script = Script::new(tree());
    script.slot(11, 10).slot(12, 10).slot(13, 11).write(14, 1);
    script.does("p11 p12 p13");
    script.is(13, Confirmed).does("-12abandoned c11 c13 C13");
    // Nothing of the abandoned slot is ever emitted again.
    script
        .write(12, 2)
        .block(12, 10)
        .is(12, Processed)
        .is(12, Confirmed)
        .does("");
    script.block(14, 13).is(14, Confirmed).does("p14 c14 C14");
    script.is(14, Finalized).does("f11 f13 f14 F14");
}

#[test]
fn a_skipped_slot_is_nothing() {
    let mut script = Script::new(tree());
    script.slot(15, 10).is(15, Confirmed).does("p15 c15 C15");
}

#[test]
fn a_dead_slot_is_retracted_if_it_was_emitted_and_emitted_anew_when_it_returns() {
    let mut script = Script::new(tree());
    script.write(11, 1).is(11, Dead).does("");
    script.slot(12, 10).does("p12");
    script.is(12, Dead).does("-12dead");
    script.is(12, Dead).does("");
    script.write(12, 1);
    script
        .block_of(12, 10, "hash12")
        .is(12, Processed)
        .does("p12");
    script.is(12, Confirmed).does("c12 C12");
    script.is(12, Dead).does("");
}

#[test]
fn a_replacement_block_retracts_what_was_emitted() {
    let mut script = Script::new(tree());
    script.slot(11, 10).does("p11");
    script.write(11, 2).does("p11");
    script.block_of(11, 10, "other").does("-11replaced");
    script.is(11, Processed).does("p11");
    script.is(11, Confirmed).does("c11 C11");
    script.block_of(11, 10, "third").does("");
}

#[test]
fn a_block_that_was_declared_dead_is_replaced_by_another_before_it_is_confirmed() {
    let mut script = Script::new(tree());
    script.slot(11, 10).does("p11");
    script.is(11, CreatedBank).is(11, Dead).does("-11dead");
    script.write(11, 2).block_of(11, 10, "other").does("");
    script.is(11, Processed).does("p11");
    script.is(11, Confirmed).does("c11 C11");
    script.is(11, Finalized).does("f11 F11");
}

#[test]
fn a_block_that_is_said_to_be_replaced_is_retracted_as_replaced() {
    let mut script = Script::new(tree());
    script.slot(11, 10).does("p11");
    let retracted = script.tree.replaced(11);
    script.take(Ok(retracted)).does("-11replaced");
    script.write(11, 2).block_of(11, 10, "other").does("");
    script.is(11, Processed).does("p11");
    script.is(11, Confirmed).does("c11 C11");
}

#[test]
fn a_confirmed_block_that_was_declared_dead_is_replaced_by_another() {
    let mut script = Script::new(tree());
    script.slot(11, 10).slot(12, 11).is(12, Confirmed);
    script.does("p11 p12 c11 c12 C12");
    script.is(12, Dead).write(12, 2).does("");
    script
        .block_of(12, 11, "other")
        .does("-12replaced@confirmed");
    script.is(12, Processed).does("p12 c12");
    // It goes on as if nothing had been, and the loser is not emitted at finalized.
    script.slot(13, 12).is(13, Confirmed).does("p13 c13 C13");
    let actions = script
        .tree
        .status(&status(12, Finalized))
        .expect("no fault");
    let finalized: Vec<_> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Emit { block, events, .. } => Some((
                block.hash.as_str(),
                events
                    .accounts()
                    .iter()
                    .map(|each| each.pubkey)
                    .collect::<Vec<_>>(),
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        finalized,
        [
            ("hash11", vec![account(11, 1, 1).pubkey]),
            ("other", vec![account(12, 2, 1).pubkey]),
        ]
    );
}

#[test]
fn a_replacement_that_is_sealed_only_by_finality_is_emitted_at_every_commitment() {
    let mut script = Script::new(tree());
    script.slot(11, 10).is(11, Confirmed).does("p11 c11 C11");
    script.is(11, Dead).write(11, 2);
    script
        .block_of(11, 10, "other")
        .does("-11replaced@confirmed");
    script.slot(12, 11).is(12, Confirmed).does("p12 c12 C12");
    script.is(11, Finalized).does("p11 c11 f11 F11");
}

#[test]
fn the_same_block_after_a_contradiction_is_not_emitted_again() {
    let mut script = Script::new(tree());
    script.slot(11, 10).is(11, Confirmed).does("p11 c11 C11");
    script.is(11, Dead).slot(11, 10).is(11, Confirmed).does("");
    // The contradiction is over: a replacement block comes too late now.
    script.write(11, 2).does("p11 c11");
    script.block_of(11, 10, "other").is(11, Processed).does("");
    script.is(11, Finalized).does("f11 F11");
    script.is(11, Dead).block_of(11, 10, "third").does("");
}

#[test]
fn what_another_block_of_a_confirmed_slot_wrote_is_never_emitted() {
    let mut script = Script::new(tree());
    script.slot(11, 10).is(11, Confirmed).does("p11 c11 C11");
    script.is(11, CreatedBank).write(11, 2).does("");
    script.block_of(11, 10, "other").is(11, Processed).does("");
    let actions = script
        .tree
        .status(&status(11, Finalized))
        .expect("no fault");
    let Some(Action::Emit { block, events, .. }) = actions.first() else {
        panic!("{actions:?}")
    };
    assert_eq!(
        (block.hash.as_str(), events.accounts().len()),
        ("hash11", 1)
    );
}

#[test]
fn a_slot_that_is_replayed_is_emitted_once() {
    let mut script = Script::new(tree());
    script.slot(11, 10).slot(12, 11).does("p11 p12");
    script.slot(11, 10).slot(12, 11).does("");
    script.is(11, Confirmed).does("c11 C11");
    script.slot(11, 10).is(11, Confirmed).slot(12, 11).does("");
    script.is(12, Finalized).does("c12 C12 f11 f12 F12");
}

#[test]
fn what_two_blocks_of_a_slot_have_in_common_is_emitted_of_both() {
    let mut script = Script::new(tree());
    let executed = |script: &mut Script| {
        let transaction = SlotEvent::Transaction(Box::new(transaction(11, 3)));
        let actions = script.tree.event(11, transaction);
        script.take(actions).write(11, 1);
    };
    executed(&mut script);
    script.block(11, 10).is(11, Processed).does("p11");
    executed(&mut script);
    script.does("");
    script.block_of(11, 10, "other").does("-11replaced");
    let actions = script.tree.status(&status(11, Confirmed));
    let Ok([Action::Emit { events, .. }, ..]) = actions.as_deref() else {
        panic!("{actions:?}")
    };
    assert_eq!(events.transactions().count(), 1);
    assert_eq!(events.accounts().len(), 1);
}

#[test]
fn what_comes_after_a_bank_was_created_again_belongs_to_a_replacement_block() {
    let mut script = Script::new(tree());
    script.slot(11, 10).write(11, 2).does("p11 p11");
    script.is(11, CreatedBank).write(11, 3).does("");
    script.block_of(11, 10, "other").does("-11replaced");
    let actions = script.tree.status(&status(11, Processed));
    let Ok([Action::Emit { events, .. }]) = actions.as_deref() else {
        panic!("{actions:?}")
    };
    let accounts = events.accounts();
    assert_eq!(accounts.len(), 1);
    assert_eq!(accounts[0].pubkey, account(11, 3, 1).pubkey);
}

#[test]
fn what_only_a_repetition_of_the_block_holds_is_emitted_late() {
    let mut script = Script::new(tree());
    script.slot(11, 10).does("p11");
    script
        .is(11, CreatedBank)
        .write(11, 1)
        .write(11, 2)
        .does("");
    script.block(11, 10).does("p11");
    script.is(11, Confirmed).does("c11 C11");
}

#[test]
fn what_is_before_the_checkpoint_is_not_emitted_before_the_chain_reaches_it() {
    let mut script = Script::new(from(ResumePoint {
        confirmed_checkpoint: Some(12),
        ..ResumePoint::default()
    }));
    script.slot(11, 10).slot(12, 10).does("");
    script.is(12, Dead).slot(12, 10).slot(13, 12).does("p13");
    script.is(12, Confirmed).does("p12 c12 C12");
    script.is(13, Confirmed).does("c13 C13");
}

#[test]
fn late_events_are_emitted_at_every_commitment_that_is_over() {
    let mut script = Script::new(tree());
    script.slot(11, 10).is(11, Confirmed).does("p11 c11 C11");
    script.write(11, 2).does("p11 c11");
    script.write(11, 2).does("");
    script.is(11, Finalized).does("f11 F11");
    let late = script
        .tree
        .event(11, SlotEvent::Transaction(Box::new(transaction(11, 3))));
    script.take(late).does("p11 c11 f11");
}

#[test]
fn without_a_webhook_at_finalized_events_are_dropped_at_confirmed() {
    let mut script = Script::new(ForkTree::new(&ResumePoint {
        from_slot: Some(11),
        ..ResumePoint::default()
    }));
    script.slot(11, 10).is(11, Confirmed).does("p11 c11 C11");
    assert_eq!(script.tree.bytes, 0);
    script.is(11, Finalized).does("F11");
    // Finality may stand still for longer than blocks are remembered.
    for slot in 12..300 {
        script.slot(slot, slot - 1).is(slot, Confirmed);
    }
    script.done.clear();
    assert!(script.tree.nodes.len() <= usize::try_from(REMEMBERED_SLOTS).expect("small") + 1);
    script.is(299, Finalized).does("F299");
}

#[test]
fn what_waits_is_bounded_in_slots_and_in_bytes() {
    let mut tree = tree();
    let mut slots = 11..;
    let fault = slots.find_map(|slot| tree.block(meta(slot, slot - 1, "hash")).err());
    assert!(matches!(fault, Some(ForkTreeError::Full { .. })));

    let mut tree = self::tree();
    let data = bytes::Bytes::from(vec![0; MAX_BYTES / 2]);
    let large = |key| {
        SlotEvent::Account(sluice_geyser::AccountUpdate {
            data: data.clone(),
            ..account(11, key, 1)
        })
    };
    tree.event(11, large(1)).expect("room");
    assert!(tree.event(11, large(2)).is_err());
}
