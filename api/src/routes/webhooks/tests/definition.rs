//! Tests of the definition's fields: what is accepted, and how faults are named.

use super::*;
use crate::routes::webhooks::limits;

/// A field, a value it must not have, and the field that the refusal names.
type Fault = (&'static str, Value, &'static str);

/// Faults in what the contract names.
fn contract_faults() -> Vec<Fault> {
    vec![
        ("url", json!(null), "url"),
        ("url", json!("example.com"), "url"),
        ("url", json!("http://example.com/"), "url"),
        ("url", json!("http://127.0.0.1/"), "url"),
        ("url", json!("ftp://example.com/"), "url"),
        ("url", json!("https://user@example.com/"), "url"),
        ("url", json!("https://:pass@example.com/"), "url"),
        ("url", json!("https://example.com/#top"), "url"),
        (
            "url",
            json!(format!(
                "https://example.com/{}",
                "a".repeat(limits::MAX_URL_BYTES)
            )),
            "url",
        ),
        ("url", json!(7), "url"),
        ("events", json!(null), "events"),
        ("events", json!([]), "events"),
        ("events", json!(["transaction", "swap"]), "events[1]"),
        ("events", json!(["transaction", "transaction"]), "events[1]"),
        ("filters", json!(null), "filters"),
        ("filters", json!({}), "filters"),
        (
            "filters",
            json!({ "accounts": [address(1), "x"] }),
            "filters.accounts[1]",
        ),
        (
            "filters",
            json!({ "programs": [""] }),
            "filters.programs[0]",
        ),
        ("active", json!("yes"), "active"),
        ("url", json!("https://10.0.0.1/"), "url"),
        ("url", json!("https://[::ffff:127.0.0.1]/"), "url"),
    ]
}

/// Faults in what is optional, or not to be written.
fn option_faults() -> Vec<Fault> {
    vec![
        ("commitment", json!("max"), "commitment"),
        ("order", json!("fifo"), "order"),
        (
            "description",
            json!("a".repeat(limits::MAX_DESCRIPTION_CHARS + 1)),
            "description",
        ),
        ("headers", json!({ "a b": "c" }), "headers.a b"),
        ("headers", json!({ "x": "line\nbreak" }), "headers.x"),
        ("headers", json!({ "x": "caf\u{e9}" }), "headers.x"),
        ("headers", json!({ "X-A": "1", "x-a": "2" }), "headers.x-a"),
        (
            "headers",
            json!({ "Webhook-Id": "1" }),
            "headers.Webhook-Id",
        ),
        ("headers", json!({ "host": "a" }), "headers.host"),
        (
            "headers",
            json!({ "Content-Length": "1" }),
            "headers.Content-Length",
        ),
        ("headers", json!({ "x": "a".repeat(5000) }), "headers"),
        (
            "headers",
            Value::Object(
                (0..=limits::MAX_HEADERS)
                    .map(|number| (format!("x-{number}"), json!("")))
                    .collect(),
            ),
            "headers",
        ),
        ("gzip", json!(1), "gzip"),
        ("heartbeat", json!(9), "heartbeat"),
        ("heartbeat", json!(86_401), "heartbeat"),
        ("heartbeat", json!(-1), "heartbeat"),
        ("batch", json!({ "maxMessages": 501 }), "batch.maxMessages"),
        ("batch", json!({ "maxBytes": 1023 }), "batch.maxBytes"),
        ("batch", json!({ "maxWaitMs": 5001 }), "batch.maxWaitMs"),
        (
            "delivery",
            json!({ "concurrency": 17 }),
            "delivery.concurrency",
        ),
        (
            "delivery",
            json!({ "timeoutMs": 15_001 }),
            "delivery.timeoutMs",
        ),
        ("id", json!("wh_1"), "id"),
        ("created", json!("2026-01-01T00:00:00Z"), "created"),
        ("temporary", json!("yes"), "temporary"),
    ]
}

#[tokio::test]
async fn every_fault_is_refused_and_its_field_named() {
    let api = api(false).await;

    for (field, value, named) in contract_faults().into_iter().chain(option_faults()) {
        let mut body = valid();
        body[field] = value.clone();
        let (status, problem) = api.post(&body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{field} = {value}");
        assert_eq!(
            problem["field"],
            json!(named),
            "{field} = {value}: {problem}"
        );
    }
    let (_, page) = api.call(Method::GET, "/api/webhooks", None).await;
    assert_eq!(page["webhooks"], json!([]), "nothing was stored");
}

#[tokio::test]
async fn unknown_fields_are_refused_by_name() {
    let api = api(false).await;
    let mut misspelt = valid();
    misspelt["acitve"] = json!(false);
    let (status, problem) = api.post(&misspelt).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        problem["detail"].as_str().expect("text").contains("acitve"),
        "{problem}"
    );
    let mut nested = valid();
    nested["filters"]["mints"] = json!([]);
    let (status, problem) = api.post(&nested).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        problem["detail"].as_str().expect("text").contains("mints"),
        "{problem}"
    );
}

