//! Composes the messages of a slot's events, of retractions, of reinstated events, of gaps and of pauses (pure).

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use serde::Serialize;
use sluice_geyser::{AccountUpdate, TransactionUpdate};
use sluice_store::{
    Commitment, Conditions, EventKind, MessageId, MessageKind, NewMessage, Pause, Revision,
    SlotMessage, Tenant, Timestamp, WebhookId,
};
use solana_pubkey::Pubkey;

use super::{
    conditions::{self, EventName},
    exchange_mints::exchange_mints,
    idl::{Decoder, Idls},
    lost::Lost,
    message_id::{BlockId, MessageIdentity, message_id, retraction_id},
    payload,
    program_events::{ProgramEvent, invoked_programs, program_events},
    subscriber::Subscriber,
    subscription_index::{AccountWatchers, SubscriberIndex, SubscriptionIndex, Subscriptions},
};
use crate::slots::{Block, Gap, LastOwners, RetractReason, SlotEvents, Taken};

/// The incarnation of what is emitted again after it was retracted. That happens at confirmed, hence once.
const REINSTATED: u32 = 1;

/// The messages that the events of a block cause at a commitment, in the order in which they are numbered: transactions
/// as the block executed them, each followed by its programs' events, then the accounts as they were last
/// written, then those that were taken. `last_owners` are those of accounts that left a program, whose webhooks are sent them, too. `fallback` is the
/// time for a block whose own is not known. Each is composed when it is asked for.
pub fn events<'a>(
    subscriptions: &'a Subscriptions,
    idls: &'a Idls,
    commitment: Commitment,
    block: &'a Block,
    (events, last_owners): (&'a SlotEvents, &'a LastOwners),
    fallback: Timestamp,
) -> impl Iterator<Item = NewMessage> + use<'a> {
    let place = (commitment, block);
    let composer = Composer::new(subscriptions, idls, place, last_owners, fallback);
    composer.messages_of(events)
}

/// The messages that emit again, under ids of their own, those events of a block at processed whose retractions are
/// among `retractions`.
pub fn reinstated<'a>(
    subscriptions: &'a Subscriptions,
    idls: &'a Idls,
    block: &'a Block,
    (events, last_owners): (&'a SlotEvents, &'a LastOwners),
    fallback: Timestamp,
    retractions: &'a HashSet<MessageId>,
) -> impl Iterator<Item = NewMessage> + use<'a> {
    let place = (Commitment::Processed, block);
    let mut composer = Composer::new(subscriptions, idls, place, last_owners, fallback);
    composer.retractions = Some(retractions);
    composer.messages_of(events)
}

