//! Two hops: the best of several middles, beside direct pools, and against every pair of pools tried by brute force.

use std::collections::BTreeMap;

use cpmm::{
    AmmConfig, Amount, Clock, FeeRate, Mint, PerToken, PoolState, TokenProgram, TransferFee,
    TransferFeeConfig,
    fixtures::{blank_pool, published_config},
    ids,
};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use sluice_chain_types::RawAccount;
use sluice_market::{Market, QuoteCommitment, View, replay::Replay};
use sluice_testkit::{
    accounts::Content,
    updates::{account_of, freeze_and_confirm, key},
};
use solana_pubkey::Pubkey;

use super::super::{Alternative, Ask, Priced, PricedHop, SwapMode, best_route, direction};
use crate::extract::Pools;

/// Slot of the only state of each chain.
const SLOT: u64 = 1_000;

/// The chain's time in it.
const CLOCK: Clock = Clock {
    epoch: 700,
    unix_timestamp: 1_700_000_000,
};

/// What goes in, or for an exact output comes out.
const AMOUNT: u64 = 10_000;

/// The mint that goes in.
const INPUT: u8 = 14;

/// The mints between, in the order of their addresses: some pools have the input first, others the middle.
const MIDDLES: [u8; 5] = [11, 12, 13, 15, 16];

/// The mint that comes out.
const OUTPUT: u8 = 21;

/// Trade fee, millionths.
const FEE: u64 = 2_500;

/// What a pool without depth would hold of either token.
const DEEP: u64 = 1_000_000_000;

/// Random chains.
const CHAINS: u32 = 400;

/// Any number; always the same, so that a failure can be looked at again.
const SEED: u64 = 1;

/// A chain, pool by pool.
#[derive(Default)]
struct Scene {
    accounts: Vec<(Pubkey, Content)>,
    pools: u8,
    /// What mints withhold of each transfer, basis points.
    withheld: BTreeMap<u8, u16>,
}

/// A pool by the tokens that a swap pays into it and takes out of it, each with what lies there.
struct Opening {
    input: (u8, u64),
    output: (u8, u64),
    trade_fee: u64,
    status: u8,
}

impl Opening {
    fn new(input: (u8, u64), output: (u8, u64)) -> Self {
        Self {
            input,
            output,
            trade_fee: FEE,
            status: 0,
        }
    }
}

impl Scene {
    fn withholds(&self, mint: u8) -> bool {
        self.withheld.contains_key(&mint)
    }

    /// Opens a pool and answers its address, which is greater than those of the pools before.
    fn open(&mut self, pool: &Opening) -> Pubkey {
        let number = self.pools;
        self.pools += 1;
        let own = |kind: u8| {
            let mut address = [kind; 32];
            address[1] = number;
            Pubkey::from(address)
        };
        let [address, config, vault_0, vault_1] = [100, 101, 102, 103].map(own);
        let ((mint_0, amount_0), (mint_1, amount_1)) = if pool.input.0 < pool.output.0 {
            (pool.input, pool.output)
        } else {
            (pool.output, pool.input)
        };
        let program = TokenProgram::Token2022;
        let state = PoolState {
            amm_config: config,
            vaults: PerToken::new(vault_0, vault_1),
            mints: PerToken::new(key(mint_0), key(mint_1)),
            token_programs: PerToken::new(program.id(), program.id()),
            status: pool.status,
            ..blank_pool()
        };
        let rates = AmmConfig {
            trade_fee_rate: FeeRate(pool.trade_fee),
            ..published_config()
        };
        let vault = |mint, amount| Content::vault(program, key(mint), self.withholds(mint), amount);
        let opened = [
            (vault_0, vault(mint_0, amount_0)),
            (vault_1, vault(mint_1, amount_1)),
            (config, Content::config(rates)),
            (address, Content::pool(state)),
        ];
        self.accounts.extend(opened);
        address
    }

    /// Opens a pool of the default fee.
    fn pool(&mut self, input: (u8, u64), output: (u8, u64)) -> Pubkey {
        self.open(&Opening::new(input, output))
    }

    /// Opens two pools through a middle, of which the second holds this much of the output.
    fn route(&mut self, middle: u8, deep: u64) -> Pools {
        let first = self.pool((INPUT, DEEP), (middle, DEEP));
        Pools::Two(first, self.pool((middle, DEEP), (OUTPUT, deep)))
    }

