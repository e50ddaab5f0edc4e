//! Tests of the verdict: every kind of fault is seen, and what is clean stays clean.

use std::sync::LazyLock;

use serde_json::json;
use sluice_store::{Secret, WebhookId};

use super::{
    super::{
        ledger::{Arrival, Headers, Ledger},
        numbered_chain::NumberedChain,
        subscriber::from_the_start,
    },
    *,
};

/// A webhook, a chain, and what arrived of it.
struct Case {
    promise: Promise,
    blocks: Vec<Block>,
    messages: BTreeMap<String, Arrived>,
}

impl Case {
    /// Everything that should arrive does, once, one after the other.
    fn complete(commitment: Commitment, order: DeliveryOrder) -> Self {
        let (promise, blocks) = promised(commitment, order);
        Self::telling(promise, blocks)
    }

    /// Everything that these blocks call for arrives, once, one after the other.
    fn telling(promise: Promise, blocks: Vec<Block>) -> Self {
        let mut case = Self {
            promise,
            blocks,
            messages: BTreeMap::new(),
        };
        for block in case.blocks.clone() {
            if !case.promise.subscriber.is_owed(&block) {
                continue;
            }
            let wanted = |event: &&Event| case.promise.subscriber.wants(event);
            let wanted: Vec<Event> = block.events.iter().filter(wanted).copied().collect();
            let first = case.messages.len();
            for event in &wanted {
                case.arrive(&body_kind(event), block.slot, data(event));
            }
            if block.fate == Fate::Dropped {
                for sequence in first + 1..=first + wanted.len() {
                    case.retract(block.slot, sequence);
                }
            }
        }
        case
    }

    fn arrive(&mut self, kind: &str, slot: u64, data: Value) {
        let sequence = self.messages.len() + 1;
        let time = u64::try_from(2 * sequence).expect("small");
        let arrived = Arrived::once(
            json!({
                "type": kind,
                "webhookId": self.promise.webhook,
                "sequence": sequence,
                "slot": slot,
                "commitment": self.promise.subscriber.commitment.name(),
                "data": data,
            }),
            time,
            time + 1,
        );
        self.messages.insert(id(sequence), arrived);
    }

    fn retract(&mut self, slot: u64, sequence: usize) {
        let data = json!({ "messageId": id(sequence), "sequence": sequence });
        self.arrive(REVERTED, slot, data);
    }

    fn judge(&self) -> Finding {
        judge(&self.promise, &Played::new(&self.blocks), &self.messages)
    }

    /// The first fault found, which there must be.
    fn fault(&self) -> String {
        let finding = self.judge();
        finding.faults.first().expect("a fault").clone()
    }

    /// The id of the first message of this kind.
    fn first(&self, kind: &str) -> String {
        let first = self
            .messages
            .iter()
            .find(|(_, each)| each.body["type"] == kind);
        first.expect("there are all kinds").0.clone()
    }
}

/// Half slots of the chain of these tests: every kind of event and of fate is among them.
const STEPS: usize = 600;

/// The promise to a webhook of this kind, and the blocks of the chain, which is played once for all that a process tests.
pub(crate) fn promised(commitment: Commitment, order: DeliveryOrder) -> (Promise, Vec<Block>) {
    static BLOCKS: LazyLock<Vec<Block>> = LazyLock::new(|| {
        let mut chain = NumberedChain::new(1);
        for _ in 0..STEPS {
            chain.step(true);
        }
        chain.blocks()
    });
    let subscriber = from_the_start()
        .into_iter()
        .find(|each| each.commitment == commitment && each.order == order)
        .expect("there is one of each");
    let promise = Promise {
        webhook: WebhookId::from_random([1; 16]).to_string(),
        subscriber,
        since: 0,
    };
    (promise, BLOCKS.clone())
}

/// The bodies of everything that a webhook is told of these blocks, in order.
pub(crate) fn told(promise: &Promise, blocks: &[Block]) -> Vec<Value> {
    let messages = Case::telling(promise.clone(), blocks.to_vec()).messages;
    messages.into_values().map(|arrived| arrived.body).collect()
}

fn id(sequence: usize) -> String {
    format!("msg_{sequence:06}")
}

fn body_kind(event: &Event) -> String {
    event.what.kind().name().to_owned()
}

