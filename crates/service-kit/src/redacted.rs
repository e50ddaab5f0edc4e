//! Secret text that prints as `REDACTED`.

use std::fmt;

use serde::Deserialize;

/// A secret string that prints as `REDACTED`, so that a logged configuration leaks nothing.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Redacted(String);

impl Redacted {
    /// Wraps a secret.
    #[must_use]
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself; call it only where the secret leaves the process on purpose.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

#[cfg(test)]
mod tests {
    use super::Redacted;

    #[test]
    fn debug_output_hides_the_secret() {
        let token = Redacted::new("hunter2");
        assert_eq!(format!("{token:?}"), "REDACTED");
        assert_eq!(token.expose(), "hunter2");
    }
}
