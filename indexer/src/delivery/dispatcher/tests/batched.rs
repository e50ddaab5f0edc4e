//! Batches to one endpoint: what one POST carries, what a refusal makes of it, and what is recorded.

use sluice_store::{Access, Batch, DeliveryOrder, DeliveryState, Secret, WebhookId};
use sluice_testkit::webhook_receiver::{Reply, WebhookReceiver};

use super::{super::*, machine::*};

const BATCH: Batch = Batch {
    max_messages: 4,
    max_bytes: 1024 * 1024,
    max_wait: Duration::ZERO,
};

/// Bytes of a body around its data, while the numbers have one digit.
const AROUND_DATA: usize = r#"{"sequence":1,"data":""}"#.len();

impl Machine {
    async fn webhook_in_batches(
        &self,
        receiver: &WebhookReceiver,
        order: DeliveryOrder,
    ) -> WebhookId {
        self.webhook_in(BATCH, receiver, order).await
    }

    async fn webhook_in(
        &self,
        batch: Batch,
        receiver: &WebhookReceiver,
        order: DeliveryOrder,
    ) -> WebhookId {
        let id = self.webhook_in_order(1, receiver, order).await;
        let webhook = self.store.webhook(&Access::All, &id).await;
        let mut definition = webhook.expect("reads").expect("exists").definition;
        definition.batch = Some(batch);
        let store = &self.store;
        let updated = store.update_webhook(&Access::All, &id, &definition, None);
        updated.await.expect("updates").expect("exists");
        id
    }
}

/// The sequences of the messages that each request carried, in order.
fn carried(receiver: &WebhookReceiver) -> Vec<Vec<u64>> {
    let verifier =
        standardwebhooks::Webhook::new(Secret::from_random([1; 32]).expose()).expect("valid");
    let requests = receiver.received();
    let messages = requests.iter().map(|request| {
        let verified = verifier.verify(&request.body, &request.headers);
        verified.expect("one signature over the array");
        let body: Vec<serde_json::Value> = serde_json::from_slice(&request.body).expect("an array");
        let numbers = body.iter().map(|message| {
            let id = message["id"].as_str().expect("an id");
            assert!(id.starts_with("msg_"), "{id}");
            message["sequence"].as_u64().expect("a number")
        });
        numbers.collect()
    });
    messages.collect()
}

#[tokio::test]
async fn a_refused_batch_of_an_ordered_webhook_is_split_and_nothing_overtakes_it() {
    let receiver = answering([failing()]).await;
    let machine = Machine::start().await;
    let id = machine
        .webhook_in_batches(&receiver, DeliveryOrder::Strict)
        .await;
    machine.owe(&id, 0..10).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    let expected: [&[u64]; 5] = [&[1, 2, 3, 4], &[1, 2], &[3, 4], &[5, 6, 7, 8], &[9, 10]];
    assert_eq!(carried(&receiver), expected);
    let logs = logs(&machine.store, &id).await;
    let statuses = logs.iter().map(|log| {
        let statuses = log.attempts.iter().map(|attempt| attempt.status);
        statuses.collect::<Vec<_>>()
    });
    let refused = vec![Some(500), Some(200)];
    let mut expected = vec![refused; 4];
    expected.resize(10, vec![Some(200)]);
    assert_eq!(
        statuses.collect::<Vec<_>>(),
        expected,
        "a history for each message"
    );
    machine.stop().await;
}

#[tokio::test]
async fn a_refused_batch_is_tried_again_message_by_message() {
    let receiver = answering([failing()]).await;
    let machine = Machine::start().await;
    let id = machine
        .webhook_in_batches(&receiver, DeliveryOrder::None)
        .await;
    machine.owe(&id, 0..4).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    let mut carried = carried(&receiver);
    assert_eq!(carried.remove(0), [1, 2, 3, 4]);
    carried.sort();
    assert_eq!(carried, [[1], [2], [3], [4]]);
    machine.stop().await;
}

#[tokio::test]
async fn a_batch_is_one_attempt_at_its_endpoint_and_gone_switches_off() {
    let receiver = answering([failing(), Reply::Status(410, "no more".to_owned())]).await;
    let machine = Machine::on_stopped_clock().await;
    let id = machine
        .webhook_in_batches(&receiver, DeliveryOrder::None)
        .await;
    machine.owe(&id, 0..4).await;
    machine
        .until(&id, |all| all.iter().all(|each| each.attempts == 1))
        .await;
    assert_eq!(
        machine.endpoint(&id).await.failures,
        1,
        "not one for each message"
    );
    machine.owe(&id, 4..6).await;
    machine
        .until(&id, |all| all.iter().skip(4).all(|each| each.attempts == 1))
        .await;
    assert_eq!(carried(&receiver), [vec![1, 2, 3, 4], vec![5, 6]]);
    let webhook = machine.store.webhook(&Access::All, &id).await;
    let webhook = webhook.expect("reads").expect("exists");
    assert!(!webhook.definition.active && webhook.disabled_reason.is_some());
    let pending = deliveries(&machine.store, &id).await;
    assert!(
        pending
            .iter()
            .all(|each| each.state == DeliveryState::Pending)
    );
    machine.stop().await;
}

/// What each request carries of messages with bodies of so many bytes, where one is to carry no more than `max_bytes`.
async fn carried_within(max_bytes: usize, bodies: &[usize], order: DeliveryOrder) -> Vec<Vec<u64>> {
    let receiver = answering([]).await;
    let machine = Machine::start().await;
    let batch = Batch {
        max_bytes: u32::try_from(max_bytes).expect("small"),
        ..BATCH
    };
    let id = machine.webhook_in(batch, &receiver, order).await;
    let data: Vec<_> = bodies.iter().map(|body| body - AROUND_DATA).collect();
    machine.owe_each(&id, &data).await;
    machine.until(&id, all(DeliveryState::Delivered)).await;
    machine.stop().await;
    let mut carried = carried(&receiver);
    if order == DeliveryOrder::None {
        // Nothing says which of them goes first.
        carried.sort();
    }
    carried
}

#[tokio::test]
async fn a_batch_ends_before_the_message_with_which_it_would_be_too_long() {
    for order in [DeliveryOrder::None, DeliveryOrder::Strict] {
        let carried = carried_within(200, &[100, 100, 100, 60, 40, 60], order).await;
        let expected: [&[u64]; 3] = [&[1, 2], &[3, 4, 5], &[6]];
        assert_eq!(carried, expected, "{order:?}");
        let carried = carried_within(199, &[100; 3], order).await;
        assert_eq!(carried, [[1], [2], [3]], "{order:?}");
    }
}

#[tokio::test]
async fn a_message_longer_than_a_batch_may_be_goes_alone() {
    for order in [DeliveryOrder::None, DeliveryOrder::Strict] {
        let carried = carried_within(200, &[50, 50, 1000, 1000, 50, 50], order).await;
        let expected: [&[u64]; 4] = [&[1, 2], &[3], &[4], &[5, 6]];
        assert_eq!(carried, expected, "{order:?}");
    }
}
