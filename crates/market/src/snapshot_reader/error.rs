//! Errors of RPC calls, distinguished by what can be done about them (pure).
//!
//! Providers answer alike with different codes, and with the same code differently, so that words count too.

use std::time::{Duration, SystemTime};

use serde::Deserialize;

/// Longest pause that a provider can ask for: one that asks for more is asked again, because its limits are often those
/// of a minute and its answer those of a day.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Longest part of a node's own text that is passed on, characters.
const LONGEST_MESSAGE: usize = 200;

/// What a person can do about a node that does not serve a method.
const REMEDY: &str = "set chain.rpc-url to a node that serves it for the exchange's program";

/// An RPC call for the snapshot failed. The texts name no address: it may carry a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SnapshotError {
    /// The node does not accept the credentials.
    #[error("{method}: the node refuses access (HTTP {status}): check the key in chain.rpc-url")]
    Unauthorized {
        /// RPC method.
        method: &'static str,
        /// HTTP status.
        status: u16,
    },
    /// The node does not serve the method, or not for this program.
    #[error("{method} is not served by this node ({message}): {REMEDY}")]
    Unavailable {
        /// RPC method.
        method: &'static str,
        /// The node's text.
        message: String,
    },
    /// The node refused the call for the number of calls.
    #[error("{method} was refused for the rate of calls: {message}")]
    RateLimited {
        /// RPC method.
        method: &'static str,
        /// The node's text.
        message: String,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The answer is longer than the node sends, or than is taken.
    #[error("{method}: the answer is too large: {message}")]
    TooLarge {
        /// RPC method.
        method: &'static str,
        /// The node's text, or the limit of ours.
        message: String,
    },
    /// The node answered with an error that none of the others is.
    #[error("{method} was refused: {message}")]
    Refused {
        /// RPC method.
        method: &'static str,
        /// The node's text.
        message: String,
    },
    /// The node is not there, or not well.
    #[error("{method} got no answer: {reason}")]
    Unreachable {
        /// RPC method.
        method: &'static str,
        /// What went wrong on the way.
        reason: String,
    },
    /// The answer did not come in time.
    #[error("{method}: the answer is late: {reason}")]
    Late {
        /// RPC method.
        method: &'static str,
        /// Which deadline has passed.
        reason: String,
    },
    /// The answer broke off.
    #[error("{method}: the answer was lost: {reason}")]
    Lost {
        /// RPC method.
        method: &'static str,
        /// What went wrong on the way.
        reason: String,
    },
    /// The response was not what the method returns.
    #[error("{method} returned {what}")]
    Malformed {
        /// RPC method.
        method: &'static str,
        /// What was wrong.
        what: String,
    },
    /// The node stayed behind the stream.
    #[error("{method}: the node did not reach slot {slot} in time")]
    Behind {
        /// RPC method.
        method: &'static str,
        /// The slot.
        slot: u64,
    },
}

/// What a JSON-RPC error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Rate,
    Size,
    Service,
    Health,
    Unknown,
}

/// Error codes that mean one thing wherever they are used.
const CODES: [(i64, Subject); 11] = [
    (429, Subject::Rate),
    (-32429, Subject::Rate),
    // The validator's scan was ended for its results' size.
    (-32012, Subject::Size),
    (-32008, Subject::Size),
    (413, Subject::Size),
    // The method is not there.
    (-32601, Subject::Service),
    // The program is left out of the validator's account index.
    (-32010, Subject::Service),
    (410, Subject::Service),
    // The validator is unhealthy, or behind.
    (-32005, Subject::Health),
    (-32004, Subject::Health),
    (-32014, Subject::Health),
];

/// Words of a refusal, in lower case; the first that occurs counts. Rates come before sizes: "too many requests" of a
/// method that "exceeds the limit" is about the rate.
const WORDS: [(&str, Subject); 18] = [
    ("rate limit", Subject::Rate),
    ("too many requests", Subject::Rate),
    ("request limit", Subject::Rate),
    ("requests per second", Subject::Rate),
    ("compute units per second", Subject::Rate),
    ("too large", Subject::Size),
    ("too big", Subject::Size),
    ("too many accounts", Subject::Size),
    ("too many inputs", Subject::Size),
    ("number of accounts requested", Subject::Size),
    ("scan results exceeded", Subject::Size),
    ("response size", Subject::Size),
    ("unavailable for key", Subject::Service),
    ("disabled", Subject::Service),
    ("not available", Subject::Service),
    ("not supported", Subject::Service),
    ("not allowed", Subject::Service),
    ("method not found", Subject::Service),
];

