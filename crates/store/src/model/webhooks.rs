//! Webhooks as plain data.

use std::{collections::HashSet, fmt, time::Duration};

use sha2::{Digest, Sha256};
use solana_pubkey::Pubkey;

use super::{
    checkpoint::Commitment,
    keys::{Access, KeyId},
    models::{Revision, Secret, Timestamp, WebhookId},
};

/// What a webhook may be told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// An account was written.
    AccountChange,
    /// A transaction was executed.
    Transaction,
    /// A program emitted an event.
    ProgramEvent,
}

impl EventKind {
    /// Every kind, in the order lists show them.
    pub const ALL: [Self; 3] = [Self::AccountChange, Self::Transaction, Self::ProgramEvent];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccountChange => "accountChange",
            Self::Transaction => "transaction",
            Self::ProgramEvent => "programEvent",
        }
    }

    /// The kind of this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of [`EventKind`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventKinds {
    /// Holds [`EventKind::AccountChange`].
    pub account_change: bool,
    /// Holds [`EventKind::Transaction`].
    pub transaction: bool,
    /// Holds [`EventKind::ProgramEvent`].
    pub program_event: bool,
}

impl EventKinds {
    /// Whether the set holds `kind`.
    #[must_use]
    pub const fn contains(self, kind: EventKind) -> bool {
        match kind {
            EventKind::AccountChange => self.account_change,
            EventKind::Transaction => self.transaction,
            EventKind::ProgramEvent => self.program_event,
        }
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        !self.account_change && !self.transaction && !self.program_event
    }

    /// The kinds of the set, in the order of [`EventKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::ALL
            .into_iter()
            .filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<EventKind> for EventKinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        let mut set = Self::default();
        for kind in kinds {
            match kind {
                EventKind::AccountChange => set.account_change = true,
                EventKind::Transaction => set.transaction = true,
                EventKind::ProgramEvent => set.program_event = true,
            }
        }
        set
    }
}

/// What a webhook is about. An event concerns it when it touches one of the keys; the store refuses
/// a webhook that names none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Accounts, in the subscriber's order.
    pub accounts: Vec<Pubkey>,
    /// Programs, in the subscriber's order.
    pub programs: Vec<Pubkey>,
}

impl Filters {
    /// Hexadecimal SHA-256 by which a subscriber can tell that the set in force is the one it means,
    /// whatever its order: of `accounts`, their count (u32, little endian) and their bytes in ascending
    /// order, then of `programs` the same.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (role, keys) in [
            (&b"accounts"[..], &self.accounts),
            (b"programs", &self.programs),
        ] {
            let mut keys = keys.clone();
            keys.sort_unstable();
            hash.update(role);
            hash.update(u32::try_from(keys.len()).unwrap_or(u32::MAX).to_le_bytes());
            for key in keys {
                hash.update(key);
            }
        }
        hex::encode(hash.finalize())
    }
}

/// Keys to be added to and removed from the filters of a webhook. Adding what is there and removing what
/// is not changes nothing; a key in both lists is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterEdit {
    /// Keys to add.
    pub add: Filters,
    /// Keys to remove.
    pub remove: Filters,
}

/// How many keys a webhook may name.
#[derive(Clone, Copy, Debug)]
pub struct FilterLimits {
    /// Most accounts.
    pub accounts: usize,
    /// Most programs.
    pub programs: usize,
}

/// What a [`FilterEdit`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterEdited {
    /// The webhook afterwards.
    pub webhook: Webhook,
    /// What was not there before.
    pub added: Filters,
    /// What is not there any more.
    pub removed: Filters,
}

/// Edits one list of keys and tells what was added and what was removed.
pub(crate) fn edit_keys(
    keys: &mut Vec<Pubkey>,
    add: &[Pubkey],
    remove: &[Pubkey],
) -> (Vec<Pubkey>, Vec<Pubkey>) {
    let remove: HashSet<&Pubkey> = remove.iter().collect();
    let mut removed = Vec::new();
    keys.retain(|key| {
        let stays = !remove.contains(key);
        if !stays {
            removed.push(*key);
        }
        stays
    });
    let mut there: HashSet<Pubkey> = keys.iter().copied().collect();
    let mut added = Vec::new();
    for key in add {
        if !remove.contains(key) && there.insert(*key) {
            keys.push(*key);
            added.push(*key);
        }
    }
    (added, removed)
}

/// In which order a webhook's messages are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeliveryOrder {
    /// In any order, several at once.
    #[default]
    None,
    /// Those of one [order key](crate::NewMessage::order_key) one after the other.
    PerKey,
    /// All of them one after the other.
    Strict,
}

impl DeliveryOrder {
    /// Every order, in the sequence lists show them.
    pub const ALL: [Self; 3] = [Self::None, Self::PerKey, Self::Strict];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::PerKey => "perKey",
            Self::Strict => "strict",
        }
    }

    /// The order of this name on the wire.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.name() == name)
    }
}

