//! Kinds of events that webhooks subscribe to.

use std::fmt;

/// A kind of event that a webhook can subscribe to.
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
