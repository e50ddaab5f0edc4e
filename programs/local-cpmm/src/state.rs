//! Accounts of the exchange, byte for byte: packed, little-endian, behind an 8-byte discriminator.

use crate::error::ExchangeError;
use bytemuck::{Pod, Zeroable};

/// An address as it stands in account data.
pub type Key = [u8; 32];

/// An account kind: what its data starts with.
pub trait Discriminated: Pod {
    /// First 8 bytes of the SHA-256 of `account:` and the kind's name.
    const DISCRIMINATOR: [u8; 8];
    /// Length of the whole account data.
    const LEN: usize;
}

/// A pool.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub struct PoolState {
    pub amm_config: Key,
    pub pool_creator: Key,
    pub vaults: [Key; 2],
    pub lp_mint: Key,
    pub mints: [Key; 2],
    pub token_programs: [Key; 2],
    pub observation: Key,
    /// Bump of the authority, with which the vaults' transfers are signed.
    pub auth_bump: u8,
    /// Bit 0 deposit, bit 1 withdraw, bit 2 swap; set means switched off.
    pub status: u8,
    pub lp_mint_decimals: u8,
    pub mint_decimals: [u8; 2],
    pub lp_supply: u64,
    pub protocol_fees: [u64; 2],
    pub fund_fees: [u64; 2],
    /// Unix seconds.
    pub open_time: u64,
    pub recent_epoch: u64,
    /// Which token the creator fee is taken in: 0 the input, 1 token 0, 2 token 1.
    pub creator_fee_on: u8,
    pub enable_creator_fee: u8,
    pub padding_1: [u8; 6],
    pub creator_fees: [u64; 2],
    pub padding_2: [u64; 28],
}

impl Discriminated for PoolState {
    const DISCRIMINATOR: [u8; 8] = [0xf7, 0xed, 0xe3, 0xf5, 0xd7, 0xc3, 0xde, 0x46];
    const LEN: usize = 637;
}

const _: () = assert!(8 + size_of::<PoolState>() == PoolState::LEN);

/// The bit of `PoolState::status` that switches swaps off.
const STATUS_SWAP_OFF: u8 = 1 << 2;

/// Which of the pool's two tokens is paid in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    ZeroForOne,
    OneForZero,
}

impl Direction {
    /// Index, into the pool's pairs, of the token paid in.
    pub const fn input(self) -> usize {
        match self {
            Self::ZeroForOne => 0,
            Self::OneForZero => 1,
        }
    }

    /// Index, into the pool's pairs, of the token paid out.
    pub const fn output(self) -> usize {
        match self {
            Self::ZeroForOne => 1,
            Self::OneForZero => 0,
        }
    }
}

impl PoolState {
    /// Whether a swap is allowed at `unix_timestamp`, as the exchange compares it: as unsigned seconds.
    pub fn swaps_at(&self, unix_timestamp: u64) -> bool {
        self.status & STATUS_SWAP_OFF == 0 && unix_timestamp >= self.open_time
    }

    /// What the pool may trade: the vault balances less the fees that accrued in them.
    ///
    /// # Errors
    /// `MathOverflow` when the fees do not fit a u64, `InsufficientVault` when a vault holds less than them.
    pub fn reserves(&self, vault_balances: [u64; 2]) -> Result<[u64; 2], ExchangeError> {
        let fees = [self.accrued_fees(0)?, self.accrued_fees(1)?];
        let net = |i: usize| {
            vault_balances[i]
                .checked_sub(fees[i])
                .ok_or(ExchangeError::InsufficientVault)
        };
        Ok([net(0)?, net(1)?])
    }

    fn accrued_fees(&self, token: usize) -> Result<u64, ExchangeError> {
        let (protocol, fund, creator) = (self.protocol_fees, self.fund_fees, self.creator_fees);
        protocol[token]
            .checked_add(fund[token])
            .and_then(|sum| sum.checked_add(creator[token]))
            .ok_or(ExchangeError::MathOverflow)
    }

