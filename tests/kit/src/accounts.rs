//! Accounts of the scripted chain by type, and their bytes.
//!
//! Judges read the types, the services read the bytes. They stand for what the exchange's and the token programs' accounts
//! hold, and are as strict as the programs: each is written by the encoder that the executed programs agree with.

use std::collections::BTreeMap;

use bytes::Bytes;
use cpmm::{AmmConfig, Clock, Mint, PoolState, TokenAccount, TokenAccountKind, TokenProgram, ids};
use solana_pubkey::Pubkey;

/// Owner of sysvars.
const SYSVAR_OWNER: Pubkey = solana_pubkey::pubkey!("Sysvar1111111111111111111111111111111111111");

/// The content of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A pool.
    Pool(Box<PoolState>),
    /// A fee configuration.
    Config(Box<AmmConfig>),
    /// A vault.
    Vault {
        /// Token program that owns it.
        program: TokenProgram,
        /// Its fields.
        account: TokenAccount,
        /// Its layout.
        kind: TokenAccountKind,
    },
    /// A mint and the token program that owns it.
    Mint(TokenProgram, Mint),
    /// The Clock sysvar in this slot.
    Clock(u64, Clock),
    /// An account that is nothing to the exchange, as it is.
    Other(Account),
    /// No account any more: no lamports, no data, given back to the system program.
    Closed,
    /// Bytes that are none of the above, although their owner and their head say so.
    Broken {
        /// Owner program.
        owner: Pubkey,
        /// Data.
        data: Bytes,
    },
}

/// Every account in some slot.
pub type State = BTreeMap<Pubkey, Content>;

/// An account as servers and nodes report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Owner program.
    pub owner: Pubkey,
    /// Balance in lamports; 0 for a closed one.
    pub lamports: u64,
    /// Data.
    pub data: Bytes,
}

impl Content {
    /// A pool.
    #[must_use]
    pub fn pool(state: PoolState) -> Self {
        Self::Pool(Box::new(state))
    }

    /// A fee configuration.
    #[must_use]
    pub fn config(config: AmmConfig) -> Self {
        Self::Config(Box::new(config))
    }

    /// A vault of the exchange with this balance, in the layout that its mint asks for.
    #[must_use]
    pub fn vault(program: TokenProgram, mint: Pubkey, has_fee: bool, amount: u64) -> Self {
        let account = TokenAccount {
            mint,
            owner: ids::AUTHORITY,
            amount,
            frozen: false,
        };
        let kind = if has_fee {
            TokenAccountKind::WithTransferFee
        } else {
            TokenAccountKind::Plain
        };
        Self::Vault {
            program,
            account,
            kind,
        }
    }

    /// The account that holds it.
    #[must_use]
    pub fn account(&self) -> Account {
        if let Self::Other(account) = self {
            return account.clone();
        }
        let (owner, data) = match self {
            Self::Pool(pool) => (ids::PROGRAM_ID, pool.encode()),
            Self::Config(config) => (ids::PROGRAM_ID, config.encode()),
            Self::Vault {
                program,
                account,
                kind,
            } => (program.id(), account.encode(*kind)),
            Self::Mint(program, mint) => (program.id(), mint.encode(&ids::AUTHORITY)),
            Self::Clock(slot, clock) => (SYSVAR_OWNER, encode_clock(*slot, clock)),
            Self::Broken { owner, data } => (*owner, data.to_vec()),
            Self::Closed | Self::Other(_) => (Pubkey::default(), Vec::new()),
        };
        Account {
            owner,
            lamports: u64::from(*self != Self::Closed),
            data: data.into(),
        }
    }
}

/// The sysvar's fields: slot, start of the epoch, epoch, the epoch leaders are known for, unix time.
#[must_use]
pub fn encode_clock(slot: u64, clock: &Clock) -> Vec<u8> {
    let [slot, start, epoch, leaders] =
        [slot, 0, clock.epoch, clock.epoch + 1].map(u64::to_le_bytes);
    [
        slot,
        start,
        epoch,
        leaders,
        clock.unix_timestamp.to_le_bytes(),
    ]
    .concat()
}
