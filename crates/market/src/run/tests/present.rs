//! The present, which the node knows: what is behind it is not shown.

use std::time::SystemTime;

use service_kit::Clock;

use super::*;

/// Slots by which the node is ahead of what readers saw when the stream comes back.
const MISSED: u64 = 8;

/// Slots by which a node is ahead that no stream of a test reaches.
const FAR: u64 = 100_000;

impl MarketTest {
    /// Waits until readers see this slot.
    async fn until_shown(&self, slot: u64) {
        soon(async {
            while self.market.ladder().processed != Some(slot) {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Has the node say that it is in this slot, whichever its accounts are of, and waits until the market knows.
    async fn until_node_says(&self, slot: u64) {
        self.node.rpc.script("getSlot", slot.into());
        soon(async {
            while self.market.ladder().node != Some(slot) {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Waits until readers are told this.
    async fn until_told(&self, expected: &str) {
        soon(async {
            while self.told().as_deref() != Some(expected) {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Why nothing is shown, unless it is.
    fn told(&self) -> Option<String> {
        match self.market.status() {
            Status::NotReady(NotReady { reason, .. }) => Some(reason),
            Status::Ready { .. } => None,
        }
    }

    /// Lets a slot pass, and waits until the market has taken it in.
    async fn take_in(&self, chain: &mut Chain) {
        chain.pass().await;
        soon(async {
            while self.market.ladder().reported < Some(chain.slot) {
                sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    fn is_ready(&self) -> bool {
        self.told().is_none()
    }
}

#[tokio::test]
async fn a_resumed_market_is_not_ready_before_the_slot_in_which_the_node_was() {
    let (mut script, mut chain) = ready().await;
    let confirmed = chain.slot;
    chain.confirm(confirmed).await;
    chain.pass().await;
    script.until_shown(chain.slot).await;
    let present = chain.slot + MISSED;
    script.until_node_says(present).await;
    let last = lost(&script, chain, "lagged to receive geyser messages").await;

    let mut chain = script.connect(confirmed - 1).await;
    assert_eq!(chain.from_slot, Some(confirmed));
    chain.pass().await;
    let replaying = format!("the market is replaying the chain from slot {confirmed}");
    script.until_told(&replaying).await;
    // The stream is open: where the node goes from here on puts nothing off.
    script.until_node_says(present + FAR).await;
    while chain.slot + 1 < present {
        script.take_in(&mut chain).await;
        assert!(!script.is_ready(), "slot {} of {present}", chain.slot);
    }
    assert!(chain.slot > last, "what readers saw is behind it");
    chain.pass().await;
    script.until_shown(present).await;
    assert!(script.is_ready());
}

#[tokio::test]
async fn a_market_that_has_read_the_chain_is_not_ready_before_the_slot_in_which_the_node_was() {
    let mut script = MarketTest::start().await;
    script.node.set(0, &whole_pool());
    script.until_node_says(FAR).await;
    let mut chain = script.connect(50).await;
    let read = "the chain is read; waiting for the stream to reach it";
    soon(async {
        while script.told().as_deref() != Some(read) {
            chain.pass().await;
            script.node.set(chain.slot - 2, &[]);
        }
    })
    .await;
    // What was read is of slots that the stream has left behind.
    for _ in 0..MISSED {
        script.take_in(&mut chain).await;
        assert!(!script.is_ready(), "slot {} of {FAR}", chain.slot);
    }
    // A node that takes back how far it was is believed.
    let present = chain.slot + MISSED;
    script.until_node_says(present).await;
    while chain.slot + 1 < present {
        script.take_in(&mut chain).await;
        assert!(!script.is_ready(), "slot {} of {present}", chain.slot);
    }
    chain.pass().await;
    script.until_shown(present).await;
    assert_eq!(script.quoted(), Some((1, 100, 200)));
}

#[tokio::test]
async fn a_market_that_falls_behind_its_node_names_the_bound() {
    // Every slot of the script is newer than this time of day: how old it is plays no part.
    let clock = Clock::stopped_at(SystemTime::UNIX_EPOCH);
    let bounds = Freshness::default();
    let market = Market::new(ExchangeIds::MAINNET, bounds, clock, Servers::new([]));
    let mut script = MarketTest::start_of(market, NO_SLOT_TIMEOUT).await;
    script.node.set(0, &whole_pool());
    let mut chain = script.connect(50).await;
    script.until_ready(&mut chain).await;
    script.node.set(chain.slot + FAR, &[]);
    let reason = soon(async {
        loop {
            chain.pass().await;
            if let Some(reason) = script.told() {
                break reason;
            }
        }
    })
    .await;
    assert!(reason.contains("freshness.max-slots-behind"), "{reason}");
}
