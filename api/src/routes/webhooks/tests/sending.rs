//! Tests of the test endpoint against a real receiver.

use sluice_testkit::webhook_receiver::{ReceivedRequest, Reply, WebhookReceiver};

use super::*;

/// A receiver that answers so.
async fn receiver(status: StatusCode) -> WebhookReceiver {
    let reply = Reply::Status(status.as_u16(), "internal page".to_owned());
    WebhookReceiver::always(reply).await.expect("binds")
}

#[tokio::test]
async fn a_test_sends_a_signed_sample_of_each_kind_asked_for() {
    let api = api(true).await;
    let receiver = receiver(StatusCode::OK).await;
    let mut body = valid();
    body["url"] = json!(receiver.url());
    body["headers"] = json!({ "x-team": "swaps" });
    let (path, secret) = api.created(&body).await;
    let (status, answer) = api.call(Method::POST, &format!("{path}/test"), None).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["accepted"], true);
    let kinds: Vec<_> = answer["results"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|result| {
            assert_eq!(
                (&result["status"], &result["accepted"]),
                (&json!(200), &json!(true))
            );
            assert!(
                result["durationMicros"]
                    .as_u64()
                    .is_some_and(|micros| micros > 0)
            );
            result["type"].as_str().expect("text")
        })
        .collect();
    assert_eq!(kinds, ["accountChange", "programEvent"]);

    let verifier = standardwebhooks::Webhook::new(&secret).expect("a secret");
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    for ReceivedRequest { headers, body, .. } in &received {
        verifier.verify(body, headers).expect("signed");
        assert_eq!(headers["x-team"], "swaps");
        let body: Value = serde_json::from_slice(body).expect("JSON");
        assert_eq!(body["webhookId"], id_of(&path).as_str());
        assert_eq!(body["sequence"], 0, "which no real message has");
        assert_eq!(body["commitment"], "confirmed");
    }
    let (_, webhook) = api.call(Method::GET, &path, None).await;
    assert_eq!(webhook["lastTriggered"], Value::Null);
}

#[tokio::test]
async fn a_failed_test_says_the_status_and_nothing_else_of_the_answer() {
    let api = api(true).await;
    let receiver = receiver(StatusCode::IM_A_TEAPOT).await;
    let mut body = valid();
    body["url"] = json!(receiver.url());
    let (path, _) = api.created(&body).await;
    let (_, answer) = api.call(Method::POST, &format!("{path}/test"), None).await;
    assert_eq!(answer["accepted"], false);
    assert_eq!(
        (
            &answer["results"][0]["status"],
            &answer["results"][0]["error"]
        ),
        (&json!(418), &json!("answered 418"))
    );
    assert!(!answer.to_string().contains("internal page"));
}

#[tokio::test]
async fn a_receiver_is_not_flooded_with_tests() {
    let api = api(true).await;
    let receiver = receiver(StatusCode::OK).await;
    let mut body = valid();
    body["url"] = json!(receiver.url());
    let (one, _) = api.created(&body).await;
    let (other, _) = api.created(&body).await;
    for number in 0..MAX_TESTS {
        let path = if number % 2 == 0 { &one } else { &other };
        let (status, _) = api.call(Method::POST, &format!("{path}/test"), None).await;
        assert_eq!(status, StatusCode::OK);
    }
    let sent = receiver.received().len();
    for path in [&one, &other] {
        let (status, answer) = api.call(Method::POST, &format!("{path}/test"), None).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer["code"], "rate_limited");
    }
    assert_eq!(receiver.received().len(), sent);
    let (status, _) = api.call(Method::GET, &one, None).await;
    assert_eq!(status, StatusCode::OK, "everything else is answered");
}

#[tokio::test]
async fn a_test_of_a_webhook_that_is_told_of_operations_alone_sends_these() {
    let api = api(true).await;
    let receiver = receiver(StatusCode::OK).await;
    let kinds = [
        "endpoint.disabled",
        "endpoint.failing",
        "gap",
        "quota",
        "filter.refused",
    ];
    let (path, secret) = api
        .created(&json!({ "url": receiver.url(), "operations": kinds }))
        .await;
    let (status, answer) = api.call(Method::POST, &format!("{path}/test"), None).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["accepted"], true);
    let verifier = standardwebhooks::Webhook::new(&secret).expect("a secret");
    let mut sent = Vec::new();
    for ReceivedRequest { headers, body, .. } in &receiver.received() {
        verifier.verify(body, headers).expect("signed");
        let body: Value = serde_json::from_slice(body).expect("JSON");
        assert!(body["data"].is_object(), "{body}");
        sent.push(body["type"].as_str().expect("text").to_owned());
    }
    sent.sort_unstable();
    let mut expected = kinds;
    expected.sort_unstable();
    assert_eq!(sent, expected);
}
