//! Quote feeds: what readers are given, how often a question is priced, and how feeds end.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use cpmm::Amount;
use sluice_chain_types::Slot;
use solana_pubkey::Pubkey;

use super::{shown::Event, *};
use crate::pricing::SwapMode;

/// A chain of one price.
#[derive(Clone)]
struct Scene(Arc<Parts>);

struct Parts {
    changes: watch::Sender<()>,
    /// The newest slot and what is received in it.
    now: Mutex<(u64, u64)>,
    lost: Mutex<Option<&'static str>>,
    priced: AtomicUsize,
}

#[derive(Clone, Copy)]
struct Received {
    slot: u64,
    amount: u64,
}

impl Answer for Received {
    fn slot(&self) -> u64 {
        self.slot
    }

    fn repeats(&self, before: &Self) -> bool {
        self.amount == before.amount
    }

    fn json(&self) -> Result<Bytes, ApiError> {
        Ok(self.amount.to_string().into())
    }
}

impl Source for Scene {
    fn changes(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    fn slot(&self, _: QuoteCommitment) -> Result<u64, NotReady> {
        let (slot, _) = *self.0.now.lock();
        match *self.0.lost.lock() {
            None => Ok(slot),
            Some(reason) => Err(NotReady {
                reason: reason.to_owned(),
                slot: Some(Slot::new(slot)),
                lag: Some(0),
            }),
        }
    }
}

impl Scene {
    fn new() -> Self {
        Self(Arc::new(Parts {
            changes: watch::Sender::new(()),
            now: Mutex::new((100, 7)),
            lost: Mutex::default(),
            priced: AtomicUsize::default(),
        }))
    }

    /// A state is published, and every feed has looked at it.
    async fn publish(&self, slot: u64, amount: u64) {
        *self.0.now.lock() = (slot, amount);
        self.0.changes.send_replace(());
        self.settle().await;
    }

    async fn settle(&self) {
        // On one thread, each task that can go on does so before this one is due for the tenth time.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    fn price(&self) -> impl Fn() -> Result<Received, ApiError> + Send + 'static {
        let scene = self.clone();
        move || {
            scene.0.priced.fetch_add(1, Relaxed);
            let slot = scene.slot(QuoteCommitment::Processed)?;
            let (_, amount) = *scene.0.now.lock();
            Ok(Received { slot, amount })
        }
    }

