//! `GET` and `POST /api/webhooks/{id}/stream`: relay stream of a temporary webhook, and reports on its messages.
//!
//! The stream is lines of JSON, one per message; an empty line shows that it stands. Its reader posts the body to a
//! receiver of its own and reports the result. What is not reported within [`LEASE`] is sent down again, under the same
//! id, as is what was refused, after a pause. A report must reach the process that holds the stream: with several API
//! processes behind one address, an owner needs one that stays with it.
//!
//! A temporary webhook ends [`GRACE`] after its last stream did.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, Request, State as StateOf},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use service_kit::CancellationToken;
use sluice_store::{
    Access, Attempt, AttemptResult, EndpointState, Lease, LeaseLimits, LeaseRequest, LeaseToken,
    LeasedDelivery, MessageId, Outcome, StoreError, TenantShares, Timestamp, Timings, WebhookId,
};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use utoipa::ToSchema;

use super::{
    limits::SMALL_BODY_BYTES,
    parts::{Refusals, WebhookPath},
    problem::{missing, store_error},
    relay_streams::RelayedDelivery,
    schema,
    state::State,
};
use crate::{auth::Caller, error::ApiError, extract::read_json};

/// How long a temporary webhook outlives its stream: time to connect again after a broken connection.
pub(super) const GRACE: Duration = Duration::from_secs(120);

/// How long a message waits for its report: twice the longest deadline of a delivery.
const LEASE: Duration = Duration::from_secs(60);

/// Messages under way at once on one stream.
const IN_FLIGHT: u32 = 8;

/// Bytes of their bodies: what one developer's stream may hold of this process's memory.
const BYTES_IN_FLIGHT: u64 = 16 * 1024 * 1024;

/// How often new messages are looked for. A report lets the stream look at once.
const POLL: Duration = Duration::from_millis(200);

/// How often a stream sends an empty line to show that it stands, and its webhook is extended.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Pauses after refusals; the message is given up after the last. A developer watches, and restarts the
/// receiver within minutes or not at all.
const PAUSES: [Duration; 4] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(300),
];

/// One line of the stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StreamLine)]
struct RelayLine<'a> {
    id: &'a str,
    sequence: u64,
    #[serde(rename = "type")]
    #[schema(value_type = schema::MessageKind)]
    kind: &'static str,
    /// From 1.
    attempt: u32,
    /// The body as text, because its bytes are what is signed.
    body: &'a str,
}

/// What became of a message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ReportBody {
    id: String,
    accepted: bool,
    /// The status of the receiver's answer.
    #[schema(maximum = 65535)]
    status: Option<u16>,
    /// Why it was not accepted.
    error: Option<String>,
    #[schema(schema_with = schema::report_duration)]
    duration_ms: u32,
}

/// Opens the stream of a temporary webhook
///
/// Lines of JSON, one for each message; an empty line is a sign of life. The answer goes on for as long as the
/// connection stands. A stream that is opened ends the one before it.
#[utoipa::path(
    get,
    path = "/api/webhooks/{id}/stream",
    tag = "webhooks",
    operation_id = "openStream",
    params(WebhookPath),
    responses(
        (status = 200, description = "The stream.", body = RelayLine, content_type = "application/x-ndjson"),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn open(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let webhook = state.webhook(&access, &id).await?;
    if webhook.relay_until.is_none() {
        return Err(ApiError::WrongKindOfWebhook {
            fault: "only a temporary webhook has a stream; what this one missed is under /events",
        });
    }
    let (lines, receiver) = mpsc::channel(1);
    let replaced = state.relay_streams.open(&webhook.id, &state.shutdown);
    let stream = RelayStream {
        replaced,
        state,
        access,
        webhook: webhook.id,
        lines,
        sent: Vec::new(),
    };
    tokio::spawn(stream.run());
    let body = Body::from_stream(ReceiverStream::new(receiver).map(Ok::<Bytes, Infallible>));
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, body).into_response())
}

