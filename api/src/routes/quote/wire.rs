//! Quote object: the seven fields that every swap endpoint reads or answers.

use cpmm::{BasisPoints, maximum_in, minimum_out};
use serde::{Deserialize, Serialize};
use sluice_transaction::PlatformRate;
use utoipa::ToSchema;

use crate::{
    error::ApiError,
    extract::{Address, Amount, Digits, PoolsText},
    pricing::{Priced, SwapMode},
};

/// Slippage when the caller names none: half a percent.
pub const DEFAULT_SLIPPAGE: u16 = 50;

/// A quote, on the wire. These seven fields are the contract; whatever else is known about a quote
/// stands beside the object, never inside it. Amounts are smallest units, as JSON integers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quote {
    /// All that the user pays, a platform's fee included; for an exact output the most that this may be.
    pub amount_in: u64,
    /// Mint that goes in.
    pub input_mint: Address,
    /// The least that the guard lets the user receive; for an exact output the same as `outAmount`.
    pub minimum_out: u64,
    /// What the user receives if the pool does not move, net of every fee; for an exact output what is received.
    pub out_amount: u64,
    /// Mint that comes out.
    pub output_mint: Address,
    /// Pool that is traded with; of two hops both pools, joined by a comma.
    pub pool: PoolsText,
    /// Program that owns the pools.
    pub program: Address,
}

/// A quote's amounts as strings, for callers whose numbers are exact only up to 2^53. They stand beside the quote.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteAmounts)]
pub struct Amounts {
    amount_in: Digits,
    minimum_out: Digits,
    out_amount: Digits,
}

impl From<&Quote> for Amounts {
    fn from(quote: &Quote) -> Self {
        Self {
            amount_in: Digits(quote.amount_in),
            minimum_out: Digits(quote.minimum_out),
            out_amount: Digits(quote.out_amount),
        }
    }
}

/// What bounds a swap beside the amount that is fixed, smallest units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The least that may come out for an exact input.
    MinimumOut(u64),
    /// The most that the user may pay for an exact output, a platform's fee included.
    MaximumIn(u64),
}

impl Bound {
    /// The bound of a priced swap under a slippage allowance.
    #[must_use]
    pub fn with_slippage(priced: &Priced, slippage: BasisPoints) -> Self {
        match priced.mode() {
            // The guard refuses a minimum of zero, which would guard nothing.
            SwapMode::ExactIn => {
                Self::MinimumOut(minimum_out(priced.received(), slippage).get().max(1))
            }
            SwapMode::ExactOut => {
                let rest = maximum_in(priced.amount_in(), slippage).get();
                Self::MaximumIn(priced.paid_for(rest))
            }
        }
    }
}

/// The texts of addresses that a quote names and that are known before it: to make one takes as long as the price.
#[derive(Clone, Copy, Debug)]
pub struct Texts {
    /// Of the mint that goes in.
    pub input_mint: Address,
    /// Of the mint that comes out.
    pub output_mint: Address,
    /// Of the program.
    pub program: Address,
}

impl Quote {
    /// The quote of a priced swap under a bound.
    #[must_use]
    pub fn new(priced: &Priced, bound: Bound) -> Self {
        let texts = Texts {
            input_mint: Address::new(&priced.first.input_mint()),
            output_mint: Address::new(&priced.last().output_mint()),
            program: Address::new(&priced.exchange.program),
        };
        Self::with_texts(texts, priced, bound)
    }

    /// As [`Self::new`], where these texts are known.
    #[must_use]
    pub fn with_texts(texts: Texts, priced: &Priced, bound: Bound) -> Self {
        let received = priced.received().get();
        let (amount_in, minimum_out) = match bound {
            Bound::MinimumOut(minimum) => (priced.asked.get(), minimum),
            Bound::MaximumIn(maximum) => (maximum, received),
        };
        Self {
            amount_in,
            input_mint: texts.input_mint,
            minimum_out,
            out_amount: received,
            output_mint: texts.output_mint,
            pool: priced.pools().text(),
            program: texts.program,
        }
    }
}

/// Which amount of a swap is fixed, on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = SwapMode)]
pub enum SwapModeName {
    /// What goes in.
    #[default]
    ExactIn,
    /// What comes out.
    ExactOut,
}

impl SwapModeName {
    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ExactIn => "ExactIn",
            Self::ExactOut => "ExactOut",
        }
    }

    /// Parses the value of a query parameter.
    ///
    /// # Errors
    /// [`ApiError::InvalidField`] for any other.
    pub fn parse(field: &str, text: Option<&str>) -> Result<Self, ApiError> {
        match text {
            None | Some("ExactIn") => Ok(Self::ExactIn),
            Some("ExactOut") => Ok(Self::ExactOut),
            Some(_) => Err(ApiError::invalid(field, "must be ExactIn or ExactOut")),
        }
    }
}

impl From<SwapModeName> for SwapMode {
    fn from(name: SwapModeName) -> Self {
        match name {
            SwapModeName::ExactIn => Self::ExactIn,
            SwapModeName::ExactOut => Self::ExactOut,
        }
    }
}

impl From<SwapMode> for SwapModeName {
    fn from(mode: SwapMode) -> Self {
        match mode {
            SwapMode::ExactIn => Self::ExactIn,
            SwapMode::ExactOut => Self::ExactOut,
        }
    }
}

/// Parses the rate of a platform's fee in basis points.
///
/// # Errors
/// [`ApiError::InvalidField`] outside 0 to [`PlatformRate::MOST`].
pub fn parse_platform_rate(amount: Amount) -> Result<PlatformRate, ApiError> {
    let rate = u16::try_from(amount.0).ok().and_then(PlatformRate::new);
    rate.ok_or_else(|| {
        let most = PlatformRate::MOST;
        let fault = format!("must be 0 to {most} basis points, so that something is swapped");
        ApiError::invalid("platformFeeBps", fault)
    })
}

/// Parses a slippage allowance in basis points.
///
/// # Errors
/// [`ApiError::InvalidField`] outside 0 to 10,000.
pub fn parse_slippage(field: &str, amount: Amount) -> Result<BasisPoints, ApiError> {
    u16::try_from(amount.0)
        .ok()
        .and_then(BasisPoints::new)
        .ok_or_else(|| ApiError::invalid(field, "must be 0 to 10000 basis points"))
}
