//! The body that both swap endpoints take, and what of it they insist on.

use cpmm::BasisPoints;
use serde::Deserialize;
use solana_pubkey::Pubkey;

use crate::{
    error::ApiError,
    extract::{Amount, parse_pubkey},
    market::Commitment,
    pricing::Ask,
    routes::quote::{DEFAULT_SLIPPAGE, parse_slippage},
};

/// Body of `POST /v1/swap/transaction` and `POST /v1/swap/instruction`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SwapRequest {
    quote: QuoteInput,
    user_public_key: String,
    wrap_and_unwrap_sol: Option<bool>,
    priority_fee_lamports: Option<Amount>,
}

/// A quote as a caller sends it back, or the wish for one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct QuoteInput {
    amount_in: Amount,
    input_mint: String,
    output_mint: String,
    minimum_out: Option<Amount>,
    out_amount: Option<Amount>,
    pool: Option<String>,
    program: Option<String>,
    slippage_bps: Option<Amount>,
}

/// What the user receives at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimum {
    /// Exactly what the quote says; never recomputed.
    Given(u64),
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
    /// Whether native SOL is wrapped and unwrapped; by default it is.
    pub wrap_and_unwrap_sol: bool,
    /// Ceiling of the priority fee, lamports; by default none.
    pub priority_fee: u64,
}

