//! API keys: credentials of callers, and the access that they give.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::{
    id::{InvalidId, check_id, text_of_id},
    scopes::Scopes,
    timestamp::Timestamp,
};

/// Longest name of an API key, characters: it is a column of a list.
const MAX_NAME_CHARS: usize = 60;

/// Longest life that an API key may be given, days: ten years. One that is to live longer is made without an end.
pub const MAX_API_KEY_DAYS: u32 = 3650;

/// Identifier of an API key: `key_` and letters and digits. It is no secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiKeyId(String);

impl ApiKeyId {
    const PREFIX: &'static str = "key_";

    /// An identifier from 8 random bytes.
    #[must_use]
    pub fn from_random(random: [u8; 8]) -> Self {
        Self(format!("{}{}", Self::PREFIX, hex::encode(random)))
    }
}

text_of_id!(ApiKeyId);

/// What is wrong with a name for an API key, if anything is.
#[must_use]
pub fn api_key_name_fault(name: &str) -> Option<String> {
    let fits = (1..=MAX_NAME_CHARS).contains(&name.chars().count());
    if !fits || name.chars().any(char::is_control) || name.trim() != name {
        return Some(format!(
            "must be 1 to {MAX_NAME_CHARS} characters, without blanks around it"
        ));
    }
    // Commands take either, so that one must not look like the other.
    let looks_like_id = name.starts_with(ApiKeyId::PREFIX);
    looks_like_id.then(|| format!("must not start with {}, as the ids do", ApiKeyId::PREFIX))
}

/// The API key itself: `sluice_` and the hexadecimal of 32 random bytes. Debug output hides it.
#[derive(Clone, Debug)]
pub struct ApiKeySecret(SecretString);

impl ApiKeySecret {
    const PREFIX: &'static str = "sluice_";

    /// A key from 32 random bytes. So many cannot be guessed, which is why a plain hash of it is safe to
    /// store and quick to check.
    #[must_use]
    pub fn from_random(random: [u8; 32]) -> Self {
        Self(format!("{}{}", Self::PREFIX, hex::encode(random)).into())
    }

    /// The key itself; call it only to show it once to its owner.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// The hash that is stored.
    #[must_use]
    pub fn hash(&self) -> ApiKeyHash {
        ApiKeyHash::of(self.expose())
    }
}

/// SHA-256 of an API key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApiKeyHash(String);

impl ApiKeyHash {
    /// The hash of a text that a caller presents.
    #[must_use]
    pub fn of(key: &str) -> Self {
        Self(hex::encode(Sha256::digest(key.as_bytes())))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// An API key to be stored.
#[derive(Clone, Debug)]
pub struct NewApiKey {
    /// Fresh identifier.
    pub id: ApiKeyId,
    /// A name by which people know it; no two keys share one.
    pub name: String,
    /// Hash of the key.
    pub hash: ApiKeyHash,
    /// Time of creation.
    pub created: Timestamp,
    /// When it stops being accepted by itself; `None` where that is only when it is revoked.
    pub expires: Option<Timestamp>,
    /// What it may do.
    pub scopes: Scopes,
}

/// Bytes of a MiB.
const MIB: u64 = 1024 * 1024;

/// What an API key may have. `None` is the configured limit, or none where nothing is configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Webhooks.
    pub webhooks: Option<u32>,
    /// Addresses that its webhooks watch together, each counted once for each webhook.
    pub addresses: Option<u32>,
    /// MiB of the messages that are kept for its webhooks.
    pub stored_mib: Option<u32>,
    /// Messages that are handed over to its endpoints in a second, repetitions included. What is more waits.
    pub messages_per_second: Option<u32>,
    /// Deliveries that are leased for it at once, by all processes together.
    pub delivery_slots: Option<u32>,
}

impl Quotas {
    /// Bytes of the messages that may be kept for it.
    #[must_use]
    pub fn stored_bytes(self) -> Option<u64> {
        self.stored_mib
            .map(|mib| u64::from(mib).saturating_mul(MIB))
    }
}

/// What an API key has, of what is limited by quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Webhooks.
    pub webhooks: u32,
    /// Addresses that its webhooks watch together, each counted once for each webhook.
    pub addresses: u64,
    /// Bytes of the messages that are kept for its webhooks, those that nobody accepts included.
    pub stored_bytes: u64,
    /// Messages that were handed over to its endpoints in the last second, repetitions included; counted where they are limited.
    pub messages_per_second: Option<u32>,
    /// Whether that limit has held messages back just now.
    pub throttled: bool,
    /// Deliveries that are leased for it.
    pub delivery_slots: u32,
    /// The limits that it has of its own.
    pub quotas: Quotas,
}

/// A stored API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Identifier.
    pub id: ApiKeyId,
    /// A name by which people know it.
    pub name: String,
    /// Time of creation.
    pub created: Timestamp,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
    /// When it stops being accepted by itself; `None` where that is only when it is revoked.
    pub expires: Option<Timestamp>,
    /// Webhooks that belong to it.
    pub webhooks: u32,
    /// The limits that it has of its own.
    pub quotas: Quotas,
    /// What it may do.
    pub scopes: Scopes,
}

/// An API key that a request was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedApiKey {
    /// Identifier.
    pub id: ApiKeyId,
    /// What it may do.
    pub scopes: Scopes,
}

/// The webhooks that an operation may see. Others do not exist for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// All: for the service itself, and for a caller on the same machine while no API keys are in use. A
    /// webhook created so belongs to no API key.
    All,
    /// Those of one API key.
    Key(ApiKeyId),
}

impl Access {
    /// The API key, if it is the access of one.
    #[must_use]
    pub const fn api_key(&self) -> Option<&ApiKeyId> {
        match self {
            Self::All => None,
            Self::Key(key) => Some(key),
        }
    }
}
