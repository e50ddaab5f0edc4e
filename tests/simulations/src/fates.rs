//! Fates of the chain: every emitted event is confirmed, retracted, or in a reported gap.
//!
//! Webhooks at a higher commitment are sent nothing of what did not happen.
//!
//! What the webhooks are owed is read from the store, in order. That it arrives is promised elsewhere.

mod marks;
mod outcome;
mod script;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use futures::StreamExt;
use serde_json::Value;
use sluice_store::{Access, Commitment, Store, WebhookId};

use self::{
    outcome::{Mark, Outcome},
    script::{Listener, Played, Transcript},
};
use sluice_harness::indexer::IndexerHarness;

/// Messages read at once.
const PAGE: u32 = 500;

/// Scripts played at a time. Each waits most of the time.
const AT_A_TIME: usize = 8;

/// Plays the scripts of these seeds, each on a harness of its own. The same seed makes the same script again.
///
/// # Panics
/// When an event has no end, or another one than it should.
pub async fn explore(seeds: Range<u64>, harness: impl AsyncFn() -> IndexerHarness) {
    let mut covered = Covered::default();
    let scripts = seeds.map(|seed| {
        let harness = &harness;
        async move {
            let (harness, transcript) = (harness().await, Transcript::new());
            let played = script::play(seed, harness, transcript.clone());
            match tokio::spawn(async { judge(played.await).await }).await {
                Ok(covered) => covered,
                Err(failed) => panic!(
                    "the script of seed {seed} failed: {failed}\n{}",
                    transcript.text()
                ),
            }
        }
    });
    let mut played = futures::stream::iter(scripts).buffer_unordered(AT_A_TIME);
    while let Some(one) = played.next().await {
        covered.add(one);
    }
    // Scripts in which nothing goes wrong would prove nothing.
    println!("{covered:?}");
    assert!(covered.emitted > 0 && covered.reverted > 0, "{covered:?}");
}

/// What came up in the scripts.
#[derive(Debug, Default)]
struct Covered {
    emitted: usize,
    reverted: usize,
    /// Events that were emitted again after they had been retracted.
    reinstated: usize,
    in_gaps: usize,
}

impl Covered {
    fn add(&mut self, other: Self) {
        self.emitted += other.emitted;
        self.reverted += other.reverted;
        self.reinstated += other.reinstated;
        self.in_gaps += other.in_gaps;
    }
}

/// Messages of one webhook, by meaning.
#[derive(Debug, Default)]
struct Inbox {
    /// Sequence and id of the messages about each event, in order.
    events: BTreeMap<Mark, Vec<(u64, String)>>,
    /// Ids that were retracted, and the sequence of the message that did.
    reverted: BTreeMap<String, u64>,
    /// First and last slot of what is missing.
    gaps: Vec<(u64, u64)>,
}

impl Inbox {
    async fn of(store: &Store, webhook: &WebhookId) -> Self {
        let mut inbox = Self::default();
        let mut last = 0;
        loop {
            let page = store
                .messages_after(&Access::All, webhook, last, PAGE)
                .await;
            let page = page.expect("read").expect("exists");
            if page.messages.is_empty() {
                assert_eq!(page.last_sequence, last);
                return inbox;
            }
            for message in page.messages {
                assert_eq!(message.sequence, last + 1, "contiguous");
                last = message.sequence;
                let body: Value = serde_json::from_str(&message.body).expect("JSON");
                assert_eq!(body["sequence"], last);
                inbox.take(last, message.id.to_string(), &body);
            }
        }
    }

    fn take(&mut self, sequence: u64, id: String, body: &Value) {
        let data = &body["data"];
        let number = |field: &str| data[field].as_u64().expect("a number");
        let event = |mark: Mark| self.events.entry(mark).or_default().push((sequence, id));
        match body["type"].as_str().expect("text") {
            "accountChange" => event(number("lamports")),
            "transaction" => event(number("fee")),
            "gap" => self.gaps.push((number("firstSlot"), number("lastSlot"))),
            "reverted" => {
                let first = data["messageId"].as_str().expect("text").to_owned();
                let before = self.reverted.insert(first, sequence);
                assert_eq!(before, None, "retracted once");
            }
            other => panic!("{other}"),
        }
    }

    fn misses(&self, slot: u64) -> bool {
        let mut gaps = self.gaps.iter();
        gaps.any(|(first, last)| (*first..=*last).contains(&slot))
    }
}

async fn judge(played: Played) -> Covered {
    let store = &played.harness.store;
    assert!(store.unconfirmed_slots().await.expect("read").is_empty());
    let outcome = Outcome::of(&played.chain.lock().tree);
    let mut covered = Covered::default();
    for listener in &played.listeners {
        let inbox = Inbox::of(store, &listener.id).await;
        match listener.commitment {
            Commitment::Processed => check_ends(&inbox, &outcome, &mut covered),
            Commitment::Confirmed | Commitment::Finalized => check_truth(&inbox, &outcome),
        }
        if listener.from_the_beginning {
            check_whole(listener, &inbox, &outcome);
        }
    }
    covered
}

/// What happened in the end stands emitted once; what did not is retracted, as often as it was emitted.
fn check_ends(inbox: &Inbox, outcome: &Outcome, covered: &mut Covered) {
    let mut known = BTreeSet::new();
    for (mark, emitted) in &inbox.events {
        let (slot, happened) = outcome.events[mark];
        let standing: Vec<_> = emitted
            .iter()
            .filter(|(_, id)| !inbox.reverted.contains_key(id))
            .collect();
        let what =
            format!("event {mark} of slot {slot}: emitted {emitted:?}, standing {standing:?}");
        if inbox.misses(slot) {
            covered.in_gaps += 1;
        } else if outcome.news.contains_key(mark) {
            assert_eq!(standing.len(), 1, "{what}");
        } else {
            // A write that a later one in its block supersedes may have been emitted before that one came.
            assert!(standing.len() <= usize::from(happened), "{what}");
        }
        assert!(
            standing
                .iter()
                .all(|message| Some(*message) == emitted.last()),
            "{what}"
        );
        for (sequence, id) in emitted {
            assert!(known.insert(id), "an id names one message");
            let reverted = inbox.reverted.get(id);
            assert!(reverted.is_none_or(|reverted| reverted > sequence));
        }
        covered.emitted += emitted.len();
        covered.reinstated += usize::from(emitted.len() > 1);
    }
    assert!(inbox.reverted.keys().all(|id| known.contains(id)));
    covered.reverted += inbox.reverted.len();
}

/// Only what happened was emitted, and each of it once.
fn check_truth(inbox: &Inbox, outcome: &Outcome) {
    assert!(inbox.reverted.is_empty());
    for (mark, emitted) in &inbox.events {
        let (slot, happened) = outcome.events[mark];
        assert!(happened, "event {mark} of slot {slot}: {emitted:?}");
        assert_eq!(emitted.len(), 1, "event {mark} of slot {slot}: {emitted:?}");
    }
}

/// Nothing was missed but what is said to be.
fn check_whole(listener: &Listener, inbox: &Inbox, outcome: &Outcome) {
    for (mark, slot) in &outcome.news {
        let emitted = inbox.events.contains_key(mark) || inbox.misses(*slot);
        assert!(
            emitted,
            "event {mark} of slot {slot} at {}",
            listener.commitment
        );
    }
}
