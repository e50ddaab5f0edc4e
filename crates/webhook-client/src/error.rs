//! Errors of an attempt, and of making the client.

use std::{io, time::Duration};

use thiserror::Error;
use tokio_rustls::rustls;

use crate::{request::RequestError, target::TargetFault};

/// Why an attempt brought no complete answer.
#[derive(Debug, Error)]
pub enum SendError {
    /// The URL may not be called, or its address not be connected to.
    #[error("the URL may not be called: {0}")]
    Target(#[from] TargetFault),
    /// The message cannot be written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The deadline passed.
    #[error("no complete answer within {} s", deadline.as_secs_f64())]
    TimedOut {
        /// The deadline.
        deadline: Duration,
    },
    /// Name resolution, connection, TLS or the protocol failed.
    #[error("{0}")]
    Failed(String),
}

impl SendError {
    /// What broke, in the words of all its causes: the outermost one says little.
    pub(crate) fn broken(error: impl std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self::Failed(text)
    }
}

/// Why there is no client.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The TLS library cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The addresses to which nothing may be delivered, because they are this machine's, are not known.
    #[error("cannot read the addresses of this machine: {0}")]
    Addresses(#[from] io::Error),
}
