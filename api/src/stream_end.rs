//! Stream end: why a stream ends, as its last event says it, and the closing of its WebSocket.

use bytes::Bytes;
use tokio_tungstenite::tungstenite::{
    Utf8Bytes,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::error::ApiError;

/// Why a stream ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEnd {
    /// The problem document.
    problem: Utf8Bytes,
    code: &'static str,
    close: CloseCode,
}

impl From<&ApiError> for StreamEnd {
    fn from(reason: &ApiError) -> Self {
        Self {
            problem: reason.document().to_string().into(),
            code: reason.code(),
            close: close_code(reason),
        }
    }
}

impl StreamEnd {
    /// The last server-sent event.
    #[must_use]
    pub fn sse(&self) -> Bytes {
        format!("event: end\ndata: {}\n\n", self.problem).into()
    }

    /// The last message of a WebSocket.
    #[must_use]
    pub fn message(&self) -> Utf8Bytes {
        format!(r#"{{"event":"end","data":{}}}"#, self.problem).into()
    }

    /// What closes a WebSocket after it: a code of RFC 6455, and as the reason the problem's.
    #[must_use]
    pub fn close(&self) -> CloseFrame {
        CloseFrame {
            code: self.close,
            reason: Utf8Bytes::from_static(self.code),
        }
    }
}

const fn close_code(reason: &ApiError) -> CloseCode {
    match reason {
        ApiError::Stopping => CloseCode::Away,
        ApiError::MessageTooLarge { .. } => CloseCode::Size,
        ApiError::Internal(_) => CloseCode::Error,
        reason if reason.is_retryable() => CloseCode::Again,
        _ => CloseCode::Policy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_close_code_says_whether_to_come_again_and_the_reason_is_the_problems_code() {
        let not_ready = ApiError::MarketNotReady {
            reason: "the stream is down".into(),
            slot: None,
            lag: None,
        };
        for (reason, number, code) in [
            (&ApiError::Stopping, 1001, "stopping"),
            (&not_ready, 1013, "market_not_ready"),
            (&ApiError::AmountTooSmall, 1008, "amount_too_small"),
            (&ApiError::UnexpectedMessage, 1008, "unexpected_message"),
            (
                &ApiError::MessageTooLarge { limit: 1 },
                1009,
                "message_too_large",
            ),
        ] {
            let close = StreamEnd::from(reason).close();
            assert_eq!(
                (u16::from(close.code), close.reason.as_str()),
                (number, code)
            );
        }
    }

    #[test]
    fn both_kinds_of_stream_end_with_the_same_problem() {
        let end = StreamEnd::from(&ApiError::Stopping);
        let sse = String::from_utf8(end.sse().to_vec()).expect("text");
        let data = sse.strip_prefix("event: end\ndata: ").expect("an end");
        let problem: serde_json::Value = serde_json::from_str(data).expect("JSON");
        let message: serde_json::Value = serde_json::from_str(&end.message()).expect("JSON");
        assert_eq!(message["event"], "end");
        assert_eq!(message["data"], problem);
        assert_eq!(problem["code"], "stopping");
    }
}
