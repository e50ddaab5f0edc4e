//! Circuit breaker, concurrency limit and order of the deliveries to one endpoint.

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_store::{
    Breaker, Delivery, DeliveryOptions, DeliveryOrder, DeliveryState, EndpointState, Timestamp,
    WebhookId,
};
use sluice_testkit::webhook_receiver::{Reply, RequestHead, WebhookReceiver};
use tokio::time::sleep;

use super::{super::*, machine::*};
use crate::delivery::{breaker, capacity, wakes::POLL_INTERVAL};

impl Machine {
    /// Waits until the end of every attempt that the receiver got is recorded, and none follows for some polls.
    pub(super) async fn until_ended(&self, webhook: &WebhookId, receiver: &WebhookReceiver) {
        const LOOKS: u32 = 3;
        let wait = async {
            let mut quiet = 0;
            while quiet < LOOKS {
                let before = receiver.received().len();
                sleep(POLL_INTERVAL).await;
                let recorded = deliveries(&self.store, webhook).await;
                let ended: u32 = recorded.iter().map(|delivery| delivery.attempts).sum();
                let all_ended = usize::try_from(ended) == Ok(before);
                quiet = if all_ended && receiver.received().len() == before {
                    quiet + 1
                } else {
                    0
                };
            }
        };
        timeout(PATIENCE, wait).await.expect("attempts end");
    }
}

/// A receiver that fails until it `heals`.
pub(super) async fn healing(heals: &Arc<AtomicBool>) -> WebhookReceiver {
    let healed = Arc::clone(heals);
    let reply = move |_: &RequestHead, _| {
        if healed.load(Ordering::SeqCst) {
            Reply::Accept
        } else {
            failing()
        }
    };
    WebhookReceiver::start(reply).await.expect("a free port")
}

