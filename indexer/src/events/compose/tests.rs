//! Composed messages: order, ids, and what their bodies say.

use serde_json::Value;
use sluice_geyser::Instruction;
use sluice_store::{
    ActiveWebhook, ActiveWebhooks, Conditions, EventKind, Filters, Revision, TransactionOutcome,
    WebhookId,
};

use super::*;
use crate::{
    events::subscriber::fixtures::active_webhook,
    slots::{SlotEvent, slot_events::fixtures},
};

fn subscriptions(commitment: Commitment, filters: &Filters) -> Subscriptions {
    let webhook = |number| active_webhook(number, commitment, filters.clone());
    Subscriptions::new(&ActiveWebhooks {
        revision: Revision(1),
        webhooks: vec![webhook(1), webhook(2)],
    })
}

fn of_program(program: Pubkey) -> Subscriptions {
    let filters = Filters {
        accounts: Vec::new(),
        programs: vec![program],
        ..Filters::default()
    };
    subscriptions(Commitment::Confirmed, &filters)
}

fn block() -> Block {
    Block {
        slot: 7,
        hash: "hash".to_owned(),
        parent: 6,
        time: Some(1_767_225_600),
    }
}

fn slot_events() -> SlotEvents {
    let mut events = SlotEvents::default();
    events.add(SlotEvent::Account(fixtures::account(7, 50, 9)));
    events.add(SlotEvent::Account(fixtures::account(7, 51, 3)));
    let mut transaction = fixtures::transaction(7, 4);
    let program = transaction.account_keys[0];
    transaction.log_messages = vec![
        format!("Program {program} invoke [1]"),
        "Program data: AQIDBAUGBwgJ".to_owned(),
        format!("Program {program} success"),
    ];
    events.add(SlotEvent::Transaction(Box::new(transaction)));
    events.add(SlotEvent::Transaction(Box::new(fixtures::transaction(
        7, 2,
    ))));
    events
}

fn compose(
    subscriptions: &Subscriptions,
    commitment: Commitment,
    slot_events: &SlotEvents,
) -> Vec<NewMessage> {
    let idls = Idls::built_in().expect("understood");
    let fallback = Timestamp::from_unix_seconds(0);
    events(
        subscriptions,
        &idls,
        commitment,
        &block(),
        (slot_events, &LastOwners::default()),
        fallback,
    )
    .collect()
}

fn bodies(messages: &[NewMessage]) -> Vec<Value> {
    messages
        .iter()
        .filter(|message| message.webhook == WebhookId::from_random([1; 16]))
        .zip(1..)
        .map(|(message, sequence)| {
            serde_json::from_str(&message.body.with_sequence(sequence)).expect("JSON")
        })
        .collect()
}

#[test]
fn a_webhook_is_told_of_no_slot_from_before_its_first_unless_every_slot_is_asked_for() {
    let from = |first_slot| {
        let filters = Filters {
            programs: vec![fixtures::program()],
            ..Filters::default()
        };
        let webhook = ActiveWebhook {
            first_slot,
            ..active_webhook(1, Commitment::Confirmed, filters)
        };
        Subscriptions::new(&ActiveWebhooks {
            revision: Revision(1),
            webhooks: vec![webhook],
        })
    };
    let of_slot = block().slot;
    let told = |subscriptions: &Subscriptions| {
        compose(subscriptions, Commitment::Confirmed, &slot_events()).len()
    };
    let all = told(&from(None));
    assert!(all > 0);
    assert_eq!(told(&from(Some(of_slot))), all);
    assert_eq!(told(&from(Some(of_slot + 1))), 0);
    assert_eq!(told(&from(Some(of_slot + 1)).for_every_slot()), all);
}

