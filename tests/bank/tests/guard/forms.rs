//! All six instructions on the bank: what they pay, return, log and refuse.

use sluice_testkit::{
    names::keypair,
    pool::{PoolSpec, TokenSpec, constant_fee},
};
use solana_instruction::Instruction;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use swap_guard_interface::{
    ExactOutArgs, GuardError, PROGRAM_ID, SwapArgs, Swapped, TwoHopAccounts, swap, swap_exact_out,
    swap_exact_out_to, swap_to, swap_two_hops, swap_two_hops_to,
};

use crate::bank::{Bank, START};

pub const EXACT_IN: SwapArgs = SwapArgs {
    amount_in: 5_000_000,
    minimum_out: 1_000_000,
    expiry_slot: u64::MAX,
};

pub const EXACT_OUT: ExactOutArgs = ExactOutArgs {
    maximum_in: 5_000_000,
    amount_out: 1_000_000,
    expiry_slot: u64::MAX,
};

/// The six instructions, those with a receiver paying `receiver`.
pub fn all(accounts: &TwoHopAccounts, receiver: &Pubkey) -> [Instruction; 6] {
    let one = &accounts.first;
    [
        swap(one, EXACT_IN),
        swap_to(one, EXACT_IN, receiver),
        swap_exact_out(one, EXACT_OUT),
        swap_exact_out_to(one, EXACT_OUT, receiver),
        swap_two_hops(accounts, EXACT_IN),
        swap_two_hops_to(accounts, EXACT_IN, receiver),
    ]
}

/// A pool into a token with a transfer fee, which so is in the middle of two hops.
fn first_pool() -> PoolSpec {
    let fee = constant_fee(100);
    PoolSpec::of(
        TokenSpec::spl(1_000_000_000_000),
        TokenSpec::with_fee(2_000_000_000_000, fee),
    )
}

fn is_exact_out(index: usize) -> bool {
    matches!(index, 2 | 3)
}

fn is_two_hops(index: usize) -> bool {
    index >= 4
}

#[tokio::test]
async fn every_form_pays_returns_and_logs_what_the_balances_show() {
    let mut bank = Bank::start(&first_pool()).await;
    let me = keypair("user").pubkey();
    let [mut input, mut middle] = [START; 2];
    let mut output = START;
    for (index, instruction) in all(&bank.route, &me).into_iter().enumerate() {
        let swapped = bank.send(instruction).await.expect("the guard accepts");
        let [input_now, middle_now] = bank.balances().await;
        let output_now = bank.second_output().await;
        let spent = input - input_now;
        let received = if is_two_hops(index) {
            assert_eq!(middle_now, middle, "dust in the middle");
            output_now - output
        } else {
            middle_now - middle
        };
        if is_exact_out(index) {
            assert_eq!(received, EXACT_OUT.amount_out);
        } else {
            assert_eq!(spent, EXACT_IN.amount_in);
        }
        let answer = if is_exact_out(index) { spent } else { received };
        assert_eq!(
            swapped.return_data,
            (PROGRAM_ID, answer.to_le_bytes().to_vec())
        );
        let event = logged(&swapped.logs);
        assert_eq!([event.spent, event.received], [spent, received]);
        assert_eq!(event.user, me);
        [input, middle, output] = [input_now, middle_now, output_now];
    }
}

#[tokio::test]
async fn no_form_pays_an_account_of_another_than_the_receiver() {
    let mut bank = Bank::start(&first_pool()).await;
    let receiver = keypair("receiver").pubkey();
    for (index, instruction) in all(&bank.route, &receiver).into_iter().enumerate() {
        // The user's own account, where the data says another's: in every second one.
        if index % 2 == 1 {
            let code = GuardError::OutputOwnerMismatch.code();
            bank.assert_refused(instruction, code).await;
        } else {
            bank.send(instruction).await.expect("the user's own");
        }
    }
}

fn logged(logs: &[String]) -> Swapped {
    use base64::{Engine, engine::general_purpose::STANDARD};
    logs.iter()
        .filter_map(|line| line.strip_prefix("Program data: "))
        .filter_map(|line| STANDARD.decode(line).ok())
        .find_map(|data| Swapped::decode(&data))
        .expect("the guard logs its event")
}
