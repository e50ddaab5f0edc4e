//! `swap_base_input`: exactly `amount_in` in, as much as the curve gives out.

use crate::{
    addresses::AUTHORITY,
    checks::{self, require},
    curve::{self, Outcome, Rates, Reserves},
    error::ExchangeError,
    event::SwapEvent,
    observation::ObservationState,
    state::{AmmConfig, Direction, PoolState, decode_mut},
    take_u64,
    token::{self, TokenAccount, Transfer},
};
use pinocchio::{
    AccountView, ProgramResult,
    error::ProgramError,
    sysvars::{Sysvar, clock::Clock},
};

/// The instruction's accounts, in order.
struct Accounts {
    payer: AccountView,
    authority: AccountView,
    amm_config: AccountView,
    pool_state: AccountView,
    input_token_account: AccountView,
    output_token_account: AccountView,
    input_vault: AccountView,
    output_vault: AccountView,
    input_token_program: AccountView,
    output_token_program: AccountView,
    input_mint: AccountView,
    output_mint: AccountView,
    observation_state: AccountView,
}

/// What the checked accounts say.
struct Loaded {
    config: AmmConfig,
    pool: PoolState,
    input_vault: TokenAccount,
    output_vault: TokenAccount,
    input_decimals: u8,
    output_decimals: u8,
}

/// What the swap moves and records.
struct Swap {
    direction: Direction,
    reserves: Reserves,
    prices_x32: [u128; 2],
    creator_fee_on_input: bool,
    amount_in: u64,
    input_transfer_fee: u64,
    output_transfer_fee: u64,
    outcome: Outcome,
}

/// Specification:
/// - The pool is open and its swaps are not switched off.
/// - The input after the input mint's transfer fee is more than zero.
/// - What arrives after the output mint's transfer fee is more than zero and at least `minimum_amount_out`.
/// - The product of the reserves does not fall; fees accrue in the pool's counters and stay in the vaults.
/// - The price before the swap goes to the oracle.
pub fn process(accounts: &[AccountView], arguments: &[u8]) -> ProgramResult {
    let (amount_in, arguments) = take_u64(arguments)?;
    let (minimum_amount_out, _) = take_u64(arguments)?;
    let mut accounts = Accounts::in_order(accounts)?;
    let loaded = accounts.load()?;
    accounts.check_constraints(&loaded)?;

    let clock = Clock::get()?;
    let now = clock.unix_timestamp.cast_unsigned();
    require(loaded.pool.swaps_at(now), ExchangeError::NotApproved)?;
    let swap = accounts.quote(&loaded, amount_in, minimum_amount_out, clock.epoch)?;

    accounts.record(&swap, clock.epoch)?;
    accounts.log(&swap);
    require(
        swap.outcome.product_after >= swap.outcome.product_before,
        ExchangeError::RequireGteViolated,
    )?;
    accounts.transfer(&swap, &loaded)?;
    let mut data = accounts.observation_state.try_borrow_mut()?;
    decode_mut::<ObservationState>(&mut data)?.update(now, swap.prices_x32)?;
    Ok(())
}

impl Accounts {
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

    fn quote(
        &self,
        loaded: &Loaded,
        amount_in: u64,
        minimum_amount_out: u64,
        epoch: u64,
    ) -> Result<Swap, ProgramError> {
        let (pool, config) = (&loaded.pool, &loaded.config);
        let input_transfer_fee = token::transfer_fee(&self.input_mint, amount_in, epoch)?;
        let net_in = amount_in.saturating_sub(input_transfer_fee);
        require(net_in > 0, ExchangeError::RequireGtViolated)?;

        let direction = self.direction(pool)?;
        let mut balances = [0; 2];
        balances[direction.input()] = loaded.input_vault.amount;
        balances[direction.output()] = loaded.output_vault.amount;
        let reserves = pool.reserves(balances)?;
        let prices_x32 = curve::prices_x32(reserves)?;
        let creator_fee_on_input = pool.creator_fee_on_input(direction)?;
        let reserves = Reserves {
            input: reserves[direction.input()],
            output: reserves[direction.output()],
        };
        let rates = Rates {
            trade: config.trade_fee_rate,
            protocol: config.protocol_fee_rate,
            fund: config.fund_fee_rate,
            creator: pool.creator_fee_rate(config),
        };
        let outcome = curve::swap_base_input(net_in, reserves, &rates, creator_fee_on_input)?;

        let output_transfer_fee =
            token::transfer_fee(&self.output_mint, outcome.amount_out, epoch)?;
        let received = outcome.amount_out.saturating_sub(output_transfer_fee);
        require(received > 0, ExchangeError::RequireGtViolated)?;
        require(
            received >= minimum_amount_out,
            ExchangeError::ExceededSlippage,
        )?;
        Ok(Swap {
            direction,
            reserves,
            prices_x32,
            creator_fee_on_input,
            amount_in,
            input_transfer_fee,
            output_transfer_fee,
            outcome,
        })
    }

    fn record(&mut self, swap: &Swap, epoch: u64) -> ProgramResult {
        let mut data = self.pool_state.try_borrow_mut()?;
        let pool = decode_mut::<PoolState>(&mut data)?;
        pool.accrue(
            swap.direction,
            &swap.outcome.fees,
            swap.creator_fee_on_input,
        )?;
        pool.recent_epoch = epoch;
        Ok(())
    }

    fn log(&self, swap: &Swap) {
        SwapEvent {
            pool_id: self.pool_state.address(),
            input_vault_before: swap.reserves.input,
            output_vault_before: swap.reserves.output,
            input_amount: swap.amount_in.saturating_sub(swap.input_transfer_fee),
            output_amount: swap.outcome.amount_out,
            input_transfer_fee: swap.input_transfer_fee,
            output_transfer_fee: swap.output_transfer_fee,
            input_mint: self.input_mint.address(),
            output_mint: self.output_mint.address(),
            trade_fee: swap.outcome.fees.trade,
            creator_fee: swap.outcome.fees.creator,
            creator_fee_on_input: swap.creator_fee_on_input,
        }
        .log();
    }

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
