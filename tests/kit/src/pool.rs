//! Pools and their users as account bytes, behind which any binary of the exchange runs.
//!
//! They stand for pools that the exchange's own instructions opened: of the same layout, and with any terms and balances
//! that these can have. Addresses are hashes of names.

use std::sync::Arc;

use cpmm::{
    AmmConfig, Direction, ExchangeIds, Mint, PerToken, PoolSnapshot, PoolState, TokenAccount,
    TokenAccountKind, TokenProgram, TransferFee, TransferFeeConfig,
    fixtures::{blank_pool, published_config},
    ids,
    instruction::SwapAccounts,
    observation_account,
};
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::{ExactOutArgs, NO_EXPIRY, SwapArgs, TwoHopAccounts};

use crate::names::{address, keypair};

/// A transfer fee of this many hundredths of a percent, uncapped, in every epoch.
#[must_use]
pub const fn constant_fee(basis_points: u16) -> TransferFeeConfig {
    let fee = TransferFee {
        epoch: 0,
        maximum_fee: u64::MAX,
        basis_points,
    };
    TransferFeeConfig {
        older: fee,
        newer: fee,
    }
}

/// A swap through the guard that never expires.
#[must_use]
pub fn guarded_swap(accounts: &SwapAccounts, amount_in: u64, minimum_out: u64) -> Instruction {
    let args = SwapArgs {
        amount_in,
        minimum_out,
        expiry_slot: NO_EXPIRY,
    };
    swap_guard_interface::swap(accounts, args)
}

/// A swap for an exact output through the guard that never expires.
#[must_use]
pub fn guarded_exact_out(accounts: &SwapAccounts, maximum_in: u64, amount_out: u64) -> Instruction {
    let args = ExactOutArgs {
        maximum_in,
        amount_out,
        expiry_slot: NO_EXPIRY,
    };
    swap_guard_interface::swap_exact_out(accounts, args)
}

/// A swap through two pools through the guard that never expires.
#[must_use]
pub fn guarded_two_hops(
    accounts: &TwoHopAccounts,
    amount_in: u64,
    minimum_out: u64,
) -> Instruction {
    let args = SwapArgs {
        amount_in,
        minimum_out,
        expiry_slot: NO_EXPIRY,
    };
    swap_guard_interface::swap_two_hops(accounts, args)
}

/// One of a pool's two tokens, as a test wants it.
#[derive(Clone, Debug)]
pub struct TokenSpec {
    /// Which program owns the mint.
    pub program: TokenProgram,
    /// Only for Token-2022.
    pub transfer_fee: Option<TransferFeeConfig>,
    /// Balance of the pool's vault, accrued fees included.
    pub vault: u64,
}

impl TokenSpec {
    /// A token of SPL Token.
    #[must_use]
    pub const fn spl(vault: u64) -> Self {
        Self {
            program: TokenProgram::Spl,
            transfer_fee: None,
            vault,
        }
    }

    /// A Token-2022 token without extensions.
    #[must_use]
    pub const fn token_2022(vault: u64) -> Self {
        Self {
            program: TokenProgram::Token2022,
            transfer_fee: None,
            vault,
        }
    }

    /// A Token-2022 token that withholds a fee from every transfer.
    #[must_use]
    pub const fn with_fee(vault: u64, fee: TransferFeeConfig) -> Self {
        Self {
            program: TokenProgram::Token2022,
            transfer_fee: Some(fee),
            vault,
        }
    }

    /// The mint's data.
    #[must_use]
    pub fn mint(&self) -> Vec<u8> {
        let mint = Mint {
            transfer_fee: self.transfer_fee,
            ..Mint::plain(6, u64::MAX)
        };
        mint.encode(&address("mint authority"))
    }

    /// The data of an account of this token.
    #[must_use]
    pub fn account(&self, mint: Pubkey, owner: Pubkey, amount: u64) -> Vec<u8> {
        let kind = match self.transfer_fee {
            Some(_) => TokenAccountKind::WithTransferFee,
            None => TokenAccountKind::Plain,
        };
        TokenAccount {
            mint,
            owner,
            amount,
            frozen: false,
        }
        .encode(kind)
    }
}

/// A pool as a test wants it. The default has the rates of config 0 and nothing accrued.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    /// Its tokens with the vaults' balances.
    pub tokens: PerToken<TokenSpec>,
    /// Its fee configuration.
    pub config: AmmConfig,
    /// Switches, counters and times; the addresses are filled in when it is opened.
    pub state: PoolState,
}

impl PoolSpec {
    /// A pool of these tokens.
    #[must_use]
    pub fn of(token_0: TokenSpec, token_1: TokenSpec) -> Self {
        Self {
            tokens: PerToken { token_0, token_1 },
            config: published_config(),
            state: blank_pool(),
        }
    }

    /// A pool in the state of this snapshot, whatever its addresses.
    ///
    /// # Panics
    /// When a token program of the snapshot is none.
    #[must_use]
    pub fn like(snapshot: PoolSnapshot) -> Self {
        let token = |program, mint: &Mint, vault| TokenSpec {
            program: TokenProgram::from_id(program).expect("a token program"),
            transfer_fee: mint.transfer_fee,
            vault,
        };
        let (programs, mints) = (&snapshot.pool.token_programs, &snapshot.mints);
        let vaults = snapshot.vault_amounts;
        Self {
            tokens: PerToken::new(
                token(&programs.token_0, &mints.token_0, vaults.token_0.get()),
                token(&programs.token_1, &mints.token_1, vaults.token_1.get()),
            ),
            config: Arc::unwrap_or_clone(snapshot.config),
            state: Arc::unwrap_or_clone(snapshot.pool),
        }
    }

