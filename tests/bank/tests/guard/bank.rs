//! Validator's bank with the guard, the stand-in exchange, two pools with a token in common, and a user.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use cpmm::{TokenAccount, instruction::SwapAccounts};
use sluice_testkit::{
    pool::{Ledger, PoolSpec},
    route::{Route, Trader},
};
use solana_account::Account;
use solana_instruction::{Instruction, error::InstructionError};
use solana_keypair::Keypair;
use solana_program_test::{ProgramTest, ProgramTestContext};
use solana_pubkey::{Pubkey, pubkey};
use solana_signer::Signer;
use solana_transaction::Transaction;
use solana_transaction_error::TransactionError;
use swap_guard_interface::TwoHopAccounts;

/// What the user has of each token beforehand.
pub const START: u64 = 1_000_000_000;

/// Owner of programs that are loaded as they are.
const LOADER: Pubkey = pubkey!("BPFLoader2111111111111111111111111111111111");

/// Enough for every account to be exempt from rent.
const LAMPORTS: u64 = 1_000_000_000;

/// What a swap that went through left behind.
pub struct Swapped {
    /// Who set the return data, and the data.
    pub return_data: (Pubkey, Vec<u8>),
    pub logs: Vec<String>,
}

/// A bank on which swaps of these accounts would be accepted.
pub struct Bank {
    pub context: ProgramTestContext,
    /// Of a swap through the first pool.
    pub accounts: SwapAccounts,
    /// Of a swap through both.
    pub route: TwoHopAccounts,
    user: Keypair,
}

/// Accounts that the bank starts with.
struct Genesis(ProgramTest);

impl Ledger for Genesis {
    fn place(&mut self, address: Pubkey, owner: Pubkey, data: Vec<u8>) {
        let account = Account {
            lamports: LAMPORTS,
            data,
            owner,
            ..Account::default()
        };
        self.0.add_account(address, account);
    }
}

impl Genesis {
    /// A program published under `target/programs`.
    fn load(&mut self, id: Pubkey, file: &Path) {
        let data = fs::read(file).unwrap_or_else(|error| {
            panic!(
                "{}: {error}; build the programs with `cargo xtask build programs`",
                file.display()
            )
        });
        let account = Account {
            lamports: LAMPORTS,
            data,
            owner: LOADER,
            executable: true,
            ..Account::default()
        };
        self.0.add_account(id, account);
    }
}

/// A program published under `target/programs`.
fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/programs")
        .join(format!("{name}.so"))
}

/// The exchange: the binary that `CPMM_SO` names, or the stand-in.
fn exchange() -> PathBuf {
    env::var_os("CPMM_SO").map_or_else(|| program("local_cpmm"), PathBuf::from)
}

impl Bank {
    /// Starts a bank with this pool as the first.
    pub async fn start(setup: &PoolSpec) -> Self {
        let mut genesis = Genesis(ProgramTest::default());
        genesis.load(swap_guard_interface::PROGRAM_ID, &program("swap_guard"));
        genesis.load(cpmm::ids::PROGRAM_ID, &exchange());
        let pools = Route::open(&mut genesis, "route", setup, &PoolSpec::plain());
        let Trader { keypair, accounts } = pools.fund(&mut genesis, "user", [START; 3]);
        Self {
            context: genesis.0.start_with_context().await,
            accounts: accounts.first.clone(),
            route: accounts,
            user: keypair,
        }
    }

    /// Sends one instruction, signed by the user and paid for by somebody else.
    pub async fn send(&mut self, instruction: Instruction) -> Result<Swapped, TransactionError> {
        // A new one each time, so that equal transactions are not taken for one.
        let blockhash = self.context.get_new_latest_blockhash().await;
        let payer = &self.context.payer;
        let transaction = Transaction::new_signed_with_payer(
            &[instruction],
            Some(&payer.pubkey()),
            &[payer, &self.user],
            blockhash.expect("the bank makes blockhashes"),
        );
        let answer = self
            .context
            .banks_client
            .process_transaction_with_metadata(transaction)
            .await
            .expect("the bank answers");
        answer.result?;
        let metadata = answer.metadata.expect("the transaction was executed");
        let returned = metadata.return_data.expect("the guard returns data");
        Ok(Swapped {
            return_data: (returned.program_id, returned.data),
            logs: metadata.log_messages,
        })
    }

    /// Sends an instruction that must fail with this custom code and move nothing.
    pub async fn assert_refused(&mut self, instruction: Instruction, code: u32) {
        let before = (self.balances().await, self.second_output().await);
        let Err(error) = self.send(instruction).await else {
            panic!("the guard accepted");
        };
        assert_eq!(
            error,
            TransactionError::InstructionError(0, InstructionError::Custom(code))
        );
        let after = (self.balances().await, self.second_output().await);
        assert_eq!(after, before);
    }

    /// The user's balances of the first pool: input, output.
    pub async fn balances(&mut self) -> [u64; 2] {
        [
            self.balance(self.accounts.input_token_account).await,
            self.balance(self.accounts.output_token_account).await,
        ]
    }

    /// The user's balance of the token that the second pool pays.
    pub async fn second_output(&mut self) -> u64 {
        self.balance(self.route.second.output_token_account).await
    }

    async fn balance(&mut self, address: Pubkey) -> u64 {
        let account = self.context.banks_client.get_account(address).await;
        let account = account
            .expect("the bank answers")
            .expect("the account is there");
        TokenAccount::decode(&account.data)
            .expect("a token account")
            .amount
    }
}
