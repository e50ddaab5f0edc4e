//! Closes: a webhook on a program is sent the change by which an account leaves the program.

mod given_away;

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use sluice_geyser::{Body, TransactionUpdate};
use sluice_harness::indexer::{Indexer, IndexerHarness, soon};
use sluice_store::{Access, Commitment, EventKind, Store, WebhookDefinition, WebhookId};
use sluice_testkit::{
    accounts::{Account, Content},
    rpc_node::{RpcNode, wire::Call},
    scripted_chain::{BlockId, ScriptedChain, State},
    updates::{key, program, transaction},
    yellowstone_server::YellowstoneServer,
};
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use tokio::time::sleep;

use crate::{
    expectations::Ending,
    flow::{assert_one_session, until_final},
    on_both,
};

on_both!(
    an_account_that_leaves_its_program_is_sent_with_its_last_owner,
    a_close_on_a_fork_that_is_abandoned_is_retracted,
    what_is_closed_while_the_indexer_is_away_has_its_last_owner,
    an_account_that_was_there_before_its_webhook_is_known_by_rpc,
    a_server_that_takes_no_filter_without_keys_is_followed_without_its_closes,
);

const GENESIS: u64 = 10;

/// A chain whose slots the test passes one by one, and the server that streams it.
struct ClosingChain {
    chain: ScriptedChain,
    server: YellowstoneServer,
    slot: u64,
    tip: BlockId,
}

fn of(owner: Pubkey) -> Content {
    Content::Other(Account {
        owner,
        lamports: 1,
        data: Bytes::from_static(b"abc"),
    })
}

/// The owner of accounts that are closed.
const SYSTEM: Pubkey = Pubkey::new_from_array([0; 32]);

/// A transaction that may write an account.
struct Executed {
    account: u8,
    /// The owner that it leaves the account with; `None` where it does not write it.
    owner: Option<Pubkey>,
    mentions: Pubkey,
    fails: bool,
}

/// One of the program.
fn by_program(account: u8, owner: Option<Pubkey>) -> Executed {
    Executed {
        account,
        owner,
        mentions: program(),
        fails: false,
    }
}

/// Of a transaction of a slot, by its place.
fn signature_in(slot: u64, place: usize) -> Signature {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&slot.to_le_bytes());
    bytes[8] = u8::try_from(place).expect("few");
    bytes.into()
}

impl ClosingChain {
    async fn start() -> Self {
        let chain = ScriptedChain::new(GENESIS, State::new());
        let server = YellowstoneServer::start(chain.clone()).await;
        let tip = chain.lock().tree.confirmed();
        Self {
            chain,
            server: server.expect("a free port"),
            slot: GENESIS,
            tip,
        }
    }

    /// The next slot, on `parent`, with these writes; its number and its block.
    fn pass_on(&mut self, parent: BlockId, writes: &[(u8, Content)]) -> (u64, BlockId) {
        self.slot += 1;
        let block = self.chain.open(self.slot, parent);
        for (account, content) in writes {
            self.chain
                .write(block, key(*account), content.clone(), None);
        }
        self.chain.freeze(block);
        self.chain.seal(block);
        (self.slot, block)
    }

    /// The next slot, on `parent`, with these transactions and what they write.
    fn execute_on(&mut self, parent: BlockId, executed: &[Executed]) -> (u64, BlockId) {
        self.slot += 1;
        let block = self.chain.open(self.slot, parent);
        for (place, each) in executed.iter().enumerate() {
            let Body::Transaction(any) = transaction(self.slot, 0).body else {
                unreachable!("it is one")
            };
            let signature = signature_in(self.slot, place);
            let update = TransactionUpdate {
                signature,
                error: each.fails.then(|| "failed".to_owned()),
                account_keys: vec![key(90), key(each.account), each.mentions],
                writable: vec![0, 1],
                instructions: Vec::new(),
                log_messages: Vec::new(),
                post_balances: vec![1, 1, 1],
                ..*any
            };
            self.chain.execute_in(block, update);
            if let Some(owner) = each.owner {
                let content = if owner == SYSTEM {
                    Content::Closed
                } else {
                    of(owner)
                };
                self.chain
                    .write(block, key(each.account), content, Some(signature));
            }
        }
        self.chain.freeze(block);
        self.chain.seal(block);
        (self.slot, block)
    }

    /// The next slot, confirmed, with these transactions.
    fn pass_executed(&mut self, executed: &[Executed]) -> u64 {
        let (slot, block) = self.execute_on(self.tip, executed);
        self.tip = block;
        self.chain.confirm(block);
        slot
    }

