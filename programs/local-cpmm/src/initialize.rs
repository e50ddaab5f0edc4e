//! `initialize`: opens a pool with a first deposit.
//!
//! Same accounts, arguments and results as the real instruction. Two things are narrower here: the four mints that
//! the real program lets through whatever their extensions are not known, and when several accounts are wrong at
//! once, the error may be another one of theirs.

use crate::{
    addresses::{
        ASSOCIATED_TOKEN, AUTHORITY, AUTHORITY_BUMP, EXCHANGE, LP_MINT_SEED, OBSERVATION_SEED,
        POOL_FEE_RECEIVER, POOL_SEED, RENT, SYSTEM, TOKEN, VAULT_SEED,
    },
    checks::{self, require},
    creation::{Creation, charge_pool_fee, create_lp_account, mint_lp},
    error::ExchangeError,
    observation::ObservationState,
    state::{AmmConfig, Discriminated, PoolState, create},
    take_u64,
    token::{self, Extensions, MINT_LEN, TokenAccount, Transfer, extension},
};
use pinocchio::{
    AccountView, ProgramResult,
    error::ProgramError,
    sysvars::{Sysvar, clock::Clock},
};

/// LP tokens that no account ever gets, in their smallest unit: they keep a pool from being emptied of its last unit.
const LOCKED_LP: u64 = 100;
/// Decimals of every LP mint.
const LP_DECIMALS: u8 = 9;

/// The instruction's accounts, in order; what exists twice is a pair, token 0 first.
struct Accounts {
    creator: AccountView,
    amm_config: AccountView,
    authority: AccountView,
    pool_state: AccountView,
    mints: [AccountView; 2],
    lp_mint: AccountView,
    creator_tokens: [AccountView; 2],
    creator_lp: AccountView,
    vaults: [AccountView; 2],
    create_pool_fee: AccountView,
    observation_state: AccountView,
    token_program: AccountView,
    token_programs: [AccountView; 2],
    associated_token_program: AccountView,
    system_program: AccountView,
    rent: AccountView,
}

/// Specification:
/// - The mints are in the order of their bytes, and their extensions are ones that pools take.
/// - The pool is at its derived address, or at any address that signed.
/// - Vaults, LP mint and observation are created at their derived addresses, paid by the creator.
/// - Both deposits move from the creator; what arrived, after transfer fees, makes `isqrt(a * b)` LP tokens, of which
///   the creator gets all but the locked ones.
/// - The config's fee for opening a pool goes to the fee receiver, as wrapped SOL.
/// - Swaps start at `open_time`, at the earliest one second from now.
pub fn process(accounts: &[AccountView], arguments: &[u8]) -> ProgramResult {
    let (amount_0, arguments) = take_u64(arguments)?;
    let (amount_1, arguments) = take_u64(arguments)?;
    let (open_time, _) = take_u64(arguments)?;
    let mut accounts = Accounts::in_order(accounts)?;
    let config = checks::exchange_account::<AmmConfig>(&accounts.amm_config)?;
    accounts.check()?;
    let decimals = accounts.check_tokens()?;
    require(config.disable_create_pool == 0, ExchangeError::NotApproved)?;

    let clock = Clock::get()?;
    let earliest = clock.unix_timestamp.cast_unsigned().saturating_add(1);
    accounts.create_accounts()?;
    let liquidity = accounts.deposit([amount_0, amount_1], decimals)?;
    let minted = liquidity
        .checked_sub(LOCKED_LP)
        .ok_or(ExchangeError::InitLpAmountTooLess)?;
    mint_lp(
        &accounts.token_program,
        &accounts.lp_mint,
        &accounts.creator_lp,
        &accounts.authority,
        minted,
    )?;
    charge_pool_fee(
        &accounts.creator,
        &accounts.create_pool_fee,
        &accounts.token_program,
        config.create_pool_fee,
    )?;
    accounts.record(liquidity, decimals, open_time.max(earliest), clock.epoch)
}