fn subject(code: i64, message: &str) -> Subject {
    let message = message.to_lowercase();
    let by_word = || WORDS.iter().find(|(word, _)| message.contains(word));
    let by_code = CODES.iter().find(|(known, _)| *known == code);
    // What the words say of a rate or a size is more than that a node is unhealthy.
    match by_code {
        Some((_, Subject::Health)) => by_word().map_or(Subject::Health, |(_, subject)| *subject),
        Some((_, subject)) => *subject,
        None => by_word().map_or(Subject::Unknown, |(_, subject)| *subject),
    }
}

impl SnapshotError {
    /// What is said of it to everybody: without the node's own words, which may name a host or a path.
    pub(crate) const fn shown(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "the node refuses access: check the key in chain.rpc-url",
            Self::Unavailable { .. } => {
                "the node does not serve what is needed: set chain.rpc-url to a node that serves it"
            }
            Self::RateLimited { .. } => "the node refuses more calls for now",
            Self::TooLarge { .. } => "an answer of the node is too large",
            Self::Refused { .. } => "the node refuses a call",
            Self::Unreachable { .. } => "the node does not answer",
            Self::Late { .. } => "the node answers too late",
            Self::Lost { .. } => "an answer of the node was lost",
            Self::Malformed { .. } => "the node answers something else",
            Self::Behind { .. } => "the node is behind the stream",
        }
    }

    /// What a JSON-RPC error means.
    pub(super) fn of_refusal(method: &'static str, code: i64, message: &str) -> Self {
        let subject = subject(code, message);
        let message = format!("{} ({code})", shortened(message));
        match subject {
            Subject::Rate => Self::RateLimited {
                method,
                message,
                retry_after: None,
            },
            Subject::Size => Self::TooLarge { method, message },
            Subject::Service => Self::Unavailable { method, message },
            Subject::Health => Self::Unreachable {
                method,
                reason: message,
            },
            Subject::Unknown => Self::Refused { method, message },
        }
    }

    /// What an HTTP status other than success means, together with the body, which may hold a JSON-RPC error, and with
    /// what `Retry-After` says.
    pub(super) fn of_status(
        method: &'static str,
        status: u16,
        body: &[u8],
        retry_after: Option<Duration>,
    ) -> Self {
        let refusal = serde_json::from_slice::<Refusal>(body).ok();
        let refusal = refusal.map(|refusal| refusal.error);
        let text = refusal.as_ref().map_or_else(
            || format!("HTTP {status}"),
            |error| format!("HTTP {status}: {}", shortened(&error.message)),
        );
        let by_refusal = refusal.map(|error| Self::of_refusal(method, error.code, &error.message));
        match (status, by_refusal) {
            (429, _) => Self::RateLimited {
                method,
                message: text,
                retry_after,
            },
            (413, _) => Self::TooLarge {
                method,
                message: text,
            },
            (_, Some(Self::RateLimited { message, .. })) => Self::RateLimited {
                method,
                message,
                retry_after,
            },
            (_, Some(known @ (Self::TooLarge { .. } | Self::Unavailable { .. }))) => known,
            (401 | 403, _) => Self::Unauthorized { method, status },
            // Busy, for as long as it says.
            (503, _) if retry_after.is_some() => Self::RateLimited {
                method,
                message: text,
                retry_after,
            },
            (405 | 410 | 501, _) => Self::Unavailable {
                method,
                message: text,
            },
            // A gateway gave up waiting for the node.
            (408 | 504 | 524, _) => Self::Late {
                method,
                reason: text,
            },
            (500.., None) => Self::Unreachable {
                method,
                reason: text,
            },
            (_, Some(known)) => known,
            (_, None) => Self::Refused {
                method,
                message: text,
            },
        }
    }
}

#[derive(Deserialize)]
struct Refusal {
    error: RefusalError,
}

#[derive(Deserialize)]
struct RefusalError {
    code: i64,
    message: String,
}

fn shortened(message: &str) -> String {
    message.chars().take(LONGEST_MESSAGE).collect()
}

/// How long `Retry-After` asks to wait: seconds, or a date, which is compared with the answer's own `date`, because the
/// clocks of two machines differ.
pub(super) fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let time = |text: &str| httpdate::parse_http_date(text).ok();
    let seconds = value.trim().parse().ok().map(Duration::from_secs);
    let wait = seconds.or_else(|| {
        let until: SystemTime = time(value.trim())?;
        // A date that has passed asks for nothing.
        Some(until.duration_since(time(date?)?).unwrap_or_default())
    })?;
    Some(wait.min(LONGEST_RETRY_AFTER))
}

#[cfg(test)]
mod tests;
