//! Compute units that each instruction of a swap's transaction may use, from a measured table (pure).
//!
//! A limit that is short makes a good swap fail; one that is long makes a block look fuller than it is, and spreads a
//! fixed priority fee over units that are not used. So every figure is the most that the instruction used when it was
//! executed, and a test executes every combination of instructions, with wallets of different bumps, mints of different
//! extensions and random pools, and fails when a limit is short or more than 15 % over.
//!
//! The units of instructions add up exactly, so each row of the test is a sum of lines here. The SPL Token program is
//! the optimised one (p-token), which every cluster runs by now.

use cpmm::{Mint, TokenProgram};

use crate::exchange::Exchange;

/// Each instruction of the compute budget program and of the system program.
pub const BUILTIN: u32 = 150;

/// `syncNative`.
pub const SYNC_NATIVE: u32 = 201;

/// `closeAccount`.
pub const CLOSE_ACCOUNT: u32 = 120;

/// `closeAccount` of Token-2022.
pub const CLOSE_TOKEN_2022_ACCOUNT: u32 = 1_574;

/// `unwrapLamports` of a whole balance.
pub const UNWRAP_LAMPORTS: u32 = 141;

/// Added once to a transaction where the token program is the one before p-token, without `unwrapLamports`: in none of them it
/// used more than 41,365 over the figures here.
pub const OLDER_TOKEN_PROGRAM: u32 = 45_000;

/// `initializeAccount3` of a wrapped SOL account.
pub const INITIALIZE_ACCOUNT: u32 = 230;

/// One try of finding an associated address: the program that creates the account derives the address anew, counting
/// down from 255, and each try costs this much.
const BUMP_TRY: u32 = 1_500;

/// Creating an associated account, by [`TokenKind`], without the tries for its address.
const CREATE: [u32; 3] = [11_924, 14_752, 15_773];

/// Added to [`CREATE`] where the wallet that pays is not the owner: one account more is passed on.
pub const CREATE_FOR_ANOTHER: u32 = 100;

/// Added to [`CREATE`] for each neutral extension of the mint.
const CREATE_PER_EXTENSION: u32 = 313;

/// Added to [`CREATE`] once, when neutral extensions are all that a mint has.
const CREATE_EXTENDED: u32 = 272;

/// The guarded swap without an expiry where the stand-in runs, by [`TokenKind`] of the input and then of the output: the
/// most of 150,000 random pools and amounts. The least was about a tenth lower: 128-bit arithmetic costs more for some
/// numbers.
const STAND_IN_SWAP: [[u32; 3]; 3] = [
    [8_852, 10_792, 12_186],
    [10_788, 12_794, 14_212],
    [12_140, 14_208, 15_521],
];

/// As [`STAND_IN_SWAP`], for an exact output. The least was up to a fifth lower: a transfer fee is found backwards.
const STAND_IN_EXACT_OUT: [[u32; 3]; 3] = [
    [8_795, 10_720, 12_594],
    [10_828, 12_766, 14_638],
    [12_664, 14_721, 16_588],
];

/// Added to the swap where it expires: the guard looks at the clock.
const SWAP_EXPIRY: u32 = 124;

/// Added to the swap for each neutral extension of a mint.
const SWAP_PER_EXTENSION: u32 = 231;

/// Added to the swap once for each mint whose extensions are all neutral.
const SWAP_EXTENDED: u32 = 90;

/// The most that the guard itself uses in a swap through one pool, whatever accounts it is given: its instructions, system
/// calls and the call of the exchange, but not the exchange, nor the unit for every 250 bytes of an account that is handed
/// on. `proof.json` states it of the compiled bytes, for the form that takes most; real lists of accounts take some 700 less.
pub const GUARD_ONE_HOP: u32 = 2_721;

/// As [`GUARD_ONE_HOP`], of a swap through two pools.
pub const GUARD_TWO_HOPS: u32 = 4_489;

/// Room on top of the most that a swap was seen to use, percent: not every pool and amount can be tried.
const ROOM_STAND_IN: u32 = 2;

/// What Raydium's program uses over the stand-in between SPL tokens: 28,472 against 6,196, both called directly, from
/// its published source with p-token.
const RAYDIUM_OVER_STAND_IN: u32 = 22_276;

/// The same for each Token-2022 side, by [`TokenKind`]: derived from public logs, in which Raydium's own handling of a
/// side with a transfer fee takes 1,600 to 2,200. `CPMM_SO` makes the test of this table run Raydium's binary.
const RAYDIUM_SIDE: [u32; 3] = [0, 1_000, 2_200];

/// As [`ROOM_STAND_IN`]; more, because fewer of its swaps were seen.
const ROOM_RAYDIUM: u32 = 4;

