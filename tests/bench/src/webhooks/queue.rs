//! Message queue of a store, filled by the indexer's own code from the accounts of a population.

use std::time::Instant;

use service_kit::Clock;
use sluice_geyser::AccountUpdate;
use sluice_indexer::{
    delivery::capacity::{self, DispatchCapacity, Reservation},
    events::{compose, idl::Idls, subscription_index::Subscriptions},
    slots::{Block, LastOwners, SlotEvent, SlotEvents},
    to_lease::ToLease,
};
use sluice_store::{
    Access, Commit, Commitment, EventKind, Filters, NewMessage, NewWebhook, PendingCommit, Secret,
    Secrets, Store, Timestamp, WebhookDefinition, WebhookId,
};
use sluice_testkit::{population::Population, updates::written};
use solana_pubkey::Pubkey;
use solana_signature::Signature;

/// Pools of the chain. Each is watched by one webhook.
pub const POOLS: u64 = 10_000;

/// Most webhooks that a queue is made for.
const MOST_WEBHOOKS: u32 = 1_000;

const CHAIN: Population = Population {
    pools: POOLS,
    per_pair: 4,
    quote_tokens: 1,
};

/// The store, and who is owed.
pub struct Queue {
    /// Where messages wait.
    pub store: Store,
    /// The webhooks, in order of creation.
    pub webhooks: Vec<WebhookId>,
    subscriptions: Subscriptions,
    idls: Idls,
    slot: u64,
}

/// Messages that are stored and perhaps not on the disk yet.
pub struct Written {
    pending: PendingCommit,
    reservation: Option<Reservation>,
}

impl Written {
    /// Waits until they are on the disk, tells of those that are not leased, and submits the others to the dispatcher. Returns when
    /// they were on the disk.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn submit(self, to_lease: &ToLease) -> anyhow::Result<Instant> {
        let (committed, leased) = self.pending.durable().await?;
        let stored = Instant::now();
        capacity::hand_over(&committed, leased, self.reservation, to_lease);
        Ok(stored)
    }
}

