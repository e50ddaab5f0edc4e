//! Cases: what is asked of the API, and in which state the wallet is.

use sluice_testkit::pool::{TokenSpec, constant_fee};
use sluice_transaction::{PlatformRate, TransactionVersion, compute_table::TokenKind};

/// Balance of each vault, smallest units.
pub(super) const RESERVE: u64 = 1_000_000_000_000;

/// What the wallet swaps, or spends at most, smallest units.
pub const AMOUNT_IN: u64 = 1_000_000;

/// Transfer fee of the mints that have one, basis points.
const TRANSFER_FEE: u16 = 100;

/// What goes in or comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asset {
    /// SOL, wrapped in the pool.
    Sol,
    /// A token.
    Token(TokenKind),
}

impl Asset {
    /// Every asset.
    pub const ALL: [Self; 4] = [
        Self::Sol,
        Self::Token(TokenKind::Spl),
        Self::Token(TokenKind::Token2022),
        Self::Token(TokenKind::Token2022WithFee),
    ];

    pub(super) fn token(self) -> TokenSpec {
        match self {
            Self::Sol | Self::Token(TokenKind::Spl) => TokenSpec::spl(RESERVE),
            Self::Token(TokenKind::Token2022) => TokenSpec::token_2022(RESERVE),
            Self::Token(TokenKind::Token2022WithFee) => {
                TokenSpec::with_fee(RESERVE, constant_fee(TRANSFER_FEE))
            }
        }
    }
}

/// One of a wallet's token accounts before the swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// There is none.
    Absent,
    /// It holds this much.
    Holding(u64),
}

/// Which instruction of the guard it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An exact input through one pool.
    ExactIn,
    /// An exact output through one pool.
    ExactOut,
    /// An exact input through two pools: the token between them, and the wallet's account of it.
    TwoHops(Asset, Before),
}

impl Form {
    /// The token between two pools, and the wallet's account of it.
    #[must_use]
    pub const fn middle(self) -> Option<(Asset, Before)> {
        match self {
            Self::ExactIn | Self::ExactOut => None,
            Self::TwoHops(middle, before) => Some((middle, before)),
        }
    }
}

/// What is asked of the API, and in which state the wallet is.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What goes in.
    pub input: Asset,
    /// What comes out.
    pub output: Asset,
    /// The instruction.
    pub form: Form,
    /// The associated account of the input.
    pub input_before: Before,
    /// The associated account of the output.
    pub output_before: Before,
    /// Whether another wallet gets the output.
    pub receiver: bool,
    /// Whether another wallet pays fees and rents.
    pub fee_payer: bool,
    /// Whether another account than the associated one receives.
    pub named_destination: bool,
    /// What a platform takes of the input, and its account of that token.
    pub platform: Option<(PlatformRate, Before)>,
    /// Whether SOL is wrapped and unwrapped.
    pub wrap: bool,
    /// Wire format of the transaction.
    pub version: TransactionVersion,
}

impl Case {
    /// An SPL token for another, from a wallet that holds it into an account that is there.
    pub const PLAIN: Self = Self {
        input: Asset::Token(TokenKind::Spl),
        output: Asset::Token(TokenKind::Spl),
        form: Form::ExactIn,
        input_before: Before::Holding(AMOUNT_IN),
        output_before: Before::Holding(0),
        receiver: false,
        fee_payer: false,
        named_destination: false,
        platform: None,
        wrap: true,
        version: TransactionVersion::V0,
    };

    /// Every case that the API can meet, where the options that change nothing about each other are met in pairs.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for input in Asset::ALL {
            for output in Asset::ALL {
                if input == Asset::Sol && output == Asset::Sol {
                    continue;
                }
                cases.extend(Self::between(input, output));
            }
        }
        cases
    }

    /// Whether SOL that comes out arrives native.
    #[must_use]
    pub fn unwraps(&self) -> bool {
        self.wrap && self.output == Asset::Sol && !self.named_destination
    }

    fn between(input: Asset, output: Asset) -> Vec<Self> {
        let mut cases = Vec::new();
        for (wrap, input_before) in Self::inputs(input, output) {
            for output_before in [Before::Absent, Before::Holding(0), Before::Holding(7)] {
                let plain = Self {
                    input,
                    output,
                    input_before,
                    output_before,
                    wrap,
                    ..Self::PLAIN
                };
                cases.extend(plain.formats());
                if output_before != Before::Holding(0) {
                    cases.extend(plain.forms().flat_map(Self::wallets));
                }
            }
        }
        cases
    }

    /// Whether SOL is wrapped, and the account that pays.
    fn inputs(input: Asset, output: Asset) -> Vec<(bool, Before)> {
        let full = Before::Holding(AMOUNT_IN);
        let mut inputs = vec![(true, full)];
        if input == Asset::Sol {
            let partly = [
                Before::Absent,
                Before::Holding(0),
                Before::Holding(AMOUNT_IN / 3),
            ];
            inputs.extend(partly.map(|before| (true, before)));
        }
        if input == Asset::Sol || output == Asset::Sol {
            // Without wrapping, nothing fills the account.
            inputs.push((false, full));
        }
        inputs
    }

    /// With and without a named destination, in every version.
    fn formats(self) -> impl Iterator<Item = Self> {
        [false, true]
            .into_iter()
            .flat_map(move |named_destination| {
                TransactionVersion::ALL.map(|version| Self {
                    named_destination,
                    version,
                    ..self
                })
            })
    }

    /// Through every instruction; two pools with every token between them.
    fn forms(self) -> impl Iterator<Item = Self> {
        let middles = Asset::ALL
            .into_iter()
            .filter(move |middle| {
                *middle != Asset::Sol || ![self.input, self.output].contains(middle)
            })
            .flat_map(|middle| {
                [Before::Absent, Before::Holding(777)]
                    .into_iter()
                    .map(move |before| Form::TwoHops(middle, before))
            });
        [Form::ExactIn, Form::ExactOut]
            .into_iter()
            .chain(middles)
            .map(move |form| Self { form, ..self })
    }

    /// With and without another receiver and another fee payer; both in version 1.
    fn wallets(self) -> impl Iterator<Item = Self> {
        [(true, false), (false, true), (true, true), (false, false)]
            .into_iter()
            .map(move |(receiver, fee_payer)| Self {
                receiver,
                fee_payer,
                // The longest are those that need it.
                version: if receiver && fee_payer {
                    TransactionVersion::V1
                } else {
                    self.version
                },
                ..self
            })
    }
}
