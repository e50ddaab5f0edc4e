//! Account layouts of the exchange: pool state, fee configuration and observation ring.
//!
//! All integers are little-endian. Layouts follow `programs/cp-swap/src/states/{pool,config,oracle}.rs`.

use solana_pubkey::Pubkey;

use crate::{
    bytes::{DecodeError, Reader, Writer},
    units::FeeRate,
};

/// First eight bytes of a PoolState.
pub const POOL_STATE_DISCRIMINATOR: [u8; 8] = [0xf7, 0xed, 0xe3, 0xf5, 0xd7, 0xc3, 0xde, 0x46];

/// First eight bytes of an AmmConfig.
pub const AMM_CONFIG_DISCRIMINATOR: [u8; 8] = [0xda, 0xf4, 0x21, 0x68, 0xcb, 0xcb, 0x2b, 0x6f];

/// First eight bytes of an ObservationState.
const OBSERVATION_DISCRIMINATOR: [u8; 8] = [0x7a, 0xae, 0xc5, 0x35, 0x81, 0x09, 0xa5, 0x84];

/// Length of a PoolState account, bytes.
pub const POOL_STATE_LEN: usize = 637;

/// Length of an AmmConfig account, bytes.
pub const AMM_CONFIG_LEN: usize = 236;

/// Length of an ObservationState account, bytes.
pub const OBSERVATION_LEN: usize = 4075;

/// Bit of [`PoolState::status`] that, when set, disables swaps.
const STATUS_SWAP_DISABLED: u8 = 1 << 2;

/// A pair of values, one for each token of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerToken<T> {
    /// The value for token 0, the mint with the smaller address.
    pub token_0: T,
    /// The value for token 1.
    pub token_1: T,
}

impl<T> PerToken<T> {
    /// Pairs two values.
    pub const fn new(token_0: T, token_1: T) -> Self {
        Self { token_0, token_1 }
    }
}

/// Which token the pool creator's fee is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreatorFeeOn {
    /// Always the input token.
    BothToken,
    /// Token 0: the input when swapping 0 to 1, otherwise the output.
    OnlyToken0,
    /// Token 1: the input when swapping 1 to 0, otherwise the output.
    OnlyToken1,
}

impl CreatorFeeOn {
    /// The mode of the stored byte, or `None` for a byte the exchange refuses with `InvalidFeeModel`.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::BothToken),
            1 => Some(Self::OnlyToken0),
            2 => Some(Self::OnlyToken1),
            _ => None,
        }
    }
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolState {
    /// Fee configuration.
    pub amm_config: Pubkey,
    /// Who opened the pool and earns the creator fee.
    pub pool_creator: Pubkey,
    /// Token accounts that hold the pool's tokens and the fees not collected yet.
    pub vaults: PerToken<Pubkey>,
    /// Mint of the liquidity token.
    pub lp_mint: Pubkey,
    /// Mints of the two tokens, ordered by address.
    pub mints: PerToken<Pubkey>,
    /// Token programs of the two mints.
    pub token_programs: PerToken<Pubkey>,
    /// Price observations, written at every swap.
    pub observation: Pubkey,
    /// Bump of the vaults' authority.
    pub auth_bump: u8,
    /// Bit 0 deposit, bit 1 withdraw, bit 2 swap; a set bit disables.
    pub status: u8,
    /// Decimals of the liquidity token.
    pub lp_mint_decimals: u8,
    /// Decimals of the two mints.
    pub mint_decimals: PerToken<u8>,
    /// Liquidity tokens in circulation, the locked ones included.
    pub lp_supply: u64,
    /// Protocol fees in the vaults, smallest units.
    pub protocol_fees: PerToken<u64>,
    /// Fund fees in the vaults, smallest units.
    pub fund_fees: PerToken<u64>,
    /// Unix time, seconds, before which swaps are refused.
    pub open_time: u64,
    /// Epoch of the last change.
    pub recent_epoch: u64,
    /// Raw [`CreatorFeeOn`]; kept raw because an unknown byte must refuse a swap, not the decoding.
    pub creator_fee_on: u8,
    /// Whether a creator fee is taken at all.
    pub enable_creator_fee: bool,
    /// Creator fees in the vaults, smallest units.
    pub creator_fees: PerToken<u64>,
}