    /// The market that shows the chain.
    fn market(&self) -> Market {
        let mints = MIDDLES.into_iter().chain([INPUT, OUTPUT]).map(|number| {
            let transfer_fee = self.withheld.get(&number).map(|rate| {
                let of_epoch = |epoch| TransferFee {
                    epoch,
                    maximum_fee: u64::MAX,
                    basis_points: *rate,
                };
                TransferFeeConfig {
                    older: of_epoch(0),
                    newer: of_epoch(1),
                }
            });
            let mint = Mint {
                transfer_fee,
                ..Mint::plain(6, u64::MAX)
            };
            (key(number), Content::Mint(TokenProgram::Token2022, mint))
        });
        let opened = self.accounts.iter().cloned();
        let all = mints.chain(opened).map(|(at, content)| raw(at, &content));
        let mut replay = Replay::begin(SLOT, all);
        let time = Content::Clock(SLOT, CLOCK).account();
        let time = account_of(SLOT, ids::CLOCK, time.owner, time.data);
        for update in [time].into_iter().chain(freeze_and_confirm("slots", SLOT)) {
            replay.update(&update).expect("the slot is the first");
        }
        replay.market().clone()
    }

    /// What is chosen for the amount, with routes of two pools.
    fn best(&self) -> Priced {
        best_route(&self.market(), &ask(SwapMode::ExactIn, AMOUNT)).expect("a route")
    }
}

fn raw(pubkey: Pubkey, content: &Content) -> RawAccount {
    let account = content.account();
    RawAccount {
        pubkey,
        owner: account.owner,
        lamports: account.lamports,
        data: account.data,
    }
}

fn ask(mode: SwapMode, amount: u64) -> Ask {
    Ask {
        input_mint: key(INPUT),
        output_mint: key(OUTPUT),
        amount: Amount::new(amount),
        mode,
        platform_rate: None,
        pools: None,
        two_hops: true,
        before_opening: false,
        max_price_impact: None,
        commitment: QuoteCommitment::Processed,
    }
}

/// What a pool of [`FEE`] that holds [`AMOUNT`] of the input must hold of the output to pay exactly this.
fn to_pay(received: u64) -> u64 {
    let offered = AMOUNT - (AMOUNT * FEE).div_ceil(1_000_000);
    (received * (AMOUNT + offered)).div_ceil(offered)
}

#[test]
fn of_many_middles_the_one_that_pays_most_is_taken_wherever_it_stands() {
    for best in MIDDLES {
        for second_best in MIDDLES {
            let mut scene = Scene::default();
            let routes = MIDDLES.map(|middle| {
                let deep = match middle {
                    _ if middle == best => DEEP * 3,
                    _ if middle == second_best => DEEP * 2,
                    _ => DEEP,
                };
                (middle, scene.route(middle, deep))
            });
            let (_, expected) = routes
                .into_iter()
                .find(|(middle, _)| *middle == best)
                .expect("one of them");
            let chosen = scene.best();
            assert_eq!(chosen.pools(), expected, "{best} before {second_best}");
            assert!(chosen.alternatives.is_empty());
        }
    }
}

#[test]
fn of_each_middle_the_pools_that_pay_most_are_taken() {
    for best in 0..3 {
        let mut scene = Scene::default();
        let depths = [0, 1, 2].map(|pool| if pool == best { DEEP * 2 } else { DEEP });
        let firsts = depths.map(|deep| scene.pool((INPUT, DEEP), (MIDDLES[1], deep)));
        let seconds = depths.map(|deep| scene.pool((MIDDLES[1], DEEP), (OUTPUT, deep)));
        scene.route(MIDDLES[0], DEEP);
        scene.route(MIDDLES[2], DEEP);
        let expected = Pools::Two(firsts[best], seconds[best]);
        assert_eq!(scene.best().pools(), expected, "pool {best}");
    }
}

