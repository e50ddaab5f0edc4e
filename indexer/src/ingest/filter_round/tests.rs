//! Filter round: when the changed webhooks are handed over, and from which slot their filter is in force.

use std::time::Duration;

use sluice_geyser::{BlockMeta, SlotStatus, SlotUpdate, Update};
use sluice_store::{ActiveWebhooks, Filters, Revision};
use solana_pubkey::Pubkey;

use super::*;
use crate::events::subscriber::fixtures::active_webhook;

fn subscriptions(commitment: Commitment) -> Subscriptions {
    let filters = Filters {
        accounts: vec![Pubkey::new_from_array([1; 32])],
        ..Filters::default()
    };
    let webhook = active_webhook(1, commitment, filters);
    Subscriptions::new(&ActiveWebhooks {
        revision: Revision(2),
        webhooks: vec![webhook],
    })
}

fn round(commitment: Commitment, requested_slot: Option<u64>) -> FilterRound {
    let changed = || subscriptions(commitment);
    let all = Arc::new(subscriptions(commitment));
    FilterRound::new(all, (changed(), changed()), requested_slot, &live())
}

/// The live stream, which covers all from slot 11 on.
fn live() -> ForkTree {
    ForkTree::new(&ResumePoint {
        from_slot: Some(11),
        complete: true,
        ..ResumePoint::default()
    })
}

fn block(tree: &mut ForkTree, slot: u64) {
    block_on(tree, slot, slot - 1, "hash");
}

fn block_on(tree: &mut ForkTree, slot: u64, parent_slot: u64, blockhash: &str) {
    let meta = BlockMeta {
        slot,
        parent_slot,
        blockhash: blockhash.to_owned(),
        parent_blockhash: String::new(),
        block_time: None,
        block_height: None,
        executed_transaction_count: 0,
    };
    tree.block(meta).expect("no fault");
    is(tree, slot, SlotStatus::Processed);
}

fn is(tree: &mut ForkTree, slot: u64, status: SlotStatus) {
    let update = SlotUpdate {
        slot,
        parent: None,
        status,
        dead_error: None,
    };
    tree.status(&update).expect("no fault");
}

fn side(round: &mut FilterRound) -> &mut ForkTree {
    &mut round.side_mut().expect("a side stream").tree
}

/// The live stream gives out everything from this slot on as the new filter selects it.
fn shown(round: &mut FilterRound, slot: u64) {
    round.asked(Generation(2));
    round.shown(Generation(2), slot);
}

fn in_force_slot(round: &FilterRound, live: &ForkTree) -> Option<u64> {
    let state = round.ready(live)?;
    assert_eq!(state.revision, Revision(2));
    Some(state.in_force_slot)
}

#[test]
fn what_was_cut_must_be_emitted_by_the_side_stream_or_held_as_the_same_blocks() {
    let (mut live, mut round) = (live(), round(Commitment::Confirmed, Some(12)));
    live.hold_emitted(false);
    for slot in 11..=14 {
        block(&mut live, slot);
    }
    is(&mut live, 12, SlotStatus::Confirmed);
    assert_eq!(in_force_slot(&round, &live), None, "not shown");
    shown(&mut round, 15);
    assert_eq!(in_force_slot(&round, &live), None, "not replayed");
    for slot in 12..=13 {
        block(side(&mut round), slot);
    }
    is(side(&mut round), 12, SlotStatus::Confirmed);
    assert_eq!(in_force_slot(&round, &live), None, "14 is not replayed");
    block_on(side(&mut round), 14, 13, "another");
    assert_eq!(in_force_slot(&round, &live), None, "14 may be abandoned");
    let side_of_14 = side(&mut round);
    side_of_14.replaced(14);
    block(side_of_14, 14);
    assert_eq!(in_force_slot(&round, &live), Some(12));
    is(&mut live, 14, SlotStatus::Confirmed);
    assert_eq!(in_force_slot(&round, &live), None, "14 is not emitted");
    is(side(&mut round), 14, SlotStatus::Confirmed);
    assert_eq!(in_force_slot(&round, &live), Some(12));
}

#[test]
fn a_filter_by_which_nothing_more_is_selected_needs_no_side_stream() {
    let (wanted, changed) = (Commitment::Confirmed, Commitment::Confirmed);
    let mut fewer = FilterRound::new(
        Arc::new(subscriptions(wanted)),
        (subscriptions(changed), Subscriptions::default()),
        Some(12),
        &live(),
    );
    assert!(fewer.side().is_none());
    shown(&mut fewer, 15);
    assert_eq!(in_force_slot(&fewer, &live()), Some(15));
}

#[test]
fn a_side_stream_that_is_behind_the_live_one_is_not_waited_for() {
    let (mut live, mut round) = (live(), round(Commitment::Confirmed, Some(12)));
    live.hold_emitted(false);
    shown(&mut round, 13);
    for slot in 11..=200 {
        block(&mut live, slot);
        is(&mut live, slot, SlotStatus::Confirmed);
        if slot == 150 {
            assert_eq!(in_force_slot(&round, &live), None, "12 did not come");
        }
    }
    let side = round.side_mut().expect("a side stream");
    block(&mut side.tree, 12);
    side.follow(&live).expect("follows");
    assert_eq!(in_force_slot(&round, &live), Some(12));
    let emitted = live.emitted_since(13);
    assert_eq!(emitted.len(), 2 * (200 - 12), "at processed and confirmed");
    live.release_emitted();
    assert!(live.emitted_since(13).len() < emitted.len(), "forgotten");
}

