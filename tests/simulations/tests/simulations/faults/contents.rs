//! Pools that come, change and go.

use std::time::Duration;

use bytes::Bytes;
use cpmm::ids;
use sluice_simulations::faults::observed::Level;
use sluice_testkit::{
    accounts::Content,
    scripted_chain::NodeSlot,
    scripted_pools::{self, ScriptedPool, Token},
};
use solana_pubkey::Pubkey;

use super::{Scenario, unbroken};

/// A slot on the head with these writes.
fn write(scenario: &mut Scenario, accounts: impl IntoIterator<Item = (Pubkey, Content)>) {
    let slot = scenario.open(scenario.head);
    for (key, content) in accounts {
        scenario.set(slot, key, content);
    }
    scenario.seal(slot);
    scenario.head = slot;
}

/// A pool of two mints that are there, under a configuration that is there.
fn newcomer(scenario: &mut Scenario) -> ScriptedPool {
    let [a, _, fee, _] = scenario.exchange.tokens;
    let pool = ScriptedPool::new("new pool", scenario.exchange.configs[1], a, fee);
    scenario.exchange.pools.push(pool);
    pool
}

/// How many pools the market shows, whatever the model says.
fn shown(scenario: &Scenario) -> usize {
    let moment = scenario.reader().moment(Level::Processed);
    moment.expect("the market is ready").pools.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_appears_in_the_slot_that_opens_it() {
    let mut scenario = Scenario::ready().await;
    let pool = newcomer(&mut scenario);
    write(&mut scenario, pool.opening());
    scenario.agree().await;
    assert_eq!(shown(&scenario), 5);
    let slot = scenario.open(scenario.head);
    scenario.swap(slot, &pool, 12);
    scenario.seal(slot);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_whose_vaults_came_slots_before_it_appears_with_it() {
    let mut scenario = Scenario::ready().await;
    let pool = newcomer(&mut scenario);
    for account in pool.opening() {
        write(&mut scenario, [account]);
        scenario.agree().await;
    }
    assert_eq!(shown(&scenario), 5);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_without_one_of_its_vaults_is_not_shown_until_it_has_it() {
    let mut scenario = Scenario::ready().await;
    let pool = newcomer(&mut scenario);
    let [vault_0, vault_1, itself] = pool.opening();
    write(&mut scenario, [itself]);
    scenario.agree().await;
    write(&mut scenario, [vault_1]);
    scenario.agree().await;
    assert_eq!(shown(&scenario), 4);
    write(&mut scenario, [vault_0]);
    scenario.agree().await;
    assert_eq!(shown(&scenario), 5);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_under_a_new_configuration_appears() {
    let mut scenario = Scenario::ready().await;
    let config = sluice_testkit::names::address("config 2");
    let [a, b, ..] = scenario.exchange.tokens;
    let pool = ScriptedPool::new("new pool", config, a, b);
    write(&mut scenario, pool.opening());
    scenario.agree().await;
    assert_eq!(shown(&scenario), 4);
    write(&mut scenario, [(config, scripted_pools::config(40))]);
    scenario.agree().await;
    assert_eq!(shown(&scenario), 5);
    unbroken(&scenario);
    scenario.end().await;
}

/// A pool and one of its mints come in one slot, which shows the pool: nothing is read for it.
async fn a_new_pool_of(token: Token) {
    let mut scenario = Scenario::ready().await;
    let pool = ScriptedPool::new(
        "new pool",
        scenario.exchange.configs[0],
        scenario.exchange.tokens[0],
        token,
    );
    scenario.exchange.pools.push(pool);
    scenario.chain.lock().hold_node();
    let mint = (token.mint, token.content(300));
    write(&mut scenario, [mint].into_iter().chain(pool.opening()));
    scenario.agree().await;
    assert_eq!(shown(&scenario), 5);
    unbroken(&scenario);
    scenario.chain.lock().node = NodeSlot::OfTheStream;
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_of_a_new_spl_mint_appears() {
    a_new_pool_of(Token::spl("new token")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_of_a_new_token_2022_mint_appears() {
    a_new_pool_of(Token::plain_2022("new token")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_of_a_new_mint_with_a_transfer_fee_appears() {
    a_new_pool_of(Token::with_fee("new token")).await;
}

/// A pool of a known token and this one.
fn pool_of(scenario: &Scenario, token: Token) -> ScriptedPool {
    let [known, ..] = scenario.exchange.tokens;
    ScriptedPool::new("new pool", scenario.exchange.configs[0], known, token)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_of_a_mint_that_was_shown_long_before_appears_in_the_slot_that_opens_it() {
    let mut scenario = Scenario::ready().await;
    let token = Token::with_fee("new token");
    let pool = pool_of(&scenario, token);
    scenario.exchange.pools.push(pool);
    scenario.chain.lock().hold_node();
    write(&mut scenario, [(token.mint, token.content(300))]);
    for _ in 0..3 {
        let slot = scenario.pass();
        scenario.confirm(slot);
    }
    scenario.agree().await;
    write(&mut scenario, pool.opening());
    scenario.agree().await;
    assert_eq!(shown(&scenario), 5);
    unbroken(&scenario);
    scenario.chain.lock().node = NodeSlot::OfTheStream;
    scenario.pass_until_agreed().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_other_pools_stay_quotable_while_the_mint_of_a_new_one_is_read() {
    let mut scenario = Scenario::ready().await;
    let token = Token::plain_2022("new token");
    let pool = pool_of(&scenario, token);
    scenario.chain.lock().hold_node();
    // Never shown, as one that is older than the service.
    let slot = scenario.open(scenario.head);
    scenario.set_unreported(slot, token.mint, token.content(0));
    scenario.seal(slot);
    scenario.head = slot;
    write(&mut scenario, pool.opening());
    for _ in 0..10 {
        let slot = scenario.pass();
        while scenario.reader().slot(Level::Processed) < Some(slot) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(scenario.reader().not_ready(), None);
        assert_eq!(shown(&scenario), 4, "all but the new one");
    }
    assert_eq!(scenario.processed().pools.len(), 5, "the chain has it");
    scenario.chain.lock().node = NodeSlot::OfTheStream;
    scenario.pass_until_agreed().await;
    assert_eq!(shown(&scenario), 5);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pool_disappears() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(2);
    write(&mut scenario, [(pool.pool, Content::Closed)]);
    scenario.agree().await;
    assert_eq!(shown(&scenario), 3);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_opened_again_at_its_old_address_is_the_new_one() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(2);
    let keys = [pool.pool, pool.vaults.token_0, pool.vaults.token_1];
    write(&mut scenario, keys.map(|key| (key, Content::Closed)));
    scenario.agree().await;
    write(&mut scenario, pool.opening());
    scenario.agree().await;
    assert_eq!(shown(&scenario), 4);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_closed_and_opened_in_one_slot_never_disappears() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(1);
    let closing = [(pool.pool, Content::Closed)];
    write(&mut scenario, closing.into_iter().chain(pool.opening()));
    scenario.agree().await;
    assert_eq!(shown(&scenario), 4);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_with_a_closed_vault_disappears() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(0);
    write(&mut scenario, [(pool.vaults.token_1, Content::Closed)]);
    scenario.agree().await;
    assert_eq!(shown(&scenario), 3);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_transfer_fee_reaches_every_pool_of_its_mint() {
    let mut scenario = Scenario::ready().await;
    let fee = scenario.exchange.tokens[2];
    write(&mut scenario, [(fee.mint, fee.content(9_000))]);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_epoch_is_seen_in_its_first_slot() {
    let mut scenario = Scenario::ready().await;
    scenario.pass();
    scenario.agree().await;
    scenario.epoch += 1;
    scenario.pass();
    scenario.agree().await;
    assert_eq!(scenario.processed().clock.epoch, scripted_pools::EPOCH + 1);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_changes_all_its_pools_at_once() {
    let mut scenario = Scenario::ready().await;
    for rate in 1..40 {
        let [one, two] = scenario.exchange.configs;
        let changed = [
            (one, scripted_pools::config(rate)),
            (two, scripted_pools::config(rate + 1)),
        ];
        write(&mut scenario, changed);
    }
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_pool_is_shown_as_disabled() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(3);
    let slot = scenario.open(scenario.head);
    scenario.change(slot, &pool, |pool| pool.status = 4);
    scenario.seal(slot);
    scenario.agree().await;
    assert!(scenario.processed().pools[&pool.pool].pool.swap_disabled());
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_cannot_be_read_is_not_shown_until_it_can() {
    /// A boolean of the pool.
    const ENABLE_CREATOR_FEE: usize = 390;
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(0);
    let mut data = Content::pool(pool.state()).account().data.to_vec();
    data[ENABLE_CREATOR_FEE] = 2;
    let broken = Content::Broken {
        owner: ids::PROGRAM_ID,
        data: Bytes::from(data),
    };
    write(&mut scenario, [(pool.pool, broken)]);
    scenario.agree().await;
    assert_eq!(shown(&scenario), 3);
    write(&mut scenario, [(pool.pool, Content::pool(pool.state()))]);
    scenario.agree().await;
    assert_eq!(shown(&scenario), 4);
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_others_are_no_concern_of_the_market() {
    let mut scenario = Scenario::ready().await;
    let [stranger, another] = ["stranger", "another"].map(sluice_testkit::names::address);
    let foreign = |owner| Content::Broken {
        owner,
        data: Bytes::from(vec![7; 165]),
    };
    write(
        &mut scenario,
        [
            (stranger, foreign(ids::SPL_TOKEN)),
            (another, foreign(stranger)),
            (stranger, Content::Closed),
        ],
    );
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}