#[test]
fn messages_are_in_order_and_whole() {
    let subscriptions = of_program(fixtures::program());
    let composed = compose(&subscriptions, Commitment::Confirmed, &slot_events());
    let bodies = bodies(&composed);
    let kinds: Vec<_> = bodies
        .iter()
        .map(|body| body["type"].as_str().expect("text"))
        .collect();
    let expected = [
        "transaction",
        "transaction",
        "programEvent",
        "accountChange",
        "accountChange",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(composed.len(), 2 * expected.len());
    assert_eq!(bodies[0]["data"]["index"], 2, "as executed");
    assert_eq!(bodies[1]["data"]["index"], 4);
    assert_eq!(bodies[2]["data"]["discriminator"], "0102030405060708");
    let last_written = Pubkey::new_from_array([51; 32]).to_string();
    assert_eq!(bodies[3]["data"]["pubkey"], last_written);

    let first = &bodies[0];
    assert_eq!(first.as_object().expect("an object").len(), 7);
    assert_eq!(first["timestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(first["webhookId"], WebhookId::from_random([1; 16]).as_str());
    assert_eq!((&first["sequence"], &first["slot"]), (&1.into(), &7.into()));
    assert_eq!(first["commitment"], "confirmed");
    let keys: Vec<_> = composed
        .iter()
        .filter_map(|each| each.order_key.clone())
        .collect();
    assert_eq!(keys.len(), composed.len());
    assert_eq!(keys[0], fixtures::program().to_string(), "the signer");
    assert_eq!(keys[6], last_written, "the account");
}

#[test]
fn each_commitment_has_its_own_webhooks_and_ids() {
    let filters = Filters {
        accounts: Vec::new(),
        programs: vec![fixtures::program()],
        ..Filters::default()
    };
    let processed = subscriptions(Commitment::Processed, &filters);
    assert!(compose(&processed, Commitment::Confirmed, &slot_events()).is_empty());
    let emitted = compose(&processed, Commitment::Processed, &slot_events());
    let confirmed = compose(
        &of_program(fixtures::program()),
        Commitment::Confirmed,
        &slot_events(),
    );
    assert_eq!(emitted.len(), confirmed.len());
    assert_eq!(bodies(&emitted)[0]["commitment"], "processed");
    assert_ne!(emitted[0].id, confirmed[0].id);
}

#[test]
fn an_inner_instruction_and_a_looked_up_address_count_and_a_failure_says_why() {
    let (program, account) = (
        Pubkey::new_from_array([42; 32]),
        Pubkey::new_from_array([43; 32]),
    );
    let mut transaction = fixtures::transaction(7, 1);
    // Loaded addresses follow the static ones.
    transaction.account_keys.extend([account, program]);
    transaction.inner_instructions = vec![(
        0,
        vec![sluice_geyser::InnerInstruction {
            program_index: 2,
            accounts: Vec::new(),
            data: Vec::new(),
            stack_height: Some(3),
        }],
    )];
    transaction.instructions = vec![Instruction {
        program_index: 0,
        accounts: vec![1],
        data: Vec::new(),
    }];
    transaction.error = Some("out of funds".to_owned());
    let mut events = SlotEvents::default();
    events.add(SlotEvent::Transaction(Box::new(transaction)));
    for filters in [
        Filters {
            accounts: vec![account],
            programs: Vec::new(),
            ..Filters::default()
        },
        Filters {
            accounts: Vec::new(),
            programs: vec![program],
            ..Filters::default()
        },
    ] {
        let subscriptions = subscriptions(Commitment::Confirmed, &filters);
        let emitted = compose(&subscriptions, Commitment::Confirmed, &events);
        let bodies = bodies(&emitted);
        assert_eq!(bodies.len(), 1, "{filters:?}");
        assert_eq!(bodies[0]["data"]["error"], "out of funds");
        assert_eq!(bodies[0]["data"]["programs"][1], program.to_string());
    }
}

#[test]
fn a_replay_composes_the_same_messages() {
    let subscriptions = of_program(fixtures::program());
    let compose = || compose(&subscriptions, Commitment::Confirmed, &slot_events());
    assert_eq!(compose(), compose());
}

#[test]
fn what_matches_no_webhook_makes_no_message() {
    let other = of_program(Pubkey::new_from_array([200; 32]));
    assert_eq!(compose(&other, Commitment::Confirmed, &slot_events()), []);
}

#[test]
fn events_are_retracted_one_by_one_and_nothing_else_is() {
    let emitted = |number: u8, kind| SlotMessage {
        id: sluice_store::MessageId::from_bytes([number; 32]),
        webhook: WebhookId::from_random([1; 16]),
        sequence: number.into(),
        kind,
        order_key: Some("key".to_owned()),
    };
    let events = [
        emitted(4, MessageKind::Event(EventKind::Transaction)),
        emitted(5, MessageKind::Reverted),
    ];
    let now = Timestamp::from_unix_seconds(1);
    let retracted = retractions(
        &events,
        (7, Commitment::Processed),
        RetractReason::Abandoned,
        now,
    );
    assert_eq!(retracted.len(), 1);
    let body = &bodies(&retracted)[0];
    assert_eq!(body["type"], "reverted");
    assert_eq!(
        (&body["slot"], &body["commitment"]),
        (&7.into(), &"processed".into())
    );
    assert_eq!(body["data"]["messageId"], events[0].id.as_str());
    assert_eq!(body["data"]["sequence"], 4);
    assert_eq!(body["data"]["type"], "transaction");
    assert_eq!(body["data"]["reason"], "abandoned");
    assert_eq!(retracted[0].order_key.as_deref(), Some("key"));
}

#[test]
fn only_retracted_events_are_reinstated_and_under_ids_of_their_own() {
    let filters = Filters {
        accounts: Vec::new(),
        programs: vec![fixtures::program()],
        ..Filters::default()
    };
    let subscriptions = subscriptions(Commitment::Processed, &filters);
    let emitted = compose(&subscriptions, Commitment::Processed, &slot_events());
    let retracted: Vec<_> = emitted.iter().skip(1).step_by(3).collect();
    let retractions: HashSet<_> = retracted
        .iter()
        .map(|first| retraction_id(&first.webhook, (7, Commitment::Processed), &first.id))
        .collect();
    let idls = Idls::built_in().expect("understood");
    let fallback = Timestamp::from_unix_seconds(0);
    let reinstate = |retractions: &HashSet<MessageId>| -> Vec<NewMessage> {
        let (block, events) = (block(), slot_events());
        reinstated(
            &subscriptions,
            &idls,
            &block,
            (&events, &LastOwners::default()),
            fallback,
            retractions,
        )
        .collect()
    };
    assert_eq!(reinstate(&HashSet::new()), []);
    let again = reinstate(&retractions);
    assert_eq!(again.len(), retracted.len());
    let known: HashSet<_> = emitted.iter().map(|first| &first.id).collect();
    for (first, again) in retracted.into_iter().zip(&again) {
        assert!(!known.contains(&again.id), "an id of its own");
        let renamed = NewMessage {
            id: first.id.clone(),
            ..again.clone()
        };
        assert_eq!(&renamed, first);
    }
}

#[test]
fn a_gap_is_reported_to_every_webhook_of_its_commitment() {
    const GAP: Gap = Gap { first: 3, last: 5 };
    let subscriptions = of_program(fixtures::program());
    let (now, all) = (
        Timestamp::from_unix_seconds(1),
        Lost::of(EventKind::ALL.into_iter().collect()),
    );
    assert!(gap(&subscriptions, Commitment::Finalized, GAP, &all, now).is_empty());
    let emitted = gap(&subscriptions, Commitment::Confirmed, GAP, &all, now);
    assert_eq!(emitted.len(), 2);
    let body = &bodies(&emitted)[0];
    assert_eq!(body["type"], "gap");
    assert_eq!(body["data"]["firstSlot"], 3);
    assert_eq!(
        (&body["data"]["lastSlot"], &body["slot"]),
        (&5.into(), &5.into())
    );
    let kinds = ["accountChange", "transaction", "programEvent"];
    let named = body["data"]["kinds"].as_array().expect("a list");
    assert!(
        !named.is_empty()
            && named
                .iter()
                .all(|kind| kinds.iter().any(|each| kind == each))
    );
}

#[test]
fn a_gap_names_the_programs_whose_accounts_do_not_follow_to_those_who_watch_them() {
    const GAP: Gap = Gap { first: 3, last: 5 };
    const COMMITMENT: Commitment = Commitment::Confirmed;
    let program = |byte| Pubkey::new_from_array([byte; 32]);
    let watching = |number, programs: &[u8]| {
        let filters = Filters {
            programs: programs.iter().copied().map(program).collect(),
            ..Filters::default()
        };
        active_webhook(number, COMMITMENT, filters)
    };
    let subscriptions = Subscriptions::new(&ActiveWebhooks {
        revision: Revision(1),
        webhooks: vec![watching(1, &[10, 11]), watching(2, &[11, 12])],
    });
    let lost = Lost::of([EventKind::AccountChange].into_iter().collect());
    let lost = lost.without_states_of(&[program(10)], &subscriptions, COMMITMENT);
    let now = Timestamp::from_unix_seconds(1);
    let emitted = gap(&subscriptions, COMMITMENT, GAP, &lost, now);
    let body = &bodies(&emitted)[0];
    let named = Value::from(vec![program(10).to_string()]);
    assert_eq!(body["data"]["statesOmitted"], named);
    let of_the_other = emitted[1].body.with_sequence(1);
    assert!(!of_the_other.contains("statesOmitted"), "{of_the_other}");
}

#[test]
fn a_webhook_with_conditions_gets_what_meets_them_and_its_neighbour_everything() {
    let filters = Filters {
        accounts: Vec::new(),
        programs: vec![fixtures::program()],
        ..Filters::default()
    };
    let webhook = |number, conditions| ActiveWebhook {
        id: WebhookId::from_random([number; 16]),
        owner: sluice_store::Tenant::default(),
        events: EventKind::ALL.into_iter().collect(),
        filters: filters.clone(),
        conditions,
        commitment: Commitment::Confirmed,
        heartbeat: None,
        filter_digest: filters.digest(),
        first_slot: None,
    };
    let kinds = |conditions| {
        let subscriptions = Subscriptions::new(&ActiveWebhooks {
            revision: Revision(1),
            webhooks: vec![webhook(1, conditions), webhook(2, Conditions::default())],
        });
        let composed = compose(&subscriptions, Commitment::Confirmed, &slot_events());
        let of_first = bodies(&composed);
        assert_eq!(composed.len(), of_first.len() + 5, "the neighbour's");
        let kinds = of_first
            .iter()
            .map(|body| body["type"].as_str().expect("text").to_owned());
        kinds.collect::<Vec<_>>()
    };
    let (change, event, transaction) = ("accountChange", "programEvent", "transaction");
    let failed = Conditions {
        outcome: TransactionOutcome::Failed,
        ..Conditions::default()
    };
    assert_eq!(kinds(failed), [change, change]);
    let named = Conditions {
        event_names: vec!["Swap".to_owned()],
        ..Conditions::default()
    };
    assert_eq!(kinds(named), [transaction, transaction, change, change]);
    let sized = Conditions {
        data_size: Some(4),
        ..Conditions::default()
    };
    assert_eq!(kinds(sized), [transaction, transaction, event]);
}