impl Accounts {
    fn in_order(accounts: &[AccountView]) -> Result<Self, ProgramError> {
        let Some(
            &[
                creator,
                amm_config,
                authority,
                pool_state,
                token_0_mint,
                token_1_mint,
                lp_mint,
                creator_token_0,
                creator_token_1,
                creator_lp,
                token_0_vault,
                token_1_vault,
                create_pool_fee,
                observation_state,
                token_program,
                token_0_program,
                token_1_program,
                associated_token_program,
                system_program,
                rent,
            ],
        ) = accounts.first_chunk()
        else {
            return Err(ExchangeError::AccountNotEnoughKeys.into());
        };
        Ok(Self {
            creator,
            amm_config,
            authority,
            pool_state,
            mints: [token_0_mint, token_1_mint],
            lp_mint,
            creator_tokens: [creator_token_0, creator_token_1],
            creator_lp,
            vaults: [token_0_vault, token_1_vault],
            create_pool_fee,
            observation_state,
            token_program,
            token_programs: [token_0_program, token_1_program],
            associated_token_program,
            system_program,
            rent,
        })
    }

    fn check(&self) -> ProgramResult {
        checks::signer(&self.creator)?;
        checks::program(&self.token_program, &TOKEN)?;
        checks::program(&self.associated_token_program, &ASSOCIATED_TOKEN)?;
        checks::program(&self.system_program, &SYSTEM)?;
        require(
            *self.rent.address() == RENT,
            ExchangeError::AccountSysvarMismatch,
        )?;
        checks::writable(&self.creator)?;
        require(
            *self.authority.address() == AUTHORITY,
            ExchangeError::ConstraintSeeds,
        )?;
        checks::address(&self.create_pool_fee, POOL_FEE_RECEIVER.as_array())?;
        let written = [
            self.pool_state,
            self.lp_mint,
            self.creator_lp,
            self.create_pool_fee,
            self.observation_state,
        ];
        written.iter().try_for_each(checks::writable)?;
        self.vaults.iter().try_for_each(checks::writable)?;
        require(
            self.pool_state.owned_by(&SYSTEM) && self.pool_state.lamports() == 0,
            ExchangeError::NotApproved,
        )
    }

    /// Mints and the creator's token accounts; gives the mints' decimals.
    fn check_tokens(&self) -> Result<[u8; 2], ProgramError> {
        TokenAccount::load(&self.create_pool_fee)?;
        require(
            self.mints[0].address() < self.mints[1].address(),
            ExchangeError::ConstraintRaw,
        )?;
        let mut decimals = [0; 2];
        for (i, decimals) in decimals.iter_mut().enumerate() {
            let (mint, program) = (&self.mints[i], &self.token_programs[i]);
            *decimals = token::mint_decimals(mint)?;
            checks::token_program(program)?;
            require(
                mint.owned_by(program.address()),
                ExchangeError::ConstraintMintTokenProgram,
            )?;
            let data = mint.try_borrow()?;
            let mut extensions = Extensions::of_mint(&data);
            require(
                mint.owned_by(&TOKEN) || extensions.all(|(kind, _)| is_supported(kind)),
                ExchangeError::NotSupportMint,
            )?;
            checks::writable(&self.creator_tokens[i])?;
            let account = TokenAccount::load(&self.creator_tokens[i])?;
            require(
                account.mint == *mint.address().as_array(),
                ExchangeError::ConstraintTokenMint,
            )?;
            require(
                account.owner == *self.creator.address().as_array(),
                ExchangeError::ConstraintTokenOwner,
            )?;
        }
        Ok(decimals)
    }

