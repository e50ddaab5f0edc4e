//! Quote of a swap request: what is asked for, and what bounds it.

use cpmm::BasisPoints;
use serde::Deserialize;
use sluice_market::QuoteCommitment;
use utoipa::ToSchema;

use super::{WantedBound, missing, required};
use crate::{
    error::{ApiError, SwapRefusal},
    extract::{Address, Amount, Pools, PoolsText, PositiveAmount, parse_pubkey},
    pricing::{Ask, SwapMode},
    routes::quote::{DEFAULT_SLIPPAGE, parse_slippage},
};

/// A quote as `/v1/quote` answered it, or, without `pool`, the wish for one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct QuoteInput {
    /// All that the user pays, or with `ExactOut` the most that this may be. Only with `ExactOut` and without `pool` it may be absent.
    #[schema(value_type = Option<PositiveAmount>)]
    amount_in: Option<Amount>,
    #[schema(required, nullable = false, value_type = Address)]
    input_mint: Option<String>,
    #[schema(required, nullable = false, value_type = Address)]
    output_mint: Option<String>,
    /// What the chain enforces, as it stands. Above 0, and at most `outAmount`; with `ExactOut` the same.
    #[schema(value_type = Option<PositiveAmount>)]
    minimum_out: Option<Amount>,
    /// What is expected to arrive, or with `ExactOut` what must: there it is required.
    out_amount: Option<Amount>,
    /// One pool, or both of two hops.
    #[schema(value_type = Option<PoolsText>)]
    pool: Option<String>,
    #[schema(value_type = Option<Address>)]
    pub(super) program: Option<String>,
    /// 0 to 10,000. Without `pool` the slippage of the quote that is generated, if it has no bound of its own; with `pool`
    /// only for `ExactOut` under `refresh`, whose fresh maximum it makes.
    slippage_bps: Option<Amount>,
}

impl QuoteInput {
    /// Whether it is a whole quote, and no wish for one.
    pub(super) const fn is_pinned(&self) -> bool {
        self.pool.is_some()
    }

    pub(super) fn ask(
        &self,
        mode: SwapMode,
        max_price_impact: Option<BasisPoints>,
    ) -> Result<Ask, ApiError> {
        let mint = |field, text: Option<&String>| parse_pubkey(field, required(field, text)?);
        if self.amount_in == Some(Amount(0)) {
            return Err(ApiError::invalid("quote.amountIn", "must be at least 1"));
        }
        let amount = match mode {
            SwapMode::ExactIn => required("quote.amountIn", self.amount_in)?,
            SwapMode::ExactOut => required("quote.outAmount", self.out_amount)?,
        };
        if amount == Amount(0) {
            return Err(ApiError::invalid("quote.outAmount", "must be at least 1"));
        }
        let ask = Ask {
            commitment: QuoteCommitment::default(),
            input_mint: mint("quote.inputMint", self.input_mint.as_ref())?,
            output_mint: mint("quote.outputMint", self.output_mint.as_ref())?,
            amount: cpmm::Amount::new(amount.0),
            mode,
            platform_rate: None,
            pools: self
                .pool
                .as_deref()
                .map(|pools| Pools::parse("quote.pool", pools))
                .transpose()?,
            two_hops: false,
            before_opening: true,
            max_price_impact,
        };
        if ask.input_mint == ask.output_mint {
            return Err(ApiError::invalid(
                "quote.outputMint",
                "must differ from quote.inputMint",
            ));
        }
        if mode == SwapMode::ExactOut && matches!(ask.pools, Some(Pools::Two(..))) {
            let fault = "names two pools, through which there is no ExactOut; name one";
            return Err(ApiError::invalid("quote.pool", fault));
        }
        Ok(ask)
    }

    /// A quote with a pool carries its bound; without one, the bound may be given or derived.
    pub(super) fn bound(&self, mode: SwapMode, refresh: bool) -> Result<WantedBound, ApiError> {
        match mode {
            SwapMode::ExactIn => {
                let bound = self.minimum()?;
                let unquoted = matches!(
                    bound,
                    WantedBound::Minimum {
                        out_amount: None,
                        ..
                    }
                );
                if refresh && unquoted {
                    return Err(missing("quote.outAmount"));
                }
                Ok(bound)
            }
            SwapMode::ExactOut => self.maximum(refresh),
        }
    }

    fn minimum(&self) -> Result<WantedBound, ApiError> {
        let pinned = self.is_pinned();
        match (self.minimum_out, self.slippage_bps) {
            (_, Some(_)) if pinned => Err(ApiError::invalid(
                "quote.slippageBps",
                "is not part of a quote; the quote's minimumOut says what is enforced",
            )),
            (Some(_), Some(_)) => Err(ApiError::invalid(
                "quote.slippageBps",
                "says the same as quote.minimumOut; give one of them",
            )),
            (Some(Amount(0)), None) => Err(SwapRefusal::MinimumOutOfRange {
                fault: "is 0, which would guard nothing; give the least that may arrive",
            }
            .into()),
            (Some(minimum), None) if self.out_amount.is_some_and(|out| minimum.0 > out.0) => {
                Err(SwapRefusal::MinimumOutOfRange {
                    fault: "is above quote.outAmount, which no swap would reach",
                }
                .into())
            }
            (Some(minimum), None) => Ok(WantedBound::Minimum {
                minimum_out: minimum.0,
                out_amount: self.out_amount.map(|amount| amount.0),
            }),
            (None, _) if pinned => Err(missing("quote.minimumOut")),
            (None, _) => self.slippage().map(WantedBound::Slippage),
        }
    }

    fn maximum(&self, refresh: bool) -> Result<WantedBound, ApiError> {
        if self.minimum_out.is_some() && self.minimum_out != self.out_amount {
            return Err(SwapRefusal::MinimumOutOfRange {
                fault: "differs from quote.outAmount, which with ExactOut is what must arrive",
            }
            .into());
        }
        match self.amount_in {
            Some(_) if refresh && self.slippage_bps.is_none() => Err(missing("quote.slippageBps")),
            Some(most) => Ok(WantedBound::Maximum {
                amount_in: most.0,
                slippage: self.slippage()?,
            }),
            None if self.is_pinned() => Err(missing("quote.amountIn")),
            None => self.slippage().map(WantedBound::Slippage),
        }
    }

    fn slippage(&self) -> Result<BasisPoints, ApiError> {
        let slippage = self
            .slippage_bps
            .unwrap_or(Amount(u64::from(DEFAULT_SLIPPAGE)));
        parse_slippage("quote.slippageBps", slippage)
    }
}
