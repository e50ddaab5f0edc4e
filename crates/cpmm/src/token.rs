//! Mints and token accounts of both token programs, as far as a swap depends on them.
//!
//! Layouts follow `spl-token-interface` and `spl-token-2022-interface`: a Token-2022 account that
//! carries extensions is padded to 165 bytes, followed by one byte that says what it is and by
//! type-length-value records.

use solana_pubkey::Pubkey;

use crate::{
    bytes::{DecodeError, Reader, Writer},
    extensions::{MintExtensions, TRANSFER_FEE_CONFIG, TRANSFER_HOOK},
    ids,
    passed_records::{PassedRecords, Searches},
    transfer_fee::{TransferFee, TransferFeeConfig},
};

/// Length of a mint without extensions, bytes.
pub const MINT_LEN: usize = 82;

/// Length of a token account without extensions, bytes.
pub const TOKEN_ACCOUNT_LEN: usize = 165;

/// Values of the byte behind the base of an extended account.
const ACCOUNT_TYPE_MINT: u8 = 1;
const ACCOUNT_TYPE_TOKEN_ACCOUNT: u8 = 2;

/// Types of type-length-value records.
const EXTENSION_UNINITIALIZED: u16 = 0;
const EXTENSION_TRANSFER_FEE_AMOUNT: u16 = 2;
const EXTENSION_MEMO_TRANSFER: u16 = 8;
const EXTENSION_CPI_GUARD: u16 = 11;
const EXTENSION_NON_TRANSFERABLE_ACCOUNT: u16 = 13;

/// Mint extensions under which a swap moves raw amounts exactly as without them: MintCloseAuthority,
/// ConfidentialTransferMint, whose transfers are instructions of their own, InterestBearingConfig, PermanentDelegate, who may
/// take tokens but stops no transfer, MetadataPointer, TokenMetadata, GroupPointer, TokenGroup,
/// GroupMemberPointer, TokenGroupMember, ScaledUiAmount. So is a TransferHook that names no program. Any other one, known or
/// not, may stop or change a transfer, so a mint that carries it is not quoted.
const NEUTRAL_MINT_EXTENSIONS: [u16; 11] = [3, 4, 10, 12, 18, 19, 20, 21, 22, 23, 25];

/// Length of a TransferFeeConfig record's value, bytes.
const TRANSFER_FEE_CONFIG_LEN: u16 = 108;

/// One of the two token programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenProgram {
    /// SPL Token.
    Spl,
    /// Token-2022.
    Token2022,
}

impl TokenProgram {
    /// The token program of this address, if it is one.
    #[must_use]
    pub fn from_id(id: &Pubkey) -> Option<Self> {
        match *id {
            ids::SPL_TOKEN => Some(Self::Spl),
            ids::TOKEN_2022 => Some(Self::Token2022),
            _ => None,
        }
    }

    /// Its address.
    #[must_use]
    pub const fn id(self) -> Pubkey {
        match self {
            Self::Spl => ids::SPL_TOKEN,
            Self::Token2022 => ids::TOKEN_2022,
        }
    }
}

/// What a quote needs to know of a mint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mint {
    /// Tokens in existence, smallest units; `None` where the mint was not read, and the rest is known by its pool.
    pub supply: Option<u64>,
    /// Decimal places of one whole token.
    pub decimals: u8,
    /// Transfer fee schedules, if the mint has any.
    pub transfer_fee: Option<TransferFeeConfig>,
    /// The first extension that may stop or change a transfer, by its record type.
    pub unsupported_extension: Option<u16>,
    /// Its extensions, all but the transfer fee.
    pub other_extensions: MintExtensions,
    /// What of them a transfer passes by: a matter of their order.
    pub passed_records: PassedRecords,
}

impl Mint {
    /// A mint without extensions.
    #[must_use]
    pub const fn plain(decimals: u8, supply: u64) -> Self {
        Self {
            supply: Some(supply),
            ..Self::unread(decimals)
        }
    }

    /// A mint of SPL Token that was not read. Such a mint has no extensions, cannot be closed, and keeps its decimals, which its
    /// pools name: all that a quote needs is known without it.
    #[must_use]
    pub const fn unread(decimals: u8) -> Self {
        Self {
            supply: None,
            decimals,
            transfer_fee: None,
            unsupported_extension: None,
            other_extensions: MintExtensions::NONE,
            passed_records: PassedRecords::NONE,
        }
    }

    /// Every extension that it has.
    #[must_use]
    pub const fn extensions(&self) -> MintExtensions {
        if self.transfer_fee.is_some() {
            self.other_extensions.with(TRANSFER_FEE_CONFIG)
        } else {
            self.other_extensions
        }
    }

