//! Answer of `GET /v1/quote`: the quote with its slot, fees and alternatives.

mod text;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use cpmm::{Amount, BasisPoints};
use serde::Serialize;
use sluice_market::QuoteCommitment;
use utoipa::ToSchema;

use super::wire::{Amounts, Quote, SwapModeName};
use crate::{
    answer,
    error::ApiError,
    extract::{Address, Digits, PoolsText},
    pricing::{Alternative, Priced, PricedHop, QUOTE_LIFETIME_SLOTS, SwapMode},
    quote_feeds::Answer,
};

/// The whole answer.
// `text.rs` writes it, so a new field stands there too.
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
    swap_mode: SwapModeName,
    /// Only for an exact output: what the pool takes now.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_in_string: Option<Digits>,
    /// Only with `platformFeeBps`: what of `amountIn` the platform gets before the swap, rounded down. The rest is what
    /// the pool is offered, and for an exact output the most that it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_fee: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_fee_string: Option<Digits>,
    /// What of it arrives at the platform: less where the mint withholds a fee of each transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_fee_received: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    platform_fee_received_string: Option<Digits>,
    slippage_bps: u16,
    /// How far the amount moves the price, fees excluded; rounded down.
    price_impact_bps: u16,
    /// Only of two hops: each with its pool and amounts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hops: Vec<Hop>,
    fees: Vec<Fee>,
    /// The other routes: of more than 20 those that pay most or take least.
    alternatives: Vec<OtherPool>,
    /// Every other amount of the context has a string beside it.
    amounts: Amounts,
}

/// One of two hops.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteHop)]
struct Hop {
    pool: Address,
    input_mint: Address,
    output_mint: Address,
    amount_in: u64,
    amount_in_string: Digits,
    out_amount: u64,
    out_amount_string: Digits,
    price_impact_bps: u16,
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
    /// Only of two hops: the one that takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<Address>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OtherPool {
    pool: PoolsText,
    /// What it would have paid for an exact input.
    #[serde(skip_serializing_if = "Option::is_none")]
    out_amount: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_amount_string: Option<Digits>,
    /// What it would have taken for an exact output.
    #[serde(skip_serializing_if = "Option::is_none")]
    amount_in: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount_in_string: Option<Digits>,
    reason: String,
}

/// The most alternatives that an answer names.
const MOST_ALTERNATIVES: usize = 20;

/// Room for an answer, bytes: a quote of one pool with every fee there is. A longer one grows.
const ROOM: usize = 2 * 1024;

impl IntoResponse for QuoteResponse {
    fn into_response(self) -> Response {
        answer::json_text(self.text())
    }
}

impl Answer for QuoteResponse {
    fn slot(&self) -> u64 {
        self.context.slot
    }

    fn repeats(&self, before: &Self) -> bool {
        self.quote == before.quote && self.context.expected_in == before.context.expected_in
    }

    fn json(&self) -> Result<Bytes, ApiError> {
        Ok(self.text())
    }
}

impl QuoteResponse {
    /// The answer for a priced ask, with this quote of it.
    #[must_use]
    pub fn new(
        priced: &Priced,
        quote: Quote,
        slippage: BasisPoints,
        commitment: QuoteCommitment,
    ) -> Self {
        let mode = priced.mode();
        let expected_in = (mode == SwapMode::ExactOut).then(|| priced.amount_in().get());
        let fee = priced.platform_fee(quote.amount_in);
        let (taken, arrives) = (fee.map(|fee| fee.amount), fee.map(|fee| fee.received));
        let context = Context {
            slot: priced.slot().get(),
            commitment: commitment.name(),
            expiry_slot: priced.slot().plus(QUOTE_LIFETIME_SLOTS).get(),
            block_time: priced.clock().unix_timestamp,
            swap_mode: mode.into(),
            expected_in,
            expected_in_string: expected_in.map(Digits),
            platform_fee: taken,
            platform_fee_string: taken.map(Digits),
            platform_fee_received: arrives,
            platform_fee_received_string: arrives.map(Digits),
            slippage_bps: slippage.get(),
            price_impact_bps: priced.price_impact().get(),
            hops: match &priced.second {
                None => Vec::new(),
                Some(_) => priced.hops().map(Hop::from).collect(),
            },
            fees: fees(priced, &quote),
            alternatives: best_others(mode, &priced.alternatives),
            amounts: Amounts::from(&quote),
        };
        Self { quote, context }
    }
}

