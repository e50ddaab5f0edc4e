//! Secrets of a webhook: which sign while one is replaced by another.

use std::time::Duration;

use sluice_store::{Access, Secret, StoreError};

use crate::{fixture::*, on_both};

on_both!(
    both_secrets_sign_during_a_rotation,
    every_secret_that_is_not_over_signs_and_there_are_not_many,
);

async fn both_secrets_sign_during_a_rotation(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 1).await;
    let (old, new) = (Secret::from_random([1; 32]), Secret::from_random([9; 32]));
    let until = NOW.after(Duration::from_secs(60));
    let rotated = store
        .rotate_secret(&Access::All, &id, &new, until, NOW)
        .await
        .expect("rotates")
        .expect("exists");
    assert_eq!(rotated.previous_secrets_until, Some(until));
    let leased = lease(store, NOW).await;
    let secrets: Vec<_> = leased[0].secrets.iter().cloned().collect();
    assert_eq!(secrets, [new.clone(), old]);
    let later = store.secrets(&Access::All, &id, until).await;
    let later = later.expect("reads").expect("exists");
    assert_eq!((later.current, later.previous), (new, Vec::new()));
}

async fn every_secret_that_is_not_over_signs_and_there_are_not_many(fixture: &Fixture) {
    let store = &fixture.store;
    let id = owing(store, 1).await;
    let secret = |number| Secret::from_random([number; 32]);
    let minutes = |count: u64| NOW.after(Duration::from_secs(60 * count));
    let rotate = async |number, until, now| {
        let secret = secret(number);
        let rotated = store.rotate_secret(&Access::All, &id, &secret, until, now);
        rotated.await.map(|webhook| webhook.expect("exists"))
    };
    let signing = async |now| {
        let secrets = store.secrets(&Access::All, &id, now).await;
        let secrets = secrets.expect("reads").expect("exists");
        secrets.iter().cloned().collect::<Vec<_>>()
    };
    rotate(2, minutes(10), NOW).await.expect("rotates");
    let rotated = rotate(3, minutes(20), NOW).await.expect("rotates");
    assert_eq!(rotated.previous_secrets_until, Some(minutes(20)));
    assert_eq!(signing(NOW).await, [3, 2, 1].map(secret));
    assert_eq!(signing(minutes(10)).await, [3, 2].map(secret));
    assert_eq!(signing(minutes(20)).await, [secret(3)]);

    let rotated = rotate(4, minutes(15), minutes(11)).await.expect("rotates");
    assert_eq!(
        rotated.previous_secrets_until,
        Some(minutes(15)),
        "and no longer"
    );
    assert_eq!(signing(minutes(11)).await, [4, 3, 2].map(secret));
    for number in [5, 6] {
        let rotated = rotate(number, minutes(60), minutes(12)).await;
        rotated.expect("rotates");
    }
    let refused = rotate(7, minutes(60), minutes(12)).await;
    assert!(
        matches!(&refused, Err(StoreError::TooManySecrets { limit: 4, until }) if *until == minutes(15)),
        "{refused:?}"
    );
    assert_eq!(signing(minutes(12)).await, [6, 5, 4, 3, 2].map(secret));
    let now = minutes(13);
    let rotated = rotate(7, now, now).await.expect("ends all of them");
    assert_eq!(rotated.previous_secrets_until, None);
    assert_eq!(signing(now).await, [secret(7)]);
}
