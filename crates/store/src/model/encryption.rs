//! Encryption keys: seal what of a webhook is secret before it is stored, and open it again.
//!
//! AES-256-GCM. What is sealed is bound to its webhook and its column, so that it opens in no other place. It begins with
//! the id of its key, which follows from the key: a wrong key is known as one before it is tried. Nonces are random and made
//! by the cipher's library, because one that is used twice gives the key away.

use std::{fmt, sync::Arc};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::{id::WebhookId, secret::Secret};

/// Bytes of a key of AES-256.
const KEY_BYTES: usize = 32;

/// Bytes of a key's hash that are its id: enough that no two keys of one installation share it.
const ID_BYTES: usize = 8;

/// Hashed before a key, so that its id is the hash of nothing else.
const ID_DOMAIN: &[u8] = b"sluice encryption key";

/// How everything sealed begins, before the id of the key. Released schemas ask of every secret that it begins so; the base64
/// of one that is not sealed has no point.
const SEALED: &str = "whsec_sealed.";

/// What of a webhook is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealedColumn {
    /// The signing secret.
    Secret,
    /// The secrets before it.
    PreviousSecrets,
    /// The owner's headers.
    Headers,
}

impl SealedColumn {
    const fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::PreviousSecrets => "previous_secrets",
            Self::Headers => "headers",
        }
    }

    /// Binds what is sealed to its place. No identifier has the separator.
    fn place(self, webhook: &WebhookId) -> Aad<Vec<u8>> {
        Aad::from(format!("{webhook}\n{}", self.name()).into_bytes())
    }
}

/// Why a text is no encryption key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{setting} must be 32 random bytes in base64, such as `openssl rand -base64 32` prints")]
pub struct InvalidEncryptionKey {
    /// The setting that gives it.
    setting: &'static str,
}

/// Why something sealed does not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SealFault {
    /// It is sealed by a key that is not known.
    UnknownKey {
        /// The id of that key.
        id: String,
    },
    /// It is damaged, or was sealed for another place.
    Damaged,
}

#[derive(Debug)]
struct EncryptionKey {
    id: String,
    cipher: RandomizedNonceKey,
}

impl EncryptionKey {
    fn parse(text: &str, setting: &'static str) -> Result<Self, InvalidEncryptionKey> {
        let invalid = || InvalidEncryptionKey { setting };
        let bytes = STANDARD.decode(text.trim()).map_err(|_| invalid())?;
        if bytes.len() != KEY_BYTES {
            return Err(invalid());
        }
        let cipher = RandomizedNonceKey::new(&AES_256_GCM, &bytes).map_err(|_| invalid())?;
        let hash = Sha256::new().chain_update(ID_DOMAIN).chain_update(&bytes);
        let id = hex::encode(&hash.finalize()[..ID_BYTES]);
        Ok(Self { id, cipher })
    }

    fn beginning(&self) -> String {
        format!("{SEALED}{}.", self.id)
    }
}

/// The keys under which a store keeps what of webhooks is secret. Debug output shows their ids alone.
#[derive(Clone, Default)]
pub struct EncryptionKeys {
    current: Option<Arc<EncryptionKey>>,
    previous: Option<Arc<EncryptionKey>>,
}

impl EncryptionKeys {
    /// From the settings: `current` seals and opens, `previous` opens what was sealed before. Without `current` what is written
    /// stays as it is.
    ///
    /// # Errors
    /// [`InvalidEncryptionKey`], which names the setting and shows nothing of it.
    pub fn parse(
        current: Option<&str>,
        previous: Option<&str>,
    ) -> Result<Self, InvalidEncryptionKey> {
        let parse = |text: Option<&str>, setting| {
            text.map(|text| EncryptionKey::parse(text, setting).map(Arc::new))
                .transpose()
        };
        Ok(Self {
            current: parse(current, "store.encryption-key")?,
            previous: parse(previous, "store.previous-encryption-key")?,
        })
    }

    /// The id of the key that seals; `None` when nothing is sealed.
    #[must_use]
    pub fn current_id(&self) -> Option<&str> {
        self.current.as_ref().map(|key| key.id.as_str())
    }

