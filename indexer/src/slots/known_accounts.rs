//! Known accounts: the accounts that watched programs own, and since and until which confirmed slot (pure).
//!
//! A server selects accounts by the owner that a write leaves them with, so the write by which an account leaves a program does
//! not say whose it was. What is known here says it. Tenures that are over are kept until no slot at or before their end is read
//! any more, so that a slot that is read again gives the same messages.

use std::collections::{BTreeMap, HashMap};

use solana_pubkey::Pubkey;

/// Most tenures that are held: some 40 MB. An account more makes the oldest ones be forgotten, and that they are closed is
/// not noticed.
pub const MAX_KNOWN_ACCOUNTS: usize = 200_000;

/// Which part of the tenures is forgotten at once when there are too many: to find the oldest takes a look at all of them.
const FORGOTTEN_PART: usize = 16;

/// The time for which a program owns an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// The program.
    pub owner: Pubkey,
    /// The first slot at whose end it is known to have owned the account.
    pub since: u64,
    /// The slot at whose end it owned it no more; `None` while it does.
    pub left: Option<u64>,
}

impl Tenure {
    const fn is_live_after(&self, slot: u64) -> bool {
        match self.left {
            Some(left) => left > slot,
            None => true,
        }
    }
}

/// What has changed of the tenures, by account and first slot: `None` where one is forgotten.
pub type KnownChanges = BTreeMap<(Pubkey, u64), Option<Tenure>>;

/// The accounts, by address, and the changes that are not stored yet.
#[derive(Debug)]
pub struct KnownAccounts {
    /// The tenures of an account in the order in which they began.
    tenures: HashMap<Pubkey, Vec<Tenure>>,
    count: usize,
    most: usize,
    changes: KnownChanges,
    /// Tenures that were forgotten because there were too many.
    crowded_out: u64,
}

impl Default for KnownAccounts {
    fn default() -> Self {
        Self::bounded(MAX_KNOWN_ACCOUNTS)
    }
}

impl KnownAccounts {
    fn bounded(most: usize) -> Self {
        Self {
            tenures: HashMap::new(),
            count: 0,
            most,
            changes: KnownChanges::default(),
            crowded_out: 0,
        }
    }

    /// What an earlier session knew. Tenures of programs that are not watched any more are forgotten.
    pub fn restored(
        tenures: impl IntoIterator<Item = (Pubkey, Tenure)>,
        is_watched: impl Fn(&Pubkey) -> bool,
    ) -> Self {
        let mut known = Self::default();
        for (account, tenure) in tenures {
            known.count += 1;
            known.tenures.entry(account).or_default().push(tenure);
        }
        for tenures in known.tenures.values_mut() {
            tenures.sort_unstable_by_key(|tenure| tenure.since);
        }
        known.forget_if(|tenure| !is_watched(&tenure.owner));
        known.keep_bound();
        known
    }

    /// The watched program that owned an account before a slot.
    #[must_use]
    pub fn owner_before(&self, account: &Pubkey, slot: u64) -> Option<Pubkey> {
        let before = slot.checked_sub(1)?;
        let tenures = self.tenures.get(account)?.iter().rev();
        let tenure = tenures.into_iter().find(|tenure| tenure.since <= before)?;
        tenure.is_live_after(before).then_some(tenure.owner)
    }

    /// At the end of a confirmed slot an account is `owner`'s, a watched program; `None` for any other. Slots may be read again.
    pub fn saw(&mut self, account: Pubkey, slot: u64, owner: Option<Pubkey>) {
        if owner.is_none() && !self.tenures.contains_key(&account) {
            return;
        }
        let tenures = self.tenures.entry(account).or_default();
        let begun = tenures.partition_point(|tenure| tenure.since <= slot);
        if let Some(current) = begun.checked_sub(1).and_then(|at| tenures.get_mut(at))
            && current.is_live_after(slot)
        {
            if Some(current.owner) == owner {
                return;
            }
            current.left = Some(slot);
            self.changes
                .insert((account, current.since), Some(*current));
        }
        if let Some(owner) = owner {
            let tenure = Tenure {
                owner,
                since: slot,
                left: None,
            };
            tenures.insert(begun, tenure);
            self.count += 1;
            self.changes.insert((account, slot), Some(tenure));
            self.keep_bound();
        }
    }

    /// A program owned these accounts at the end of a confirmed slot. Those of which the stream has shown that they came later, or
    /// left, stay as they are.
    pub fn read(&mut self, program: Pubkey, slot: u64, accounts: impl IntoIterator<Item = Pubkey>) {
        for account in accounts {
            let ends_later = |tenure: &Tenure| tenure.is_live_after(slot);
            let is_known = self
                .tenures
                .get(&account)
                .is_some_and(|all| all.iter().any(ends_later));
            if !is_known {
                self.saw(account, slot, Some(program));
            }
        }
    }

    /// Forgets the oldest tenures when there are too many.
    fn keep_bound(&mut self) {
        if self.count <= self.most {
            return;
        }
        let mut begins: Vec<u64> = self
            .tenures
            .values()
            .flatten()
            .map(|each| each.since)
            .collect();
        let part = (begins.len() / FORGOTTEN_PART).max(1);
        let (_, newest_forgotten, _) = begins.select_nth_unstable(part - 1);
        let newest_forgotten = *newest_forgotten;
        let before = self.count;
        self.forget_if(|tenure| tenure.since <= newest_forgotten);
        let forgotten = u64::try_from(before.saturating_sub(self.count)).unwrap_or(u64::MAX);
        self.crowded_out = self.crowded_out.saturating_add(forgotten);
    }

