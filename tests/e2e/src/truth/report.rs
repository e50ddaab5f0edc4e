//! Report of a truth run: counts, and whether they are clean.

use std::fmt;

use super::{Plan, faults::Faults};

/// Commitment of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Commitment {
    Processed,
    Confirmed,
    Finalized,
}

impl Commitment {
    pub(super) const ALL: [Self; 3] = [Self::Processed, Self::Confirmed, Self::Finalized];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Processed => "processed",
            Self::Confirmed => "confirmed",
            Self::Finalized => "finalized",
        }
    }
}

/// What one webhook received of what landed.
#[derive(Clone, Debug)]
pub(super) struct Emitted {
    pub(super) commitment: Commitment,
    pub(super) landed: usize,
    pub(super) emitted: usize,
    /// Signatures that landed and were not emitted.
    pub(super) lost: Vec<String>,
    /// Signatures that were emitted, not retracted, and did not land.
    pub(super) invented: Vec<String>,
    pub(super) reverted: usize,
    pub(super) gaps: usize,
    pub(super) delivered_again: usize,
    /// Deliveries with a bad signature.
    pub(super) refused: usize,
    /// Whether the sequence numbers have no hole.
    pub(super) contiguous: bool,
}

impl Emitted {
    fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.invented.is_empty() && self.refused == 0 && self.contiguous
    }
}

/// Quotes by what became of them.
#[derive(Clone, Debug, Default)]
pub(super) struct QuoteCounts {
    pub(super) rounds: u64,
    /// Of a slot in which the pool was at rest already.
    pub(super) judged: u64,
    /// Of them those that no simulation pays.
    pub(super) wrong: Vec<String>,
    /// Of an older slot, for which they may be right.
    pub(super) older: u64,
    /// Refused: the market was not ready, or the API not there.
    pub(super) not_ready: u64,
}

/// The counts of a run.
#[derive(Clone, Debug)]
pub struct Report {
    pub(super) plan: Plan,
    pub(super) faults: Faults,
    pub(super) edits: u32,
    /// How often the indexer's stream was opened again.
    pub(super) reconnects: u64,
    /// Connections of the API to the stream's server: the market's own, and those that read a slot again.
    pub(super) market_connections: u64,
    pub(super) sent: usize,
    /// Swaps that were sent at a steady rate, beside those whose quotes are judged.
    pub(super) swaps: u64,
    pub(super) quotes: QuoteCounts,
    pub(super) emitted: Vec<Emitted>,
}

impl Report {
    /// Whether nothing was lost, invented or quoted wrongly, in a run that made faults and looked at something; where the
    /// indexer's stream was left alone, whether it stayed open, too.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let is_left_alone = self.plan.edits_per_second.is_some();
        let failed = self.faults.cuts > 0 && (is_left_alone || self.faults.stops > 0);
        let looked = failed && self.has_edited() && self.quotes.judged > 0;
        let emitted = !self.emitted.is_empty() && self.emitted.iter().all(Emitted::is_clean);
        let stayed_open = !is_left_alone || self.reconnects == 0;
        looked && emitted && stayed_open && self.quotes.wrong.is_empty()
    }

    /// Whether the filter was edited, and where a rate was asked for at least half as often as that: each edit waits for the
    /// answer to the one before, which on a busy machine takes longer than its turn.
    fn has_edited(&self) -> bool {
        let asked = self.plan.edits_asked().unwrap_or(0);
        self.edits > 0 && u64::from(self.edits) * 2 >= asked
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            plan,
            faults,
            edits,
            reconnects,
            market_connections,
            sent,
            swaps,
            quotes,
            emitted,
        } = self;
        let asked = plan.edits_asked();
        let asked = asked.map_or_else(String::new, |asked| format!(" of {asked} asked for"));
        writeln!(
            f,
            "seed {}: {} s, {} connections cut, {} times held back, the validator stopped {} times, \
             {edits} filter edits{asked}, the indexer's stream opened again {reconnects} times, the API connected to it \
             {market_connections} times, {sent} transfers and {swaps} swaps sent",
            plan.seed, plan.seconds, faults.cuts, faults.holds, faults.stops
        )?;
        for emitted in emitted {
            writeln!(f, "{emitted}")?;
        }
        write!(
            f,
            "  quotes     rounds {}, judged {}, wrong {}; of an older slot {}, not ready {}",
            quotes.rounds,
            quotes.judged,
            quotes.wrong.len(),
            quotes.older,
            quotes.not_ready
        )?;
        let mut wrong = quotes.wrong.clone();
        wrong.dedup();
        for wrong in wrong {
            write!(f, "\n    wrong: {wrong}")?;
        }
        for emitted in emitted {
            for signature in emitted.lost.iter().take(10) {
                write!(
                    f,
                    "\n    lost at {}: {signature}",
                    emitted.commitment.name()
                )?;
            }
            for signature in emitted.invented.iter().take(10) {
                write!(
                    f,
                    "\n    invented at {}: {signature}",
                    emitted.commitment.name()
                )?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Emitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sequence = if self.contiguous {
            "whole"
        } else {
            "with holes"
        };
        write!(
            f,
            "  {:<9}  landed {}, emitted {}, lost {}, invented {}; reverted {}, gaps {}, delivered again {}, \
             signatures refused {}, sequence {sequence}",
            self.commitment.name(),
            self.landed,
            self.emitted,
            self.lost.len(),
            self.invented.len(),
            self.reverted,
            self.gaps,
            self.delivered_again,
            self.refused,
        )
    }
}
