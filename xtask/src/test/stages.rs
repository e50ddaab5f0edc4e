//! Stages of a test run: what is under way, how long each took, and how many tests passed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};

use crate::nextest::Counts;
use crate::step::human;

/// Stages of one run, which stops at the first that fails.
#[derive(Default)]
pub struct Stages {
    finished: Vec<(&'static str, Duration)>,
    current: &'static str,
    counts: Vec<Counts>,
}

impl Stages {
    /// Does a stage's work.
    pub fn stage<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.current = name;
        let started = Instant::now();
        let value = work().with_context(|| format!("stage \"{name}\" failed"))?;
        self.finished.push((name, started.elapsed()));
        Ok(value)
    }

    /// Runs a stage's tests and counts them; one that fails fails the stage.
    pub fn tests(
        &mut self,
        name: &'static str,
        run: impl FnOnce() -> Result<Counts>,
    ) -> Result<()> {
        self.current = name;
        let started = Instant::now();
        let counts = run().with_context(|| format!("stage \"{name}\" failed"))?;
        self.counts.push(counts);
        if counts.failed > 0 {
            bail!("stage \"{name}\": {} tests failed", counts.failed);
        }
        self.finished.push((name, started.elapsed()));
        Ok(())
    }

    /// Prints what stopped the run, the time table and, as the very last line, the counts.
    pub fn close(self, stopped: Option<&Error>) -> ExitCode {
        if let Some(error) = stopped {
            println!("\nerror: {error:#}");
        }
        println!("\nStages:");
        for (name, elapsed) in &self.finished {
            println!("  {name:<28} {:>10}", human(*elapsed));
        }
        if stopped.is_some() {
            println!("  {:<28} {:>10}", self.current, "FAILED");
        }
        let Counts { passed, failed } = self.counts.into_iter().sum();
        println!("{passed} passed, {failed} failed");
        if stopped.is_some() || failed > 0 {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_tests_stop_the_stages_and_are_counted() {
        let mut stages = Stages::default();
        let counts = |passed, failed| Ok(Counts { passed, failed });
        stages.tests("first", || counts(2, 0)).expect("none failed");
        let error = stages.tests("second", || counts(3, 1));
        let text = error.expect_err("one failed").to_string();
        assert_eq!(text, "stage \"second\": 1 tests failed");
        let sum: Counts = stages.counts.iter().copied().sum();
        assert_eq!(
            sum,
            Counts {
                passed: 5,
                failed: 1
            }
        );
        assert_eq!(stages.finished.len(), 1);
    }
}
