//! Classifies the status that ended a stream as a [`StreamError`] (pure).
//!
//! Servers use the same gRPC code for different things and different codes for the same thing, so the
//! text decides where the code cannot.

use tonic::{Code, Status};

use crate::error::StreamError;

/// Texts with which servers say that slots cannot be replayed, in lower case. Each comes with codes
/// of its own (INTERNAL, INVALID_ARGUMENT, OUT_OF_RANGE) that also mean other things.
const REPLAY_TEXTS: [&str; 6] = [
    "failed to get replay",
    "failed to send from_slot",
    "from_slot is not supported",
    "from_slot is not available",
    "past the valid range",
    "replay `from_slot` available only",
];

/// Words after which servers name the first slot they can replay, in lower case.
const FIRST_AVAILABLE_TEXTS: [&str; 3] = [
    "last available: ",
    "first available: ",
    "first available slot: ",
];

/// Classifies the status that ended a stream. `replay_asked` says whether the request carried a
/// `from_slot`: only then can a status be about replay without naming it.
pub(crate) fn classify(status: &Status, replay_asked: bool) -> StreamError {
    let message = format!("{:?}: {}", status.code(), status.message());
    let text = status.message().to_lowercase();
    if text.contains("message length too large") {
        return StreamError::TooLarge(message);
    }
    if text.contains("lagged") {
        return StreamError::Lagged(message);
    }
    let about_replay = REPLAY_TEXTS.iter().any(|known| text.contains(known))
        || first_available(&text).is_some()
        || (replay_asked && matches!(status.code(), Code::OutOfRange | Code::DataLoss));
    if about_replay {
        return StreamError::ReplayUnavailable {
            first_available: first_available(&text),
            message,
        };
    }
    match status.code() {
        Code::Unauthenticated
        | Code::PermissionDenied
        | Code::InvalidArgument
        | Code::Unimplemented => StreamError::Refused(message),
        _ => StreamError::Other(message),
    }
}

fn first_available(text: &str) -> Option<u64> {
    FIRST_AVAILABLE_TEXTS.iter().find_map(|prefix| {
        let (_, rest) = text.split_once(prefix)?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: Code, text: &str) -> StreamError {
        classify(&Status::new(code, text), false)
    }

    #[test]
    fn out_of_range_is_distinguished_by_its_text() {
        assert!(matches!(
            of(
                Code::OutOfRange,
                "Error, decoded message length too large: found 9 bytes, the limit is: 4 bytes"
            ),
            StreamError::TooLarge(_)
        ));
        let gone = of(
            Code::OutOfRange,
            "broadcast from 100 is not available, last available: 250",
        );
        assert!(gone.is_replay_unavailable());
        assert!(matches!(
            gone,
            StreamError::ReplayUnavailable {
                first_available: Some(250),
                ..
            }
        ));
    }

    #[test]
    fn replay_refusals_hidden_in_other_codes_are_found() {
        for text in [
            "failed to get replay response",
            "from_slot is not supported",
        ] {
            assert!(of(Code::Internal, text).is_replay_unavailable(), "{text}");
        }
        let lost = Status::new(Code::DataLoss, "slot too old");
        assert!(classify(&lost, true).is_replay_unavailable());
        assert!(matches!(classify(&lost, false), StreamError::Other(_)));
    }

    #[test]
    fn both_lag_texts_are_lag_and_a_plain_internal_error_is_not() {
        for text in [
            "lagged to receive geyser messages",
            "lagged to send an update",
        ] {
            assert!(
                matches!(of(Code::Internal, text), StreamError::Lagged(_)),
                "{text}"
            );
        }
        assert!(matches!(of(Code::Internal, "boom"), StreamError::Other(_)));
    }

    #[test]
    fn only_refusals_are_not_retryable() {
        for code in [
            Code::Unauthenticated,
            Code::PermissionDenied,
            Code::InvalidArgument,
            Code::Unimplemented,
        ] {
            assert!(!of(code, "no").is_retryable(), "{code:?}");
        }
        for code in [
            Code::Unavailable,
            Code::Unknown,
            Code::ResourceExhausted,
            Code::Aborted,
        ] {
            assert!(of(code, "later").is_retryable(), "{code:?}");
        }
    }
}
