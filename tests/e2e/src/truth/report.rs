//! Report of a truth run: counts, and whether they are clean.

use std::fmt;

use super::{Plan, facts::Fact, faults::Faults, ledger::Kinds};

/// How many of the edits that a rate comes to may be left undone: of the webhooks at each of three commitments the last one, which
/// has its turn while the run ends. Other turns are not missed, however long an answer takes.
const LAST_EDITS: u64 = 3;

/// How many of each fault a report shows: enough to see of what kind they are.
const SHOWN: usize = 10;

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
    /// Changes of accounts that were not emitted, in slots of which a gap says that such may be missing.
    pub(super) missed: usize,
    /// What landed and was not emitted, without a word.
    pub(super) lost: Vec<Fact>,
    /// What was emitted, not retracted, and is not so on the chain.
    pub(super) invented: Vec<Fact>,
    /// What was emitted under two ids.
    pub(super) told_twice: Vec<Fact>,
    pub(super) reverted: usize,
    pub(super) gaps: usize,
    pub(super) delivered_again: usize,
    /// Deliveries with a bad signature.
    pub(super) refused: usize,
    /// Sequence numbers that did not arrive, below one that did.
    pub(super) holes: Vec<u64>,
}

impl Emitted {
    /// Whether nothing is missing. Messages are sent side by side, so when all that must be told is there, others with lower numbers
    /// may still be on their way.
    pub(super) const fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.holes.is_empty()
    }

    const fn is_clean(&self) -> bool {
        let is_right = self.invented.is_empty() && self.told_twice.is_empty();
        self.is_complete() && is_right && self.refused == 0
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
    /// What landed of all that the webhooks watch.
    pub(super) landed: Kinds,
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
        let looked = looked && self.landed.has_all();
        let emitted = !self.emitted.is_empty() && self.emitted.iter().all(Emitted::is_clean);
        let stayed_open = !is_left_alone || self.reconnects == 0;
        looked && emitted && stayed_open && self.quotes.wrong.is_empty()
    }

    /// Whether the filter was edited, and where a rate was asked for as often as that.
    fn has_edited(&self) -> bool {
        let asked = self.plan.edits_asked().unwrap_or(0);
        self.edits > 0 && u64::from(self.edits) + LAST_EDITS >= asked
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
            landed,
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
        writeln!(
            f,
            "  landed     {} transfers, {} swaps, {} events of the exchange, {} changes of accounts",
            landed.transfers, landed.swaps, landed.events, landed.changes
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
            let faults = [
                ("lost", &emitted.lost),
                ("invented", &emitted.invented),
                ("told twice", &emitted.told_twice),
            ];
            for (fault, facts) in faults {
                for fact in facts.iter().take(SHOWN) {
                    write!(f, "\n    {fault} at {}: {fact}", emitted.commitment.name())?;
                }
            }
            for number in emitted.holes.iter().take(SHOWN) {
                let commitment = emitted.commitment.name();
                write!(f, "\n    missing at {commitment}: sequence number {number}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Emitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "  {:<9}  landed {}, emitted {}, lost {}, invented {}, told twice {}; missed in gaps {}, reverted {}, gaps {}, \
             delivered again {}, signatures refused {}, sequence numbers missing {}",
            self.commitment.name(),
            self.landed,
            self.emitted,
            self.lost.len(),
            self.invented.len(),
            self.told_twice.len(),
            self.missed,
            self.reverted,
            self.gaps,
            self.delivered_again,
            self.refused,
            self.holes.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::truth::facts::What;

    /// Of a run of a minute with ten edits a second, in which nothing went wrong.
    fn report() -> Report {
        let emitted = Emitted {
            commitment: Commitment::Confirmed,
            landed: 4,
            emitted: 4,
            missed: 0,
            lost: Vec::new(),
            invented: Vec::new(),
            told_twice: Vec::new(),
            reverted: 0,
            gaps: 0,
            delivered_again: 0,
            refused: 0,
            holes: Vec::new(),
        };
        Report {
            plan: Plan {
                seconds: 60,
                seed: 1,
                edits_per_second: NonZeroU32::new(10),
            },
            faults: Faults {
                cuts: 1,
                ..Faults::default()
            },
            edits: 600,
            reconnects: 0,
            market_connections: 2,
            sent: 1,
            swaps: 1,
            quotes: QuoteCounts {
                judged: 1,
                ..QuoteCounts::default()
            },
            landed: Kinds {
                transfers: 1,
                swaps: 1,
                events: 1,
                changes: 1,
            },
            emitted: vec![emitted],
        }
    }

    #[test]
    fn a_run_of_fewer_edits_than_were_asked_for_is_not_clean() {
        for (edits, is_clean) in [(600, true), (597, true), (596, false), (0, false)] {
            let report = Report { edits, ..report() };
            assert_eq!(report.is_clean(), is_clean, "{edits}");
        }
    }

    #[test]
    fn a_run_that_looked_at_one_kind_of_event_less_is_not_clean() {
        let all = report().landed;
        for landed in [
            Kinds {
                transfers: 0,
                ..all
            },
            Kinds { swaps: 0, ..all },
            Kinds { events: 0, ..all },
            Kinds { changes: 0, ..all },
        ] {
            let report = Report { landed, ..report() };
            assert!(!report.is_clean(), "{landed:?}");
        }
    }

    #[test]
    fn each_fault_of_what_was_emitted_counts() {
        let fact = Fact {
            slot: 9,
            what: What::Transaction {
                signature: "lost".to_owned(),
            },
        };
        let faults: [fn(&mut Emitted) -> &mut Vec<Fact>; 3] = [
            |emitted| &mut emitted.lost,
            |emitted| &mut emitted.invented,
            |emitted| &mut emitted.told_twice,
        ];
        for fault in faults {
            let mut report = report();
            fault(&mut report.emitted[0]).push(fact.clone());
            assert!(!report.is_clean(), "{report}");
            assert!(report.to_string().contains("slot 9: transaction lost"));
        }
    }

    #[test]
    fn a_number_that_did_not_arrive_counts() {
        let mut report = report();
        report.emitted[0].holes.push(3);
        assert!(!report.emitted[0].is_complete() && !report.is_clean());
        assert!(report.to_string().contains("sequence number 3"), "{report}");
    }
}