    /// How everything begins that is sealed, by whatever key.
    pub(crate) const fn sealed_beginning() -> &'static str {
        SEALED
    }

    /// How everything begins that the current key has sealed.
    pub(crate) fn current_beginning(&self) -> Option<String> {
        self.current.as_ref().map(|key| key.beginning())
    }

    /// Seals a text for its place; as it is without a key.
    pub(crate) fn seal(
        &self,
        webhook: &WebhookId,
        column: SealedColumn,
        text: String,
    ) -> Result<String, SealFault> {
        let Some(key) = &self.current else {
            return Ok(text);
        };
        let mut sealed = text.into_bytes();
        let nonce = key
            .cipher
            .seal_in_place_append_tag(column.place(webhook), &mut sealed)
            .map_err(|_| SealFault::Damaged)?;
        let whole = [nonce.as_ref().as_slice(), sealed.as_slice()].concat();
        Ok(format!("{}{}", key.beginning(), STANDARD.encode(whole)))
    }

    /// Opens what was stored in this place; as it is when it is not sealed.
    pub(crate) fn open(
        &self,
        webhook: &WebhookId,
        column: SealedColumn,
        stored: String,
    ) -> Result<String, SealFault> {
        let Some(sealed) = stored.strip_prefix(SEALED) else {
            return Ok(stored);
        };
        let (id, sealed) = sealed.split_once('.').ok_or(SealFault::Damaged)?;
        let key = self.of_id(id)?;
        let mut sealed = STANDARD.decode(sealed).map_err(|_| SealFault::Damaged)?;
        let (nonce, sealed) = sealed
            .split_first_chunk_mut::<NONCE_LEN>()
            .ok_or(SealFault::Damaged)?;
        let opened = key
            .cipher
            .open_in_place(Nonce::from(&*nonce), column.place(webhook), sealed)
            .map_err(|_| SealFault::Damaged)?;
        String::from_utf8(opened.to_vec()).map_err(|_| SealFault::Damaged)
    }

    /// Whether what the key of this id has sealed can be opened.
    pub(crate) fn check(&self, id: &str) -> Result<(), SealFault> {
        self.of_id(id).map(drop)
    }

    fn of_id(&self, id: &str) -> Result<&EncryptionKey, SealFault> {
        [&self.current, &self.previous]
            .into_iter()
            .flatten()
            .find(|key| key.id == id)
            .map(Arc::as_ref)
            .ok_or_else(|| SealFault::UnknownKey { id: id.to_owned() })
    }
}

impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = |key: &Option<Arc<EncryptionKey>>| key.as_ref().map(|key| key.id.clone());
        formatter
            .debug_struct("EncryptionKeys")
            .field("current", &id(&self.current))
            .field("previous", &id(&self.previous))
            .finish()
    }
}

const _: () = assert!(
    SEALED.len() > Secret::PREFIX.len(),
    "what is sealed is longer than the beginning that the schemas ask for"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(current: u8, previous: Option<u8>) -> EncryptionKeys {
        let text = |byte: u8| STANDARD.encode([byte; KEY_BYTES]);
        EncryptionKeys::parse(Some(&text(current)), previous.map(text).as_deref()).expect("keys")
    }

    fn webhook(number: u8) -> WebhookId {
        WebhookId::from_random([number; 16])
    }

    #[test]
    fn what_is_sealed_opens_in_its_own_place_alone() {
        let keys = keys(1, None);
        let seal = |text: &str| {
            let sealed = keys.seal(&webhook(1), SealedColumn::Secret, text.to_owned());
            sealed.expect("seals")
        };
        let sealed = seal("whsec_one");
        assert!(sealed.starts_with(Secret::PREFIX) && !sealed.contains("whsec_one"));
        assert_ne!(sealed, seal("whsec_one"), "no nonce is used twice");
        let open = |webhook, column, sealed: &str| keys.open(&webhook, column, sealed.to_owned());
        assert_eq!(
            open(webhook(1), SealedColumn::Secret, &sealed).as_deref(),
            Ok("whsec_one")
        );
        for (elsewhere, column) in [
            (webhook(2), SealedColumn::Secret),
            (webhook(1), SealedColumn::Headers),
            (webhook(1), SealedColumn::PreviousSecrets),
        ] {
            assert_eq!(open(elsewhere, column, &sealed), Err(SealFault::Damaged));
        }
        let cut = &sealed[..sealed.len() - 4];
        assert_eq!(
            open(webhook(1), SealedColumn::Secret, cut),
            Err(SealFault::Damaged)
        );
    }

    #[test]
    fn a_key_that_is_not_known_is_named_and_the_previous_one_opens() {
        let place = (webhook(1), SealedColumn::Headers);
        let sealed = keys(1, None)
            .seal(&place.0, place.1, "[]".to_owned())
            .expect("seals");
        let open = |keys: &EncryptionKeys| keys.open(&place.0, place.1, sealed.clone());
        assert_eq!(open(&keys(2, Some(1))).as_deref(), Ok("[]"));
        let id = keys(1, None).current_id().expect("a key").to_owned();
        let unknown = Err(SealFault::UnknownKey { id });
        assert_eq!(open(&keys(2, None)), unknown);
        assert_eq!(open(&EncryptionKeys::default()), unknown);
    }

    #[test]
    fn what_is_no_key_is_refused_by_the_name_of_its_setting_and_not_shown() {
        for bad in ["", "s3cret", &STANDARD.encode([1; KEY_BYTES - 1])] {
            let refused = EncryptionKeys::parse(None, Some(bad))
                .expect_err(bad)
                .to_string();
            assert!(
                refused.starts_with("store.previous-encryption-key"),
                "{refused}"
            );
            assert!(bad.is_empty() || !refused.contains(bad), "{refused}");
        }
        let shown = format!("{:?}", keys(1, Some(2)));
        assert!(!shown.contains(&STANDARD.encode([1; KEY_BYTES])), "{shown}");
    }
}
