//! Request body of both swap endpoints, and the checked swap that it becomes.

pub mod transaction_request;

use cpmm::BasisPoints;
use serde::Deserialize;
use sluice_market::QuoteCommitment;
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use crate::{
    error::{ApiError, SwapRefusal},
    extract::{Address, Amount, PositiveAmount, parse_pubkey},
    pricing::Ask,
    routes::quote::{DEFAULT_SLIPPAGE, parse_slippage},
};

/// Most bytes of a body that are read: a quote is under 1 KiB, and nothing larger is meant.
pub(super) const BODY_LIMIT: usize = 16 * 1024;

/// Body of `POST /v1/swap/transaction` and `POST /v1/swap/instruction`.
// Required fields are options, so that an absent one is refused by its name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SwapRequest {
    #[schema(required, nullable = false)]
    quote: Option<QuoteInput>,
    /// Address of the wallet that signs, pays and receives.
    #[schema(required, nullable = false, value_type = Address)]
    user_public_key: Option<String>,
    /// Whether native SOL is wrapped before and unwrapped after the swap. Default true. The bare instruction contains
    /// neither; the caller wraps.
    wrap_and_unwrap_sol: Option<bool>,
    /// The most that the priority fee may be, lamports. Default 0. The unit price is
    /// `floor(priorityFeeLamports × 1,000,000 / computeUnitLimit)` micro-lamports, and the chain charges
    /// `ceil(price × limit / 1,000,000)` lamports, which is never more.
    priority_fee_lamports: Option<Amount>,
    /// Whether the transaction has the legacy format instead of version 0. Default false.
    as_legacy_transaction: Option<bool>,
    /// The last slot in which the chain executes the swap; 0 or absent for none. A quote names its own in
    /// `context.expirySlot`. When the slot has passed already, the answer is `quote_stale`.
    expiry_slot: Option<Amount>,
    /// Token account of the same user that receives the output. Default is the associated one. It must exist; what
    /// arrives in it stays as it is, so SOL is not unwrapped.
    #[schema(value_type = Option<Address>)]
    destination_token_account: Option<String>,
    /// Whether a quote whose pool has moved, or that expired, is replaced by a fresh one of the same pool and the same
    /// slippage instead of being enforced or refused. Default false. The answer's `quote` says what is enforced.
    refresh: Option<bool>,
    /// Whether to refuse amounts beyond the wallet's balance. Default false.
    check_balance: Option<bool>,
}

/// A quote as `/v1/quote` answered it, or, without `pool` and only for the bare instruction, the wish for one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct QuoteInput {
    #[schema(required, nullable = false, value_type = PositiveAmount)]
    amount_in: Option<Amount>,
    #[schema(required, nullable = false, value_type = Address)]
    input_mint: Option<String>,
    #[schema(required, nullable = false, value_type = Address)]
    output_mint: Option<String>,
    /// What the chain enforces, as it stands. Above 0, and at most `outAmount`.
    #[schema(value_type = Option<PositiveAmount>)]
    minimum_out: Option<Amount>,
    out_amount: Option<Amount>,
    #[schema(value_type = Option<Address>)]
    pool: Option<String>,
    #[schema(value_type = Option<Address>)]
    program: Option<String>,
    /// Only without `pool` and without `minimumOut`: 0 to 10,000.
    slippage_bps: Option<Amount>,
}

/// What the user receives at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimum {
    /// Exactly what the quote says; never recomputed.
    Given {
        /// The quote's minimum, smallest units.
        minimum_out: u64,
        /// What the quote expected, smallest units, if it says so.
        out_amount: Option<u64>,
    },
    /// What a fresh quote pays, less this allowance.
    Slippage(BasisPoints),
}

/// A checked request.
#[derive(Clone, Copy, Debug)]
pub struct Swap {
    /// The swap that is asked for.
    pub ask: Ask,
    /// The least that may come out.
    pub minimum: Minimum,
    /// Who signs and pays.
    pub user: Pubkey,
    /// Whether native SOL is wrapped and unwrapped.
    pub wrap_and_unwrap_sol: bool,
    /// Ceiling of the priority fee, lamports.
    pub priority_fee: u64,
    /// Whether the transaction has the legacy format.
    pub legacy: bool,
    /// Last slot of the swap; `None` when it has none of its own.
    pub expiry_slot: Option<u64>,
    /// The account that receives, if it is not the associated one.
    pub destination: Option<Pubkey>,
    /// Whether a quote that is no longer true is replaced.
    pub refresh: bool,
    /// Whether the balance is looked at.
    pub check_balance: bool,
}

