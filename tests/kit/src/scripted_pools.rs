//! Pools of the scripted chain: those of its first slot, and those that may be opened later.

use std::time::SystemTime;

use cpmm::{
    AmmConfig, Clock, FeeRate, Mint, PerToken, PoolState, TokenProgram, TransferFee,
    TransferFeeConfig,
    fixtures::{blank_pool, published_config},
    ids,
};
use solana_pubkey::Pubkey;

use crate::{
    accounts::{Content, State},
    names::address,
};

/// Epoch at the beginning.
pub const EPOCH: u64 = 700;

/// A mint of the scripted chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its address.
    pub mint: Pubkey,
    /// Its token program.
    pub program: TokenProgram,
    /// Whether it takes a transfer fee.
    pub has_fee: bool,
}

impl Token {
    /// A mint of SPL Token.
    #[must_use]
    pub fn spl(name: &str) -> Self {
        Self {
            mint: address(name),
            program: TokenProgram::Spl,
            has_fee: false,
        }
    }

    /// A mint of Token-2022 without a transfer fee, and so without extensions.
    #[must_use]
    pub fn plain_2022(name: &str) -> Self {
        Self {
            program: TokenProgram::Token2022,
            ..Self::spl(name)
        }
    }

    /// A mint of Token-2022 with a transfer fee.
    #[must_use]
    pub fn with_fee(name: &str) -> Self {
        Self {
            has_fee: true,
            ..Self::plain_2022(name)
        }
    }

    /// Its account, with this transfer fee from the next epoch on if it takes one.
    #[must_use]
    pub fn content(&self, basis_points: u16) -> Content {
        let schedule = |epoch, basis_points| TransferFee {
            epoch,
            maximum_fee: u64::MAX,
            basis_points,
        };
        let transfer_fee = self.has_fee.then(|| TransferFeeConfig {
            older: schedule(0, 100),
            newer: schedule(EPOCH + 1, basis_points),
        });
        let mint = Mint {
            transfer_fee,
            ..Mint::plain(6, u64::MAX)
        };
        Content::Mint(self.program, mint)
    }
}

/// A pool of the scripted chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptedPool {
    /// Its address.
    pub pool: Pubkey,
    /// Its fee configuration.
    pub config: Pubkey,
    /// Its vaults.
    pub vaults: PerToken<Pubkey>,
    /// Its tokens, ordered by address.
    pub tokens: PerToken<Token>,
}

impl ScriptedPool {
    /// A pool of two tokens under a configuration.
    #[must_use]
    pub fn new(name: &str, config: Pubkey, a: Token, b: Token) -> Self {
        let tokens = if a.mint < b.mint {
            PerToken::new(a, b)
        } else {
            PerToken::new(b, a)
        };
        Self {
            pool: address(name),
            config,
            vaults: PerToken::new(
                address(&format!("{name} vault 0")),
                address(&format!("{name} vault 1")),
            ),
            tokens,
        }
    }

    /// The pool as it is opened.
    #[must_use]
    pub fn state(&self) -> PoolState {
        let (t0, t1) = (&self.tokens.token_0, &self.tokens.token_1);
        PoolState {
            amm_config: self.config,
            vaults: self.vaults,
            mints: PerToken::new(t0.mint, t1.mint),
            token_programs: PerToken::new(t0.program.id(), t1.program.id()),
            ..blank_pool()
        }
    }

    /// Its first vault with this balance.
    #[must_use]
    pub fn vault_0(&self, amount: u64) -> Content {
        let token = &self.tokens.token_0;
        Content::vault(token.program, token.mint, token.has_fee, amount)
    }

    /// Its second vault with this balance.
    #[must_use]
    pub fn vault_1(&self, amount: u64) -> Content {
        let token = &self.tokens.token_1;
        Content::vault(token.program, token.mint, token.has_fee, amount)
    }

    /// The accounts that come into being when it is opened, the pool last.
    #[must_use]
    pub fn opening(&self) -> [(Pubkey, Content); 3] {
        [
            (self.vaults.token_0, self.vault_0(1_000_000)),
            (self.vaults.token_1, self.vault_1(2_000_000)),
            (self.pool, Content::pool(self.state())),
        ]
    }
}

/// A fee configuration with this trade fee, millionths.
#[must_use]
pub fn config(trade_fee: u64) -> Content {
    Content::config(AmmConfig {
        trade_fee_rate: FeeRate(trade_fee),
        ..published_config()
    })
}

/// The chain's time in a slot: an epoch, and one second for each slot.
#[must_use]
pub fn clock(slot: u64, epoch: u64) -> Content {
    let unix_timestamp = 1_700_000_000_i64.saturating_add_unsigned(slot);
    let clock = Clock {
        epoch,
        unix_timestamp,
    };
    Content::Clock(slot, clock)
}

/// The chain's time in a slot whose block is made at this time of day, as on a cluster that keeps time.
///
/// A service that judges by the system's clock whether its stream is new needs it.
#[must_use]
pub fn clock_at(slot: u64, epoch: u64, now: SystemTime) -> Content {
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let clock = Clock {
        epoch,
        unix_timestamp: 0_i64.saturating_add_unsigned(now.as_secs()),
    };
    Content::Clock(slot, clock)
}

/// The exchange in the first slot: four pools that share mints and configurations, two of them of the
/// same two mints.
#[derive(Clone, Debug)]
pub struct ScriptedPools {
    /// Fee configurations.
    pub configs: [Pubkey; 2],
    /// Mints: two of SPL Token, one with a transfer fee, one of Token-2022 without.
    pub tokens: [Token; 4],
    /// Pools.
    pub pools: Vec<ScriptedPool>,
}

impl Default for ScriptedPools {
    fn default() -> Self {
        let configs = [address("config 0"), address("config 1")];
        let [a, b, fee, plain] = [
            Token::spl("token a"),
            Token::spl("token b"),
            Token::with_fee("token with fee"),
            Token::plain_2022("token 2022"),
        ];
        Self {
            configs,
            tokens: [a, b, fee, plain],
            pools: vec![
                ScriptedPool::new("pool 0", configs[0], a, b),
                ScriptedPool::new("pool 1", configs[1], a, b),
                ScriptedPool::new("pool 2", configs[0], a, fee),
                ScriptedPool::new("pool 3", configs[1], fee, plain),
            ],
        }
    }
}

impl ScriptedPools {
    /// Every account of the first slot.
    #[must_use]
    pub fn state(&self, slot: u64) -> State {
        let configs = self.configs.iter().zip([2_500, 3_000]);
        let configs = configs.map(|(key, rate)| (*key, config(rate)));
        let tokens = self
            .tokens
            .iter()
            .map(|token| (token.mint, token.content(200)));
        let pools = self.pools.iter().flat_map(ScriptedPool::opening);
        configs
            .chain(tokens)
            .chain(pools)
            .chain([(ids::CLOCK, clock(slot, EPOCH))])
            .collect()
    }
}
