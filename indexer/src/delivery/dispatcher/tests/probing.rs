//! Probes ahead of their time: an endpoint that is sent nothing new is tried all the same, and caught up with when it heals.

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_store::{Breaker, Delivery, DeliveryOptions, DeliveryOrder, DeliveryState};

use super::{super::*, machine::*, receivers::healing};
use crate::delivery::breaker::LONGEST_PAUSE;

/// Until the first retry: longer than an endpoint in order may fail before its breaker opens.
const MINUTES: u32 = 2 * 60;

/// Until the next one.
const HOURS: u32 = 6 * 60 * 60;

/// How far the clock goes while the deliveries are looked at once, all in all far less than hours.
const STEP: Duration = Duration::from_millis(10);

#[tokio::test]
async fn a_receiver_that_is_sent_nothing_new_is_caught_up_with_soon_after_it_heals() {
    for (order, owed) in [
        (DeliveryOrder::Strict, 3),
        (DeliveryOrder::PerKey, 3),
        // As many as must fail before its breaker opens.
        (DeliveryOrder::None, 12),
    ] {
        let heals = Arc::new(AtomicBool::new(false));
        let receiver = healing(&heals).await;
        let machine = Machine::on_stopped_clock().await;
        // It knows no secret: what is signed on a clock that is hours ahead is no good signature for it.
        let id = machine.webhook_at(1, &receiver.url(), order).await;
        let patient = DeliveryOptions {
            retry_pauses_seconds: Some(vec![MINUTES, HOURS]),
            ..DeliveryOptions::default()
        };
        machine.deliver_with(&id, patient).await;
        machine.owe(&id, 0..owed).await;
        receiver.until(1).await.expect("a first attempt");
        machine.until_ended(&id, &receiver).await;
        // In order the breaker opens with the second.
        machine
            .clock
            .advance(2 * Duration::from_secs(MINUTES.into()));
        machine.until_ended(&id, &receiver).await;
        assert_eq!(machine.endpoint(&id).await.breaker, Breaker::Open);
        // Of the last retry, which is hours away, these are no part.
        for _ in 0..3 {
            let sent = receiver.received().len();
            machine.clock.advance(2 * LONGEST_PAUSE);
            receiver.until(sent + 1).await.expect("a probe");
            machine.until_ended(&id, &receiver).await;
            assert_eq!(receiver.received().len(), sent + 1, "{order:?}");
        }
        heals.store(true, Ordering::SeqCst);
        machine.clock.advance(2 * LONGEST_PAUSE);
        // What waits is due when the attempt before it ended, and each took time which the clock does not show by itself.
        let is_over = |deliveries: &[Delivery]| {
            machine.clock.advance(STEP);
            all(DeliveryState::Delivered)(deliveries)
        };
        machine.until(&id, is_over).await;
        machine.stop().await;
    }
}
