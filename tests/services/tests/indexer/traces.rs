//! Traces: the way of an event as a collector of OpenTelemetry sees it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value,
    trace::v1::{Span, span::SpanKind},
};
use prost::Message;
use sluice_geyser::scripted::Connection;
use sluice_harness::indexer::{IndexerHarness, send, soon};
use sluice_store::{Access, MessageId, Redeliver, Timestamp, WebhookId};
use sluice_testkit::updates::{freeze_and_confirm, whole};
use tokio::{
    net::TcpListener,
    sync::watch::{self, Sender},
    task::JoinHandle,
    time::sleep,
};

use crate::{
    expectations::{Ending, Surroundings},
    on_both,
};

on_both!(
    an_event_is_one_trace_from_its_slot_to_the_attempts_of_several_processes,
    a_collector_that_is_not_there_or_never_answers_costs_nothing_but_spans,
);

/// A collector that takes traces, or never answers. It keeps its port as long as it lives.
struct Collector {
    url: String,
    spans: Sender<Vec<Span>>,
    running: JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Collector {
    async fn start(answers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!(
            "http://{}/v1/traces",
            listener.local_addr().expect("is bound")
        );
        let spans = watch::Sender::new(Vec::new());
        let seen = Arc::new((answers, spans.clone()));
        let take = post(
            async |State(seen): State<Arc<(bool, Sender<Vec<Span>>)>>, body: Bytes| {
                let (answers, spans) = &*seen;
                let request = ExportTraceServiceRequest::decode(body).expect("protobuf");
                let taken = request.resource_spans.into_iter().flat_map(|resource| {
                    let described = resource.resource.expect("says who sends");
                    let service = described.attributes.iter().any(|attribute| {
                        let value = attribute.value.as_ref();
                        let value = value.and_then(|value| value.value.as_ref());
                        attribute.key == "service.name"
                            && value == Some(&Value::StringValue("sluice-indexer".to_owned()))
                    });
                    assert!(service, "{:?}", described.attributes);
                    let scopes = resource.scope_spans.into_iter();
                    scopes.flat_map(|scope| scope.spans)
                });
                let taken: Vec<_> = taken.collect();
                spans.send_modify(|spans| spans.extend(taken));
                if !answers {
                    std::future::pending::<()>().await;
                }
                StatusCode::OK
            },
        );
        let router = Router::new().route("/v1/traces", take).with_state(seen);
        let running = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("serves");
        });
        Self {
            url,
            spans,
            running,
        }
    }

    /// The spans, once there are so many of this name.
    async fn until(&self, name: &str, count: usize) -> Vec<Span> {
        let mut seen = self.spans.subscribe();
        let enough =
            |spans: &Vec<Span>| spans.iter().filter(|span| span.name == name).count() >= count;
        soon(seen.wait_for(enough)).await.expect("lives").clone()
    }
}

/// The only span of this name.
fn only<'a>(spans: &[&'a Span], name: &str) -> &'a Span {
    let named: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(named.len(), 1, "{name}: {spans:?}");
    named[0]
}

fn text<'a>(span: &'a Span, key: &str) -> &'a str {
    let attribute = span.attributes.iter().find(|each| each.key == key);
    let value = attribute.and_then(|attribute| attribute.value.as_ref());
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{key} is {other:?}"),
    }
}

/// Has the three messages of a slot sent to the receiver. While the connection is kept, the indexer opens no other, which would be
/// taken for the next one's.
async fn emit(harness: &mut IndexerHarness, slot: u64) -> Connection {
    let (connection, name) = harness.listening().await;
    send(&connection, whole(&name, slot)).await;
    send(&connection, freeze_and_confirm(&name, slot)).await;
    harness.bodies(3).await;
    connection
}

async fn deliver_again(harness: &IndexerHarness, webhook: &WebhookId, message: &str) {
    let which = Redeliver::Message(MessageId::parse(message).expect("an id"));
    let now = harness.store.server_time().await.expect("reads");
    #[expect(
        clippy::disallowed_methods,
        reason = "a message that is due long since may have any time"
    )]
    let now = now.unwrap_or_else(|| Timestamp::from(std::time::SystemTime::now()));
    let again = harness
        .store
        .redeliver(&Access::All, webhook, &which, now)
        .await;
    assert_eq!(again.expect("is written"), Some(1));
}

async fn an_event_is_one_trace_from_its_slot_to_the_attempts_of_several_processes(
    mut harness: IndexerHarness,
) {
    let webhook = harness.webhook(1).await;
    let first = Collector::start(true).await;
    harness.trace_to(first.url.clone());
    let indexer = harness.start().await;
    let _connection = emit(&mut harness, 11).await;
    let spans = first.until("attempt", 3).await;
    indexer.stop().await;

    let mut traces: BTreeMap<&[u8], Vec<&Span>> = BTreeMap::new();
    for span in &spans {
        traces.entry(&span.trace_id).or_default().push(span);
    }
    assert_eq!(traces.len(), 3, "one of each message");
    for spans in traces.values() {
        let way = ["slot", "match", "store", "attempt"].map(|name| only(spans, name));
        assert_eq!(spans.len(), way.len());
        assert!(way[0].parent_span_id.is_empty());
        for pair in way.windows(2) {
            assert_eq!(pair[1].parent_span_id, pair[0].span_id);
            assert!(pair[0].start_time_unix_nano <= pair[0].end_time_unix_nano);
        }
        for pair in way[..3].windows(2) {
            assert_eq!(pair[0].end_time_unix_nano, pair[1].start_time_unix_nano);
        }
        assert_eq!(way[3].kind(), SpanKind::Client);
        assert_eq!(text(way[3], "sluice.webhook"), webhook.as_str());
        assert_eq!(text(way[0], "sluice.commitment"), "confirmed");
        let message = text(way[0], "messaging.message.id");
        assert_eq!(text(way[3], "messaging.message.id"), message);
    }

    let attempt = only(traces.values().next().expect("a trace"), "attempt");
    deliver_again(&harness, &webhook, text(attempt, "messaging.message.id")).await;
    let second = Collector::start(true).await;
    harness.trace_to(second.url.clone());
    let indexer = harness.start().await;
    let spans = second.until("attempt", 1).await;
    let again = only(&spans.iter().collect::<Vec<_>>(), "attempt");
    assert_eq!(again.trace_id, attempt.trace_id);
    assert_eq!(again.parent_span_id, attempt.parent_span_id);
    assert_ne!(again.span_id, attempt.span_id);
    indexer.stop().await;
}

async fn a_collector_that_is_not_there_or_never_answers_costs_nothing_but_spans(
    mut harness: IndexerHarness,
) {
    harness.webhook(1).await;
    let silent = Collector::start(false).await;
    harness.trace_to(silent.url.clone());
    let indexer = harness.start().await;
    let _connection = emit(&mut harness, 11).await;
    silent.until("slot", 1).await;
    indexer.stop().await;

    // Nobody listens there.
    harness.trace_to("http://127.0.0.1:1/v1/traces".to_owned());
    let indexer = harness.start().await;
    let (connection, request) = harness.accept().await;
    let name = request.slots.expect("always");
    for slot in 12..14 {
        send(&connection, whole(&name, slot)).await;
        send(&connection, freeze_and_confirm(&name, slot)).await;
    }
    harness.bodies(9).await;
    while harness.store.queue_stats().await.expect("reads").pending > 0 {
        sleep(Duration::from_millis(20)).await;
    }
    indexer.stop().await;
}