impl SwapRequest {
    /// Checks a request whose quote must be complete, as `/v1/quote` answered it.
    ///
    /// # Errors
    /// The first field that is missing or unusable.
    pub fn with_quote(self) -> Result<Swap, ApiError> {
        let pinned = self.quote.as_ref().map(|quote| quote.pool.is_some());
        if pinned == Some(false) {
            return Err(missing("quote.pool"));
        }
        self.check()
    }

    /// Checks a request whose quote may lack its pool, in which case one is generated.
    ///
    /// # Errors
    /// The first field that is missing or unusable.
    pub fn with_or_without_quote(self) -> Result<Swap, ApiError> {
        self.check()
    }

    fn check(self) -> Result<Swap, ApiError> {
        let user = required("userPublicKey", self.user_public_key)?;
        let user = parse_pubkey("userPublicKey", &user)?;
        let quote = required("quote", self.quote)?;
        let ask = quote.ask()?;
        check_program(quote.program.as_deref())?;
        let refresh = self.refresh.unwrap_or(false);
        let minimum = quote.minimum()?;
        if refresh
            && matches!(
                minimum,
                Minimum::Given {
                    out_amount: None,
                    ..
                }
            )
        {
            return Err(missing("quote.outAmount"));
        }
        Ok(Swap {
            ask,
            minimum,
            user,
            wrap_and_unwrap_sol: self.wrap_and_unwrap_sol.unwrap_or(true),
            priority_fee: self.priority_fee_lamports.map_or(0, |amount| amount.0),
            legacy: self.as_legacy_transaction.unwrap_or(false),
            expiry_slot: self
                .expiry_slot
                .map(|slot| slot.0)
                .filter(|slot| *slot != swap_guard_interface::NO_EXPIRY),
            destination: self
                .destination_token_account
                .map(|account| parse_pubkey("destinationTokenAccount", &account))
                .transpose()?,
            refresh,
            check_balance: self.check_balance.unwrap_or(false),
        })
    }
}

impl QuoteInput {
    fn ask(&self) -> Result<Ask, ApiError> {
        let mint = |field, text: Option<&String>| parse_pubkey(field, required(field, text)?);
        let amount_in = required("quote.amountIn", self.amount_in)?;
        let ask = Ask {
            commitment: QuoteCommitment::default(),
            input_mint: mint("quote.inputMint", self.input_mint.as_ref())?,
            output_mint: mint("quote.outputMint", self.output_mint.as_ref())?,
            amount_in: cpmm::Amount::new(amount_in.0),
            pool: self
                .pool
                .as_deref()
                .map(|pool| parse_pubkey("quote.pool", pool))
                .transpose()?,
        };
        if ask.amount_in == cpmm::Amount::ZERO {
            return Err(ApiError::invalid("quote.amountIn", "must be at least 1"));
        }
        if ask.input_mint == ask.output_mint {
            return Err(ApiError::invalid(
                "quote.outputMint",
                "must differ from quote.inputMint",
            ));
        }
        Ok(ask)
    }

    /// A quote with a pool carries its minimum; without one, the minimum may be given or derived.
    fn minimum(&self) -> Result<Minimum, ApiError> {
        let pinned = self.pool.is_some();
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
            (Some(minimum), None) => Ok(Minimum::Given {
                minimum_out: minimum.0,
                out_amount: self.out_amount.map(|amount| amount.0),
            }),
            (None, _) if pinned => Err(missing("quote.minimumOut")),
            (None, slippage) => {
                let slippage = slippage.unwrap_or(Amount(u64::from(DEFAULT_SLIPPAGE)));
                parse_slippage("quote.slippageBps", slippage).map(Minimum::Slippage)
            }
        }
    }
}

const fn missing(field: &'static str) -> ApiError {
    ApiError::MissingField { field }
}

fn required<T>(field: &'static str, value: Option<T>) -> Result<T, ApiError> {
    value.ok_or(missing(field))
}

fn check_program(program: Option<&str>) -> Result<(), ApiError> {
    let ours = cpmm::ids::PROGRAM_ID;
    match program {
        Some(program) if parse_pubkey("quote.program", program)? != ours => {
            Err(SwapRefusal::WrongProgram {
                program: program.to_owned(),
            }
            .into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