    fn priced(&self) -> usize {
        self.0.priced.load(Relaxed)
    }
}

fn question(amount: u64) -> Question {
    Question {
        ask: Ask {
            input_mint: Pubkey::from([1; 32]),
            output_mint: Pubkey::from([2; 32]),
            amount: Amount::new(amount),
            mode: SwapMode::ExactIn,
            platform_rate: None,
            pools: None,
            two_hops: false,
            before_opening: false,
            max_price_impact: None,
            commitment: QuoteCommitment::Processed,
        },
        slippage: BasisPoints::MAX,
    }
}

fn begin() -> (Scene, QuoteFeeds<Scene>, CancellationToken) {
    let (scene, shutdown) = (Scene::new(), CancellationToken::new());
    let mut feeds = QuoteFeeds::new(scene.clone(), shutdown.clone());
    // Tests that wait for what happens by itself are not to wait for long; the others end before.
    feeds.pace = Pace {
        beat: Duration::from_secs(2),
        look: Duration::from_millis(500),
    };
    (scene, feeds, shutdown)
}

fn read(feeds: &QuoteFeeds<Scene>, scene: &Scene) -> Reader {
    feeds.read(question(1), scene.price()).expect("a quote")
}

/// Slot and answer of the next event, which is a quote.
async fn quote(reader: &mut Reader) -> (u64, String) {
    match reader.next().await {
        Some(Event::Quote { slot, message, .. }) => {
            let head = format!("{{\"event\":\"quote\",\"id\":{slot},\"data\":");
            let data = message.strip_prefix(&head).expect("the slot");
            let data = data.strip_suffix('}').expect("an object");
            (slot, data.to_owned())
        }
        other => panic!("no quote but {other:?}"),
    }
}

async fn end(reader: &mut Reader) -> String {
    let Some(Event::End(end)) = reader.next().await else {
        panic!("no end");
    };
    assert_eq!(reader.next().await, None, "something after the end");
    end.close().reason.to_string()
}

#[tokio::test]
async fn only_changes_are_shown_and_all_readers_share_one_pricing() {
    let (scene, feeds, _shutdown) = begin();
    let mut readers: Vec<_> = (0..50).map(|_| read(&feeds, &scene)).collect();
    for reader in &mut readers {
        assert_eq!(quote(reader).await, (100, "7".to_owned()));
    }
    scene.publish(101, 7).await;
    scene.publish(102, 8).await;
    for reader in &mut readers {
        assert_eq!(quote(reader).await, (102, "8".to_owned()));
    }
    assert_eq!(scene.priced(), 3);
    let _other = feeds.read(question(2), scene.price());
    scene.publish(103, 8).await;
    assert_eq!((scene.priced(), feeds.len()), (6, 2));
}

#[tokio::test]
async fn a_slow_reader_is_given_the_newest_quote_alone() {
    let (scene, feeds, _shutdown) = begin();
    let (mut fast, mut slow) = (read(&feeds, &scene), read(&feeds, &scene));
    quote(&mut slow).await;
    for slot in 101..=200 {
        scene.publish(slot, slot).await;
        assert_eq!(quote(&mut fast).await, (slot, slot.to_string()));
    }
    assert_eq!(quote(&mut slow).await, (200, "200".to_owned()));
    scene.publish(201, 1).await;
    assert_eq!(quote(&mut slow).await.0, 201);
}

#[tokio::test]
async fn who_comes_back_is_not_given_what_it_has_and_misses_no_change() {
    let (scene, feeds, _shutdown) = begin();
    let _other = read(&feeds, &scene);
    scene.publish(102, 8).await;
    let mut again = read(&feeds, &scene);
    again.resume_after(102);
    scene.publish(103, 9).await;
    assert_eq!(quote(&mut again).await, (103, "9".to_owned()));
    let mut behind = read(&feeds, &scene);
    behind.resume_after(102);
    assert_eq!(quote(&mut behind).await.0, 103);
    // Another block in a slot that a reader may have seen.
    scene.publish(102, 4).await;
    let mut other_fork = read(&feeds, &scene);
    other_fork.resume_after(102);
    assert_eq!(quote(&mut other_fork).await, (102, "4".to_owned()));
}

#[tokio::test]
async fn a_quote_that_stays_true_is_followed_by_signs_of_life() {
    let (scene, feeds, _shutdown) = begin();
    let mut reader = read(&feeds, &scene);
    quote(&mut reader).await;
    scene.publish(130, 7).await;
    assert_eq!(reader.next().await, Some(Event::Beat { slot: 130 }));
    scene.publish(131, 8).await;
    assert_eq!(quote(&mut reader).await.0, 131);
}

#[tokio::test]
async fn a_feed_ends_with_a_reason_after_its_last_quote() {
    let (scene, feeds, shutdown) = begin();
    let mut reader = read(&feeds, &scene);
    *scene.0.lost.lock() = Some("the stream was lost");
    scene.publish(101, 8).await;
    assert_eq!(quote(&mut reader).await.0, 100);
    assert_eq!(end(&mut reader).await, "market_not_ready");
    assert!(feeds.read(question(1), scene.price()).is_err());
    *scene.0.lost.lock() = None;
    let mut again = read(&feeds, &scene);
    assert_eq!(quote(&mut again).await, (101, "8".to_owned()));
    shutdown.cancel();
    assert_eq!(end(&mut again).await, "stopping");
    assert!(feeds.read(question(1), scene.price()).is_err());
    assert_eq!(feeds.len(), 0);
}

#[tokio::test]
async fn a_market_that_grows_stale_without_a_change_ends_its_feeds() {
    let (scene, feeds, _shutdown) = begin();
    let mut reader = read(&feeds, &scene);
    quote(&mut reader).await;
    *scene.0.lost.lock() = Some("no slot was completed for 11 s");
    assert_eq!(end(&mut reader).await, "market_not_ready");
}

#[tokio::test]
async fn a_feed_without_readers_is_closed_and_one_that_panics_ends_its_streams() {
    let (scene, feeds, _shutdown) = begin();
    drop(read(&feeds, &scene));
    assert_eq!(feeds.len(), 1);
    scene.publish(101, 8).await;
    assert_eq!(feeds.len(), 0);
    let calls = AtomicUsize::default();
    let price = scene.price();
    let failing = move || match calls.fetch_add(1, Relaxed) {
        0 => price(),
        _ => panic!("a fault of the test"),
    };
    let mut reader = feeds.read(question(1), failing).expect("a quote");
    quote(&mut reader).await;
    scene.publish(102, 9).await;
    assert_eq!(reader.next().await, None);
    assert_eq!(feeds.len(), 0);
}
