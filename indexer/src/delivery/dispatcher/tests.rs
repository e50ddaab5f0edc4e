//! The dispatcher against a receiver on the loopback interface, over an SQLite file.

mod batched;
mod machine;
mod probing;
mod receivers;
mod recording;

use service_kit::Clock;
use sluice_store::{
    Access, Delivery, DeliveryOptions, DeliveryOrder, DeliveryState, Secret, Timestamp,
};
use sluice_testkit::{
    free_port::free_address,
    webhook_receiver::{Reply, WebhookReceiver},
};
use tokio::time::sleep;

use self::machine::*;
use super::{super::wakes::POLL_INTERVAL, *};

#[tokio::test]
async fn a_receiver_that_fails_once_gets_the_same_message_again_and_the_signatures_are_good() {
    let receiver = answering([failing()]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &receiver).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;

    let received = receiver.received();
    assert_eq!(received.len(), 2);
    let verifier =
        standardwebhooks::Webhook::new(Secret::from_random([1; 32]).expose()).expect("valid");
    for request in &received {
        assert_eq!(request.path, "/hook");
        let verified = verifier.verify(&request.body, &request.headers);
        verified.expect("a good signature");
        assert_eq!(request.headers["content-type"], "application/json");
    }
    assert_eq!(
        received[0].headers["webhook-id"],
        received[1].headers["webhook-id"]
    );
    assert_eq!(received[0].body, received[1].body);
    let statuses: Vec<_> = machine
        .attempts(&id)
        .await
        .iter()
        .map(|attempt| attempt.status)
        .collect();
    assert_eq!(statuses, [Some(500), Some(200)]);
    let webhook = machine
        .store
        .webhook(&Access::All, &id)
        .await
        .expect("read")
        .expect("exists");
    assert!(webhook.last_triggered.is_some());
    machine.stop().await;
}

#[tokio::test]
async fn the_schedule_ends() {
    let receiver = answering(vec![failing(); 9]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &receiver).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, all(DeliveryState::Failed)).await;
    assert_eq!(receiver.received().len(), SCHEDULE.len());
    machine.stop().await;
}

#[tokio::test]
async fn a_receiver_that_hangs_does_not_hold_up_another() {
    let hanging = answering(vec![Reply::Hang; 60]).await;
    let accepting = answering([]).await;
    let machine = Machine::start().await;
    let (stuck, well) = (
        machine.webhook(1, &hanging).await,
        machine.webhook(2, &accepting).await,
    );
    machine.owe(&stuck, 0..30).await;
    machine.owe(&well, 0..30).await;
    machine.until(&well, all(DeliveryState::Delivered)).await;
    let left = deliveries(&machine.store, &stuck).await;
    let is_open = |delivery: &Delivery| delivery.attempts == 0;
    assert!(left.iter().all(is_open), "it waited for them: {left:?}");
    assert!(hanging.received().len() <= usize::try_from(MAX_IN_FLIGHT).expect("small"));
    machine.stop().await;
}