    /// How many extensions it has that change nothing about a swap but the units it takes: programs pass by them when they
    /// look for another.
    #[must_use]
    pub fn neutral_extensions(&self) -> u8 {
        let kinds = self.other_extensions.iter();
        // Of a mint whose hook names a program nothing is asked: it is not traded.
        let neutral =
            kinds.filter(|kind| *kind == TRANSFER_HOOK || NEUTRAL_MINT_EXTENSIONS.contains(kind));
        neutral.fold(0, |count, _| u8::saturating_add(count, 1))
    }

    /// Whether it has a transfer hook, of which its accounts carry a record, also while it names no program.
    #[must_use]
    pub const fn has_transfer_hook(&self) -> bool {
        self.other_extensions.has(TRANSFER_HOOK)
    }

    /// Decodes an account's data, whichever token program owns it.
    ///
    /// # Errors
    /// A length that no mint has, an account of another kind, or one that is not initialised.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        const KIND: &str = "mint";
        let length = DecodeError::Length {
            kind: KIND,
            found: data.len(),
        };
        let mut r = Reader::new(data);
        r.skip::<36>();
        let mut mint = Self::plain(0, r.u64());
        mint.decimals = r.u8();
        let initialized = r.u8();
        r.skip::<36>();
        if !r.finish() || (data.len() != MINT_LEN && data.len() <= TOKEN_ACCOUNT_LEN) {
            return Err(length);
        }
        if initialized != 1 {
            return Err(DecodeError::Field {
                kind: KIND,
                field: "is_initialized",
            });
        }
        if data.len() > MINT_LEN {
            if data.get(TOKEN_ACCOUNT_LEN) != Some(&ACCOUNT_TYPE_MINT) {
                return Err(DecodeError::Discriminator { kind: KIND });
            }
            mint.read_extensions(data).ok_or(length)?;
        }
        Ok(mint)
    }

    /// `None` when a record reaches past the end of the account.
    fn read_extensions(&mut self, data: &[u8]) -> Option<()> {
        let mut records = data.get(TOKEN_ACCOUNT_LEN.saturating_add(1)..)?;
        let mut searches = Searches::default();
        while records.len() >= 4 {
            let mut head = Reader::new(records);
            let (kind, len) = (head.u16(), head.u16());
            if kind == EXTENSION_UNINITIALIZED {
                break;
            }
            let (record, rest) = records.get(4..)?.split_at_checked(usize::from(len))?;
            searches.meet(kind);
            if kind == TRANSFER_FEE_CONFIG {
                self.transfer_fee = Some(read_transfer_fee_config(record)?);
            } else {
                self.other_extensions = self.other_extensions.with(kind);
                if !is_neutral(kind, record) {
                    self.unsupported_extension.get_or_insert(kind);
                }
            }
            records = rest;
        }
        self.passed_records = searches.end();
        Some(())
    }

    /// Data of an initialised mint account, for fixtures. `authority` may mint more.
    #[must_use]
    pub fn encode(&self, authority: &Pubkey) -> Vec<u8> {
        let base = Writer::default()
            .u32(1)
            .pubkey(authority)
            .u64(self.supply.unwrap_or(0))
            .u8(self.decimals)
            .u8(1)
            .pad_to(MINT_LEN);
        let Some(fee) = self.transfer_fee else {
            return base.finish();
        };
        let schedule = |w: Writer, fee: TransferFee| {
            w.u64(fee.epoch).u64(fee.maximum_fee).u16(fee.basis_points)
        };
        let head = base
            .pad_to(TOKEN_ACCOUNT_LEN)
            .u8(ACCOUNT_TYPE_MINT)
            .u16(TRANSFER_FEE_CONFIG)
            .u16(TRANSFER_FEE_CONFIG_LEN)
            .pubkey(authority)
            .pubkey(authority)
            .u64(0);
        schedule(schedule(head, fee.older), fee.newer).finish()
    }
}

/// Whether a record of a mint changes nothing about its transfers. A hook names its program behind its authority, who may name
/// another one later: that is a write to the mint, which is read anew then.
fn is_neutral(kind: u16, record: &[u8]) -> bool {
    if kind == TRANSFER_HOOK {
        return record
            .get(32..)
            .is_some_and(|program| program == [0_u8; 32]);
    }
    NEUTRAL_MINT_EXTENSIONS.contains(&kind)
}

fn read_transfer_fee_config(record: &[u8]) -> Option<TransferFeeConfig> {
    let mut r = Reader::new(record);
    r.skip::<72>();
    let config = TransferFeeConfig {
        older: read_transfer_fee(&mut r),
        newer: read_transfer_fee(&mut r),
    };
    r.finish().then_some(config)
}

