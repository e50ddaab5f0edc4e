//! The arithmetic against what the real program did: swaps read from mainnet events, and 3,000 swaps
//! executed by the official program compiled to SBF, refusals included.

use cpmm::{
    AmmConfig, Clock, Direction, FeeRate, Mint, PerToken, PoolSnapshot, PoolState, Refusal,
    TransferFee, TransferFeeConfig, ids,
};
use serde::Deserialize;
use solana_pubkey::Pubkey;

const EXECUTED: &str = include_str!("data/cpmm-executed.json");
const MAINNET: &str = include_str!("data/cpmm-mainnet.json");

/// Custom error of the exchange for an output below the caller's minimum.
const EXCEEDED_SLIPPAGE: u32 = 6005;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    amount_in: String,
    minimum_amount_out: String,
    clock: CaseClock,
    config: CaseConfig,
    pool: CasePool,
    token0: CaseToken,
    token1: CaseToken,
    zero_for_one: bool,
    result: CaseResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseClock {
    epoch: u64,
    unix_timestamp: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseConfig {
    trade_fee_rate: u64,
    protocol_fee_rate: u64,
    fund_fee_rate: u64,
    creator_fee_rate: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CasePool {
    creator_fee_on: u8,
    enable_creator_fee: bool,
    status: u8,
    open_time: u64,
    protocol_fees: [String; 2],
    fund_fees: [String; 2],
    creator_fees: [String; 2],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseToken {
    vault: String,
    transfer_fee: Option<CaseFeeConfig>,
}

#[derive(Deserialize)]
struct CaseFeeConfig {
    older: CaseFee,
    newer: CaseFee,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseFee {
    epoch: u64,
    maximum_fee: String,
    basis_points: u16,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum CaseResult {
    Ok(Box<CaseOk>),
    ErrorCode(u32),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CaseOk {
    received: String,
    input_vault: String,
    output_vault: String,
    protocol_fees: [String; 2],
    fund_fees: [String; 2],
    creator_fees: [String; 2],
}

fn number(text: &str) -> u64 {
    text.parse().expect("amounts are decimal strings")
}

fn pair(texts: &[String; 2]) -> PerToken<u64> {
    PerToken::new(number(&texts[0]), number(&texts[1]))
}

fn snapshot(case: &Case) -> PoolSnapshot {
    PoolSnapshot {
        pool: PoolState {
            status: case.pool.status,
            protocol_fees: pair(&case.pool.protocol_fees),
            fund_fees: pair(&case.pool.fund_fees),
            creator_fees: pair(&case.pool.creator_fees),
            open_time: case.pool.open_time,
            creator_fee_on: case.pool.creator_fee_on,
            enable_creator_fee: case.pool.enable_creator_fee,
            ..blank_pool()
        },
        config: config(
            case.config.trade_fee_rate,
            case.config.protocol_fee_rate,
            case.config.fund_fee_rate,
            case.config.creator_fee_rate,
        ),
        vault_amounts: PerToken::new(number(&case.token0.vault), number(&case.token1.vault)),
        vaults_frozen: false,
        mints: PerToken::new(mint(&case.token0), mint(&case.token1)),
    }
}

fn mint(token: &CaseToken) -> Mint {
    let fee = |fee: &CaseFee| TransferFee {
        epoch: fee.epoch,
        maximum_fee: number(&fee.maximum_fee),
        basis_points: fee.basis_points,
    };
    Mint {
        transfer_fee: token.transfer_fee.as_ref().map(|config| TransferFeeConfig {
            older: fee(&config.older),
            newer: fee(&config.newer),
        }),
        ..Mint::plain(6, u64::MAX)
    }
}

fn blank_pool() -> PoolState {
    let none = Pubkey::default();
    PoolState {
        amm_config: none,
        pool_creator: none,
        vaults: PerToken::default(),
        lp_mint: none,
        mints: PerToken::default(),
        token_programs: PerToken::new(ids::SPL_TOKEN, ids::SPL_TOKEN),
        observation: none,
        auth_bump: ids::AUTHORITY_BUMP,
        status: 0,
        lp_mint_decimals: 9,
        mint_decimals: PerToken::new(6, 6),
        lp_supply: 0,
        protocol_fees: PerToken::default(),
        fund_fees: PerToken::default(),
        open_time: 0,
        recent_epoch: 0,
        creator_fee_on: 0,
        enable_creator_fee: false,
        creator_fees: PerToken::default(),
    }
}

fn config(trade: u64, protocol: u64, fund: u64, creator: u64) -> AmmConfig {
    AmmConfig {
        bump: 0,
        disable_create_pool: false,
        index: 0,
        trade_fee_rate: FeeRate(trade),
        protocol_fee_rate: FeeRate(protocol),
        fund_fee_rate: FeeRate(fund),
        create_pool_fee: 0,
        protocol_owner: Pubkey::default(),
        fund_owner: Pubkey::default(),
        creator_fee_rate: FeeRate(creator),
    }
}

#[test]
fn executed_swaps_are_quoted_to_the_unit_and_refused_with_the_same_code() {
    let cases: Vec<Case> = serde_json::from_str(EXECUTED).expect("test data");
    assert_eq!(cases.len(), 3_000);
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        if let Err(difference) = compare(case) {
            wrong.push(format!("case {index}: {difference}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn compare(case: &Case) -> Result<(), String> {
    let state = snapshot(case);
    let direction = if case.zero_for_one {
        Direction::ZeroForOne
    } else {
        Direction::OneForZero
    };
    let clock = Clock {
        epoch: case.clock.epoch,
        unix_timestamp: case.clock.unix_timestamp,
    };
    let quote = state.quote_exact_in(direction, number(&case.amount_in), &clock);
    match (&case.result, quote) {
        (CaseResult::ErrorCode(code), Err(refusal)) => {
            expect("code", refusal.exchange_code(), Some(*code))
        }
        (CaseResult::ErrorCode(code), Ok(quote)) => {
            let below = quote.received < number(&case.minimum_amount_out);
            expect("code", below.then_some(EXCEEDED_SLIPPAGE), Some(*code))
        }
        (CaseResult::Ok(_), Err(refusal)) => Err(format!("refused: {refusal}")),
        (CaseResult::Ok(ok), Ok(quote)) => {
            expect("received", quote.received, number(&ok.received))?;
            let in_net = quote.amount_in - quote.input_transfer_fee;
            let vaults = &state.vault_amounts;
            expect(
                "input vault",
                direction.input(vaults) + in_net,
                number(&ok.input_vault),
            )?;
            expect(
                "output vault",
                direction.output(vaults) - quote.amount_out,
                number(&ok.output_vault),
            )?;
            let booked = |before: PerToken<u64>, on_input: bool, fee: u64| {
                let on_0 = on_input == case.zero_for_one;
                PerToken::new(
                    before.token_0 + if on_0 { fee } else { 0 },
                    before.token_1 + if on_0 { 0 } else { fee },
                )
            };
            let pool = &state.pool;
            expect(
                "protocol fees",
                booked(pool.protocol_fees, true, quote.protocol_fee),
                pair(&ok.protocol_fees),
            )?;
            expect(
                "fund fees",
                booked(pool.fund_fees, true, quote.fund_fee),
                pair(&ok.fund_fees),
            )?;
            expect(
                "creator fees",
                booked(
                    pool.creator_fees,
                    quote.creator_fee_on_input,
                    quote.creator_fee,
                ),
                pair(&ok.creator_fees),
            )
        }
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, chain: T) -> Result<(), String> {
    if ours == chain {
        return Ok(());
    }
    Err(format!("{what}: ours {ours:?}, the chain's {chain:?}"))
}

#[derive(Deserialize)]
struct Mainnet {
    vectors: Vec<MainnetVector>,
}

#[derive(Deserialize)]
struct MainnetVector {
    name: String,
    reserve_in: String,
    reserve_out: String,
    amount_in_net: String,
    trade_fee_rate: String,
    trade_fee: String,
    out_gross: String,
}

#[test]
fn mainnet_events_are_reproduced() {
    let mainnet: Mainnet = serde_json::from_str(MAINNET).expect("test data");
    assert_eq!(mainnet.vectors.len(), 4);
    for vector in &mainnet.vectors {
        let state = PoolSnapshot {
            pool: blank_pool(),
            config: config(number(&vector.trade_fee_rate), 120_000, 40_000, 0),
            vault_amounts: PerToken::new(number(&vector.reserve_in), number(&vector.reserve_out)),
            vaults_frozen: false,
            mints: PerToken::new(Mint::plain(6, u64::MAX), Mint::plain(6, u64::MAX)),
        };
        let quote = state
            .quote_exact_in(
                Direction::ZeroForOne,
                number(&vector.amount_in_net),
                &Clock::default(),
            )
            .expect("executed on mainnet");
        assert_eq!(
            quote.amount_out,
            number(&vector.out_gross),
            "{}",
            vector.name
        );
        assert_eq!(
            quote.trade_fee,
            number(&vector.trade_fee),
            "{}",
            vector.name
        );
    }
}

#[test]
fn a_pool_that_opens_later_says_when() {
    let mut state = PoolSnapshot {
        pool: blank_pool(),
        config: config(2_500, 0, 0, 0),
        vault_amounts: PerToken::new(1_000, 1_000),
        vaults_frozen: false,
        mints: PerToken::new(Mint::plain(6, 1), Mint::plain(6, 1)),
    };
    state.pool.open_time = 100;
    let at = |unix_timestamp| {
        state.quote_exact_in(
            Direction::ZeroForOne,
            100,
            &Clock {
                epoch: 0,
                unix_timestamp,
            },
        )
    };
    assert_eq!(at(99), Err(Refusal::NotOpenYet { open_time: 100 }));
    assert!(at(100).is_ok());
}
