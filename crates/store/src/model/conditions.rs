//! Conditions: what an event must be, beside touching an address of a webhook's filters, to match it.

use serde::{Deserialize, Serialize};
use solana_pubkey::Pubkey;

/// Whether transactions must have succeeded or failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TransactionOutcome {
    /// Either.
    #[default]
    Any,
    /// Those that succeeded.
    Succeeded,
    /// Those that failed.
    Failed,
}

impl TransactionOutcome {
    /// Every one, in the order in which lists show them.
    pub const ALL: [Self; 3] = [Self::Any, Self::Succeeded, Self::Failed];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }
}

/// Bytes that an account's data must have at an offset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memcmp {
    /// Where they begin.
    pub offset: u64,
    /// The bytes.
    #[serde(with = "hexadecimal")]
    pub bytes: Vec<u8>,
}

/// The beginning of the data of an instruction of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionPrefix {
    /// The program.
    #[serde(with = "base58")]
    pub program: Pubkey,
    /// The first bytes of its data.
    #[serde(with = "hexadecimal")]
    pub discriminator: Vec<u8>,
}

/// What an event must be. Those on transactions hold for the events that programs emit in them, too; those on accounts are
/// about the account as it is after the change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Conditions {
    /// Whether transactions must have succeeded or failed.
    pub outcome: TransactionOutcome,
    /// Whether votes are left out.
    pub without_votes: bool,
    /// Addresses that a transaction must mention, each of them.
    #[serde(with = "base58_list")]
    pub accounts_required: Vec<Pubkey>,
    /// Addresses that a transaction must not mention, none of them.
    #[serde(with = "base58_list")]
    pub accounts_excluded: Vec<Pubkey>,
    /// Instructions of which a transaction must have executed one, at any depth; empty does not restrict.
    pub instructions: Vec<InstructionPrefix>,
    /// Names of which a program event must have one; empty does not restrict.
    pub event_names: Vec<String>,
    /// What an account's data must hold, all of it.
    pub memcmp: Vec<Memcmp>,
    /// How long an account's data must be.
    pub data_size: Option<u64>,
}

impl Conditions {
    /// Whether there are none: every event that touches an address of the filters matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether some are about transactions.
    #[must_use]
    pub fn restrict_transactions(&self) -> bool {
        let Self {
            outcome,
            without_votes,
            accounts_required,
            accounts_excluded,
            instructions,
            ..
        } = self;
        *outcome != TransactionOutcome::Any
            || *without_votes
            || !(accounts_required.is_empty()
                && accounts_excluded.is_empty()
                && instructions.is_empty())
    }
}

/// An address as base58.
mod base58 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use solana_pubkey::Pubkey;

    pub(super) fn serialize<S: Serializer>(address: &Pubkey, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(address)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Pubkey, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Addresses as base58.
mod base58_list {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use solana_pubkey::Pubkey;

    pub(super) fn serialize<S: Serializer>(list: &[Pubkey], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Pubkey>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        let parsed = texts.iter().map(|text| text.parse());
        parsed.collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// Bytes as hexadecimal digits.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex::encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        hex::decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_again_and_what_is_absent_does_not_restrict() {
        let conditions = Conditions {
            outcome: TransactionOutcome::Failed,
            without_votes: true,
            accounts_required: vec![Pubkey::new_from_array([1; 32])],
            accounts_excluded: vec![Pubkey::new_from_array([2; 32])],
            instructions: vec![InstructionPrefix {
                program: Pubkey::new_from_array([3; 32]),
                discriminator: vec![0, 255],
            }],
            event_names: vec!["SwapEvent".to_owned()],
            memcmp: vec![Memcmp {
                offset: 32,
                bytes: vec![9; 32],
            }],
            data_size: Some(165),
        };
        let text = serde_json::to_string(&conditions).expect("JSON");
        let read: Conditions = serde_json::from_str(&text).expect("read");
        assert_eq!(read, conditions);
        let absent: Conditions = serde_json::from_str("{}").expect("read");
        assert!(absent.is_empty() && !conditions.is_empty());
    }
}
