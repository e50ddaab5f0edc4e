//! Parts of both swap instructions: accounts, checks, the terms of the pool, and payment of what was computed.

use crate::{
    addresses::AUTHORITY,
    checks::{self, require},
    curve::{self, Outcome, Rates, Reserves},
    error::ExchangeError,
    event::SwapEvent,
    observation::ObservationState,
    state::{AmmConfig, Direction, PoolState, decode_mut},
    token::{self, TokenAccount, Transfer},
};
use pinocchio::{AccountView, ProgramResult, error::ProgramError, sysvars::clock::Clock};

/// The accounts of a swap, in order.
pub struct Accounts {
    pub payer: AccountView,
    pub authority: AccountView,
    pub amm_config: AccountView,
    pub pool_state: AccountView,
    pub input_token_account: AccountView,
    pub output_token_account: AccountView,
    pub input_vault: AccountView,
    pub output_vault: AccountView,
    pub input_token_program: AccountView,
    pub output_token_program: AccountView,
    pub input_mint: AccountView,
    pub output_mint: AccountView,
    pub observation_state: AccountView,
}

/// What the checked accounts say.
pub struct Loaded {
    pub config: AmmConfig,
    pub pool: PoolState,
    pub input_vault: TokenAccount,
    pub output_vault: TokenAccount,
    pub input_decimals: u8,
    pub output_decimals: u8,
}

/// On which terms the pool trades now, in the direction that the vaults give.
pub struct Terms {
    pub direction: Direction,
    pub reserves: Reserves,
    pub rates: Rates,
    pub creator_fee_on_input: bool,
    prices_x32: [u128; 2],
}

/// What a swap moves and records.
pub struct Swap {
    pub terms: Terms,
    /// Whether the input was given, and not the output.
    pub is_base_input: bool,
    /// What leaves the user's account, the input mint's transfer fee included.
    pub amount_in: u64,
    pub input_transfer_fee: u64,
    pub output_transfer_fee: u64,
    pub outcome: Outcome,
}

impl Accounts {
    /// Takes the accounts by their order and checks them.
    ///
    /// # Errors
    /// As the exchange's framework numbers them, in its order.
    #[inline(always)]
    pub fn checked(accounts: &[AccountView]) -> Result<(Self, Loaded), ProgramError> {
        let accounts = Self::in_order(accounts)?;
        let loaded = accounts.load()?;
        accounts.check_constraints(&loaded)?;
        Ok((accounts, loaded))
    }

    #[inline(always)]
    fn in_order(accounts: &[AccountView]) -> Result<Self, ProgramError> {
        let Some(
            &[
                payer,
                authority,
                amm_config,
                pool_state,
                input_token_account,
                output_token_account,
                input_vault,
                output_vault,
                input_token_program,
                output_token_program,
                input_mint,
                output_mint,
                observation_state,
            ],
        ) = accounts.first_chunk()
        else {
            return Err(ExchangeError::AccountNotEnoughKeys.into());
        };
        Ok(Self {
            payer,
            authority,
            amm_config,
            pool_state,
            input_token_account,
            output_token_account,
            input_vault,
            output_vault,
            input_token_program,
            output_token_program,
            input_mint,
            output_mint,
            observation_state,
        })
    }

    /// Every account for itself, in order.
    #[inline(always)]
    fn load(&self) -> Result<Loaded, ProgramError> {
        checks::signer(&self.payer)?;
        checks::exists(&self.amm_config)?;
        let config = checks::exchange_account(&self.amm_config)?;
        let pool = checks::exchange_account(&self.pool_state)?;
        TokenAccount::load(&self.input_token_account)?;
        TokenAccount::load(&self.output_token_account)?;
        let input_vault = TokenAccount::load(&self.input_vault)?;
        let output_vault = TokenAccount::load(&self.output_vault)?;
        checks::token_program(&self.input_token_program)?;
        checks::token_program(&self.output_token_program)?;
        let input_decimals = token::mint_decimals(&self.input_mint)?;
        let output_decimals = token::mint_decimals(&self.output_mint)?;
        checks::is_exchange_account::<ObservationState>(&self.observation_state)?;
        Ok(Loaded {
            config,
            pool,
            input_vault,
            output_vault,
            input_decimals,
            output_decimals,
        })
    }

    /// The constraints between them, in order. The owner of the output account is not among them.
    #[inline(always)]
    fn check_constraints(&self, loaded: &Loaded) -> ProgramResult {
        let pool = &loaded.pool;
        let is_vault = |account: &AccountView| pool.vaults.contains(account.address().as_array());
        require(
            *self.authority.address() == AUTHORITY,
            ExchangeError::ConstraintSeeds,
        )?;
        checks::address(&self.amm_config, &pool.amm_config)?;
        checks::writable(&self.pool_state)?;
        checks::writable(&self.input_token_account)?;
        checks::writable(&self.output_token_account)?;
        checks::writable(&self.input_vault)?;
        require(is_vault(&self.input_vault), ExchangeError::ConstraintRaw)?;
        checks::writable(&self.output_vault)?;
        require(is_vault(&self.output_vault), ExchangeError::ConstraintRaw)?;
        checks::address(&self.input_mint, &loaded.input_vault.mint)?;
        checks::address(&self.output_mint, &loaded.output_vault.mint)?;
        checks::writable(&self.observation_state)?;
        checks::address(&self.observation_state, &pool.observation)
    }