    fn create_accounts(&self) -> ProgramResult {
        let pool = self.pool_state.address();
        let payer = &self.creator;
        Creation {
            payer,
            account: &self.pool_state,
            owner: &EXCHANGE,
            len: PoolState::LEN,
        }
        .at_derived_or_signed(&[
            POOL_SEED,
            self.amm_config.address().as_array(),
            self.mints[0].address().as_array(),
            self.mints[1].address().as_array(),
        ])?;
        Creation {
            payer,
            account: &self.observation_state,
            owner: &EXCHANGE,
            len: ObservationState::LEN,
        }
        .at_derived(&[OBSERVATION_SEED, pool.as_array()])?;
        for i in 0..2 {
            Creation {
                payer,
                account: &self.vaults[i],
                owner: self.token_programs[i].address(),
                len: token::vault_len(&self.mints[i])?,
            }
            .at_derived(&[
                VAULT_SEED,
                pool.as_array(),
                self.mints[i].address().as_array(),
            ])?;
            token::initialize_account(
                &self.token_programs[i],
                &self.vaults[i],
                &self.mints[i],
                &AUTHORITY,
            )?;
        }
        Creation {
            payer,
            account: &self.lp_mint,
            owner: &TOKEN,
            len: MINT_LEN,
        }
        .at_derived(&[LP_MINT_SEED, pool.as_array()])?;
        token::initialize_mint(&self.token_program, &self.lp_mint, LP_DECIMALS, &AUTHORITY)?;
        create_lp_account(
            &self.associated_token_program,
            &self.creator,
            &self.creator_lp,
            &self.lp_mint,
            &self.system_program,
            &self.token_program,
        )
    }

    /// Moves both deposits and gives the liquidity that arrived.
    fn deposit(&self, amounts: [u64; 2], decimals: [u8; 2]) -> Result<u64, ProgramError> {
        let mut arrived = [0; 2];
        for i in 0..2 {
            Transfer {
                token_program: &self.token_programs[i],
                from: &self.creator_tokens[i],
                mint: &self.mints[i],
                to: &self.vaults[i],
                authority: &self.creator,
                amount: amounts[i],
                decimals: decimals[i],
            }
            .invoke()?;
            arrived[i] = TokenAccount::read(&self.vaults[i])?.amount;
            require(arrived[i] != 0, ExchangeError::EmptySupply)?;
        }
        let product = u128::from(arrived[0]).saturating_mul(u128::from(arrived[1]));
        u64::try_from(product.isqrt()).map_err(|_| ProgramError::ArithmeticOverflow)
    }

    fn record(
        &mut self,
        lp_supply: u64,
        mint_decimals: [u8; 2],
        open_time: u64,
        recent_epoch: u64,
    ) -> ProgramResult {
        let key = |account: &AccountView| *account.address().as_array();
        let pool_id = key(&self.pool_state);
        let mut data = self.pool_state.try_borrow_mut()?;
        let pool = create::<PoolState>(&mut data)?;
        pool.amm_config = key(&self.amm_config);
        pool.pool_creator = key(&self.creator);
        pool.vaults = self.vaults.each_ref().map(key);
        pool.lp_mint = key(&self.lp_mint);
        pool.mints = self.mints.each_ref().map(key);
        pool.token_programs = self.token_programs.each_ref().map(key);
        pool.observation = key(&self.observation_state);
        pool.auth_bump = AUTHORITY_BUMP;
        pool.lp_mint_decimals = LP_DECIMALS;
        pool.mint_decimals = mint_decimals;
        pool.lp_supply = lp_supply;
        pool.open_time = open_time;
        pool.recent_epoch = recent_epoch;
        let mut data = self.observation_state.try_borrow_mut()?;
        create::<ObservationState>(&mut data)?.pool_id = pool_id;
        Ok(())
    }
}

/// Whether pools take a mint with this extension: none that can move, freeze or hook tokens behind the pool's back.
const fn is_supported(kind: u16) -> bool {
    matches!(
        kind,
        extension::TRANSFER_FEE_CONFIG
            | extension::METADATA_POINTER
            | extension::TOKEN_METADATA
            | extension::INTEREST_BEARING_CONFIG
            | extension::SCALED_UI_AMOUNT
    )
}
