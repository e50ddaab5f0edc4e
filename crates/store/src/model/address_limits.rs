//! Address limits: how many addresses the stream serves at most, of all webhooks together, and what it does not show of them.

use super::event_kind::EventKinds;

/// How many addresses the stream serves. `None` where no limit is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressLimits {
    /// Accounts whose changes are watched.
    pub accounts: Option<u64>,
    /// Programs whose accounts' changes are watched.
    pub owners: Option<u64>,
    /// Accounts whose transactions are watched, programs in any case, and as many owners of token accounts.
    pub mentioned: Option<u64>,
    /// Whether the programs' accounts are not shown as they are closed.
    pub closes_unseen: bool,
}

impl AddressLimits {
    /// How many accounts, programs and owners of token accounts a webhook may name that wants these events.
    #[must_use]
    pub fn of_webhook(&self, events: EventKinds) -> [Option<u64>; 3] {
        let changes = |limit: Option<u64>| limit.filter(|_| events.account_change);
        let transactions = |wants: bool| self.mentioned.filter(|_| wants);
        let least = |one: Option<u64>, other| one.into_iter().chain(other).min();
        [
            least(changes(self.accounts), transactions(events.transaction)),
            // By its transactions a program gives accounts away, too.
            least(changes(self.owners), self.mentioned),
            transactions(events.transaction),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;

    #[test]
    fn only_what_the_events_need_is_limited() {
        let limits = AddressLimits {
            accounts: Some(10),
            owners: Some(20),
            mentioned: Some(5),
            closes_unseen: false,
        };
        let of = |kinds: &[EventKind]| limits.of_webhook(kinds.iter().copied().collect());
        assert_eq!(of(&[EventKind::AccountChange]), [Some(10), Some(5), None]);
        assert_eq!(of(&[EventKind::Transaction]), [Some(5); 3]);
        assert_eq!(of(&[EventKind::ProgramEvent]), [None, Some(5), None]);
        assert_eq!(of(&EventKind::ALL), [Some(5); 3]);
        assert_eq!(
            AddressLimits::default().of_webhook(EventKind::ALL.into_iter().collect()),
            [None; 3]
        );
    }
}
