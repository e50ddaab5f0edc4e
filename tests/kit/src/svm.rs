//! Chain in memory: LiteSVM with the guard and the exchange, and verbs to set it up and use it.
//!
//! It stands for a validator's runtime, equal to it in what programs may do and cost, and in refusing a transaction that it
//! has executed before. It is stricter in one thing: of the blockhashes it takes the newest alone, where a chain takes 150.
//!
//! Everything is deterministic: addresses and keys are hashes of names, and the clock stands still unless set.

mod recording;

use std::{env, fs, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use cpmm::{PerToken, PoolState, TokenAccount, ids};
use litesvm::{
    LiteSVM,
    types::{FailedTransactionMetadata, TransactionMetadata},
};
use solana_account::Account;
use solana_clock::Clock;
use solana_hash::Hash;
use solana_instruction::{Instruction, error::InstructionError};
use solana_keypair::Keypair;
use solana_pubkey::{Pubkey, pubkey};
use solana_signer::Signer;
use solana_transaction::{Transaction, versioned::VersionedTransaction};
use solana_transaction_error::TransactionError;

use self::recording::Recording;
use crate::{
    names::keypair,
    pool::{Ledger, Pool, PoolSpec, User},
};

/// Where the clock stands at first.
pub const EPOCH: u64 = 500;
/// Where the clock stands at first, in seconds.
pub const UNIX_TIMESTAMP: i64 = 1_800_000_000;
/// Lamports of everybody who pays for something: enough for any test.
const WEALTH: u64 = 1_000_000_000_000;
/// Transactions that are remembered, so that they are not executed twice: more than any test sends with one blockhash.
const REMEMBERED: usize = 1_000;

/// The feature by which a cluster replaces its SPL Token program by p-token.
const P_TOKEN: Pubkey = pubkey!("ptokFjwyJtrwCa9Kgo9xoDS59V4QccBGEaRFnRPnSdP");

/// A program published under `target/programs`.
///
/// # Panics
/// When it is not built.
#[must_use]
pub fn program(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/programs")
        .join(format!("{name}.so"));
    read_program(path)
}

/// The exchange: the binary that `CPMM_SO` names, or the stand-in.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn exchange() -> Vec<u8> {
    env::var_os("CPMM_SO").map_or_else(
        || program("local_cpmm"),
        |path| read_program(PathBuf::from(path)),
    )
}

/// The guard: the binary that `GUARD_SO` names, or the published one.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn guard() -> Vec<u8> {
    env::var_os("GUARD_SO").map_or_else(
        || program("swap_guard"),
        |path| read_program(PathBuf::from(path)),
    )
}

fn read_program(path: PathBuf) -> Vec<u8> {
    fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; build the programs with `cargo xtask build programs`",
            path.display()
        )
    })
}

/// The chain.
pub struct Svm {
    vm: LiteSVM,
    fee_payer: Keypair,
    recording: Option<Recording>,
}

/// A transaction that went through.
pub struct Executed {
    /// Of all its instructions together.
    pub compute_units: u64,
    /// Who set the return data last, and the data.
    pub return_data: (Pubkey, Vec<u8>),
    /// The bytes of every `Program data:` line, in order.
    pub events: Vec<Vec<u8>>,
    /// What the programs logged.
    pub logs: Vec<String>,
}

/// A transaction that failed.
#[derive(Debug)]
pub struct Refused {
    /// Index of the failing instruction.
    pub instruction: u8,
    /// Its error.
    pub error: InstructionError,
    /// Of all instructions up to it, together.
    pub compute_units: u64,
    /// What the programs logged.
    pub logs: Vec<String>,
}

impl Refused {
    /// The program that raised the error: the innermost that failed, and the first to be logged.
    ///
    /// # Panics
    /// When no program logged a failure.
    #[must_use]
    pub fn raised_by(&self) -> Pubkey {
        self.logs
            .iter()
            .filter_map(|line| line.strip_prefix("Program "))
            .find_map(|line| line.split_once(" failed: "))
            .and_then(|(program, _)| program.parse().ok())
            .expect("the runtime logs which program failed")
    }

    /// The custom error code.
    ///
    /// # Panics
    /// When the failure is of another kind.
    #[must_use]
    pub fn code(&self) -> u32 {
        match self.error {
            InstructionError::Custom(code) => code,
            ref other => panic!("{other:?} is no custom error\n{}", self.logs.join("\n")),
        }
    }
}

impl Svm {
    /// A chain with the guard and the exchange.
    #[must_use]
    pub fn new() -> Self {
        Self::with_exchange(&exchange())
    }

