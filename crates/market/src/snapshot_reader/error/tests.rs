//! Errors of the RPC node: what each wording of nodes and providers is about.

use super::*;

const METHOD: &str = "getProgramAccounts";

/// Texts of nodes and providers as they are met.
#[test]
fn refusals_are_distinguished_as_providers_word_them() {
    let all = [
        (
            429,
            "Too many requests for a specific RPC call",
            Subject::Rate,
        ),
        (
            -32005,
            "Your app has exceeded its compute units per second capacity",
            Subject::Rate,
        ),
        (
            -32007,
            "50/second request limit reached - reduce calls per second",
            Subject::Rate,
        ),
        (
            -32600,
            "Request deprioritized due to number of accounts requested. Slow down requests or add \
          filters to narrow down results",
            Subject::Size,
        ),
        (
            -32012,
            "scan aborted: The accumulated scan results exceeded the limit",
            Subject::Size,
        ),
        (-32008, "Response is too big", Subject::Size),
        (-32602, "Too many inputs provided; max 100", Subject::Size),
        (-32601, "Method not found", Subject::Service),
        (
            -32010,
            "CPMM excluded from account secondary indexes; this RPC method unavailable for key",
            Subject::Service,
        ),
        (
            410,
            "The RPC call or parameters have been disabled.",
            Subject::Service,
        ),
        (
            -32000,
            "getProgramAccounts is not available on the free plan",
            Subject::Service,
        ),
        (-32005, "Node is behind by 42 slots", Subject::Health),
        (-32603, "Internal error", Subject::Unknown),
    ];
    for (code, text, expected) in all {
        assert_eq!(subject(code, text), expected, "{text}");
    }
}

#[test]
fn statuses_are_distinguished_with_the_errors_they_carry() {
    let of = |status, body: &str| {
        SnapshotError::of_status(METHOD, status, body.as_bytes(), Some(Duration::ZERO))
    };
    let too_large = r#"{"error":{"code":-32600,"message":"response too large"}}"#;
    let disabled =
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"this call is disabled"},"id":1}"#;
    use SnapshotError::*;
    assert!(matches!(of(429, too_large), RateLimited { .. }));
    assert!(matches!(of(503, ""), RateLimited { .. }));
    assert!(matches!(of(400, too_large), TooLarge { .. }));
    assert!(matches!(of(413, "<html>"), TooLarge { .. }));
    assert!(matches!(of(403, disabled), Unavailable { .. }));
    assert!(matches!(of(410, "Gone"), Unavailable { .. }));
    assert!(matches!(of(401, ""), Unauthorized { status: 401, .. }));
    assert!(matches!(of(403, "<html>"), Unauthorized { .. }));
    assert!(matches!(of(504, "<html>"), Late { .. }));
    assert!(matches!(of(502, "<html>"), Unreachable { .. }));
    assert!(matches!(of(404, ""), Refused { .. }));
    let busy = SnapshotError::of_status(METHOD, 503, b"", None);
    assert!(matches!(busy, Unreachable { .. }));
}

#[test]
fn what_a_person_can_do_is_said() {
    let unavailable = SnapshotError::of_refusal(METHOD, -32601, "Method not found").to_string();
    assert!(unavailable.contains("set chain.rpc-url"), "{unavailable}");
    let unauthorized = SnapshotError::of_status(METHOD, 403, b"", None).to_string();
    assert!(unauthorized.contains("chain.rpc-url"), "{unauthorized}");
}

#[test]
fn a_node_is_not_quoted_at_any_length() {
    let long = "x".repeat(10_000);
    let error = SnapshotError::of_refusal(METHOD, 1, &long).to_string();
    assert!(error.len() < 300);
}

#[test]
fn retry_after_is_read_as_seconds_and_as_a_date() {
    let seconds = |text, date| retry_after(text, date).map(|wait| wait.as_secs());
    let now = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(seconds("7", None), Some(7));
    assert_eq!(seconds(" 0 ", None), Some(0));
    assert_eq!(seconds("86400", None), Some(300));
    assert_eq!(
        seconds("Sun, 06 Nov 1994 08:49:47 GMT", Some(now)),
        Some(10)
    );
    assert_eq!(seconds("Sun, 06 Nov 1994 08:49:27 GMT", Some(now)), Some(0));
    assert_eq!(seconds("Sun, 06 Nov 1994 08:49:47 GMT", None), None);
    assert_eq!(seconds("soon", Some(now)), None);
    assert_eq!(seconds("-1", None), None);
}