impl From<&PricedHop> for Hop {
    fn from(hop: &PricedHop) -> Self {
        let (amount_in, out_amount) = (hop.quote.amount_in().get(), hop.quote.received().get());
        Self {
            pool: Address::new(&hop.view.address),
            input_mint: Address::new(&hop.input_mint()),
            output_mint: Address::new(&hop.output_mint()),
            amount_in,
            amount_in_string: Digits(amount_in),
            out_amount,
            out_amount_string: Digits(out_amount),
            price_impact_bps: hop.quote.price_impact().get(),
        }
    }
}

/// The fees that are taken; those that are not are most of them, and never built.
fn fees(priced: &Priced, quote: &Quote) -> Vec<Fee> {
    let (input, output) = (quote.input_mint, quote.output_mint);
    let mut fees = Vec::new();
    match &priced.second {
        None => hop_fees(&mut fees, &priced.first, [input, output], None),
        Some(second) => {
            let middle = Address::new(&second.input_mint());
            let pool = |hop: &PricedHop| Some(Address::new(&hop.view.address));
            let first = &priced.first;
            hop_fees(&mut fees, first, [input, middle], pool(first));
            hop_fees(&mut fees, second, [middle, output], pool(second));
        }
    }
    fees
}

fn hop_fees(
    shown: &mut Vec<Fee>,
    hop: &PricedHop,
    [input_mint, output_mint]: [Address; 2],
    pool: Option<Address>,
) {
    let fees = hop.quote.fees();
    let taken = [
        ("inputTransfer", fees.input_transfer, true),
        ("trade", fees.trade, true),
        ("protocol", fees.protocol, true),
        ("fund", fees.fund, true),
        ("creator", fees.creator, fees.creator_on_input),
        ("outputTransfer", fees.output_transfer, false),
    ];
    let taken = taken.into_iter().filter(|(_, amount, _)| amount.get() > 0);
    shown.extend(taken.map(|(kind, amount, on_input)| Fee {
        kind,
        amount: amount.get(),
        amount_string: Digits(amount.get()),
        mint: if on_input { input_mint } else { output_mint },
        pool,
    }));
}

/// The alternatives of an answer: on a chain with hundreds of middles the rest would be longer than all else.
fn best_others(mode: SwapMode, alternatives: &[Alternative]) -> Vec<OtherPool> {
    let mut others: Vec<_> = alternatives.iter().collect();
    if others.len() > MOST_ALTERNATIVES {
        others.sort_by_key(|other| match (other.outcome, mode) {
            (Ok(paid), SwapMode::ExactIn) => (0, u64::MAX.saturating_sub(paid.get())),
            (Ok(taken), SwapMode::ExactOut) => (0, taken.get()),
            (Err(_), _) => (1, 0),
        });
        others.truncate(MOST_ALTERNATIVES);
    }
    let others = others.into_iter();
    others.map(|other| other_pool(mode, other)).collect()
}

fn other_pool(mode: SwapMode, alternative: &Alternative) -> OtherPool {
    let amount = alternative.outcome.ok().map(Amount::get);
    let of = |asked: SwapMode| amount.filter(|_| asked == mode);
    let (out_amount, amount_in) = (of(SwapMode::ExactIn), of(SwapMode::ExactOut));
    OtherPool {
        pool: alternative.pools.text(),
        out_amount,
        out_amount_string: out_amount.map(Digits),
        amount_in,
        amount_in_string: amount_in.map(Digits),
        reason: match (&alternative.outcome, mode) {
            (Ok(_), SwapMode::ExactIn) => "pays less".to_owned(),
            (Ok(_), SwapMode::ExactOut) => "takes more".to_owned(),
            (Err(refusal), _) => refusal.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use cpmm::Refusal;
    use solana_pubkey::Pubkey;

    use super::*;
    use crate::extract::Pools;

    #[test]
    fn of_many_alternatives_the_best_are_named() {
        let alternative = |n: u8| Alternative {
            pools: Pools::One(Pubkey::from([n; 32])),
            outcome: match n % 3 {
                0 => Err(Refusal::SwapDisabled),
                _ => Ok(Amount::new(u64::from(n))),
            },
        };
        let few: Vec<_> = (0..20).map(alternative).collect();
        let named = best_others(SwapMode::ExactIn, &few);
        assert_eq!(named.len(), 20);
        assert_eq!(named[0].out_amount, None, "in the order of the market");
        let many: Vec<_> = (0..100).map(alternative).collect();
        let paid = best_others(SwapMode::ExactIn, &many);
        let paid: Vec<_> = paid.iter().filter_map(|other| other.out_amount).collect();
        assert_eq!((paid.len(), paid[0], paid[19]), (20, 98, 70));
        let taken = best_others(SwapMode::ExactOut, &many);
        let taken: Vec<_> = taken.iter().filter_map(|other| other.amount_in).collect();
        assert_eq!((taken.len(), taken[0], taken[19]), (20, 1, 29));
    }
}
