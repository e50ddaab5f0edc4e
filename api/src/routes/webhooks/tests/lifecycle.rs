//! Tests of creating, reading, replacing, changing, listing and deleting.

use sluice_store::{Breaker, EndpointState};

use super::*;

#[tokio::test]
async fn a_webhook_is_created_read_replaced_and_deleted() {
    let api = api(false).await;
    let response = api.raw(Method::POST, "/api/webhooks", Some(&valid())).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    let location = response.headers()[header::LOCATION]
        .to_str()
        .expect("text")
        .to_owned();
    let bytes = to_bytes(response.into_body(), 1 << 20)
        .await
        .expect("a short body");
    let created: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert!(
        created["secret"]
            .as_str()
            .expect("shown once")
            .starts_with("whsec_")
    );
    assert_eq!(created.as_object().expect("an object").len(), 2);

    let (status, read) = api.call(Method::GET, &location, None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(read, created["webhook"]);
    let fields: Vec<_> = read
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    for contract in [
        "id",
        "url",
        "events",
        "filters",
        "active",
        "created",
        "lastTriggered",
    ] {
        assert!(fields.iter().any(|field| field == contract), "{fields:?}");
    }
    assert_eq!(read["events"], json!(["accountChange", "programEvent"]));
    assert_eq!(
        read["filters"],
        json!({ "accounts": [address(1), address(2)], "programs": [address(3)] })
    );
    assert_eq!(
        (&read["active"], &read["lastTriggered"]),
        (&json!(true), &Value::Null)
    );
    assert!(read["created"].as_str().expect("a date").ends_with('Z'));

    let response = api.raw(Method::DELETE, &location, None).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    for (method, body) in [
        (Method::GET, None),
        (Method::PUT, Some(valid())),
        (Method::DELETE, None),
    ] {
        let (status, problem) = api.call(method, &location, body.as_ref()).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::NOT_FOUND, &json!("not_found"))
        );
    }
}

#[tokio::test]
async fn a_replacement_is_whole() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let (_, read) = api.call(Method::GET, &path, None).await;
    let mut changed = valid();
    changed["active"] = json!(false);
    changed["filters"] = json!({ "programs": [address(4)] });
    let (status, replaced) = api.call(Method::PUT, &path, Some(&changed)).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        (&replaced["id"], &replaced["active"]),
        (&read["id"], &json!(false))
    );
    assert_eq!(
        replaced["filters"],
        json!({ "accounts": [], "programs": [address(4)] })
    );
    assert_eq!(replaced["created"], read["created"]);
    assert!(replaced.get("secret").is_none());
}

