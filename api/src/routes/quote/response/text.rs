//! The JSON of an answer, written value by value between the parts that are the same in every answer.
//!
//! A serializer looks at every name and address for what must be escaped, which nothing here has to be, and so takes four times
//! as many instructions: half as many as all else that a quote takes. A test holds this to what serde writes.

use bytes::Bytes;

use super::{Context, Fee, Hop, OtherPool, QuoteResponse, ROOM};
use crate::{
    extract::{Address, PoolsText},
    routes::quote::wire::Quote,
};

/// A JSON text that grows.
struct Text(Vec<u8>);

impl QuoteResponse {
    /// The answer as one line of JSON.
    #[must_use]
    pub fn text(&self) -> Bytes {
        let mut text = Text(Vec::with_capacity(ROOM));
        text.part(r#"{"quote":{"#);
        text.quote(&self.quote);
        text.part(r#"},"context":{"#);
        text.context(&self.context);
        text.part(r#","amounts":{"amountIn":""#)
            .number(self.quote.amount_in)
            .part(r#"","minimumOut":""#)
            .number(self.quote.minimum_out)
            .part(r#"","outAmount":""#)
            .number(self.quote.out_amount)
            .part(r#""}}}"#);
        text.0.into()
    }
}

impl Text {
    /// What stands there as it is, and needs no escape.
    #[inline]
    fn part(&mut self, part: &str) -> &mut Self {
        self.0.extend_from_slice(part.as_bytes());
        self
    }

    fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.part(itoa::Buffer::new().format(number))
    }

    /// The same number behind the one part, and behind the other as the digits of a string.
    fn amount(&mut self, before: &str, before_digits: &str, amount: u64) -> &mut Self {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(amount);
        self.part(before).part(digits);
        self.part(before_digits).part(digits).part("\"")
    }

    /// As [`Self::amount`], where there is one.
    fn optional_amount(
        &mut self,
        before: &str,
        before_digits: &str,
        amount: Option<u64>,
    ) -> &mut Self {
        match amount {
            Some(amount) => self.amount(before, before_digits, amount),
            None => self,
        }
    }

    fn address(&mut self, address: &Address) -> &mut Self {
        self.part(address.as_str())
    }

    fn pools(&mut self, pools: &PoolsText) -> &mut Self {
        let (first, second) = pools.addresses();
        self.address(first);
        match second {
            Some(second) => self.part(",").address(second),
            None => self,
        }
    }

    /// Words for people, as a string.
    fn words(&mut self, words: &str) -> &mut Self {
        self.part(&serde_json::Value::from(words).to_string())
    }

    /// The elements of an array.
    fn each<T>(&mut self, elements: &[T], write: impl Fn(&mut Self, &T)) -> &mut Self {
        for (index, element) in elements.iter().enumerate() {
            self.part(if index == 0 { "{" } else { ",{" });
            write(self, element);
            self.part("}");
        }
        self
    }

    fn quote(&mut self, quote: &Quote) {
        self.part(r#""amountIn":"#)
            .number(quote.amount_in)
            .part(r#","inputMint":""#)
            .address(&quote.input_mint)
            .part(r#"","minimumOut":"#)
            .number(quote.minimum_out)
            .part(r#","outAmount":"#)
            .number(quote.out_amount)
            .part(r#","outputMint":""#)
            .address(&quote.output_mint)
            .part(r#"","pool":""#)
            .pools(&quote.pool)
            .part(r#"","program":""#)
            .address(&quote.program)
            .part("\"");
    }

    /// All of it but the amounts, which are the quote's.
    fn context(&mut self, context: &Context) {
        self.part(r#""slot":"#)
            .number(context.slot)
            .part(r#","commitment":""#)
            .part(context.commitment)
            .part(r#"","blockTime":"#)
            .number(context.block_time)
            .part(r#","expirySlot":"#)
            .number(context.expiry_slot)
            .part(r#","swapMode":""#)
            .part(context.swap_mode.name())
            .part("\"")
            .optional_amount(
                r#","expectedIn":"#,
                r#","expectedInString":""#,
                context.expected_in,
            )
            .optional_amount(
                r#","platformFee":"#,
                r#","platformFeeString":""#,
                context.platform_fee,
            )
            .optional_amount(
                r#","platformFeeReceived":"#,
                r#","platformFeeReceivedString":""#,
                context.platform_fee_received,
            )
            .part(r#","slippageBps":"#)
            .number(context.slippage_bps)
            .part(r#","priceImpactBps":"#)
            .number(context.price_impact_bps);
        if !context.hops.is_empty() {
            self.part(r#","hops":["#)
                .each(&context.hops, Self::hop)
                .part("]");
        }
        self.part(r#","fees":["#)
            .each(&context.fees, Self::fee)
            .part(r#"],"alternatives":["#)
            .each(&context.alternatives, Self::other_pool)
            .part("]");
    }

    fn hop(&mut self, hop: &Hop) {
        self.part(r#""pool":""#)
            .address(&hop.pool)
            .part(r#"","inputMint":""#)
            .address(&hop.input_mint)
            .part(r#"","outputMint":""#)
            .address(&hop.output_mint)
            .amount(r#"","amountIn":"#, r#","amountInString":""#, hop.amount_in)
            .amount(
                r#","outAmount":"#,
                r#","outAmountString":""#,
                hop.out_amount,
            )
            .part(r#","priceImpactBps":"#)
            .number(hop.price_impact_bps);
    }

    fn fee(&mut self, fee: &Fee) {
        self.part(r#""kind":""#)
            .part(fee.kind)
            .amount(r#"","amount":"#, r#","amountString":""#, fee.amount)
            .part(r#","mint":""#)
            .address(&fee.mint)
            .part("\"");
        if let Some(pool) = &fee.pool {
            self.part(r#","pool":""#).address(pool).part("\"");
        }
    }

    fn other_pool(&mut self, other: &OtherPool) {
        self.part(r#""pool":""#)
            .pools(&other.pool)
            .part("\"")
            .optional_amount(
                r#","outAmount":"#,
                r#","outAmountString":""#,
                other.out_amount,
            )
            .optional_amount(r#","amountIn":"#, r#","amountInString":""#, other.amount_in)
            .part(r#","reason":"#)
            .words(&other.reason);
    }
}

#[cfg(test)]
mod tests {
    use solana_pubkey::Pubkey;

    use super::*;
    use crate::{
        extract::{Digits, Pools},
        routes::quote::wire::{Amounts, SwapModeName},
    };

    fn address(n: u8) -> Address {
        Address::new(&Pubkey::from([n; 32]))
    }

    fn hop(n: u8) -> Hop {
        Hop {
            pool: address(n),
            input_mint: address(1),
            output_mint: address(2),
            amount_in: 10,
            amount_in_string: Digits(10),
            out_amount: 11,
            out_amount_string: Digits(11),
            price_impact_bps: 12,
        }
    }

    fn fee(pool: Option<Address>) -> Fee {
        Fee {
            kind: "trade",
            amount: 13,
            amount_string: Digits(13),
            mint: address(1),
            pool,
        }
    }

    /// An answer with everything that some answers lack, or without.
    fn answer(is_full: bool) -> QuoteResponse {
        let amount = |amount: u64| is_full.then_some(amount);
        let digits = |number: u64| amount(number).map(Digits);
        let (one, other) = (Pubkey::from([3; 32]), Pubkey::from([4; 32]));
        let (pools, swap_mode) = if is_full {
            (Pools::Two(one, other), SwapModeName::ExactOut)
        } else {
            (Pools::One(one), SwapModeName::ExactIn)
        };
        let quote = Quote {
            amount_in: u64::MAX,
            input_mint: address(1),
            minimum_out: 0,
            out_amount: 12_345,
            output_mint: address(2),
            pool: pools.text(),
            program: address(5),
        };
        let other_pool = |reason: &str| OtherPool {
            pool: pools.text(),
            out_amount: amount(14),
            out_amount_string: digits(14),
            amount_in: amount(15),
            amount_in_string: digits(15),
            reason: reason.to_owned(),
        };
        let mut context = Context {
            slot: 20,
            commitment: "processed",
            block_time: -21,
            expiry_slot: 22,
            swap_mode,
            expected_in: amount(23),
            expected_in_string: digits(23),
            platform_fee: amount(24),
            platform_fee_string: digits(24),
            platform_fee_received: amount(25),
            platform_fee_received_string: digits(25),
            slippage_bps: 10_000,
            price_impact_bps: 0,
            hops: Vec::new(),
            fees: Vec::new(),
            alternatives: vec![other_pool("takes more")],
            amounts: Amounts::from(&quote),
        };
        if is_full {
            context.hops = vec![hop(3), hop(4)];
            context.fees = vec![fee(Some(address(3))), fee(None)];
            context.alternatives.push(other_pool("a \"word\"\n"));
        }
        QuoteResponse { quote, context }
    }

    #[test]
    fn the_text_is_what_serde_writes() {
        for is_full in [false, true] {
            let answer = answer(is_full);
            let written = serde_json::to_string(&answer).expect("JSON");
            assert_eq!(answer.text(), written);
        }
    }
}
