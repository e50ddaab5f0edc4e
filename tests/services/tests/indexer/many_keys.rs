//! Keys beyond what one request takes: over several streams, against a server with the reference server's limits.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

use sluice_geyser::{Endpoint, limits::MAX_STRANDS};
use sluice_store::{Access, Commitment, EventKind, Filters, WebhookDefinition, WebhookId};
use solana_pubkey::Pubkey;
use tokio::time::sleep;

use sluice_harness::indexer::{IndexerHarness, soon};
use sluice_testkit::{
    network_link::NetworkLink,
    scripted_chain::{ScriptedChain, State},
    transaction_flow::{Pace, TransactionFlow},
    updates::key,
    yellowstone_server::{FilterLimits, YellowstoneServer},
};

use crate::{
    expectations::Ending,
    flow::{assert_one_session, judge, numbers, sent, until_final},
};

/// Accounts of each webhook, one for each commitment: 300,000 together, of which a request takes 91,000.
const ACCOUNTS: u64 = 100_000;

/// Streams that so many accounts take.
const STREAMS: usize = 4;

const PACE: Pace = Pace {
    genesis: 10,
    transactions: 4,
    between: Duration::from_millis(40),
    confirmed_after: 1,
    finalized_after: 8,
};

/// Time after a cut stream is open again, in which it takes its place among the others.
const BETWEEN_CUTS: Duration = Duration::from_secs(2);

fn account(number: u64) -> Pubkey {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    Pubkey::new_from_array(bytes)
}

/// Two of all accounts: most transactions come by two streams.
fn accounts_of(transaction: u64) -> [u64; 2] {
    let all = ACCOUNTS * 3;
    [transaction * 7_919 % all, transaction * 104_729 % all]
}

fn keys_of(transaction: u64) -> Vec<Pubkey> {
    let [first, second] = accounts_of(transaction).map(account);
    vec![key(9), first, second]
}

/// The transactions of a range with one of these accounts.
fn with_accounts(transactions: Range<u64>, accounts: Range<u64>) -> Vec<u64> {
    let has = |number: &u64| accounts_of(*number).iter().any(|it| accounts.contains(it));
    transactions.filter(has).collect()
}