#[test]
fn a_filter_is_shown_by_its_own_request_or_a_later_one() {
    for (shown, expected) in [(2, None), (3, Some(15)), (4, Some(15))] {
        let mut round = round(Commitment::Confirmed, None);
        round.shown(Generation(2), 12);
        round.asked(Generation(3));
        round.shown(Generation(shown), 15);
        assert_eq!(in_force_slot(&round, &live()), expected);
    }
}

#[test]
fn a_cut_slot_that_never_ends_is_waited_for_until_a_later_one_is_confirmed() {
    let (mut live, mut round) = (live(), round(Commitment::Confirmed, Some(12)));
    live.hold_emitted(false);
    shown(&mut round, 13);
    block(&mut live, 11);
    is(&mut live, 11, SlotStatus::Confirmed);
    assert_eq!(in_force_slot(&round, &live), None);
    for tree in [&mut live, side(&mut round)] {
        block_on(tree, 13, 11, "hash");
    }
    assert_eq!(in_force_slot(&round, &live), None, "12 may be the chain");
    is(&mut live, 13, SlotStatus::Confirmed);
    assert_eq!(in_force_slot(&round, &live), Some(12));
}

#[test]
fn events_at_finalized_are_not_waited_for_by_what_is_not_final() {
    let (mut live, mut round) = (live(), round(Commitment::Finalized, Some(12)));
    live.hold_emitted(true);
    block(&mut live, 11);
    is(&mut live, 11, SlotStatus::Confirmed);
    shown(&mut round, 13);
    for tree in [&mut live, side(&mut round)] {
        block(tree, 12);
    }
    is(&mut live, 12, SlotStatus::Confirmed);
    is(side(&mut round), 12, SlotStatus::Confirmed);
    assert_eq!(in_force_slot(&round, &live), Some(12));
    is(&mut live, 12, SlotStatus::Finalized);
    assert_eq!(
        in_force_slot(&round, &live),
        None,
        "the side stream is behind"
    );
    is(side(&mut round), 12, SlotStatus::Finalized);
    assert_eq!(in_force_slot(&round, &live), Some(12));
}

#[test]
fn nothing_before_the_filter_is_promised_where_there_is_no_replay() {
    let live = live();
    let mut unasked = round(Commitment::Confirmed, None);
    assert!(unasked.side().is_none());
    shown(&mut unasked, 15);
    assert_eq!(in_force_slot(&unasked, &live), Some(15));

    let refusal = |first_available, message: &str| {
        SessionEnd::Stream(StreamError::ReplayUnavailable {
            first_available,
            message: message.to_owned(),
        })
    };
    let mut never = round(Commitment::Confirmed, Some(12));
    shown(&mut never, 15);
    never.side_failed(
        &refusal(None, "Internal: from_slot is not supported"),
        &live,
    );
    assert!(never.side().is_none());
    assert_eq!(in_force_slot(&never, &live), Some(15));

    let mut partly = round(Commitment::Confirmed, Some(12));
    shown(&mut partly, 15);
    partly.side_failed(&refusal(Some(13), "gone"), &live);
    assert_eq!(partly.side().and_then(SideTrack::first_slot), Some(13));

    let mut starting = round(Commitment::Confirmed, Some(12));
    for failures in 0..=MAX_FAILURES {
        assert_eq!(starting.side().map(SideTrack::attempts), Some(failures));
        starting.side_failed(&SessionEnd::Stream(StreamError::Closed), &live);
    }
    assert!(starting.side().is_none());
}

#[test]
fn silence_is_a_failure_of_the_side_stream_only_while_the_live_one_goes_on() {
    let (mut live, mut round) = (live(), round(Commitment::Confirmed, Some(12)));
    let silence = SessionEnd::Stream(StreamError::Silent(Duration::from_secs(30)));
    for attempts in 0..=2 * MAX_FAILURES {
        assert_eq!(round.side().map(SideTrack::attempts), Some(attempts));
        round.side_failed(&silence, &live);
    }
    for slot in 11..=11 + u64::from(MAX_FAILURES) {
        assert!(round.side().is_some(), "{slot}");
        block(&mut live, slot);
        is(&mut live, slot, SlotStatus::Confirmed);
        round.side_failed(&silence, &live);
    }
    assert!(round.side().is_none(), "it is given up");
}

#[test]
fn the_side_stream_is_never_ahead_of_the_live_one() {
    let (mut live, mut round) = (live(), round(Commitment::Confirmed, Some(12)));
    let status = |slot, status| {
        vec![Assembled::Update(Update {
            filters: Vec::new(),
            created_at: None,
            bank_id: None,
            body: Body::Slot(SlotUpdate {
                slot,
                parent: None,
                status,
                dead_error: None,
            }),
        })]
    };
    let side = round.side_mut().expect("a side stream");
    block(&mut side.tree, 12);
    let actions = side.take(status(12, SlotStatus::Confirmed)).expect("taken");
    assert!(actions.is_empty(), "{actions:?}");
    for slot in 11..=12 {
        block(&mut live, slot);
    }
    assert!(side.follow(&live).expect("follows").is_empty());
    is(&mut live, 12, SlotStatus::Confirmed);
    let emitted = side.follow(&live).expect("follows").len();
    assert_eq!(emitted, 3, "at processed, at confirmed, and the checkpoint");
    assert!(side.follow(&live).expect("follows").is_empty(), "once");
    for slot in 13..=15 {
        block(&mut live, slot);
        is(&mut live, slot, SlotStatus::Confirmed);
    }
    block(&mut side.tree, 13);
    assert_eq!(
        side.follow(&live).expect("follows").len(),
        3,
        "as far as it is"
    );
}