pub(crate) fn data(event: &Event) -> Value {
    let written = |bytes: Vec<u8>| STANDARD.encode(bytes);
    let number = event.number.to_le_bytes().to_vec();
    match &event.what {
        What::AccountChange { pubkey, owner } => json!({
            "pubkey": pubkey.to_string(),
            "owner": owner.to_string(),
            "data": written(number),
        }),
        What::Transaction {
            signature, program, ..
        } => json!({
            "signature": signature.to_string(),
            "programs": [program.to_string()],
            "error": null,
        }),
        What::ProgramEvent {
            signature, program, ..
        } => json!({
            "signature": signature.to_string(),
            "programId": program.to_string(),
            "data": written([b"numbered".to_vec(), number].concat()),
        }),
    }
}

#[test]
fn what_is_complete_and_in_order_is_clean() {
    for commitment in Commitment::ALL {
        for order in DeliveryOrder::ALL {
            let finding = Case::complete(commitment, order).judge();
            assert_eq!(finding.faults, Vec::<String>::new());
            assert!(finding.expected > 50 && finding.lost == 0);
            let forks = commitment == Commitment::Processed;
            assert_eq!(finding.reverted > 0, forks, "{commitment}");
        }
    }
}

#[test]
fn a_missing_message_is_lost_and_leaves_a_hole() {
    let mut case = Case::complete(Commitment::Confirmed, DeliveryOrder::None);
    case.messages.remove(&id(7));
    let finding = case.judge();
    assert_eq!(finding.lost, 1);
    assert!(finding.faults[0].contains("number 8 where 7 should be"));
    assert!(
        finding.faults[1].contains("is lost"),
        "{:?}",
        finding.faults
    );
}

#[test]
fn a_message_that_was_never_accepted_is_lost() {
    let mut case = Case::complete(Commitment::Finalized, DeliveryOrder::None);
    let message = case.messages.get_mut(&id(7)).expect("there");
    message.first_acceptance = None;
    let finding = case.judge();
    assert_eq!(finding.lost, 1);
    assert!(finding.faults[0].contains("given up"));
}

#[test]
fn an_event_under_two_ids_is_a_fault() {
    let mut case = Case::complete(Commitment::Confirmed, DeliveryOrder::None);
    let last = case.messages[&id(case.messages.len())].body.clone();
    let slot = last["slot"].as_u64().expect("a number");
    let kind = last["type"].as_str().expect("text").to_owned();
    case.arrive(&kind, slot, last["data"].clone());
    assert!(case.fault().contains("not retracted between"));
}

#[test]
fn what_was_retracted_may_be_reinstated_and_is_counted() {
    let mut case = Case::complete(Commitment::Processed, DeliveryOrder::None);
    let dropped = case.first(REVERTED);
    let first = case.messages[&dropped].body["data"]["messageId"].clone();
    let emitted = case.messages[first.as_str().expect("an id")].body.clone();
    let slot = emitted["slot"].as_u64().expect("a number");
    let kind = emitted["type"].as_str().expect("text").to_owned();
    case.arrive(&kind, slot, emitted["data"].clone());
    assert!(case.fault().contains("was never retracted"));
    case.retract(slot, case.messages.len());
    let finding = case.judge();
    assert_eq!((finding.reinstated, finding.faults), (1, Vec::new()));
}

#[test]
fn what_happened_must_not_be_retracted_nor_anything_twice() {
    let mut case = Case::complete(Commitment::Processed, DeliveryOrder::None);
    let kept = case.blocks.iter().rfind(|block| block.fate == Fate::Kept);
    let slot = kept.expect("most are").slot;
    let emitted = case
        .messages
        .values()
        .find(|each| each.body["slot"] == slot);
    let sequence = emitted.expect("emitted").body["sequence"]
        .as_u64()
        .expect("a number");
    case.retract(slot, usize::try_from(sequence).expect("small"));
    assert!(case.fault().contains("retracted for nothing"));
    case.retract(slot, usize::try_from(sequence).expect("small"));
    assert!(case.fault().contains("was retracted before"));
}

