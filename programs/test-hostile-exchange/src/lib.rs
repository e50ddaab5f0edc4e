//! An exchange that does what a test tells it instead of what it was asked.
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

/// What the pool account holds, in this order: two u64 little-endian and an address.
struct Orders {
    /// Moved from the user's input account to the input vault.
    take: u64,
    /// Moved from the output vault to the user's output account.
    pay: u64,
    /// Made the owner of the user's output account, unless all zero.
    heir: [u8; 32],
}

impl Orders {
    fn read(data: &[u8]) -> Option<Self> {
        let (take, data) = data.split_first_chunk()?;
        let (pay, data) = data.split_first_chunk()?;
        Some(Self {
            take: u64::from_le_bytes(*take),
            pay: u64::from_le_bytes(*pay),
            heir: *data.first_chunk()?,
        })
    }
}

/// Carries the orders out.
///
/// # Errors
/// When an account or an order is missing, and whatever the token program refuses.
pub fn process_instruction(_: &Address, accounts: &mut [AccountView], _: &[u8]) -> ProgramResult {
    let [
        user,
        authority,
        _,
        pool,
        input,
        output,
        input_vault,
        output_vault,
        token_program,
        ..,
    ] = accounts
    else {
        return Err(ProgramError::NotEnoughAccountKeys);
    };
    let orders = Orders::read(&pool.try_borrow()?).ok_or(ProgramError::InvalidAccountData)?;
    let bump = [AUTHORITY_BUMP];
    let seeds = [Seed::from(AUTHORITY_SEED), Seed::from(&bump)];
    transfer(token_program, [input, input_vault, user], orders.take, &[])?;
    transfer(
        token_program,
        [output_vault, output, authority],
        orders.pay,
        &[Signer::from(&seeds)],
    )?;
    if orders.heir == [0; 32] {
        return Ok(());
    }
    give_away(token_program, output, user, &orders.heir)
}

fn transfer(
    token_program: &AccountView,
    [from, to, authority]: [&AccountView; 3],
    amount: u64,
    signers: &[Signer],
) -> ProgramResult {
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
