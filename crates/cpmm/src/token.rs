//! Mints and token accounts of both token programs, as far as a swap depends on them.
//!
//! Layouts follow `spl-token-interface` and `spl-token-2022-interface`: a Token-2022 account that
//! carries extensions is padded to 165 bytes, followed by one byte that says what it is and by
//! type-length-value records.

use solana_pubkey::Pubkey;

use crate::{
    bytes::{DecodeError, Reader, Writer},
    extensions::MintExtensions,
    ids,
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
const EXTENSION_TRANSFER_FEE_CONFIG: u16 = 1;
const EXTENSION_TRANSFER_FEE_AMOUNT: u16 = 2;
const EXTENSION_MEMO_TRANSFER: u16 = 8;
const EXTENSION_CPI_GUARD: u16 = 11;
const EXTENSION_NON_TRANSFERABLE_ACCOUNT: u16 = 13;

/// Mint extensions under which a swap moves raw amounts exactly as without them: MintCloseAuthority,
/// ConfidentialTransferMint, whose transfers are instructions of their own, InterestBearingConfig, PermanentDelegate, who may
/// take tokens but stops no transfer, MetadataPointer, TokenMetadata, GroupPointer, TokenGroup,
/// GroupMemberPointer, TokenGroupMember, ScaledUiAmount. Any other one, known or not, may stop or
/// change a transfer, so a mint that carries it is not quoted.
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
        }
    }

    /// Every extension that it has.
    #[must_use]
    pub const fn extensions(&self) -> MintExtensions {
        if self.transfer_fee.is_some() {
            self.other_extensions.with(EXTENSION_TRANSFER_FEE_CONFIG)
        } else {
            self.other_extensions
        }
    }

    /// How many extensions it has that change nothing about a swap but the units it takes: the token program passes by
    /// each when it looks for another.
    #[must_use]
    pub fn neutral_extensions(&self) -> u8 {
        let kinds = self.other_extensions.iter();
        let neutral = kinds.filter(|kind| NEUTRAL_MINT_EXTENSIONS.contains(kind));
        neutral.fold(0, |count, _| u8::saturating_add(count, 1))
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
        while records.len() >= 4 {
            let mut head = Reader::new(records);
            let (kind, len) = (head.u16(), head.u16());
            if kind == EXTENSION_UNINITIALIZED {
                break;
            }
            let (record, rest) = records.get(4..)?.split_at_checked(usize::from(len))?;
            if kind == EXTENSION_TRANSFER_FEE_CONFIG {
                self.transfer_fee = Some(read_transfer_fee_config(record)?);
            } else {
                self.other_extensions = self.other_extensions.with(kind);
                if !NEUTRAL_MINT_EXTENSIONS.contains(&kind) {
                    self.unsupported_extension.get_or_insert(kind);
                }
            }
            records = rest;
        }
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
            .u16(EXTENSION_TRANSFER_FEE_CONFIG)
            .u16(TRANSFER_FEE_CONFIG_LEN)
            .pubkey(authority)
            .pubkey(authority)
            .u64(0);
        schedule(schedule(head, fee.older), fee.newer).finish()
    }
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fee_mint() -> Mint {
        let schedule = |epoch, basis_points| TransferFee {
            epoch,
            maximum_fee: 5_000,
            basis_points,
        };
        Mint {
            transfer_fee: Some(TransferFeeConfig {
                older: schedule(1, 50),
                newer: schedule(2, 100),
            }),
            ..Mint::plain(6, 1_000_000)
        }
    }

    #[test]
    fn mints_survive_a_round_trip() {
        let authority = Pubkey::from([1; 32]);
        for (mint, len) in [(Mint::plain(9, 7), MINT_LEN), (fee_mint(), 278)] {
            let data = mint.encode(&authority);
            assert_eq!(data.len(), len);
            assert_eq!(Mint::decode(&data), Ok(mint));
        }
    }

    #[test]
    fn token_accounts_survive_a_round_trip() {
        let account = TokenAccount {
            mint: Pubkey::from([1; 32]),
            owner: Pubkey::from([2; 32]),
            amount: 3,
            frozen: false,
        };
        let kinds = [
            (TokenAccountKind::Plain, 165),
            (TokenAccountKind::Native { reserve: 2_039_280 }, 165),
            (TokenAccountKind::WithTransferFee, 178),
        ];
        for (kind, len) in kinds {
            let data = account.encode(kind);
            assert_eq!(data.len(), len);
            assert_eq!(TokenAccount::decode(&data), Ok(account));
        }
    }

    #[test]
    fn an_extension_that_may_stop_a_transfer_is_reported() {
        const TRANSFER_HOOK: u16 = 14;
        let mut data = fee_mint().encode(&Pubkey::from([1; 32]));
        data.extend_from_slice(&TRANSFER_HOOK.to_le_bytes());
        data.extend_from_slice(&64u16.to_le_bytes());
        data.extend_from_slice(&[0; 64]);
        let mint = Mint::decode(&data).expect("a mint with a hook is a mint");
        assert_eq!(mint.unsupported_extension, Some(TRANSFER_HOOK));
        assert!(mint.transfer_fee.is_some());
        let kinds: Vec<_> = mint.extensions().iter().collect();
        assert_eq!(kinds, [EXTENSION_TRANSFER_FEE_CONFIG, TRANSFER_HOOK]);
    }

    #[test]
    fn extensions_that_change_nothing_are_counted_and_stop_no_transfer() {
        let mut data = fee_mint().encode(&Pubkey::from([1; 32]));
        for kind in NEUTRAL_MINT_EXTENSIONS {
            data.extend_from_slice(&kind.to_le_bytes());
            data.extend_from_slice(&0u16.to_le_bytes());
        }
        let mint = Mint::decode(&data).expect("a mint");
        assert_eq!(mint.unsupported_extension, None);
        assert_eq!(
            usize::from(mint.neutral_extensions()),
            NEUTRAL_MINT_EXTENSIONS.len()
        );
        assert_eq!(
            mint.extensions().iter().count(),
            NEUTRAL_MINT_EXTENSIONS.len() + 1
        );
    }

    #[test]
    fn a_permanent_delegate_and_confidential_transfers_of_others_stop_no_transfer() {
        const PERMANENT_DELEGATE: (u16, u16) = (12, 32);
        const CONFIDENTIAL_TRANSFER_MINT: (u16, u16) = (4, 65);
        for (kind, length) in [PERMANENT_DELEGATE, CONFIDENTIAL_TRANSFER_MINT] {
            let mut data = fee_mint().encode(&Pubkey::from([1; 32]));
            data.extend_from_slice(&kind.to_le_bytes());
            data.extend_from_slice(&length.to_le_bytes());
            data.extend(vec![1; usize::from(length)]);
            let mint = Mint::decode(&data).expect("a mint");
            assert_eq!(mint.unsupported_extension, None, "{kind}");
            assert_eq!(mint.neutral_extensions(), 1, "{kind}");
        }
    }

    #[test]
    fn rejects_a_mint_taken_for_a_token_account_and_the_reverse() {
        let mint = fee_mint().encode(&Pubkey::from([1; 32]));
        assert!(TokenAccount::decode(&mint).is_err());
        let account = TokenAccount {
            mint: Pubkey::from([1; 32]),
            owner: Pubkey::from([2; 32]),
            amount: 3,
            frozen: false,
        };
        for kind in [TokenAccountKind::Plain, TokenAccountKind::WithTransferFee] {
            assert!(Mint::decode(&account.encode(kind)).is_err());
        }
    }

    #[test]
    fn rejects_a_record_that_reaches_past_the_end() {
        let mut data = fee_mint().encode(&Pubkey::from([1; 32]));
        data.pop();
        assert!(matches!(
            Mint::decode(&data),
            Err(DecodeError::Length { .. })
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(
            data in proptest::collection::vec(any::<u8>(), 0..400),
        ) {
            let _ = Mint::decode(&data);
            let _ = TokenAccount::decode(&data);
        }
    }
}
