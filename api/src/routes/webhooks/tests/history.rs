//! Tests of messages and deliveries read back, and of redelivery.

use sluice_store::{
    Attempt, AttemptResult, EndpointState, LeaseLimits, LeaseRequest, LeaseToken, LeasedDelivery,
    Outcome, TenantShares, Timings,
};

use super::*;

impl Api {
    async fn lease(&self) -> Vec<LeasedDelivery> {
        let request = LeaseRequest {
            now: now(),
            until: now().after(Duration::from_secs(60)),
            token: LeaseToken::from_random(rand::random()),
            limits: LeaseLimits::deliveries(10),
            shares: TenantShares::unlimited(),
        };
        self.store.lease_due(&request).await.expect("leases")
    }

    async fn record(&self, delivery: LeasedDelivery, status: u16, outcome: Outcome) {
        let attempt = Attempt {
            number: 0,
            url: delivery.url.clone(),
            started: now(),
            duration: Duration::from_micros(1_500),
            timings: Timings {
                first_byte: Some(Duration::from_micros(1_250)),
                ..Timings::default()
            },
            status: Some(status),
            error: (status != 200).then(|| format!("answered {status}")),
            retry_after: None,
            request_headers: vec![("webhook-id".to_owned(), delivery.lease.id.to_string())],
            response: Some("thanks".to_owned()),
            response_cut: false,
        };
        let result = AttemptResult::new(delivery.lease, attempt, outcome, 0);
        let unchanged = |state: EndpointState, _: &AttemptResult| state;
        let recorded = self.store.record(&[result], &unchanged).await;
        assert_eq!(recorded.expect("records").counted, [true]);
    }
}

#[tokio::test]
async fn a_message_is_answered_whole_by_its_id_and_others_are_not_found() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let (other, _) = api.created(&valid()).await;
    let ids = api.messages(&path, 2).await;
    let at = |path: &str, id: &str| format!("{path}/messages/{id}");
    let (status, found) = api
        .call(Method::GET, &at(&path, ids[1].as_str()), None)
        .await;
    assert_eq!(status, StatusCode::OK, "{found}");
    assert_eq!(found["id"], ids[1].as_str());
    assert_eq!(found["body"]["sequence"], 2);
    assert_eq!(found["body"]["data"]["amount"], u64::MAX);
    for missing in [
        at(&other, ids[1].as_str()),
        at(&path, "msg_1"),
        at(&path, "x"),
        at("/api/webhooks/wh_1", ids[1].as_str()),
    ] {
        let (status, problem) = api.call(Method::GET, &missing, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{missing}: {problem}");
    }
}

/// A webhook with three messages: delivered, given up, waiting.
async fn past(api: &Api) -> (String, Vec<MessageId>) {
    let (path, _) = api.created(&valid()).await;
    let ids = api.messages(&path, 3).await;
    let outcomes = [
        (200, Outcome::Delivered),
        (500, Outcome::Failed),
        (
            503,
            Outcome::Retry {
                at: now().after(Duration::from_secs(600)),
            },
        ),
    ];
    for (delivery, (status, outcome)) in api.lease().await.into_iter().zip(outcomes) {
        api.record(delivery, status, outcome).await;
    }
    (path, ids)
}

#[tokio::test]
async fn every_attempt_is_shown_with_what_was_sent_and_what_came_back() {
    let api = api(false).await;
    let (path, ids) = past(&api).await;
    let path = format!("{path}/deliveries");
    let (status, page) = api.call(Method::GET, &path, None).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let states: Vec<_> = page["deliveries"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|delivery| delivery["state"].as_str().expect("text"))
        .collect();
    assert_eq!(
        states,
        ["pending", "failed", "delivered"],
        "the newest first"
    );
    assert_eq!(page["nextCursor"], Value::Null);

    let delivered = &page["deliveries"][2];
    assert_eq!(
        (&delivered["id"], &delivered["sequence"], &delivered["type"]),
        (&json!(ids[0].as_str()), &json!(1), &json!("transaction"))
    );
    let attempt = &delivered["attempts"][0];
    assert_eq!(
        (&attempt["number"], &attempt["status"], &attempt["error"]),
        (&json!(1), &json!(200), &Value::Null)
    );
    assert_eq!(
        (
            &attempt["durationMicros"],
            &attempt["firstByteMicros"],
            &attempt["resolvedMicros"]
        ),
        (&json!(1_500), &json!(1_250), &Value::Null)
    );
    assert_eq!(
        attempt["requestHeaders"],
        json!([["webhook-id", ids[0].as_str()]])
    );
    assert_eq!(
        (&attempt["response"], &attempt["responseCut"]),
        (&json!("thanks"), &json!(false))
    );
    assert_eq!(
        page["deliveries"][1]["attempts"][0]["error"],
        "answered 500"
    );
    assert!(page["deliveries"][0]["nextAttempt"].is_string());
}

#[tokio::test]
async fn a_message_that_waits_is_skipped_once_and_can_be_redelivered() {
    let api = api(false).await;
    let (path, ids) = past(&api).await;
    let skip = format!("{path}/skip");
    let body = |id: &str| json!({ "id": id });
    let (status, answer) = api
        .call(Method::POST, &skip, Some(&body(ids[2].as_str())))
        .await;
    assert_eq!((status, &answer["skipped"]), (StatusCode::OK, &json!(true)));
    let (status, answer) = api
        .call(Method::POST, &skip, Some(&body(ids[2].as_str())))
        .await;
    assert_eq!(
        (status, &answer["skipped"]),
        (StatusCode::OK, &json!(false))
    );
    let failed = format!("{path}/deliveries?state=failed");
    let (_, failed) = api.call(Method::GET, &failed, None).await;
    assert_eq!(failed["deliveries"][0]["id"], ids[2].as_str());
    for unknown in ["msg_unknown", "nonsense", "msg_."] {
        let (status, _) = api.call(Method::POST, &skip, Some(&body(unknown))).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{unknown}");
    }
    let redeliver = format!("{path}/redeliver");
    let failed = json!({ "failed": true });
    let (status, answer) = api.call(Method::POST, &redeliver, Some(&failed)).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_eq!(
        answer["redelivered"], 2,
        "dead letters, the skipped one among them"
    );
}