impl PoolState {
    /// Decodes an account's data.
    ///
    /// # Errors
    /// Another length or discriminator, or a boolean that is neither 0 nor 1.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        const KIND: &str = "PoolState";
        let mut r = open(data, KIND, POOL_STATE_LEN, POOL_STATE_DISCRIMINATOR)?;
        let state = Self {
            amm_config: r.pubkey(),
            pool_creator: r.pubkey(),
            vaults: PerToken::new(r.pubkey(), r.pubkey()),
            lp_mint: r.pubkey(),
            mints: PerToken::new(r.pubkey(), r.pubkey()),
            token_programs: PerToken::new(r.pubkey(), r.pubkey()),
            observation: r.pubkey(),
            auth_bump: r.u8(),
            status: r.u8(),
            lp_mint_decimals: r.u8(),
            mint_decimals: PerToken::new(r.u8(), r.u8()),
            lp_supply: r.u64(),
            protocol_fees: PerToken::new(r.u64(), r.u64()),
            fund_fees: PerToken::new(r.u64(), r.u64()),
            open_time: r.u64(),
            recent_epoch: r.u64(),
            creator_fee_on: r.u8(),
            enable_creator_fee: boolean(r.u8(), KIND, "enable_creator_fee")?,
            creator_fees: {
                r.skip::<6>();
                PerToken::new(r.u64(), r.u64())
            },
        };
        close(r, KIND, data, state)
    }

    /// The account's data, padding zeroed: the inverse of [`PoolState::decode`], for fixtures.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::default()
            .bytes(&POOL_STATE_DISCRIMINATOR)
            .pubkey(&self.amm_config)
            .pubkey(&self.pool_creator)
            .pubkey(&self.vaults.token_0)
            .pubkey(&self.vaults.token_1)
            .pubkey(&self.lp_mint)
            .pubkey(&self.mints.token_0)
            .pubkey(&self.mints.token_1)
            .pubkey(&self.token_programs.token_0)
            .pubkey(&self.token_programs.token_1)
            .pubkey(&self.observation)
            .u8(self.auth_bump)
            .u8(self.status)
            .u8(self.lp_mint_decimals)
            .u8(self.mint_decimals.token_0)
            .u8(self.mint_decimals.token_1)
            .u64(self.lp_supply)
            .u64(self.protocol_fees.token_0)
            .u64(self.protocol_fees.token_1)
            .u64(self.fund_fees.token_0)
            .u64(self.fund_fees.token_1)
            .u64(self.open_time)
            .u64(self.recent_epoch)
            .u8(self.creator_fee_on)
            .u8(u8::from(self.enable_creator_fee))
            .bytes(&[0; 6])
            .u64(self.creator_fees.token_0)
            .u64(self.creator_fees.token_1)
            .pad_to(POOL_STATE_LEN)
            .finish()
    }

    /// Whether the exchange's admin has disabled swaps in this pool.
    #[must_use]
    pub const fn swap_disabled(&self) -> bool {
        self.status & STATUS_SWAP_DISABLED != 0
    }
}

/// Fee configuration shared by many pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmmConfig {
    /// Bump of the account's address.
    pub bump: u8,
    /// Whether opening pools with this configuration is disabled.
    pub disable_create_pool: bool,
    /// Number of this configuration, a seed of its address.
    pub index: u16,
    /// Trade fee, taken from the input.
    pub trade_fee_rate: FeeRate,
    /// The protocol's share of the trade fee.
    pub protocol_fee_rate: FeeRate,
    /// The fund's share of the trade fee.
    pub fund_fee_rate: FeeRate,
    /// Lamports paid for opening a pool.
    pub create_pool_fee: u64,
    /// Who may collect protocol fees.
    pub protocol_owner: Pubkey,
    /// Who may collect fund fees.
    pub fund_owner: Pubkey,
    /// Creator fee, in force only in pools that enable it.
    pub creator_fee_rate: FeeRate,
}

impl AmmConfig {
    /// Decodes an account's data.
    ///
    /// # Errors
    /// Another length or discriminator, or a boolean that is neither 0 nor 1.
    pub fn decode(data: &[u8]) -> Result<Self, DecodeError> {
        const KIND: &str = "AmmConfig";
        let mut r = open(data, KIND, AMM_CONFIG_LEN, AMM_CONFIG_DISCRIMINATOR)?;
        let config = Self {
            bump: r.u8(),
            disable_create_pool: boolean(r.u8(), KIND, "disable_create_pool")?,
            index: r.u16(),
            trade_fee_rate: FeeRate(r.u64()),
            protocol_fee_rate: FeeRate(r.u64()),
            fund_fee_rate: FeeRate(r.u64()),
            create_pool_fee: r.u64(),
            protocol_owner: r.pubkey(),
            fund_owner: r.pubkey(),
            creator_fee_rate: FeeRate(r.u64()),
        };
        close(r, KIND, data, config)
    }

