//! Tests of backfills and dry runs as they are asked for.

use sluice_store::{BackfillState, BackfillTurn};

use super::*;

/// Slots of a whole backfill.
const MOST: u64 = 27_000;

async fn reach(api: &Api, slot: u64) {
    let commit = Commit::slot(Commitment::Confirmed, slot, &[], now());
    api.store.commit(&commit).await.expect("commits");
}

async fn ask(api: &Api, path: &str, body: Value) -> (StatusCode, Value) {
    api.call(Method::POST, path, Some(&body)).await
}

#[tokio::test]
async fn a_backfill_is_taken_and_shown_until_the_next() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let path = format!("{path}/backfill");
    let (status, _) = api.call(Method::GET, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    reach(&api, 100_000).await;
    let body = json!({ "fromSlot": 50, "toSlot": 49 + MOST });
    let (status, asked) = ask(&api, &path, body.clone()).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{asked}");
    assert_eq!(
        (&asked["state"], &asked["nextSlot"]),
        (&json!("pending"), &json!(50))
    );
    assert_eq!(asked["missingKinds"], json!(["accountChange"]));
    assert_eq!(api.call(Method::GET, &path, None).await.1, asked);

    let (status, refused) = ask(&api, &path, body.clone()).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refused["code"], "backfill_pending");
    let waits = api.store.next_backfill(None).await.expect("reads");
    let waits = waits.expect("waits");
    let turn = BackfillTurn {
        next_slot: 50 + MOST,
        state: BackfillState::Done,
        error: None,
        matched: 3,
        told: 2,
        lost: 1,
        samples: None,
        now: now(),
    };
    let recorded = api.store.record_backfill(&waits, &turn).await;
    recorded.expect("records");
    let (_, shown) = api.call(Method::GET, &path, None).await;
    let counts = [&shown["matched"], &shown["told"], &shown["lostSlots"]];
    assert_eq!(counts, [3, 2, 1]);
    assert_eq!(shown["state"], "done");
    assert_eq!(ask(&api, &path, body).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn slots_that_cannot_be_asked_for_are_refused_by_field() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    let backfill = format!("{path}/backfill");
    let slots = |from: u64, to: u64| json!({ "fromSlot": from, "toSlot": to });
    let (status, early) = ask(&api, &backfill, slots(1, 2)).await;
    assert_eq!(
        (status, &early["field"]),
        (StatusCode::BAD_REQUEST, &json!("id"))
    );
    reach(&api, 100_000).await;
    for (body, words) in [
        (slots(5, 4), "must not be before fromSlot, which is 5"),
        (slots(5, 5 + MOST), "at most 26999 after fromSlot"),
        (slots(99_999, 100_001), "must not be after slot 100000"),
    ] {
        let (status, refused) = ask(&api, &backfill, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
        assert_eq!(refused["field"], "toSlot");
        let detail = refused["detail"].as_str().expect("text");
        assert!(detail.contains(words), "{detail}");
    }
    for count in [0, 1_001] {
        let dry_run = format!("{path}/dry-run");
        let (status, refused) = ask(&api, &dry_run, json!({ "slots": count })).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(refused["field"], "slots");
    }
    let mut accounts_alone = valid();
    accounts_alone["events"] = json!(["accountChange"]);
    let (path, _) = api.created(&accounts_alone).await;
    let (status, refused) = ask(&api, &format!("{path}/backfill"), slots(5, 6)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(refused["field"], "events");
}

#[tokio::test]
async fn a_dry_run_is_of_the_last_slots_and_beside_a_backfill() {
    let api = api(false).await;
    let (path, _) = api.created(&valid()).await;
    reach(&api, 100).await;
    let (status, asked) = ask(&api, &format!("{path}/dry-run"), json!({ "slots": 10 })).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{asked}");
    assert_eq!(
        (&asked["fromSlot"], &asked["toSlot"]),
        (&json!(91), &json!(100))
    );
    assert_eq!(asked["samples"], json!([]));
    let body = json!({ "fromSlot": 91, "toSlot": 100 });
    let (status, _) = ask(&api, &format!("{path}/backfill"), body).await;
    assert_eq!(status, StatusCode::ACCEPTED);
}
