//! Caller: makes one RPC call over HTTP and reads its answer under deadlines of its own.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use cpmm::ExchangeIds;
use reqwest::{
    Response,
    header::{DATE, RETRY_AFTER},
};
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use crate::{account_snapshot::AccountSnapshot, settings::ReadLimits};

use super::{
    error::{SnapshotError, retry_after},
    jobs::CallTarget,
    wire::{self, Fault},
};

/// Longest answer that is taken, bytes: more than twice the list of all pools today. Beyond it a list is read in parts.
const LONGEST_ANSWER: usize = 512 * 1024 * 1024;

/// Longest part of an error's body that is read, bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// Makes calls; clones share the connections.
#[derive(Clone)]
pub(super) struct Caller {
    exchange: ExchangeIds,
    client: reqwest::Client,
    url: Url,
    limits: ReadLimits,
    received: Arc<AtomicU64>,
}

impl Caller {
    pub(super) fn new(exchange: ExchangeIds, url: Url, limits: ReadLimits) -> Self {
        Self {
            exchange,
            client: reqwest::Client::new(),
            url,
            limits,
            received: Arc::default(),
        }
    }

    /// One with connections of its own, for another runtime: connections belong to the one that opened them.
    pub(super) fn apart(&self) -> Self {
        Self::new(self.exchange, self.url.clone(), self.limits)
    }

    pub(super) const fn limits(&self) -> ReadLimits {
        self.limits
    }

    /// Bytes received so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Makes a call, whose answer is to be of `min_slot` or later.
    pub(super) async fn read(
        &self,
        wanted: &CallTarget,
        min_slot: u64,
    ) -> Result<AccountSnapshot, SnapshotError> {
        let method = wanted.method();
        let (params, decode) = match wanted {
            CallTarget::Pools(part) => {
                let mut config = config(min_slot);
                config["withContext"] = json!(true);
                config["filters"] = part.filters();
                (json!([self.exchange.program.to_string(), config]), None)
            }
            CallTarget::Accounts(keys) => {
                let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
                (json!([names, config(min_slot)]), Some(keys))
            }
        };
        let total = self.limits.answer_timeout;
        let body = timeout(total, self.post(method, params)).await;
        let body = body.map_err(|_| SnapshotError::Late {
            method,
            reason: format!("it was not whole after {} s", total.as_secs()),
        })??;
        let snapshot = match decode {
            None => wire::program_accounts(&body, &self.exchange.program),
            Some(keys) => wire::multiple_accounts(&body, keys, &self.exchange.program),
        };
        let behind = SnapshotError::Behind {
            method,
            slot: min_slot,
        };
        match snapshot {
            Ok(snapshot) if snapshot.context_slot >= min_slot => Ok(snapshot),
            Ok(_) | Err(Fault::NotReached) => Err(behind),
            Err(Fault::Refused { code, message }) => {
                Err(SnapshotError::of_refusal(method, code, &message))
            }
            Err(Fault::Malformed(what)) => Err(SnapshotError::Malformed { method, what }),
        }
    }

    async fn post(&self, method: &'static str, params: Value) -> Result<Vec<u8>, SnapshotError> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let sending = self.client.post(self.url.clone()).json(&request).send();
        let response = self.in_time(method, sending).await?;
        let response = response.map_err(|error| {
            let is_there = !error.is_connect();
            let reason = reason(error);
            if is_there {
                SnapshotError::Lost { method, reason }
            } else {
                SnapshotError::Unreachable { method, reason }
            }
        })?;
        let status = response.status();
        if status.is_success() {
            return self.body(method, response, LONGEST_ANSWER).await;
        }
        let header = |name| response.headers().get(name)?.to_str().ok();
        let wait = header(RETRY_AFTER).and_then(|value| retry_after(value, header(DATE)));
        // What cannot be read of an error leaves its status.
        let body = self.body(method, response, LONGEST_ERROR).await;
        let body = body.unwrap_or_default();
        Err(SnapshotError::of_status(
            method,
            status.as_u16(),
            &body,
            wait,
        ))
    }

    /// The body of a response of at most this length, as long as it goes on coming.
    async fn body(
        &self,
        method: &'static str,
        mut response: Response,
        longest: usize,
    ) -> Result<Vec<u8>, SnapshotError> {
        let expected = response.content_length().unwrap_or(0);
        let expected = usize::try_from(expected).unwrap_or(usize::MAX);
        let too_large = || SnapshotError::TooLarge {
            method,
            message: format!("more than {longest} bytes"),
        };
        if expected > longest {
            return Err(too_large());
        }
        let mut body = Vec::with_capacity(expected);
        loop {
            let chunk = self.in_time(method, response.chunk()).await?;
            let chunk = chunk.map_err(|error| SnapshotError::Lost {
                method,
                reason: reason(error),
            })?;
            let Some(chunk) = chunk else {
                return Ok(body);
            };
            let length = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            self.received.fetch_add(length, Ordering::Relaxed);
            if body.len().saturating_add(chunk.len()) > longest {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// The next piece of an answer, unless nothing comes for too long.
    async fn in_time<T>(
        &self,
        method: &'static str,
        next: impl Future<Output = T>,
    ) -> Result<T, SnapshotError> {
        let idle = self.limits.idle_timeout;
        let next = timeout(idle, next).await;
        next.map_err(|_| SnapshotError::Late {
            method,
            reason: format!("nothing came for {} s", idle.as_secs_f32()),
        })
    }
}

fn config(min_slot: u64) -> Value {
    json!({
        "encoding": "base64",
        "commitment": "confirmed",
        "minContextSlot": min_slot,
    })
}

/// What a client's error is, with all its causes and without the address.
fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