    /// A chain with the guard and another program at the exchange's address.
    ///
    /// # Panics
    /// When the runtime does not accept a program.
    #[must_use]
    pub fn with_exchange(exchange: &[u8]) -> Self {
        Self::with_programs(&guard(), exchange)
    }

    /// A chain with these programs at the guard's and the exchange's address.
    ///
    /// # Panics
    /// When the runtime does not accept a program.
    #[must_use]
    pub fn with_programs(guard: &[u8], exchange: &[u8]) -> Self {
        let mut svm = Self {
            vm: LiteSVM::new().with_transaction_history(REMEMBERED),
            fee_payer: keypair("fee payer"),
            recording: Recording::of_environment(),
        };
        svm.load(swap_guard_interface::PROGRAM_ID, guard);
        svm.load(ids::PROGRAM_ID, exchange);
        svm.enrich(svm.fee_payer.pubkey());
        svm.set_time(EPOCH, UNIX_TIMESTAMP);
        svm
    }

    /// A chain whose SPL Token program is the one before p-token, without `unwrapLamports`.
    #[must_use]
    pub fn with_older_token_program() -> Self {
        let mut svm = Self::new();
        let mut features = LiteSVM::mainnet_feature_set();
        features.deactivate(&P_TOKEN);
        let vm = std::mem::take(&mut svm.vm);
        // The default programs are chosen by the features.
        svm.vm = vm.with_feature_set(features).with_default_programs();
        svm
    }

    /// Loads a program.
    ///
    /// # Panics
    /// When the runtime does not accept it.
    pub fn load(&mut self, id: Pubkey, program: &[u8]) {
        self.vm
            .add_program(id, program)
            .expect("the runtime accepts the program");
        if let Some(recording) = &mut self.recording {
            recording.load(id, program);
        }
    }

    /// Sets the clock's epoch and seconds.
    pub fn set_time(&mut self, epoch: u64, unix_timestamp: i64) {
        let clock = Clock {
            epoch,
            unix_timestamp,
            ..self.vm.get_sysvar()
        };
        self.vm.set_sysvar(&clock);
    }

    /// Sets the slot in which the next transaction executes.
    pub fn set_slot(&mut self, slot: u64) {
        let clock = Clock {
            slot,
            ..self.vm.get_sysvar()
        };
        self.vm.set_sysvar(&clock);
    }

    /// The slot in which the next transaction executes.
    #[must_use]
    pub fn slot(&self) -> u64 {
        self.vm.get_sysvar::<Clock>().slot
    }

    /// Gives `address` enough lamports to pay for anything.
    pub fn enrich(&mut self, address: Pubkey) {
        let account = Account {
            lamports: WEALTH,
            ..Account::default()
        };
        self.set(address, account);
    }

    /// Places a pool with all its accounts. Opening it again under the same name resets it.
    pub fn open(&mut self, name: &str, setup: &PoolSpec) -> Pool {
        setup.open(self, name)
    }

    /// Gives the user of this name an account of each of the pool's tokens, holding `amounts`.
    pub fn fund(&mut self, name: &str, pool: &Pool, amounts: PerToken<u64>) -> User {
        pool.fund(self, name, amounts)
    }

    /// Places a rent-exempt account.
    pub fn place(&mut self, address: Pubkey, owner: Pubkey, data: Vec<u8>) {
        let lamports = self.vm.minimum_balance_for_rent_exemption(data.len());
        let account = Account {
            lamports,
            data,
            owner,
            ..Account::default()
        };
        self.set(address, account);
    }

    /// Replaces an account, whatever it was.
    ///
    /// # Panics
    /// When the runtime does not accept it.
    pub fn set(&mut self, address: Pubkey, account: Account) {
        self.vm
            .set_account(address, account)
            .expect("the runtime accepts the account");
    }

    /// The account at `address`; an empty one when there is none.
    #[must_use]
    pub fn account(&self, address: Pubkey) -> Account {
        self.vm.get_account(&address).unwrap_or_default()
    }

    /// The token balance of `address`.
    ///
    /// # Panics
    /// When it is no token account.
    #[must_use]
    pub fn balance(&self, address: Pubkey) -> u64 {
        TokenAccount::decode(&self.account(address).data)
            .expect("a token account")
            .amount
    }

    /// The pool at `address`.
    ///
    /// # Panics
    /// When it is no pool.
    #[must_use]
    pub fn pool_state(&self, address: Pubkey) -> PoolState {
        PoolState::decode(&self.account(address).data).expect("a pool")
    }

