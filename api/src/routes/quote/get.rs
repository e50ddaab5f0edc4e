//! `GET /v1/quote`: prices an amount in every pool of two mints and answers the best.

use axum::extract::{RawQuery, State};
use cpmm::BasisPoints;
use sluice_market::{Market, QuoteCommitment};
use sluice_transaction::PlatformRate;
use utoipa::ToSchema;

use super::{
    response::QuoteResponse,
    wire::{
        Bound, DEFAULT_SLIPPAGE, Quote, SwapModeName, Texts, parse_platform_rate, parse_slippage,
    },
};
use crate::{
    error::{ApiError, ProblemBody},
    extract::{Address, Amount, Pools, PoolsText, PositiveAmount, QueryMap, parse_pubkey},
    pricing::{Ask, SwapMode, Unpriced, best_route},
    state::AppState,
};

/// Every parameter of this endpoint.
pub(super) const PARAMETERS: [&str; 11] = [
    "inputMint",
    "outputMint",
    "amount",
    "slippageBps",
    "swapMode",
    "maxHops",
    "pool",
    "maxPriceImpactBps",
    "platformFeeBps",
    "feeWallet",
    "commitment",
];

/// Values of the parameter `commitment`.
#[derive(Clone, Copy, Debug, ToSchema)]
#[schema(
    as = Commitment,
    rename_all = "camelCase",
    description = "Commitment of the state that a quote is made from."
)]
pub enum CommitmentParameter {
    /// The newest complete slot.
    Processed,
    /// The newest slot that a supermajority voted for.
    Confirmed,
}

impl From<CommitmentParameter> for QuoteCommitment {
    fn from(parameter: CommitmentParameter) -> Self {
        match parameter {
            CommitmentParameter::Processed => Self::Processed,
            CommitmentParameter::Confirmed => Self::Confirmed,
        }
    }
}