fn read_transfer_fee(r: &mut Reader<'_>) -> TransferFee {
    TransferFee {
        epoch: r.u64(),
        maximum_fee: r.u64(),
        basis_points: r.u16(),
    }
}

/// What a quote needs to know of a token account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenAccount {
    /// Mint of its tokens.
    pub mint: Pubkey,
    /// Who may spend them.
    pub owner: Pubkey,
    /// Balance, smallest units; for wrapped SOL, lamports above the rent-exempt reserve.
    pub amount: u64,
    /// Whether transfers in and out are stopped.
    pub frozen: bool,
}

/// What extensions of a token account forbid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenAccountRules {
    /// Whether a transfer into it needs a memo before it.
    pub requires_memo: bool,
    /// Whether programs may not move its tokens under its owner's signature.
    pub guards_against_cpi: bool,
    /// Whether its tokens cannot be transferred.
    pub is_non_transferable: bool,
}

impl TokenAccountRules {
    /// Reads the extensions of a token account's data, up to the first record that reaches past its end.
    #[must_use]
    pub fn decode(data: &[u8]) -> Self {
        let mut rules = Self::default();
        let mut records = data
            .get(TOKEN_ACCOUNT_LEN.saturating_add(1)..)
            .unwrap_or(&[]);
        while records.len() >= 4 {
            let mut head = Reader::new(records);
            let (kind, len) = (head.u16(), head.u16());
            let record = records.get(4..).unwrap_or(&[]);
            let Some((record, rest)) = record.split_at_checked(usize::from(len)) else {
                break;
            };
            let is_set = record.first() == Some(&1);
            match kind {
                EXTENSION_UNINITIALIZED => break,
                EXTENSION_MEMO_TRANSFER => rules.requires_memo = is_set,
                EXTENSION_CPI_GUARD => rules.guards_against_cpi = is_set,
                EXTENSION_NON_TRANSFERABLE_ACCOUNT => rules.is_non_transferable = true,
                _ => {}
            }
            records = rest;
        }
        rules
    }
}

/// Kinds of token account that fixtures make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAccountKind {
    /// 165 bytes, either token program.
    Plain,
    /// Wrapped SOL; holds this many lamports of rent-exempt reserve beside its balance.
    Native {
        /// Rent-exempt reserve, lamports.
        reserve: u64,
    },
    /// Token-2022 account of a mint with a transfer fee: 178 bytes.
    WithTransferFee,
}

impl TokenAccount {
    /// Decodes an account's data, whichever token program owns it.
    ///
    /// # Errors
    /// A length that no token account has, an account of another kind, or one that is not initialised.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        const KIND: &str = "token account";
        if data.len() < TOKEN_ACCOUNT_LEN {
            return Err(DecodeError::Length {
                kind: KIND,
                found: data.len(),
            });
        }
        if data.len() > TOKEN_ACCOUNT_LEN
            && data.get(TOKEN_ACCOUNT_LEN) != Some(&ACCOUNT_TYPE_TOKEN_ACCOUNT)
        {
            return Err(DecodeError::Discriminator { kind: KIND });
        }
        let mut r = Reader::new(data);
        let (mint, owner, amount) = (r.pubkey(), r.pubkey(), r.u64());
        r.skip::<36>();
        let frozen = match r.u8() {
            1 => false,
            2 => true,
            _ => {
                return Err(DecodeError::Field {
                    kind: KIND,
                    field: "state",
                });
            }
        };
        Ok(Self {
            mint,
            owner,
            amount,
            frozen,
        })
    }

    /// Data of an initialised account without delegate or close authority, for fixtures.
    #[must_use]
    pub fn encode(&self, kind: TokenAccountKind) -> Vec<u8> {
        let base = Writer::default()
            .pubkey(&self.mint)
            .pubkey(&self.owner)
            .u64(self.amount)
            .bytes(&[0; 36])
            .u8(if self.frozen { 2 } else { 1 });
        match kind {
            TokenAccountKind::Plain => base.pad_to(TOKEN_ACCOUNT_LEN),
            TokenAccountKind::Native { reserve } => {
                base.u32(1).u64(reserve).pad_to(TOKEN_ACCOUNT_LEN)
            }
            TokenAccountKind::WithTransferFee => base
                .pad_to(TOKEN_ACCOUNT_LEN)
                .u8(ACCOUNT_TYPE_TOKEN_ACCOUNT)
                .u16(EXTENSION_TRANSFER_FEE_AMOUNT)
                .u16(8)
                .u64(0),
        }
        .finish()
    }
}

#[cfg(test)]
mod tests;
