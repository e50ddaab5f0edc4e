//! Pools that come, change and go.

use std::time::Duration;

use bytes::Bytes;
use cpmm::ids;
use sluice_testkit::{
    accounts::Content,
    cast::{self, Actor, Token},
    world::NodeSlot,
};
use solana_pubkey::Pubkey;

use super::{Scene, unbroken};

/// A slot on the head with these writes.
fn write(scene: &mut Scene, accounts: impl IntoIterator<Item = (Pubkey, Content)>) {
    let slot = scene.open(scene.head);
    for (key, content) in accounts {
        scene.set(slot, key, content);
    }
    scene.seal(slot);
    scene.head = slot;
}

/// A pool of two mints that are there, under a configuration that is there.
fn newcomer(scene: &mut Scene) -> Actor {
    let [a, _, fee, _] = scene.cast.tokens;
    let pool = Actor::new("new pool", scene.cast.configs[1], a, fee);
    scene.cast.pools.push(pool);
    pool
}

fn shown(scene: &Scene) -> usize {
    scene.processed().pools.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_appears_in_the_slot_that_opens_it() {
    let mut scene = Scene::ready().await;
    let pool = newcomer(&mut scene);
    write(&mut scene, pool.opening());
    scene.agree().await;
    assert_eq!(shown(&scene), 5);
    let slot = scene.open(scene.head);
    scene.swap(slot, &pool, 12);
    scene.seal(slot);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_whose_vaults_came_slots_before_it_appears_with_it() {
    let mut scene = Scene::ready().await;
    let pool = newcomer(&mut scene);
    for account in pool.opening() {
        write(&mut scene, [account]);
        scene.agree().await;
    }
    assert_eq!(shown(&scene), 5);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_without_one_of_its_vaults_is_not_shown_until_it_has_it() {
    let mut scene = Scene::ready().await;
    let pool = newcomer(&mut scene);
    let [vault_0, vault_1, itself] = pool.opening();
    write(&mut scene, [itself]);
    scene.agree().await;
    write(&mut scene, [vault_1]);
    scene.agree().await;
    assert_eq!(shown(&scene), 4);
    write(&mut scene, [vault_0]);
    scene.agree().await;
    assert_eq!(shown(&scene), 5);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_pool_under_a_new_configuration_appears() {
    let mut scene = Scene::ready().await;
    let config = sluice_testkit::names::address("config 2");
    let [a, b, ..] = scene.cast.tokens;
    let pool = Actor::new("new pool", config, a, b);
    write(&mut scene, pool.opening());
    scene.agree().await;
    assert_eq!(shown(&scene), 4);
    write(&mut scene, [(config, cast::config(40))]);
    scene.agree().await;
    assert_eq!(shown(&scene), 5);
    unbroken(&scene);
    scene.end().await;
}

/// The chain goes on meanwhile, because the node tells confirmed accounts only.
async fn a_new_pool_of(token: Token) {
    let mut scene = Scene::ready().await;
    let pool = Actor::new(
        "new pool",
        scene.cast.configs[0],
        scene.cast.tokens[0],
        token,
    );
    scene.cast.pools.push(pool);
    let mint = (token.mint, token.content(300));
    write(&mut scene, [mint].into_iter().chain(pool.opening()));
    scene.settle().await;
    assert_eq!(shown(&scene), 5);
    unbroken(&scene);
    scene.end().await;
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

#[tokio::test(flavor = "multi_thread")]
async fn the_other_pools_stay_quotable_while_a_new_mint_is_read() {
    let mut scene = Scene::ready().await;
    let token = Token::spl("new token");
    let pool = Actor::new(
        "new pool",
        scene.cast.configs[0],
        scene.cast.tokens[0],
        token,
    );
    scene.world.lock().hold_node();
    let mint = (token.mint, token.content(0));
    write(&mut scene, [mint].into_iter().chain(pool.opening()));
    for _ in 0..10 {
        scene.pass();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(scene.reader().not_ready(), None);
    }
    scene.world.lock().node = NodeSlot::OfTheStream;
    scene.settle().await;
    assert_eq!(shown(&scene), 5);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pool_disappears() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(2);
    write(&mut scene, [(pool.pool, Content::Closed)]);
    scene.agree().await;
    assert_eq!(shown(&scene), 3);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_opened_again_at_its_old_address_is_the_new_one() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(2);
    let keys = [pool.pool, pool.vaults.token_0, pool.vaults.token_1];
    write(&mut scene, keys.map(|key| (key, Content::Closed)));
    scene.agree().await;
    write(&mut scene, pool.opening());
    scene.agree().await;
    assert_eq!(shown(&scene), 4);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_closed_and_opened_in_one_slot_never_disappears() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(1);
    let closing = [(pool.pool, Content::Closed)];
    write(&mut scene, closing.into_iter().chain(pool.opening()));
    scene.agree().await;
    assert_eq!(shown(&scene), 4);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_with_a_closed_vault_disappears() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(0);
    write(&mut scene, [(pool.vaults.token_1, Content::Closed)]);
    scene.agree().await;
    assert_eq!(shown(&scene), 3);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_transfer_fee_reaches_every_pool_of_its_mint() {
    let mut scene = Scene::ready().await;
    let fee = scene.cast.tokens[2];
    write(&mut scene, [(fee.mint, fee.content(9_000))]);
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_epoch_is_seen_in_its_first_slot() {
    let mut scene = Scene::ready().await;
    scene.pass();
    scene.agree().await;
    scene.epoch += 1;
    scene.pass();
    scene.agree().await;
    assert_eq!(scene.processed().clock.epoch, cast::EPOCH + 1);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_configuration_changes_all_its_pools_at_once() {
    let mut scene = Scene::ready().await;
    for rate in 1..40 {
        let [one, two] = scene.cast.configs;
        let changed = [(one, cast::config(rate)), (two, cast::config(rate + 1))];
        write(&mut scene, changed);
    }
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_pool_is_shown_as_disabled() {
    let mut scene = Scene::ready().await;
    let pool = scene.pool(3);
    let slot = scene.open(scene.head);
    scene.change(slot, &pool, |pool| pool.status = 4);
    scene.seal(slot);
    scene.agree().await;
    assert!(scene.processed().pools[&pool.pool].pool.swap_disabled());
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_cannot_be_read_is_not_shown_until_it_can() {
    /// A boolean of the pool.
    const ENABLE_CREATOR_FEE: usize = 390;
    let mut scene = Scene::ready().await;
    let pool = scene.pool(0);
    let mut data = Content::pool(pool.state()).account().data.to_vec();
    data[ENABLE_CREATOR_FEE] = 2;
    let broken = Content::Broken {
        owner: ids::PROGRAM_ID,
        data: Bytes::from(data),
    };
    write(&mut scene, [(pool.pool, broken)]);
    scene.agree().await;
    assert_eq!(shown(&scene), 3);
    write(&mut scene, [(pool.pool, Content::pool(pool.state()))]);
    scene.agree().await;
    assert_eq!(shown(&scene), 4);
    unbroken(&scene);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_others_are_no_concern_of_the_market() {
    let mut scene = Scene::ready().await;
    let [stranger, another] = ["stranger", "another"].map(sluice_testkit::names::address);
    let foreign = |owner| Content::Broken {
        owner,
        data: Bytes::from(vec![7; 165]),
    };
    write(
        &mut scene,
        [
            (stranger, foreign(ids::SPL_TOKEN)),
            (another, foreign(stranger)),
            (stranger, Content::Closed),
        ],
    );
    scene.agree().await;
    unbroken(&scene);
    scene.end().await;
}