/// A quote: what the exchange pays for an amount, now
///
/// The two mints and the amount are required; the best pool of the two mints is
/// chosen unless `pool` names one; `minimumOut` is `outAmount` less the slippage, rounded down; the
/// answer is true for one slot, which it names. With `swapMode=ExactOut` the amount is what comes out: `outAmount` and
/// `minimumOut` are it, `amountIn` is the most that may be spent, which is `context.expectedIn` and the slippage, rounded
/// up. With `maxHops=2` routes of two pools are considered, and taken where they pay more or where no pool has both mints;
/// `pool` then names both, joined by a comma, which is what the swap endpoints take. With `platformFeeBps` that part of
/// `amountIn`, rounded down, is a platform's (`context.platformFee`), and the rest is quoted; for an exact output
/// `amountIn` is rounded up so that the rest suffices. `commitment` is `processed` (the default), the newest
/// complete slot, or `confirmed`, the newest that a supermajority voted for.
#[utoipa::path(
    get,
    path = "/v1/quote",
    tag = "quote",
    operation_id = "getQuote",
    params(
        ("inputMint" = Address, Query, description = "Mint that goes in."),
        ("outputMint" = Address, Query, description = "Mint that comes out; another one."),
        ("amount" = PositiveAmount, Query, description = "What goes in, or with ExactOut comes out, smallest units; above 0."),
        ("slippageBps" = Option<u16>, Query, maximum = 10_000, description = "Default 50."),
        ("swapMode" = Option<SwapModeName>, Query, description = "Which amount is fixed. Default ExactIn."),
        ("maxHops" = Option<u8>, Query, minimum = 1, maximum = 2, description = "The most pools in a row. Default 1; with ExactOut only 1."),
        ("pool" = Option<PoolsText>, Query, description = "The only pool to consider; with maxHops=2 also two of them."),
        ("maxPriceImpactBps" = Option<u16>, Query, maximum = 10_000, description = "The most that the amount may move the price, fees excluded; beyond, the answer is price_impact_too_high. Default no limit."),
        ("platformFeeBps" = Option<u16>, Query, maximum = 9_999, description = "What of all that the user pays a platform gets before the swap. Default none."),
        ("feeWallet" = Option<Address>, Query, description = "The platform's wallet, as the swap endpoints take it; it changes nothing about a quote."),
        ("commitment" = Option<CommitmentParameter>, Query, description = "Default processed."),
    ),
    responses(
        (status = 200, description = "The quote, and what it is made of.", body = QuoteResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn get(
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<QuoteResponse, ApiError> {
    answer(&state, query.as_deref().unwrap_or_default())
}

/// The quote that a query asks for.
///
/// # Errors
/// As the route: what is wrong with the query, or why there is no quote.
pub fn answer(state: &AppState, query: &str) -> Result<QuoteResponse, ApiError> {
    let asked = parse(query, state.program())?;
    quoted(state.market(), &asked)
}

/// What the parameters ask for.
pub(super) struct Asked {
    pub(super) ask: Ask,
    pub(super) slippage: BasisPoints,
    /// The mints as they were written, and the program of the exchange.
    texts: Texts,
}

/// The answer to an ask now.
pub(super) fn quoted(market: &Market, asked: &Asked) -> Result<QuoteResponse, ApiError> {
    let ask = &asked.ask;
    let priced = best_route(market, ask).map_err(|unpriced| match unpriced {
        Unpriced::MintMismatch { pools } => ApiError::UnknownPool {
            pool: pools.to_string(),
        },
        Unpriced::Refused(refusal) => refusal,
    })?;
    let bound = Bound::with_slippage(&priced, asked.slippage);
    let quote = Quote::with_texts(asked.texts, &priced, bound);
    Ok(QuoteResponse::new(
        &priced,
        quote,
        asked.slippage,
        ask.commitment,
    ))
}

fn parse(query: &str, program: Address) -> Result<Asked, ApiError> {
    read(&QueryMap::parse(query, &PARAMETERS)?, program)
}

/// What the parameters ask for, of the exchange with this program.
pub(super) fn read(query: &QueryMap, program: Address) -> Result<Asked, ApiError> {
    let amount =
        |name: &str, text: &str| Amount::parse(text).map_err(|rule| ApiError::invalid(name, rule));
    let mint = |name: &'static str| Address::parse(name, query.require(name)?);
    let (input, input_mint) = mint("inputMint")?;
    let (output, output_mint) = mint("outputMint")?;
    let ask = Ask {
        input_mint: input,
        output_mint: output,
        amount: cpmm::Amount::new(amount("amount", query.require("amount")?)?.0),
        mode: SwapModeName::parse("swapMode", query.get("swapMode"))?.into(),
        pools: query
            .get("pool")
            .map(|pools| Pools::parse("pool", pools))
            .transpose()?,
        two_hops: two_hops(query.get("maxHops"))?,
        before_opening: false,
        max_price_impact: query
            .get("maxPriceImpactBps")
            .map(|text| parse_slippage("maxPriceImpactBps", amount("maxPriceImpactBps", text)?))
            .transpose()?,
        platform_rate: platform_rate(query)?,
        commitment: commitment(query.get("commitment"))?.into(),
    };
    if ask.input_mint == ask.output_mint {
        return Err(ApiError::invalid(
            "outputMint",
            "must differ from inputMint",
        ));
    }
    if ask.amount == cpmm::Amount::ZERO {
        return Err(ApiError::invalid("amount", "must be at least 1"));
    }
    check_hops(&ask)?;
    let slippage = match query.get("slippageBps") {
        Some(text) => amount("slippageBps", text)?,
        None => Amount(u64::from(DEFAULT_SLIPPAGE)),
    };
    Ok(Asked {
        ask,
        slippage: parse_slippage("slippageBps", slippage)?,
        texts: Texts {
            input_mint,
            output_mint,
            program,
        },
    })
}

/// The wallet changes nothing about a quote; it is read so that a client can ask with the fields of its swap.
fn platform_rate(query: &QueryMap) -> Result<Option<PlatformRate>, ApiError> {
    const FIELD: &str = "platformFeeBps";
    if let Some(wallet) = query.get("feeWallet") {
        parse_pubkey("feeWallet", wallet)?;
        query.require(FIELD)?;
    }
    let parse = |text: &str| {
        let amount = Amount::parse(text).map_err(|rule| ApiError::invalid(FIELD, rule))?;
        parse_platform_rate(amount)
    };
    query.get(FIELD).map(parse).transpose()
}

fn two_hops(text: Option<&str>) -> Result<bool, ApiError> {
    match text {
        None | Some("1") => Ok(false),
        Some("2") => Ok(true),
        Some(_) => Err(ApiError::invalid("maxHops", "must be 1 or 2")),
    }
}

/// The guard has no exact output through two pools.
fn check_hops(ask: &Ask) -> Result<(), ApiError> {
    let two_named = matches!(ask.pools, Some(Pools::Two(..)));
    if ask.mode == SwapMode::ExactOut && (ask.two_hops || two_named) {
        let fault = "ExactOut goes through one pool; leave maxHops out, or ask with ExactIn";
        return Err(ApiError::invalid("maxHops", fault));
    }
    if two_named && !ask.two_hops {
        let fault = "names two pools; ask with maxHops=2, or name one";
        return Err(ApiError::invalid("pool", fault));
    }
    Ok(())
}

fn commitment(text: Option<&str>) -> Result<CommitmentParameter, ApiError> {
    match text {
        None | Some("processed") => Ok(CommitmentParameter::Processed),
        Some("confirmed") => Ok(CommitmentParameter::Confirmed),
        Some(_) => Err(ApiError::invalid(
            "commitment",
            "must be processed or confirmed",
        )),
    }
}

#[cfg(test)]
mod tests {
    use cpmm::ids::PROGRAM_ID;

    use super::*;

    const A: &str = "So11111111111111111111111111111111111111112";
    const B: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

    fn parse(query: &str) -> Result<Asked, ApiError> {
        super::parse(query, Address::new(&PROGRAM_ID))
    }

    fn code(query: &str) -> Result<(), &'static str> {
        parse(query).map(|_| ()).map_err(|error| error.code())
    }

    #[test]
    fn the_three_parameters_suffice_and_slippage_defaults_to_half_a_percent() {
        let Asked { ask, slippage, .. } = parse(&format!(
            "inputMint={A}&outputMint={B}&amount=18446744073709551615"
        ))
        .expect("valid");
        assert_eq!((ask.amount.get(), slippage.get()), (u64::MAX, 50));
        assert_eq!(
            (ask.pools, ask.mode, ask.two_hops),
            (None, SwapMode::ExactIn, false)
        );
    }

    #[test]
    fn rejects_what_it_cannot_use() {
        let with = |rest: &str| code(&format!("inputMint={A}&outputMint={B}&{rest}"));
        assert_eq!(with("amount=1&slippageBps=10000"), Ok(()));
        assert_eq!(with("amount=1&slippageBps=10001"), Err("invalid_field"));
        assert_eq!(with("amount=1&maxPriceImpactBps=0"), Ok(()));
        let beyond = "amount=1&maxPriceImpactBps=10001";
        assert_eq!(with(beyond), Err("invalid_field"));
        assert_eq!(with("amount=1&commitment=confirmed"), Ok(()));
        assert_eq!(with("amount=1&commitment=finalized"), Err("invalid_field"));
        assert_eq!(with("amount=1&swapMode=ExactOut"), Ok(()));
        assert_eq!(with("amount=1&swapMode=exactOut"), Err("invalid_field"));
        assert_eq!(with("amount=1&platformFeeBps=9999"), Ok(()));
        let whole = "amount=1&platformFeeBps=10000";
        assert_eq!(with(whole), Err("invalid_field"));
        let to = format!("amount=1&feeWallet={A}");
        assert_eq!(with(&to), Err("missing_field"));
        assert_eq!(with(&format!("{to}&platformFeeBps=1")), Ok(()));
        assert_eq!(with("amount=1&maxHops=2"), Ok(()));
        assert_eq!(with("amount=1&maxHops=3"), Err("invalid_field"));
        let both = "amount=1&maxHops=2&swapMode=ExactOut";
        assert_eq!(with(both), Err("invalid_field"));
        assert_eq!(with(&format!("amount=1&maxHops=2&pool={A},{B}")), Ok(()));
        let unasked = format!("amount=1&pool={A},{B}");
        assert_eq!(with(&unasked), Err("invalid_field"));
        assert_eq!(with("amount=0"), Err("invalid_field"));
        assert_eq!(with("amount=1.5"), Err("invalid_field"));
        assert_eq!(with("amount=1e3"), Err("invalid_field"));
        assert_eq!(with("amount=-1"), Err("invalid_field"));
        assert_eq!(with("amount=18446744073709551616"), Err("invalid_field"));
        assert_eq!(with(""), Err("missing_field"));
        assert_eq!(with("amount=1&slipageBps=1"), Err("unknown_field"));
        assert_eq!(with("amount=1&pool=xyz"), Err("invalid_field"));
        let same = format!("inputMint={A}&outputMint={A}&amount=1");
        assert_eq!(code(&same), Err("invalid_field"));
    }
}