    /// Forgets the tenures that were over before a slot: none at or before it is read any more.
    pub fn forget_before(&mut self, slot: u64) {
        self.forget_if(|tenure| tenure.left.is_some_and(|left| left < slot));
    }

    fn forget_if(&mut self, is_forgotten: impl Fn(&Tenure) -> bool) {
        let (changes, mut forgotten) = (&mut self.changes, 0);
        self.tenures.retain(|account, tenures| {
            tenures.retain(|tenure| {
                let forgets = is_forgotten(tenure);
                if forgets {
                    changes.insert((*account, tenure.since), None);
                    forgotten += 1;
                }
                !forgets
            });
            !tenures.is_empty()
        });
        self.count = self.count.saturating_sub(forgotten);
    }

    /// How many tenures were forgotten, since this was asked last, because there were too many: that such an account is closed
    /// is not noticed.
    pub const fn take_crowded_out(&mut self) -> u64 {
        std::mem::replace(&mut self.crowded_out, 0)
    }

    /// What has changed since this was asked last.
    pub fn take_changes(&mut self) -> KnownChanges {
        std::mem::take(&mut self.changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Pubkey {
        Pubkey::new_from_array([byte; 32])
    }

    #[test]
    fn the_owner_before_a_slot_is_that_of_the_last_slot_before_it() {
        let (account, program) = (key(1), key(100));
        let mut known = KnownAccounts::default();
        known.saw(account, 5, None);
        assert_eq!(known.take_changes(), KnownChanges::default());
        known.saw(account, 10, Some(program));
        known.saw(account, 12, Some(program));
        known.saw(account, 15, None);
        known.saw(account, 20, Some(key(101)));
        let owners: Vec<_> = [10, 11, 15, 16, 20, 21]
            .map(|slot| known.owner_before(&account, slot))
            .into();
        let of = |number| Some(key(number));
        assert_eq!(owners, [None, of(100), of(100), None, None, of(101)]);
    }

    #[test]
    fn a_slot_that_is_read_again_changes_nothing() {
        let (account, program) = (key(1), key(100));
        let mut known = KnownAccounts::default();
        let slots = [
            (10, Some(program)),
            (15, None),
            (16, Some(program)),
            (17, None),
        ];
        for (slot, owner) in slots {
            known.saw(account, slot, owner);
        }
        assert_ne!(known.take_changes(), KnownChanges::default());
        for (slot, owner) in slots {
            known.saw(account, slot, owner);
        }
        assert_eq!(known.take_changes(), KnownChanges::default());
        assert_eq!(known.owner_before(&account, 15), Some(program));
        assert_eq!(known.owner_before(&account, 16), None);
    }

    #[test]
    fn what_is_over_is_forgotten_when_no_slot_needs_it() {
        let (account, program) = (key(1), key(100));
        let mut known = KnownAccounts::default();
        known.saw(account, 10, Some(program));
        known.saw(account, 15, None);
        known.forget_before(15);
        assert_eq!(known.owner_before(&account, 15), Some(program));
        known.take_changes();
        known.forget_before(16);
        let changes: Vec<_> = known.take_changes().into_iter().collect();
        assert_eq!(changes, [((account, 10), None)]);
        assert!(known.tenures.is_empty() && known.count == 0);
    }

    #[test]
    fn what_is_restored_is_what_was_known_but_for_programs_that_are_not_watched() {
        let mut before = KnownAccounts::default();
        for (account, slot, owner) in [
            (1, 10, Some(100)),
            (1, 15, None),
            (1, 16, Some(101)),
            (2, 17, Some(102)),
        ] {
            before.saw(key(account), slot, owner.map(key));
        }
        let stored = before.take_changes();
        let stored = stored
            .into_iter()
            .filter_map(|((account, _), tenure)| Some((account, tenure?)));
        let mut known = KnownAccounts::restored(stored, |program| *program != key(102));
        for slot in 10..20 {
            let owner = |known: &KnownAccounts| known.owner_before(&key(1), slot);
            assert_eq!(owner(&known), owner(&before));
        }
        assert_eq!(known.owner_before(&key(2), 20), None);
        let changes: Vec<_> = known.take_changes().into_iter().collect();
        assert_eq!(changes, [((key(2), 17), None)]);
    }

    #[test]
    fn the_oldest_are_forgotten_when_there_are_too_many() {
        let mut known = KnownAccounts::bounded(32);
        for number in 0..33 {
            known.saw(key(number), u64::from(number), Some(key(100)));
        }
        let changes = known.take_changes().into_iter();
        let forgotten: Vec<_> = changes.filter(|(_, change)| change.is_none()).collect();
        assert_eq!(forgotten, [((key(0), 0), None), ((key(1), 1), None)]);
        assert_eq!((known.count, known.tenures.len()), (31, 31));
        assert_eq!((known.take_crowded_out(), known.take_crowded_out()), (2, 0));
        known.saw(key(40), 40, None);
        known.saw(key(2), 41, None);
        known.forget_before(50);
        assert_eq!(known.take_crowded_out(), 0, "they are not needed");
    }
}
