//! Answer of `GET /v1/quote`: the quote with its slot, fees and alternatives.

use axum::response::{IntoResponse, Response};
use cpmm::{Amount, BasisPoints};
use serde::Serialize;
use sluice_market::QuoteCommitment;
use utoipa::ToSchema;

use super::wire::Quote;
use crate::{
    answer,
    extract::{Address, Digits},
    pricing::{Alternative, Priced, QUOTE_LIFETIME_SLOTS},
};

/// The whole answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct QuoteResponse {
    quote: Quote,
    context: Context,
}

/// When the quote is true, and what it is made of. Amounts are smallest units.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteContext)]
struct Context {
    /// Slot whose state was quoted.
    slot: u64,
    /// Commitment of that slot.
    commitment: &'static str,
    /// Unix time of that slot, seconds.
    block_time: i64,
    /// Last slot for which the quote is meant.
    expiry_slot: u64,
    slippage_bps: u16,
    /// How far the amount moves the price, fees excluded; rounded down.
    price_impact_bps: u16,
    fees: Vec<Fee>,
    alternatives: Vec<OtherPool>,
    amounts: Amounts,
}

/// The quote's amounts as strings, for callers whose numbers are exact only up to 2^53. Every other amount of the
/// context has a string beside it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteAmounts)]
struct Amounts {
    amount_in: Digits,
    minimum_out: Digits,
    out_amount: Digits,
}

/// One fee; `protocol` and `fund` are parts of `trade`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteFee)]
struct Fee {
    kind: &'static str,
    amount: u64,
    amount_string: Digits,
    mint: Address,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OtherPool {
    pool: Address,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_amount: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_amount_string: Option<Digits>,
    reason: String,
}

/// Room for an answer, bytes: a quote of one pool with every fee there is. A longer one grows.
const ROOM: usize = 2 * 1024;

impl IntoResponse for QuoteResponse {
    fn into_response(self) -> Response {
        answer::json(&self, ROOM)
    }
}

impl QuoteResponse {
    /// The answer for a priced ask.
    #[must_use]
    pub fn new(priced: &Priced, slippage: BasisPoints, commitment: QuoteCommitment) -> Self {
        let quote = Quote::with_slippage(priced, slippage);
        let context = Context {
            slot: priced.view.slot.get(),
            commitment: commitment.name(),
            expiry_slot: priced.view.slot.plus(QUOTE_LIFETIME_SLOTS).get(),
            block_time: priced.view.clock.unix_timestamp,
            slippage_bps: slippage.get(),
            price_impact_bps: priced.quote.price_impact().get(),
            fees: fees(priced, &quote),
            alternatives: priced.alternatives.iter().map(other_pool).collect(),
            amounts: Amounts {
                amount_in: Digits(quote.amount_in),
                minimum_out: Digits(quote.minimum_out),
                out_amount: Digits(quote.out_amount),
            },
        };
        Self { quote, context }
    }
}

fn fees(priced: &Priced, quote: &Quote) -> Vec<Fee> {
    let exact = &priced.quote;
    let fee = |kind, amount: Amount, on_input: bool| Fee {
        kind,
        amount: amount.get(),
        amount_string: Digits(amount.get()),
        mint: if on_input {
            quote.input_mint
        } else {
            quote.output_mint
        },
    };
    [
        fee("inputTransfer", exact.input_transfer_fee, true),
        fee("trade", exact.trade_fee, true),
        fee("protocol", exact.protocol_fee, true),
        fee("fund", exact.fund_fee, true),
        fee("creator", exact.creator_fee, exact.creator_fee_on_input),
        fee("outputTransfer", exact.output_transfer_fee, false),
    ]
    .into_iter()
    .filter(|fee| fee.amount > 0)
    .collect()
}

fn other_pool(alternative: &Alternative) -> OtherPool {
    let (out_amount, reason) = match &alternative.outcome {
        Ok(received) => (Some(received.get()), "pays less".to_owned()),
        Err(refusal) => (None, refusal.to_string()),
    };
    OtherPool {
        pool: Address::new(&alternative.pool),
        out_amount,
        out_amount_string: out_amount.map(Digits),
        reason,
    }
}
