//! Errors of the API: problems, their codes, and what stays inside.

use super::*;

#[tokio::test]
async fn a_problem_has_a_code_a_remedy_and_its_media_type() {
    let response = ApiError::MarketNotReady {
        reason: "the stream is down".into(),
        slot: Some(7),
        lag: Some(2),
    }
    .into_response();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    let body = axum::body::to_bytes(response.into_body(), 4096)
        .await
        .expect("short body");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["code"], "market_not_ready");
    assert_eq!(body["retryable"], true);
    assert_eq!(body["slot"], 7);
    assert_eq!(body["slotLag"], 2);
}

#[test]
fn the_cause_of_an_internal_error_stays_inside() {
    let error = ApiError::Internal(anyhow::anyhow!("password=hunter2"));
    assert!(!error.to_string().contains("hunter2"));
}