/// Reports what became of one message of the stream
#[utoipa::path(
    post,
    path = "/api/webhooks/{id}/stream",
    tag = "webhooks",
    operation_id = "reportMessage",
    params(WebhookPath),
    request_body = ReportBody,
    responses(
        (status = 204, description = "It is noted."),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn report(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(id): Path<String>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let body: ReportBody = read_json(request, SMALL_BODY_BYTES).await?;
    let webhook = state.webhook(&access, &id).await?;
    let message = MessageId::parse(&body.id).map_err(|_| missing("message", &body.id))?;
    let relayed = state.relay_streams.take_reported(&webhook.id, &message);
    let relayed = relayed.ok_or_else(|| ApiError::NotHeld {
        id: message.to_string(),
    })?;
    let result = result(relayed, body, Timestamp::from(state.clock.now()));
    // The receiver is the developer's own and has no breaker.
    let unchanged = |state: EndpointState, _: &AttemptResult| state;
    let recorded = state.store.record(&[result], &unchanged).await;
    recorded.map_err(store_error)?;
    state.relay_streams.reported.notify_waiters();
    Ok(StatusCode::NO_CONTENT)
}

fn result(relayed: RelayedDelivery, report: ReportBody, now: Timestamp) -> AttemptResult {
    let duration = Duration::from_millis(report.duration_ms.into());
    let outcome = if report.accepted {
        Outcome::Delivered
    } else {
        let before = usize::try_from(relayed.retry_index).unwrap_or(usize::MAX);
        match PAUSES.get(before) {
            Some(pause) => Outcome::Retry {
                at: now.after(*pause),
            },
            None => Outcome::Failed,
        }
    };
    let error = (!report.accepted).then(|| {
        report
            .error
            .unwrap_or_else(|| "the receiver refused it".to_owned())
    });
    let attempt = Attempt {
        number: 0,
        url: relayed.url,
        started: now.before(duration),
        duration,
        timings: Timings::default(),
        status: report.status,
        error,
        retry_after: None,
        request_headers: Vec::new(),
        response: None,
        response_cut: false,
    };
    // The endpoint is not judged, so nothing is spread.
    AttemptResult::new(relayed.lease, attempt, outcome, 0)
}

/// Why a stream is over.
enum End {
    /// The reader is gone.
    Closed,
    /// The webhook was deleted or switched off.
    Over,
    /// The database does not answer.
    Failed(StoreError),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// One open relay stream.
struct RelayStream {
    /// Cancelled when another stream takes its place, and when the service ends.
    replaced: CancellationToken,
    state: State,
    access: Access,
    webhook: WebhookId,
    lines: mpsc::Sender<Bytes>,
    /// What went down and may not be reported yet.
    sent: Vec<Lease>,
}

impl RelayStream {
    async fn run(mut self) {
        let replaced = self.replaced.clone();
        let end = tokio::select! {
            end = self.relay() => end,
            () = replaced.cancelled() => End::Over,
        };
        self.state.relay_streams.close(&self.webhook, &replaced);
        if let End::Failed(error) = end {
            tracing::warn!(webhook = %self.webhook, %error, "a webhook's stream broke off");
        }
        let left = self.state.relay_streams.remove_unreported(&self.sent);
        let now = Timestamp::from(self.state.clock.now());
        if let Err(error) = self.state.store.release(&left, now).await {
            // The messages return by themselves when their leases run out.
            tracing::debug!(webhook = %self.webhook, %error, "leases could not be released");
        }
    }

    async fn relay(&mut self) -> End {
        let mut keep_alive = interval(KEEP_ALIVE);
        keep_alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let reported = Arc::clone(&self.state.relay_streams.reported);
        loop {
            let next = Instant::now() + POLL;
            // Registered before looking, so that no report between the two is missed.
            let report = reported.notified();
            if let Err(end) = self.send_due().await {
                return end;
            }
            tokio::select! {
                () = report => {}
                () = sleep_until(next) => {}
                () = self.lines.closed() => return End::Closed,
                _ = keep_alive.tick() => {
                    if let Err(end) = self.keep_alive().await {
                        return end;
                    }
                }
            }
        }
    }

    async fn send_due(&mut self) -> Result<(), End> {
        let now = Timestamp::from(self.state.clock.now());
        let request = LeaseRequest {
            now,
            until: now.after(LEASE),
            token: LeaseToken::from_random(rand::random()),
            limits: LeaseLimits {
                total: IN_FLIGHT,
                quota: IN_FLIGHT,
                bytes: BYTES_IN_FLIGHT,
                oversized: true,
            },
            shares: TenantShares::unlimited(),
        };
        let store = &self.state.store;
        let leased = store
            .lease_relayed(&self.access, &self.webhook, &request)
            .await?;
        if leased.is_empty() {
            return Ok(());
        }
        self.state.relay_streams.retain_unreported(&mut self.sent);
        for delivery in &leased {
            self.state.relay_streams.note_sent(delivery);
            self.sent.push(delivery.lease.clone());
        }
        for delivery in &leased {
            self.send(line(delivery)).await?;
        }
        Ok(())
    }

    /// Extends the webhook and shows the reader that the connection stands; ends when there is no such webhook any more.
    async fn keep_alive(&self) -> Result<(), End> {
        let store = &self.state.store;
        let until = Timestamp::from(self.state.clock.now()).after(GRACE);
        let extended = store
            .extend_relay(&self.access, &self.webhook, until)
            .await?;
        let webhook = store.webhook(&self.access, &self.webhook).await?;
        // A webhook whose API key was revoked is switched off.
        if !extended || webhook.is_none_or(|webhook| !webhook.definition.active) {
            return Err(End::Over);
        }
        self.send(Bytes::from_static(b"\n")).await
    }

    async fn send(&self, line: Bytes) -> Result<(), End> {
        self.lines.send(line).await.map_err(|_| End::Closed)
    }
}

fn line(delivery: &LeasedDelivery) -> Bytes {
    let line = RelayLine {
        id: delivery.lease.id.as_str(),
        sequence: delivery.lease.sequence,
        kind: delivery.kind.name(),
        attempt: delivery.retry_index.saturating_add(1),
        body: &delivery.body,
    };
    let mut text = serde_json::to_vec(&line).expect("text and numbers are JSON");
    text.push(b'\n');
    text.into()
}
