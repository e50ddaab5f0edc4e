//! Instructions of the guard: one hop or two, exact in or out, paid to the signer or to a stated receiver.
//!
//! Wire format: discriminator and three numbers, each u64 little-endian; 32 bytes. The instructions with a receiver have
//! his address behind that; 64 bytes. Any other length is refused.
//! Accounts of one hop, W writable, S signer: user (S), exchange program, then the exchange's own list without its first
//! account: authority, amm_config, pool_state (W), input_token_account (W), output_token_account (W), input_vault (W),
//! output_vault (W), input_token_program, output_token_program, input_mint, output_mint, observation_state (W). Those of
//! two hops are listed at [`TwoHopAccounts`].

use cpmm::instruction::SwapAccounts;
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;

use crate::PROGRAM_ID;

/// First eight bytes of `swap`.
pub const SWAP_DISCRIMINATOR: [u8; 8] = [0xf8, 0xc6, 0x9e, 0x91, 0xe1, 0x75, 0x87, 0xc8];

/// First eight bytes of `swap_exact_out`.
pub const SWAP_EXACT_OUT_DISCRIMINATOR: [u8; 8] = [0xfa, 0x49, 0x65, 0x21, 0x26, 0xcf, 0x4b, 0xb8];

/// First eight bytes of `swap_two_hops`.
pub const SWAP_TWO_HOPS_DISCRIMINATOR: [u8; 8] = [0xdb, 0x78, 0x92, 0x77, 0x03, 0xd0, 0x14, 0x77];

/// First eight bytes of `swap_to`.
pub const SWAP_TO_DISCRIMINATOR: [u8; 8] = [0x45, 0x9d, 0xcb, 0x1b, 0x20, 0x5f, 0x6e, 0x85];

/// First eight bytes of `swap_exact_out_to`.
pub const SWAP_EXACT_OUT_TO_DISCRIMINATOR: [u8; 8] =
    [0xde, 0xee, 0xd2, 0x8b, 0x52, 0xea, 0xe2, 0xf1];

/// First eight bytes of `swap_two_hops_to`.
pub const SWAP_TWO_HOPS_TO_DISCRIMINATOR: [u8; 8] =
    [0x56, 0x10, 0x2c, 0x9b, 0x97, 0x95, 0xbe, 0x19];

/// The `expiry_slot` of a swap that the guard lets execute in any slot.
pub const NO_EXPIRY: u64 = 0;

/// What the user signs for in a swap of an exact input. Amounts are smallest units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapArgs {
    /// Exactly what is offered to the exchange, before the input mint's transfer fee. Above zero.
    pub amount_in: u64,
    /// The least that must arrive, after the output mint's transfer fee. Above zero.
    pub minimum_out: u64,
    /// The last slot in which the swap may execute, or [`NO_EXPIRY`]. The transaction's blockhash ends its life in any
    /// case; this ends it sooner.
    pub expiry_slot: u64,
}

/// What the user signs for in a swap for an exact output. Amounts are smallest units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactOutArgs {
    /// The most that may be spent, the input mint's transfer fee included. Above zero.
    pub maximum_in: u64,
    /// What must arrive, after the output mint's transfer fee. Above zero.
    pub amount_out: u64,
    /// As in [`SwapArgs`].
    pub expiry_slot: u64,
}

/// The accounts of two hops, named. Their order on the wire is that of [`TwoHopAccounts::metas`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TwoHopAccounts {
    /// The swap from the input to the middle token. Its output account is the middle account.
    pub first: SwapAccounts,
    /// The swap from the middle to the output token, by the same payer, out of the middle account.
    pub second: SwapAccounts,
}

/// The amounts of a swap: which of them is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapAmounts {
    /// What goes in is fixed.
    ExactIn(SwapArgs),
    /// What comes out is fixed.
    ExactOut(ExactOutArgs),
}

/// What an instruction of the guard says beside its accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedSwap {
    /// What is signed for.
    pub amounts: SwapAmounts,
    /// Whether it goes through two pools, with the accounts of [`TwoHopAccounts`].
    pub has_two_hops: bool,
    /// The wallet that gets the output, if it is not the user.
    pub receiver: Option<Pubkey>,
}