    /// The next slot, confirmed.
    fn pass(&mut self, writes: &[(u8, Content)]) -> u64 {
        let (slot, block) = self.pass_on(self.tip, writes);
        self.tip = block;
        self.chain.confirm(block);
        slot
    }

    /// Passes slots until one of them is stored.
    async fn follow(&mut self, store: &Store) {
        let first = self.slot + 1;
        let stored = async {
            while store.checkpoint(Commitment::Confirmed).await.expect("read") < Some(first) {
                self.pass(&[]);
                sleep(Duration::from_millis(100)).await;
            }
        };
        soon(stored).await;
        // A busy machine is behind: what comes now would wait for all of it.
        let last = async {
            while store.checkpoint(Commitment::Confirmed).await.expect("read") < Some(self.slot) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        soon(last).await;
    }

    /// Finalizes what there is, and waits until it is stored.
    async fn finalize(&self, store: &Store) {
        self.chain.finalize(self.tip);
        soon(until_final(store, self.slot)).await;
    }
}

/// A webhook on the program at each commitment.
async fn webhooks(harness: &IndexerHarness) -> Vec<WebhookId> {
    let mut webhooks = Vec::new();
    for (number, commitment) in (1..).zip(Commitment::ALL) {
        let definition = WebhookDefinition {
            commitment,
            events: [EventKind::AccountChange].into_iter().collect(),
            ..harness.definition()
        };
        webhooks.push(harness.create_temporary(number, definition).await);
    }
    webhooks
}

/// What a webhook was sent, in short: slot, first letters of the account, and whose it was and is.
async fn sent(store: &Store, webhook: &WebhookId) -> Vec<String> {
    let page = store.messages_after(&Access::All, webhook, 0, 100).await;
    let messages = page.expect("read").expect("exists").messages;
    let short = |body: Value| {
        let data = &body["data"];
        let (slot, kind) = (&body["slot"], body["type"].as_str().expect("text"));
        if kind != "accountChange" {
            return format!("{slot} {kind}");
        }
        let number = |field: &Value| {
            let address: Pubkey = field.as_str()?.parse().expect("an address");
            Some(address.to_bytes()[0])
        };
        let (account, owner) = (number(&data["pubkey"]), number(&data["owner"]));
        let account = account.expect("there");
        let owner = owner.map_or_else(|| "?".to_owned(), |owner| owner.to_string());
        let last = number(&data["lastOwner"]).map(|last| format!("{last}->"));
        let origin = data["origin"].as_str();
        let origin = origin.map(|origin| format!(" by {origin}"));
        format!(
            "{slot} account {account}: {}{owner}{}",
            last.unwrap_or_default(),
            origin.unwrap_or_default()
        )
    };
    let bodies = messages.iter().map(|message| &message.body);
    bodies
        .map(|body| short(serde_json::from_str(body).expect("JSON")))
        .collect()
}

/// The chain, the webhooks, and the indexer, which follows it.
async fn begin(harness: &mut IndexerHarness) -> (ClosingChain, Vec<WebhookId>, Indexer) {
    let mut chain = ClosingChain::start().await;
    harness.listen_to(chain.server.endpoint());
    let webhooks = webhooks(harness).await;
    let indexer = harness.start().await;
    chain.follow(&harness.store).await;
    (chain, webhooks, indexer)
}

/// Waits until a webhook was sent so much.
async fn until_sent(store: &Store, webhook: &WebhookId, count: usize) {
    soon(async {
        while sent(store, webhook).await.len() < count {
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

async fn an_account_that_leaves_its_program_is_sent_with_its_last_owner(
    mut harness: IndexerHarness,
) {
    let (mut chain, webhooks, indexer) = begin(&mut harness).await;
    let made = chain.pass(&[
        (1, of(program())),
        (2, of(program())),
        (3, of(program())),
        (3, Content::Closed),
        // A stranger's, which is nothing to the webhooks.
        (9, of(key(50))),
    ]);
    let closed = chain.pass(&[
        (1, Content::Closed),
        (9, Content::Closed),
        (2, Content::Closed),
        (2, of(key(50))),
    ]);
    // Of these, neither is the program's any more.
    chain.pass(&[(1, of(key(50))), (2, Content::Closed), (3, Content::Closed)]);
    let again = chain.pass(&[(1, of(program()))]);
    let at_last = chain.pass(&[(1, Content::Closed)]);
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{made} account 2: 100"),
                format!("{made} account 3: 100->0"),
                format!("{closed} account 1: 100->0"),
                format!("{closed} account 2: 100->0"),
                format!("{again} account 1: 100"),
                format!("{at_last} account 1: 100->0"),
            ]
        );
    }
    indexer.stop().await;
}

async fn a_close_on_a_fork_that_is_abandoned_is_retracted(mut harness: IndexerHarness) {
    let (mut chain, webhooks, indexer) = begin(&mut harness).await;
    let made = chain.pass(&[(1, of(program()))]);
    // A fork of two blocks, on which it is closed; the other one closes it later.
    let (fork, block) = chain.pass_on(chain.tip, &[(1, Content::Closed)]);
    let (on_fork, _) = chain.pass_on(block, &[(1, Content::Closed)]);
    let store = &harness.store;
    until_sent(store, &webhooks[0], 2).await;
    chain.pass(&[]);
    let closed = chain.pass(&[(1, Content::Closed)]);
    chain.finalize(store).await;
    assert_eq!(
        sent(store, &webhooks[0]).await,
        [
            format!("{made} account 1: 100"),
            format!("{fork} account 1: 100->0"),
            format!("{fork} reverted"),
            format!("{closed} account 1: 100->0"),
        ],
        "and nothing of slot {on_fork}, in which it was closed already"
    );
    for webhook in &webhooks[1..] {
        assert_eq!(
            sent(store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{closed} account 1: 100->0"),
            ]
        );
    }
    indexer.stop().await;
}

async fn what_is_closed_while_the_indexer_is_away_has_its_last_owner(mut harness: IndexerHarness) {
    let (mut chain, webhooks, indexer) = begin(&mut harness).await;
    let made = chain.pass(&[(1, of(program())), (2, of(program()))]);
    chain.finalize(&harness.store).await;
    // Confirmed before the indexer dies, and final after it lives again.
    let first = chain.pass(&[(1, Content::Closed)]);
    indexer.until_checkpoint_past(first).await;
    indexer.kill().await;
    let second = chain.pass(&[(2, Content::Closed)]);
    let indexer = harness.start().await;
    chain.follow(&harness.store).await;
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{made} account 2: 100"),
                format!("{first} account 1: 100->0"),
                format!("{second} account 2: 100->0"),
            ]
        );
    }
    indexer.stop().await;
}

