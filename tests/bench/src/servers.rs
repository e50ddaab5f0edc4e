//! Two servers of one chain: time from the seal of a slot on the faster one to its quotes.
//!
//! The slower one reports the same a few milliseconds later, and all that it reports is read and compared.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Context;
use cpmm::ids;
use sluice_chain_types::RawAccount;
use sluice_geyser::{
    AccountFilter, Assembled, Body, Request, Servers, SlotStatus, SlotStream, Update,
};
use sluice_market::{QuoteCommitment, replay::Replay};
use sluice_testkit::{
    figure::{Figure, Limit},
    scripted_chain::Message,
    yellowstone_server::YellowstoneServer,
};

use crate::trading_chain::{GENESIS, TradingChain};

/// Slots that are timed, and what one lasts: a tenth of it is left when its writes have come.
const SLOTS: usize = 300;
const SLOT_TIME: Duration = Duration::from_millis(60);

/// Slots in which the stream joins: those that began before it did come late, by a replay.
const WARM: u64 = 30;

/// Messages by which the slower server is behind: some ten milliseconds.
const BEHIND: usize = 150;

/// Measures it.
///
/// # Errors
/// When a server cannot be started, or the stream ends early.
pub async fn figures() -> anyhow::Result<Vec<Figure>> {
    let trading = TradingChain::start(SLOT_TIME);
    let fast = YellowstoneServer::start(trading.chain.clone()).await?;
    let slow = YellowstoneServer::start(trading.chain.clone()).await?;
    slow.configure(|settings| settings.behind = BEHIND);
    let mut replay = begun(&trading)?;
    let servers = Servers::new([fast.endpoint().clone(), slow.endpoint().clone()]);
    let mut stream = SlotStream::open(servers, request()).await?;
    stream.give_ahead();
    let (mut times, mut arrivals) = (Vec::new(), Vec::new());
    while times.len() < SLOTS {
        // As the market does: what was taken in is let go of when its slot is shown.
        let batch = stream.next_batch().await?;
        let arrived = Instant::now();
        for assembled in &batch {
            let update = match assembled {
                Assembled::Update(update) => update,
                Assembled::Ahead { body, .. } => {
                    replay.ahead(body)?;
                    continue;
                }
                Assembled::Void { slot } => {
                    replay.void(*slot);
                    continue;
                }
                _ => continue,
            };
            replay.update(update)?;
            if let Some(sealed) = completed(update) {
                let view = replay.market().view(QuoteCommitment::Processed);
                let seen = view.ok().context("the market follows")?.slot().get();
                anyhow::ensure!(seen == sealed, "slot {sealed} is sealed, {seen} is seen");
                let at = trading.sealed_at(sealed).context("it was sealed")?;
                if sealed > GENESIS + WARM {
                    times.push(Instant::now().saturating_duration_since(at));
                    arrivals.push(arrived.saturating_duration_since(at));
                }
            }
        }
    }
    times.sort_unstable();
    arrivals.sort_unstable();
    let p99 = times.get(SLOTS * 99 / 100).context("slots were timed")?;
    println!(
        "two servers, p50 {:?}, worst {:?}; until the slot had arrived p50 {:?}, p99 {:?}",
        times.get(SLOTS / 2),
        times.last(),
        arrivals.get(SLOTS / 2),
        arrivals.get(SLOTS * 99 / 100),
    );
    Ok(vec![Figure::new(
        "a slot's seal on the faster of two servers to its quotes, p99",
        p99.as_secs_f64() * 1_000.0,
        "ms",
        Limit::AtMost(1.0),
    )])
}

fn completed(update: &Update) -> Option<u64> {
    match &update.body {
        Body::Slot(slot) if slot.status == SlotStatus::Processed => Some(slot.slot),
        _ => None,
    }
}

/// What a market asks for, from the first slot on.
fn request() -> Request {
    let owned = |owner| AccountFilter {
        owners: vec![owner],
        ..AccountFilter::default()
    };
    let clock = AccountFilter {
        pubkeys: vec![ids::CLOCK],
        ..AccountFilter::default()
    };
    Request {
        accounts: BTreeMap::from([
            ("exchange".to_owned(), owned(ids::PROGRAM_ID)),
            ("vaults".to_owned(), owned(ids::SPL_TOKEN)),
            ("clock".to_owned(), clock),
        ]),
        slots: Some("slots".to_owned()),
        blocks_meta: Some("blocks".to_owned()),
        from_slot: Some(GENESIS + 1),
        ..Request::default()
    }
}

/// The market at the first slot.
fn begun(trading: &TradingChain) -> anyhow::Result<Replay> {
    let state = trading.chain.lock().tree.state(GENESIS);
    let accounts = state.into_iter().map(|(pubkey, content)| {
        let account = content.account();
        RawAccount {
            pubkey,
            owner: account.owner,
            lamports: account.lamports,
            data: account.data,
        }
    });
    let mut replay = Replay::begin(GENESIS, accounts);
    let Message::Update(body) = Message::status(GENESIS, SlotStatus::Processed, None) else {
        unreachable!("it is an update")
    };
    replay.update(&Update {
        filters: Vec::new(),
        created_at: None,
        bank_id: None,
        body,
    })?;
    Ok(replay)
}
