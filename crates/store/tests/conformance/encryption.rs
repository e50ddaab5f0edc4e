//! Encryption: what of webhooks is secret is stored sealed, moves to another key, and opens under no wrong one.

use std::{collections::BTreeSet, fs, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use sluice_store::{
    Access, EncryptionKeys, Idempotency, Secret, Store, StoreError, UploadedIdl, WebhookDefinition,
    WebhookId,
};
use solana_pubkey::Pubkey;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::{fixture::*, on_both};

on_both!(
    what_is_stored_under_a_key_opens_under_that_key_alone,
    plaintext_is_sealed_at_the_start_and_delivered_as_before,
    a_wrong_key_is_named_and_nothing_is_changed,
    a_key_is_replaced_by_another_in_steps_that_may_be_interrupted,
);

const PASSWORD: &str = "Basic b3BlbiBzZXNhbWU=";

fn key(number: u8) -> String {
    STANDARD.encode([number; 32])
}

fn keys(current: u8, previous: Option<u8>) -> EncryptionKeys {
    let previous = previous.map(key);
    EncryptionKeys::parse(Some(&key(current)), previous.as_deref()).expect("keys")
}

/// Another process that has these keys.
async fn process(fixture: &Fixture, keys: EncryptionKeys) -> Store {
    let opened = fixture.another().await.encrypted(keys).await;
    opened.expect("opens under these keys")
}

async fn refused(fixture: &Fixture, keys: EncryptionKeys) -> StoreError {
    let opened = fixture.another().await.encrypted(keys).await;
    opened.expect_err("does not open under these keys")
}

fn with_password() -> WebhookDefinition {
    WebhookDefinition {
        headers: vec![("authorization".to_owned(), PASSWORD.to_owned())],
        ..definition()
    }
}

/// A webhook with a header and a secret before its current one.
async fn create(store: &Store, number: u8) -> WebhookId {
    let mut new = webhook(number);
    new.definition = with_password();
    let id = store.create_webhook(&new, 1_000).await.expect("created").id;
    let until = NOW.after(Duration::from_secs(60));
    let secret = Secret::from_random([number.wrapping_add(100); 32]);
    let rotated = store.rotate_secret(&Access::All, &id, &secret, until, NOW);
    rotated.await.expect("rotates").expect("exists");
    id
}

/// The webhook reads as [`create`] wrote it, and its deliveries are signed and sent so.
async fn assert_whole(store: &Store, id: &WebhookId, number: u8) {
    let secrets = store.secrets(&Access::All, id, NOW).await;
    let secrets = secrets.expect("opens").expect("exists");
    assert_eq!(
        secrets.current,
        Secret::from_random([number.wrapping_add(100); 32])
    );
    assert_eq!(secrets.previous, [Secret::from_random([number; 32])]);
    let read = store.webhook(&Access::All, id).await.expect("opens");
    assert_eq!(read.expect("exists").definition, with_password());
}

fn is_without_key(refused: &StoreError) -> bool {
    matches!(refused, StoreError::NoEncryptionKey { .. })
}

async fn what_is_stored_under_a_key_opens_under_that_key_alone(fixture: &Fixture) {
    let store = process(fixture, keys(1, None)).await;
    let id = create(&store, 1).await;
    assert_whole(&store, &id, 1).await;
    let page = store.list_webhooks(&Access::All, None, 10).await;
    assert_eq!(page.expect("lists").webhooks[0].definition, with_password());

    let mut changed = with_password();
    changed.description = Some("changed".to_owned());
    let updated = store
        .update_webhook(&Access::All, &id, &changed, None)
        .await;
    assert_eq!(
        updated.expect("updates").expect("exists").definition,
        changed
    );

    let mut new = webhook(2);
    new.definition = with_password();
    let idempotency = Idempotency::new("once".to_owned(), &new.definition, false);
    for repeated in [false, true] {
        let created = store.create_webhook_once(&new, 10, &idempotency).await;
        let created = created.expect("creates");
        assert_eq!(
            (created.repeated, created.secret),
            (repeated, new.secret.clone())
        );
    }

    let without = fixture.another().await;
    let read = without.secrets(&Access::All, &id, NOW).await;
    assert!(is_without_key(&read.expect_err("is sealed")));
    let read = without.webhook(&Access::All, &id).await;
    assert!(is_without_key(&read.expect_err("its headers are sealed")));
    store_messages(&store, &[message(&id, 1)]).await;
    let leased = &lease(&store, NOW).await[0];
    assert_eq!(leased.headers, with_password().headers);
    assert_eq!(leased.secrets.iter().count(), 2);
}

async fn plaintext_is_sealed_at_the_start_and_delivered_as_before(fixture: &Fixture) {
    // More than one batch.
    const WEBHOOKS: u8 = 101;
    let mut ids = Vec::new();
    for number in 0..WEBHOOKS {
        ids.push(create(&fixture.store, number).await);
    }
    let (one, other) = tokio::join!(
        process(fixture, keys(1, None)),
        process(fixture, keys(1, None))
    );
    for (number, id) in (0..WEBHOOKS).zip(&ids) {
        let read = fixture.store.secrets(&Access::All, id, NOW).await;
        assert!(is_without_key(&read.expect_err("is sealed")));
        let read = fixture.store.webhook(&Access::All, id).await;
        assert!(is_without_key(&read.expect_err("its headers are sealed")));
        assert_whole(&one, id, number).await;
    }
    assert_whole(&other, &ids[0], 0).await;
    assert_eq!(
        one.reencrypt().await.expect("looks"),
        Some(0),
        "nothing is left"
    );
}

async fn a_wrong_key_is_named_and_nothing_is_changed(fixture: &Fixture) {
    let sealed = process(fixture, keys(1, None)).await;
    let first = create(&sealed, 1).await;
    // A process of an earlier release writes plaintext beside it.
    let second = create(&fixture.store, 2).await;
    let id = sealed.encryption_key_id().expect("a key").to_owned();
    for wrong in [keys(2, None), keys(2, Some(3)), EncryptionKeys::default()] {
        let refused = refused(fixture, wrong).await;
        let named = refused.to_string();
        assert!(is_without_key(&refused) && named.contains(&id), "{named}");
        assert!(named.contains("SLUICE_STORE__ENCRYPTION_KEY"), "{named}");
        assert_whole(&fixture.store, &second, 2).await;
    }
    assert_whole(&sealed, &first, 1).await;
    assert_whole(&sealed, &second, 2).await;
}

async fn a_key_is_replaced_by_another_in_steps_that_may_be_interrupted(fixture: &Fixture) {
    let old = process(fixture, keys(1, None)).await;
    let ids = [
        create(&old, 1).await,
        create(&old, 2).await,
        create(&old, 3).await,
    ];
    // Every process reads the new key before any writes under it.
    let reader = process(fixture, keys(1, Some(2))).await;
    let both = process(fixture, keys(2, Some(1))).await;
    // One is under both keys: its headers under the new one.
    let mut changed = with_password();
    changed.active = false;
    let updated = both
        .update_webhook(&Access::All, &ids[0], &changed, None)
        .await;
    updated.expect("updates").expect("exists");
    assert_whole(&reader, &ids[1], 2).await;
    let fresh = create(&both, 4).await;
    assert_whole(&reader, &fresh, 4).await;

    let early = refused(fixture, keys(2, None)).await;
    assert!(
        is_without_key(&early),
        "the old key is needed until the end: {early}"
    );
    assert_eq!(both.reencrypt().await.expect("re-encrypts"), Some(3));
    assert_eq!(both.reencrypt().await.expect("is done"), Some(0));
    let new = process(fixture, keys(2, None)).await;
    assert_whole(&new, &ids[2], 3).await;
    assert_whole(&new, &fresh, 4).await;
    let late = refused(fixture, keys(1, None)).await;
    assert!(is_without_key(&late), "{late}");
}

/// What [`create`] gives a webhook that nobody may read.
fn secret_words(number: u8) -> [String; 3] {
    let secret = |byte| {
        let secret = Secret::from_random([byte; 32]);
        secret.expose().trim_start_matches("whsec_").to_owned()
    };
    let rotated = number.wrapping_add(100);
    [PASSWORD.to_owned(), secret(number), secret(rotated)]
}

/// Which of the secrets of webhooks are readable in some file of the store.
fn readable(fixture: &Fixture, numbers: std::ops::Range<u8>) -> Vec<String> {
    let files = fs::read_dir(fixture.folder()).expect("lists");
    let files: Vec<String> = files
        .map(|file| fs::read(file.expect("lists").path()).expect("reads"))
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect();
    assert!(
        files.iter().any(|text| !text.is_empty()),
        "the database is there"
    );
    let words: BTreeSet<String> = numbers.flat_map(secret_words).collect();
    let is_readable = |word: &String| files.iter().any(|text| text.contains(word));
    words.into_iter().filter(is_readable).collect()
}

#[tokio::test]
async fn no_secret_is_readable_in_the_file() {
    let fixture = Fixture::sqlite().await;
    let store = process(&fixture, keys(1, None)).await;
    create(&store, 1).await;
    assert_eq!(readable(&fixture, 1..2), [""; 0]);
}

#[tokio::test]
async fn no_plaintext_is_left_in_the_file_once_it_is_sealed() {
    const WEBHOOKS: u8 = 20;
    let fixture = Fixture::sqlite().await;
    for number in 0..WEBHOOKS {
        let id = create(&fixture.store, number).await;
        if number % 4 == 0 {
            let deleted = fixture.store.delete_webhook(&Access::All, &id).await;
            assert!(deleted.expect("deletes"));
        }
    }
    fixture.store.close().await;
    assert_ne!(readable(&fixture, 0..WEBHOOKS), [""; 0]);
    let store = process(&fixture, keys(1, None)).await;
    assert_eq!(
        readable(&fixture, 0..WEBHOOKS),
        [""; 0],
        "nor in the log, while it is open"
    );
    store.close().await;
    assert_eq!(readable(&fixture, 0..WEBHOOKS), [""; 0]);
}

#[tokio::test]
async fn plaintext_is_removed_although_the_process_that_sealed_it_ended_before() {
    // With the last batch that it seals, and with another one left.
    for webhooks in [3, 101] {
        let fixture = Fixture::sqlite().await;
        let mut ids = Vec::new();
        for number in 0..webhooks {
            ids.push(create(&fixture.store, number).await);
        }
        let ending = fixture.another().await;
        ending.fail_syncs(1);
        let ended = ending.encrypted(keys(1, None)).await;
        ended.expect_err("its first batch is the last thing that it does");
        let read = fixture.store.secrets(&Access::All, &ids[0], NOW).await;
        assert!(is_without_key(&read.expect_err("is sealed all the same")));
        fixture.store.close().await;
        assert_ne!(readable(&fixture, 0..webhooks), [""; 0]);
        let next = process(&fixture, keys(1, None)).await;
        next.close().await;
        assert_eq!(readable(&fixture, 0..webhooks), [""; 0]);
        let last = process(&fixture, keys(1, None)).await;
        for (number, id) in (0..webhooks).zip(&ids) {
            assert_whole(&last, id, number).await;
        }
    }
}

/// Reads or sets something of the header of the file.
async fn pragma(fixture: &Fixture, pragma: &str) -> i64 {
    let options = SqliteConnectOptions::new().filename(fixture.folder().join("sluice.db"));
    let opened = SqliteConnection::connect_with(&options).await;
    let mut connection = opened.expect("opens");
    let pragma = sqlx::query_scalar(AssertSqlSafe(format!("PRAGMA {pragma}")));
    let found = pragma.fetch_optional(&mut connection).await.expect("reads");
    connection.close().await.expect("closes");
    found.unwrap_or_default()
}

#[tokio::test]
async fn a_file_that_was_sealed_before_that_was_noted_is_written_anew_once() {
    const WEBHOOKS: u8 = 5;
    let fixture = Fixture::sqlite().await;
    for number in 0..WEBHOOKS {
        create(&fixture.store, number).await;
    }
    let ending = fixture.another().await;
    ending.fail_syncs(1);
    let ended = ending.encrypted(keys(1, None)).await;
    ended.expect_err("it seals, and does not come to clean");
    fixture.store.close().await;
    pragma(&fixture, "user_version = 0").await;
    assert_ne!(readable(&fixture, 0..WEBHOOKS), [""; 0]);
    let next = process(&fixture, keys(1, None)).await;
    assert_eq!(readable(&fixture, 0..WEBHOOKS), [""; 0]);

    // To write a file anew leaves no free page in it.
    let long = "x".repeat(100_000);
    let idl = UploadedIdl {
        text: format!("{{\"long\":\"{long}\"}}"),
        uploaded: NOW,
    };
    let program = Pubkey::new_from_array([9; 32]);
    let uploaded = next.upload_idl(&Access::All, &program, &idl).await;
    uploaded.expect("uploads");
    let removed = next.remove_idl(&Access::All, &program).await;
    assert!(removed.expect("deletes"));
    next.close().await;
    let free = pragma(&fixture, "freelist_count").await;
    assert!(free > 0, "{free}");
    process(&fixture, keys(1, None)).await.close().await;
    assert_eq!(pragma(&fixture, "freelist_count").await, free);
}

#[tokio::test]
async fn a_file_is_not_known_to_be_clean_once_it_was_opened_without_a_key() {
    let fixture = Fixture::sqlite().await;
    fixture.store.close().await;
    process(&fixture, keys(1, None)).await.close().await;
    let without = process(&fixture, EncryptionKeys::default()).await;
    // It is removed with its webhook, and left in the file.
    let id = create(&without, 50).await;
    let deleted = without.delete_webhook(&Access::All, &id).await;
    assert!(deleted.expect("deletes"));
    without.close().await;
    assert_ne!(readable(&fixture, 50..51), [""; 0]);
    process(&fixture, keys(1, None)).await.close().await;
    assert_eq!(readable(&fixture, 50..51), [""; 0]);
}
