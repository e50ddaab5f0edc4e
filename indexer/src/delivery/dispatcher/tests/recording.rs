//! Which results wait for others to be recorded with.

use std::future::ready;

use sluice_store::{Attempt, DeliveryOrder, Lease, Timings, WebhookId};

use super::{super::*, machine::*};
use crate::delivery::{
    capacity,
    recorder::{BATCH_WINDOW, collect_batch},
};

/// The result of an attempt that took so long.
async fn ended(
    machine: &Machine,
    webhook: &WebhookId,
    number: u8,
    took: Duration,
) -> (Lease, EndedDelivery) {
    let (reservation, leased) = machine.store_leased(webhook, number..number + 1).await;
    let ReservedDelivery { delivery, reserved } = reservation.assign(leased).remove(0);
    let attempt = Attempt {
        number: 1,
        url: delivery.url,
        started: Timestamp::from(machine.clock.now()),
        duration: took,
        timings: Timings::default(),
        status: Some(200),
        error: None,
        retry_after: None,
        request_headers: Vec::new(),
        response: None,
        response_cut: false,
    };
    let result = AttemptResult::new(delivery.lease.clone(), attempt, Outcome::Delivered, 0);
    let ended = Ended::Attempted(Box::new(result));
    (delivery.lease, (ended, reserved))
}

/// Whether it waits for others, of which none are there.
async fn waits(backlog: Backlog, ended: EndedDelivery) -> bool {
    waits_where(&ToLease::default(), backlog, ended).await
}

/// The same, where something was stored of webhooks that were full.
async fn waits_where(to_lease: &ToLease, backlog: Backlog, ended: EndedDelivery) -> bool {
    let (_found, backlog) = watch::channel(backlog);
    let (_sender, mut others) = mpsc::channel(1);
    let mut batch = vec![ended];
    tokio::select! {
        biased;
        () = collect_batch((&backlog, to_lease), &mut others, &mut batch) => false,
        () = ready(()) => true,
    }
}

#[tokio::test]
async fn a_result_waits_for_others_unless_something_due_waits_for_it() {
    const QUICK: Duration = Duration::from_millis(1);
    let machine = Machine::start().await;
    let url = "https://receiver.example/";
    let one = machine.webhook_at(1, url, DeliveryOrder::None).await;
    let other = machine.webhook_at(2, url, DeliveryOrder::None).await;
    let lane = machine.webhook_at(3, url, DeliveryOrder::Strict).await;
    let (lease, of_one) = ended(&machine, &one, 0, QUICK).await;
    let due = WebhookSet::from_iter([&lease]);
    let of_first = || {
        let mut backlog = Backlog::default();
        backlog.found(None, &due);
        backlog
    };
    assert!(waits(Backlog::default(), of_one).await);

    let (_, of_one) = ended(&machine, &one, 1, QUICK).await;
    assert!(!waits(of_first(), of_one).await);
    let (_, of_other) = ended(&machine, &other, 0, QUICK).await;
    assert!(waits(of_first(), of_other).await);
    let (_, slow) = ended(&machine, &one, 2, 20 * BATCH_WINDOW).await;
    assert!(waits(of_first(), slow).await);

    // What is known of others stays.
    let mut of_first_still = of_first();
    let (lease_of_other, of_other) = ended(&machine, &other, 1, QUICK).await;
    let looked_at = WebhookSet::from_iter([&lease_of_other]);
    of_first_still.found(Some(&looked_at), &WebhookSet::default());
    let (_, of_one) = ended(&machine, &one, 3, QUICK).await;
    assert!(!waits(of_first_still, of_one).await);
    let mut no_longer = of_first();
    no_longer.found(Some(&due), &looked_at);
    let (_, of_one) = ended(&machine, &one, 4, QUICK).await;
    assert!(waits(no_longer, of_one).await);

    let to_lease = ToLease::default();
    to_lease.tell_full(&due);
    let none = Backlog::default;
    let (_, of_another) = ended(&machine, &other, 2, QUICK).await;
    assert!(waits_where(&to_lease, none(), of_another).await);
    let (_, of_one) = ended(&machine, &one, 5, QUICK).await;
    assert!(!waits_where(&to_lease, none(), of_one).await);
    // What is found when they are looked at is told by the backlog.
    to_lease.tell(&due);
    assert_eq!(to_lease.take(), due);
    let (_, of_one) = ended(&machine, &one, 6, QUICK).await;
    assert!(waits_where(&to_lease, none(), of_one).await);

    let mut of_all = Backlog::default();
    of_all.without_capacity();
    assert!(!waits(of_all, of_other).await);
    let (_, in_order) = ended(&machine, &lane, 0, 20 * BATCH_WINDOW).await;
    assert!(!waits(none(), in_order).await);
    machine.stop().await;
}

#[tokio::test]
async fn what_waits_for_a_result_that_was_recorded_before_it_could_be_seen_is_looked_for_at_once() {
    let machine = Machine::start().await;
    let url = "https://receiver.example/";
    let id = machine.webhook_at(1, url, DeliveryOrder::None).await;
    machine.deliver_one_at_once(&id).await;
    let (_, (_, first)) = ended(&machine, &id, 0, Duration::ZERO).await;
    let to_lease = ToLease::default();
    let (committed, leased, reservation) = machine.store(&id, 1..2).await;
    assert!(!committed.full.is_empty());
    capacity::hand_over(&committed, leased, Some(reservation), &to_lease);
    assert!(to_lease.take().is_empty(), "its result is to come");

    let (committed, leased, reservation) = machine.store(&id, 2..3).await;
    drop(first);
    capacity::hand_over(&committed, leased, Some(reservation), &to_lease);
    assert_eq!(to_lease.take(), committed.full);
    machine.stop().await;
}
