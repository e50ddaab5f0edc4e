//! Forks, and the reorgs between them.

use std::time::Duration;

use cpmm::ids;
use sluice_testkit::scripted_pools::{self, ScriptedPool, Token};
use tokio::time::sleep;

use super::{Scenario, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn readers_follow_the_higher_of_two_heads() {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    scenario.pass_on(parent);
    scenario.agree().await;
    scenario.pass_on(parent);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_fork_is_left_again() {
    let mut scenario = Scenario::ready().await;
    let main = scenario.pass();
    let fork = scenario.pass_on(scenario.head - 1);
    scenario.agree().await;
    scenario.head = main;
    scenario.pass();
    scenario.agree().await;
    scenario.confirm(scenario.head);
    scenario.agree().await;
    scenario.kill(fork);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_long_forks_are_both_known_to_their_ends() {
    let mut scenario = Scenario::ready().await;
    let (mut left, mut right) = (scenario.head, scenario.head);
    for _ in 0..20 {
        left = scenario.pass_on(left);
        right = scenario.pass_on(right);
    }
    scenario.agree().await;
    scenario.kill(right);
    scenario.agree().await;
    scenario.confirm(left);
    scenario.agree().await;
    scenario.head = left;
    scenario.pass();
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_go_back_and_forth_with_the_heads() {
    let mut scenario = Scenario::ready().await;
    let (mut left, mut right) = (scenario.head, scenario.head);
    for _ in 0..5 {
        left = scenario.pass_on(left);
        scenario.agree().await;
        right = scenario.pass_on(right);
        scenario.agree().await;
    }
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_slot_takes_readers_off_the_other_fork() {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    let confirmed = scenario.pass_on(parent);
    let other = scenario.pass_on(parent);
    scenario.pass_on(other);
    scenario.agree().await;
    scenario.confirm(confirmed);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_fork_that_goes_on_is_not_shown() {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    let confirmed = scenario.pass_on(parent);
    let other = scenario.pass_on(parent);
    scenario.confirm(confirmed);
    scenario.pass_on(other);
    scenario.agree().await;
    scenario.head = confirmed;
    scenario.pass();
    scenario.agree().await;
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_heads_the_next_one_takes_over_when_one_dies() {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    let heads = [0; 3].map(|_| scenario.pass_on(parent));
    for head in heads.iter().rev() {
        scenario.agree().await;
        scenario.kill(*head);
    }
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_fork_has_its_own_value_of_an_account() {
    let mut scenario = Scenario::ready().await;
    let (parent, pool) = (scenario.head, scenario.pool(0));
    let [left, right] = [0; 2].map(|_| scenario.open(parent));
    scenario.swap(right, &pool, 5);
    scenario.swap(left, &pool, 1_000);
    scenario.seal(left);
    scenario.agree().await;
    scenario.seal(right);
    scenario.agree().await;
    scenario.confirm(left);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_opened_on_an_abandoned_fork_disappears() {
    let mut scenario = Scenario::ready().await;
    let [a, _, fee, _] = scenario.exchange.tokens;
    let pool = ScriptedPool::new("new pool", scenario.exchange.configs[0], a, fee);
    let parent = scenario.head;
    let fork = scenario.open(parent);
    for (key, content) in pool.opening() {
        scenario.set(fork, key, content);
    }
    scenario.seal(fork);
    scenario.agree().await;
    let main = scenario.pass_on(parent);
    scenario.confirm(main);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

/// A slot in which a pool is opened, and one of its mints with it.
fn opened(scenario: &mut Scenario, parent: u64, pool: &ScriptedPool, fee: u16) -> u64 {
    let slot = scenario.open(parent);
    let genesis = scenario.exchange.tokens.map(|token| token.mint);
    let tokens = [pool.tokens.token_0, pool.tokens.token_1];
    for token in tokens.iter().filter(|token| !genesis.contains(&token.mint)) {
        scenario.set(slot, token.mint, token.content(fee));
    }
    for (key, content) in pool.opening() {
        scenario.set(slot, key, content);
    }
    scenario.seal(slot);
    slot
}

/// Transactions of an abandoned fork usually land again on the other one.
async fn lands_again(token: Token) {
    let mut scenario = Scenario::ready().await;
    let known = scenario.exchange.tokens[0];
    let pool = ScriptedPool::new("new pool", scenario.exchange.configs[0], known, token);
    scenario.exchange.pools.push(pool);
    let parent = scenario.head;
    let fork = opened(&mut scenario, parent, &pool, 10);
    let mut main = scenario.pass_on(parent);
    scenario.pass_on(fork);
    for _ in 0..5 {
        main = scenario.pass_on(main);
    }
    scenario.confirm(main);
    // Time for the node to be asked for the mint, which does not exist on the fork it reports.
    sleep(Duration::from_millis(600)).await;
    scenario.agree().await;
    scenario.head = opened(&mut scenario, main, &pool, 20);
    scenario.pass_until_agreed().await;
    assert_eq!(scenario.processed().pools.len(), 5);
    scenario.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_a_new_spl_mint_that_lands_again_on_the_other_fork_appears() {
    lands_again(Token::spl("new token")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_a_new_fee_mint_that_lands_again_on_the_other_fork_appears() {
    lands_again(Token::with_fee("new token")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skipped_slots_leave_no_gap() {
    let mut scenario = Scenario::ready().await;
    let pool = scenario.pool(0);
    for skipped in [1, 4, 0, 40] {
        let slot = scenario.open_after(scenario.head, skipped);
        scenario.swap(slot, &pool, 3);
        scenario.seal(slot);
        scenario.head = slot;
        scenario.agree().await;
    }
    scenario.confirm(scenario.head);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}

/// A validator may drop a frozen block for another one of the slot, and not call the first one dead.
#[tokio::test(flavor = "multi_thread")]
async fn a_bank_in_place_of_a_frozen_one_wins_once_it_is_built_on_and_nothing_that_the_other_wrote_stays()
 {
    let mut scenario = Scenario::ready().await;
    let parent = scenario.head;
    let (in_both, in_the_first) = (scenario.pool(0), scenario.pool(1));
    let slot = scenario.open(parent);
    scenario.swap(slot, &in_both, 77);
    scenario.swap(slot, &in_the_first, 55);
    scenario.seal(slot);
    scenario.agree().await;

    let below = scenario.chain.lock().tree.current(parent);
    scenario.chain.open(slot, below.expect("it has a block"));
    let clock = scripted_pools::clock(slot, scenario.epoch);
    scenario.set(slot, ids::CLOCK, clock);
    scenario.swap(slot, &in_both, 11);
    scenario.seal(slot);

    // Which of the two the chain goes on with shows in what builds on it.
    scenario.head = slot;
    scenario.pass();
    scenario.confirm(slot);
    scenario.agree().await;
    unbroken(&scenario);
    scenario.end().await;
}
