//! Hostile exchange: a test program that cheats as a test orders it to.
//!
//! Tests load it at the exchange's address. It takes the exchange's thirteen accounts, ignores the amounts in the
//! instruction, and reads its orders from the pool account: see [`Orders`]. It knows SPL Token alone.

use pinocchio::{
    AccountView, Address, ProgramResult,
    cpi::{Seed, Signer, invoke, invoke_signed},
    error::ProgramError,
    instruction::{InstructionAccount, InstructionView},
};

// Under upstream BPF these supply what the official toolchain builds in; unnamed, they would not be linked.
#[cfg(target_arch = "bpf")]
use {bpf_libcalls as _, solana_compiler_builtins as _};

#[cfg(target_os = "solana")]
mod entrypoint {
    pinocchio::program_entrypoint!(super::process_instruction, 16);
    pinocchio::no_allocator!();
    pinocchio::default_panic_handler!();
}

/// Seed and bump of the authority, by which a program at the exchange's address can empty the exchange's vaults.
const AUTHORITY_SEED: &[u8] = b"vault_and_lp_mint_auth_seed";
const AUTHORITY_BUMP: u8 = 253;

/// Length of the exchange's account list.
const ACCOUNTS: usize = 13;

/// What the pool account holds, in this order and without gaps; numbers are little-endian.
struct Orders {
    /// Moved from the user's input account to the input vault.
    take: u64,
    /// Moved from the output vault to the payee.
    pay: u64,
    /// Which of the accounts is paid.
    payee: u8,
    /// Which of the accounts is a program to call, handing it all the accounts: 0 for none.
    called: u8,
    /// Made the owner of one of the user's accounts, unless all zero.
    heir: [u8; 32],
    /// Which of the accounts the heir gets.
    inherited: u8,
    /// Moved from the user's output account to the output vault.
    drain: u64,
    /// Which of the accounts the exchange's authority may spend from afterwards: 0 for none.
    approved: u8,
}

impl Orders {
    fn read(data: &[u8]) -> Option<Self> {
        let (take, data) = data.split_first_chunk()?;
        let (pay, data) = data.split_first_chunk()?;
        let ([payee, called], data) = data.split_first_chunk()?;
        let (heir, data) = data.split_first_chunk()?;
        let ([inherited], data) = data.split_first_chunk()?;
        let (drain, data) = data.split_first_chunk()?;
        Some(Self {
            take: u64::from_le_bytes(*take),
            pay: u64::from_le_bytes(*pay),
            payee: *payee,
            called: *called,
            heir: *heir,
            inherited: *inherited,
            drain: u64::from_le_bytes(*drain),
            approved: *data.first()?,
        })
    }
}

/// Carries the orders out.
///
/// # Errors
/// When an account or an order is missing, and whatever the called programs refuse.
pub fn process_instruction(_: &Address, accounts: &mut [AccountView], _: &[u8]) -> ProgramResult {
    let accounts: &[AccountView; ACCOUNTS] = accounts
        .first_chunk()
        .ok_or(ProgramError::NotEnoughAccountKeys)?;
    let [user, authority, _, pool, input, output, vaults @ ..] = accounts;
    let [input_vault, output_vault, token_program, ..] = vaults;
    let orders = Orders::read(&pool.try_borrow()?).ok_or(ProgramError::InvalidAccountData)?;
    if orders.called != 0 {
        return call_back(account(accounts, orders.called)?, accounts);
    }
    let payee = account(accounts, orders.payee)?;
    let bump = [AUTHORITY_BUMP];
    let seeds = [Seed::from(AUTHORITY_SEED), Seed::from(&bump)];
    transfer(token_program, [input, input_vault, user], orders.take, &[])?;
    transfer(
        token_program,
        [output_vault, payee, authority],
        orders.pay,
        &[Signer::from(&seeds)],
    )?;
    transfer(
        token_program,
        [output, output_vault, user],
        orders.drain,
        &[],
    )?;
    if orders.approved != 0 {
        let approved = account(accounts, orders.approved)?;
        approve(token_program, [approved, authority, user])?;
    }
    if orders.heir == [0; 32] {
        return Ok(());
    }
    let inherited = account(accounts, orders.inherited)?;
    give_away(token_program, inherited, user, &orders.heir)
}

fn account(accounts: &[AccountView; ACCOUNTS], index: u8) -> Result<&AccountView, ProgramError> {
    accounts
        .get(usize::from(index))
        .ok_or(ProgramError::NotEnoughAccountKeys)
}

/// Asks the guard for the same swap once more, as the user, whose signature the guard has to pass on.
fn call_back(guard: &AccountView, accounts: &[AccountView; ACCOUNTS]) -> ProgramResult {
    /// First 8 bytes of the SHA-256 of `global:swap`.
    const SWAP: [u8; 8] = [0xf8, 0xc6, 0x9e, 0x91, 0xe1, 0x75, 0x87, 0xc8];
    // One unit in, one unit out, no expiry.
    let data = [SWAP, 1_u64.to_le_bytes(), 1_u64.to_le_bytes(), [0; 8]];
    let metas = accounts.each_ref().map(|account| {
        InstructionAccount::new(
            account.address(),
            account.is_writable(),
            account.is_signer(),
        )
    });
    invoke(
        &InstructionView {
            program_id: guard.address(),
            data: data.as_flattened(),
            accounts: &metas,
        },
        &accounts.each_ref(),
    )
}

/// Moves what was ordered. An account that nothing is taken from is left alone, whatever its owner.
fn transfer(
    token_program: &AccountView,
    [from, to, authority]: [&AccountView; 3],
    amount: u64,
    signers: &[Signer],
) -> ProgramResult {
    if amount == 0 {
        return Ok(());
    }
    let mut data = [3; 9];
    data[1..].copy_from_slice(&amount.to_le_bytes());
    invoke_signed(
        &InstructionView {
            program_id: token_program.address(),
            data: &data,
            accounts: &[
                InstructionAccount::writable(from.address()),
                InstructionAccount::writable(to.address()),
                InstructionAccount::readonly_signer(authority.address()),
            ],
        },
        &[from, to, authority],
        signers,
    )
}

/// Abuses the user's signature, which the guard has to pass on, to change the account's owner.
fn give_away(
    token_program: &AccountView,
    account: &AccountView,
    owner: &AccountView,
    heir: &[u8; 32],
) -> ProgramResult {
    // `SetAuthority` of the kind `AccountOwner`, to somebody.
    let mut data = [0; 35];
    data[..3].copy_from_slice(&[6, 2, 1]);
    data[3..].copy_from_slice(heir);
    invoke(
        &InstructionView {
            program_id: token_program.address(),
            data: &data,
            accounts: &[
                InstructionAccount::writable(account.address()),
                InstructionAccount::readonly_signer(owner.address()),
            ],
        },
        &[account, owner],
    )
}

/// Abuses the user's signature to let a delegate spend everything from now on.
fn approve(
    token_program: &AccountView,
    [account, delegate, owner]: [&AccountView; 3],
) -> ProgramResult {
    // `Approve`, of every amount.
    let mut data = [0xff; 9];
    data[0] = 4;
    invoke(
        &InstructionView {
            program_id: token_program.address(),
            data: &data,
            accounts: &[
                InstructionAccount::writable(account.address()),
                InstructionAccount::readonly(delegate.address()),
                InstructionAccount::readonly_signer(owner.address()),
            ],
        },
        &[account, delegate, owner],
    )
}
