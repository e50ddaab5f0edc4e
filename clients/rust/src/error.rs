//! Errors of calls: what the service refused, and what kept it from answering.

use std::time::Duration;

use thiserror::Error;

use crate::wire;

/// Why a call gave no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The service refused, and says why.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The service was not reached, or the connection was lost.
    #[error("the service was not reached: {0}")]
    Connection(#[source] reqwest::Error),
    /// What answered is not the service.
    #[error("status {status} without a problem document: is the URL that of the service?")]
    NotTheService {
        /// What was answered.
        status: u16,
    },
    /// The answer is not what the document of this client's version describes.
    #[error("the answer is not what this version of the client reads: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// There was no answer in time, repetitions included.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// A stream ended before it was to.
    #[error("the stream was cut")]
    Cut,
    /// A line of a stream is longer than any that the service writes.
    #[error("a line of the stream is longer than {limit} bytes")]
    LineTooLong {
        /// The longest that is read.
        limit: usize,
    },
    /// An argument cannot be sent.
    #[error("{name} cannot be sent: {reason}")]
    Argument {
        /// The argument.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

/// A problem with which the service answered.
#[derive(Debug, Error)]
#[error("{}: {}", problem.title, problem.detail)]
pub struct Refusal {
    /// The whole document; `code` is stable.
    pub problem: wire::Problem,
    /// By which the service's log names the request.
    pub request_id: Option<String>,
    /// How often it was sent.
    pub attempts: u32,
}

impl Error {
    /// The code of the service's problem, if there is one.
    #[must_use]
    pub fn code(&self) -> Option<&wire::ProblemCode> {
        match self {
            Self::Refused(refusal) => Some(&refusal.problem.code),
            _ => None,
        }
    }

    /// Whether asking again may help.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.problem.retryable,
            Self::Connection(_) | Self::TimedOut(_) | Self::Cut => true,
            _ => false,
        }
    }
}