#[tokio::test]
async fn a_long_body_is_delivered_without_its_data_under_a_signature_of_what_is_sent() {
    const LONG: usize = 5000;
    let receiver = answering([]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &receiver).await;
    let thin_above = DeliveryOptions {
        max_payload_bytes: Some(2000),
        ..DeliveryOptions::default()
    };
    machine.deliver_with(&id, thin_above).await;
    machine.owe(&id, 0..1).await;
    machine.owe_long(&id, 1..2, LONG).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    let mut bodies: Vec<_> = receiver
        .received()
        .into_iter()
        .map(|each| each.body)
        .collect();
    bodies.sort_unstable();
    let expected = format!(r#"{{"sequence":2,"dataBytes":{}}}"#, LONG + 2);
    assert_eq!(
        bodies,
        [
            r#"{"sequence":1}"#.to_owned().into_bytes(),
            expected.into_bytes()
        ]
    );
    assert!(receiver.faults().is_empty(), "{:?}", receiver.faults());
    machine.stop().await;
}

#[tokio::test]
async fn a_webhook_is_retried_by_its_own_schedule() {
    const PAUSE: Duration = Duration::from_secs(60);
    let receiver = answering(vec![failing(); 9]).await;
    let machine = Machine::on_stopped_clock().await;
    let id = machine.webhook(1, &receiver).await;
    let once_more = DeliveryOptions {
        retry_pauses_seconds: Some(vec![60]),
        ..DeliveryOptions::default()
    };
    machine.deliver_with(&id, once_more).await;
    machine.owe(&id, 0..1).await;
    machine
        .until(&id, |deliveries| deliveries[0].attempts == 1)
        .await;
    machine.clock.advance(2 * SCHEDULE[1]);
    sleep(3 * POLL_INTERVAL).await;
    let waiting = deliveries(&machine.store, &id).await;
    assert_eq!(waiting[0].attempts, 1, "the schedule of all others is over");
    machine.clock.advance(2 * PAUSE);
    machine.until(&id, all(DeliveryState::Failed)).await;
    assert_eq!(receiver.received().len(), 2);
    machine.stop().await;
}

#[tokio::test]
async fn no_more_attempts_are_in_flight_than_the_owner_asks_for_and_his_deadline_ends_them() {
    let hanging = answering(vec![Reply::Hang; 60]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &hanging).await;
    let two = DeliveryOptions {
        concurrency: Some(2),
        ..DeliveryOptions::default()
    };
    machine.deliver_with(&id, two).await;
    machine.owe(&id, 0..9).await;
    machine.until_received(&hanging, 2).await;
    sleep(3 * POLL_INTERVAL).await;
    assert_eq!(hanging.received().len(), 2, "of nine");

    let impatient = machine.webhook(2, &hanging).await;
    let second = DeliveryOptions {
        timeout_ms: Some(1000),
        retry_pauses_seconds: Some(Vec::new()),
        ..DeliveryOptions::default()
    };
    machine.deliver_with(&impatient, second).await;
    machine.owe(&impatient, 0..1).await;
    machine.until(&impatient, all(DeliveryState::Failed)).await;
    let attempts = machine.attempts(&impatient).await;
    let error = attempts[0].error.as_deref().expect("it failed");
    assert_eq!(error, "no complete answer within 1 s");
    machine.stop().await;
}

#[tokio::test]
async fn a_rate_is_kept_by_all_processes_together() {
    const INTERVAL: Duration = Duration::from_millis(50);
    let receiver = answering([]).await;
    let machine = Machine::start().await;
    let another = machine.another();
    let id = machine.webhook(1, &receiver).await;
    let twenty = DeliveryOptions {
        max_per_second: Some(20),
        ..DeliveryOptions::default()
    };
    machine.deliver_with(&id, twenty).await;
    let mut turn = Timestamp::from(machine.clock.now());
    machine.owe(&id, 0..30).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    let logs = logs(&machine.store, &id).await;
    let attempts = logs.iter().flat_map(|log| &log.attempts);
    let mut started: Vec<_> = attempts.map(|attempt| attempt.started).collect();
    started.sort_unstable();
    assert_eq!(started.len(), 30);
    for began in started {
        assert!(began >= turn, "{began} is before {turn}");
        turn = turn.after(INTERVAL);
    }
    machine.stop().await;
    another.await.expect("ends");
}

#[tokio::test]
async fn no_more_bodies_are_held_than_there_is_room_for() {
    /// Room for five bodies, of which one tenant may have half.
    const ROOM: u64 = 120 * 1024;
    const BODY: usize = 24 * 1024;
    /// Longer than the short ones take on a busy machine: the room is given back only after it.
    const DEADLINE: Duration = Duration::from_secs(10);
    let hanging = answering(vec![Reply::Hang; 2]).await;
    let accepting = answering([]).await;
    let submissions = Submissions::with_room(DEADLINE, 1000, ROOM);
    let machine = Machine::start_with(DEADLINE, submissions).await;
    let long = machine.webhook(1, &hanging).await;
    machine.owe_long(&long, 0..6, BODY).await;
    machine.until_received(&hanging, 2).await;

    let short = machine.webhook(2, &accepting).await;
    machine.owe(&short, 0..10).await;
    machine.until(&short, all(DeliveryState::Delivered)).await;
    assert_eq!(
        hanging.received().len(),
        2,
        "the third waits for room, which the short ones of another webhook find"
    );
    machine.until(&long, all(DeliveryState::Delivered)).await;
    assert_eq!(hanging.received().len(), 2 + 6);
    machine.stop().await;
}

#[tokio::test]
async fn receivers_that_hang_leave_room_for_those_of_others_and_of_their_own_tenant() {
    /// Longer than the test waits for anything.
    const HANGS: Duration = Duration::from_secs(10 * 60);
    const ROOM: usize = 512;
    let hanging = WebhookReceiver::always(Reply::Hang).await;
    let hanging = hanging.expect("a free port");
    let accepting = answering([]).await;
    let submissions = Submissions::with_room(HANGS, ROOM, 1 << 20);
    let machine = Machine::start_with(HANGS, submissions).await;
    for number in 10..50 {
        let greedy = machine.webhook(number, &hanging).await;
        machine.owe(&greedy, 0..16).await;
    }
    // They get no more than they get, but nothing that ends.
    let mut before = 0;
    while before < ROOM / 4 || before != hanging.received().len() {
        before = hanging.received().len();
        sleep(3 * POLL_INTERVAL).await;
    }
    assert!(before <= ROOM / 2, "{before} of {ROOM}");

    let of_same = machine.webhook(1, &accepting).await;
    let of_other = machine.webhook_of_key(2, &accepting).await;
    for id in [&of_same, &of_other] {
        machine.owe(id, 0..10).await;
        machine.until(id, all(DeliveryState::Delivered)).await;
    }
    let owed = machine.store.queue_stats().await.expect("counts").pending;
    assert_eq!(owed, 40 * 16, "not one of them had an end meanwhile");
    machine.stop().await;
}

#[tokio::test]
async fn an_answer_that_never_comes_or_never_ends_is_no_answer() {
    for reply in [Reply::Hang, Reply::Drip] {
        let receiver = answering([reply]).await;
        let machine = Machine::with_deadline(SHORT_DEADLINE).await;
        let id = machine.webhook(1, &receiver).await;
        machine.owe(&id, 0..1).await;
        machine.until(&id, all(DeliveryState::Delivered)).await;
        let attempts = machine.attempts(&id).await;
        assert_eq!(attempts[0].status, None);
        assert_eq!(
            attempts[0].error.as_deref(),
            Some("no complete answer within 2 s")
        );
        machine.stop().await;
    }
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let receiver = answering([Reply::Redirect("/elsewhere".to_owned())]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &receiver).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    let received = receiver.received();
    let paths: Vec<_> = received.iter().map(|request| &request.path).collect();
    assert_eq!(paths, ["/hook", "/hook"]);
    let attempts = machine.attempts(&id).await;
    assert_eq!(
        attempts[0].error.as_deref(),
        Some("answered 307; redirects are not followed")
    );
    machine.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_switches_its_webhook_off() {
    let receiver = answering([Reply::Status(410, String::new())]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &receiver).await;
    machine.owe(&id, 0..1).await;
    machine
        .until(&id, |deliveries| deliveries[0].attempts == 1)
        .await;
    let webhook = machine
        .store
        .webhook(&Access::All, &id)
        .await
        .expect("read")
        .expect("exists");
    assert!(!webhook.definition.active);
    assert_eq!(
        webhook.disabled_reason.as_deref(),
        Some("the receiver answered 410 Gone")
    );
    sleep(SCHEDULE[1] * 3 + POLL_INTERVAL).await;
    assert_eq!(receiver.received().len(), 1, "nothing more is sent");
    machine.stop().await;
}

#[tokio::test]
async fn a_receiver_may_ask_for_a_longer_pause() {
    let receiver = answering([Reply::RetryAfter(503, 3600)]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &receiver).await;
    machine.owe(&id, 0..1).await;
    machine
        .until(&id, |deliveries| deliveries[0].attempts == 1)
        .await;
    let delivery = deliveries(&machine.store, &id).await.remove(0);
    let in_half_an_hour = Timestamp::from(Clock::system().now()).after(Duration::from_secs(1800));
    assert!(delivery.next_attempt_at > Some(in_half_an_hour));
    assert_eq!(receiver.received().len(), 1);
    machine.stop().await;
}

#[tokio::test]
async fn a_receiver_that_is_not_there_is_retried() {
    let url = format!("http://{}/", free_address().expect("a free port"));
    let machine = Machine::start().await;
    let id = machine.webhook_at(1, &url, DeliveryOrder::None).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, all(DeliveryState::Failed)).await;
    let attempts = machine.attempts(&id).await;
    assert_eq!(attempts.len(), SCHEDULE.len());
    assert!(
        attempts[0]
            .error
            .as_deref()
            .is_some_and(|error| error.contains("refused")),
        "{attempts:?}"
    );
    machine.stop().await;
}

#[tokio::test]
async fn what_is_submitted_is_delivered_without_being_looked_for() {
    let receiver = answering([]).await;
    let machine = Machine::with_deadline(PATIENCE).await;
    let id = machine.webhook(1, &receiver).await;
    machine.submit(&id, 0..3).await;
    let delivered = machine.until(&id, all(DeliveryState::Delivered));
    // It is under a lease that outlives the test's patience, so it is not due.
    delivered.await;
    assert_eq!(receiver.received().len(), 3, "each once");
    machine.stop().await;
}

#[tokio::test]
async fn what_is_submitted_is_sent_while_a_lease_waits_for_its_turn_to_write() {
    /// Less than a lease lasts.
    const PAUSE: Duration = Duration::from_secs(10);
    let (receiver, other) = (answering([]).await, answering([]).await);
    let machine = Machine::on_stopped_clock().await;
    let id = machine.webhook(1, &receiver).await;
    let due = machine.webhook(2, &other).await;
    machine.owe_after(PAUSE, &due, 0..3).await;
    let (reservation, leased) = machine.store_leased(&id, 0..3).await;
    let turn = machine.store.hold_turn_to_write().await.expect("its turn");
    machine.clock.advance(PAUSE);
    // The lease begins with the next tick.
    sleep(3 * POLL_INTERVAL).await;
    reservation.submit(leased);
    machine.until_received(&receiver, 3).await;
    assert_eq!(other.received().len(), 0, "the lease still waits");
    drop(turn);
    for webhook in [&id, &due] {
        machine.until(webhook, all(DeliveryState::Delivered)).await;
    }
    machine.stop().await;
}

#[tokio::test]
async fn what_is_submitted_when_the_dispatcher_stops_is_released() {
    let receiver = answering([]).await;
    let machine = Machine::start().await;
    let id = machine.webhook(1, &receiver).await;
    machine.submit(&id, 0..3).await;
    // On this one thread the dispatcher receives both at once.
    let store = machine.store.clone();
    let _folder = machine.stop().await;
    let waits = deliveries(&store, &id)
        .await
        .iter()
        .filter(|delivery| delivery.state == DeliveryState::Pending)
        .filter(|delivery| delivery.next_attempt_at <= Some(Timestamp::from(Clock::system().now())))
        .count();
    assert_eq!(
        waits + receiver.received().len(),
        3,
        "none waits for the end of its lease"
    );
}

#[tokio::test]
async fn a_shutdown_lets_attempts_in_flight_finish() {
    let receiver = answering([Reply::Hang, Reply::Hang]).await;
    let machine = Machine::with_deadline(SHORT_DEADLINE).await;
    let id = machine.webhook(1, &receiver).await;
    machine.owe(&id, 0..2).await;
    machine.until(&id, |_| receiver.received().len() == 2).await;
    let store = machine.store.clone();
    let _folder = machine.stop().await;
    let left = deliveries(&store, &id).await;
    assert!(
        left.iter().all(|delivery| delivery.attempts == 1),
        "their deadline fell into the drain: {left:?}"
    );
}

#[tokio::test]
async fn a_shutdown_waits_as_long_as_the_deadline_of_an_attempt() {
    // Longer than anything else that a shutdown waits for.
    const LONG_DEADLINE: Duration = Duration::from_secs(8);
    let receiver = answering([Reply::Hang]).await;
    let machine = Machine::with_deadline(LONG_DEADLINE).await;
    let id = machine.webhook(1, &receiver).await;
    machine.owe(&id, 0..1).await;
    machine.until(&id, |_| receiver.received().len() == 1).await;
    let store = machine.store.clone();
    let _folder = machine.stop().await;
    let left = deliveries(&store, &id).await;
    assert_eq!(left[0].attempts, 1, "the attempt was broken off: {left:?}");
}
