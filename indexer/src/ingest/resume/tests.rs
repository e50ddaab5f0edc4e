//! Resume policy: what follows from the end of a session, and from what is stored.

use sluice_store::{ActiveWebhooks, FilterChange, Filters, Revision, UnconfirmedSlots};
use solana_pubkey::Pubkey;

use super::*;
use crate::events::subscriber::fixtures::active_webhook;

fn refused(first_available: Option<u64>) -> SessionEnd {
    SessionEnd::Stream(StreamError::ReplayUnavailable {
        first_available,
        message: String::new(),
    })
}

fn closed() -> SessionEnd {
    SessionEnd::Stream(StreamError::Closed)
}

fn gap(first: u64, last: u64) -> SessionEnd {
    SessionEnd::Tree(ForkTreeError::Gap(Gap { first, last }))
}

#[test]
fn a_lost_replay_window_leads_to_what_is_left_of_it_and_then_to_the_tip() {
    let rest = ResumePolicy::new().next(&refused(Some(9)));
    assert_eq!(rest.from, ResumeFrom::FirstAvailable(9));
    let tip = rest.next(&refused(Some(11)));
    assert_eq!(tip.from, ResumeFrom::Tip);
    assert_eq!(rest.next(&closed()).from, ResumeFrom::CHECKPOINT);
    assert_eq!(tip.next(&closed()).from, ResumeFrom::CHECKPOINT);
}

#[test]
fn a_server_that_may_only_be_starting_is_asked_again_before_slots_are_given_up() {
    let mut policy = ResumePolicy::new();
    for _ in 0..UNEXPLAINED_REFUSALS {
        policy = policy.next(&refused(None));
        assert!(
            matches!(policy.from, ResumeFrom::Checkpoint { .. }),
            "{policy:?}"
        );
    }
    assert_eq!(policy.next(&refused(None)).from, ResumeFrom::Tip);
    assert_eq!(
        policy.next(&closed()).from,
        ResumeFrom::CHECKPOINT,
        "the count starts anew"
    );
}

#[test]
fn blocks_that_were_left_out_are_asked_for_once_more() {
    let again = ResumePolicy::new().next(&gap(12, 13));
    assert_eq!(again.from, ResumeFrom::CHECKPOINT);
    let other = again.next(&gap(20, 20));
    assert_eq!(other.from, ResumeFrom::CHECKPOINT);
    let without = other.next(&gap(20, 20));
    let twenty = Gap {
        first: 20,
        last: 20,
    };
    assert_eq!(without.from, ResumeFrom::CheckpointAfterGap(twenty));
    let rest = without.next(&refused(Some(30)));
    assert_eq!(rest.from, ResumeFrom::FirstAvailable(30));
}

#[test]
fn a_slot_that_is_not_replayed_costs_none_before_it() {
    let not_replayed = |slot| SessionEnd::Stream(StreamError::NotReplayed { slot });
    let again = ResumePolicy::new().next(&not_replayed(50));
    assert_eq!(again.from, ResumeFrom::CHECKPOINT);
    let other = again.next(&closed()).next(&not_replayed(60));
    assert_eq!(other.from, ResumeFrom::CHECKPOINT);
    let rest = other.next(&not_replayed(60));
    assert_eq!(rest.from, ResumeFrom::FirstAvailable(61));
}

#[test]
fn a_gap_is_remembered_through_other_ends() {
    let again = ResumePolicy::new().next(&gap(12, 13)).next(&closed());
    assert_eq!(again.from, ResumeFrom::CHECKPOINT);
    let thirteen = Gap {
        first: 12,
        last: 13,
    };
    assert_eq!(
        again.next(&gap(12, 13)).from,
        ResumeFrom::CheckpointAfterGap(thirteen)
    );
}

fn subscriptions(commitment: Commitment) -> Subscriptions {
    let filters = Filters {
        accounts: vec![Pubkey::new_from_array([1; 32])],
        ..Filters::default()
    };
    let webhook = active_webhook(1, commitment, filters);
    Subscriptions::new(&ActiveWebhooks {
        revision: Revision(5),
        webhooks: vec![webhook],
    })
}

fn change(revision: u64, requested_slot: u64, in_force_slot: Option<u64>) -> FilterChange {
    FilterChange {
        revision: Revision(revision),
        requested_slot: Some(requested_slot),
        in_force_slot,
    }
}

/// Confirmed to 100, finalized to 70.
fn state(changes: Vec<FilterChange>) -> ResumeState {
    ResumeState {
        confirmed: Some(100),
        finalized: Some(70),
        unconfirmed: UnconfirmedSlots::from([(103, Some("hash".to_owned()))]),
        filter_changes: changes,
    }
}

fn resume(policy: ResumePolicy, state: ResumeState, commitment: Commitment) -> ResumePoint {
    policy.resume_point(state, &subscriptions(commitment))
}

#[test]
fn a_session_resumes_after_the_checkpoint_of_the_commitments_that_are_wanted() {
    let policy = ResumePolicy::new();
    let point = resume(policy, state(Vec::new()), Commitment::Confirmed);
    assert_eq!((point.from_slot, point.complete), (Some(101), true));
    assert_eq!(point.unconfirmed[&103].as_deref(), Some("hash"));
    assert!(!point.finality_wanted);
    let point = resume(policy, state(Vec::new()), Commitment::Finalized);
    assert_eq!((point.from_slot, point.finality_wanted), (Some(71), true));
}

#[test]
fn a_session_goes_back_for_webhooks_that_no_session_served() {
    let changes = vec![
        change(3, 80, Some(81)),
        change(4, 95, None),
        change(5, 98, None),
        change(6, 60, None),
    ];
    let point = resume(ResumePolicy::new(), state(changes), Commitment::Confirmed);
    assert_eq!(
        point.from_slot,
        Some(95),
        "not for one in force, nor for one it does not know"
    );
}

#[test]
fn a_first_session_begins_with_whatever_comes() {
    let nothing = ResumeState {
        filter_changes: vec![change(5, 98, None)],
        ..ResumeState::default()
    };
    let point = resume(ResumePolicy::new(), nothing, Commitment::Finalized);
    assert_eq!((point.from_slot, point.complete), (None, true));
}

#[test]
fn slots_that_cannot_be_replayed_make_a_session_incomplete() {
    let rest = ResumePolicy::new().next(&refused(Some(120)));
    let point = resume(rest, state(Vec::new()), Commitment::Confirmed);
    assert_eq!((point.from_slot, point.complete), (Some(120), false));
    let rest = ResumePolicy::new().next(&refused(Some(90)));
    let point = resume(rest, state(Vec::new()), Commitment::Confirmed);
    assert_eq!(point.from_slot, Some(101), "no more than is needed");
    let tip = rest.next(&refused(None));
    let point = resume(tip, state(Vec::new()), Commitment::Confirmed);
    assert_eq!((point.from_slot, point.complete), (None, false));
    let known = ResumePolicy::new().next(&gap(12, 13)).next(&gap(12, 13));
    let point = resume(known, state(Vec::new()), Commitment::Confirmed);
    assert_eq!((point.from_slot, point.complete), (Some(101), true));
    assert_eq!(
        point.gap,
        Some(Gap {
            first: 12,
            last: 13
        })
    );
}