#[tokio::test]
async fn a_webhook_that_can_never_fire_is_refused() {
    let api = api(false).await;
    let body = json!({
        "url": "https://example.com/hook",
        "events": ["programEvent"],
        "filters": { "accounts": [address(1)] },
    });
    let (status, problem) = api.post(&body).await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("filters.programs"))
    );
}

#[tokio::test]
async fn token_owners_may_be_named_alone_where_transactions_are_asked_for() {
    let api = api(false).await;
    let mut body = json!({
        "url": "https://example.com/hook",
        "events": ["transaction"],
        "filters": { "tokenOwners": [address(1), address(2), address(1)] },
    });
    let (path, _) = api.created(&body).await;
    let (_, created) = api.call(Method::GET, &path, None).await;
    assert_eq!(
        created["filters"]["tokenOwners"],
        json!([address(1), address(2)])
    );
    assert_eq!(created["status"]["filter"]["tokenOwners"], 2);
    let (_, usage) = api.call(Method::GET, "/api/usage", None).await;
    assert_eq!(usage["addresses"]["used"], 2);
    let note = json!({ "description": "unchanged otherwise" });
    let (_, noted) = api.call(Method::PATCH, &path, Some(&note)).await;
    assert_eq!(noted["filters"], created["filters"]);
    for (change, field) in [
        (
            json!({ "events": ["accountChange"] }),
            "filters.tokenOwners",
        ),
        (json!({ "filters": { "tokenOwners": [] } }), "filters"),
        (
            json!({ "filters": { "tokenOwners": ["x"] } }),
            "filters.tokenOwners[0]",
        ),
    ] {
        let (status, refused) = api.call(Method::PATCH, &path, Some(&change)).await;
        assert_eq!(
            (status, &refused["field"]),
            (StatusCode::BAD_REQUEST, &json!(field)),
            "{refused}"
        );
    }
    let many: Vec<_> = (0..=u32::try_from(MAX_PROGRAMS).expect("small")).collect();
    body["filters"] = json!({ "tokenOwners": many.into_iter().map(address).collect::<Vec<_>>() });
    let (_, refused) = api.post(&body).await;
    assert_eq!(refused["field"], "filters.tokenOwners");
}

#[tokio::test]
async fn the_number_of_programs_is_limited() {
    let api = api(false).await;
    let count = u32::try_from(MAX_PROGRAMS).expect("small");
    let mut body = valid();
    body["filters"] = json!({ "programs": (0..count).map(address).collect::<Vec<_>>() });
    assert_eq!(api.post(&body).await.0, StatusCode::CREATED);
    body["filters"] = json!({ "programs": (0..=count).map(address).collect::<Vec<_>>() });
    let (status, problem) = api.post(&body).await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("filters.programs"))
    );
}

#[tokio::test]
async fn a_body_longer_than_the_largest_filter_is_not_read() {
    let api = api(false).await;
    let mut body = valid();
    body["description"] = json!("a".repeat(1 << 20));
    let (status, problem) = api.post(&body).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::PAYLOAD_TOO_LARGE, &json!("body_too_large"))
    );
}