async fn an_account_that_was_there_before_its_webhook_is_known_by_rpc(mut harness: IndexerHarness) {
    let mut chain = ClosingChain::start().await;
    harness.listen_to(chain.server.endpoint());
    let node = RpcNode::of_chain(chain.chain.clone()).await;
    let node = node.expect("a free port");
    harness.backfill_from(node.url());
    chain.pass(&[(1, of(program())), (2, of(program())), (3, of(key(50)))]);
    let webhooks = webhooks(&harness).await;
    let indexer = harness.start().await;
    chain.follow(&harness.store).await;
    let asked = async {
        let lists = |call: &Call| matches!(call, Call::ProgramAccounts { .. });
        while !node.calls().iter().any(lists) {
            chain.pass(&[]);
            sleep(Duration::from_millis(50)).await;
        }
    };
    soon(asked).await;
    let closed = chain.pass(&[(1, Content::Closed), (3, Content::Closed)]);
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        // The answer of the node may be later than the finality of the slot.
        until_sent(&harness.store, webhook, 1).await;
        assert_eq!(
            sent(&harness.store, webhook).await,
            [format!("{closed} account 1: 100->0")]
        );
    }
    indexer.stop().await;
}

async fn a_server_that_takes_no_filter_without_keys_is_followed_without_its_closes(
    mut harness: IndexerHarness,
) {
    let mut chain = ClosingChain::start().await;
    chain
        .server
        .configure(|settings| settings.limits.accounts_any = false);
    harness.listen_to(chain.server.endpoint());
    harness.probe_limits();
    let webhooks = webhooks(&harness).await;
    let indexer = harness.start().await;
    chain.follow(&harness.store).await;
    let made = chain.pass(&[(1, of(program()))]);
    // Selected by no owner, and nothing else would select it.
    chain.pass(&[(1, Content::Closed)]);
    let later = chain.pass(&[(2, of(program()))]);
    chain.finalize(&harness.store).await;
    for webhook in &webhooks {
        assert_eq!(
            sent(&harness.store, webhook).await,
            [
                format!("{made} account 1: 100"),
                format!("{later} account 2: 100"),
            ]
        );
    }
    // The status of the webhooks says so.
    let limits = harness.store.address_limits().await.expect("read");
    assert!(limits.closes_unseen);
    // It was found by a stream of its own: a request that is refused would have ended the live one.
    assert_one_session(&indexer).await;
    indexer.stop().await;
}
