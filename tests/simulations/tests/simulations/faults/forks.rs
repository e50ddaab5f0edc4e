//! Branches.

use std::time::Duration;

use sluice_testkit::cast::{Actor, Token};
use tokio::time::sleep;

use super::{Scene, unbroken};

#[tokio::test(flavor = "multi_thread")]
async fn readers_follow_the_higher_of_two_heads() {
    let mut scene = Scene::ready().await;
    let parent = scene.head;
    scene.pass_on(parent);
    scene.agree().await;
    scene.pass_on(parent);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_fork_is_left_again() {
    let mut scene = Scene::ready().await;
    let main = scene.pass();
    let fork = scene.pass_on(scene.head - 1);
    scene.agree().await;
    scene.head = main;
    scene.pass();
    scene.agree().await;
    scene.confirm(scene.head);
    scene.agree().await;
    scene.kill(fork);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_long_branches_are_both_known_to_their_ends() {
    let mut scene = Scene::ready().await;
    let (mut left, mut right) = (scene.head, scene.head);
    for _ in 0..20 {
        left = scene.pass_on(left);
        right = scene.pass_on(right);
    }
    scene.agree().await;
    scene.kill(right);
    scene.agree().await;
    scene.confirm(left);
    scene.agree().await;
    scene.head = left;
    scene.pass();
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_go_back_and_forth_with_the_heads() {
    let mut scene = Scene::ready().await;
    let (mut left, mut right) = (scene.head, scene.head);
    for _ in 0..5 {
        left = scene.pass_on(left);
        scene.agree().await;
        right = scene.pass_on(right);
        scene.agree().await;
    }
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_confirmed_slot_takes_readers_off_the_other_branch() {
    let mut scene = Scene::ready().await;
    let parent = scene.head;
    let confirmed = scene.pass_on(parent);
    let other = scene.pass_on(parent);
    scene.pass_on(other);
    scene.agree().await;
    scene.confirm(confirmed);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_branch_that_goes_on_is_not_shown() {
    let mut scene = Scene::ready().await;
    let parent = scene.head;
    let confirmed = scene.pass_on(parent);
    let other = scene.pass_on(parent);
    scene.confirm(confirmed);
    scene.pass_on(other);
    scene.agree().await;
    scene.head = confirmed;
    scene.pass();
    scene.agree().await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_heads_the_next_one_takes_over_when_one_dies() {
    let mut scene = Scene::ready().await;
    let parent = scene.head;
    let heads = [0; 3].map(|_| scene.pass_on(parent));
    for head in heads.iter().rev() {
        scene.agree().await;
        scene.kill(*head);
    }
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_branch_has_its_own_value_of_an_account() {
    let mut scene = Scene::ready().await;
    let (parent, pool) = (scene.head, scene.pool(0));
    let [left, right] = [0; 2].map(|_| scene.open(parent));
    scene.swap(right, &pool, 5);
    scene.swap(left, &pool, 1_000);
    scene.seal(left);
    scene.agree().await;
    scene.seal(right);
    scene.agree().await;
    scene.confirm(left);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_opened_on_an_abandoned_branch_disappears() {
    let mut scene = Scene::ready().await;
    let [a, _, fee, _] = scene.cast.tokens;
    let pool = Actor::new("new pool", scene.cast.configs[0], a, fee);
    let parent = scene.head;
    let fork = scene.open(parent);
    for (key, content) in pool.opening() {
        scene.set(fork, key, content);
    }
    scene.seal(fork);
    scene.agree().await;
    let main = scene.pass_on(parent);
    scene.confirm(main);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

/// A slot in which a pool is opened, and one of its mints with it.
fn opened(scene: &mut Scene, parent: u64, pool: &Actor, fee: u16) -> u64 {
    let slot = scene.open(parent);
    let genesis = scene.cast.tokens.map(|token| token.mint);
    let tokens = [pool.tokens.token_0, pool.tokens.token_1];
    for token in tokens.iter().filter(|token| !genesis.contains(&token.mint)) {
        scene.set(slot, token.mint, token.content(fee));
    }
    for (key, content) in pool.opening() {
        scene.set(slot, key, content);
    }
    scene.seal(slot);
    slot
}

/// Transactions of an abandoned branch usually land again on the other one.
async fn lands_again(token: Token) {
    let mut scene = Scene::ready().await;
    let known = scene.cast.tokens[0];
    let pool = Actor::new("new pool", scene.cast.configs[0], known, token);
    scene.cast.pools.push(pool);
    let parent = scene.head;
    let fork = opened(&mut scene, parent, &pool, 10);
    let mut main = scene.pass_on(parent);
    scene.pass_on(fork);
    for _ in 0..5 {
        main = scene.pass_on(main);
    }
    scene.confirm(main);
    // Time for the node to be asked for the mint, which does not exist on the branch it tells of.
    sleep(Duration::from_millis(600)).await;
    scene.agree().await;
    scene.head = opened(&mut scene, main, &pool, 20);
    scene.settle().await;
    assert_eq!(scene.processed().pools.len(), 5);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_a_new_spl_mint_that_lands_again_on_the_other_branch_appears() {
    lands_again(Token::spl("new token")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_of_a_new_fee_mint_that_lands_again_on_the_other_branch_appears() {
    lands_again(Token::with_fee("new token")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skipped_slots_leave_no_gap() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(0);
    for skipped in [1, 4, 0, 40] {
        let slot = scene.open_after(scene.head, skipped);
        scene.swap(slot, &pool, 3);
        scene.seal(slot);
        scene.head = slot;
        scene.agree().await;
    }
    scene.confirm(scene.head);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}
