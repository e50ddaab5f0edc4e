//! The messages of one slot (pure).

use std::sync::Arc;

use serde_json::Value;
use sluice_geyser::{AccountUpdate, TransactionUpdate};
use sluice_store::{BodyTemplate, EventKind, NewDelivery, Timestamp, WebhookId};

use super::{
    COMMITMENT, body,
    match_event::Subscriptions,
    message_id::{Identity, message_id},
    program_events::{invoked_programs, program_events},
};
use crate::project::SlotContent;

/// The messages that a slot's content causes, in the order in which they are numbered: transactions as
/// the block executed them, each followed by its programs' events, then the accounts as they were last
/// written. `fallback` is the time for a block whose own is not known.
#[must_use]
pub fn messages(
    subscriptions: &Subscriptions,
    slot: u64,
    content: &SlotContent,
    fallback: Timestamp,
) -> Vec<NewDelivery> {
    let timestamp = content
        .block_time()
        .map_or(fallback, Timestamp::from_unix_seconds);
    let mut slot = Composer {
        subscriptions,
        slot,
        timestamp,
        messages: Vec::new(),
    };
    for transaction in content.transactions() {
        slot.transaction(transaction);
    }
    for account in content.accounts() {
        slot.account_change(account);
    }
    slot.messages
}

struct Composer<'a> {
    subscriptions: &'a Subscriptions,
    slot: u64,
    timestamp: Timestamp,
    messages: Vec<NewDelivery>,
}

impl Composer<'_> {
    fn account_change(&mut self, account: &AccountUpdate) {
        let concerned = self
            .subscriptions
            .account_change(&account.pubkey, &account.owner);
        self.push(
            &concerned,
            EventKind::AccountChange,
            Identity::AccountChange(&account.pubkey),
            || body::account_change(account),
        );
    }

    fn transaction(&mut self, transaction: &TransactionUpdate) {
        let programs = invoked_programs(transaction);
        let concerned = self
            .subscriptions
            .transaction(&transaction.account_keys, &programs);
        self.push(
            &concerned,
            EventKind::Transaction,
            Identity::Transaction(&transaction.signature),
            || body::transaction(transaction, &programs),
        );
        if !self.subscriptions.want_program_events() {
            return;
        }
        for (index, event) in program_events(transaction).iter().enumerate() {
            let concerned = self.subscriptions.program_event(&event.program);
            self.push(
                &concerned,
                EventKind::ProgramEvent,
                Identity::ProgramEvent(&transaction.signature, event.path),
                || body::program_event(event, &transaction.signature, index),
            );
        }
    }

    /// One message per webhook; the part that does not depend on the webhook is written once.
    fn push(
        &mut self,
        concerned: &[&WebhookId],
        kind: EventKind,
        identity: Identity<'_>,
        data: impl FnOnce() -> Value,
    ) {
        if concerned.is_empty() {
            return;
        }
        let suffix: Arc<str> = format!(
            r#","slot":{},"commitment":"{COMMITMENT}","data":{}}}"#,
            self.slot,
            data()
        )
        .into();
        for webhook in concerned {
            // None of these values needs escaping: they are made of letters, digits and `_-:.`.
            let prefix = format!(
                r#"{{"type":"{kind}","timestamp":"{}","webhookId":"{webhook}","sequence":"#,
                self.timestamp
            );
            self.messages.push(NewDelivery {
                id: message_id(webhook, self.slot, identity),
                webhook: (*webhook).clone(),
                slot: self.slot,
                body: BodyTemplate::new(prefix, Arc::clone(&suffix)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::{Filters, LiveWebhook, LiveWebhooks, Revision};
    use solana_pubkey::Pubkey;

    use super::*;
    use crate::project::{SlotBuffer, fixtures};

    fn subscriptions(programs: Vec<Pubkey>) -> Subscriptions {
        let webhook = |number| LiveWebhook {
            id: WebhookId::from_random([number; 16]),
            events: EventKind::ALL.into_iter().collect(),
            filters: Filters {
                accounts: Vec::new(),
                programs: programs.clone(),
            },
        };
        Subscriptions::new(LiveWebhooks {
            revision: Revision(1),
            webhooks: vec![webhook(1), webhook(2)],
        })
    }

    fn slot() -> SlotContent {
        let mut buffer = SlotBuffer::default();
        buffer.account(fixtures::account(7, 50, 9)).expect("room");
        buffer.account(fixtures::account(7, 51, 3)).expect("room");
        let mut transaction = fixtures::transaction(7, 4);
        let program = transaction.account_keys[0];
        transaction.log_messages = vec![
            format!("Program {program} invoke [1]"),
            "Program data: AQIDBAUGBwgJ".to_owned(),
            format!("Program {program} success"),
        ];
        buffer.transaction(transaction).expect("room");
        buffer
            .transaction(fixtures::transaction(7, 2))
            .expect("room");
        buffer.block_meta(7, Some(1_767_225_600));
        buffer.take_settled(7).pop().expect("one slot").1
    }

    #[test]
    fn messages_are_in_order_and_whole() {
        let program = fixtures::program();
        let composed = messages(
            &subscriptions(vec![program]),
            7,
            &slot(),
            Timestamp::from_unix_seconds(0),
        );
        let bodies: Vec<Value> = composed
            .iter()
            .filter(|message| message.webhook == WebhookId::from_random([1; 16]))
            .zip(1..)
            .map(|(message, sequence)| {
                serde_json::from_str(&message.body.with_sequence(sequence)).expect("JSON")
            })
            .collect();
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
        assert_eq!(
            bodies[3]["data"]["pubkey"],
            Pubkey::new_from_array([51; 32]).to_string()
        );

        let first = &bodies[0];
        assert_eq!(first.as_object().expect("an object").len(), 7);
        assert_eq!(
            first["timestamp"], "2026-01-01T00:00:00Z",
            "the block's time"
        );
        assert_eq!(first["webhookId"], WebhookId::from_random([1; 16]).as_str());
        assert_eq!(
            (&first["sequence"], &first["slot"]),
            (&Value::from(1), &Value::from(7))
        );
        assert_eq!(first["commitment"], "confirmed");
    }

    #[test]
    fn a_replay_composes_the_same_messages() {
        let subscriptions = subscriptions(vec![fixtures::program()]);
        let (one, other) = (
            Timestamp::from_unix_seconds(1),
            Timestamp::from_unix_seconds(2),
        );
        assert_eq!(
            messages(&subscriptions, 7, &slot(), one),
            messages(&subscriptions, 7, &slot(), other)
        );
    }

    #[test]
    fn what_concerns_nobody_makes_no_message() {
        let other = subscriptions(vec![Pubkey::new_from_array([200; 32])]);
        assert_eq!(
            messages(&other, 7, &slot(), Timestamp::from_unix_seconds(0)),
            []
        );
    }
}