#[tokio::test]
async fn lists_page_through_all_webhooks() {
    let api = api(false).await;
    for _ in 0..3 {
        assert_eq!(api.post(&valid()).await.0, StatusCode::CREATED);
    }
    let (_, first) = api.call(Method::GET, "/api/webhooks?limit=2", None).await;
    assert_eq!(first["webhooks"].as_array().map(Vec::len), Some(2));
    let cursor = first["nextCursor"].as_str().expect("there is more");
    let (_, last) = api
        .call(
            Method::GET,
            &format!("/api/webhooks?limit=2&cursor={cursor}"),
            None,
        )
        .await;
    assert_eq!(last["webhooks"].as_array().map(Vec::len), Some(1));
    assert_eq!(last["nextCursor"], Value::Null);
    for bad in [
        "limit=0",
        "limit=101",
        "limit=x",
        "cursor=x",
        "cursor=-1",
        "page=2",
    ] {
        let (status, _) = api
            .call(Method::GET, &format!("/api/webhooks?{bad}"), None)
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[tokio::test]
async fn what_was_read_can_be_sent_back_and_changes_nothing() {
    let api = api(false).await;
    let mut body = valid();
    body["commitment"] = json!("finalized");
    body["order"] = json!("strict");
    body["description"] = json!("mine");
    body["headers"] = json!({ "X-Team": "swaps", "authorization": "Basic YTpi" });
    body["gzip"] = json!(true);
    body["heartbeat"] = json!(60);
    let (path, _) = api.created(&body).await;
    let (_, mut before) = api.call(Method::GET, &path, None).await;
    assert_eq!(before["headers"]["x-team"], "swaps");
    let (status, mut after) = api.call(Method::PUT, &path, Some(&before)).await;
    assert_eq!(status, StatusCode::OK, "{after}");
    assert_eq!(
        (&before["status"]["version"], &after["status"]["version"]),
        (&json!(1), &json!(2))
    );
    for read in [&mut before, &mut after] {
        read["status"]["version"] = Value::Null;
    }
    assert_eq!(before, after);

    let (_, plain) = api.call(Method::PUT, &path, Some(&valid())).await;
    assert_eq!(
        plain["commitment"], "confirmed",
        "what is left out is not kept"
    );
    assert_eq!(plain["headers"], json!({}));
    assert_eq!(
        (&plain["heartbeat"], &plain["description"], &plain["order"]),
        (&Value::Null, &Value::Null, &json!("none"))
    );
}

#[tokio::test]
async fn a_change_keeps_what_it_does_not_name_and_null_restores_the_default() {
    let api = api(false).await;
    let mut body = valid();
    body["description"] = json!("mine");
    body["heartbeat"] = json!(60);
    let (path, _) = api.created(&body).await;
    let change = json!({ "active": false, "filters": { "programs": [] }, "heartbeat": null });
    let (status, changed) = api.call(Method::PATCH, &path, Some(&change)).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    assert_eq!(
        changed["filters"],
        json!({ "accounts": [address(1), address(2)], "programs": [] })
    );
    assert_eq!(changed["active"], false);
    assert_eq!(
        (&changed["description"], &changed["heartbeat"]),
        (&json!("mine"), &Value::Null)
    );
    assert_eq!(changed["url"], body["url"]);
    for (change, field) in [
        (json!({ "url": null }), "url"),
        (json!({ "events": null }), "events"),
        (json!({ "events": ["programEvent"] }), "filters.programs"),
        (json!({ "filters": { "accounts": [] } }), "filters"),
        (json!({ "temporary": true }), "temporary"),
    ] {
        let (status, problem) = api.call(Method::PATCH, &path, Some(&change)).await;
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::BAD_REQUEST, &json!(field)),
            "{change}: {problem}"
        );
    }
}

#[tokio::test]
async fn a_writer_who_has_not_seen_the_latest_version_can_ask_to_be_refused() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let tag = api.raw(Method::GET, &path, None).await.headers()[header::ETAG].clone();
    let tag = tag.to_str().expect("text");
    let change = json!({ "description": "first" });
    let patch = async |tag: &str| {
        read(
            api.with(Method::PATCH, &path, Some(&change), &[("if-match", tag)])
                .await,
        )
        .await
    };
    assert_eq!(patch(tag).await.0, StatusCode::OK);
    let (status, problem) = patch(tag).await;
    assert_eq!(
        (status, &problem["code"], &problem["version"]),
        (
            StatusCode::PRECONDITION_FAILED,
            &json!("version_conflict"),
            &json!(2)
        )
    );
    assert_eq!(patch("*").await.0, StatusCode::OK);
    for bad in ["2", "\"+2\"", "\"\"", "\"x\""] {
        assert_eq!(patch(bad).await.1["field"], "If-Match", "{bad}");
    }
}

#[tokio::test]
async fn the_number_of_webhooks_is_limited() {
    let api = api(false).await;
    for _ in 0..MAX_WEBHOOKS {
        api.created(&valid()).await;
    }
    let (status, problem) = api.post(&valid()).await;
    assert_eq!(
        (status, &problem["code"]),
        (
            StatusCode::UNPROCESSABLE_ENTITY,
            &json!("too_many_webhooks")
        )
    );
}

#[tokio::test]
async fn a_vanished_database_is_a_passing_fault() {
    let api = api(false).await;
    std::fs::remove_file(api.folder.path().join("sluice.db")).expect("deletes");
    let (status, problem) = api.post(&valid()).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("store_unavailable"))
    );
    assert_eq!(problem["retryable"], true);
}

