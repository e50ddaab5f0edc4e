//! Swap operands: the numbers of one swap that its divisions are made of, from a quote or from the chain's event.

use crate::{
    event::{FixedAmount, SwapEvent},
    exact_out::ExactOutQuote,
    quote::ExactInQuote,
    units::Amount,
};

/// The numbers of one swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapOperands {
    /// Which instruction it is.
    pub fixed: FixedAmount,
    /// What the user sends.
    pub amount_in: Amount,
    /// Withheld from it by the input mint.
    pub input_transfer_fee: Amount,
    /// The pool's input reserve before the swap, accrued fees excluded.
    pub reserve_in: Amount,
    /// The pool's output reserve before the swap, accrued fees excluded.
    pub reserve_out: Amount,
    /// Trade fee, input token.
    pub trade_fee: Amount,
    /// Creator fee.
    pub creator_fee: Amount,
    /// Whether the creator fee is in the input token.
    pub creator_fee_on_input: bool,
    /// Input that moves along the curve.
    pub curve_in: Amount,
    /// Output that the curve gives.
    pub curve_out: Amount,
    /// What the output vault sends.
    pub amount_out: Amount,
    /// Withheld from it by the output mint.
    pub output_transfer_fee: Amount,
}

impl From<&ExactInQuote> for SwapOperands {
    fn from(quote: &ExactInQuote) -> Self {
        Self {
            fixed: FixedAmount::In,
            amount_in: quote.amount_in,
            input_transfer_fee: quote.input_transfer_fee,
            reserve_in: quote.reserve_in,
            reserve_out: quote.reserve_out,
            trade_fee: quote.trade_fee,
            creator_fee: quote.creator_fee,
            creator_fee_on_input: quote.creator_fee_on_input,
            curve_in: quote.curve_in,
            curve_out: quote.curve_out,
            amount_out: quote.amount_out,
            output_transfer_fee: quote.output_transfer_fee,
        }
    }
}

impl From<&ExactOutQuote> for SwapOperands {
    fn from(quote: &ExactOutQuote) -> Self {
        Self {
            fixed: FixedAmount::Out,
            amount_in: quote.amount_in,
            input_transfer_fee: quote.input_transfer_fee,
            reserve_in: quote.reserve_in,
            reserve_out: quote.reserve_out,
            trade_fee: quote.trade_fee,
            creator_fee: quote.creator_fee,
            creator_fee_on_input: quote.creator_fee_on_input,
            curve_in: quote.curve_in,
            curve_out: quote.curve_out,
            amount_out: quote.amount_out,
            output_transfer_fee: quote.output_transfer_fee,
        }
    }
}

impl From<&SwapEvent> for SwapOperands {
    fn from(event: &SwapEvent) -> Self {
        let (creator_in, creator_out) = if event.creator_fee_on_input {
            (event.creator_fee, Amount::ZERO)
        } else {
            (Amount::ZERO, event.creator_fee)
        };
        let sum = |amount: Amount, fee| amount.checked_add(fee).unwrap_or(Amount::MAX);
        Self {
            fixed: event.fixed,
            amount_in: sum(event.in_net, event.input_transfer_fee),
            input_transfer_fee: event.input_transfer_fee,
            reserve_in: event.reserve_in,
            reserve_out: event.reserve_out,
            trade_fee: event.trade_fee,
            creator_fee: event.creator_fee,
            creator_fee_on_input: event.creator_fee_on_input,
            curve_in: event
                .in_net
                .saturating_sub(event.trade_fee)
                .saturating_sub(creator_in),
            curve_out: sum(event.amount_out, creator_out),
            amount_out: event.amount_out,
            output_transfer_fee: event.output_transfer_fee,
        }
    }
}
