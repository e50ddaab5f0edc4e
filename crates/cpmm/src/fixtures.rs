//! Test fixtures: accounts as a new pool has them, and swaps that the real program executed.
//!
//! Behind the feature `fixtures`, for the tests of this crate and of those that run the exchange.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, de::Error};
use solana_pubkey::Pubkey;

use crate::{
    AmmConfig, Amount, Clock, Direction, ExactInQuote, ExactOutQuote, FeeRate, Mint, PerToken,
    PoolSnapshot, PoolState, Refusal, TokenProgram, TransferFee, TransferFeeConfig, ids,
};

/// Custom error of the exchange for an output below the caller's minimum.
const EXCEEDED_SLIPPAGE: u32 = 6005;

const EXECUTED: &str = include_str!("../tests/data/cpmm-executed.json");

/// Fee configuration 0 with the rates that the exchange publishes for it.
#[must_use]
pub fn published_config() -> AmmConfig {
    AmmConfig {
        bump: 0,
        disable_create_pool: false,
        index: 0,
        trade_fee_rate: FeeRate(2_500),
        protocol_fee_rate: FeeRate(120_000),
        fund_fee_rate: FeeRate(40_000),
        create_pool_fee: 150_000_000,
        protocol_owner: Pubkey::default(),
        fund_owner: Pubkey::default(),
        creator_fee_rate: FeeRate(500),
    }
}

