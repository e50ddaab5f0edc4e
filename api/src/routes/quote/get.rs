//! `GET /v1/quote`: prices an amount in every pool of two mints and answers the best.

use axum::extract::{RawQuery, State};
use cpmm::BasisPoints;
use sluice_market::QuoteCommitment;
use utoipa::ToSchema;

use super::{
    response::QuoteResponse,
    wire::{DEFAULT_SLIPPAGE, parse_slippage},
};
use crate::{
    error::{ApiError, ProblemBody},
    extract::{Address, Amount, PositiveAmount, QueryMap, parse_pubkey},
    pricing::{Ask, Unpriced, best_pool},
    state::AppState,
};

/// Every parameter of this endpoint.
const PARAMETERS: [&str; 6] = [
    "inputMint",
    "outputMint",
    "amount",
    "slippageBps",
    "pool",
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
/// answer is true for one slot, which it names. `commitment` is `processed` (the default), the newest
/// complete slot, or `confirmed`, the newest that a supermajority voted for.
#[utoipa::path(
    get,
    path = "/v1/quote",
    tag = "quote",
    params(
        ("inputMint" = Address, Query, description = "Mint that goes in."),
        ("outputMint" = Address, Query, description = "Mint that comes out; another one."),
        ("amount" = PositiveAmount, Query, description = "What goes in, smallest units; above 0."),
        ("slippageBps" = Option<u16>, Query, maximum = 10_000, description = "Default 50."),
        ("pool" = Option<Address>, Query, description = "The only pool to consider."),
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
    let (ask, slippage) = parse(query.as_deref().unwrap_or_default())?;
    let priced = best_pool(state.market(), &ask).map_err(|unpriced| match unpriced {
        Unpriced::MintMismatch { pool } => ApiError::UnknownPool {
            pool: pool.to_string(),
        },
        Unpriced::Refused(refusal) => refusal,
    })?;
    Ok(QuoteResponse::new(&priced, slippage, ask.commitment))
}

fn parse(query: &str) -> Result<(Ask, BasisPoints), ApiError> {
    let query = QueryMap::parse(query, &PARAMETERS)?;
    let amount =
        |name: &str, text: &str| Amount::parse(text).map_err(|rule| ApiError::invalid(name, rule));
    let ask = Ask {
        input_mint: parse_pubkey("inputMint", query.require("inputMint")?)?,
        output_mint: parse_pubkey("outputMint", query.require("outputMint")?)?,
        amount_in: cpmm::Amount::new(amount("amount", query.require("amount")?)?.0),
        pool: query
            .get("pool")
            .map(|pool| parse_pubkey("pool", pool))
            .transpose()?,
        commitment: commitment(query.get("commitment"))?.into(),
    };
    if ask.input_mint == ask.output_mint {
        return Err(ApiError::invalid(
            "outputMint",
            "must differ from inputMint",
        ));
    }
    if ask.amount_in == cpmm::Amount::ZERO {
        return Err(ApiError::invalid("amount", "must be at least 1"));
    }
    let slippage = match query.get("slippageBps") {
        Some(text) => amount("slippageBps", text)?,
        None => Amount(u64::from(DEFAULT_SLIPPAGE)),
    };
    Ok((ask, parse_slippage("slippageBps", slippage)?))
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
    use super::*;

    const A: &str = "So11111111111111111111111111111111111111112";
    const B: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

    fn code(query: &str) -> Result<(), &'static str> {
        parse(query).map(|_| ()).map_err(|error| error.code())
    }

    #[test]
    fn the_three_parameters_suffice_and_slippage_defaults_to_half_a_percent() {
        let (ask, slippage) = parse(&format!(
            "inputMint={A}&outputMint={B}&amount=18446744073709551615"
        ))
        .expect("valid");
        assert_eq!((ask.amount_in.get(), slippage.get()), (u64::MAX, 50));
        assert_eq!(ask.pool, None);
    }

    #[test]
    fn rejects_what_it_cannot_use() {
        let with = |rest: &str| code(&format!("inputMint={A}&outputMint={B}&{rest}"));
        assert_eq!(with("amount=1&slippageBps=10000"), Ok(()));
        assert_eq!(with("amount=1&slippageBps=10001"), Err("invalid_field"));
        assert_eq!(with("amount=1&commitment=confirmed"), Ok(()));
        assert_eq!(with("amount=1&commitment=finalized"), Err("invalid_field"));
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
