//! Report of a run: what it did and what it found.

use std::{fmt, time::Duration};

use super::{database::Kind, disaster::Outcomes, receiver::Answer, verdict::Finding};

/// What was killed, how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kills {
    /// Processes that had run for a while.
    pub processes: u32,
    /// Processes in the first moments of their lives.
    pub newborn: u32,
    /// Servers.
    pub postmasters: u32,
    /// Parts of servers.
    pub backends: u32,
}

impl Kills {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u32 {
        self.processes + self.newborn + self.postmasters + self.backends
    }
}

/// A run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Its database.
    pub kind: Kind,
    /// Its seed.
    pub seed: u64,
    /// What was killed.
    pub kills: Kills,
    /// How often a process was suspended, and resumed unless it was killed before.
    pub suspended: u32,
    /// What befell it beside.
    pub outcomes: Outcomes,
    /// Processes that were asked to end, and did.
    pub stopped: u32,
    /// Starts of processes that found no database.
    pub failed_starts: u32,
    /// Starts of processes.
    pub starts: u32,
    /// Events of the chain.
    pub events: u64,
    /// Blocks that were streamed and dropped.
    pub dropped_blocks: u64,
    /// What was found, webhook by webhook.
    pub findings: Vec<Finding>,
    /// How requests were answered.
    pub answered: Vec<(Answer, u64)>,
    /// What is wrong, in words; empty when nothing is.
    pub faults: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty() && self.lost() == 0
    }

    /// Messages that should have been accepted, and were not.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sum(|finding| finding.lost)
    }

    fn sum(&self, of: impl Fn(&Finding) -> u64) -> u64 {
        self.findings.iter().map(of).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kills {
            processes,
            newborn,
            postmasters,
            backends,
        } = self.kills;
        let seconds = self.took.as_secs();
        writeln!(
            f,
            "{}, seed {}, {} min {} s",
            self.kind.name(),
            self.seed,
            seconds / 60,
            seconds % 60
        )?;
        let mut row = |name: &str, value: u64| writeln!(f, "  {name:<44} {value:>9}");
        row("killed with SIGKILL", self.kills.total().into())?;
        row("  indexers and dispatchers at work", processes.into())?;
        row("  in the first 300 ms after a start", newborn.into())?;
        row("  PostgreSQL's postmaster", postmasters.into())?;
        row("  another process of PostgreSQL", backends.into())?;
        row("suspended with SIGSTOP", self.suspended.into())?;
        for (disaster, outcome) in &self.outcomes.of {
            row(disaster.name(), outcome.times.into())?;
            let longest = u64::try_from(outcome.longest.as_millis()).unwrap_or(u64::MAX);
            row("  longest until slots were stored again, ms", longest)?;
        }
        let refused = self.outcomes.refused_writes.try_into();
        row(
            "writes of old leaders that were refused",
            refused.unwrap_or(u64::MAX),
        )?;
        row("asked to end with SIGTERM", self.stopped.into())?;
        row("starts of processes", self.starts.into())?;
        row("  that found no database", self.failed_starts.into())?;
        row("events played", self.events)?;
        row("blocks dropped from the chain", self.dropped_blocks)?;
        row(
            "webhooks",
            self.findings.len().try_into().unwrap_or(u64::MAX),
        )?;
        row(
            "messages that the chain calls for",
            self.sum(|each| each.expected),
        )?;
        row(
            "messages that arrived, each counted once",
            self.sum(|each| each.messages),
        )?;
        row("  that retract others", self.sum(|each| each.reverted))?;
        row(
            "  that reinstate what was retracted",
            self.sum(|each| each.reinstated),
        )?;
        row(
            "arrivals of a message after its first",
            self.sum(|each| each.repeated),
        )?;
        row(
            "requests",
            self.answered.iter().map(|(_, count)| count).sum(),
        )?;
        for (answer, count) in &self.answered {
            row(&format!("  answered: {}", answer.name()), *count)?;
        }
        row("lost", self.lost())?;
        row("faults", self.faults.len().try_into().unwrap_or(u64::MAX))
    }
}
