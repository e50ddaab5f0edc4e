//! Compute units that each instruction of a swap's transaction may use, from a measured table (pure).
//!
//! A limit that is short makes a good swap fail; one that is long makes a block look fuller than it is, and spreads a
//! fixed priority fee over units that are not used. So every figure is the most that the instruction used when it was
//! executed, and a test executes every combination of instructions, with wallets of different bumps, mints of different
//! extensions in different orders and random pools, and fails when a limit is short or more than 15 % over.
//!
//! The units of instructions add up exactly, so each row of the test is a sum of lines here. What the exchange uses is
//! not among them: [`crate::compute_units`] has it from the chain. The SPL Token program is
//! the optimised one (p-token), which every cluster runs by now.

use cpmm::{Mint, PassedRecords, TokenProgram};

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

/// Added to [`CREATE`] for the record of the mint's transfer hook.
const CREATE_WITH_HOOK: u32 = 600;

/// `transferChecked`, by [`TokenKind`].
const TRANSFER_CHECKED: [u32; 3] = [105, 1_910, 3_001];

/// Added to [`TRANSFER_CHECKED`] for each record of the mint that a search passes by.
const TRANSFER_PER_RECORD: u32 = 54;

/// Added to [`TRANSFER_CHECKED`] once, when neutral extensions are all that a mint has.
const TRANSFER_EXTENDED: u32 = 84;

/// Added to [`TRANSFER_CHECKED`] once for a mint with neutral extensions: two of them, the permanent delegate and the hook,
/// are read where they are found.
const TRANSFER_FOUND: u32 = 40;

/// The guard's own part of a swap through one pool, its call of the exchange included and what that uses not.
const GUARDED_SWAP: u32 = 2_000;

/// The same through two pools: the guard walks over its accounts once.
const GUARDED_TWO_HOPS: u32 = 3_360;

/// Added where the swap expires: the guard looks at the clock.
const GUARD_EXPIRY: u32 = 124;

/// The most that the guard itself uses in a swap through one pool, whatever accounts it is given: its instructions, system
/// calls and the call of the exchange, but not the exchange, nor the unit for every 250 bytes of an account that is handed
/// on. `proof.json` states it of the compiled bytes, for the form that takes most; real lists of accounts take some 700 less.
pub const GUARD_ONE_HOP: u32 = 2_721;

/// As [`GUARD_ONE_HOP`], of a swap through two pools.
pub const GUARD_TWO_HOPS: u32 = 4_489;

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
    /// and with a transfer fee the record of what was withheld. See [`TokenShape::account_len`] for what else a mint adds.
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
    /// Whether one of them is a transfer hook, of which its accounts have a record.
    pub has_hook: bool,
    /// What the searches of a transfer pass by.
    pub passed_records: PassedRecords,
}

/// Length of an account's record of a transfer hook: type, length, and whether it is under way.
const HOOK_RECORD_LEN: usize = 5;

impl TokenShape {
    /// The shape of a mint without neutral extensions.
    #[must_use]
    pub const fn plain(kind: TokenKind) -> Self {
        Self {
            kind,
            neutral_extensions: 0,
            has_hook: false,
            passed_records: PassedRecords::NONE,
        }
    }

    /// The shape of a mint.
    #[must_use]
    pub fn of(program: TokenProgram, mint: &Mint) -> Self {
        Self {
            kind: TokenKind::of(program, mint),
            neutral_extensions: mint.neutral_extensions(),
            has_hook: mint.has_transfer_hook(),
            passed_records: mint.passed_records,
        }
    }

    /// Length of an associated account of this token, bytes.
    #[must_use]
    pub const fn account_len(self) -> usize {
        let hook = if self.has_hook { HOOK_RECORD_LEN } else { 0 };
        self.kind.account_len().saturating_add(hook)
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
        .saturating_add(if token.has_hook { CREATE_WITH_HOOK } else { 0 })
        .saturating_add(tries.saturating_mul(BUMP_TRY))
}

/// A `transferChecked` of this token from one account to another.
#[must_use]
pub fn transfer_checked(token: TokenShape) -> u32 {
    let passed = token.passed_records;
    let records = u32::from(passed.for_fee).saturating_add(u32::from(passed.for_others));
    TRANSFER_CHECKED[token.kind.index()]
        .saturating_add(records.saturating_mul(TRANSFER_PER_RECORD))
        .saturating_add(token.extensions(0, TRANSFER_EXTENDED))
        .saturating_add(if token.neutral_extensions > 0 {
            TRANSFER_FOUND
        } else {
            0
        })
}

/// The guard's own part of a swap, which expires or does not.
#[must_use]
pub const fn guard(two_hops: bool, expires: bool) -> u32 {
    let guard = if two_hops {
        GUARDED_TWO_HOPS
    } else {
        GUARDED_SWAP
    };
    guard.saturating_add(if expires { GUARD_EXPIRY } else { 0 })
}
