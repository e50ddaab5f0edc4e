//! Stages of a test run: what is under way, how long each took, and how many tests passed.

use std::num::NonZero;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};

use super::beside::{self, Beside};
use crate::nextest::Counts;
use crate::output::say;
use crate::step::human;

/// What the time table calls the time that stages took beside each other; theirs stand indented below it.
const SIDE_BY_SIDE: &str = "side by side";

/// Stages of one run, which stops at the first that fails.
#[derive(Default)]
pub struct Stages {
    ended: Vec<Row>,
    counts: Vec<Counts>,
}

/// A line of the time table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: &'static str,
    is_beside: bool,
    /// How long it took; `None` where it failed.
    took: Option<Duration>,
}

impl Stages {
    /// Does a stage's work.
    pub fn stage<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let started = Instant::now();
        let outcome = work().with_context(|| format!("stage \"{name}\" failed"));
        self.end(name, false, outcome.is_ok(), started.elapsed());
        outcome
    }

    /// Runs a stage's tests and counts them; one that fails fails the stage.
    pub fn tests(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> Result<Counts>,
    ) -> Result<()> {
        let started = Instant::now();
        let outcome = self.judge(name, run());
        self.end(name, false, outcome.is_ok(), started.elapsed());
        outcome
    }

    /// Runs stages that use one processor each, in this order and as many at a time as there are processors: one that had to
    /// share its own would take longer, and measure more. All come to their end; what each says is printed whole then.
    pub fn side_by_side(&mut self, all: Vec<Beside<'_>>) -> Result<()> {
        let started = Instant::now();
        let at = self.ended.len();
        let mut faults = Vec::new();
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        for ended in beside::run(all, processors) {
            let outcome = self.judge(ended.name, ended.outcome);
            self.end(ended.name, true, outcome.is_ok(), ended.took);
            faults.extend(outcome.err().map(|error| format!("{error:#}")));
        }
        let row = Row {
            name: SIDE_BY_SIDE,
            is_beside: false,
            took: faults.is_empty().then_some(started.elapsed()),
        };
        self.ended.insert(at, row);
        if faults.is_empty() {
            return Ok(());
        }
        bail!("{}", faults.join("\n"))
    }

    /// Counts a stage's tests, of which none may fail.
    fn judge(&mut self, name: &str, outcome: Result<Counts>) -> Result<()> {
        let counts = outcome.with_context(|| format!("stage \"{name}\" failed"))?;
        self.counts.push(counts);
        if counts.failed > 0 {
            bail!("stage \"{name}\": {} tests failed", counts.failed);
        }
        Ok(())
    }

    fn end(&mut self, name: &'static str, is_beside: bool, is_good: bool, took: Duration) {
        self.ended.push(Row {
            name,
            is_beside,
            took: is_good.then_some(took),
        });
    }

    /// Prints what stopped the run, the time table and, as the very last line, the counts.
    pub fn close(self, stopped: Option<&Error>) -> ExitCode {
        if let Some(error) = stopped {
            say!("\nerror: {error:#}");
        }
        say!("\nStages:");
        for row in &self.ended {
            say!("{}", row.shown());
        }
        let Counts { passed, failed } = self.counts.into_iter().sum();
        say!("{passed} passed, {failed} failed");
        if stopped.is_some() || failed > 0 {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

impl Row {
    fn shown(&self) -> String {
        let indent = if self.is_beside { "  " } else { "" };
        let name = format!("{indent}{}", self.name);
        let took = self.took.map_or_else(|| "FAILED".to_owned(), human);
        format!("  {name:<28} {took:>10}")
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    fn counts(passed: u64, failed: u64) -> Result<Counts> {
        Ok(Counts { passed, failed })
    }

    fn sum(stages: &Stages) -> Counts {
        stages.counts.iter().copied().sum()
    }

    /// The names of the time table, and whether each was good.
    fn table(stages: &Stages) -> Vec<(&'static str, bool)> {
        let rows = stages.ended.iter();
        rows.map(|row| (row.name, row.took.is_some())).collect()
    }

    #[test]
    fn failing_tests_stop_the_stages_and_are_counted() {
        let mut stages = Stages::default();
        stages.tests("first", || counts(2, 0)).expect("none failed");
        let error = stages.tests("second", || counts(3, 1));
        let text = error.expect_err("one failed").to_string();
        assert_eq!(text, "stage \"second\": 1 tests failed");
        assert_eq!(
            sum(&stages),
            Counts {
                passed: 5,
                failed: 1
            }
        );
        assert_eq!(table(&stages), [("first", true), ("second", false)]);
    }

    #[test]
    fn stages_side_by_side_all_end_and_each_that_failed_is_named() {
        let mut stages = Stages::default();
        stages.stage("before", || Ok(())).expect("good");
        let slow = Duration::from_millis(100);
        let error = stages.side_by_side(vec![
            Beside::stage("broken", || Err(anyhow!("no reason"))),
            Beside::tests("red", || {
                thread::sleep(slow);
                counts(3, 1)
            }),
            Beside::tests("green", || {
                thread::sleep(slow * 2);
                counts(4, 0)
            }),
        ]);
        let text = error.expect_err("two failed").to_string();
        let expected = "stage \"broken\" failed: no reason\nstage \"red\": 1 tests failed";
        assert_eq!(text, expected);
        assert_eq!(
            sum(&stages),
            Counts {
                passed: 7,
                failed: 1
            }
        );
        let rows = table(&stages);
        let expected = [
            ("before", true),
            (SIDE_BY_SIDE, false),
            ("broken", false),
            ("red", false),
            ("green", true),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_table_has_the_stages_that_ran_beside_others_below_the_time_of_all() {
        let row = |name, is_beside, seconds: Option<u64>| {
            let took = seconds.map(Duration::from_secs);
            Row {
                name,
                is_beside,
                took,
            }
            .shown()
        };
        let alone = row("format", false, Some(15));
        assert_eq!(alone, "  format                             15 s");
        let beside = row("plugin tests", true, None);
        assert_eq!(beside, "    plugin tests                   FAILED");
    }
}
