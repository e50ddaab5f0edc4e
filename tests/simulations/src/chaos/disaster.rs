//! Disasters: what befalls a run beside kills, by name.

use std::{collections::BTreeMap, time::Duration};

use clap::ValueEnum;

use super::database::Kind;

/// What happens to a host, a network or a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Disaster {
    /// The leader's host loses power: its process is dead, and no connection of it ends.
    PowerLoss,
    /// The leader is cut off from its database, or where that is a file from the stream and the receivers: no byte passes, and
    /// no connection ends. Another one leads, and then all that stood still arrives.
    Partition,
    /// The leader is stopped for longer than its lease, and goes on where it was.
    Stopped,
    /// The disk of the database is full, and then is not.
    FullDisk,
    /// The clocks of the processes' hosts are an hour fast or slow.
    ClockJump,
    /// The database's host loses power, and its standby is promoted.
    Failover,
    /// All reach the database through pgbouncer in session mode, which dies and comes back.
    Pooler,
}

impl Disaster {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::PowerLoss,
        Self::Partition,
        Self::Stopped,
        Self::FullDisk,
        Self::ClockJump,
        Self::Failover,
        Self::Pooler,
    ];

    /// Whether it can befall processes on such a database: those that share a file share its host.
    #[must_use]
    pub const fn befalls(self, kind: Kind) -> bool {
        match self {
            Self::PowerLoss | Self::Failover | Self::Pooler => {
                matches!(kind, Kind::Postgres)
            }
            Self::Partition | Self::Stopped | Self::FullDisk | Self::ClockJump => true,
        }
    }

    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PowerLoss => "power loss of the leader's host",
            Self::Partition => "partition of the leader",
            Self::Stopped => "leader stopped for longer than its lease",
            Self::FullDisk => "full disk",
            Self::ClockJump => "clocks an hour off",
            Self::Failover => "failover to a standby",
            Self::Pooler => "death of the pooler before the database",
        }
    }
}

/// How often one of them befell, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How often.
    pub times: u32,
    /// The longest time from it until slots were stored again.
    pub longest: Duration,
}

/// All that befell a run.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// Of each disaster.
    pub of: BTreeMap<Disaster, Outcome>,
    /// Writes of old leaders that were refused, as these said.
    pub refused_writes: usize,
}

impl Outcomes {
    /// Notes one, and how long it was until slots were stored again.
    pub fn note(&mut self, disaster: Disaster, pause: Duration) {
        let outcome = self.of.entry(disaster).or_default();
        outcome.times += 1;
        outcome.longest = outcome.longest.max(pause);
    }
}
