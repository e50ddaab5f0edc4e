//! Telling a person once.

/// Something that is either all right or not. Only changes are logged: an outage of an hour is two
/// lines, not one for each attempt to end it.
#[derive(Debug)]
pub struct Incident {
    what: &'static str,
    /// The fault that was logged last, while it lasts.
    fault: Option<&'static str>,
}

impl Incident {
    /// Watches `what`, which reads as the beginning of a sentence, such as "the stream".
    #[must_use]
    pub const fn new(what: &'static str) -> Self {
        Self { what, fault: None }
    }

    /// Notes that it is not all right. `kind` tells faults apart: a new kind is logged, the same kind
    /// again is not, however its details vary.
    pub fn failed(&mut self, kind: &'static str, details: &dyn std::fmt::Display) {
        if self.fault != Some(kind) {
            self.fault = Some(kind);
            tracing::error!(%details, "{}: {kind}; trying again until it works", self.what);
        }
    }

    /// Notes that it is all right.
    pub fn recovered(&mut self) {
        if self.fault.take().is_some() {
            tracing::info!("{}: working again", self.what);
        }
    }
}
