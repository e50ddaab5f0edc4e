//! Builds the swap instructions of the exchange: accounts and data.
//!
//! Wire format: discriminator, then `amount_in` and `minimum_amount_out` or `max_amount_in` and `amount_out_received`,
//! each u64 little-endian; 24 bytes. Both take the same accounts.

use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;

use crate::{accounts::PoolState, exchange_ids::ExchangeIds, quote::Direction};

/// First eight bytes of `swap_base_input`.
pub const SWAP_BASE_INPUT: [u8; 8] = [0x8f, 0xbe, 0x5a, 0xda, 0xc4, 0x1e, 0x33, 0xde];

/// First eight bytes of `swap_base_output`.
pub const SWAP_BASE_OUTPUT: [u8; 8] = [0x37, 0xd9, 0x62, 0x56, 0xa3, 0x4a, 0xb4, 0xad];

/// The accounts of a swap, named. Their order on the wire is that of [`SwapAccounts::metas`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwapAccounts {
    /// Where the exchange is.
    pub exchange: ExchangeIds,
    /// Owner of the input tokens; signs.
    pub payer: Pubkey,
    /// Fee configuration of the pool.
    pub amm_config: Pubkey,
    /// The pool.
    pub pool_state: Pubkey,
    /// The user's account that pays.
    pub input_token_account: Pubkey,
    /// The account that receives. The exchange does not check whose it is.
    pub output_token_account: Pubkey,
    /// The pool's vault of the input token.
    pub input_vault: Pubkey,
    /// The pool's vault of the output token.
    pub output_vault: Pubkey,
    /// Token program of the input mint.
    pub input_token_program: Pubkey,
    /// Token program of the output mint.
    pub output_token_program: Pubkey,
    /// Mint that goes in.
    pub input_mint: Pubkey,
    /// Mint that comes out.
    pub output_mint: Pubkey,
    /// The pool's price observations.
    pub observation_state: Pubkey,
}

impl SwapAccounts {
    /// The accounts that a pool gives, and the three that the user does.
    #[must_use]
    pub fn of_pool(
        exchange: ExchangeIds,
        pool_state: Pubkey,
        pool: &PoolState,
        direction: Direction,
        payer: Pubkey,
        input_token_account: Pubkey,
        output_token_account: Pubkey,
    ) -> Self {
        Self {
            exchange,
            payer,
            amm_config: pool.amm_config,
            pool_state,
            input_token_account,
            output_token_account,
            input_vault: direction.input(&pool.vaults),
            output_vault: direction.output(&pool.vaults),
            input_token_program: direction.input(&pool.token_programs),
            output_token_program: direction.output(&pool.token_programs),
            input_mint: direction.input(&pool.mints),
            output_mint: direction.output(&pool.mints),
            observation_state: pool.observation,
        }
    }

    /// The thirteen accounts in the exchange's order.
    #[must_use]
    pub fn metas(&self) -> [AccountMeta; 13] {
        [
            AccountMeta::new_readonly(self.payer, true),
            AccountMeta::new_readonly(self.exchange.authority, false),
            AccountMeta::new_readonly(self.amm_config, false),
            AccountMeta::new(self.pool_state, false),
            AccountMeta::new(self.input_token_account, false),
            AccountMeta::new(self.output_token_account, false),
            AccountMeta::new(self.input_vault, false),
            AccountMeta::new(self.output_vault, false),
            AccountMeta::new_readonly(self.input_token_program, false),
            AccountMeta::new_readonly(self.output_token_program, false),
            AccountMeta::new_readonly(self.input_mint, false),
            AccountMeta::new_readonly(self.output_mint, false),
            AccountMeta::new(self.observation_state, false),
        ]
    }
}

/// A swap of an exact input straight at the exchange, without the guard. Amounts are smallest units.
#[must_use]
pub fn swap_base_input(
    accounts: &SwapAccounts,
    amount_in: u64,
    minimum_amount_out: u64,
) -> Instruction {
    swap(accounts, SWAP_BASE_INPUT, [amount_in, minimum_amount_out])
}

/// A swap for an exact output straight at the exchange, without the guard. Amounts are smallest units.
#[must_use]
pub fn swap_base_output(
    accounts: &SwapAccounts,
    max_amount_in: u64,
    amount_out_received: u64,
) -> Instruction {
    swap(
        accounts,
        SWAP_BASE_OUTPUT,
        [max_amount_in, amount_out_received],
    )
}

fn swap(accounts: &SwapAccounts, discriminator: [u8; 8], amounts: [u64; 2]) -> Instruction {
    let [first, second] = amounts.map(u64::to_le_bytes);
    Instruction {
        program_id: accounts.exchange.program,
        accounts: accounts.metas().to_vec(),
        data: [discriminator, first, second].concat(),
    }
}
