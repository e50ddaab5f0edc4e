//! Each promise of the store, on a real database file.

mod deliveries;
mod file;
mod slots;
mod webhooks;

use std::{sync::Arc, time::Duration};

use solana_pubkey::Pubkey;
use tempfile::TempDir;

use super::Durability;
use crate::{
    Attempt, BodyTemplate, ClaimLimits, ClaimedDelivery, DeliveryState, EventKind, FilterState,
    Filters, MessageId, NewDelivery, NewWebhook, Outcome, Revision, Secret, Store, StoreError,
    Timestamp, WebhookDefinition, WebhookId,
};

const NOW: Timestamp = Timestamp::from_unix_millis(1_800_000_000_000);
const LEASE: Duration = Duration::from_secs(25);
const PLENTY: ClaimLimits = ClaimLimits {
    total: 100,
    per_webhook: 100,
};

struct Fixture {
    folder: TempDir,
    store: Store,
}

async fn fixture() -> Fixture {
    let folder = tempfile::tempdir().expect("temporary folder");
    let store = Store::open(&folder.path().join("new/sluice.db"))
        .await
        .expect("opens");
    Fixture { folder, store }
}

fn definition() -> WebhookDefinition {
    WebhookDefinition {
        url: "https://example.com/hook".to_owned(),
        events: EventKind::ALL.into_iter().collect(),
        filters: Filters {
            accounts: vec![
                Pubkey::new_from_array([1; 32]),
                Pubkey::new_from_array([2; 32]),
            ],
            programs: vec![Pubkey::new_from_array([3; 32])],
        },
        active: true,
    }
}

fn webhook(number: u8) -> NewWebhook {
    NewWebhook {
        id: WebhookId::from_random([number; 16]),
        definition: definition(),
        secret: Secret::from_random([number; 32]),
        created: NOW,
    }
}

async fn with_webhook(store: &Store, number: u8) -> WebhookId {
    store
        .create_webhook(&webhook(number), 100)
        .await
        .expect("created")
        .id
}

fn message(webhook: &WebhookId, number: u8) -> NewDelivery {
    let mut digest = [number; 32];
    digest[..16].copy_from_slice(&webhook.as_str().as_bytes()[3..19]);
    NewDelivery {
        id: MessageId::from_digest(digest),
        webhook: webhook.clone(),
        slot: 7,
        body: BodyTemplate::new("{\"sequence\":".to_owned(), Arc::from(",\"data\":{}}")),
    }
}

async fn claim(store: &Store, now: Timestamp) -> Vec<ClaimedDelivery> {
    store
        .claim_due(now, now.after(LEASE), PLENTY)
        .await
        .expect("claims")
}

fn attempt(status: u16) -> Attempt {
    Attempt {
        started: NOW,
        duration: Duration::from_millis(12),
        status: Some(status),
        error: None,
    }
}

/// A store in which webhook 1 is owed message 1.
async fn owing() -> (Fixture, WebhookId) {
    let fixture = fixture().await;
    let id = with_webhook(&fixture.store, 1).await;
    fixture
        .store
        .commit_slot(7, &[message(&id, 1)], NOW)
        .await
        .expect("commits");
    (fixture, id)
}
