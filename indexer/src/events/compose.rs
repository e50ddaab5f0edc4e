//! Messages from what happened (pure).

use std::sync::Arc;

use serde::Serialize;
use sluice_geyser::{AccountUpdate, TransactionUpdate};
use sluice_store::{Commitment, MessageKind, NewMessage, SlotMessage, Timestamp};
use solana_pubkey::Pubkey;

use super::{
    idl::Idls,
    message_id::{BlockId, Identity, message_id},
    payload,
    program_events::{invoked_programs, program_events},
    subscription_index::{Index, Position, Subscriptions},
};
use crate::slots::{Block, RevertReason, SlotContent};

/// The messages that a block causes at a commitment, in the order in which they are numbered: transactions
/// as the block executed them, each followed by its programs' events, then the accounts as they were last
/// written. `fallback` is the time for a block whose own is not known. Each is composed when it is asked for.
pub fn events<'a>(
    subscriptions: &'a Subscriptions,
    idls: &'a Idls,
    commitment: Commitment,
    block: &'a Block,
    content: &'a SlotContent,
    fallback: Timestamp,
) -> impl Iterator<Item = NewMessage> + use<'a> {
    let index = subscriptions.at(commitment);
    let happened = (!index.is_empty()).then(|| {
        let transactions = content.transactions().map(Happened::Transaction);
        transactions.chain(content.accounts().into_iter().map(Happened::Account))
    });
    let timestamp = block.time.map_or(fallback, Timestamp::from_unix_seconds);
    let mut composer = Composer {
        subscriptions,
        index,
        idls,
        commitment,
        block: BlockId {
            slot: block.slot,
            hash: &block.hash,
            revival: block.revival,
        },
        timestamp,
        concerned: Vec::new(),
        messages: Vec::new(),
    };
    happened.into_iter().flatten().flat_map(move |happened| {
        match happened {
            Happened::Transaction(transaction) => composer.transaction(transaction),
            Happened::Account(account) => composer.account_change(account),
        }
        std::mem::take(&mut composer.messages)
    })
}

/// Something of which messages may be due.
enum Happened<'a> {
    Transaction(&'a TransactionUpdate),
    Account(&'a AccountUpdate),
}

struct Composer<'a> {
    subscriptions: &'a Subscriptions,
    index: &'a Index,
    idls: &'a Idls,
    commitment: Commitment,
    block: BlockId<'a>,
    timestamp: Timestamp,
    /// Whom the current event concerns; kept to be used again.
    concerned: Vec<Position>,
    messages: Vec<NewMessage>,
}

impl Composer<'_> {
    fn account_change(&mut self, account: &AccountUpdate) {
        self.index
            .account_change(&account.pubkey, &account.owner, &mut self.concerned);
        let writer = account.txn_signature.as_ref();
        self.push(
            Identity::AccountChange(self.block, &account.pubkey, writer),
            Some(&account.pubkey),
            || payload::account_change(account),
        );
    }

    fn transaction(&mut self, transaction: &TransactionUpdate) {
        let programs = invoked_programs(transaction);
        let signer = transaction.account_keys.first();
        self.index
            .transaction(&transaction.account_keys, &programs, &mut self.concerned);
        self.push(
            Identity::Transaction(self.block, &transaction.signature),
            signer,
            || payload::transaction(transaction, &programs),
        );
        if !self.index.wants_program_events() {
            return;
        }
        let idls = self.idls;
        for (number, event) in program_events(transaction).iter().enumerate() {
            self.index
                .program_event(&event.program, &mut self.concerned);
            self.push(
                Identity::ProgramEvent(self.block, &transaction.signature, event.path),
                signer,
                || payload::program_event(event, &transaction.signature, number, idls),
            );
        }
    }

    /// One message per webhook concerned; the part that does not depend on the webhook is written once.
    fn push<D: Serialize>(
        &mut self,
        identity: Identity<'_>,
        order_key: Option<&Pubkey>,
        data: impl FnOnce() -> D,
    ) {
        if self.concerned.is_empty() {
            return;
        }
        let suffix = payload::suffix(self.block.slot, self.commitment, &data());
        let kind = identity.kind();
        for position in &self.concerned {
            let Some(webhook) = self.subscriptions.webhook(*position) else {
                continue;
            };
            self.messages.push(NewMessage {
                id: message_id(&webhook.id, self.commitment, identity),
                webhook: webhook.id.clone(),
                kind,
                commitment: self.commitment,
                slot: self.block.slot,
                order_key: order_key.map(ToString::to_string),
                body: payload::template(kind, self.timestamp, &webhook.id, Arc::clone(&suffix)),
            });
        }
    }
}

