//! Progress of reading the chain: counts, and the time left (pure).

use std::{fmt, time::Duration};

/// One million bytes.
const MEGABYTE: u64 = 1_000_000;

/// How far a read of the chain is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Calls whose answer is there.
    pub(super) calls_done: usize,
    /// Calls that are known to be needed.
    pub(super) calls: usize,
    /// Calls that had to be repeated.
    pub(super) repeated: usize,
    /// Accounts read, pools included.
    pub(super) accounts_read: usize,
    /// Accounts known to be needed; all of them once every pool is listed.
    pub(super) accounts: usize,
    /// Bytes received.
    pub(super) bytes: u64,
    /// When the last pool was listed: time since the beginning, and accounts read by then.
    pub(super) listed: Option<(Duration, usize)>,
    /// Time since the beginning.
    pub(super) elapsed: Duration,
    /// Why the last call failed, while none has succeeded since.
    pub(super) trouble: Option<&'static str>,
}

impl Progress {
    /// What is done, of all: accounts once every pool is listed, and calls before.
    pub(super) fn parts(&self) -> (u64, u64) {
        let (done, all) = if self.listed.is_none() {
            (self.calls_done, self.calls)
        } else {
            (self.accounts_read, self.accounts)
        };
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        (number(done), number(all))
    }

    /// Time until everything is read, should it go on as it went since the pools were listed. `None` before that.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let (since, before) = self.listed?;
        let read = u32::try_from(self.accounts_read.checked_sub(before)?).ok()?;
        let left = u32::try_from(self.accounts.saturating_sub(self.accounts_read)).ok()?;
        if left == 0 {
            return Some(Duration::ZERO);
        }
        let took = self.elapsed.saturating_sub(since);
        (read > 0).then(|| took.mul_f64(f64::from(left) / f64::from(read)))
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reading the chain: ")?;
        let (done, calls) = (self.calls_done, self.calls);
        let megabytes = self.bytes / MEGABYTE;
        if self.listed.is_none() {
            write!(f, "listing the pools, {done} of {calls} calls")?;
        } else {
            let (read, accounts) = (self.accounts_read, self.accounts);
            write!(f, "{read} of {accounts} accounts, {done} of {calls} calls")?;
        }
        if megabytes > 0 {
            write!(f, ", {megabytes} MB")?;
        }
        if self.repeated > 0 {
            write!(f, ", {} repeated", self.repeated)?;
        }
        if let Some(left) = self.time_left() {
            write!(f, ", about {} s left", left.as_secs().saturating_add(1))?;
        }
        if let Some(trouble) = &self.trouble {
            write!(f, "; {trouble}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_pools_are_listed_no_time_is_promised() {
        let progress = Progress {
            calls: 1,
            bytes: 123_456_789,
            ..Progress::default()
        };
        assert_eq!(
            progress.to_string(),
            "reading the chain: listing the pools, 0 of 1 calls, 123 MB"
        );
        assert_eq!(progress.time_left(), None);
    }

    #[test]
    fn the_time_left_follows_from_the_time_taken_since_the_pools_were_listed() {
        let mut progress = Progress {
            calls_done: 26,
            calls: 101,
            repeated: 3,
            accounts_read: 3_500,
            accounts: 11_000,
            bytes: 2_000_000,
            listed: Some((Duration::from_secs(60), 1_000)),
            elapsed: Duration::from_secs(70),
            trouble: Some("the node refuses a call"),
        };
        assert_eq!(progress.time_left(), Some(Duration::from_secs(30)));
        assert_eq!(
            progress.to_string(),
            "reading the chain: 3500 of 11000 accounts, 26 of 101 calls, 2 MB, 3 repeated, about 31 s left; \
             the node refuses a call"
        );
        progress.accounts_read = 1_000;
        assert_eq!(progress.time_left(), None, "nothing to judge by");
        progress.accounts_read = 11_000;
        assert_eq!(progress.time_left(), Some(Duration::ZERO));
    }
}
