//! Rust client of Anchor 1 that knows the guard from the committed IDL alone.

use std::{rc::Rc, thread};

use anchor_client::{Client, Cluster};
use anchor_lang::{self, declare_program};
use cpmm::instruction::SwapAccounts;
use sluice_testkit::pool::PoolSpec;
use solana_instruction::{AccountMeta, Instruction};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use swap_guard_interface::{SwapArgs, swap};

use crate::bank::{Bank, START};

declare_program!(swap_guard);

const ARGS: SwapArgs = SwapArgs {
    amount_in: 5_000_000,
    minimum_out: 9_974_950,
    expiry_slot: u64::MAX,
};

/// Anchor's client has addresses and instructions of an older line of the same crates: equal bytes, other types.
fn older(address: Pubkey) -> anchor_lang::prelude::Pubkey {
    address.to_bytes().into()
}

fn newer(address: anchor_lang::prelude::Pubkey) -> Pubkey {
    address.to_bytes().into()
}

fn request(accounts: &SwapAccounts) -> Vec<Instruction> {
    // It speaks to no cluster before it sends.
    let client = Client::new(Cluster::Localnet, Rc::new(Keypair::new_from_array([1; 32])));
    let program = client
        .program(swap_guard::ID)
        .expect("the client needs no cluster yet");
    let built = program
        .request()
        .accounts(swap_guard::client::accounts::Swap {
            user: older(accounts.payer),
            exchange_program: older(cpmm::ids::PROGRAM_ID),
            authority: older(cpmm::ids::AUTHORITY),
            amm_config: older(accounts.amm_config),
            pool_state: older(accounts.pool_state),
            input_token_account: older(accounts.input_token_account),
            output_token_account: older(accounts.output_token_account),
            input_vault: older(accounts.input_vault),
            output_vault: older(accounts.output_vault),
            input_token_program: older(accounts.input_token_program),
            output_token_program: older(accounts.output_token_program),
            input_mint: older(accounts.input_mint),
            output_mint: older(accounts.output_mint),
            observation_state: older(accounts.observation_state),
        })
        .args(swap_guard::client::args::Swap {
            amount_in: ARGS.amount_in,
            minimum_out: ARGS.minimum_out,
            expiry_slot: ARGS.expiry_slot,
        })
        .instructions();
    built.into_iter().map(converted).collect()
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

#[tokio::test]
async fn an_anchor_1_client_swaps_through_the_guard_and_reads_its_event() {
    let mut bank = Bank::start(&PoolSpec::plain()).await;
    let accounts = bank.accounts.clone();
    // The client blocks on a runtime of its own, which must not happen on a thread of another one.
    let built = thread::spawn(move || request(&accounts))
        .join()
        .expect("the client does not panic");
    assert_eq!(built, [swap(&bank.accounts, ARGS)]);

    let [instruction] = built.try_into().expect("one instruction");
    let swapped = bank.send(instruction).await.expect("the guard accepts");
    let [input, output] = bank.balances().await;
    let event = swapped
        .logs
        .iter()
        .filter_map(|line| line.strip_prefix("Program data: "))
        .find_map(decode)
        .expect("the guard logs its event");
    assert_eq!(event.received, output - START);
    assert_eq!(newer(event.user), bank.accounts.payer);
    assert_eq!(event.spent, START - input);
}

fn decode(line: &str) -> Option<swap_guard::events::Swapped> {
    use anchor_lang::{AnchorDeserialize, Discriminator};
    use base64::{Engine, engine::general_purpose::STANDARD};
    let data = STANDARD.decode(line).ok()?;
    let body = data.strip_prefix(swap_guard::events::Swapped::DISCRIMINATOR)?;
    swap_guard::events::Swapped::try_from_slice(body).ok()
}