impl Queue {
    /// Makes a webhook for each URL. They watch the pools in turn, at this commitment.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn create(
        store: Store,
        urls: &[String],
        commitment: Commitment,
    ) -> anyhow::Result<Self> {
        Self::create_with(store, urls, |_, new| new.definition.commitment = commitment).await
    }

    /// As [`Queue::create`]; `adjust` is given each webhook and its number before it is stored.
    ///
    /// # Errors
    /// As [`Queue::create`].
    pub async fn create_with(
        store: Store,
        urls: &[String],
        adjust: impl Fn(usize, &mut NewWebhook),
    ) -> anyhow::Result<Self> {
        let mut webhooks = Vec::new();
        for (number, url) in urls.iter().enumerate() {
            let accounts = (number..usize::try_from(POOLS)?).step_by(urls.len());
            let accounts = accounts
                .map(|pool| Ok(pool_address(u64::try_from(pool)?)))
                .collect::<anyhow::Result<_>>()?;
            let filters = Filters {
                accounts,
                programs: Vec::new(),
                ..Filters::default()
            };
            let kinds = [EventKind::AccountChange].into_iter().collect();
            let mut new = NewWebhook {
                id: WebhookId::from_random(u128::try_from(number)?.to_be_bytes()),
                owner: Access::All,
                definition: WebhookDefinition::new(url.clone(), kinds, filters),
                secret: Secret::from_random([u8::try_from(number % 251)?; 32]),
                created: Timestamp::from(Clock::system().now()),
                relay_until: None,
            };
            adjust(number, &mut new);
            webhooks.push(store.create_webhook(&new, MOST_WEBHOOKS).await?.id);
        }
        let subscriptions = Subscriptions::new(&store.active_webhooks().await?);
        Ok(Self {
            store,
            webhooks,
            subscriptions,
            idls: Idls::default(),
            slot: 1_000,
        })
    }

    /// The messages of one more slot, in which so many pools were written, at most [`POOLS`], the first of them this one.
    #[must_use]
    pub fn messages(&mut self, first: u64, count: u64) -> Vec<NewMessage> {
        self.messages_of(|slot| {
            let numbers = first..first + count;
            let written = numbers.map(|number| SlotEvent::Account(pool_write(slot, number)));
            written.collect()
        })
    }

    /// The messages of one more slot, in which this happened.
    #[must_use]
    pub fn messages_of(&mut self, happened: impl FnOnce(u64) -> Vec<SlotEvent>) -> Vec<NewMessage> {
        self.slot += 1;
        let mut events = SlotEvents::default();
        for event in happened(self.slot) {
            events.add(event);
        }
        let block = Block {
            slot: self.slot,
            hash: format!("hash{}", self.slot),
            parent: self.slot - 1,
            time: Some(1_767_225_600),
        };
        compose::events(
            &self.subscriptions,
            &self.idls,
            Commitment::Confirmed,
            &block,
            (&events, &LastOwners::default()),
            Timestamp::from(Clock::system().now()),
        )
        .collect()
    }

    /// Stores so many messages, on disk when this returns.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn owe(&mut self, count: u64) -> anyhow::Result<()> {
        let mut left = count;
        while left > 0 {
            let now = left.min(POOLS);
            let messages = self.messages(0, now);
            self.store(&messages).await?;
            left -= now;
        }
        Ok(())
    }

    /// What stores these messages of one slot, the current one where there are none.
    fn commit<'m>(&self, messages: &'m [NewMessage]) -> Commit<'m> {
        let slot = messages.last().map_or(self.slot, |last| last.slot);
        let now = Timestamp::from(Clock::system().now());
        Commit::slot(Commitment::Confirmed, slot, messages, now)
    }

    /// Stores these messages of one slot.
    ///
    /// # Errors
    /// A failure of the database, or messages that were known.
    pub async fn store(&self, messages: &[NewMessage]) -> anyhow::Result<()> {
        let committed = self.store.commit(&self.commit(messages)).await?;
        anyhow::ensure!(
            usize::try_from(committed.inserted())? == messages.len(),
            "{} of {} messages were new",
            committed.inserted(),
            messages.len()
        );
        Ok(())
    }

    /// Stores these messages of one slot as the indexer does: leased to its own dispatcher, as far as that has room. They may
    /// not be on the disk yet.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn write(
        &self,
        messages: &[NewMessage],
        dispatcher: &DispatchCapacity,
    ) -> anyhow::Result<Written> {
        let commit = self.commit(messages);
        let bytes = messages.iter().map(|message| message.body.len_at_most());
        let reservation = dispatcher.reserve(messages.len(), bytes.sum(), commit.now);
        let request = reservation.as_ref().map(Reservation::lease_request);
        Ok(Written {
            pending: self.store.commit_pending(&commit, request).await?,
            reservation,
        })
    }

    /// What a webhook's messages are signed with.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn secrets(&self, webhook: &WebhookId) -> anyhow::Result<Secrets> {
        let now = Timestamp::from(Clock::system().now());
        let secrets = self.store.secrets(&Access::All, webhook, now).await?;
        secrets.ok_or_else(|| anyhow::anyhow!("{webhook} is gone"))
    }
}

/// The address of a pool.
#[must_use]
pub fn pool_address(number: u64) -> Pubkey {
    CHAIN.pool(number)
}

/// A swap writes a pool.
#[must_use]
pub fn pool_write(slot: u64, number: u64) -> AccountUpdate {
    let [pool, ..] = CHAIN.swapped(number % POOLS, slot);
    let mut signature = [7; 64];
    signature[..8].copy_from_slice(&slot.to_be_bytes());
    AccountUpdate {
        txn_signature: Some(Signature::from(signature)),
        ..written(slot, slot * POOLS + number, pool)
    }
}
