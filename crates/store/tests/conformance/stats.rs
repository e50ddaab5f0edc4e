//! Counts for health and metrics: cheap where they are asked for often, and exact where they are not.

use sluice_store::{Commit, Commitment, FilterState, MessageId, NewMessage, Readiness, Revision};

use crate::{fixture::*, on_both};

on_both!(
    the_readiness_counts_no_more_than_a_thousand_and_the_metrics_all,
    the_readiness_says_what_is_stored_of_the_chain,
);

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
    assert_eq!(pending(store).await, 7);
    for piece in others.chunks(500) {
        let commit = Commit::messages(piece, NOW);
        store.commit(&commit).await.expect("commits");
    }
    assert_eq!(pending(store).await, MOST);
    let stats = store.queue_stats().await.expect("counts");
    assert_eq!(stats.pending, MOST + 5);
}

async fn the_readiness_says_what_is_stored_of_the_chain(fixture: &Fixture) {
    let store = &fixture.store;
    let nothing = Readiness {
        checkpoint: None,
        filter: None,
        pending_deliveries: 0,
        leader_is_silent: true,
    };
    assert_eq!(store.readiness().await.expect("reads"), nothing);
    for (commitment, slot) in [(Commitment::Confirmed, 7), (Commitment::Finalized, 5)] {
        let commit = Commit::slot(commitment, slot, &[], NOW);
        store.commit(&commit).await.expect("commits");
    }
    let filter = FilterState {
        revision: Revision(3),
        in_force_slot: 4,
    };
    store.record_filter_state(filter).await.expect("records");
    let all = Readiness {
        checkpoint: Some(7),
        filter: Some(filter),
        ..nothing
    };
    assert_eq!(store.readiness().await.expect("reads"), all);
}