#[tokio::test]
async fn a_creation_that_is_repeated_under_its_idempotency_key_creates_no_other_webhook() {
    let api = api(false).await;
    let create = async |body: &Value, keys: &[&str]| {
        let headers: Vec<_> = keys.iter().map(|key| ("idempotency-key", *key)).collect();
        read(
            api.with(Method::POST, "/api/webhooks", Some(body), &headers)
                .await,
        )
        .await
    };
    let (status, first) = create(&valid(), &["order-1"]).await;
    assert_eq!(status, StatusCode::CREATED, "{first}");
    let (status, again) = create(&valid(), &["order-1"]).await;
    assert_eq!(
        (status, &again),
        (StatusCode::CREATED, &first),
        "the secret, too"
    );
    let (_, other) = create(&valid(), &["order-2"]).await;
    assert_ne!(other["webhook"]["id"], first["webhook"]["id"]);

    let mut changed = valid();
    changed["description"] = json!("another one");
    let (status, problem) = create(&changed, &["order-1"]).await;
    assert_eq!(
        (status, &problem["code"], &problem["field"]),
        (
            StatusCode::UNPROCESSABLE_ENTITY,
            &json!("idempotency_key_reused"),
            &json!("Idempotency-Key")
        ),
        "{problem}"
    );
    let detail = problem["detail"].as_str().expect("text");
    let id = first["webhook"]["id"].as_str().expect("text");
    assert!(
        detail.contains("Idempotency-Key") && detail.contains(id),
        "{detail}"
    );
    for bad in [&["a b"][..], &[""], &["a", "b"], &[&"x".repeat(256)]] {
        let (status, _) = create(&valid(), bad).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{bad:?}");
    }

    let path = format!("/api/webhooks/{id}");
    assert_eq!(
        api.call(Method::DELETE, &path, None).await.0,
        StatusCode::NO_CONTENT
    );
    let (_, anew) = create(&changed, &["order-1"]).await;
    assert_ne!(
        anew["webhook"]["id"], first["webhook"]["id"],
        "the first is gone"
    );
}

#[tokio::test]
async fn the_status_shows_what_deliveries_say_of_the_receiver() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let (status, found) = api.call(Method::GET, &path, None).await;
    assert_eq!(status, StatusCode::OK);
    let well =
        json!({ "breaker": "closed", "failures": 0, "failingSince": null, "pausedUntil": null });
    assert_eq!(found["status"]["endpoint"], well);
    let since = now();
    let until = since.after(Duration::from_secs(60));
    let failing = EndpointState {
        breaker: Breaker::Open,
        failures: 12,
        failing_since: Some(since),
        paused_until: Some(until),
        ..EndpointState::default()
    };
    let set = api.store.set_endpoint(&id_of(&path), &failing).await;
    assert!(set.expect("sets"));
    let (_, found) = api.call(Method::GET, &path, None).await;
    let shown = &found["status"]["endpoint"];
    let (since, until) = (since.to_string(), until.to_string());
    let open =
        json!({ "breaker": "open", "failures": 12, "failingSince": since, "pausedUntil": until });
    assert_eq!(*shown, open);
    let (_, listed) = api.call(Method::GET, "/api/webhooks", None).await;
    assert_eq!(listed["webhooks"][0]["status"]["endpoint"], open);
}

#[tokio::test]
async fn the_status_says_in_the_servers_words_why_a_filter_is_refused() {
    const WORDS: &str = "failed to create filter: Pubkey of all programs in filters is not allowed";
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let (_, found) = api.call(Method::GET, &path, None).await;
    assert_eq!(found["status"]["refused"], Value::Null);
    let revision = api.store.webhook_revision().await.expect("read");
    let recorded = api
        .store
        .record_refusal(&id_of(&path), revision, WORDS)
        .await;
    assert!(recorded.expect("recorded"));
    let (_, found) = api.call(Method::GET, &path, None).await;
    assert_eq!(found["status"]["refused"], WORDS);
    let (_, listed) = api.call(Method::GET, "/api/webhooks", None).await;
    assert_eq!(listed["webhooks"][0]["status"]["refused"], WORDS);
}