    #[inline(always)]
    fn direction(&self, pool: &PoolState) -> Result<Direction, ExchangeError> {
        let pair = [
            *self.input_vault.address().as_array(),
            *self.output_vault.address().as_array(),
        ];
        let [vault_0, vault_1] = pool.vaults;
        if pair == [vault_0, vault_1] {
            Ok(Direction::ZeroForOne)
        } else if pair == [vault_1, vault_0] {
            Ok(Direction::OneForZero)
        } else {
            Err(ExchangeError::InvalidVault)
        }
    }

    /// Refuses a swap that comes too early or while swaps are switched off.
    ///
    /// # Errors
    /// `NotApproved`.
    #[inline(always)]
    pub fn require_open(loaded: &Loaded, clock: &Clock) -> ProgramResult {
        let now = clock.unix_timestamp.cast_unsigned();
        require(loaded.pool.swaps_at(now), ExchangeError::NotApproved)
    }

    /// The pool's terms, in the order in which the exchange finds faults with them.
    ///
    /// # Errors
    /// `InvalidVault`, `MathOverflow`, `InsufficientVault`, `InvalidFeeModel`; `ArithmeticOverflow` for an empty side.
    #[inline(always)]
    pub fn terms(&self, loaded: &Loaded) -> Result<Terms, ProgramError> {
        let (pool, config) = (&loaded.pool, &loaded.config);
        let direction = self.direction(pool)?;
        let mut balances = [0; 2];
        balances[direction.input()] = loaded.input_vault.amount;
        balances[direction.output()] = loaded.output_vault.amount;
        let reserves = pool.reserves(balances)?;
        let prices_x32 = curve::prices_x32(reserves)?;
        Ok(Terms {
            direction,
            prices_x32,
            creator_fee_on_input: pool.creator_fee_on_input(direction)?,
            reserves: Reserves {
                input: reserves[direction.input()],
                output: reserves[direction.output()],
            },
            rates: Rates {
                trade: config.trade_fee_rate,
                protocol: config.protocol_fee_rate,
                fund: config.fund_fee_rate,
                creator: pool.creator_fee_rate(config),
            },
        })
    }

    /// Books, logs and moves what was computed, and reports the price before it to the oracle.
    ///
    /// # Errors
    /// `RequireGteViolated` when the product of the reserves falls; whatever the token programs refuse.
    #[inline(always)]
    pub fn settle(&mut self, loaded: &Loaded, swap: &Swap, clock: &Clock) -> ProgramResult {
        self.record(swap, clock.epoch)?;
        self.log(swap);
        require(
            swap.outcome.product_after >= swap.outcome.product_before,
            ExchangeError::RequireGteViolated,
        )?;
        self.transfer(swap, loaded)?;
        let mut data = self.observation_state.try_borrow_mut()?;
        let now = clock.unix_timestamp.cast_unsigned();
        decode_mut::<ObservationState>(&mut data)?.update(now, swap.terms.prices_x32)?;
        Ok(())
    }

    #[inline(always)]
    fn record(&mut self, swap: &Swap, epoch: u64) -> ProgramResult {
        let mut data = self.pool_state.try_borrow_mut()?;
        let pool = decode_mut::<PoolState>(&mut data)?;
        pool.accrue(
            swap.terms.direction,
            &swap.outcome.fees,
            swap.terms.creator_fee_on_input,
        )?;
        pool.recent_epoch = epoch;
        Ok(())
    }

    #[inline(always)]
    fn log(&self, swap: &Swap) {
        SwapEvent {
            pool_id: self.pool_state.address(),
            input_vault_before: swap.terms.reserves.input,
            output_vault_before: swap.terms.reserves.output,
            input_amount: swap.amount_in.saturating_sub(swap.input_transfer_fee),
            output_amount: swap.outcome.amount_out,
            input_transfer_fee: swap.input_transfer_fee,
            output_transfer_fee: swap.output_transfer_fee,
            is_base_input: swap.is_base_input,
            input_mint: self.input_mint.address(),
            output_mint: self.output_mint.address(),
            trade_fee: swap.outcome.fees.trade,
            creator_fee: swap.outcome.fees.creator,
            creator_fee_on_input: swap.terms.creator_fee_on_input,
        }
        .log();
    }

    #[inline(always)]
    fn transfer(&self, swap: &Swap, loaded: &Loaded) -> ProgramResult {
        Transfer {
            token_program: &self.input_token_program,
            from: &self.input_token_account,
            mint: &self.input_mint,
            to: &self.input_vault,
            authority: &self.payer,
            amount: swap.amount_in,
            decimals: loaded.input_decimals,
        }
        .invoke()?;
        Transfer {
            token_program: &self.output_token_program,
            from: &self.output_vault,
            mint: &self.output_mint,
            to: &self.output_token_account,
            authority: &self.authority,
            amount: swap.outcome.amount_out,
            decimals: loaded.output_decimals,
        }
        .invoke_as_authority(loaded.pool.auth_bump)
    }
}