/// A webhook at each commitment, with the accounts that it alone watches.
async fn webhooks(harness: &IndexerHarness) -> BTreeMap<WebhookId, (Commitment, Range<u64>)> {
    let mut webhooks = BTreeMap::new();
    for (number, commitment) in (0..).zip(Commitment::ALL) {
        let accounts = u64::from(number) * ACCOUNTS..u64::from(number + 1) * ACCOUNTS;
        let definition = WebhookDefinition {
            commitment,
            events: [EventKind::Transaction].into_iter().collect(),
            filters: Filters {
                accounts: accounts.clone().map(account).collect(),
                programs: Vec::new(),
                ..Filters::default()
            },
            ..harness.definition()
        };
        let id = harness.create_temporary(number + 1, definition).await;
        webhooks.insert(id, (commitment, accounts));
    }
    webhooks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_thousand_keys_lose_nothing_while_their_streams_are_cut_one_by_one() {
    let mut harness = IndexerHarness::sqlite().await;
    let chain = ScriptedChain::new(PACE.genesis, State::new());
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    let link = NetworkLink::to(server.address()).await;
    let link = link.expect("a free port");
    harness.listen_to(&Endpoint {
        url: link.url().parse().expect("a URL"),
        x_token: None,
    });
    let webhooks = webhooks(&harness).await;
    let flow = TransactionFlow::start(chain, PACE, keys_of);
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(PACE.genesis).await;
    let first = flow.confirmed() + 1;
    indexer.until_checkpoint_past(first).await;
    let opened = server.requests();
    assert_eq!(opened.len(), STREAMS);
    let keys: BTreeSet<Pubkey> = opened
        .iter()
        .flat_map(|request| request.transactions.values())
        .flat_map(|filter| filter.account_include.iter().copied())
        .collect();
    assert_eq!(keys.len() as u64, ACCOUNTS * 3, "each once");

    for number in 0..STREAMS {
        link.cut_one(number);
        let opened_again = async {
            while server.requests().len() <= STREAMS + number {
                sleep(Duration::from_millis(20)).await;
            }
        };
        soon(opened_again).await;
        sleep(BETWEEN_CUTS).await;
    }
    let last = soon(flow.end()).await;
    soon(until_final(&harness.store, last)).await;
    // On a busy machine one of them takes more than one attempt.
    let opened = server.requests().len();
    assert!(opened >= 2 * STREAMS, "each was opened again: {opened}");
    for (webhook, (commitment, accounts)) in &webhooks {
        let sent = sent(&harness.store, webhook).await;
        let flowed = numbers(first..last + 1, PACE.transactions);
        let flowed = with_accounts(flowed, accounts.clone());
        judge(&sent, &flowed, PACE.transactions);
        assert!(sent.is_sorted(), "in order at {commitment}");
    }
    assert_one_session(&indexer).await;
    indexer.stop().await;
}

/// What a server takes that is set to little.
fn small() -> FilterLimits {
    FilterLimits {
        account_max: Some(40),
        owner_max: Some(3),
        account_include_max: Some(25),
        ..FilterLimits::default()
    }
}

/// Accounts of the webhook of this test, and the streams that they take.
const FEW: u64 = 60;
const FEW_STREAMS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_a_server_are_found_at_the_start_shared_and_kept() {
    let mut harness = IndexerHarness::sqlite().await;
    let chain = ScriptedChain::new(PACE.genesis, State::new());
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    server.configure(|settings| settings.limits = small());
    harness.listen_to(server.endpoint());
    harness.probe_limits();
    let definition = WebhookDefinition {
        commitment: Commitment::Confirmed,
        events: [EventKind::Transaction].into_iter().collect(),
        filters: Filters {
            accounts: (0..FEW).map(account).collect(),
            programs: Vec::new(),
            ..Filters::default()
        },
        ..harness.definition()
    };
    let webhook = harness.create_temporary(1, definition).await;
    let flow = TransactionFlow::start(chain, PACE, |number| {
        vec![
            key(9),
            account(number * 7 % FEW),
            account(number * 11 % FEW),
        ]
    });
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(PACE.genesis).await;
    let first = flow.confirmed() + 1;
    indexer.until_checkpoint_past(first + 3).await;
    let strands = u64::try_from(MAX_STRANDS).expect("few");
    let limits = harness.store.address_limits().await.expect("read");
    assert_eq!(
        (limits.accounts, limits.owners, limits.mentioned),
        (Some(40 * strands), Some(3 * strands), Some(25 * strands))
    );
    assert_eq!(server.open_streams(), FEW_STREAMS);
    let last = soon(flow.end()).await;
    soon(until_final(&harness.store, last)).await;
    let sent = sent(&harness.store, &webhook).await;
    let flowed: Vec<u64> = numbers(first..last + 1, PACE.transactions).collect();
    judge(&sent, &flowed, PACE.transactions);
    assert!(sent.is_sorted(), "in order");
    assert_one_session(&indexer).await;
    indexer.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_filters_than_a_server_takes_in_a_request_come_by_several_streams() {
    let mut harness = IndexerHarness::sqlite().await;
    let chain = ScriptedChain::new(PACE.genesis, State::new());
    let server = YellowstoneServer::start(chain.clone()).await;
    let server = server.expect("a free port");
    server.configure(|settings| {
        settings.limits = FilterLimits {
            accounts_max: Some(2),
            transactions_max: Some(1),
            ..FilterLimits::default()
        };
    });
    harness.listen_to(server.endpoint());
    harness.probe_limits();
    let events = [EventKind::Transaction, EventKind::AccountChange];
    let definition = |filters| WebhookDefinition {
        commitment: Commitment::Confirmed,
        events: events.into_iter().collect(),
        filters,
        ..harness.definition()
    };
    let by_account = Filters {
        accounts: vec![account(0)],
        ..Filters::default()
    };
    let by_owner = Filters {
        programs: vec![key(8)],
        token_owners: vec![key(7)],
        ..Filters::default()
    };
    let webhook = harness.create_temporary(1, definition(by_account)).await;
    let other = harness.create_temporary(2, definition(by_owner)).await;
    let flow = TransactionFlow::start(chain, PACE, |_| vec![key(9), account(0)]);
    let indexer = harness.start().await;
    indexer.until_checkpoint_past(PACE.genesis).await;
    let first = flow.confirmed() + 1;
    indexer.until_checkpoint_past(first).await;
    assert_eq!(server.open_streams(), 2);
    let served = server.requests();
    let served = &served[served.len() - 2..];
    let accounts = served.iter().flat_map(|request| request.accounts.keys());
    assert_eq!(unnumbered(accounts), ["accounts", "closed", "owners"]);
    let transactions = served
        .iter()
        .flat_map(|request| request.transactions.keys());
    assert_eq!(unnumbered(transactions), ["token_owners", "transactions"]);
    let last = soon(flow.end()).await;
    soon(until_final(&harness.store, last)).await;
    for webhook in [&webhook, &other] {
        let stored = harness.store.webhook(&Access::All, webhook).await;
        let stored = stored.expect("read").expect("exists");
        assert_eq!(stored.refused, None);
    }
    let sent = sent(&harness.store, &webhook).await;
    let flowed: Vec<u64> = numbers(first..last + 1, PACE.transactions).collect();
    judge(&sent, &flowed, PACE.transactions);
    assert_one_session(&indexer).await;
    indexer.stop().await;
}

/// The names of filters, each once, without the generations of their requests.
fn unnumbered<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let names = names.map(|name| name.split_once('#').map_or(name.as_str(), |(name, _)| name));
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().collect()
}
