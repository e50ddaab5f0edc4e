//! Jobs of a read: calls that are still to be made, each with its own repetitions (pure).

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use service_kit::Backoff;
use solana_pubkey::Pubkey;
use tokio::time::Instant;

use super::{error::SnapshotError, pace::Pace, part::Part};

/// Pause before asking again a node that has not reached the slot yet: no longer than the shortest slots that clusters plan, and
/// few calls to a node that is behind for long.
const NOT_REACHED_PAUSE: Duration = Duration::from_millis(200);

/// Time in which a node must reach the slot, without an answer to any other call: 30 seconds, the delay after which
/// finalized slots would have followed as well.
const NOT_REACHED_PATIENCE: Duration = Duration::from_secs(30);

/// Attempts at a call that is refused for a reason unknown to us, or answered with something else: some gateways send
/// either now and then, but what is wrong about the call itself stays wrong.
const ODD_ATTEMPTS: u32 = 8;

/// Answers of a call that may be late before it is cut into smaller ones: the next would be late as well.
const LATE_ANSWERS: u32 = 2;

/// Answers of a call that may break off before it is cut into smaller ones. A short one does by chance; the longer it
/// is, the more often.
const LOST_ANSWERS: u32 = 4;

/// Longest pause of a call that failed, beside what the node asks for, while others are answered: it failed by chance,
/// and what the node cannot bear is the matter of the pace.
const PAUSE_AMONG_ANSWERS: Duration = Duration::from_secs(1);

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallTarget {
    /// Pools, by `getProgramAccounts`.
    Pools(Part),
    /// Accounts, by `getMultipleAccounts`.
    Accounts(Vec<Pubkey>),
}

impl CallTarget {
    /// Name of the RPC method.
    pub(super) const fn method(&self) -> &'static str {
        match self {
            Self::Pools(_) => "getProgramAccounts",
            Self::Accounts(_) => "getMultipleAccounts",
        }
    }

    /// Smaller calls that ask for the same; `None` when there are none.
    fn split(&self) -> Option<Vec<Self>> {
        match self {
            Self::Pools(part) => Some(part.split()?.into_iter().map(Self::Pools).collect()),
            Self::Accounts(keys) => {
                let (first, second) = keys.split_at_checked(keys.len() / 2)?;
                let halves = [first, second].map(|half| Self::Accounts(half.to_vec()));
                (!first.is_empty()).then(|| halves.into())
            }
        }
    }
}

/// A call that is to be made, and what became of it so far.
pub(super) struct Job {
    pub(super) wanted: CallTarget,
    backoff: Backoff,
    odd: u32,
    late: u32,
    lost: u32,
}

impl Job {
    pub(super) fn new(wanted: CallTarget) -> Self {
        Self {
            wanted,
            backoff: Backoff::new(),
            odd: 0,
            late: 0,
            lost: 0,
        }
    }

    /// What follows from a failed attempt. `fruitless` is the time since any call of the read succeeded, and `patience`
    /// the most that it may be; `random` is any uniformly drawn number.
    pub(super) fn failed(
        mut self,
        error: SnapshotError,
        fruitless: Duration,
        patience: Duration,
        random: u32,
    ) -> Next {
        // While nothing is answered, pauses may grow as long as that lasts.
        let longest = (fruitless * 2).max(PAUSE_AMONG_ANSWERS);
        let pause = match &error {
            SnapshotError::Unauthorized { .. } | SnapshotError::Unavailable { .. } => {
                return Next::GiveUp(error);
            }
            SnapshotError::TooLarge { .. } => {
                return self.wanted.split().map_or(Next::GiveUp(error), Next::Split);
            }
            SnapshotError::Behind { .. } if fruitless < NOT_REACHED_PATIENCE => NOT_REACHED_PAUSE,
            SnapshotError::Behind { .. } => return Next::GiveUp(error),
            SnapshotError::RateLimited { retry_after, .. } => {
                let asked = retry_after.unwrap_or_default();
                asked.max(self.backoff.next_pause(random).min(longest))
            }
            SnapshotError::Unreachable { .. } => self.backoff.next_pause(random).min(longest),
            SnapshotError::Late { .. } | SnapshotError::Lost { .. } => {
                let is_late = matches!(error, SnapshotError::Late { .. });
                self.late += u32::from(is_late);
                self.lost += u32::from(!is_late);
                if (self.late >= LATE_ANSWERS || self.lost >= LOST_ANSWERS)
                    && let Some(smaller) = self.wanted.split()
                {
                    return Next::Split(smaller);
                }
                self.backoff.next_pause(random).min(longest)
            }
            SnapshotError::Refused { .. } | SnapshotError::Malformed { .. } => {
                self.odd += 1;
                if self.odd >= ODD_ATTEMPTS {
                    return Next::GiveUp(error);
                }
                self.backoff.next_pause(random).min(longest)
            }
        };
        if fruitless >= patience {
            return Next::GiveUp(error);
        }
        Next::Repeat(self, pause)
    }
}

/// What follows from a failed attempt.
pub(super) enum Next {
    /// The same again, after a pause.
    Repeat(Job, Duration),
    /// Smaller calls in its place.
    Split(Vec<CallTarget>),
    /// Nothing that is done here helps.
    GiveUp(SnapshotError),
}

/// Calls that are not in flight, in the order in which they are due.
#[derive(Default)]
pub(super) struct Jobs {
    ready: VecDeque<Job>,
    /// By the time when they are due, and a number that distinguishes those of one time.
    delayed: BTreeMap<(Instant, u64), Job>,
    number: u64,
}

impl Jobs {
    /// A call to be made as soon as possible.
    pub(super) fn add(&mut self, wanted: CallTarget) {
        self.ready.push_back(Job::new(wanted));
    }

    /// A call to be made at a time.
    pub(super) fn delay(&mut self, job: Job, until: Instant) {
        self.number += 1;
        self.delayed.insert((until, self.number), job);
    }

    /// The next call, where it is due and may begin beside so many in flight; otherwise when one is and may, or `None` when there
    /// is none, or a call in flight must end first.
    pub(super) fn begin(
        &mut self,
        pace: &Pace,
        in_flight: usize,
        now: Instant,
    ) -> Result<Job, Option<Instant>> {
        let may_at = pace.next_at(in_flight, now);
        let next_at = may_at.zip(self.next_at(now));
        let next_at = next_at.map(|(may, due)| may.max(due));
        let is_due = next_at.is_some_and(|at| at <= now);
        is_due.then(|| self.take(now)).flatten().ok_or(next_at)
    }

    /// When the next call is due; `None` when there is none.
    fn next_at(&self, now: Instant) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(now);
        }
        let ((at, _), _) = self.delayed.first_key_value()?;
        Some(*at)
    }

    /// The next call, once it is due. Delayed ones come first: what is asked for early is missed least.
    fn take(&mut self, now: Instant) -> Option<Job> {
        if let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= now
        {
            return Some(entry.remove());
        }
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests;
