//! Views of the market: ready after a state is published, refused when it is old or lost.

use std::time::SystemTime;

use super::*;

fn states(slot: u64) -> HeadStates {
    let mut state = State::default();
    state.set_clock(Clock::default());
    let slot_state = |slot| SlotState {
        slot,
        state: state.clone(),
    };
    HeadStates {
        processed: slot_state(slot),
        confirmed: slot_state(slot - 1),
    }
}

#[test]
fn a_market_is_ready_once_a_state_is_published_and_not_after_it_was_lost() {
    let market = Market::default();
    assert!(market.view(QuoteCommitment::Processed).is_err());
    market.publish(states(8));
    let slot = |commitment| market.view(commitment).map(|view| view.slot().get());
    assert_eq!(slot(QuoteCommitment::Processed), Ok(8));
    assert_eq!(slot(QuoteCommitment::Confirmed), Ok(7));
    market.report_slot(11);
    market.set_not_ready("lost".to_owned());
    let lost = NotReady {
        reason: "lost".to_owned(),
        slot: Some(Slot::new(8)),
        lag: Some(3),
    };
    assert_eq!(market.status(), Status::NotReady(lost));
}

#[test]
fn the_ladder_has_the_newest_slot_of_each_commitment() {
    let market = Market::default();
    assert_eq!(market.ladder(), Ladder::default());
    market.publish(states(8));
    market.report_slot(11);
    market.report_node_slot(12, Instant::now());
    for finalized in [3, 2] {
        market.report_finalized(finalized);
    }
    let ladder = Ladder {
        node: Some(12),
        reported: Some(11),
        processed: Some(8),
        confirmed: Some(7),
        finalized: Some(3),
    };
    assert_eq!(market.ladder(), ladder);
}

#[test]
fn who_follows_the_market_learns_of_every_state_and_of_its_loss() {
    let market = Market::default();
    let mut changes = market.changes();
    let mut changed = || {
        let changed = changes.has_changed().expect("the market stands");
        changes.mark_unchanged();
        changed
    };
    assert!(!changed());
    market.publish(states(8));
    assert!(changed());
    market.report_slot(9);
    assert!(!changed());
    market.set_not_ready("lost".to_owned());
    assert!(changed());
}

#[test]
fn a_state_without_the_chains_time_is_not_quoted() {
    let market = Market::default();
    let slot_state = |slot| SlotState {
        slot,
        state: State::default(),
    };
    market.publish(HeadStates {
        processed: slot_state(8),
        confirmed: slot_state(8),
    });
    assert!(market.view(QuoteCommitment::Processed).is_err());
}

#[test]
fn a_market_without_new_slots_becomes_stale() {
    let market = Market::default();
    market.publish(states(7));
    let now = Instant::now();
    let second = Duration::from_secs(1);
    let at = |now| {
        market
            .view_at(QuoteCommitment::Processed, now)
            .map(|view| view.slot().get())
    };
    assert_eq!(at(now + STALE_AFTER - second), Ok(7));
    let stale = at(now + STALE_AFTER + second).expect_err("stale");
    assert!(stale.reason.contains("no slot"));
}

#[test]
fn a_market_that_lags_steadily_by_a_minute_is_not_ready_and_names_the_bound() {
    let time = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
    let bounds = Freshness::default();
    let lagging = Market::new(
        ExchangeIds::MAINNET,
        bounds,
        service_kit::Clock::stopped_at(time(60)),
        Servers::new([]),
    );
    for slot in 7..20 {
        // The chain's time is 0; every slot comes as soon as the one before, and late.
        lagging.publish(states(slot));
        let refused = lagging
            .view(QuoteCommitment::Processed)
            .err()
            .expect("late");
        assert!(refused.reason.contains("60 s old"), "{}", refused.reason);
    }
    let behind = Market::new(
        ExchangeIds::MAINNET,
        bounds,
        service_kit::Clock::stopped_at(time(1)),
        Servers::new([]),
    );
    behind.publish(states(7));
    assert!(behind.view(QuoteCommitment::Processed).is_ok());
    behind.report_node_slot(7 + bounds.max_slots_behind + 1, Instant::now());
    let refused = behind
        .view(QuoteCommitment::Processed)
        .err()
        .expect("behind");
    assert!(
        refused.reason.contains("behind the node"),
        "{}",
        refused.reason
    );
    behind.publish(states(8));
    assert!(behind.view(QuoteCommitment::Processed).is_ok());
}

#[test]
fn a_view_outlives_the_state_it_shows() {
    let market = Market::default();
    market.publish(states(7));
    let view = market.view(QuoteCommitment::Processed).expect("ready");
    market.publish(states(8));
    assert_eq!(view.slot().get(), 7);
}
