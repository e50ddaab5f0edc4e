//! Hop: one pool of a route with the way through it and its quote, in either mode.

use cpmm::{Amount, BasisPoints, Direction, ExactInQuote, ExactOutQuote, Mint, PerToken, Refusal};
use sluice_market::PoolView;
use solana_pubkey::Pubkey;

/// Which amount of a swap is fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SwapMode {
    /// What goes in.
    #[default]
    ExactIn,
    /// What comes out.
    ExactOut,
}

/// What one pool takes and pays.
#[derive(Clone, Copy, Debug)]
pub enum HopQuote {
    /// For an exact input.
    ExactIn(ExactInQuote),
    /// For an exact output.
    ExactOut(ExactOutQuote),
}

/// The fees of one hop. Protocol and fund fees are parts of the trade fee.
#[derive(Clone, Copy, Debug)]
pub struct HopFees {
    /// Withheld by the input mint.
    pub input_transfer: Amount,
    /// Of the pool, in the input token.
    pub trade: Amount,
    /// The protocol's part.
    pub protocol: Amount,
    /// The fund's part.
    pub fund: Amount,
    /// The pool creator's.
    pub creator: Amount,
    /// Whether that is in the input token.
    pub creator_on_input: bool,
    /// Withheld by the output mint.
    pub output_transfer: Amount,
}

impl HopQuote {
    /// What goes in.
    #[must_use]
    pub const fn amount_in(&self) -> Amount {
        match self {
            Self::ExactIn(quote) => quote.amount_in,
            Self::ExactOut(quote) => quote.amount_in,
        }
    }

    /// What comes out.
    #[must_use]
    pub const fn received(&self) -> Amount {
        match self {
            Self::ExactIn(quote) => quote.received,
            Self::ExactOut(quote) => quote.received,
        }
    }

    /// The amount that was not fixed.
    #[must_use]
    pub const fn wanted(&self) -> Amount {
        match self {
            Self::ExactIn(quote) => quote.received,
            Self::ExactOut(quote) => quote.amount_in,
        }
    }

    /// Whether it pays more, or takes less. Only quotes of one mode can be compared.
    #[must_use]
    pub fn is_better_than(&self, other: &Self) -> bool {
        match self {
            Self::ExactIn(quote) => quote.received > other.received(),
            Self::ExactOut(quote) => quote.amount_in < other.amount_in(),
        }
    }

    /// How far the amount moves the price, fees excluded; rounded down.
    #[must_use]
    pub fn price_impact(&self) -> BasisPoints {
        match self {
            Self::ExactIn(quote) => quote.price_impact(),
            Self::ExactOut(quote) => quote.price_impact(),
        }
    }

    /// Its fees.
    #[must_use]
    pub const fn fees(&self) -> HopFees {
        match self {
            Self::ExactIn(quote) => HopFees {
                input_transfer: quote.input_transfer_fee,
                trade: quote.trade_fee,
                protocol: quote.protocol_fee,
                fund: quote.fund_fee,
                creator: quote.creator_fee,
                creator_on_input: quote.creator_fee_on_input,
                output_transfer: quote.output_transfer_fee,
            },
            Self::ExactOut(quote) => HopFees {
                input_transfer: quote.input_transfer_fee,
                trade: quote.trade_fee,
                protocol: quote.protocol_fee,
                fund: quote.fund_fee,
                creator: quote.creator_fee,
                creator_on_input: quote.creator_fee_on_input,
                output_transfer: quote.output_transfer_fee,
            },
        }
    }
}

/// One pool of a route.
#[derive(Clone, Debug)]
pub struct PricedHop {
    /// The pool, as one view shows it.
    pub view: PoolView,
    /// Which way the swap goes through it.
    pub direction: Direction,
    /// What it takes and pays.
    pub quote: HopQuote,
}

impl PricedHop {
    /// Quotes a pool.
    ///
    /// # Errors
    /// The pool's address, and why the chain would refuse.
    pub fn quote(
        view: PoolView,
        direction: Direction,
        mode: SwapMode,
        amount: Amount,
    ) -> Result<Self, (Pubkey, Refusal)> {
        let quote = match mode {
            SwapMode::ExactIn => view
                .snapshot
                .quote_exact_in(direction, amount, &view.clock)
                .map(HopQuote::ExactIn),
            SwapMode::ExactOut => view
                .snapshot
                .quote_exact_out(direction, amount, &view.clock)
                .map(HopQuote::ExactOut),
        };
        match quote {
            Ok(quote) => Ok(Self {
                view,
                direction,
                quote,
            }),
            Err(refusal) => Err((view.address, refusal)),
        }
    }

    /// Mint that goes in.
    #[must_use]
    pub fn input_mint(&self) -> Pubkey {
        self.direction.input(&self.view.snapshot.pool.mints)
    }

    /// What the pool knows of the mint that goes in.
    #[must_use]
    pub fn input_token(&self) -> &Mint {
        let mints = &self.view.snapshot.mints;
        self.direction
            .input(&PerToken::new(&*mints.token_0, &*mints.token_1))
    }

    /// Mint that comes out.
    #[must_use]
    pub fn output_mint(&self) -> Pubkey {
        self.direction.output(&self.view.snapshot.pool.mints)
    }
}