#[tokio::test]
async fn deliveries_are_looked_for_by_state_and_number_and_paged() {
    let api = api(false).await;
    let (path, ids) = past(&api).await;
    let path = format!("{path}/deliveries");
    let (_, failed) = api
        .call(Method::GET, &format!("{path}?state=failed"), None)
        .await;
    assert_eq!(failed["deliveries"].as_array().map(Vec::len), Some(1));
    let (_, one) = api
        .call(Method::GET, &format!("{path}?sequence=3"), None)
        .await;
    assert_eq!(one["deliveries"][0]["id"], ids[2].as_str());
    let (_, first) = api
        .call(Method::GET, &format!("{path}?limit=2"), None)
        .await;
    let cursor = first["nextCursor"].as_str().expect("there is more");
    let (_, last) = api
        .call(
            Method::GET,
            &format!("{path}?limit=2&cursor={cursor}"),
            None,
        )
        .await;
    assert_eq!(last["deliveries"][0]["sequence"], 1);
    for bad in [
        "state=lost",
        "sequence=-1",
        "sequence=+1",
        "sequence=%2B1",
        "limit=51",
        "limit=%2B5",
        "cursor=x",
        "cursor=%2B1",
    ] {
        let (status, _) = api.call(Method::GET, &format!("{path}?{bad}"), None).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[tokio::test]
async fn missed_messages_are_pulled_byte_for_byte() {
    let api = api(false).await;
    let (path, ids) = past(&api).await;
    let (status, page) = api
        .call(Method::GET, &format!("{path}/events?after=1"), None)
        .await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let found: Vec<_> = page["events"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| (&event["id"], &event["body"]["sequence"]))
        .collect();
    assert_eq!(
        found,
        [
            (&json!(ids[1].as_str()), &json!(2)),
            (&json!(ids[2].as_str()), &json!(3))
        ]
    );
    assert_eq!(
        (&page["lastSequence"], &page["oldestKept"]),
        (&json!(3), &json!(1))
    );
    let response = api
        .raw(Method::GET, &format!("{path}/events?limit=1"), None)
        .await;
    let bytes = to_bytes(response.into_body(), 1 << 20)
        .await
        .expect("short");
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let webhook = id_of(&path);
    let body = format!(
        r#"{{"type":"transaction","webhookId":"{webhook}","sequence":1,"data":{{"amount":{}}}}}"#,
        u64::MAX
    );
    assert!(text.contains(&body), "{text}");
}

#[tokio::test]
async fn messages_are_delivered_again_by_id_by_range_and_when_given_up() {
    let api = api(false).await;
    let (path, ids) = past(&api).await;
    let path = format!("{path}/redeliver");
    let due = async || {
        let mut due: Vec<_> = api
            .lease()
            .await
            .iter()
            .map(|delivery| delivery.lease.sequence)
            .collect();
        due.sort_unstable();
        due
    };
    assert_eq!(due().await, [0_u64; 0]);
    let (status, answer) = api
        .call(Method::POST, &path, Some(&json!({ "failed": true })))
        .await;
    assert_eq!(
        (status, &answer["redelivered"]),
        (StatusCode::ACCEPTED, &json!(1))
    );
    assert_eq!(due().await, [2]);
    let first = json!({ "id": ids[0].as_str() });
    let (_, answer) = api.call(Method::POST, &path, Some(&first)).await;
    assert_eq!(answer["redelivered"], 1);
    assert_eq!(due().await, [1]);
    let range = json!({ "sequences": { "first": 3, "last": 9 } });
    let (_, answer) = api.call(Method::POST, &path, Some(&range)).await;
    assert_eq!(answer["redelivered"], 1);
    assert_eq!(due().await, [3]);
}

#[tokio::test]
async fn what_to_deliver_again_is_said_in_exactly_one_way() {
    let api = api(false).await;
    let (path, ids) = past(&api).await;
    let path = format!("{path}/redeliver");
    let id = ids[0].as_str();
    let range = json!({ "first": 1, "last": 2 });
    for (bad, field) in [
        (json!({}), Value::Null),
        (json!({ "failed": false }), json!("failed")),
        (json!({ "failed": true, "id": id }), json!("failed")),
        (json!({ "failed": false, "id": id }), json!("failed")),
        (json!({ "id": id, "sequences": range }), json!("sequences")),
        (json!({ "failed": true, "id": null }), json!("id")),
        (
            json!({ "sequences": { "first": 2, "last": 1 } }),
            json!("sequences"),
        ),
        (
            json!({ "sequences": { "first": 2 } }),
            json!("sequences.last"),
        ),
    ] {
        let (status, answer) = api.call(Method::POST, &path, Some(&bad)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{bad}");
        assert_eq!(answer["field"], field, "{bad}: {answer}");
    }
    for unknown in ["msg_00", "nonsense"] {
        let body = json!({ "id": unknown });
        let (status, _) = api.call(Method::POST, &path, Some(&body)).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{unknown}");
    }
}
