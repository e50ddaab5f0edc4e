//! Quote object: the seven fields that every swap endpoint reads or answers.

use std::sync::LazyLock;

use cpmm::{BasisPoints, minimum_out};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    error::ApiError,
    extract::{Address, Amount},
    pricing::Priced,
};

/// Slippage when the caller names none: half a percent.
pub const DEFAULT_SLIPPAGE: u16 = 50;

/// The one program of every quote.
static PROGRAM: LazyLock<Address> = LazyLock::new(|| Address::new(&cpmm::ids::PROGRAM_ID));

/// A quote, on the wire. These seven fields are the contract; whatever else is known about a quote
/// stands beside the object, never inside it. Amounts are smallest units, as JSON integers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quote {
    /// What goes in.
    pub amount_in: u64,
    /// Mint that goes in.
    pub input_mint: Address,
    /// The least that the guard lets the user receive.
    pub minimum_out: u64,
    /// What the user receives if the pool does not move, net of every fee.
    pub out_amount: u64,
    /// Mint that comes out.
    pub output_mint: Address,
    /// Pool that is traded with.
    pub pool: Address,
    /// Program that owns the pool.
    pub program: Address,
}

impl Quote {
    /// The quote of a priced swap under a slippage allowance.
    #[must_use]
    pub fn with_slippage(priced: &Priced, slippage: BasisPoints) -> Self {
        Self::with_minimum(priced, minimum_out(priced.quote.received, slippage).get())
    }

    /// The quote of a priced swap with a minimum that the caller chose.
    #[must_use]
    pub fn with_minimum(priced: &Priced, minimum_out: u64) -> Self {
        let mints = &priced.view.snapshot.pool.mints;
        Self {
            amount_in: priced.quote.amount_in.get(),
            input_mint: Address::new(&priced.direction.input(mints)),
            minimum_out,
            out_amount: priced.quote.received.get(),
            output_mint: Address::new(&priced.direction.output(mints)),
            pool: Address::new(&priced.view.address),
            program: *PROGRAM,
        }
    }
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
