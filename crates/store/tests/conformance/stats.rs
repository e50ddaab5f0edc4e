//! Counts for health and metrics: cheap where they are asked for often, and exact where they are not.

use sluice_store::{Commit, MessageId, NewMessage};

use crate::{fixture::*, on_both};

on_both!(the_readiness_counts_no_more_than_a_thousand_and_the_metrics_all);

async fn the_readiness_counts_no_more_than_a_thousand_and_the_metrics_all(fixture: &Fixture) {
    const MOST: u64 = 1_000;
    let store = &fixture.store;
    let webhook = with_webhook(store, 1).await;
    let messages: Vec<NewMessage> = (0..MOST + 5)
        .map(|number| {
            let mut id = [0; 32];
            id[..8].copy_from_slice(&number.to_be_bytes());
            NewMessage {
                id: MessageId::from_bytes(id),
                ..message(&webhook, 0)
            }
        })
        .collect();
    let (few, others) = messages.split_at(7);
    let commit = Commit::messages(few, NOW);
    store.commit(&commit).await.expect("commits");
    assert_eq!(store.pending_deliveries().await.expect("counts"), 7);
    for piece in others.chunks(500) {
        let commit = Commit::messages(piece, NOW);
        store.commit(&commit).await.expect("commits");
    }
    assert_eq!(store.pending_deliveries().await.expect("counts"), MOST);
    let stats = store.queue_stats().await.expect("counts");
    assert_eq!(stats.pending, MOST + 5);
}