/// One message for each that was told at processed about a slot and is not true.
#[must_use]
pub fn reverted(
    told: &[SlotMessage],
    slot: u64,
    reason: RevertReason,
    now: Timestamp,
) -> Vec<NewMessage> {
    const COMMITMENT: Commitment = Commitment::Processed;
    told.iter()
        .filter(|first| matches!(first.kind, MessageKind::Event(_)))
        .map(|first| {
            let suffix = payload::suffix(slot, COMMITMENT, &payload::reverted(first, reason));
            NewMessage {
                id: message_id(
                    &first.webhook,
                    COMMITMENT,
                    Identity::Reverted(slot, &first.id),
                ),
                webhook: first.webhook.clone(),
                kind: MessageKind::Reverted,
                commitment: COMMITMENT,
                slot,
                order_key: first.order_key.clone(),
                body: payload::template(MessageKind::Reverted, now, &first.webhook, suffix),
            }
        })
        .collect()
}

/// Tells the webhooks at `commitment` that the slots from `first` to `last` are missing.
#[must_use]
pub fn gap(
    subscriptions: &Subscriptions,
    commitment: Commitment,
    first: u64,
    last: u64,
    now: Timestamp,
) -> Vec<NewMessage> {
    let suffix = payload::suffix(last, commitment, &payload::gap(first, last));
    subscriptions
        .webhooks()
        .iter()
        .filter(|webhook| webhook.commitment == commitment)
        .map(|webhook| NewMessage {
            id: message_id(&webhook.id, commitment, Identity::Gap(first, last)),
            webhook: webhook.id.clone(),
            kind: MessageKind::Gap,
            commitment,
            slot: last,
            order_key: None,
            body: payload::template(MessageKind::Gap, now, &webhook.id, Arc::clone(&suffix)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use sluice_geyser::Instruction;
    use sluice_store::{ActiveWebhook, ActiveWebhooks, EventKind, Filters, Revision, WebhookId};

    use super::*;
    use crate::slots::content::{Item, fixtures};

    fn subscriptions(commitment: Commitment, filters: &Filters) -> Subscriptions {
        let webhook = |number| ActiveWebhook {
            id: WebhookId::from_random([number; 16]),
            events: EventKind::ALL.into_iter().collect(),
            filters: filters.clone(),
            commitment,
            heartbeat: None,
            filter_digest: filters.digest(),
        };
        Subscriptions::new(&ActiveWebhooks {
            revision: Revision(1),
            webhooks: vec![webhook(1), webhook(2)],
        })
    }

    fn of_program(program: Pubkey) -> Subscriptions {
        let filters = Filters {
            accounts: Vec::new(),
            programs: vec![program],
        };
        subscriptions(Commitment::Confirmed, &filters)
    }

    fn block() -> Block {
        Block {
            slot: 7,
            hash: "hash".to_owned(),
            parent: 6,
            time: Some(1_767_225_600),
            revival: 0,
        }
    }

    fn content() -> SlotContent {
        let mut content = SlotContent::default();
        content.add(Item::Account(fixtures::account(7, 50, 9)));
        content.add(Item::Account(fixtures::account(7, 51, 3)));
        let mut transaction = fixtures::transaction(7, 4);
        let program = transaction.account_keys[0];
        transaction.log_messages = vec![
            format!("Program {program} invoke [1]"),
            "Program data: AQIDBAUGBwgJ".to_owned(),
            format!("Program {program} success"),
        ];
        content.add(Item::Transaction(Box::new(transaction)));
        content.add(Item::Transaction(Box::new(fixtures::transaction(7, 2))));
        content
    }

    fn compose(
        subscriptions: &Subscriptions,
        commitment: Commitment,
        content: &SlotContent,
    ) -> Vec<NewMessage> {
        let idls = Idls::built_in().expect("understood");
        let fallback = Timestamp::from_unix_seconds(0);
        events(
            subscriptions,
            &idls,
            commitment,
            &block(),
            content,
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
    fn messages_are_in_order_and_whole() {
        let subscriptions = of_program(fixtures::program());
        let composed = compose(&subscriptions, Commitment::Confirmed, &content());
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
    fn each_commitment_tells_those_who_asked_for_it() {
        let filters = Filters {
            accounts: Vec::new(),
            programs: vec![fixtures::program()],
        };
        let processed = subscriptions(Commitment::Processed, &filters);
        assert!(compose(&processed, Commitment::Confirmed, &content()).is_empty());
        let told = compose(&processed, Commitment::Processed, &content());
        let confirmed = compose(
            &of_program(fixtures::program()),
            Commitment::Confirmed,
            &content(),
        );
        assert_eq!(told.len(), confirmed.len());
        assert_eq!(bodies(&told)[0]["commitment"], "processed");
        assert_ne!(told[0].id, confirmed[0].id);
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
        let mut content = SlotContent::default();
        content.add(Item::Transaction(Box::new(transaction)));
        for filters in [
            Filters {
                accounts: vec![account],
                programs: Vec::new(),
            },
            Filters {
                accounts: Vec::new(),
                programs: vec![program],
            },
        ] {
            let subscriptions = subscriptions(Commitment::Confirmed, &filters);
            let told = compose(&subscriptions, Commitment::Confirmed, &content);
            let bodies = bodies(&told);
            assert_eq!(bodies.len(), 1, "{filters:?}");
            assert_eq!(bodies[0]["data"]["error"], "out of funds");
            assert_eq!(bodies[0]["data"]["programs"][1], program.to_string());
        }
    }

    #[test]
    fn a_replay_composes_the_same_messages() {
        let subscriptions = of_program(fixtures::program());
        let compose = || compose(&subscriptions, Commitment::Confirmed, &content());
        assert_eq!(compose(), compose());
    }

    #[test]
    fn what_concerns_nobody_makes_no_message() {
        let other = of_program(Pubkey::new_from_array([200; 32]));
        assert_eq!(compose(&other, Commitment::Confirmed, &content()), []);
    }

    #[test]
    fn events_are_taken_back_one_by_one_and_nothing_else_is() {
        let told = |number: u8, kind| SlotMessage {
            id: sluice_store::MessageId::from_bytes([number; 32]),
            webhook: WebhookId::from_random([1; 16]),
            sequence: number.into(),
            kind,
            order_key: Some("key".to_owned()),
        };
        let events = [
            told(4, MessageKind::Event(EventKind::Transaction)),
            told(5, MessageKind::Reverted),
        ];
        let now = Timestamp::from_unix_seconds(1);
        let taken_back = reverted(&events, 7, RevertReason::Abandoned, now);
        assert_eq!(taken_back.len(), 1);
        let body = &bodies(&taken_back)[0];
        assert_eq!(body["type"], "reverted");
        assert_eq!(
            (&body["slot"], &body["commitment"]),
            (&7.into(), &"processed".into())
        );
        assert_eq!(body["data"]["messageId"], events[0].id.as_str());
        assert_eq!(body["data"]["sequence"], 4);
        assert_eq!(body["data"]["type"], "transaction");
        assert_eq!(body["data"]["reason"], "abandoned");
        assert_eq!(taken_back[0].order_key.as_deref(), Some("key"));
    }

    #[test]
    fn a_gap_is_told_to_every_webhook_of_its_commitment() {
        let subscriptions = of_program(fixtures::program());
        let now = Timestamp::from_unix_seconds(1);
        assert!(gap(&subscriptions, Commitment::Finalized, 3, 5, now).is_empty());
        let told = gap(&subscriptions, Commitment::Confirmed, 3, 5, now);
        assert_eq!(told.len(), 2);
        let body = &bodies(&told)[0];
        assert_eq!(body["type"], "gap");
        assert_eq!(body["data"]["firstSlot"], 3);
        assert_eq!(
            (&body["data"]["lastSlot"], &body["slot"]),
            (&5.into(), &5.into())
        );
    }
}