#[tokio::test]
async fn a_receiver_that_keeps_failing_gets_nothing_but_probes_and_everything_when_it_heals() {
    let failures = usize::try_from(breaker::FAILURES_TO_OPEN).expect("small");
    let heals = Arc::new(AtomicBool::new(false));
    let receiver = healing(&heals).await;
    let machine = Machine::on_stopped_clock().await;
    let id = machine.webhook(1, &receiver).await;
    machine.owe(&id, 0..40).await;
    let open = async {
        while machine.endpoint(&id).await.breaker != Breaker::Open {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, open).await.expect("opens");
    machine.until_ended(&id, &receiver).await;
    let sent = receiver.received().len();
    let in_flight = usize::try_from(MAX_IN_FLIGHT).expect("small");
    assert!(sent <= failures + 2 * in_flight, "{sent}");
    sleep(2 * POLL_INTERVAL).await;
    assert_eq!(
        receiver.received().len(),
        sent,
        "nothing is sent while it is open"
    );

    // The pause is over, and all messages are due: a single probe, which fails.
    machine.clock.advance(2 * SCHEDULE[1]);
    let over = EndpointState {
        paused_until: None,
        ..machine.endpoint(&id).await
    };
    machine.store.set_endpoint(&id, &over).await.expect("set");
    receiver.until(sent + 1).await.expect("a probe comes");
    machine.until_ended(&id, &receiver).await;
    assert_eq!(receiver.received().len(), sent + 1);

    heals.store(true, Ordering::SeqCst);
    machine.clock.advance(2 * SCHEDULE[2]);
    let over = EndpointState {
        paused_until: None,
        ..machine.endpoint(&id).await
    };
    assert_eq!(over.breaker, Breaker::Open);
    machine.store.set_endpoint(&id, &over).await.expect("set");
    machine.until(&id, all(DeliveryState::Delivered)).await;
    assert_eq!(machine.endpoint(&id).await.breaker, Breaker::Closed);
    machine.stop().await;
}

#[tokio::test]
async fn a_receiver_of_messages_in_order_that_fails_for_long_gets_nothing_but_probes_after_few_attempts()
 {
    for (order, breaker) in [
        (DeliveryOrder::Strict, Breaker::Open),
        (DeliveryOrder::PerKey, Breaker::Open),
        (DeliveryOrder::None, Breaker::Closed),
    ] {
        let receiver = answering(vec![failing(); 2]).await;
        let machine = Machine::on_stopped_clock().await;
        let id = machine.webhook_at(1, &receiver.url(), order).await;
        let minutes = DeliveryOptions {
            retry_pauses_seconds: Some(vec![120, 120]),
            ..DeliveryOptions::default()
        };
        machine.deliver_with(&id, minutes).await;
        machine.owe(&id, 0..1).await;
        for attempts in 1..=2 {
            let failed = |deliveries: &[Delivery]| deliveries[0].attempts == attempts;
            machine.until(&id, failed).await;
            machine.clock.advance(2 * Duration::from_secs(120));
        }
        assert_eq!(machine.endpoint(&id).await.breaker, breaker, "{order:?}");
        machine.stop().await;
    }
}

#[tokio::test]
async fn what_waits_for_hours_is_delivered_as_soon_as_the_receiver_accepts_another_message() {
    const HOURS: u32 = 6 * 60 * 60;
    /// Longer than an endpoint must have accepted nothing to be one that recovers.
    const OUTAGE: Duration = Duration::from_secs(2 * 60);
    /// How far the clock goes while the deliveries are looked at once, all in all less than an outage.
    const STEP: Duration = Duration::from_millis(10);
    for order in [DeliveryOrder::None, DeliveryOrder::PerKey] {
        let heals = Arc::new(AtomicBool::new(false));
        let receiver = healing(&heals).await;
        let machine = Machine::on_stopped_clock().await;
        let id = machine.webhook_in_order(1, &receiver, order).await;
        let patient = DeliveryOptions {
            retry_pauses_seconds: Some(vec![HOURS]),
            ..DeliveryOptions::default()
        };
        machine.deliver_with(&id, patient).await;
        // All of one key.
        for number in [0, 2, 4] {
            machine.owe(&id, number..number + 1).await;
        }
        machine.until(&id, |all| all[0].attempts == 1).await;
        machine.until_ended(&id, &receiver).await;
        assert_eq!(machine.endpoint(&id).await.breaker, Breaker::Closed);
        let first = &deliveries(&machine.store, &id).await[0];
        machine.clock.advance(OUTAGE);
        let soon = Timestamp::from(machine.clock.now()).after(OUTAGE);
        assert!(first.next_attempt_at > Some(soon), "{order:?}");

        heals.store(true, Ordering::SeqCst);
        let sent = receiver.received().len();
        sleep(3 * POLL_INTERVAL).await;
        assert_eq!(receiver.received().len(), sent, "nothing is due yet");
        machine.owe(&id, 1..2).await;
        let is_accepted = |delivery: &Delivery| delivery.state == DeliveryState::Delivered;
        machine.until(&id, |all| all.iter().any(is_accepted)).await;
        // What waits is due when the attempt before it ended, and each took time which the clock does not show by itself.
        let is_over = |deliveries: &[Delivery]| {
            machine.clock.advance(STEP);
            all(DeliveryState::Delivered)(deliveries)
        };
        machine.until(&id, is_over).await;
        assert_eq!(receiver.received().len(), sent + 4);
        assert!(Timestamp::from(machine.clock.now()) < soon);
        machine.stop().await;
    }
}

#[tokio::test]
async fn a_receiver_with_too_much_is_left_alone_by_all_its_messages() {
    let receiver = answering([Reply::Status(429, String::new())]).await;
    let machine = Machine::on_stopped_clock().await;
    let id = machine.webhook(1, &receiver).await;
    machine.owe(&id, 0..1).await;
    machine
        .until(&id, |deliveries| deliveries[0].attempts == 1)
        .await;
    machine.owe(&id, 1..3).await;
    sleep(3 * POLL_INTERVAL).await;
    assert_eq!(receiver.received().len(), 1, "the others wait as well");
    let state = machine.endpoint(&id).await;
    assert_eq!(state.breaker, Breaker::Closed);
    assert_eq!(state.concurrency_limit, Some(MAX_IN_FLIGHT / 2));
    assert!(state.paused_until.is_some());
    machine.stop().await;
}

#[tokio::test]
async fn what_is_stored_for_a_receiver_that_has_enough_goes_when_it_answers() {
    const MESSAGES: u8 = 10;
    let answers_after = Duration::from_millis(50);
    let receiver =
        WebhookReceiver::start(move |_: &RequestHead, _| Reply::AcceptAfter(answers_after));
    let receiver = receiver.await.expect("a free port");
    let machine = Machine::start().await;
    let id = machine.webhook(1, &receiver).await;
    machine.deliver_one_at_once(&id).await;
    let mut full = 0;
    for number in 0..MESSAGES {
        let (committed, leased, reservation) = machine.store(&id, number..number + 1).await;
        full += u8::from(!committed.full.is_empty());
        capacity::hand_over(&committed, leased, Some(reservation), &machine.to_lease);
        let arrived = receiver.until(usize::from(number) + 1).await;
        arrived.expect("arrives");
    }
    assert!(full > 0, "some were stored while another was in flight");
    machine.until(&id, all(DeliveryState::Delivered)).await;
    assert_eq!(receiver.received().len(), usize::from(MESSAGES));
    machine.stop().await;
}

#[tokio::test]
async fn strict_order_survives_a_failure() {
    let receiver = answering([failing(), Reply::Accept]).await;
    let machine = Machine::start().await;
    let id = machine
        .webhook_in_order(1, &receiver, DeliveryOrder::Strict)
        .await;
    machine.owe(&id, 0..6).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    assert_eq!(sequences(&receiver), [1, 1, 2, 3, 4, 5, 6]);
    machine.stop().await;
}

#[tokio::test]
async fn order_per_key_holds_back_its_key_alone() {
    let receiver = answering([failing()]).await;
    let machine = Machine::start().await;
    let id = machine
        .webhook_in_order(1, &receiver, DeliveryOrder::PerKey)
        .await;
    machine.owe(&id, 0..8).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    let received = sequences(&receiver);
    assert_eq!(received.len(), 9);
    for parity in [0, 1] {
        let mut of_key: Vec<_> = received.iter().filter(|each| *each % 2 == parity).collect();
        of_key.dedup();
        assert!(of_key.is_sorted(), "{received:?}");
        assert_eq!(of_key.len(), 4, "{received:?}");
    }
    machine.stop().await;
}
