//! Creation of a pool: accounts at derived addresses, LP tokens, and the fee paid for it.

use crate::{
    addresses::{AUTHORITY_BUMP, AUTHORITY_SEED, EXCHANGE, SYSTEM},
    checks::require,
    error::ExchangeError,
};
use pinocchio::{
    AccountView, Address, ProgramResult,
    cpi::{Seed, Signer, invoke, invoke_signed},
    error::ProgramError,
    instruction::{InstructionAccount, InstructionView},
    sysvars::{Sysvar, rent::Rent},
};

/// Most seeds that any of the exchange's addresses has, the bump included.
const MAX_SEEDS: usize = 5;

/// A new account, rent-exempt, paid by the pool's creator.
pub struct Creation<'a> {
    pub payer: &'a AccountView,
    pub account: &'a AccountView,
    pub owner: &'a Address,
    pub len: usize,
}

impl Creation<'_> {
    /// At the address that the exchange derives from `seeds`.
    ///
    /// # Errors
    /// 2006 when the account is at another address.
    pub fn at_derived(&self, seeds: &[&[u8]]) -> ProgramResult {
        let (derived, bump) = Address::find_program_address(seeds, &EXCHANGE);
        require(
            *self.account.address() == derived,
            ExchangeError::ConstraintSeeds,
        )?;
        self.create_derived(seeds, bump)
    }

    /// At the address derived from `seeds`, or at any address that signed.
    ///
    /// # Errors
    /// 2501 when neither holds.
    pub fn at_derived_or_signed(&self, seeds: &[&[u8]]) -> ProgramResult {
        let (derived, bump) = Address::find_program_address(seeds, &EXCHANGE);
        if *self.account.address() == derived {
            return self.create_derived(seeds, bump);
        }
        require(self.account.is_signer(), ExchangeError::RequireEqViolated)?;
        self.create(&[])
    }

    fn create_derived(&self, seeds: &[&[u8]], bump: u8) -> ProgramResult {
        let bump = [bump];
        let signer: [Seed; MAX_SEEDS] =
            core::array::from_fn(|i| Seed::from(seeds.get(i).copied().unwrap_or(&bump)));
        // One seed more than were given: the first one missing is the bump.
        let signer = signer
            .get(..=seeds.len())
            .ok_or(ProgramError::MaxSeedLengthExceeded)?;
        self.create(&[Signer::from(signer)])
    }

    fn create(&self, signers: &[Signer]) -> ProgramResult {
        let lamports = Rent::get()?.try_minimum_balance(self.len)?;
        let mut data = [0; 52];
        data[4..12].copy_from_slice(&lamports.to_le_bytes());
        data[12..20].copy_from_slice(&(self.len as u64).to_le_bytes());
        data[20..].copy_from_slice(self.owner.as_array());
        invoke_signed(
            &InstructionView {
                program_id: &SYSTEM,
                data: &data,
                accounts: &[
                    InstructionAccount::writable_signer(self.payer.address()),
                    InstructionAccount::writable_signer(self.account.address()),
                ],
            },
            &[self.payer, self.account],
            signers,
        )
    }
}

/// Creates the creator's associated account of the LP mint.
pub fn create_lp_account(
    associated_token_program: &AccountView,
    creator: &AccountView,
    account: &AccountView,
    lp_mint: &AccountView,
    system_program: &AccountView,
    token_program: &AccountView,
) -> ProgramResult {
    invoke(
        &InstructionView {
            program_id: associated_token_program.address(),
            // `Create`, the first of that program's instructions.
            data: &[0],
            accounts: &[
                InstructionAccount::writable_signer(creator.address()),
                InstructionAccount::writable(account.address()),
                InstructionAccount::readonly(creator.address()),
                InstructionAccount::readonly(lp_mint.address()),
                InstructionAccount::readonly(system_program.address()),
                InstructionAccount::readonly(token_program.address()),
            ],
        },
        &[
            creator,
            account,
            creator,
            lp_mint,
            system_program,
            token_program,
        ],
    )
}

/// Mints LP tokens, signed by the exchange's authority.
pub fn mint_lp(
    token_program: &AccountView,
    lp_mint: &AccountView,
    to: &AccountView,
    authority: &AccountView,
    amount: u64,
) -> ProgramResult {
    let mut data = [0; 9];
    data[0] = 7;
    data[1..].copy_from_slice(&amount.to_le_bytes());
    let bump = [AUTHORITY_BUMP];
    let seeds = [Seed::from(AUTHORITY_SEED), Seed::from(&bump)];
    invoke_signed(
        &InstructionView {
            program_id: token_program.address(),
            data: &data,
            accounts: &[
                InstructionAccount::writable(lp_mint.address()),
                InstructionAccount::writable(to.address()),
                InstructionAccount::readonly_signer(authority.address()),
            ],
        },
        &[lp_mint, to, authority],
        &[Signer::from(&seeds)],
    )
}

/// Pays the fee for opening a pool: lamports into a wrapped-SOL account, whose balance is then brought up to date.
pub fn charge_pool_fee(
    creator: &AccountView,
    receiver: &AccountView,
    token_program: &AccountView,
    lamports: u64,
) -> ProgramResult {
    if lamports == 0 {
        return Ok(());
    }
    let mut data = [0; 12];
    data[0] = 2;
    data[4..].copy_from_slice(&lamports.to_le_bytes());
    invoke(
        &InstructionView {
            program_id: &SYSTEM,
            data: &data,
            accounts: &[
                InstructionAccount::writable_signer(creator.address()),
                InstructionAccount::writable(receiver.address()),
            ],
        },
        &[creator, receiver],
    )?;
    invoke(
        &InstructionView {
            program_id: token_program.address(),
            // `SyncNative`.
            data: &[17],
            accounts: &[InstructionAccount::writable(receiver.address())],
        },
        &[receiver],
    )
}