#[tokio::test]
async fn plain_http_needs_the_setting_and_a_loopback_address() {
    let api = api(true).await;
    let mut body = valid();
    for good in [
        "http://127.0.0.1:9/hook",
        "http://localhost/",
        "http://[::1]:80/",
        "https://example.com/",
    ] {
        body["url"] = json!(good);
        assert_eq!(api.post(&body).await.0, StatusCode::CREATED, "{good}");
    }
    for bad in [
        "http://example.com/",
        "http://10.0.0.1/",
        "http://localhost.example.com/",
        "http://0.0.0.0/",
    ] {
        body["url"] = json!(bad);
        assert_eq!(api.post(&body).await.0, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[tokio::test]
async fn more_addresses_than_the_stream_serves_are_refused_with_the_limit_and_the_remedy() {
    let api = api(false).await;
    let body = |accounts: std::ops::Range<u32>| {
        json!({
            "url": "https://example.com/",
            "events": ["accountChange"],
            "filters": { "accounts": accounts.map(address).collect::<Vec<_>>() },
        })
    };
    let (path, _) = api.created(&body(0..3)).await;
    let limits = AddressLimits {
        accounts: Some(4),
        mentioned: Some(1),
        ..AddressLimits::default()
    };
    api.store
        .record_address_limits(limits)
        .await
        .expect("written");
    let (status, refused) = api.post(&body(0..5)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    assert_eq!(refused["code"], "filter_not_served");
    assert_eq!(refused["field"], "filters.accounts");
    assert_eq!(refused["limit"], 4);
    let detail = refused["detail"].as_str().expect("text");
    assert!(detail.contains("name fewer"), "{detail}");
    api.created(&body(0..4)).await;
    for (method, at, body) in [
        (Method::PUT, path.clone(), body(0..5)),
        (
            Method::PATCH,
            path.clone(),
            json!({ "filters": { "accounts": (0..5).map(address).collect::<Vec<_>>() } }),
        ),
        (
            Method::PATCH,
            path.clone(),
            json!({ "events": ["transaction"] }),
        ),
        (
            Method::POST,
            format!("{path}/accounts"),
            json!({ "accounts": [address(8), address(9)] }),
        ),
    ] {
        let (status, refused) = api.call(method, &at, Some(&body)).await;
        assert_eq!(
            status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{body}: {refused}"
        );
    }
    let one = json!({ "accounts": [address(2), address(8)] });
    let (status, added) = api
        .call(Method::POST, &format!("{path}/accounts"), Some(&one))
        .await;
    assert_eq!(
        (status, &added["added"]),
        (StatusCode::OK, &json!(1)),
        "one was there"
    );
}

#[tokio::test]
async fn what_the_stream_does_not_show_is_said_with_the_remedy() {
    let api = api(false).await;
    let on_programs = json!({
        "url": "https://example.com/",
        "events": ["accountChange"],
        "filters": { "programs": [address(1)] },
    });
    let mut on_accounts = on_programs.clone();
    on_accounts["filters"] = json!({ "accounts": [address(1)] });
    let mut on_transactions = on_programs.clone();
    on_transactions["events"] = json!(["transaction"]);
    let mut paths = Vec::new();
    for body in [&on_programs, &on_accounts, &on_transactions] {
        paths.push(api.created(body).await.0);
    }
    for closes_unseen in [true, false] {
        let limits = AddressLimits {
            closes_unseen,
            ..AddressLimits::default()
        };
        let recorded = api.store.record_address_limits(limits).await;
        recorded.expect("written");
        for (path, is_concerned) in paths.iter().zip([true, false, false]) {
            let (_, shown) = api.call(Method::GET, path, None).await;
            let not_told = shown["status"].get("notTold");
            let expected = closes_unseen && is_concerned;
            assert_eq!(not_told.is_some(), expected, "{path}: {shown}");
            let says = |words: &str| not_told.is_some_and(|text| text.to_string().contains(words));
            assert_eq!(says("is closed"), expected, "{shown}");
            assert_eq!(says("name the accounts in filters.accounts"), expected);
        }
    }
}

#[tokio::test]
async fn delivery_options_are_written_whole_and_null_takes_them_away() {
    let api = api(false).await;
    let mut body = valid();
    body["delivery"] = json!({ "concurrency": 2, "retryPausesSeconds": [5, 60] });
    let (path, _) = api.created(&body).await;
    let note = json!({ "description": "unchanged otherwise" });
    let (_, noted) = api.call(Method::PATCH, &path, Some(&note)).await;
    assert_eq!(noted["delivery"], body["delivery"], "{noted}");
    let others = json!({ "delivery": { "maxPerSecond": 3, "timeoutMs": 2000 } });
    let (_, changed) = api.call(Method::PATCH, &path, Some(&others)).await;
    assert_eq!(changed["delivery"], others["delivery"], "{changed}");
    assert_eq!(changed["status"].get("publicKey"), None);
    let signed = json!({ "delivery": { "signatures": ["v1a"] } });
    let (_, changed) = api.call(Method::PATCH, &path, Some(&signed)).await;
    assert_eq!(changed["delivery"], signed["delivery"], "{changed}");
    let public_key = changed["status"]["publicKey"].as_str().expect("text");
    assert!(public_key.starts_with("whpk_"), "{public_key}");
    let rotate = format!("{path}/rotate-secret");
    let (status, _) = api.call(Method::POST, &rotate, None).await;
    assert_eq!(status, StatusCode::OK);
    let (_, rotated) = api.call(Method::GET, &path, None).await;
    assert_ne!(
        rotated["status"]["publicKey"], public_key,
        "it follows the secret"
    );
    let as_all = json!({ "delivery": null });
    let (_, ended) = api.call(Method::PATCH, &path, Some(&as_all)).await;
    assert_eq!(ended["delivery"], Value::Null, "{ended}");

    body["temporary"] = json!(true);
    body.as_object_mut().expect("an object").remove("url");
    let (_, refused) = api.post(&body).await;
    assert_eq!(refused["field"], "delivery", "{refused}");
}

#[tokio::test]
async fn batches_are_shown_as_they_will_be_made_and_null_ends_them() {
    let api = api(false).await;
    let mut body = valid();
    body["batch"] = json!({ "maxMessages": 7 });
    let (path, _) = api.created(&body).await;
    let whole = json!({ "maxMessages": 7, "maxBytes": 1_048_576, "maxWaitMs": 1000 });
    let (_, read) = api.call(Method::GET, &path, None).await;
    assert_eq!(read["batch"], whole, "{read}");
    let note = json!({ "description": "unchanged otherwise" });
    let (_, noted) = api.call(Method::PATCH, &path, Some(&note)).await;
    assert_eq!(noted["batch"], whole, "{noted}");
    let alone = json!({ "batch": null });
    let (_, ended) = api.call(Method::PATCH, &path, Some(&alone)).await;
    assert_eq!(ended["batch"], Value::Null, "{ended}");

    body["temporary"] = json!(true);
    body.as_object_mut().expect("an object").remove("url");
    let (status, refused) = api.post(&body).await;
    let named = (status, &refused["field"]);
    assert_eq!(
        named,
        (StatusCode::BAD_REQUEST, &json!("batch")),
        "{refused}"
    );
}

/// A webhook that is told of operations and watches nothing.
fn told_alone() -> Value {
    json!({ "url": "https://example.com/ops", "operations": ["endpoint.failing", "quota"] })
}

#[tokio::test]
async fn a_webhook_may_be_told_of_operations_alone() {
    let api = api(false).await;
    let (path, _) = api.created(&told_alone()).await;
    let (_, webhook) = api.call(Method::GET, &path, None).await;
    let operations = json!(["endpoint.failing", "quota"]);
    assert_eq!(webhook["operations"], operations);
    assert_eq!(webhook["events"], json!([]));
    assert_eq!(
        webhook["filters"],
        json!({ "accounts": [], "programs": [] })
    );
    let told = format!("{path}/operations");
    let (_, read) = api.call(Method::GET, &told, None).await;
    assert_eq!(read["events"], operations);

    let moved = json!({ "url": "https://example.com/moved" });
    let (status, webhook) = api.call(Method::PATCH, &path, Some(&moved)).await;
    assert_eq!(status, StatusCode::OK, "{webhook}");
    assert_eq!(webhook["operations"], operations, "what is not named stays");
    let (status, webhook) = api.call(Method::PUT, &path, Some(&valid())).await;
    assert_eq!(status, StatusCode::OK, "{webhook}");
    assert_eq!(webhook["operations"], json!([]), "a replacement is whole");
    let (status, webhook) = api.call(Method::PUT, &path, Some(&told_alone())).await;
    assert_eq!(status, StatusCode::OK, "{webhook}");

    let account = json!({ "accounts": [address(1)] });
    let accounts = format!("{path}/accounts");
    let backfill = (format!("{path}/dry-run"), json!({ "slots": 1 }));
    for (method, path, body, field) in [
        (Method::PUT, &told, json!({ "events": [] }), "events"),
        (
            Method::PATCH,
            &path,
            json!({ "operations": null }),
            "events",
        ),
        (
            Method::PATCH,
            &path,
            json!({ "filters": account }),
            "events",
        ),
        (Method::POST, &accounts, account.clone(), "filters"),
        (Method::POST, &backfill.0, backfill.1.clone(), "events"),
    ] {
        let (status, problem) = api.call(method, path, Some(&body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(problem["field"], field, "{body}: {problem}");
    }
    let (_, read) = api.call(Method::GET, &told, None).await;
    assert_eq!(read["events"], operations, "nothing was written");
}

#[tokio::test]
async fn operations_are_refused_where_they_are_not_known_or_named_twice() {
    let api = api(false).await;
    for (operations, field) in [
        (json!([]), "events"),
        (json!(["gap", "gap"]), "operations[1]"),
        (json!(["heartbeat"]), "operations[0]"),
        (json!("gap"), "operations"),
    ] {
        let mut body = told_alone();
        body["operations"] = operations;
        let (status, problem) = api.post(&body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(problem["field"], field, "{body}: {problem}");
    }
    let mut conditional = told_alone();
    conditional["filters"] = json!({ "dataSize": 8 });
    conditional["events"] = json!([]);
    let (_, problem) = api.post(&conditional).await;
    assert_eq!(problem["field"], "filters.dataSize", "{problem}");
}