/// The part of a webhook that its owner writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDefinition {
    /// Callback URL.
    pub url: String,
    /// Kinds subscribed to; never empty.
    pub events: EventKinds,
    /// Keys subscribed to.
    pub filters: Filters,
    /// Whether it matches and delivers. What is owed when it is switched off is kept, and delivered
    /// when it is switched on again.
    pub active: bool,
    /// How settled an event must be.
    pub commitment: Commitment,
    /// Order of deliveries. A change concerns what is owed already, too.
    pub order: DeliveryOrder,
    /// A note of the owner.
    pub description: Option<String>,
    /// Name and value of headers sent with every delivery.
    pub headers: Vec<(String, String)>,
    /// Whether large bodies may be sent compressed.
    pub gzip: bool,
    /// How often a sign of life is wanted, whole seconds; `None` for never.
    pub heartbeat: Option<Duration>,
}

impl WebhookDefinition {
    /// An active webhook with the default for everything that is optional.
    #[must_use]
    pub fn new(url: String, events: EventKinds, filters: Filters) -> Self {
        Self {
            url,
            events,
            filters,
            active: true,
            commitment: Commitment::default(),
            order: DeliveryOrder::default(),
            description: None,
            headers: Vec::new(),
            gzip: false,
            heartbeat: None,
        }
    }
}

/// A webhook to be created.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// Fresh identifier.
    pub id: WebhookId,
    /// Whose it is.
    pub owner: Access,
    /// What the owner asked for.
    pub definition: WebhookDefinition,
    /// Signing secret.
    pub secret: Secret,
    /// Time of creation.
    pub created: Timestamp,
    /// For a temporary webhook, whose messages are not posted but claimed one webhook at a time with
    /// [`Store::claim_relayed`](crate::Store::claim_relayed): when it ends, unless extended.
    pub relay_until: Option<Timestamp>,
}

/// A stored webhook, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Identifier.
    pub id: WebhookId,
    /// The API key it belongs to; `None` for one made while no keys were in use.
    pub key: Option<KeyId>,
    /// What the owner wrote, except that `active` may have been cleared by the service since.
    pub definition: WebhookDefinition,
    /// Counts the owner's writes, from 1.
    pub version: u64,
    /// The webhook revision at which what is matched last changed; see
    /// [`Store::filter_change`](crate::Store::filter_change).
    pub matched_revision: Revision,
    /// [`Filters::digest`] of its filters.
    pub filter_digest: String,
    /// Why the service switched it off, when it did.
    pub disabled_reason: Option<String>,
    /// Time of creation.
    pub created: Timestamp,
    /// When the receiver last accepted a delivery.
    pub last_triggered: Option<Timestamp>,
    /// Until when a secret before the current one signs as well.
    pub previous_secret_until: Option<Timestamp>,
    /// When a temporary webhook ends.
    pub relay_until: Option<Timestamp>,
}

/// Most secrets that sign beside the current one. Each adds 48 bytes to a header of every delivery, and whoever
/// rotates more often than the receivers follow has another problem.
pub const MAX_PREVIOUS_SECRETS: usize = 4;

/// The secrets of a webhook that sign at some time, the current one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    /// The current one.
    pub current: Secret,
    /// Those before, while they still sign, the latest first.
    pub previous: Vec<Secret>,
}

impl Secrets {
    /// All of them, the current one first.
    pub fn iter(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

/// Some webhooks in order of creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookPage {
    /// The webhooks.
    pub webhooks: Vec<Webhook>,
    /// Where the next page starts; `None` on the last one.
    pub next: Option<i64>,
}

/// What matching needs of a webhook that is active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveWebhook {
    /// Identifier.
    pub id: WebhookId,
    /// Kinds subscribed to.
    pub events: EventKinds,
    /// Keys subscribed to.
    pub filters: Filters,
    /// How settled an event must be.
    pub commitment: Commitment,
    /// How often a sign of life is wanted.
    pub heartbeat: Option<Duration>,
    /// [`Filters::digest`] of its filters.
    pub filter_digest: String,
}

/// Every active webhook, and the revision at which this is true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveWebhooks {
    /// The revision.
    pub revision: Revision,
    /// The webhooks, in order of creation.
    pub webhooks: Vec<LiveWebhook>,
}

/// What changed among the active webhooks after some revision. To know the new set, keep of the old one
/// what `live` names, and replace or add what `changed` holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveChanges {
    /// The revision at which this is true.
    pub revision: Revision,
    /// Every active webhook, in order of creation.
    pub live: Vec<WebhookId>,
    /// Those of them that are new or changed.
    pub changed: Vec<LiveWebhook>,
}