#[test]
fn two_pools_are_taken_where_they_pay_more_than_one_by_a_single_unit() {
    let mut scene = Scene::default();
    let [_, through, _] =
        [(11, DEEP), (12, DEEP * 2), (13, DEEP)].map(|(middle, deep)| scene.route(middle, deep));
    let paid = scene.best().received().get();
    for (direct_pays, two_hops) in [(paid - 1, true), (paid, false), (paid + 1, false)] {
        let mut scene = Scene::default();
        for (middle, deep) in [(11, DEEP), (12, DEEP * 2), (13, DEEP)] {
            scene.route(middle, deep);
        }
        let direct = scene.pool((INPUT, AMOUNT), (OUTPUT, to_pay(direct_pays)));
        let direct = (Pools::One(direct), direct_pays);
        let (chosen, other) = if two_hops {
            ((through, paid), direct)
        } else {
            (direct, (through, paid))
        };
        let best = scene.best();
        assert_eq!((best.pools(), best.received().get()), chosen);
        let (pools, received) = other;
        let outcome = Ok(Amount::new(received));
        assert_eq!(best.alternatives, [Alternative { pools, outcome }]);
    }
}

#[test]
fn every_direct_pool_that_two_pools_beat_is_an_alternative() {
    let mut scene = Scene::default();
    let directs = [5_000, 5_002, 5_001]
        .map(|pays| (scene.pool((INPUT, AMOUNT), (OUTPUT, to_pay(pays))), pays));
    let through = scene.route(MIDDLES[3], DEEP);
    let best = scene.best();
    assert_eq!(best.pools(), through);
    let mut others: Vec<_> = best
        .alternatives
        .iter()
        .map(|other| (other.pools, other.outcome.map(Amount::get)))
        .collect();
    assert_eq!(others[0], (Pools::One(directs[1].0), Ok(5_002)));
    others.sort_by_key(|(_, pays)| pays.ok());
    let paying = others.into_iter().map(|(_, pays)| pays);
    assert!(paying.eq([5_000, 5_001, 5_002].map(Ok)));
}

#[test]
fn between_routes_that_pay_alike_the_smaller_addresses_are_taken() {
    for order in [[11, 12, 13], [12, 13, 11], [13, 11, 12], [16, 15, 11]] {
        let mut scene = Scene::default();
        let routes = order.map(|middle| scene.route(middle, DEEP));
        assert_eq!(scene.best().pools(), routes[0], "{order:?}");
    }
}

#[test]
fn without_max_hops_two_pools_are_no_route() {
    let mut scene = Scene::default();
    scene.route(MIDDLES[0], DEEP);
    let one_hop = Ask {
        two_hops: false,
        ..ask(SwapMode::ExactIn, AMOUNT)
    };
    best_route(&scene.market(), &one_hop).expect_err("no direct pool");
    let direct = scene.pool((INPUT, DEEP), (OUTPUT, DEEP / 2));
    let priced = best_route(&scene.market(), &one_hop).expect("a pool");
    assert_eq!(priced.pools(), Pools::One(direct));
    assert!(priced.alternatives.is_empty());
}

#[test]
fn an_exact_output_is_bought_from_the_one_pool_that_takes_least() {
    for best in 0..4 {
        let mut scene = Scene::default();
        // Through two pools it would cost a hundredth.
        scene.route(MIDDLES[0], DEEP * 100);
        let pools = [0, 1, 2, 3].map(|pool| {
            let deep = if pool == best { DEEP * 2 } else { DEEP };
            scene.pool((INPUT, DEEP), (OUTPUT, deep))
        });
        let priced = best_route(&scene.market(), &ask(SwapMode::ExactOut, AMOUNT));
        let priced = priced.expect("a pool");
        assert_eq!(priced.pools(), Pools::One(pools[best]));
        assert_eq!(priced.received(), Amount::new(AMOUNT));
        assert_eq!(priced.alternatives.len(), 3);
        for other in &priced.alternatives {
            assert!(other.outcome.is_ok_and(|takes| takes > priced.amount_in()));
        }
    }
    let mut scene = Scene::default();
    let alike = [(); 3].map(|()| scene.pool((INPUT, DEEP), (OUTPUT, DEEP)));
    let priced = best_route(&scene.market(), &ask(SwapMode::ExactOut, AMOUNT));
    assert_eq!(priced.expect("a pool").pools(), Pools::One(alike[0]));
}