#[test]
fn what_was_not_asked_for_or_did_not_happen_is_a_fault() {
    let mut case = Case::complete(Commitment::Confirmed, DeliveryOrder::None);
    let dropped = case.blocks.iter().find(|block| {
        block.fate == Fate::Dropped
            && block
                .events
                .iter()
                .any(|event| case.promise.subscriber.wants(event))
    });
    let block = dropped.expect("some are").clone();
    let wanted = |event: &&Event| case.promise.subscriber.wants(event);
    let event = *block.events.iter().find(wanted).expect("one is");
    case.arrive(&body_kind(&event), block.slot, data(&event));
    assert!(case.fault().contains("not part of the chain"));

    let mut case = Case::complete(Commitment::Confirmed, DeliveryOrder::None);
    let first = case.first("transaction");
    case.messages.get_mut(&first).expect("there").body["slot"] = 1.into();
    assert!(case.fault().contains("of another slot"));

    let mut case = Case::complete(Commitment::Confirmed, DeliveryOrder::None);
    case.arrive(
        "gap",
        1_100,
        json!({ "firstSlot": 1_099, "lastSlot": 1_100 }),
    );
    assert!(case.fault().contains("nothing that should be emitted"));

    let mut case = Case::complete(Commitment::Confirmed, DeliveryOrder::None);
    case.promise.subscriber.filters.programs.clear();
    assert!(case.fault().contains("not asked for"));
}

#[test]
fn order_is_that_of_first_arrivals_after_acceptance() {
    for order in [DeliveryOrder::PerKey, DeliveryOrder::Strict] {
        let mut case = Case::complete(Commitment::Confirmed, order);
        let message = case.messages.get_mut(&id(1)).expect("there");
        message.first_acceptance = Some(u64::MAX);
        assert!(case.fault().contains("before number 1 was accepted"));
    }
    let mut case = Case::complete(Commitment::Confirmed, DeliveryOrder::None);
    let message = case.messages.get_mut(&id(1)).expect("there");
    message.first_acceptance = Some(u64::MAX);
    assert_eq!(case.judge().faults, Vec::<String>::new());
}

#[test]
fn a_sender_whose_clock_is_off_may_sign_that_far_off_and_no_farther() {
    let id = WebhookId::from_random([1; 16]);
    let secret = Secret::from_random([2; 32]);
    let signer = standardwebhooks::Webhook::new(secret.expose()).expect("a secret");
    let signature = signer.sign("msg_1", 10_000, b"{}").expect("signs");
    for (at, clocks_off, faults) in [
        (10_300, 0, 0),
        (10_301, 0, 1),
        (6_100, 3_600, 0),
        (6_099, 3_600, 1),
    ] {
        let mut ledger = Ledger::default();
        ledger.expect(&id, secret.expose()).expect("a secret");
        ledger.take(&Arrival {
            webhook: id.to_string(),
            headers: Headers {
                id: Some("msg_1".to_owned()),
                timestamp: Some("10000".to_owned()),
                signature: Some(signature.clone()),
            },
            body: "{}".to_owned(),
            accepted: true,
            at,
            clocks_off,
        });
        assert_eq!(ledger.faults.len(), faults, "{at} {clocks_off}");
    }
}

#[test]
fn the_ledger_refuses_what_is_not_signed_and_the_same_id_with_another_body() {
    let id = WebhookId::from_random([1; 16]);
    let secret = Secret::from_random([2; 32]);
    let mut ledger = Ledger::default();
    ledger.expect(&id, secret.expose()).expect("a secret");
    let signer = standardwebhooks::Webhook::new(secret.expose()).expect("a secret");
    let arrival = |webhook: &str, signed: &str, body: &str| {
        let signature = signer.sign("msg_1", 1_000, signed.as_bytes());
        Arrival {
            webhook: webhook.to_owned(),
            headers: Headers {
                id: Some("msg_1".to_owned()),
                timestamp: Some("1000".to_owned()),
                signature: Some(signature.expect("signs")),
            },
            body: body.to_owned(),
            accepted: true,
            at: 1_001,
            clocks_off: 0,
        }
    };
    ledger.take(&arrival(id.as_str(), "{}", "{}"));
    ledger.take(&arrival(id.as_str(), "{}", "{}"));
    assert!(ledger.faults.is_empty(), "{:?}", ledger.faults);
    assert_eq!(
        (
            ledger.accepted(),
            ledger.webhooks[id.as_str()].messages["msg_1"].arrivals
        ),
        (1, 2)
    );
    ledger.take(&arrival(id.as_str(), "{}", "[]"));
    ledger.take(&arrival(id.as_str(), "[]", "[]"));
    ledger.take(&arrival("wh_other", "[]", "[]"));
    let faults: Vec<_> = ledger.faults.iter().collect();
    assert_eq!(faults.len(), 3, "{faults:?}");
    for (fault, part) in faults
        .iter()
        .zip(["no script made", "two bodies", "not signed"])
    {
        assert!(fault.contains(part), "{faults:?}");
    }
}
