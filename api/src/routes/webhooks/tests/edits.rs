//! Tests of watched addresses added and removed, rotated secrets, and the filter in force.

use sluice_store::{Access, FilterState};

use super::*;

#[tokio::test]
async fn addresses_are_added_and_removed_and_repeating_it_changes_nothing() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let accounts = format!("{path}/accounts");
    let some = json!({ "accounts": [address(2), address(8), address(9), address(8)] });
    let (status, first) = api.call(Method::POST, &accounts, Some(&some)).await;
    assert_eq!(status, StatusCode::OK, "{first}");
    assert_eq!(
        (
            &first["added"],
            &first["removed"],
            &first["filter"]["accounts"]
        ),
        (&json!(2), &json!(0), &json!(4))
    );
    let (_, again) = api.call(Method::POST, &accounts, Some(&some)).await;
    assert_eq!(again["added"], 0);
    assert_eq!(again["filter"], first["filter"]);
    let (_, webhook) = api.call(Method::GET, &path, None).await;
    assert_eq!(
        webhook["filters"]["accounts"],
        json!([address(1), address(2), address(8), address(9)])
    );
    assert_eq!(webhook["status"]["filter"], first["filter"]);
    assert_eq!(
        webhook["status"]["version"], 2,
        "the repetition wrote nothing"
    );

    let (_, removed) = api.call(Method::DELETE, &accounts, Some(&some)).await;
    assert_eq!(
        (&removed["removed"], &removed["filter"]["accounts"]),
        (&json!(3), &json!(1))
    );
    let (_, again) = api.call(Method::DELETE, &accounts, Some(&some)).await;
    assert_eq!(again["removed"], 0);

    let programs = json!({ "programs": [address(3), address(4)] });
    let path = format!("{path}/programs");
    let (_, added) = api.call(Method::POST, &path, Some(&programs)).await;
    assert_eq!(
        (&added["added"], &added["filter"]["programs"]),
        (&json!(1), &json!(2))
    );
}

#[tokio::test]
async fn edits_that_go_too_far_are_refused_by_name() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let many: Vec<_> = (0..20).map(address).collect();
    for (method, route, body, named) in [
        (
            Method::POST,
            "programs",
            json!({ "programs": many[3..13] }),
            "programs",
        ),
        (
            Method::POST,
            "accounts",
            json!({ "accounts": [address(1), "x"] }),
            "accounts[1]",
        ),
        (Method::POST, "accounts", json!({}), "accounts"),
    ] {
        let (status, problem) = api
            .call(method, &format!("{path}/{route}"), Some(&body))
            .await;
        if problem["field"] == Value::Null {
            assert_eq!(status, StatusCode::OK, "{problem}");
        } else {
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert_eq!(problem["field"], json!(named), "{problem}");
        }
    }
    let everything = json!({ "programs": many });
    let (status, problem) = api
        .call(
            Method::DELETE,
            &format!("{path}/programs"),
            Some(&everything),
        )
        .await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("programs")),
        "more than a webhook can have"
    );
}

#[tokio::test]
async fn a_webhook_that_would_match_nothing_any_more_keeps_its_addresses() {
    let api = api(false).await;
    let mut body = valid();
    body["filters"] = json!({ "programs": [address(3)] });
    let (path, _) = api.created(&body).await;
    let last = json!({ "programs": [address(3)] });
    let (status, problem) = api
        .call(Method::DELETE, &format!("{path}/programs"), Some(&last))
        .await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("filters"))
    );
    let (_, webhook) = api.call(Method::GET, &path, None).await;
    assert_eq!(webhook["filters"]["programs"], json!([address(3)]));
}

#[tokio::test]
async fn a_write_answers_with_its_filter_and_a_read_with_the_slot_it_is_in_force_from() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    api.messages(&path, 1).await;
    let change = json!({ "filters": { "accounts": [address(2)] } });
    let (_, changed) = api.call(Method::PATCH, &path, Some(&change)).await;
    let filter = &changed["status"]["filter"];
    assert_eq!(
        (&filter["accounts"], &filter["programs"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        (&filter["requestedSlot"], &filter["inForceSlot"]),
        (&json!(8), &Value::Null),
        "the checkpoint is at 7"
    );
    let webhook = api.store.webhook(&Access::All, &id_of(&path)).await;
    let webhook = webhook.expect("answers").expect("exists");
    assert_eq!(filter["digest"], webhook.filter_digest);

    let proof = FilterState {
        revision: webhook.matched_revision,
        in_force_slot: 12,
    };
    api.store.record_filter_state(proof).await.expect("stores");
    let (_, read) = api.call(Method::GET, &path, None).await;
    assert_eq!(read["status"]["filter"]["inForceSlot"], 12);
    let (_, page) = api.call(Method::GET, "/api/webhooks", None).await;
    assert_eq!(page["webhooks"][0]["status"]["filter"]["inForceSlot"], 12);
}

#[tokio::test]
async fn after_a_rotation_both_secrets_sign_for_the_time_asked_for() {
    let api = api(false).await;
    let (path, first) = api.created(&valid()).await;
    let rotate = format!("{path}/rotate-secret");
    let secrets = async || {
        let found = api.store.secrets(&Access::All, &id_of(&path), now()).await;
        let found = found.expect("answers").expect("exists");
        found
            .iter()
            .map(|secret| secret.expose().to_owned())
            .collect::<Vec<_>>()
    };
    let response = api.raw(Method::POST, &rotate, None).await;
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    let (status, rotated) = read(response).await;
    assert_eq!(status, StatusCode::OK, "{rotated}");
    let second = rotated["secret"].as_str().expect("shown once").to_owned();
    assert_ne!(second, first);
    assert_eq!(secrets().await, [second.clone(), first]);
    let (_, webhook) = api.call(Method::GET, &path, None).await;
    assert_eq!(
        webhook["status"]["previousSecretUntil"],
        rotated["previousSecretUntil"]
    );
    assert!(!webhook.to_string().contains(&second));

    let (_, rotated) = api.call(Method::POST, &rotate, None).await;
    let third = rotated["secret"].as_str().expect("text").to_owned();
    assert_eq!(secrets().await[..2], [third, second]);
    assert_eq!(secrets().await.len(), 3, "the first one signs, too");
    for _ in 0..2 {
        let (status, _) = api.call(Method::POST, &rotate, None).await;
        assert_eq!(status, StatusCode::OK);
    }
    let (status, problem) = api.call(Method::POST, &rotate, None).await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("overlapSeconds"))
    );
    let at_once = json!({ "overlapSeconds": 0 });
    let (_, rotated) = api.call(Method::POST, &rotate, Some(&at_once)).await;
    assert_eq!(secrets().await, [rotated["secret"].as_str().expect("text")]);
    let too_long = json!({ "overlapSeconds": 604_801 });
    let (status, problem) = api.call(Method::POST, &rotate, Some(&too_long)).await;
    assert_eq!(
        (status, &problem["field"]),
        (StatusCode::BAD_REQUEST, &json!("overlapSeconds"))
    );
}
