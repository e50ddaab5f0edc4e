//! What Anchor 1's client makes of the committed IDL: the six instructions, and the event.

use std::rc::Rc;

use anchor_client::{Client, Cluster, Instruction};
use anchor_lang::{self, declare_program, prelude::Pubkey};
use solana_keypair::Keypair;

use crate::recorded::{Recorded, Swap};

pub use swap_guard::events::Swapped;

declare_program!(swap_guard);

/// The guard's address, as the IDL states it.
pub const GUARD: Pubkey = swap_guard::ID;

/// The accounts of an instruction, of which the IDL makes a type, each by its name.
macro_rules! accounts {
    ($form:ident, $swap:expr, $($account:ident)*) => {
        swap_guard::client::accounts::$form {
            $($account: $swap.account(stringify!($account)),)*
        }
    };
}

/// The accounts of an instruction of one hop.
macro_rules! one_hop {
    ($form:ident, $swap:expr) => {
        accounts!($form, $swap,
            user exchange_program authority amm_config pool_state
            input_token_account output_token_account input_vault output_vault
            input_token_program output_token_program input_mint output_mint observation_state)
    };
}

/// The accounts of an instruction of two hops.
macro_rules! two_hops {
    ($form:ident, $swap:expr) => {
        accounts!($form, $swap,
            user exchange_program authority first_amm_config first_pool_state
            input_token_account middle_token_account output_token_account
            first_input_vault first_output_vault first_observation_state
            second_amm_config second_pool_state
            second_input_vault second_output_vault second_observation_state
            input_token_program middle_token_program output_token_program
            input_mint middle_mint output_mint)
    };
}

/// The recorded instructions as the client builds them, of its own types for accounts and arguments.
pub fn requests(recorded: &Recorded) -> Vec<Instruction> {
    use swap_guard::client::args;
    // It speaks to no cluster before it sends.
    let client = Client::new(Cluster::Localnet, Rc::new(Keypair::new_from_array([1; 32])));
    let program = client
        .program(GUARD)
        .expect("the client needs no cluster yet");
    let (amount_in, maximum_in) = (recorded.offered, recorded.offered);
    let (minimum_out, amount_out) = (recorded.asked, recorded.asked);
    let (expiry_slot, receiver) = (recorded.expiry_slot, recorded.receiver);
    let built = |swap: &Swap| {
        let request = program.request();
        let request = match swap.name() {
            "swap" => request.accounts(one_hop!(Swap, swap)).args(args::Swap {
                amount_in,
                minimum_out,
                expiry_slot,
            }),
            "swap_to" => request.accounts(one_hop!(SwapTo, swap)).args(args::SwapTo {
                amount_in,
                minimum_out,
                expiry_slot,
                receiver,
            }),
            "swap_exact_out" => {
                let request = request.accounts(one_hop!(SwapExactOut, swap));
                request.args(args::SwapExactOut {
                    maximum_in,
                    amount_out,
                    expiry_slot,
                })
            }
            "swap_exact_out_to" => {
                let request = request.accounts(one_hop!(SwapExactOutTo, swap));
                request.args(args::SwapExactOutTo {
                    maximum_in,
                    amount_out,
                    expiry_slot,
                    receiver,
                })
            }
            "swap_two_hops" => {
                let request = request.accounts(two_hops!(SwapTwoHops, swap));
                request.args(args::SwapTwoHops {
                    amount_in,
                    minimum_out,
                    expiry_slot,
                })
            }
            "swap_two_hops_to" => {
                let request = request.accounts(two_hops!(SwapTwoHopsTo, swap));
                request.args(args::SwapTwoHopsTo {
                    amount_in,
                    minimum_out,
                    expiry_slot,
                    receiver,
                })
            }
            other => panic!("the client has no form {other}"),
        };
        let instructions = request.instructions();
        let [one] = <[_; 1]>::try_from(instructions).expect("one instruction");
        one
    };
    recorded.swaps.iter().map(built).collect()
}
