//! Which webhooks does an event concern (pure).
//!
//! The index is built once per revision of the webhooks. Looking an event up costs one hash look-up per
//! key that the event touches, however many webhooks there are.

use std::collections::HashMap;

use sluice_store::{LiveWebhooks, Revision, WebhookId};
use solana_pubkey::Pubkey;

/// Position of a webhook in [`Subscriptions`].
type Position = u32;

/// Who wants to hear of a key.
type Interest = HashMap<Pubkey, Vec<Position>>;

/// Every active webhook, by what it wants to hear of.
#[derive(Debug, Default)]
pub struct Subscriptions {
    revision: Revision,
    webhooks: Vec<WebhookId>,
    changes_of_accounts: Interest,
    changes_by_owner: Interest,
    transactions_with_account: Interest,
    transactions_invoking: Interest,
    events_of_program: Interest,
}

impl Subscriptions {
    /// Builds the index.
    #[must_use]
    pub fn new(live: LiveWebhooks) -> Self {
        let mut index = Self {
            revision: live.revision,
            ..Self::default()
        };
        for webhook in live.webhooks {
            let position = Position::try_from(index.webhooks.len()).unwrap_or(Position::MAX);
            let (accounts, programs) = (&webhook.filters.accounts, &webhook.filters.programs);
            if webhook.events.account_change {
                insert(&mut index.changes_of_accounts, accounts, position);
                insert(&mut index.changes_by_owner, programs, position);
            }
            if webhook.events.transaction {
                insert(&mut index.transactions_with_account, accounts, position);
                insert(&mut index.transactions_invoking, programs, position);
            }
            if webhook.events.program_event {
                insert(&mut index.events_of_program, programs, position);
            }
            index.webhooks.push(webhook.id);
        }
        index
    }

    /// The revision of the webhooks this index was built from.
    #[must_use]
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Whom the write of an account concerns: it is named, or its owner is.
    #[must_use]
    pub fn account_change(&self, account: &Pubkey, owner: &Pubkey) -> Vec<&WebhookId> {
        let named = self.changes_of_accounts.get(account);
        self.webhooks(named.into_iter().chain(self.changes_by_owner.get(owner)))
    }

    /// Whom a transaction concerns: it mentions a named account, or invokes a named program.
    #[must_use]
    pub fn transaction(&self, accounts: &[Pubkey], invoked: &[Pubkey]) -> Vec<&WebhookId> {
        let mentioning = accounts
            .iter()
            .filter_map(|key| self.transactions_with_account.get(key));
        let invoking = invoked
            .iter()
            .filter_map(|key| self.transactions_invoking.get(key));
        self.webhooks(mentioning.chain(invoking))
    }

    /// Whom an event of a program concerns: the program is named.
    #[must_use]
    pub fn program_event(&self, program: &Pubkey) -> Vec<&WebhookId> {
        self.webhooks(self.events_of_program.get(program).into_iter())
    }

    /// Whether any webhook wants events of programs at all; otherwise nobody needs to look for them.
    #[must_use]
    pub fn want_program_events(&self) -> bool {
        !self.events_of_program.is_empty()
    }

    /// Accounts whose writes must be streamed.
    pub fn watched_accounts(&self) -> impl Iterator<Item = &Pubkey> {
        self.changes_of_accounts.keys()
    }

    /// Programs whose accounts' writes must be streamed.
    pub fn watched_owners(&self) -> impl Iterator<Item = &Pubkey> {
        self.changes_by_owner.keys()
    }

    /// Keys of which one must be mentioned by a transaction that is streamed. A program that is invoked
    /// is always mentioned.
    pub fn mentioned_keys(&self) -> impl Iterator<Item = &Pubkey> {
        let accounts = self.transactions_with_account.keys();
        accounts
            .chain(self.transactions_invoking.keys())
            .chain(self.events_of_program.keys())
    }

    /// Each webhook once, in order of creation.
    fn webhooks<'a>(
        &'a self,
        lists: impl Iterator<Item = &'a Vec<Position>>,
    ) -> Vec<&'a WebhookId> {
        let mut positions: Vec<Position> = lists.flatten().copied().collect();
        positions.sort_unstable();
        positions.dedup();
        let webhook = |position| self.webhooks.get(usize::try_from(position).ok()?);
        positions.into_iter().filter_map(webhook).collect()
    }
}

fn insert(interest: &mut Interest, keys: &[Pubkey], position: Position) {
    for key in keys {
        interest.entry(*key).or_default().push(position);
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::{EventKind, Filters, LiveWebhook};

    use super::*;

    fn key(number: u8) -> Pubkey {
        Pubkey::new_from_array([number; 32])
    }

    fn id(number: u8) -> WebhookId {
        WebhookId::from_random([number; 16])
    }

    /// Number, kinds, accounts and programs of a webhook.
    type Definition<'a> = (u8, &'a [EventKind], &'a [u8], &'a [u8]);

    fn index(webhooks: &[Definition<'_>]) -> Subscriptions {
        let keys = |numbers: &[u8]| numbers.iter().copied().map(key).collect();
        let webhooks = webhooks
            .iter()
            .map(|(number, events, accounts, programs)| LiveWebhook {
                id: id(*number),
                events: events.iter().copied().collect(),
                filters: Filters {
                    accounts: keys(accounts),
                    programs: keys(programs),
                },
            })
            .collect();
        Subscriptions::new(LiveWebhooks {
            revision: Revision(5),
            webhooks,
        })
    }

    #[test]
    fn an_account_is_matched_by_its_key_or_its_owner() {
        let index = index(&[
            (1, &[EventKind::AccountChange], &[10], &[]),
            (2, &[EventKind::AccountChange], &[], &[20]),
            (3, &[EventKind::AccountChange], &[10, 11], &[20]),
        ]);
        assert_eq!(index.account_change(&key(10), &key(99)), [&id(1), &id(3)]);
        assert_eq!(index.account_change(&key(99), &key(20)), [&id(2), &id(3)]);
        assert_eq!(
            index.account_change(&key(10), &key(20)),
            [&id(1), &id(2), &id(3)],
            "each once"
        );
        assert!(
            index.account_change(&key(20), &key(10)).is_empty(),
            "the roles are not mixed up"
        );
    }

    #[test]
    fn a_transaction_is_matched_by_mention_of_an_account_or_invocation_of_a_program() {
        let index = index(&[
            (1, &[EventKind::Transaction], &[10], &[]),
            (2, &[EventKind::Transaction], &[], &[20]),
        ]);
        assert_eq!(index.transaction(&[key(9), key(10)], &[key(21)]), [&id(1)]);
        assert_eq!(index.transaction(&[key(9)], &[key(20)]), [&id(2)]);
        assert!(
            index.transaction(&[key(20)], &[]).is_empty(),
            "mentioning a program is not invoking it"
        );
    }

    #[test]
    fn an_event_is_matched_by_its_program_alone() {
        let index = index(&[(1, &EventKind::ALL, &[10], &[20])]);
        assert_eq!(index.program_event(&key(20)), [&id(1)]);
        assert!(index.program_event(&key(10)).is_empty());
    }

    #[test]
    fn kinds_that_were_not_asked_for_do_not_match() {
        let index = index(&[(1, &[EventKind::ProgramEvent], &[10], &[20])]);
        assert!(index.account_change(&key(10), &key(20)).is_empty());
        assert!(index.transaction(&[key(10)], &[key(20)]).is_empty());
        assert!(index.watched_accounts().next().is_none());
        assert_eq!(index.mentioned_keys().collect::<Vec<_>>(), [&key(20)]);
    }
}