impl SwapRequest {
    /// Checks a request whose quote must be complete, as `/v1/quote` answered it.
    ///
    /// # Errors
    /// The first field that is missing or unusable.
    pub fn with_quote(self) -> Result<Swap, ApiError> {
        if self.quote.pool.is_none() {
            return Err(ApiError::MissingField {
                field: "quote.pool",
            });
        }
        if self.quote.slippage_bps.is_some() {
            return Err(ApiError::invalid(
                "quote.slippageBps",
                "is not part of a quote; the quote's minimumOut says what is enforced",
            ));
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
        let user = parse_pubkey("userPublicKey", &self.user_public_key)?;
        if !user.is_on_curve() {
            return Err(ApiError::invalid(
                "userPublicKey",
                "is a program's address, which cannot sign; give a wallet's",
            ));
        }
        let quote = self.quote;
        let ask = Ask {
            commitment: Commitment::default(),
            input_mint: parse_pubkey("quote.inputMint", &quote.input_mint)?,
            output_mint: parse_pubkey("quote.outputMint", &quote.output_mint)?,
            amount_in: positive("quote.amountIn", quote.amount_in)?,
            pool: quote
                .pool
                .as_deref()
                .map(|pool| parse_pubkey("quote.pool", pool))
                .transpose()?,
        };
        if ask.input_mint == ask.output_mint {
            return Err(ApiError::invalid(
                "quote.outputMint",
                "must differ from quote.inputMint",
            ));
        }
        check_program(quote.program.as_deref())?;
        Ok(Swap {
            ask,
            minimum: minimum(
                ask.pool.is_some(),
                quote.minimum_out,
                quote.out_amount,
                quote.slippage_bps,
            )?,
            user,
            wrap_and_unwrap_sol: self.wrap_and_unwrap_sol.unwrap_or(true),
            priority_fee: self.priority_fee_lamports.map_or(0, |amount| amount.0),
        })
    }
}

fn positive(field: &str, amount: Amount) -> Result<u64, ApiError> {
    if amount.0 == 0 {
        return Err(ApiError::invalid(field, "must be at least 1"));
    }
    Ok(amount.0)
}

fn check_program(program: Option<&str>) -> Result<(), ApiError> {
    let ours = cpmm::ids::PROGRAM_ID;
    match program {
        Some(program) if parse_pubkey("quote.program", program)? != ours => Err(ApiError::invalid(
            "quote.program",
            format!("must be {ours}, the one exchange that is served"),
        )),
        _ => Ok(()),
    }
}

/// A quote with a pool carries its minimum; without one, the minimum may be given or derived.
fn minimum(
    pinned: bool,
    minimum_out: Option<Amount>,
    out_amount: Option<Amount>,
    slippage: Option<Amount>,
) -> Result<Minimum, ApiError> {
    match (minimum_out, slippage) {
        (Some(_), Some(_)) => Err(ApiError::invalid(
            "quote.slippageBps",
            "says the same as quote.minimumOut; give one of them",
        )),
        (Some(minimum), None) => {
            let minimum = positive("quote.minimumOut", minimum)?;
            if out_amount.is_some_and(|out| minimum > out.0) {
                return Err(ApiError::invalid(
                    "quote.minimumOut",
                    "is above quote.outAmount, which no swap would reach",
                ));
            }
            Ok(Minimum::Given(minimum))
        }
        (None, _) if pinned => Err(ApiError::MissingField {
            field: "quote.minimumOut",
        }),
        (None, slippage) => {
            let slippage = slippage.unwrap_or(Amount(u64::from(DEFAULT_SLIPPAGE)));
            parse_slippage("quote.slippageBps", slippage).map(Minimum::Slippage)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const A: &str = "So11111111111111111111111111111111111111112";
    const B: &str = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
    const WALLET: &str = "9B5XszUGdMaxCZ7uSQhPzdks5ZQSmWxrmzCSvtJ6Ns6g";

    fn body(quote: Value) -> SwapRequest {
        serde_json::from_value(json!({ "quote": quote, "userPublicKey": WALLET }))
            .expect("shape is right")
    }

    fn full() -> Value {
        json!({
            "amountIn": 10, "inputMint": A, "minimumOut": 5, "outAmount": 6, "outputMint": B,
            "pool": B, "program": cpmm::ids::PROGRAM_ID.to_string(),
        })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut quote = full();
        quote[field] = value;
        quote
    }

    #[test]
    fn a_quote_is_taken_as_it_stands() {
        let swap = body(full()).with_quote().expect("valid");
        assert_eq!(swap.minimum, Minimum::Given(5));
        assert_eq!(swap.ask.amount_in, 10);
        assert!(swap.wrap_and_unwrap_sol);
        assert_eq!(swap.priority_fee, 0);
    }

    #[test]
    fn rejects_quotes_that_cannot_be_executed() {
        let code = |quote: Value| body(quote).with_quote().expect_err("refused").code();
        assert_eq!(code(with("minimumOut", json!(0))), "invalid_field");
        assert_eq!(code(with("minimumOut", json!(7))), "invalid_field");
        assert_eq!(code(with("minimumOut", Value::Null)), "missing_field");
        assert_eq!(code(with("pool", Value::Null)), "missing_field");
        assert_eq!(code(with("program", json!(A))), "invalid_field");
        assert_eq!(code(with("amountIn", json!(0))), "invalid_field");
        assert_eq!(code(with("outputMint", json!(A))), "invalid_field");
    }

    #[test]
    fn without_a_pool_the_minimum_is_given_or_derived() {
        let wish = |extra: Value| {
            let mut quote = json!({ "amountIn": "10", "inputMint": A, "outputMint": B });
            for (name, value) in extra.as_object().into_iter().flatten() {
                quote[name] = value.clone();
            }
            body(quote).with_or_without_quote().map(|swap| swap.minimum)
        };
        let bps = |n| BasisPoints::new(n).expect("in range");
        assert_eq!(wish(json!({})).ok(), Some(Minimum::Slippage(bps(50))));
        assert_eq!(
            wish(json!({ "slippageBps": 7 })).ok(),
            Some(Minimum::Slippage(bps(7)))
        );
        assert_eq!(
            wish(json!({ "minimumOut": "3" })).ok(),
            Some(Minimum::Given(3))
        );
        assert!(wish(json!({ "minimumOut": 3, "slippageBps": 7 })).is_err());
    }

    #[test]
    fn rejects_unknown_fields_and_program_addresses() {
        let unknown = json!({ "quote": full(), "userPublicKey": WALLET, "slippage": 1 });
        assert!(serde_json::from_value::<SwapRequest>(unknown).is_err());
        let program_address = cpmm::ids::AUTHORITY.to_string();
        let request = json!({ "quote": full(), "userPublicKey": program_address });
        let request: SwapRequest = serde_json::from_value(request).expect("shape is right");
        assert_eq!(
            request.with_quote().expect_err("cannot sign").code(),
            "invalid_field"
        );
    }
}
