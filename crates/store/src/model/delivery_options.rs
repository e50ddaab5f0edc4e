//! Delivery options: how its owner wants a webhook to be delivered to, within what the service offers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Most attempts that may be asked to be in flight at once to one endpoint: no process makes more.
pub const MAX_CONCURRENCY: u32 = 16;

/// Most attempts that may be asked to be begun in a second: more is what an endpoint without a limit gets.
pub const MAX_ATTEMPTS_PER_SECOND: u32 = 1000;

/// Most pauses of a retry schedule of its owner's: every attempt is kept, and the service's own has nine.
pub const MAX_OWN_RETRY_PAUSES: usize = 20;

/// Longest pause of a retry schedule of its owner's, seconds: a day, as in the service's own.
pub const MAX_OWN_RETRY_PAUSE_SECS: u32 = 24 * 60 * 60;

/// Fewest bytes of a body that may be asked to be the most: less is no message.
pub const MIN_PAYLOAD_BYTES: u32 = 1024;

/// Most bytes of a body that may be asked to be the most: no message is longer than an account of 10 MiB is in base64.
pub const MAX_PAYLOAD_BYTES: u32 = 16 * 1024 * 1024;

/// Whether deliveries carry the data of their messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Payload {
    /// They do.
    #[default]
    Full,
    /// They say what they are about, and the data is fetched by the message's id.
    Thin,
}

impl Payload {
    /// Every one, in the order in which lists show them.
    pub const ALL: [Self; 2] = [Self::Full, Self::Thin];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Thin => "thin",
        }
    }
}

/// A version of the signatures of Standard Webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SignatureVersion {
    /// HMAC-SHA256 under the secret.
    V1,
    /// Ed25519 under a key that follows from the secret: the public half verifies, and signs nothing.
    V1a,
}

impl SignatureVersion {
    /// Every one, in the order in which a delivery carries them.
    pub const ALL: [Self; 2] = [Self::V1, Self::V1a];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1a => "v1a",
        }
    }
}

/// How a webhook is delivered to. What is `None` is as for every webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeliveryOptions {
    /// Most attempts in flight at once, of all processes together.
    pub concurrency: Option<u32>,
    /// Most attempts that are begun in a second, evenly spread, of all processes together.
    pub max_per_second: Option<u32>,
    /// Deadline of an attempt, milliseconds; the service's own where that is shorter.
    pub timeout_ms: Option<u32>,
    /// Pauses between the attempts, seconds; the message is given up after the last.
    pub retry_pauses_seconds: Option<Vec<u32>>,
    /// What its deliveries are signed by, each once and in order; `v1` where that is `None`.
    pub signatures: Option<Vec<SignatureVersion>>,
    /// Whether they carry the data of their messages.
    pub payload: Payload,
    /// Most bytes of a body that is delivered with its data.
    pub max_payload_bytes: Option<u32>,
}

impl DeliveryOptions {
    /// Whether a body of so many bytes is delivered without its data.
    #[must_use]
    pub fn thins(&self, bytes: usize) -> bool {
        let fits = |most: u32| u32::try_from(bytes).is_ok_and(|bytes| bytes <= most);
        self.payload == Payload::Thin || !self.max_payload_bytes.is_none_or(fits)
    }

    /// Whether deliveries carry signatures of this version.
    #[must_use]
    pub fn signs_by(&self, version: SignatureVersion) -> bool {
        match &self.signatures {
            None => version == SignatureVersion::V1,
            Some(versions) => versions.contains(&version),
        }
    }

    /// Whether everything is as for every webhook.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The deadline of an attempt where the service's own is `longest`.
    #[must_use]
    pub fn deadline(&self, longest: Duration) -> Duration {
        let asked = self
            .timeout_ms
            .map(|millis| Duration::from_millis(millis.into()));
        asked.map_or(longest, |asked| asked.min(longest))
    }

    /// The pauses between the attempts, where the webhook has its own.
    #[must_use]
    pub fn retry_pauses(&self) -> Option<Vec<Duration>> {
        let seconds = self.retry_pauses_seconds.as_ref()?.iter();
        Some(
            seconds
                .map(|pause| Duration::from_secs((*pause).into()))
                .collect(),
        )
    }

    /// How many attempts may be leased at once to an endpoint that is known to bear `learnt`.
    pub(crate) fn leasable(&self, learnt: Option<u32>) -> Option<u32> {
        [learnt, self.concurrency].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_what_is_learnt_and_what_is_asked_for_is_leased() {
        let options = |concurrency| DeliveryOptions {
            concurrency,
            ..DeliveryOptions::default()
        };
        assert_eq!(options(None).leasable(None), None);
        assert_eq!(options(None).leasable(Some(3)), Some(3));
        assert_eq!(options(Some(2)).leasable(Some(3)), Some(2));
        assert_eq!(options(Some(4)).leasable(Some(3)), Some(3));
    }

    #[test]
    fn a_body_is_thin_by_wish_or_by_its_length() {
        let of = |payload, max_payload_bytes| DeliveryOptions {
            payload,
            max_payload_bytes,
            ..DeliveryOptions::default()
        };
        assert!(!of(Payload::Full, None).thins(usize::MAX));
        assert!(of(Payload::Thin, None).thins(1));
        assert!(!of(Payload::Full, Some(2000)).thins(2000));
        assert!(of(Payload::Full, Some(2000)).thins(2001));
    }

    #[test]
    fn a_deadline_can_only_be_shortened() {
        let of = |timeout_ms| DeliveryOptions {
            timeout_ms,
            ..DeliveryOptions::default()
        };
        let longest = Duration::from_secs(15);
        assert_eq!(of(None).deadline(longest), longest);
        assert_eq!(
            of(Some(1500)).deadline(longest),
            Duration::from_millis(1500)
        );
        assert_eq!(of(Some(30_000)).deadline(longest), longest);
    }

    #[test]
    fn what_is_stored_is_read_again_and_what_is_absent_is_as_for_every_webhook() {
        let options = DeliveryOptions {
            concurrency: Some(1),
            max_per_second: Some(2),
            timeout_ms: Some(3000),
            retry_pauses_seconds: Some(vec![4, 5]),
            signatures: Some(SignatureVersion::ALL.to_vec()),
            payload: Payload::Thin,
            max_payload_bytes: Some(1024),
        };
        assert!(
            SignatureVersion::ALL
                .iter()
                .all(|version| options.signs_by(*version))
        );
        let text = serde_json::to_string(&options).expect("JSON");
        let read: DeliveryOptions = serde_json::from_str(&text).expect("read");
        assert_eq!(read, options);
        let absent: DeliveryOptions = serde_json::from_str("{}").expect("read");
        assert!(absent.is_default() && !options.is_default());
        assert!(absent.signs_by(SignatureVersion::V1) && !absent.signs_by(SignatureVersion::V1a));
    }
}
