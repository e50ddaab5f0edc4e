//! Logs an outage once when it begins and once when it ends.

/// The log of something that works or does not. Only changes are logged: an outage of an hour is two
/// lines, not one for each attempt to end it.
#[derive(Debug)]
pub struct OutageLog {
    activity: &'static str,
    /// The fault that was logged last, while it lasts.
    fault: Option<&'static str>,
}

impl OutageLog {
    /// The log of `activity`, which reads as the beginning of a sentence, such as "fetching blockhashes".
    #[must_use]
    pub const fn new(activity: &'static str) -> Self {
        Self {
            activity,
            fault: None,
        }
    }

    /// Logs that it does not work. `kind` distinguishes faults: a new kind is logged, the same kind
    /// again is not, however its details vary.
    pub fn failed(&mut self, kind: &'static str, details: &dyn std::fmt::Display) {
        if self.fault != Some(kind) {
            self.fault = Some(kind);
            tracing::error!(%details, "{}: {kind}; trying again until it works", self.activity);
        }
    }

    /// Logs that it works, if it did not.
    pub fn recovered(&mut self) {
        if self.fault.take().is_some() {
            tracing::info!("{}: working again", self.activity);
        }
    }
}
