//! Tests of temporary webhooks and their relay streams.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use tokio::time::timeout;

use super::*;
use crate::routes::webhooks::definition;

/// Longer than any line takes to come.
const PATIENCE: Duration = Duration::from_secs(60);

fn temporary() -> Value {
    json!({
        "temporary": true,
        "events": ["transaction"],
        "filters": { "programs": [address(3)] },
    })
}

type Chunks = Pin<Box<dyn Stream<Item = Result<axum::body::Bytes, axum::Error>> + Send>>;

impl Api {
    async fn stream(&self, path: &str) -> Chunks {
        let response = self.raw(Method::GET, &format!("{path}/stream"), None).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "application/x-ndjson"
        );
        Box::pin(response.into_body().into_data_stream())
    }

    async fn report(&self, path: &str, line: &Value, accepted: bool) -> StatusCode {
        let body = json!({
            "id": line["id"],
            "accepted": accepted,
            "status": if accepted { 200 } else { 500 },
            "durationMs": 3,
        });
        self.call(Method::POST, &format!("{path}/stream"), Some(&body))
            .await
            .0
    }
}

/// The next message.
async fn line(stream: &mut Chunks) -> Value {
    loop {
        let chunk = timeout(PATIENCE, stream.next())
            .await
            .expect("in time")
            .expect("open")
            .expect("a body");
        if chunk.as_ref() != b"\n" {
            return serde_json::from_slice(&chunk).expect("a line is one chunk");
        }
    }
}

#[tokio::test]
async fn messages_come_down_the_stream_until_they_are_reported_accepted() {
    let api = api(false).await;
    let (path, _) = api.created(&temporary()).await;
    let (_, webhook) = api.call(Method::GET, &path, None).await;
    assert_eq!(webhook["url"], definition::STREAM_URL);
    assert!(webhook["status"]["expires"].is_string());
    let ids = api.messages(&path, 2).await;

    let mut stream = api.stream(&path).await;
    let (first, second) = (line(&mut stream).await, line(&mut stream).await);
    assert_eq!(
        (&first["id"], &first["sequence"], &first["attempt"]),
        (&json!(ids[0].as_str()), &json!(1), &json!(1))
    );
    assert!(
        first["body"]
            .as_str()
            .expect("text")
            .contains("\"sequence\":1,")
    );
    assert_eq!(
        api.report(&path, &first, true).await,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        api.report(&path, &first, true).await,
        StatusCode::CONFLICT,
        "once is enough"
    );
    assert_eq!(
        api.report(&path, &second, false).await,
        StatusCode::NO_CONTENT
    );
    let again = line(&mut stream).await;
    assert_eq!(
        (&again["id"], &again["attempt"]),
        (&second["id"], &json!(2)),
        "a refused one comes again"
    );

    let (_, log) = api
        .call(Method::GET, &format!("{path}/deliveries"), None)
        .await;
    assert_eq!(log["deliveries"][1]["state"], "delivered");
    assert_eq!(log["deliveries"][0]["attempts"][0]["status"], 500);
    let (_, webhook) = api.call(Method::GET, &path, None).await;
    assert!(webhook["lastTriggered"].is_string());
}

#[tokio::test]
async fn what_a_broken_stream_took_along_comes_down_the_next_one() {
    let api = api(false).await;
    let (path, _) = api.created(&temporary()).await;
    api.messages(&path, 1).await;
    let mut stream = api.stream(&path).await;
    let first = line(&mut stream).await;
    drop(stream);
    let mut stream = api.stream(&path).await;
    let again = line(&mut stream).await;
    assert_eq!(again["id"], first["id"]);
    assert_eq!(
        api.report(&path, &again, true).await,
        StatusCode::NO_CONTENT
    );
}

#[tokio::test]
async fn a_second_stream_takes_the_place_of_the_first() {
    let api = api(false).await;
    let (path, _) = api.created(&temporary()).await;
    let mut first = api.stream(&path).await;
    let mut second = api.stream(&path).await;
    let rest = async { while first.next().await.is_some() {} };
    timeout(PATIENCE, rest).await.expect("ends");
    api.messages(&path, 1).await;
    assert_eq!(line(&mut second).await["sequence"], 1);
}

#[tokio::test]
async fn a_stream_ends_when_the_service_does() {
    let api = api(false).await;
    let (path, _) = api.created(&temporary()).await;
    let mut stream = api.stream(&path).await;
    api.shutdown.cancel();
    let rest = async { while stream.next().await.is_some() {} };
    timeout(PATIENCE, rest).await.expect("ends");
}

#[tokio::test]
async fn only_a_temporary_webhook_has_a_stream_and_it_has_no_url() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let (status, problem) = api.call(Method::GET, &format!("{path}/stream"), None).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::CONFLICT, &json!("wrong_kind_of_webhook"))
    );
    let mut with_url = temporary();
    with_url["url"] = json!("https://example.com/");
    assert_eq!(api.post(&with_url).await.1["field"], "url");

    let (path, _) = api.created(&temporary()).await;
    let (status, _) = api.call(Method::POST, &format!("{path}/test"), None).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let change = json!({ "url": "https://example.com/" });
    let (_, problem) = api.call(Method::PATCH, &path, Some(&change)).await;
    assert_eq!(problem["field"], "url");
    let change = json!({ "description": "still temporary" });
    let (status, _) = api.call(Method::PATCH, &path, Some(&change)).await;
    assert_eq!(status, StatusCode::OK);
}