impl DecodedSwap {
    /// Reads an instruction's data; `None` where the guard would refuse them.
    #[must_use]
    pub fn read(data: &[u8]) -> Option<Self> {
        let (discriminator, rest) = data.split_first_chunk::<8>()?;
        let (numbers, rest) = rest.split_first_chunk::<24>()?;
        let number = |at: usize| {
            let bytes = numbers.get(at..)?.first_chunk::<8>()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let [first, second, expiry_slot] = [number(0)?, number(8)?, number(16)?];
        let exact_in = SwapAmounts::ExactIn(SwapArgs {
            amount_in: first,
            minimum_out: second,
            expiry_slot,
        });
        let exact_out = SwapAmounts::ExactOut(ExactOutArgs {
            maximum_in: first,
            amount_out: second,
            expiry_slot,
        });
        let (amounts, has_two_hops, has_receiver) = match *discriminator {
            SWAP_DISCRIMINATOR => (exact_in, false, false),
            SWAP_TO_DISCRIMINATOR => (exact_in, false, true),
            SWAP_EXACT_OUT_DISCRIMINATOR => (exact_out, false, false),
            SWAP_EXACT_OUT_TO_DISCRIMINATOR => (exact_out, false, true),
            SWAP_TWO_HOPS_DISCRIMINATOR => (exact_in, true, false),
            SWAP_TWO_HOPS_TO_DISCRIMINATOR => (exact_in, true, true),
            _ => return None,
        };
        let receiver = match (has_receiver, rest) {
            (false, []) => None,
            (true, rest) => Some(Pubkey::new_from_array(rest.try_into().ok()?)),
            (false, _) => return None,
        };
        Some(Self {
            amounts,
            has_two_hops,
            receiver,
        })
    }
}

impl TwoHopAccounts {
    /// The twenty-two accounts in the guard's order: user (S), exchange program, authority, first_amm_config,
    /// first_pool_state (W), input_token_account (W), middle_token_account (W), output_token_account (W),
    /// first_input_vault (W), first_output_vault (W), first_observation_state (W), second_amm_config, second_pool_state
    /// (W), second_input_vault (W), second_output_vault (W), second_observation_state (W), input_token_program,
    /// middle_token_program, output_token_program, input_mint, middle_mint, output_mint.
    #[must_use]
    pub fn metas(&self) -> [AccountMeta; 22] {
        let (first, second) = (&self.first, &self.second);
        let read = |address: Pubkey| AccountMeta::new_readonly(address, false);
        let write = |address: Pubkey| AccountMeta::new(address, false);
        [
            AccountMeta::new_readonly(first.payer, true),
            read(first.exchange.program),
            read(first.exchange.authority),
            read(first.amm_config),
            write(first.pool_state),
            write(first.input_token_account),
            write(first.output_token_account),
            write(second.output_token_account),
            write(first.input_vault),
            write(first.output_vault),
            write(first.observation_state),
            read(second.amm_config),
            write(second.pool_state),
            write(second.input_vault),
            write(second.output_vault),
            write(second.observation_state),
            read(first.input_token_program),
            read(first.output_token_program),
            read(second.output_token_program),
            read(first.input_mint),
            read(first.output_mint),
            read(second.output_mint),
        ]
    }
}

/// A guarded swap of `amount_in` that fails unless the output account gains at least `minimum_out`, and after
/// `expiry_slot`.
#[must_use]
pub fn swap(accounts: &SwapAccounts, args: SwapArgs) -> Instruction {
    let data = encode(SWAP_DISCRIMINATOR, args.numbers(), None);
    instruction(one_hop(accounts), data)
}

/// As [`swap`], into an account of `receiver`.
#[must_use]
pub fn swap_to(accounts: &SwapAccounts, args: SwapArgs, receiver: &Pubkey) -> Instruction {
    let data = encode(SWAP_TO_DISCRIMINATOR, args.numbers(), Some(receiver));
    instruction(one_hop(accounts), data)
}

/// A guarded swap for exactly `amount_out` that fails if it would spend more than `maximum_in`, and after `expiry_slot`.
#[must_use]
pub fn swap_exact_out(accounts: &SwapAccounts, args: ExactOutArgs) -> Instruction {
    let data = encode(SWAP_EXACT_OUT_DISCRIMINATOR, args.numbers(), None);
    instruction(one_hop(accounts), data)
}

/// As [`swap_exact_out`], into an account of `receiver`.
#[must_use]
pub fn swap_exact_out_to(
    accounts: &SwapAccounts,
    args: ExactOutArgs,
    receiver: &Pubkey,
) -> Instruction {
    let discriminator = SWAP_EXACT_OUT_TO_DISCRIMINATOR;
    let data = encode(discriminator, args.numbers(), Some(receiver));
    instruction(one_hop(accounts), data)
}

/// A guarded swap of `amount_in` through two pools that fails unless the output account gains at least `minimum_out`,
/// and after `expiry_slot`. What the middle account held before stays in it.
#[must_use]
pub fn swap_two_hops(accounts: &TwoHopAccounts, args: SwapArgs) -> Instruction {
    let data = encode(SWAP_TWO_HOPS_DISCRIMINATOR, args.numbers(), None);
    instruction(accounts.metas().to_vec(), data)
}

/// As [`swap_two_hops`], into an account of `receiver`.
#[must_use]
pub fn swap_two_hops_to(
    accounts: &TwoHopAccounts,
    args: SwapArgs,
    receiver: &Pubkey,
) -> Instruction {
    let discriminator = SWAP_TWO_HOPS_TO_DISCRIMINATOR;
    let data = encode(discriminator, args.numbers(), Some(receiver));
    instruction(accounts.metas().to_vec(), data)
}

impl SwapArgs {
    const fn numbers(self) -> [u64; 3] {
        [self.amount_in, self.minimum_out, self.expiry_slot]
    }
}

impl ExactOutArgs {
    const fn numbers(self) -> [u64; 3] {
        [self.maximum_in, self.amount_out, self.expiry_slot]
    }
}

fn one_hop(accounts: &SwapAccounts) -> Vec<AccountMeta> {
    let mut metas = accounts.metas().to_vec();
    metas.insert(
        1,
        AccountMeta::new_readonly(accounts.exchange.program, false),
    );
    metas
}

fn encode(discriminator: [u8; 8], numbers: [u64; 3], receiver: Option<&Pubkey>) -> Vec<u8> {
    let mut data = discriminator.to_vec();
    for number in numbers {
        data.extend_from_slice(&number.to_le_bytes());
    }
    if let Some(receiver) = receiver {
        data.extend_from_slice(receiver.as_ref());
    }
    data
}

const fn instruction(accounts: Vec<AccountMeta>, data: Vec<u8>) -> Instruction {
    Instruction {
        program_id: PROGRAM_ID,
        accounts,
        data,
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_discriminators_are_the_hashes_of_the_instruction_names() {
        for (name, discriminator) in [
            ("swap", SWAP_DISCRIMINATOR),
            ("swap_exact_out", SWAP_EXACT_OUT_DISCRIMINATOR),
            ("swap_two_hops", SWAP_TWO_HOPS_DISCRIMINATOR),
            ("swap_to", SWAP_TO_DISCRIMINATOR),
            ("swap_exact_out_to", SWAP_EXACT_OUT_TO_DISCRIMINATOR),
            ("swap_two_hops_to", SWAP_TWO_HOPS_TO_DISCRIMINATOR),
        ] {
            let hash = Sha256::digest(format!("global:{name}"));
            assert_eq!(discriminator, hash[..8], "{name}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let numbers = [u64::MAX, 1, NO_EXPIRY];
        let receiver = Pubkey::from([7; 32]);
        let exact_in = SwapAmounts::ExactIn(SwapArgs {
            amount_in: u64::MAX,
            minimum_out: 1,
            expiry_slot: NO_EXPIRY,
        });
        let exact_out = SwapAmounts::ExactOut(ExactOutArgs {
            maximum_in: u64::MAX,
            amount_out: 1,
            expiry_slot: NO_EXPIRY,
        });
        for (discriminator, amounts, has_two_hops, receiver) in [
            (SWAP_DISCRIMINATOR, exact_in, false, None),
            (SWAP_EXACT_OUT_DISCRIMINATOR, exact_out, false, None),
            (SWAP_TWO_HOPS_DISCRIMINATOR, exact_in, true, None),
            (SWAP_TO_DISCRIMINATOR, exact_in, false, Some(receiver)),
            (
                SWAP_EXACT_OUT_TO_DISCRIMINATOR,
                exact_out,
                false,
                Some(receiver),
            ),
            (
                SWAP_TWO_HOPS_TO_DISCRIMINATOR,
                exact_in,
                true,
                Some(receiver),
            ),
        ] {
            let mut data = encode(discriminator, numbers, receiver.as_ref());
            let expected = DecodedSwap {
                amounts,
                has_two_hops,
                receiver,
            };
            assert_eq!(DecodedSwap::read(&data), Some(expected));
            assert_eq!(DecodedSwap::read(&data[..data.len() - 1]), None);
            data.push(0);
            assert_eq!(DecodedSwap::read(&data), None);
        }
        assert_eq!(DecodedSwap::read(&[0; 32]), None);
    }
}