    /// Sends one transaction in a block of its own, paid by somebody who is part of nothing else.
    ///
    /// # Errors
    /// The instruction that failed and why.
    pub fn send(
        &mut self,
        instructions: &[Instruction],
        signers: &[&Keypair],
    ) -> Result<Executed, Refused> {
        if let Some(recording) = &self.recording {
            recording.note(&self.vm, instructions);
        }
        let blockhash = self.next_block();
        let mut all = vec![&self.fee_payer];
        all.extend(signers);
        let transaction = Transaction::new_signed_with_payer(
            instructions,
            Some(&self.fee_payer.pubkey()),
            &all,
            blockhash,
        );
        let result = self.vm.send_transaction(transaction);
        result.map(executed).map_err(refused)
    }
}

impl Svm {
    /// The blockhash that the next transaction must carry.
    #[must_use]
    pub fn blockhash(&self) -> Hash {
        self.vm.latest_blockhash()
    }

    /// Goes on to the next block; the blockhash that transactions must carry from then on. So equal instructions can be
    /// sent again, in another transaction.
    pub fn next_block(&mut self) -> Hash {
        self.vm.expire_blockhash();
        self.blockhash()
    }

    /// What the chain asks to keep an account of this many bytes, lamports.
    #[must_use]
    pub fn rent(&self, len: usize) -> u64 {
        self.vm.minimum_balance_for_rent_exemption(len)
    }

    /// Sends a transaction that somebody else built.
    ///
    /// # Errors
    /// The instruction that failed and why.
    ///
    /// # Panics
    /// When it fails before any instruction, as one does that was executed before.
    pub fn submit(&mut self, transaction: VersionedTransaction) -> Result<Executed, Refused> {
        let result = self.vm.send_transaction(transaction);
        result.map(executed).map_err(refused)
    }

    /// Sends a transaction that the chain takes no part of, and returns why.
    ///
    /// # Panics
    /// When it is executed.
    pub fn refusal(&mut self, transaction: VersionedTransaction) -> TransactionError {
        match self.vm.send_transaction(transaction) {
            Ok(meta) => panic!("it was executed\n{}", meta.logs.join("\n")),
            Err(failed) => failed.err,
        }
    }
}

impl Ledger for Svm {
    fn place(&mut self, address: Pubkey, owner: Pubkey, data: Vec<u8>) {
        Self::place(self, address, owner, data);
    }
}

impl Default for Svm {
    fn default() -> Self {
        Self::new()
    }
}

fn executed(meta: TransactionMetadata) -> Executed {
    let events = meta
        .logs
        .iter()
        .filter_map(|line| line.strip_prefix("Program data: "))
        .map(|data| STANDARD.decode(data).expect("the runtime writes base64"))
        .collect();
    Executed {
        compute_units: meta.compute_units_consumed,
        return_data: (meta.return_data.program_id, meta.return_data.data),
        events,
        logs: meta.logs,
    }
}

fn refused(failed: FailedTransactionMetadata) -> Refused {
    let compute_units = failed.meta.compute_units_consumed;
    let logs = failed.meta.logs;
    let TransactionError::InstructionError(instruction, error) = failed.err else {
        panic!(
            "{:?} before any instruction\n{}",
            failed.err,
            logs.join("\n")
        );
    };
    Refused {
        instruction,
        error,
        compute_units,
        logs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transaction that does nothing, with the newest blockhash.
    fn transaction(svm: &Svm, payer: &Keypair) -> VersionedTransaction {
        Transaction::new_signed_with_payer(&[], Some(&payer.pubkey()), &[payer], svm.blockhash())
            .into()
    }

    fn error(svm: &mut Svm, transaction: VersionedTransaction) -> Option<TransactionError> {
        svm.vm
            .send_transaction(transaction)
            .err()
            .map(|failed| failed.err)
    }

    #[test]
    fn a_transaction_is_executed_once() {
        let mut svm = Svm {
            vm: LiteSVM::new().with_transaction_history(REMEMBERED),
            fee_payer: keypair("fee payer"),
            recording: None,
        };
        let payer = keypair("payer");
        svm.enrich(payer.pubkey());
        let first = transaction(&svm, &payer);
        assert_eq!(error(&mut svm, first.clone()), None);
        let again = error(&mut svm, first.clone());
        assert_eq!(again, Some(TransactionError::AlreadyProcessed));

        svm.next_block();
        let late = error(&mut svm, first);
        assert_eq!(late, Some(TransactionError::BlockhashNotFound));
        let another = transaction(&svm, &payer);
        assert_eq!(error(&mut svm, another), None);
    }
}
