//! Tests of uploaded IDLs: each caller has its own, and what is none is refused by the name of its field.

use sluice_store::{ChainIdl, MAX_IDL_BYTES, Scope, Scopes};

use super::*;

fn program(number: u32) -> Pubkey {
    address(number).parse().expect("an address")
}

fn path(number: u32) -> String {
    format!("/api/idls/{}", address(number))
}

/// An IDL of a program with one event that is understood and one that is not.
fn idl(number: u32) -> Value {
    json!({
        "address": address(number),
        "metadata": { "name": "counter", "version": "0.1.0", "spec": "0.1.0" },
        "instructions": [],
        "events": [
            { "name": "Counted", "discriminator": [1, 2] },
            { "name": "Mystery", "discriminator": [3] },
        ],
        "types": [
            { "name": "Counted", "type": { "kind": "struct", "fields": [{ "name": "value", "type": "u8" }] } },
        ],
    })
}

#[tokio::test]
async fn an_idl_is_uploaded_shown_replaced_and_removed() {
    let api = api(false).await;
    let body = json!({ "idl": idl(1) });
    let (status, uploaded) = api.call(Method::PUT, &path(1), Some(&body)).await;
    assert_eq!(status, StatusCode::OK, "{uploaded}");
    assert_eq!(uploaded["programId"], address(1));
    assert_eq!(uploaded["source"], "uploaded");
    assert_eq!(uploaded["events"], json!(["Counted"]));
    let undecoded = json!([{ "name": "Mystery", "reason": "its type is missing" }]);
    assert_eq!(uploaded["undecoded"], undecoded);
    assert_eq!(uploaded["idl"], idl(1));
    let (status, read) = api.call(Method::GET, &path(1), None).await;
    assert_eq!((status, &read), (StatusCode::OK, &uploaded));

    let mut renamed = idl(1);
    renamed["events"] = json!([]);
    let body = json!({ "idl": renamed });
    let (_, replaced) = api.call(Method::PUT, &path(1), Some(&body)).await;
    assert_eq!(replaced["events"], json!([]));
    let response = api.raw(Method::DELETE, &path(1), None).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    for method in [Method::GET, Method::DELETE] {
        let (status, problem) = api.call(method, &path(1), None).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!(problem["code"], "not_found");
    }
}

#[tokio::test]
async fn what_is_no_idl_of_the_program_is_refused_by_the_name_of_its_field() {
    let api = api(false).await;
    let with = |member: &str, value: Value| {
        let mut idl = idl(1);
        idl[member] = value;
        json!({ "idl": idl })
    };
    let long = "n".repeat(300);
    let faults = [
        (json!({ "idl": {} }), "idl"),
        (json!({ "idl": [] }), "idl"),
        (json!({ "idl": "text" }), "idl"),
        (json!({}), "idl"),
        (json!({ "idl": idl(1), "name": "x" }), "name"),
        (with("events", json!({})), "idl"),
        (with("address", json!("0OIl")), "idl.address"),
        (with("address", json!(address(2))), "idl.address"),
        (
            with("events", json!([{ "name": "E", "discriminator": [] }])),
            "idl.events",
        ),
        (
            with(
                "events",
                json!(vec![json!({ "name": "E", "discriminator": [1] }); 1025]),
            ),
            "idl.events",
        ),
        (
            with(
                "types",
                json!([{ "name": "T", "type": { "kind": "struct", "fields": [{ "name": long, "type": "u8" }] } }]),
            ),
            "idl.types",
        ),
        (with("docs", json!("d".repeat(MAX_IDL_BYTES))), "idl"),
    ];
    for (body, field) in faults {
        let (status, problem) = api.call(Method::PUT, &path(1), Some(&body)).await;
        let start: String = body.to_string().chars().take(200).collect();
        assert_eq!(status, StatusCode::BAD_REQUEST, "{start}: {problem}");
        assert_eq!(problem["field"], field, "{start}: {problem}");
    }
    let endless = with("docs", json!("d".repeat(2 * MAX_IDL_BYTES)));
    let (status, problem) = api.call(Method::PUT, &path(1), Some(&endless)).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{problem}");
    let body = json!({ "idl": idl(1) });
    let (status, problem) = api.call(Method::PUT, "/api/idls/x", Some(&body)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(problem["field"], "programId");
    let (status, _) = api.call(Method::GET, &path(1), None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "nothing was stored");
}

#[tokio::test]
async fn a_key_has_no_more_idls_than_are_held_in_memory() {
    let api = api(false).await;
    let mut large = idl(1);
    large["docs"] = json!("d".repeat(MAX_IDL_BYTES * 9 / 10));
    for number in 1..=8 {
        large["address"] = json!(address(number));
        let body = json!({ "idl": large });
        let (status, _) = api.call(Method::PUT, &path(number), Some(&body)).await;
        assert_eq!(status, StatusCode::OK);
    }
    large["address"] = json!(address(9));
    let body = json!({ "idl": large });
    let (status, problem) = api.call(Method::PUT, &path(9), Some(&body)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(problem["field"], "idl");
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|text| text.contains("8388608")),
        "{problem}"
    );
}

#[tokio::test]
async fn another_key_sees_what_the_program_publishes_and_writing_needs_the_scope() {
    let api = api(false).await;
    let (owner, other) = (api.key(1).await, api.key(2).await);
    let reader = api.scoped_key(3, Scopes::only([Scope::WebhooksRead])).await;
    let body = json!({ "idl": idl(1) });
    for (key, status) in [(&reader, StatusCode::FORBIDDEN), (&owner, StatusCode::OK)] {
        let response = api.by(key, Method::PUT, &path(1), Some(&body)).await;
        assert_eq!(response.status(), status);
    }
    for key in [&other, &reader] {
        let response = api.by(key, Method::GET, &path(1), None).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
    }
    let response = api.by(&other, Method::DELETE, &path(1), None).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);

    let mut published = idl(1);
    published["events"] = json!([]);
    let kept = ChainIdl {
        text: Some(published.to_string()),
        read: now(),
    };
    let keep = api.store.keep_chain_idl(&program(1), &kept).await;
    keep.expect("keeps");
    for (key, source) in [(&owner, "uploaded"), (&other, "chain"), (&reader, "chain")] {
        let (_, read) = read(api.by(key, Method::GET, &path(1), None).await).await;
        assert_eq!(read["source"], source, "{read}");
    }
}