/// A pool that is open, takes no creator fee, has no fees booked, and names no accounts.
#[must_use]
pub fn blank_pool() -> PoolState {
    PoolState {
        amm_config: Pubkey::default(),
        pool_creator: Pubkey::default(),
        vaults: PerToken::default(),
        lp_mint: Pubkey::default(),
        mints: PerToken::default(),
        token_programs: PerToken::new(ids::SPL_TOKEN, ids::SPL_TOKEN),
        observation: Pubkey::default(),
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

/// The 3,000 calls of `swap_base_input` that the official program, compiled to SBF, executed.
///
/// # Panics
/// When the file is not what this module describes.
#[must_use]
pub fn executed_swaps() -> Vec<ExecutedSwap> {
    serde_json::from_str(EXECUTED).expect("the file is part of this crate")
}

/// Compute units of each of [`executed_swaps`] that paid, in their order: of a build that divides 128 bits bit by bit,
/// so of no other.
///
/// # Panics
/// As [`executed_swaps`].
#[must_use]
pub fn executed_compute_units() -> Vec<Option<u32>> {
    #[derive(Deserialize)]
    struct Executed {
        result: Ended,
    }
    #[derive(Deserialize)]
    struct Ended {
        ok: Option<Units>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Units {
        compute_units: u32,
    }
    let executed: Vec<Executed> =
        serde_json::from_str(EXECUTED).expect("the file is part of this crate");
    executed
        .into_iter()
        .map(|swap| swap.result.ok.map(|paid| paid.compute_units))
        .collect()
}

/// One executed call with its whole input state. Amounts are smallest units.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutedSwap {
    /// What the caller offered.
    #[serde(deserialize_with = "number")]
    pub amount_in: u64,
    /// The least the caller accepted.
    #[serde(deserialize_with = "number")]
    pub minimum_amount_out: u64,
    /// Whether token 0 went in.
    zero_for_one: bool,
    clock: ChainTime,
    config: Rates,
    pool: Pool,
    token0: Token,
    token1: Token,
    /// What the program did.
    pub result: Outcome,
}

/// What the program did, without the compute units, which hold for one build of it only.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It paid.
    #[serde(rename_all = "camelCase")]
    Ok {
        /// What the user received.
        #[serde(deserialize_with = "number")]
        received: u64,
        /// The input vault's balance afterwards.
        #[serde(deserialize_with = "number")]
        input_vault: u64,
        /// The output vault's balance afterwards.
        #[serde(deserialize_with = "number")]
        output_vault: u64,
        /// Protocol fees booked afterwards.
        #[serde(deserialize_with = "pair")]
        protocol_fees: PerToken<u64>,
        /// Fund fees booked afterwards.
        #[serde(deserialize_with = "pair")]
        fund_fees: PerToken<u64>,
        /// Creator fees booked afterwards.
        #[serde(deserialize_with = "pair")]
        creator_fees: PerToken<u64>,
    },
    /// It refused with this custom program error.
    ErrorCode(u32),
}

impl Outcome {
    /// What follows from a quote for the caller's minimum; `None` for a refusal that has no error code
    /// of the exchange.
    #[must_use]
    pub fn predicted(
        state: &PoolSnapshot,
        direction: Direction,
        quote: Result<ExactInQuote, Refusal>,
        minimum_amount_out: u64,
    ) -> Option<Self> {
        let quote = match quote {
            Err(refusal) => return refusal.exchange_code().map(Self::ErrorCode),
            Ok(quote) if quote.received.get() < minimum_amount_out => {
                return Some(Self::ErrorCode(EXCEEDED_SLIPPAGE));
            }
            Ok(quote) => quote,
        };
        let moved = Moved {
            in_net: quote.amount_in.saturating_sub(quote.input_transfer_fee),
            amount_out: quote.amount_out,
            received: quote.received,
            protocol_fee: quote.protocol_fee,
            fund_fee: quote.fund_fee,
            creator_fee: quote.creator_fee,
            creator_fee_on_input: quote.creator_fee_on_input,
        };
        Some(moved.outcome(state, direction))
    }

    /// What follows from a quote of an exact output for the caller's maximum; `None` as above.
    #[must_use]
    pub fn predicted_exact_out(
        state: &PoolSnapshot,
        direction: Direction,
        quote: Result<ExactOutQuote, Refusal>,
        maximum_amount_in: u64,
    ) -> Option<Self> {
        let quote = match quote {
            Err(refusal) => return refusal.exchange_code().map(Self::ErrorCode),
            Ok(quote) if quote.amount_in.get() > maximum_amount_in => {
                return Some(Self::ErrorCode(EXCEEDED_SLIPPAGE));
            }
            Ok(quote) => quote,
        };
        let moved = Moved {
            in_net: quote.amount_in.saturating_sub(quote.input_transfer_fee),
            amount_out: quote.amount_out,
            received: quote.received,
            protocol_fee: quote.protocol_fee,
            fund_fee: quote.fund_fee,
            creator_fee: quote.creator_fee,
            creator_fee_on_input: quote.creator_fee_on_input,
        };
        Some(moved.outcome(state, direction))
    }
}

/// What a quote of either kind says that the accounts will show.
struct Moved {
    in_net: Amount,
    amount_out: Amount,
    received: Amount,
    protocol_fee: Amount,
    fund_fee: Amount,
    creator_fee: Amount,
    creator_fee_on_input: bool,
}

impl Moved {
    fn outcome(&self, state: &PoolSnapshot, direction: Direction) -> Outcome {
        let booked = |before: PerToken<u64>, on_input: bool, fee: Amount| {
            let on_0 = on_input == (direction == Direction::ZeroForOne);
            let add =
                |value: u64, here: bool| value.saturating_add(if here { fee.get() } else { 0 });
            PerToken::new(add(before.token_0, on_0), add(before.token_1, !on_0))
        };
        let (pool, vaults) = (&state.pool, &state.vault_amounts);
        Outcome::Ok {
            received: self.received.get(),
            input_vault: direction
                .input(vaults)
                .get()
                .saturating_add(self.in_net.get()),
            output_vault: direction
                .output(vaults)
                .saturating_sub(self.amount_out)
                .get(),
            protocol_fees: booked(pool.protocol_fees, true, self.protocol_fee),
            fund_fees: booked(pool.fund_fees, true, self.fund_fee),
            creator_fees: booked(
                pool.creator_fees,
                self.creator_fee_on_input,
                self.creator_fee,
            ),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChainTime {
    epoch: u64,
    unix_timestamp: i64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rates {
    trade_fee_rate: u64,
    protocol_fee_rate: u64,
    fund_fee_rate: u64,
    creator_fee_rate: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pool {
    creator_fee_on: u8,
    enable_creator_fee: bool,
    status: u8,
    open_time: u64,
    #[serde(deserialize_with = "pair")]
    protocol_fees: PerToken<u64>,
    #[serde(deserialize_with = "pair")]
    fund_fees: PerToken<u64>,
    #[serde(deserialize_with = "pair")]
    creator_fees: PerToken<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Token {
    program: Program,
    transfer_fee: Option<Schedules>,
    #[serde(deserialize_with = "number")]
    vault: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Program {
    #[serde(rename = "spl-token")]
    Spl,
    #[serde(rename = "token-2022")]
    Token2022,
}

#[derive(Debug, Deserialize)]
struct Schedules {
    older: Schedule,
    newer: Schedule,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Schedule {
    epoch: u64,
    #[serde(deserialize_with = "number")]
    maximum_fee: u64,
    basis_points: u16,
}

impl ExecutedSwap {
    /// The pool with all that the swap depended on. Addresses are blank but for the token programs.
    #[must_use]
    pub fn snapshot(&self) -> PoolSnapshot {
        PoolSnapshot {
            pool: Arc::new(PoolState {
                token_programs: PerToken::new(self.token0.program(), self.token1.program()),
                status: self.pool.status,
                protocol_fees: self.pool.protocol_fees,
                fund_fees: self.pool.fund_fees,
                open_time: self.pool.open_time,
                creator_fee_on: self.pool.creator_fee_on,
                enable_creator_fee: self.pool.enable_creator_fee,
                creator_fees: self.pool.creator_fees,
                ..blank_pool()
            }),
            config: Arc::new(AmmConfig {
                trade_fee_rate: FeeRate(self.config.trade_fee_rate),
                protocol_fee_rate: FeeRate(self.config.protocol_fee_rate),
                fund_fee_rate: FeeRate(self.config.fund_fee_rate),
                creator_fee_rate: FeeRate(self.config.creator_fee_rate),
                ..published_config()
            }),
            vault_amounts: PerToken::new(
                Amount::new(self.token0.vault),
                Amount::new(self.token1.vault),
            ),
            vaults_frozen: false,
            mints: PerToken::new(Arc::new(self.token0.mint()), Arc::new(self.token1.mint())),
        }
    }

    /// Which token went in.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        if self.zero_for_one {
            Direction::ZeroForOne
        } else {
            Direction::OneForZero
        }
    }

    /// The chain's time.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        Clock {
            epoch: self.clock.epoch,
            unix_timestamp: self.clock.unix_timestamp,
        }
    }
}

impl Token {
    fn program(&self) -> Pubkey {
        match self.program {
            Program::Spl => TokenProgram::Spl.id(),
            Program::Token2022 => TokenProgram::Token2022.id(),
        }
    }

    fn mint(&self) -> Mint {
        let schedule = |schedule: &Schedule| TransferFee {
            epoch: schedule.epoch,
            maximum_fee: schedule.maximum_fee,
            basis_points: schedule.basis_points,
        };
        Mint {
            transfer_fee: self.transfer_fee.as_ref().map(|fees| TransferFeeConfig {
                older: schedule(&fees.older),
                newer: schedule(&fees.newer),
            }),
            ..Mint::plain(6, u64::MAX)
        }
    }
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(D::Error::custom)
}

fn pair<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PerToken<u64>, D::Error> {
    let [token_0, token_1] = <[String; 2]>::deserialize(deserializer)?;
    let parse = |text: String| text.parse().map_err(D::Error::custom);
    Ok(PerToken::new(parse(token_0)?, parse(token_1)?))
}
