//! Keys of the API.

use std::fmt;

use sha2::{Digest, Sha256};

use super::models::{InvalidId, Timestamp, check_id, text_of_id};

/// Identifier of an API key: `key_` and letters and digits. It is no secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(String);

impl KeyId {
    const PREFIX: &'static str = "key_";

    /// An identifier from 8 random bytes.
    #[must_use]
    pub fn from_random(random: [u8; 8]) -> Self {
        Self(format!("{}{}", Self::PREFIX, hex::encode(random)))
    }
}

text_of_id!(KeyId);

/// The API key itself: `sluice_` and the hexadecimal of 32 random bytes. Debug output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeySecret(String);

impl ApiKeySecret {
    const PREFIX: &'static str = "sluice_";

    /// A key from 32 random bytes. So many cannot be guessed, which is why a plain hash of it is safe to
    /// store and quick to check.
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(format!("{}{}", Self::PREFIX, hex::encode(random)))
    }

    /// The key itself; call it only to show it once to its owner.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is stored of it.
    #[must_use]
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(&self.0)
    }
}

impl fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKeySecret(…)")
    }
}

/// SHA-256 of an API key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyHash(String);

impl KeyHash {
    /// The hash of what a caller presents, whatever it is.
    #[must_use]
    pub fn of(presented: &str) -> Self {
        Self(hex::encode(Sha256::digest(presented.as_bytes())))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// An API key to be stored.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// Fresh identifier.
    pub id: KeyId,
    /// A name by which people know it; no two keys share one.
    pub name: String,
    /// Hash of the key.
    pub hash: KeyHash,
    /// Time of creation.
    pub created: Timestamp,
}

/// A stored API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Identifier.
    pub id: KeyId,
    /// A name by which people know it.
    pub name: String,
    /// Time of creation.
    pub created: Timestamp,
    /// When it stopped being accepted.
    pub revoked: Option<Timestamp>,
    /// Webhooks that belong to it.
    pub webhooks: u32,
}

/// Whose webhooks an operation may see. To anybody else they do not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Everybody's: for the service itself, and for a caller on the same machine while no keys are in
    /// use. A webhook created so belongs to no key.
    All,
    /// Those of one API key.
    Key(KeyId),
}

impl Access {
    /// The key, if it is about one.
    #[must_use]
    pub const fn key(&self) -> Option<&KeyId> {
        match self {
            Self::All => None,
            Self::Key(key) => Some(key),
        }
    }
}