    /// The account's data, padding zeroed: the inverse of [`AmmConfig::decode`], for fixtures.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        Writer::default()
            .bytes(&AMM_CONFIG_DISCRIMINATOR)
            .u8(self.bump)
            .u8(u8::from(self.disable_create_pool))
            .u16(self.index)
            .u64(self.trade_fee_rate.0)
            .u64(self.protocol_fee_rate.0)
            .u64(self.fund_fee_rate.0)
            .u64(self.create_pool_fee)
            .pubkey(&self.protocol_owner)
            .pubkey(&self.fund_owner)
            .u64(self.creator_fee_rate.0)
            .pad_to(AMM_CONFIG_LEN)
            .finish()
    }
}

/// Data of an observation account that no swap has written to yet, for fixtures.
#[must_use]
pub fn observation_account(pool: &Pubkey) -> Vec<u8> {
    Writer::default()
        .bytes(&OBSERVATION_DISCRIMINATOR)
        .u8(0)
        .u16(0)
        .pubkey(pool)
        .pad_to(OBSERVATION_LEN)
        .finish()
}

fn open<'a>(
    data: &'a [u8],
    kind: &'static str,
    len: usize,
    discriminator: [u8; 8],
) -> Result<Reader<'a>, DecodeError> {
    if data.len() != len {
        return Err(DecodeError::Length {
            kind,
            found: data.len(),
        });
    }
    let mut reader = Reader::new(data);
    if reader.array() != discriminator {
        return Err(DecodeError::Discriminator { kind });
    }
    Ok(reader)
}

fn close<T>(
    reader: Reader<'_>,
    kind: &'static str,
    data: &[u8],
    value: T,
) -> Result<T, DecodeError> {
    if reader.finish() {
        return Ok(value);
    }
    Err(DecodeError::Length {
        kind,
        found: data.len(),
    })
}

const fn boolean(byte: u8, kind: &'static str, field: &'static str) -> Result<bool, DecodeError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::Field { kind, field }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A pool whose every field is different, so that a shifted offset shows.
    fn distinct_pool() -> PoolState {
        let key = |n: u8| Pubkey::from([n; 32]);
        PoolState {
            amm_config: key(1),
            pool_creator: key(2),
            vaults: PerToken::new(key(3), key(4)),
            lp_mint: key(5),
            mints: PerToken::new(key(6), key(7)),
            token_programs: PerToken::new(key(8), key(9)),
            observation: key(10),
            auth_bump: 253,
            status: 4,
            lp_mint_decimals: 9,
            mint_decimals: PerToken::new(6, 8),
            lp_supply: 11,
            protocol_fees: PerToken::new(12, 13),
            fund_fees: PerToken::new(14, 15),
            open_time: 16,
            recent_epoch: 17,
            creator_fee_on: 2,
            enable_creator_fee: true,
            creator_fees: PerToken::new(18, 19),
        }
    }

    #[test]
    fn pool_state_has_the_published_offsets() {
        let data = distinct_pool().encode();
        assert_eq!(data.len(), POOL_STATE_LEN);
        assert_eq!((data[72], data[104], data[168], data[200]), (3, 4, 6, 7));
        assert_eq!((data[296], data[328], data[329]), (10, 253, 4));
        assert_eq!((data[333], data[341], data[357]), (11, 12, 14));
        assert_eq!((data[373], data[389], data[390]), (16, 2, 1));
        assert_eq!((data[397], data[405]), (18, 19));
        assert_eq!(PoolState::decode(&data), Ok(distinct_pool()));
        assert!(distinct_pool().swap_disabled());
    }

    #[test]
    fn amm_config_has_the_published_offsets() {
        let config = AmmConfig {
            bump: 1,
            disable_create_pool: false,
            index: 2,
            trade_fee_rate: FeeRate(3),
            protocol_fee_rate: FeeRate(4),
            fund_fee_rate: FeeRate(5),
            create_pool_fee: 6,
            protocol_owner: Pubkey::from([7; 32]),
            fund_owner: Pubkey::from([8; 32]),
            creator_fee_rate: FeeRate(9),
        };
        let data = config.encode();
        assert_eq!(data.len(), AMM_CONFIG_LEN);
        assert_eq!((data[12], data[20], data[28], data[36]), (3, 4, 5, 6));
        assert_eq!((data[44], data[76], data[108]), (7, 8, 9));
        assert_eq!(AmmConfig::decode(&data), Ok(config));
    }

    #[test]
    fn rejects_a_foreign_discriminator_and_a_foreign_length() {
        let mut data = distinct_pool().encode();
        assert!(matches!(
            AmmConfig::decode(&data),
            Err(DecodeError::Length { .. })
        ));
        data[0] ^= 1;
        assert!(matches!(
            PoolState::decode(&data),
            Err(DecodeError::Discriminator { .. })
        ));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(
            data in proptest::collection::vec(any::<u8>(), 0..700),
        ) {
            let _ = PoolState::decode(&data);
            let _ = AmmConfig::decode(&data);
        }
    }
}
