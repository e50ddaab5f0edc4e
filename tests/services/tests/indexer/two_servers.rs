//! Two servers: transactions that flow are all sent while one server is cut, the other slow, and both in turn.

use std::time::Duration;

use sluice_geyser::Endpoint;
use sluice_store::{Commitment, EventKind, Filters, WebhookDefinition};
use tokio::time::sleep;

use sluice_harness::indexer::{Indexer, IndexerHarness, soon};
use sluice_testkit::{
    network_link::NetworkLink,
    scripted_chain::{ScriptedChain, State},
    transaction_flow::{Pace, TransactionFlow},
    updates::key,
    yellowstone_server::YellowstoneServer,
};

use crate::{
    expectations::Ending,
    flow::{assert_one_session, judge, numbers, sent, until_final},
    on_both,
};

on_both!(one_server_that_is_cut_and_one_that_is_slow_in_turn_lose_nothing,);

const PACE: Pace = Pace {
    genesis: 10,
    transactions: 6,
    between: Duration::from_millis(15),
    confirmed_after: 1,
    finalized_after: 8,
};

/// How long each of them is away or slow: some ten slots.
const AWAY: Duration = Duration::from_millis(1_000);

/// How often each of them is.
const ROUNDS: usize = 3;

/// Messages by which a slow server is behind: some four slots.
const BEHIND: usize = 40;

async fn one_server_that_is_cut_and_one_that_is_slow_in_turn_lose_nothing(
    mut harness: IndexerHarness,
) {
    let chain = ScriptedChain::new(PACE.genesis, State::new());
    let (mut servers, mut links) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let server = YellowstoneServer::start(chain.clone()).await;
        let server = server.expect("a free port");
        let link = NetworkLink::to(server.address()).await;
        links.push(link.expect("a free port"));
        servers.push(server);
    }
    let endpoints: Vec<Endpoint> = links
        .iter()
        .map(|link| Endpoint {
            url: link.url().parse().expect("a URL"),
            x_token: None,
        })
        .collect();
    harness.listen_to_all(&endpoints);
    let mut webhooks = Vec::new();
    for (number, commitment) in (1..).zip(Commitment::ALL) {
        let definition = WebhookDefinition {
            commitment,
            events: [EventKind::Transaction].into_iter().collect(),
            filters: Filters {
                accounts: vec![key(1)],
                programs: Vec::new(),
                ..Filters::default()
            },
            ..harness.definition()
        };
        webhooks.push(harness.create_temporary(number, definition).await);
    }
    let flow = TransactionFlow::start(chain, PACE, |_| vec![key(9), key(1)]);
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(PACE.genesis).await;
    let first = flow.confirmed() + 1;
    indexer.until_checkpoint_past(first).await;

    for round in 0..ROUNDS * 2 {
        let (cut, slow) = (round % 2, (round + 1) % 2);
        // The one alone, the other alone, and then both at once.
        servers[slow].configure(|settings| settings.behind = BEHIND);
        sleep(AWAY).await;
        let asked = servers[cut].requests().len();
        links[cut].refuse(true);
        links[cut].cut();
        sleep(AWAY).await;
        servers[slow].configure(|settings| settings.behind = 0);
        links[cut].refuse(false);
        until_back(&indexer, &servers[cut], asked).await;
        sleep(AWAY).await;
    }
    let last = soon(flow.end()).await;
    soon(until_final(&harness.store, last)).await;
    let flowed: Vec<u64> = numbers(first..last + 1, PACE.transactions).collect();
    for webhook in &webhooks {
        let sent = sent(&harness.store, webhook).await;
        judge(&sent, &flowed, PACE.transactions);
        assert!(sent.is_sorted(), "in order");
    }
    assert_one_session(&indexer).await;
    indexer.stop().await;
}

/// Waits until the indexer has asked this server more often than `asked` times, and is connected to both: it comes back to the one
/// that was cut whenever the machine gets to it, and without both its stream has to end.
async fn until_back(indexer: &Indexer, server: &YellowstoneServer, asked: usize) {
    let connected = async || {
        let metrics = indexer.metrics().await;
        let connected = metrics.lines().filter(|line| {
            line.starts_with("sluice_indexer_stream_server_connected{") && line.ends_with(" 1")
        });
        connected.count()
    };
    let wait = async {
        while server.requests().len() <= asked || connected().await < 2 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    soon(wait).await;
}
