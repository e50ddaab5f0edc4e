//! Tests of conditions: how they are shown, and which can match nothing.

use super::*;

/// Faults in the conditions of a webhook on program events and changes of accounts, which names addresses beside.
fn condition_faults() -> Vec<(Value, &'static str)> {
    let instruction = |program: &str, discriminator: &str| json!({ "instructions": [{ "programId": program, "discriminator": discriminator }] });
    let memcmp = |offset: u64, bytes: &str, encoding: &str| json!({ "memcmp": [{ "offset": offset, "bytes": bytes, "encoding": encoding }] });
    let program = address(3);
    vec![
        (json!({ "outcome": "lost" }), "filters.outcome"),
        (json!({ "outcome": "failed" }), "filters.outcome"),
        (
            json!({ "accountsRequired": ["x"] }),
            "filters.accountsRequired[0]",
        ),
        (
            json!({ "accountsRequired": (0..17).map(address).collect::<Vec<_>>() }),
            "filters.accountsRequired",
        ),
        (
            json!({ "accountsRequired": [program], "accountsExcluded": [address(4), program] }),
            "filters.accountsExcluded",
        ),
        (instruction("x", "00"), "filters.instructions[0].programId"),
        (
            instruction(&program, ""),
            "filters.instructions[0].discriminator",
        ),
        (
            instruction(&program, "0g"),
            "filters.instructions[0].discriminator",
        ),
        (
            instruction(&program, &"00".repeat(33)),
            "filters.instructions[0].discriminator",
        ),
        (
            json!({ "eventNames": ["SwapEvent", ""] }),
            "filters.eventNames[1]",
        ),
        (
            json!({ "eventNames": vec!["SwapEvent"; 65] }),
            "filters.eventNames",
        ),
        (memcmp(0, "0OIl", "base58"), "filters.memcmp[0].bytes"),
        (memcmp(0, "", "base64"), "filters.memcmp[0].bytes"),
        (memcmp(0, "AA==", "hex"), "filters.memcmp[0].encoding"),
        (
            memcmp(10_485_761, "AA==", "base64"),
            "filters.memcmp[0].offset",
        ),
        (
            json!({ "memcmp": vec![json!({ "offset": 0, "bytes": "2" }); 5] }),
            "filters.memcmp",
        ),
        (json!({ "dataSize": 10_485_761 }), "filters.dataSize"),
    ]
}

#[tokio::test]
async fn conditions_are_shown_as_they_are_set_and_refused_where_they_can_match_nothing() {
    let api = api(false).await;
    let bare = valid();
    let with = |conditions: &Value| {
        let mut body = bare.clone();
        for (name, value) in conditions.as_object().expect("an object") {
            body["filters"][name] = value.clone();
        }
        body
    };
    for (conditions, named) in condition_faults() {
        let (status, problem) = api.post(&with(&conditions)).await;
        let answered = (status, &problem["field"]);
        assert_eq!(
            answered,
            (StatusCode::BAD_REQUEST, &json!(named)),
            "{conditions}: {problem}"
        );
    }
    for (kind, conditions, named) in [
        ("transaction", json!({ "dataSize": 1 }), "filters.dataSize"),
        (
            "transaction",
            json!({ "eventNames": ["A"] }),
            "filters.eventNames",
        ),
        ("accountChange", json!({ "votes": false }), "filters"),
    ] {
        let mut body = with(&conditions);
        body["events"] = json!([kind]);
        let (_, problem) = api.post(&body).await;
        assert_eq!(problem["field"], named, "{conditions}: {problem}");
    }

    let conditions = json!({
        "outcome": "succeeded",
        "votes": false,
        "accountsRequired": [address(5)],
        "accountsExcluded": [address(6)],
        "instructions": [{ "programId": address(3), "discriminator": "0aff" }],
        "eventNames": ["SwapEvent"],
        "memcmp": [{ "offset": 8, "bytes": "AAH/", "encoding": "base64" }],
        "dataSize": 637,
    });
    let (path, _) = api.created(&with(&conditions)).await;
    let (_, created) = api.call(Method::GET, &path, None).await;
    let mut shown = conditions.clone();
    shown["memcmp"] = json!([{ "offset": 8, "bytes": "19p" }]);
    shown["accounts"] = created["filters"]["accounts"].clone();
    shown["programs"] = created["filters"]["programs"].clone();
    assert_eq!(created["filters"], shown);

    // What was read can be sent back, and an edit of a list keeps them.
    let again = json!({ "filters": created["filters"] });
    let (_, same) = api.call(Method::PATCH, &path, Some(&again)).await;
    assert_eq!(same["filters"], shown, "{same}");
    let cleared = json!({ "filters": {
        "outcome": null, "votes": null, "accountsRequired": null, "accountsExcluded": [], "instructions": null,
        "eventNames": null, "memcmp": null,
    } });
    let (_, left) = api.call(Method::PATCH, &path, Some(&cleared)).await;
    let bare = json!({
        "accounts": shown["accounts"], "programs": shown["programs"], "dataSize": 637,
    });
    assert_eq!(left["filters"], bare, "{left}");
}
