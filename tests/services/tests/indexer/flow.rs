//! Flow: what webhooks received of a transaction flow, and the judgement that nothing of it is missing.

use std::{collections::BTreeSet, ops::Range, time::Duration};

use serde_json::Value;
use sluice_harness::indexer::Indexer;
use sluice_store::{Access, Commitment, Store, WebhookId};
use tokio::time::sleep;

/// Messages read at once.
const PAGE: u32 = 500;

/// Number of each transaction that the webhook was sent, in order.
pub(crate) async fn sent(store: &Store, webhook: &WebhookId) -> Vec<u64> {
    let (mut sent, mut last) = (Vec::new(), 0);
    loop {
        let page = store
            .messages_after(&Access::All, webhook, last, PAGE)
            .await;
        let page = page.expect("read").expect("exists");
        if page.messages.is_empty() {
            return sent;
        }
        for message in page.messages {
            assert_eq!(message.sequence, last + 1, "contiguous");
            last = message.sequence;
            let body: Value = serde_json::from_str(&message.body).expect("JSON");
            assert_eq!(body["type"], "transaction", "a gap was reported: {body}");
            sent.push(body["data"]["fee"].as_u64().expect("a number"));
        }
    }
}

/// Waits until a slot is stored as final.
pub(crate) async fn until_final(store: &Store, slot: u64) {
    while store.checkpoint(Commitment::Finalized).await.expect("read") < Some(slot) {
        sleep(Duration::from_millis(20)).await;
    }
}

/// Each of these transactions was sent, and once. `per_slot` is how many flow in a slot.
pub(crate) fn judge(sent: &[u64], flowed: &[u64], per_slot: u64) {
    let once: BTreeSet<u64> = sent.iter().copied().collect();
    assert_eq!(once.len(), sent.len(), "a transaction was sent twice");
    let count = flowed.len();
    let lost = flowed.iter().filter(|number| !once.contains(number));
    let slots: Vec<u64> = lost.map(|number| number / per_slot).collect();
    println!("{count} transactions");
    assert!(
        slots.is_empty(),
        "{} of {count} transactions lost, in slots {:?}",
        slots.len(),
        slots.iter().collect::<BTreeSet<_>>()
    );
}

/// The numbers of the transactions of these slots.
pub(crate) fn numbers(slots: Range<u64>, per_slot: u64) -> Range<u64> {
    slots.start * per_slot..slots.end * per_slot
}

/// The live stream was never opened again.
pub(crate) async fn assert_one_session(indexer: &Indexer) {
    let metrics = indexer.metrics().await;
    let ended = "sluice_indexer_stream_sessions_ended_total";
    let ended: Vec<_> = metrics
        .lines()
        .filter(|line| line.starts_with(ended))
        .collect();
    assert_eq!(ended, [""; 0], "the live stream was opened again");
}
