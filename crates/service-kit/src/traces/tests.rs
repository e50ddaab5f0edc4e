use std::time::SystemTime;

use tokio::sync::mpsc::error::TryRecvError;

use super::*;

fn started(ratio: f64) -> (Traces, Exporting) {
    let settings = Settings {
        endpoint: "http://127.0.0.1:1/v1/traces".to_owned(),
        ratio,
        service: "test",
    };
    Traces::start(&settings).expect("a URL")
}

fn span(step: Step, parent: Option<Step>) -> Span {
    Span {
        step,
        parent,
        from: SystemTime::UNIX_EPOCH,
        until: SystemTime::UNIX_EPOCH,
        is_request: false,
        attributes: Vec::new(),
        error: None,
    }
}

#[test]
fn spans_of_two_processes_about_the_same_meet_in_one_trace() {
    let ((one, mut first), (other, mut second)) = (started(1.0), started(1.0));
    let (stored, attempted) = (
        Step::once("store"),
        Step {
            name: "attempt",
            time: 7,
        },
    );
    one.of("message")
        .expect("is sent")
        .record(span(stored, None));
    let again = other.of("message").expect("is sent");
    again.record(span(attempted, Some(stored)));
    again.record(span(
        Step {
            time: 8,
            ..attempted
        },
        Some(stored),
    ));

    let store = first.waiting.try_recv().expect("waits");
    let attempt = second.waiting.try_recv().expect("waits");
    let next = second.waiting.try_recv().expect("waits");
    assert_eq!(
        store.span_context.trace_id(),
        attempt.span_context.trace_id()
    );
    assert_eq!(store.span_context.span_id(), attempt.parent_span_id);
    assert_eq!(store.parent_span_id, SpanId::INVALID);
    assert_ne!(attempt.span_context.span_id(), next.span_context.span_id());
    let different = other.of("another message").expect("is sent");
    assert_ne!(different.id, store.span_context.trace_id());
}

#[test]
fn the_share_that_is_sent_is_the_same_one_in_every_process() {
    let ((one, _first), (other, _second)) = (started(0.25), started(0.25));
    let names: Vec<String> = (0..4_000)
        .map(|number| format!("message {number}"))
        .collect();
    let chosen = |traces: &Traces| {
        let chosen = names.iter().filter(|name| traces.of(name).is_some());
        chosen.cloned().collect::<Vec<_>>()
    };
    assert_eq!(chosen(&one), chosen(&other));
    // The ids are hashes: the count is the same in every run.
    assert!(
        (900..=1_100).contains(&chosen(&one).len()),
        "{}",
        chosen(&one).len()
    );
    let ((none, _third), (all, _fourth)) = (started(0.0), started(1.0));
    assert_eq!(chosen(&none).len(), 0);
    assert_eq!(chosen(&all).len(), names.len());
    assert!(Traces::default().of("message").is_none());
}

#[test]
fn what_is_more_than_may_wait_is_lost_and_nothing_waits_for_it() {
    let (traces, mut exporting) = started(1.0);
    let trace = traces.of("message").expect("is sent");
    for time in 0..u64::try_from(MAX_WAITING).expect("fits") + 10 {
        trace.record(span(
            Step {
                name: "attempt",
                time,
            },
            None,
        ));
    }
    let mut waiting = 0;
    while exporting.waiting.try_recv() != Err(TryRecvError::Empty) {
        waiting += 1;
    }
    assert_eq!(waiting, MAX_WAITING);
}

#[tokio::test]
async fn a_process_ends_although_the_collector_is_not_there() {
    let (traces, exporting) = started(1.0);
    let stop = CancellationToken::new();
    let running = tokio::spawn(exporting.run(stop.clone()));
    for time in 0..5_000 {
        let trace = traces.of("message").expect("is sent");
        trace.record(span(
            Step {
                name: "attempt",
                time,
            },
            None,
        ));
    }
    stop.cancel();
    drop(traces);
    running.await.expect("ends by itself");
}
