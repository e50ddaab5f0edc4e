//! `sluice keys`: API keys, whose webhooks they are, and the key that the store is encrypted under.

use sluice_store::{
    Access, EventKind, Filters, NewWebhook, Secret, Timestamp, WebhookDefinition, WebhookId,
};
use tokio::time::timeout;

use super::{Installation, PATIENCE, PROGRAM, database, text};

#[tokio::test]
async fn keys_are_shown_once_listed_without_their_secret_and_revoked() {
    let installation = Installation::new().await;
    let key = installation.key("ci").await;
    assert!(key.starts_with("sluice_"), "{key}");
    let again = installation.run(&["keys", "add", "ci"]).await;
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("named ci"), "{again:?}");

    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(
        listed.contains("ci") && listed.contains("in use"),
        "{listed}"
    );
    assert!(!listed.contains(&key));
    let file = std::fs::read(database(installation.folder.path())).expect("reads");
    assert!(!text(&file).contains(&key), "hashed at rest");

    let passing = ["keys", "add", "passing", "--expires-in-days", "30"];
    let added = installation.run(&passing).await;
    assert!(added.status.success(), "{added:?}");
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("in use until"), "{listed}");
    let endless = ["keys", "add", "endless", "--expires-in-days", "0"];
    assert!(!installation.run(&endless).await.status.success());

    let reading = ["keys", "add", "reading", "--scope", "webhooks:read"];
    let added = installation.run(&reading).await;
    assert!(added.status.success(), "{added:?}");
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("only webhooks:read\n"), "{listed}");
    let unknown = ["keys", "add", "swapping", "--scope", "swap"];
    let refused = installation.run(&unknown).await;
    assert!(!refused.status.success());
    assert!(
        text(&refused.stderr).contains("webhooks:write"),
        "{refused:?}"
    );

    let limit = ["keys", "limit", "ci", "--addresses", "500"];
    let limited = installation.run(&limit).await;
    assert!(limited.status.success(), "{limited:?}");
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("addresses: 500"), "{listed}");
    let unknown = installation.run(&["keys", "limit", "missing"]).await;
    assert!(!unknown.status.success());
    let revoked = installation.run(&["keys", "revoke", "ci"]).await;
    assert!(revoked.status.success(), "{revoked:?}");
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(listed.contains("revoked"), "{listed}");
    let again = installation.run(&["keys", "revoke", "ci"]).await;
    assert!(!again.status.success());
}

#[tokio::test]
async fn a_new_key_takes_over_the_webhooks_of_another() {
    let installation = Installation::new().await;
    installation.key("old").await;
    let added = installation
        .run(&[
            "keys",
            "add",
            "new",
            "--adopt-from",
            "old",
            "--adopt-keyless",
        ])
        .await;
    assert!(added.status.success(), "{added:?}");
    let said = text(&added.stderr);
    assert!(said.contains("0 webhooks of no key"), "{said}");
    let unknown = installation
        .run(&["keys", "add", "third", "--adopt-from", "missing"])
        .await;
    assert!(!unknown.status.success());
    let listed = text(&installation.run(&["keys", "list"]).await.stdout);
    assert!(!listed.contains("third"), "nothing was made: {listed}");
}

#[tokio::test]
async fn keys_reencrypt_changes_the_encryption_key_and_a_wrong_one_is_refused() {
    const OLD: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
    const NEW: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";
    const CURRENT: &str = "SLUICE_STORE__ENCRYPTION_KEY";
    const PREVIOUS: &str = "SLUICE_STORE__PREVIOUS_ENCRYPTION_KEY";
    let installation = Installation::new().await;
    let run = async |arguments: &[&str], keys: &[(&str, &str)]| {
        let mut command = installation.sluice(arguments);
        let output = command.envs(keys.iter().copied()).output();
        timeout(PATIENCE, output)
            .await
            .expect("in time")
            .expect("runs")
    };
    let plain = run(&["keys", "reencrypt"], &[]).await;
    assert!(
        text(&plain.stderr).contains("set store.encryption-key"),
        "{plain:?}"
    );
    let new = NewWebhook {
        id: WebhookId::from_random([1; 16]),
        owner: Access::All,
        definition: WebhookDefinition::new(
            "https://example.com/".to_owned(),
            [EventKind::Transaction].into_iter().collect(),
            Filters {
                accounts: vec![PROGRAM.parse().expect("an address")],
                programs: Vec::new(),
                ..Filters::default()
            },
        ),
        secret: Secret::from_random([1; 32]),
        created: Timestamp::from_unix_millis(0),
        relay_until: None,
    };
    let store = installation.store().await;
    store.create_webhook(&new, 1).await.expect("created");
    store.close().await;

    let first = run(&["keys", "list"], &[(CURRENT, OLD)]).await;
    assert!(
        first.status.success(),
        "it is sealed at the start: {first:?}"
    );
    for wrong in [&[][..], &[(CURRENT, NEW)]] {
        let refused = run(&["keys", "list"], wrong).await;
        assert!(!refused.status.success(), "{refused:?}");
        assert!(text(&refused.stderr).contains(CURRENT), "{refused:?}");
    }
    let both = [(CURRENT, NEW), (PREVIOUS, OLD)];
    let changed = run(&["keys", "reencrypt"], &both).await;
    assert!(
        text(&changed.stdout).contains("of 1 webhooks"),
        "{changed:?}"
    );
    let done = run(&["keys", "reencrypt"], &[(CURRENT, NEW)]).await;
    assert!(text(&done.stdout).contains("of 0 webhooks"), "{done:?}");
    let malformed = run(&["keys", "list"], &[(CURRENT, "s3cret")]).await;
    let fault = text(&malformed.stderr);
    assert!(
        fault.contains("store.encryption-key must be") && !fault.contains("s3cret"),
        "{fault}"
    );
}
