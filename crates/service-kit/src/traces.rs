//! Traces: spans of what a process did, sent to a collector of OpenTelemetry by OTLP over HTTP.
//!
//! What a trace is about has a name that outlives processes. The ids of the trace and of its spans follow from it, so that spans
//! of several processes, and of one that was started again, meet in one trace although nothing was handed over.

use std::{
    mem,
    time::{Duration, SystemTime},
};

use opentelemetry::{
    InstrumentationScope, SpanId, TraceFlags, TraceId,
    trace::{SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks},
};
use sha2::{Digest, Sha256};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::OutageLog;

pub use opentelemetry::KeyValue;

/// Most spans that wait for the collector, a few megabytes of them; what comes while it has no room is lost.
const MAX_WAITING: usize = 8_192;

/// Most spans of one request: below the 4 MiB that collectors take, also where attributes are long.
const MAX_EXPORT: usize = 512;

/// Deadline of a request: meanwhile spans wait, and at a shutdown the process does.
const EXPORT_DEADLINE: Duration = Duration::from_secs(2);

/// Where spans are sent, and how many.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The collector's URL for traces. May carry a key, so it is never logged.
    pub endpoint: String,
    /// The share of traces that is sent, 0 to 1.
    pub ratio: f64,
    /// What the process is called among the collector's services.
    pub service: &'static str,
}

/// The way to the collector. Without one, which is the default, nothing is done.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    on: Option<On>,
}

#[derive(Clone, Debug)]
struct On {
    ratio: f64,
    waiting: mpsc::Sender<SpanData>,
}

/// The task that sends spans.
#[derive(Debug)]
pub struct Exporting {
    exporter: SpanExporter,
    waiting: mpsc::Receiver<SpanData>,
}

/// A trace of which the spans are sent.
#[derive(Debug)]
pub struct Trace<'a> {
    name: &'a str,
    id: TraceId,
    on: &'a On,
}

/// Which of the spans of a trace: what was done, and which time of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was done.
    pub name: &'static str,
    /// Tells it from others of this name in the same trace.
    pub time: u64,
}

impl Step {
    /// What is done once in a trace.
    #[must_use]
    pub const fn once(name: &'static str) -> Self {
        Self { name, time: 0 }
    }
}

/// A span.
#[derive(Debug)]
pub struct Span {
    /// Which one.
    pub step: Step,
    /// What it followed from; `None` for the first of a trace.
    pub parent: Option<Step>,
    /// When it began.
    pub from: SystemTime,
    /// When it ended.
    pub until: SystemTime,
    /// Whether it was a request to another host.
    pub is_request: bool,
    /// Details.
    pub attributes: Vec<KeyValue>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

impl Traces {
    /// The way to this collector, and the task that sends what is put on it.
    ///
    /// # Errors
    /// When the settings make no exporter.
    pub fn start(settings: &Settings) -> Result<(Self, Exporting), ExporterBuildError> {
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&settings.endpoint)
            .with_timeout(EXPORT_DEADLINE)
            .build()?;
        let resource = Resource::builder_empty().with_service_name(settings.service);
        exporter.set_resource(&resource.build());
        let (sender, waiting) = mpsc::channel(MAX_WAITING);
        let on = On {
            ratio: settings.ratio,
            waiting: sender,
        };
        Ok((Self { on: Some(on) }, Exporting { exporter, waiting }))
    }

    /// Whether any trace may be sent.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// The trace of what is named so, if it is one of those that are sent. Every process chooses the same ones.
    #[must_use]
    pub fn of<'a>(&'a self, name: &'a str) -> Option<Trace<'a>> {
        let on = self.on.as_ref()?;
        let digest = Sha256::digest(name);
        let (id, _) = digest.split_first_chunk::<16>()?;
        let (_, last) = id.split_last_chunk::<8>()?;
        is_chosen(u64::from_be_bytes(*last), on.ratio).then(|| Trace {
            name,
            id: TraceId::from_bytes(*id),
            on,
        })
    }
}

/// Whether a trace with this end of its id is among so large a share of all.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share of all ids needs no exact one"
)]
fn is_chosen(end: u64, ratio: f64) -> bool {
    (end as f64) < ratio * (u64::MAX as f64) || ratio >= 1.0
}

impl Trace<'_> {
    /// Puts a span on its way. It is lost when too many wait.
    pub fn record(&self, span: Span) {
        let context = SpanContext::new(
            self.id,
            self.span_id(span.step),
            TraceFlags::SAMPLED,
            false,
            TraceState::NONE,
        );
        let parent = span.parent.map(|parent| self.span_id(parent));
        // A collector that does not keep up costs nothing but spans.
        let _ = self.on.waiting.try_send(SpanData {
            span_context: context,
            parent_span_id: parent.unwrap_or(SpanId::INVALID),
            parent_span_is_remote: false,
            span_kind: if span.is_request {
                SpanKind::Client
            } else {
                SpanKind::Internal
            },
            name: span.step.name.into(),
            start_time: span.from,
            end_time: span.until.max(span.from),
            attributes: span.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: span.error.map_or(Status::Unset, Status::error),
            instrumentation_scope: InstrumentationScope::builder("sluice").build(),
        });
    }

    fn span_id(&self, step: Step) -> SpanId {
        let mut hash = Sha256::new_with_prefix(self.name);
        hash.update(step.name);
        hash.update(step.time.to_be_bytes());
        let digest = hash.finalize();
        let id = digest.first_chunk().copied();
        SpanId::from_bytes(id.unwrap_or_default())
    }
}

impl Exporting {
    /// Sends spans until nobody can put any more on their way, or, after `stop`, until the collector does not answer.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut outage = OutageLog::new("sending traces to the collector");
        let mut batch = Vec::new();
        // Those that come during a request are sent together in the next one.
        while self.waiting.recv_many(&mut batch, MAX_EXPORT).await > 0 {
            let sent = timeout(EXPORT_DEADLINE, self.exporter.export(mem::take(&mut batch)));
            // What the exporter says names the URL.
            let fault = match sent.await {
                Ok(Ok(())) => None,
                Ok(Err(_)) => Some("not accepted"),
                Err(_) => Some("no answer"),
            };
            match fault {
                None => outage.recovered(),
                Some(_) if stop.is_cancelled() => return,
                Some(fault) => outage.failed(fault, &"spans are lost"),
            }
        }
    }
}

#[cfg(test)]
mod tests;
