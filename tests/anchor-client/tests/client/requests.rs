//! What Anchor 1's client makes of the committed IDL: the six instructions, and the event.

use std::rc::Rc;

use anchor_client::{Client, Cluster};
use anchor_lang::{self, AnchorDeserialize, Discriminator, declare_program};
use solana_instruction::{AccountMeta, Instruction};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use swap_guard_interface::TwoHopAccounts;

use crate::{EXACT_IN, EXACT_OUT};

pub use swap_guard::events::Swapped;

declare_program!(swap_guard);

/// Anchor's client has addresses and instructions of an older line of the same crates: equal bytes, other types.
fn older(address: Pubkey) -> anchor_lang::prelude::Pubkey {
    address.to_bytes().into()
}

pub fn newer(address: anchor_lang::prelude::Pubkey) -> Pubkey {
    address.to_bytes().into()
}

/// The accounts of an instruction of one hop: the IDL gives each a type of its own.
macro_rules! one_hop {
    ($form:ident, $first:expr) => {
        swap_guard::client::accounts::$form {
            user: older($first.payer),
            exchange_program: older(cpmm::ids::PROGRAM_ID),
            authority: older(cpmm::ids::AUTHORITY),
            amm_config: older($first.amm_config),
            pool_state: older($first.pool_state),
            input_token_account: older($first.input_token_account),
            output_token_account: older($first.output_token_account),
            input_vault: older($first.input_vault),
            output_vault: older($first.output_vault),
            input_token_program: older($first.input_token_program),
            output_token_program: older($first.output_token_program),
            input_mint: older($first.input_mint),
            output_mint: older($first.output_mint),
            observation_state: older($first.observation_state),
        }
    };
}

/// The accounts of an instruction of two hops.
macro_rules! two_hops {
    ($form:ident, $first:expr, $second:expr) => {
        swap_guard::client::accounts::$form {
            user: older($first.payer),
            exchange_program: older(cpmm::ids::PROGRAM_ID),
            authority: older(cpmm::ids::AUTHORITY),
            first_amm_config: older($first.amm_config),
            first_pool_state: older($first.pool_state),
            input_token_account: older($first.input_token_account),
            middle_token_account: older($first.output_token_account),
            output_token_account: older($second.output_token_account),
            first_input_vault: older($first.input_vault),
            first_output_vault: older($first.output_vault),
            first_observation_state: older($first.observation_state),
            second_amm_config: older($second.amm_config),
            second_pool_state: older($second.pool_state),
            second_input_vault: older($second.input_vault),
            second_output_vault: older($second.output_vault),
            second_observation_state: older($second.observation_state),
            input_token_program: older($first.input_token_program),
            middle_token_program: older($first.output_token_program),
            output_token_program: older($second.output_token_program),
            input_mint: older($first.input_mint),
            middle_mint: older($first.output_mint),
            output_mint: older($second.output_mint),
        }
    };
}

/// All six instructions as the client builds them, those with a receiver paying `receiver`.
pub fn requests(accounts: &TwoHopAccounts, receiver: Pubkey) -> [Instruction; 6] {
    use swap_guard::client::args;
    // It speaks to no cluster before it sends.
    let client = Client::new(Cluster::Localnet, Rc::new(Keypair::new_from_array([1; 32])));
    let program = client
        .program(swap_guard::ID)
        .expect("the client needs no cluster yet");
    let TwoHopAccounts { first, second } = accounts;
    let receiver = older(receiver);
    let requests = [
        program
            .request()
            .accounts(one_hop!(Swap, first))
            .args(args::Swap {
                amount_in: EXACT_IN.amount_in,
                minimum_out: EXACT_IN.minimum_out,
                expiry_slot: EXACT_IN.expiry_slot,
            }),
        program
            .request()
            .accounts(one_hop!(SwapTo, first))
            .args(args::SwapTo {
                amount_in: EXACT_IN.amount_in,
                minimum_out: EXACT_IN.minimum_out,
                expiry_slot: EXACT_IN.expiry_slot,
                receiver,
            }),
        program
            .request()
            .accounts(one_hop!(SwapExactOut, first))
            .args(args::SwapExactOut {
                maximum_in: EXACT_OUT.maximum_in,
                amount_out: EXACT_OUT.amount_out,
                expiry_slot: EXACT_OUT.expiry_slot,
            }),
        program
            .request()
            .accounts(one_hop!(SwapExactOutTo, first))
            .args(args::SwapExactOutTo {
                maximum_in: EXACT_OUT.maximum_in,
                amount_out: EXACT_OUT.amount_out,
                expiry_slot: EXACT_OUT.expiry_slot,
                receiver,
            }),
        program
            .request()
            .accounts(two_hops!(SwapTwoHops, first, second))
            .args(args::SwapTwoHops {
                amount_in: EXACT_IN.amount_in,
                minimum_out: EXACT_IN.minimum_out,
                expiry_slot: EXACT_IN.expiry_slot,
            }),
        program
            .request()
            .accounts(two_hops!(SwapTwoHopsTo, first, second))
            .args(args::SwapTwoHopsTo {
                amount_in: EXACT_IN.amount_in,
                minimum_out: EXACT_IN.minimum_out,
                expiry_slot: EXACT_IN.expiry_slot,
                receiver,
            }),
    ];
    requests.map(|request| {
        let [built] = <[_; 1]>::try_from(request.instructions()).expect("one instruction");
        converted(built)
    })
}

fn converted(built: anchor_client::Instruction) -> Instruction {
    Instruction {
        program_id: newer(built.program_id),
        accounts: built
            .accounts
            .into_iter()
            .map(|meta| AccountMeta {
                pubkey: newer(meta.pubkey),
                is_signer: meta.is_signer,
                is_writable: meta.is_writable,
            })
            .collect(),
        data: built.data,
    }
}

/// The event as the client decodes it, of bytes that are one.
pub fn swapped(data: &[u8]) -> Option<Swapped> {
    let body = data.strip_prefix(Swapped::DISCRIMINATOR)?;
    Swapped::try_from_slice(body).ok()
}