    /// Two SPL tokens, a million and two million whole tokens of six decimals.
    #[must_use]
    pub fn plain() -> Self {
        Self::of(
            TokenSpec::spl(1_000_000_000_000),
            TokenSpec::spl(2_000_000_000_000),
        )
    }
}

/// A pool on the chain.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Address of its state.
    pub address: Pubkey,
    /// Its state when it was opened; the addresses in it stay true.
    pub state: PoolState,
    /// Its tokens as set up.
    pub tokens: PerToken<TokenSpec>,
}

/// Somebody with an account of each of a pool's tokens.
pub struct User {
    /// Signs swaps and owns the accounts.
    pub keypair: Keypair,
    /// The token accounts.
    pub accounts: PerToken<Pubkey>,
}

/// Where accounts can be put: a chain in memory, or what is to become one.
pub trait Ledger {
    /// Places a rent-exempt account.
    fn place(&mut self, address: Pubkey, owner: Pubkey, data: Vec<u8>);
}

impl PoolSpec {
    /// Places a pool with all its accounts. Opening it again under the same name resets it.
    pub fn open(&self, ledger: &mut impl Ledger, name: &str) -> Pool {
        let part = |part: &str| address(&format!("{name} {part}"));
        let mut mints = [part("mint a"), part("mint b")];
        mints.sort();
        let PerToken { token_0, token_1 } = &self.tokens;
        let state = PoolState {
            amm_config: part("config"),
            vaults: PerToken::new(part("vault 0"), part("vault 1")),
            lp_mint: part("lp mint"),
            mints: PerToken::new(mints[0], mints[1]),
            token_programs: PerToken::new(token_0.program.id(), token_1.program.id()),
            observation: part("observation"),
            ..self.state.clone()
        };
        let pool = part("pool");
        for (address, data) in [
            (pool, state.encode()),
            (state.amm_config, self.config.encode()),
            (state.observation, observation_account(&pool)),
        ] {
            ledger.place(address, ids::PROGRAM_ID, data);
        }
        for (token, mint, vault) in [
            (token_0, state.mints.token_0, state.vaults.token_0),
            (token_1, state.mints.token_1, state.vaults.token_1),
        ] {
            ledger.place(mint, token.program.id(), token.mint());
            let data = token.account(mint, ids::AUTHORITY, token.vault);
            ledger.place(vault, token.program.id(), data);
        }
        Pool {
            address: pool,
            state,
            tokens: self.tokens.clone(),
        }
    }
}

impl Pool {
    /// Makes the pool's first token wrapped SOL. Its mint's address is small enough to be the first.
    pub fn wrap_first(&mut self, ledger: &mut impl Ledger) {
        self.state.mints.token_0 = ids::WRAPPED_SOL;
        ledger.place(self.address, ids::PROGRAM_ID, self.state.encode());
        let mint = Mint::plain(9, 0).encode(&Pubkey::default());
        ledger.place(ids::WRAPPED_SOL, ids::SPL_TOKEN, mint);
        let vault = TokenAccount {
            mint: ids::WRAPPED_SOL,
            owner: ids::AUTHORITY,
            amount: self.tokens.token_0.vault,
            frozen: false,
        };
        let data = vault.encode(TokenAccountKind::Plain);
        ledger.place(self.state.vaults.token_0, ids::SPL_TOKEN, data);
    }

    /// Gives the user of this name an account of each of the pool's tokens, holding `amounts`.
    pub fn fund(&self, ledger: &mut impl Ledger, name: &str, amounts: PerToken<u64>) -> User {
        let keypair = keypair(name);
        let owner = keypair.pubkey();
        let mut account = |side, amount| self.token_account(ledger, name, side, owner, amount);
        let accounts = PerToken::new(
            account(Direction::ZeroForOne, amounts.token_0),
            account(Direction::OneForZero, amounts.token_1),
        );
        User { keypair, accounts }
    }

    /// Places an account, known by `name`, of the token that `side` puts in.
    pub fn token_account(
        &self,
        ledger: &mut impl Ledger,
        name: &str,
        side: Direction,
        owner: Pubkey,
        amount: u64,
    ) -> Pubkey {
        let token = match side {
            Direction::ZeroForOne => &self.tokens.token_0,
            Direction::OneForZero => &self.tokens.token_1,
        };
        let mint = side.input(&self.state.mints);
        let account = address(&format!("{name} account of {mint}"));
        let data = token.account(mint, owner, amount);
        ledger.place(account, token.program.id(), data);
        account
    }

    /// The accounts of a swap by `user`.
    #[must_use]
    pub fn swap_accounts(&self, user: &User, direction: Direction) -> SwapAccounts {
        SwapAccounts::of_pool(
            ExchangeIds::MAINNET,
            self.address,
            &self.state,
            direction,
            user.keypair.pubkey(),
            direction.input(&user.accounts),
            direction.output(&user.accounts),
        )
    }
}
