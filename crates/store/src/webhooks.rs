//! Webhooks as plain data.

use std::fmt;

use solana_pubkey::Pubkey;

use crate::models::{Revision, Secret, Timestamp, WebhookId};

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
}

/// A webhook to be created.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    /// Fresh identifier.
    pub id: WebhookId,
    /// What the owner asked for.
    pub definition: WebhookDefinition,
    /// Signing secret.
    pub secret: Secret,
    /// Time of creation.
    pub created: Timestamp,
}

/// A stored webhook, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Identifier.
    pub id: WebhookId,
    /// What the owner asked for; `active` may have been cleared by the service since.
    pub definition: WebhookDefinition,
    /// Why the service switched it off, when it did.
    pub disabled_reason: Option<String>,
    /// Time of creation.
    pub created: Timestamp,
    /// When the receiver last accepted a delivery.
    pub last_triggered: Option<Timestamp>,
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
}

/// Every active webhook, and the revision at which this is true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveWebhooks {
    /// The revision.
    pub revision: Revision,
    /// The webhooks, in order of creation.
    pub webhooks: Vec<LiveWebhook>,
}