/// What a message is composed of.
enum Composed<'a> {
    Transaction(&'a TransactionUpdate),
    Account(&'a AccountUpdate, AccountWatchers),
    Taken(&'a Taken),
}

struct Composer<'a> {
    subscriptions: &'a Subscriptions,
    index: &'a SubscriptionIndex,
    idls: &'a Idls,
    commitment: Commitment,
    block: BlockId<'a>,
    /// As the messages say it, all of them the same.
    timestamp: String,
    last_owners: &'a LastOwners,
    /// Where given, only events with one of these retractions are emitted, as reinstated.
    retractions: Option<&'a HashSet<MessageId>>,
    /// The webhooks that the current event matches; kept to be used again.
    matched: Vec<SubscriberIndex>,
    messages: Vec<NewMessage>,
}

impl<'a> Composer<'a> {
    fn new(
        subscriptions: &'a Subscriptions,
        idls: &'a Idls,
        (commitment, block): (Commitment, &'a Block),
        last_owners: &'a LastOwners,
        fallback: Timestamp,
    ) -> Self {
        let timestamp = block.time.map_or(fallback, Timestamp::from_unix_seconds);
        Self {
            subscriptions,
            index: subscriptions.at(commitment),
            idls,
            commitment,
            block: BlockId {
                slot: block.slot,
                hash: &block.hash,
                incarnation: 0,
            },
            timestamp: timestamp.to_string(),
            last_owners,
            retractions: None,
            matched: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn messages_of(mut self, events: &'a SlotEvents) -> impl Iterator<Item = NewMessage> + use<'a> {
        // Putting events in order costs something, which a commitment without webhooks is spared.
        let events = (!self.index.is_empty()).then(|| {
            let accounts = events.accounts();
            let watchers = self.index.look_up(accounts.iter().map(|each| &each.pubkey));
            let accounts = accounts.into_iter().zip(watchers);
            let accounts = accounts.map(|(account, watchers)| Composed::Account(account, watchers));
            let taken = self.last_owners.taken().iter().map(Composed::Taken);
            let transactions = events.transactions().map(Composed::Transaction);
            transactions.chain(accounts).chain(taken)
        });
        events.into_iter().flatten().flat_map(move |event| {
            match event {
                Composed::Transaction(transaction) => self.transaction(transaction),
                Composed::Account(account, watchers) => self.account_change(account, watchers),
                Composed::Taken(taken) => self.taken(taken),
            }
            std::mem::take(&mut self.messages)
        })
    }

    fn account_change(&mut self, account: &AccountUpdate, watchers: AccountWatchers) {
        let writer = account.txn_signature.as_ref();
        let identity = MessageIdentity::AccountChange(self.block, &account.pubkey, writer);
        let mut composed = Vec::new();
        for owner in self.last_owners.of(&account.pubkey) {
            self.index.watchers_of_program(owner, &mut self.matched);
            self.matched.retain(|each| !composed.contains(each));
            self.keep_those_that_want(|conditions| conditions::account(conditions, account));
            composed.extend_from_slice(&self.matched);
            self.push(identity, Some(&account.pubkey), || {
                payload::account_change(account, Some(owner))
            });
        }
        self.index
            .account_change(watchers, &account.owner, &mut self.matched);
        self.matched.retain(|each| !composed.contains(each));
        self.keep_those_that_want(|conditions| conditions::account(conditions, account));
        self.push(identity, Some(&account.pubkey), || {
            payload::account_change(account, None)
        });
    }

    /// Who watches the program is told. Conditions are on the account as it is now.
    fn taken(&mut self, taken: &Taken) {
        let taking = &taken.taking;
        self.index
            .watchers_of_program(&taking.last_owner, &mut self.matched);
        self.keep_those_that_want(|wanted| conditions::account(wanted, &taken.state));
        let identity =
            MessageIdentity::AccountChange(self.block, &taking.account, Some(&taking.by));
        self.push(identity, Some(&taking.account), || {
            payload::account_taken(taken)
        });
    }

    fn transaction(&mut self, transaction: &TransactionUpdate) {
        let programs = invoked_programs(transaction);
        let signer = transaction.account_keys.first();
        self.index.transaction(
            &transaction.account_keys,
            &programs,
            transaction.token_owners(),
            &mut self.matched,
        );
        self.keep_those_that_want(|conditions| conditions::transaction(conditions, transaction));
        self.push(
            MessageIdentity::Transaction(self.block, &transaction.signature),
            signer,
            || payload::transaction(transaction, &programs),
        );
        if !self.index.wants_program_events() {
            return;
        }
        for (number, event) in program_events(transaction).iter().enumerate() {
            self.index.program_event(&event.program, &mut self.matched);
            self.program_event(transaction, (number, event));
        }
    }

    /// Owners with an IDL of their own see an event as that describes it, all others as the shared one does.
    fn program_event(
        &mut self,
        transaction: &TransactionUpdate,
        (number, event): (usize, &ProgramEvent),
    ) {
        let idls = self.idls;
        let own = |owner: Tenant| idls.own(owner, &event.program);
        let owners = self.owners_of_matched();
        let (with_own, others): (BTreeSet<Tenant>, BTreeSet<Tenant>) =
            owners.into_iter().partition(|owner| own(*owner).is_some());
        if with_own.is_empty() {
            return self.decoded_event(transaction, (number, event), idls.shared());
        }
        let matched = std::mem::take(&mut self.matched);
        let groups = with_own
            .iter()
            .map(|owner| (BTreeSet::from([*owner]), own(*owner)));
        let groups: Vec<_> = groups.chain([(others, Some(idls.shared()))]).collect();
        for (owners, decoder) in groups {
            let is_of_group = |index: &&SubscriberIndex| {
                let webhook = self.subscriptions.webhook(**index);
                webhook.is_some_and(|webhook| owners.contains(&webhook.owner))
            };
            self.matched = matched.iter().filter(is_of_group).copied().collect();
            let decoder = decoder.unwrap_or(idls.shared());
            self.decoded_event(transaction, (number, event), decoder);
        }
    }

    fn owners_of_matched(&self) -> BTreeSet<Tenant> {
        let matched = self.matched.iter();
        let webhooks = matched.filter_map(|index| self.subscriptions.webhook(*index));
        webhooks.map(|webhook| webhook.owner).collect()
    }

    fn decoded_event(
        &mut self,
        transaction: &TransactionUpdate,
        (number, event): (usize, &ProgramEvent),
        decoder: Decoder<'_>,
    ) {
        let (name, idls) = (EventName::new(event, decoder), self.idls);
        self.keep_those_that_want(|conditions| {
            conditions::transaction(conditions, transaction) && name.is_wanted(conditions)
        });
        self.push(
            MessageIdentity::ProgramEvent(self.block, &transaction.signature, event.path),
            transaction.account_keys.first(),
            || {
                let mints = exchange_mints(transaction, event, idls);
                payload::program_event(event, (&transaction.signature, number), decoder, mints)
            },
        );
    }

    /// Leaves those of the matched webhooks whose conditions are met.
    fn keep_those_that_want(&mut self, met: impl Fn(&Conditions) -> bool) {
        let subscriptions = self.subscriptions;
        self.matched.retain(|index| {
            let webhook = subscriptions.webhook(*index);
            webhook.is_some_and(|webhook| webhook.wants(&met))
        });
    }

    /// One message per webhook matched; the part that does not depend on the webhook is written once.
    fn push<D: Serialize>(
        &mut self,
        identity: MessageIdentity<'_>,
        order_key: Option<&Pubkey>,
        data: impl FnOnce() -> D,
    ) {
        let mut messages = std::mem::take(&mut self.messages);
        let slot = self.block.slot;
        let webhooks = self
            .matched
            .iter()
            .filter_map(|index| self.subscriptions.webhook(*index));
        let mut due = webhooks
            .filter(|webhook| webhook.is_told_of(slot))
            .filter_map(|webhook| Some((webhook, self.id(&webhook.id, identity)?)))
            .peekable();
        if due.peek().is_some() {
            let suffix = payload::suffix(slot, self.commitment, &data());
            let kind = identity.kind();
            messages.extend(due.map(|(webhook, id)| NewMessage {
                id,
                webhook: webhook.id.clone(),
                kind,
                commitment: self.commitment,
                slot,
                order_key: order_key.map(ToString::to_string),
                body: payload::template(kind, &self.timestamp, &webhook.id, Arc::clone(&suffix)),
            }));
        }
        self.messages = messages;
    }

    /// The id of the message to a webhook; `None` when it is none to be reinstated.
    fn id(&self, webhook: &WebhookId, identity: MessageIdentity<'_>) -> Option<MessageId> {
        let id = message_id(webhook, self.commitment, identity);
        let Some(retractions) = self.retractions else {
            return Some(id);
        };
        let retracted = retractions.contains(&retraction_id(
            webhook,
            (self.block.slot, self.commitment),
            &id,
        ));
        retracted.then(|| {
            let reinstated = identity.with_incarnation(REINSTATED);
            message_id(webhook, self.commitment, reinstated)
        })
    }
}

/// One `reverted` message for each event that was emitted about a slot at this commitment.
#[must_use]
pub fn retractions(
    emitted: &[SlotMessage],
    (slot, commitment): (u64, Commitment),
    reason: RetractReason,
    now: Timestamp,
) -> Vec<NewMessage> {
    emitted
        .iter()
        .filter(|first| matches!(first.kind, MessageKind::Event(_)))
        .map(|first| {
            let suffix = payload::suffix(slot, commitment, &payload::reverted(first, reason));
            NewMessage {
                id: retraction_id(&first.webhook, (slot, commitment), &first.id),
                webhook: first.webhook.clone(),
                kind: MessageKind::Reverted,
                commitment,
                slot,
                order_key: first.order_key.clone(),
                body: payload::template(MessageKind::Reverted, now, &first.webhook, suffix),
            }
        })
        .collect()
}

/// One `gap` message for each webhook at `commitment` that wants events of the kinds that are `lost`.
#[must_use]
pub fn gap(
    subscriptions: &Subscriptions,
    commitment: Commitment,
    gap: Gap,
    lost: &Lost,
    now: Timestamp,
) -> Vec<NewMessage> {
    let webhooks = subscriptions.webhooks().iter();
    webhooks
        .filter(|webhook| webhook.commitment == commitment)
        .filter_map(|webhook| Some((webhook, payload::gap(gap, lost, webhook)?)))
        .map(|(webhook, data)| {
            let suffix = payload::suffix(gap.last, commitment, &data);
            NewMessage {
                id: message_id(&webhook.id, commitment, MessageIdentity::Gap(gap)),
                webhook: webhook.id.clone(),
                kind: MessageKind::Gap,
                commitment,
                slot: gap.last,
                order_key: None,
                body: payload::template(MessageKind::Gap, now, &webhook.id, suffix),
            }
        })
        .collect()
}

/// The `filterRefused` message to a webhook whose filter is refused at `revision`. `slot` is the last one read.
#[must_use]
pub fn filter_refused(
    webhook: &Subscriber,
    revision: Revision,
    reason: &str,
    slot: u64,
    now: Timestamp,
) -> NewMessage {
    let (kind, commitment) = (MessageKind::FilterRefused, webhook.commitment);
    let identity = MessageIdentity::FilterRefused(revision.0);
    let suffix = payload::suffix(slot, commitment, &payload::filter_refused(webhook, reason));
    NewMessage {
        id: message_id(&webhook.id, commitment, identity),
        webhook: webhook.id.clone(),
        kind,
        commitment,
        slot,
        order_key: None,
        body: payload::template(kind, now, &webhook.id, suffix),
    }
}

/// The `resumed` message to a webhook that was switched off and watches again.
#[must_use]
pub fn resumed(pause: &Pause, now: Timestamp) -> NewMessage {
    let (kind, commitment) = (MessageKind::Resumed, pause.commitment);
    let slots = Gap {
        first: pause.first_slot,
        last: pause.last_slot,
    };
    let suffix = payload::suffix(slots.last, commitment, &payload::resumed(slots));
    NewMessage {
        id: message_id(&pause.webhook, commitment, MessageIdentity::Resumed(slots)),
        webhook: pause.webhook.clone(),
        kind,
        commitment,
        slot: slots.last,
        order_key: None,
        body: payload::template(kind, now, &pause.webhook, suffix),
    }
}

/// After a gap, one `accountChange` message for each account as it is now and each webhook at `commitment` that watches
/// it, or the program that it is known to have belonged to.
#[must_use]
pub fn account_states(
    subscriptions: &Subscriptions,
    commitment: Commitment,
    gap: Gap,
    states: &[(AccountUpdate, Option<Pubkey>)],
    now: Timestamp,
) -> Vec<NewMessage> {
    const KIND: MessageKind = MessageKind::Event(EventKind::AccountChange);
    let index = subscriptions.at(commitment);
    let (mut messages, mut watching, mut by_program) = (Vec::new(), Vec::new(), Vec::new());
    let watchers = index.look_up(states.iter().map(|(state, _)| &state.pubkey));
    for ((state, program), watchers) in states.iter().zip(watchers) {
        index.account_change(watchers, &state.owner, &mut watching);
        if let Some(program) = program.filter(|program| *program != state.owner) {
            index.watchers_of_program(&program, &mut by_program);
            by_program.retain(|each| !watching.contains(each));
            watching.append(&mut by_program);
        }
        let data = payload::account_state(state, *program);
        let suffix = payload::suffix(state.slot, commitment, &data);
        let identity = MessageIdentity::AccountState(state.slot, gap, &state.pubkey);
        let webhooks = watching
            .iter()
            .filter_map(|at| subscriptions.webhook(*at))
            .filter(|webhook| webhook.wants(|conditions| conditions::account(conditions, state)));
        messages.extend(webhooks.map(|webhook| NewMessage {
            id: message_id(&webhook.id, commitment, identity),
            webhook: webhook.id.clone(),
            kind: KIND,
            commitment,
            slot: state.slot,
            order_key: Some(state.pubkey.to_string()),
            body: payload::template(KIND, now, &webhook.id, Arc::clone(&suffix)),
        }));
    }
    messages
}

#[cfg(test)]
mod tests;
