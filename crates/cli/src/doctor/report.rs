//! Report of the doctor: one finding for each thing that was checked, with what to do where it is not well.

use std::fmt;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// Nothing is to be done; in a few words what is there.
    Well(String),
    /// Sluice runs, but something is missing or should be looked at.
    Doubtful {
        /// What is there.
        found: String,
        /// What to do.
        remedy: String,
    },
    /// Sluice, or a part of it, does not work like this.
    Broken {
        /// What is there.
        found: String,
        /// What to do.
        remedy: String,
    },
}

impl Finding {
    /// Something to look at, and what to do.
    pub fn doubtful(found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Doubtful {
            found: found.into(),
            remedy: remedy.into(),
        }
    }

    /// A failure, and what to do.
    pub fn broken(found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Broken {
            found: found.into(),
            remedy: remedy.into(),
        }
    }

    /// A failure with its causes, and what to do.
    pub fn failed(error: &anyhow::Error, remedy: impl Into<String>) -> Self {
        Self::broken(format!("{error:#}"), remedy)
    }
}

/// What was checked, and what was found.
#[derive(Debug)]
struct Line<'a> {
    subject: &'a str,
    finding: &'a Finding,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, found, remedy) = match self.finding {
            Finding::Well(found) => ("ok", found, None),
            Finding::Doubtful { found, remedy } => ("warning", found, Some(remedy)),
            Finding::Broken { found, remedy } => ("FAILED", found, Some(remedy)),
        };
        write!(f, "{word:<8} {}: {found}", self.subject)?;
        if let Some(remedy) = remedy {
            write!(f, "\n{:<8} to do: {remedy}", "")?;
        }
        Ok(())
    }
}

/// Findings so far, printed as they come.
#[derive(Debug, Default)]
pub struct Report {
    checks: usize,
    warnings: usize,
    failures: usize,
}

impl Report {
    /// Prints a finding and counts it.
    pub fn add(&mut self, subject: &str, finding: &Finding) {
        println!("{}", Line { subject, finding });
        self.checks = self.checks.saturating_add(1);
        match finding {
            Finding::Well(_) => {}
            Finding::Doubtful { .. } => self.warnings = self.warnings.saturating_add(1),
            Finding::Broken { .. } => self.failures = self.failures.saturating_add(1),
        }
    }

    /// Prints the counts.
    ///
    /// # Errors
    /// When a check has failed.
    pub fn end(&self) -> anyhow::Result<()> {
        let Self {
            checks,
            warnings,
            failures,
        } = self;
        anyhow::ensure!(
            *failures == 0,
            "{failures} of {checks} checks failed, and {warnings} gave a warning"
        );
        println!("{checks} checks, {warnings} of them with a warning");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_line_and_its_remedy_another() {
        let line = |finding| {
            let subject = "clock";
            Line {
                subject,
                finding: &finding,
            }
            .to_string()
        };
        assert_eq!(
            line(Finding::Well("in time".into())),
            "ok       clock: in time"
        );
        assert_eq!(
            line(Finding::broken("an hour late", "set it")),
            "FAILED   clock: an hour late\n         to do: set it"
        );
    }

    #[test]
    fn a_failure_ends_the_command_with_an_error_and_a_warning_does_not() {
        let mut report = Report::default();
        report.add("disk", &Finding::doubtful("small", "buy another"));
        report.end().expect("a warning is no failure");
        report.add("node", &Finding::broken("away", "start it"));
        let error = report.end().expect_err("one failed").to_string();
        assert_eq!(error, "1 of 2 checks failed, and 1 gave a warning");
    }
}
