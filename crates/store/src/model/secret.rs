//! Signing secrets of webhooks; debug output hides them.

use base64::{Engine, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretString};

/// A webhook's signing secret: `whsec_` and the base64 of its key. Debug output hides it.
#[derive(Clone, Debug)]
pub struct Secret(SecretString);

impl Secret {
    /// How every secret begins.
    pub const PREFIX: &'static str = "whsec_";

    /// A secret from 32 random bytes; Standard Webhooks asks for 24 to 64.
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(format!("{}{}", Self::PREFIX, STANDARD.encode(random)).into())
    }

    /// A secret as the store wrote it.
    pub(crate) fn from_stored(text: String) -> Self {
        Self(text.into())
    }

    /// The secret itself; call it only to sign, or to show it once to its owner.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

/// Most secrets that sign beside the current one. Each adds 48 bytes to a header of every delivery, and
/// an owner who rotates more often than the endpoint follows has another problem.
pub const MAX_PREVIOUS_SECRETS: usize = 4;

/// The secrets of a webhook that sign at some time, the current one first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    /// The current one.
    pub current: Secret,
    /// Those before, while they still sign, the latest first.
    pub previous: Vec<Secret>,
}

impl Secrets {
    /// All of them, the current one first.
    pub fn iter(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::from_random([1; 32]);
        assert!(secret.expose().starts_with("whsec_"));
        assert!(!format!("{secret:?}").contains(secret.expose()));
    }
}