/// What a token's accounts look like, as far as rent and compute units depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenKind {
    /// SPL Token.
    Spl,
    /// Token-2022, without a transfer fee.
    Token2022,
    /// Token-2022, with a transfer fee.
    Token2022WithFee,
}

impl TokenKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Spl, Self::Token2022, Self::Token2022WithFee];

    /// The kind of a mint.
    #[must_use]
    pub const fn of(program: TokenProgram, mint: &Mint) -> Self {
        match (program, mint.transfer_fee) {
            (TokenProgram::Spl, _) => Self::Spl,
            (TokenProgram::Token2022, None) => Self::Token2022,
            (TokenProgram::Token2022, Some(_)) => Self::Token2022WithFee,
        }
    }

    /// Length of an associated account of this kind, bytes. Token-2022 adds the record that makes the owner immutable,
    /// and with a transfer fee the record of what was withheld.
    #[must_use]
    pub const fn account_len(self) -> usize {
        match self {
            Self::Spl => 165,
            Self::Token2022 => 170,
            Self::Token2022WithFee => 182,
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Spl => 0,
            Self::Token2022 => 1,
            Self::Token2022WithFee => 2,
        }
    }
}

/// What of a mint decides about compute units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenShape {
    /// What its accounts look like.
    pub kind: TokenKind,
    /// Extensions that the token program passes by.
    pub neutral_extensions: u8,
}

impl TokenShape {
    /// The shape of a mint.
    #[must_use]
    pub const fn of(program: TokenProgram, mint: &Mint) -> Self {
        Self {
            kind: TokenKind::of(program, mint),
            neutral_extensions: mint.neutral_extensions,
        }
    }

    /// `each` for every neutral extension, and `once` when they are all that the mint has.
    fn extensions(self, each: u32, once: u32) -> u32 {
        let count = u32::from(self.neutral_extensions);
        let alone = self.kind == TokenKind::Token2022 && count > 0;
        count
            .saturating_mul(each)
            .saturating_add(if alone { once } else { 0 })
    }
}

/// Creating an associated account whose address has this bump. An address found on the first try has bump 255.
#[must_use]
pub fn create_account(token: TokenShape, bump: u8) -> u32 {
    let tries = u32::from(u8::MAX.saturating_sub(bump)).saturating_add(1);
    CREATE[token.kind.index()]
        .saturating_add(token.extensions(CREATE_PER_EXTENSION, CREATE_EXTENDED))
        .saturating_add(tries.saturating_mul(BUMP_TRY))
}

/// The tokens of a guarded swap in their order, by the form of its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapTokens {
    /// An exact input: what goes in, what comes out.
    ExactIn(TokenShape, TokenShape),
    /// An exact output: what goes in, what comes out.
    ExactOut(TokenShape, TokenShape),
    /// Two pools: what goes in, what is between, what comes out.
    TwoHops(TokenShape, TokenShape, TokenShape),
}

/// The guarded swap, which expires or does not.
#[must_use]
pub fn guarded_swap(exchange: Exchange, tokens: SwapTokens, expires: bool) -> u32 {
    let most = match tokens {
        SwapTokens::ExactIn(input, output) => hop(exchange, &STAND_IN_SWAP, input, output),
        SwapTokens::ExactOut(input, output) => hop(exchange, &STAND_IN_EXACT_OUT, input, output),
        // The guard walks over its accounts once, so two of its swaps together cost more.
        SwapTokens::TwoHops(input, middle, output) => {
            let first = hop(exchange, &STAND_IN_SWAP, input, middle);
            first.saturating_add(hop(exchange, &STAND_IN_SWAP, middle, output))
        }
    };
    let most = most.saturating_add(if expires { SWAP_EXPIRY } else { 0 });
    let room = match exchange {
        Exchange::StandIn => ROOM_STAND_IN,
        Exchange::Raydium => ROOM_RAYDIUM,
    };
    most.saturating_add(most.saturating_mul(room).div_ceil(100))
}

/// A guarded swap through one pool, of which `stand_in` has the most that the stand-in uses.
fn hop(exchange: Exchange, stand_in: &[[u32; 3]; 3], input: TokenShape, output: TokenShape) -> u32 {
    let sides = [input, output];
    let over = match exchange {
        Exchange::StandIn => 0,
        Exchange::Raydium => sides
            .iter()
            .map(|side| RAYDIUM_SIDE[side.kind.index()])
            .fold(RAYDIUM_OVER_STAND_IN, u32::saturating_add),
    };
    let extensions = sides.map(|side| side.extensions(SWAP_PER_EXTENSION, SWAP_EXTENDED));
    let stand_in = stand_in[input.kind.index()][output.kind.index()];
    extensions
        .into_iter()
        .fold(stand_in.saturating_add(over), u32::saturating_add)
}