/// All hops from the one mint through each pool that takes this amount of it.
fn every_hop<'a>(
    view: &'a View,
    input: Pubkey,
    mode: SwapMode,
    amount: Amount,
) -> impl Iterator<Item = PricedHop> + 'a {
    view.pools().filter_map(move |pool| {
        let mints = &pool.snapshot.pool.mints;
        let output = [mints.token_0, mints.token_1]
            .into_iter()
            .find(|mint| *mint != input)?;
        let way = direction(&pool.snapshot, &input, &output)?;
        PricedHop::quote(pool, way, mode, amount).ok()
    })
}

/// What the best pool, and the best pair of pools, pay for this amount; all of them are tried.
fn most(view: &View, amount: Amount) -> [Option<Amount>; 2] {
    let output = key(OUTPUT);
    let hops = |input, amount| every_hop(view, input, SwapMode::ExactIn, amount);
    let received = |hop: PricedHop| hop.quote.received();
    let direct = hops(key(INPUT), amount).filter(|hop| hop.output_mint() == output);
    let pairs = hops(key(INPUT), amount)
        .filter(|first| first.output_mint() != output)
        .flat_map(|first| {
            let seconds = hops(first.output_mint(), first.quote.received());
            let seconds: Vec<_> = seconds.collect();
            seconds.into_iter()
        })
        .filter(|second| second.output_mint() == output);
    [direct.map(received).max(), pairs.map(received).max()]
}

/// What the best pool takes for this output.
fn least(view: &View, amount: Amount) -> Option<Amount> {
    every_hop(view, key(INPUT), SwapMode::ExactOut, amount)
        .filter(|hop| hop.output_mint() == key(OUTPUT))
        .map(|hop| hop.quote.amount_in())
        .min()
}

/// An amount of up to this many bits, every number of them equally likely.
fn magnitude(random: &mut StdRng, bits: u32) -> u64 {
    let most = 1 << random.random_range(0..bits);
    random.random_range(1..=most)
}

/// A chain of pools between the mints, a few of them shallow, dear or closed.
fn random_scene(random: &mut StdRng) -> Scene {
    let mut scene = Scene::default();
    for mint in MIDDLES.into_iter().chain([INPUT, OUTPUT]) {
        if random.random_ratio(1, 5) {
            let rate = random.random_range(1..=2_000);
            scene.withheld.insert(mint, rate);
        }
    }
    for _ in 0..random.random_range(1..=30) {
        let middle = *MIDDLES.choose(random).expect("five");
        let (input, output) = match random.random_range(0..7) {
            0 => (INPUT, OUTPUT),
            1..4 => (INPUT, middle),
            _ => (middle, OUTPUT),
        };
        let mut depth = || magnitude(random, 30);
        let (input, output) = ((input, depth()), (output, depth()));
        scene.open(&Opening {
            trade_fee: *[100, FEE, 10_000, 120_000].choose(random).expect("four"),
            // Swaps are the third bit.
            status: if random.random_ratio(1, 10) { 4 } else { 0 },
            ..Opening::new(input, output)
        });
    }
    scene
}

#[test]
fn no_pool_and_no_pair_of_pools_pays_more_than_the_one_that_is_chosen() {
    let mut random = StdRng::seed_from_u64(SEED);
    let [mut by_one, mut by_two, mut by_none] = [0_u32; 3];
    for number in 0..CHAINS {
        let market = random_scene(&mut random).market();
        let view = market.view(QuoteCommitment::Processed).expect("ready");
        let amount = magnitude(&mut random, 30);
        let [one, two] = most(&view, Amount::new(amount));
        let chosen = best_route(&market, &ask(SwapMode::ExactIn, amount)).ok();
        let pays = chosen.as_ref().map(Priced::received);
        assert_eq!(pays, one.max(two), "chain {number} of seed {SEED}");
        match chosen {
            None => by_none += 1,
            Some(chosen) if chosen.second.is_some() => {
                assert!(two > one, "chain {number} of seed {SEED}");
                by_two += 1;
            }
            Some(_) => by_one += 1,
        }
        let takes = best_route(&market, &ask(SwapMode::ExactOut, amount)).ok();
        let takes = takes.as_ref().map(Priced::amount_in);
        assert_eq!(takes, least(&view, Amount::new(amount)), "chain {number}");
    }
    // Chains in which only one of them occurs would compare nothing.
    assert!(
        by_one.min(by_two).min(by_none) > CHAINS / 20,
        "{by_one} {by_two} {by_none}"
    );
}