    /// Whether the creator fee of a swap in this direction is taken from its input.
    ///
    /// # Errors
    /// `InvalidFeeModel` for a setting that does not exist.
    pub fn creator_fee_on_input(&self, direction: Direction) -> Result<bool, ExchangeError> {
        match self.creator_fee_on {
            0 => Ok(true),
            1 => Ok(direction == Direction::ZeroForOne),
            2 => Ok(direction == Direction::OneForZero),
            _ => Err(ExchangeError::InvalidFeeModel),
        }
    }

    /// The creator's rate in force.
    pub fn creator_fee_rate(&self, config: &AmmConfig) -> u64 {
        if self.enable_creator_fee != 0 {
            config.creator_fee_rate
        } else {
            0
        }
    }

    /// Adds one swap's fees to the counters.
    ///
    /// # Errors
    /// `MathOverflow` when a counter does not hold the sum.
    pub fn accrue(
        &mut self,
        direction: Direction,
        fees: &crate::curve::Fees,
        creator_on_input: bool,
    ) -> Result<(), ExchangeError> {
        let input = direction.input();
        let creator = if creator_on_input {
            input
        } else {
            direction.output()
        };
        let (mut protocol, mut fund, mut creators) =
            (self.protocol_fees, self.fund_fees, self.creator_fees);
        add(&mut protocol[input], fees.protocol)?;
        add(&mut fund[input], fees.fund)?;
        add(&mut creators[creator], fees.creator)?;
        (self.protocol_fees, self.fund_fees, self.creator_fees) = (protocol, fund, creators);
        Ok(())
    }
}

fn add(counter: &mut u64, amount: u64) -> Result<(), ExchangeError> {
    *counter = counter
        .checked_add(amount)
        .ok_or(ExchangeError::MathOverflow)?;
    Ok(())
}

/// The fee rates that pools share; all rates in millionths.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub struct AmmConfig {
    pub bump: u8,
    pub disable_create_pool: u8,
    pub index: u16,
    /// Of the input.
    pub trade_fee_rate: u64,
    /// Of the trade fee.
    pub protocol_fee_rate: u64,
    /// Of the trade fee.
    pub fund_fee_rate: u64,
    /// Lamports.
    pub create_pool_fee: u64,
    pub protocol_owner: Key,
    pub fund_owner: Key,
    /// Of the input or the output.
    pub creator_fee_rate: u64,
    pub padding: [u64; 15],
}

impl Discriminated for AmmConfig {
    const DISCRIMINATOR: [u8; 8] = [0xda, 0xf4, 0x21, 0x68, 0xcb, 0xcb, 0x2b, 0x6f];
    const LEN: usize = 236;
}

const _: () = assert!(8 + size_of::<AmmConfig>() == AmmConfig::LEN);

/// The fields of `data`, once its discriminator is checked.
///
/// # Errors
/// 3001, 3002 or 3003, as the framework numbers them.
pub fn decode<T: Discriminated>(data: &[u8]) -> Result<&T, ExchangeError> {
    check_discriminator::<T>(data)?;
    let body = data.get(8..T::LEN);
    body.and_then(|body| bytemuck::try_from_bytes(body).ok())
        .ok_or(ExchangeError::AccountDidNotDeserialize)
}

/// The same, to be written.
///
/// # Errors
/// As `decode`.
pub fn decode_mut<T: Discriminated>(data: &mut [u8]) -> Result<&mut T, ExchangeError> {
    check_discriminator::<T>(data)?;
    let body = data.get_mut(8..T::LEN);
    body.and_then(|body| bytemuck::try_from_bytes_mut(body).ok())
        .ok_or(ExchangeError::AccountDidNotDeserialize)
}

/// Turns zeroed data into an account of the kind.
///
/// # Errors
/// 3003 when the data is too short.
pub fn create<T: Discriminated>(data: &mut [u8]) -> Result<&mut T, ExchangeError> {
    data.first_chunk_mut()
        .map(|head| *head = T::DISCRIMINATOR)
        .ok_or(ExchangeError::AccountDidNotDeserialize)?;
    decode_mut(data)
}

fn check_discriminator<T: Discriminated>(data: &[u8]) -> Result<(), ExchangeError> {
    let head = data
        .first_chunk()
        .ok_or(ExchangeError::AccountDiscriminatorNotFound)?;
    if *head != T::DISCRIMINATOR {
        return Err(ExchangeError::AccountDiscriminatorMismatch);
    }
    Ok(())
}
