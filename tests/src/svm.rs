//! A chain in memory with the guard and the exchange loaded, and verbs to set it up and use it.
//!
//! Everything is deterministic: addresses and keys are hashes of names, and the clock stands still unless told. Pools
//! are injected as account bytes, so that any binary of the exchange can run behind them.

use std::{env, fs, path::PathBuf};

use base64::{Engine, engine::general_purpose::STANDARD};
use cpmm::{
    AmmConfig, Direction, Mint, PerToken, PoolSnapshot, PoolState, TokenAccount, TokenAccountKind,
    TokenProgram, TransferFeeConfig,
    fixtures::{blank_pool, published_config},
    ids,
    instruction::SwapAccounts,
    observation_account,
};
use litesvm::{
    LiteSVM,
    types::{FailedTransactionMetadata, TransactionMetadata},
};
use sha2::{Digest, Sha256};
use solana_account::Account;
use solana_clock::Clock;
use solana_instruction::{Instruction, error::InstructionError};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use solana_transaction::Transaction;
use solana_transaction_error::TransactionError;

/// Where the clock stands at first.
pub const EPOCH: u64 = 500;
/// Where the clock stands at first, in seconds.
pub const UNIX_TIMESTAMP: i64 = 1_800_000_000;
/// Lamports of everybody who pays for something: enough for any test.
const WEALTH: u64 = 1_000_000_000_000;

/// The address that `name` stands for.
#[must_use]
pub fn address(name: &str) -> Pubkey {
    Pubkey::from(hash(name))
}

/// The key pair that `name` stands for.
#[must_use]
pub fn keypair(name: &str) -> Keypair {
    Keypair::new_from_array(hash(name))
}

fn hash(name: &str) -> [u8; 32] {
    Sha256::digest(name).into()
}

/// A program published under `target/programs`.
///
/// # Panics
/// When it is not built.
#[must_use]
pub fn program(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../target/programs")
        .join(format!("{name}.so"));
    read_program(path)
}

/// The exchange: the binary that `CPMM_SO` names, or the stand-in.
fn exchange() -> Vec<u8> {
    env::var_os("CPMM_SO").map_or_else(
        || program("local_cpmm"),
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
}

/// A transaction that went through.
pub struct Executed {
    /// Of all its instructions together.
    pub compute_units: u64,
    /// Who set the return data last, and the data.
    pub return_data: (Pubkey, Vec<u8>),
    /// The bytes of every `Program data:` line, in order.
    pub events: Vec<Vec<u8>>,
}

/// A transaction that failed.
#[derive(Debug)]
pub struct Refused {
    /// Index of the failing instruction.
    pub instruction: u8,
    /// Its error.
    pub error: InstructionError,
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
        // Equal transactions are sent again on purpose, so the history that would refuse them is off.
        let mut vm = LiteSVM::new().with_transaction_history(0);
        for (id, program) in [
            (swap_guard_interface::PROGRAM_ID, &*program("swap_guard")),
            (ids::PROGRAM_ID, exchange),
        ] {
            vm.add_program(id, program)
                .expect("the runtime accepts the program");
        }
        let fee_payer = keypair("fee payer");
        let mut svm = Self { vm, fee_payer };
        svm.enrich(svm.fee_payer.pubkey());
        svm.set_time(EPOCH, UNIX_TIMESTAMP);
        svm
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

    /// Sends one transaction, paid by somebody who is part of nothing else.
    ///
    /// # Errors
    /// The instruction that failed and why.
    pub fn send(
        &mut self,
        instructions: &[Instruction],
        signers: &[&Keypair],
    ) -> Result<Executed, Refused> {
        let mut all = vec![&self.fee_payer];
        all.extend(signers);
        let transaction = Transaction::new_signed_with_payer(
            instructions,
            Some(&self.fee_payer.pubkey()),
            &all,
            self.vm.latest_blockhash(),
        );
        let result = self.vm.send_transaction(transaction);
        result.map(executed).map_err(refused)
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
    }
}

fn refused(failed: FailedTransactionMetadata) -> Refused {
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
        logs,
    }
}

/// One of a pool's two tokens, as a test wants it.
#[derive(Clone, Debug)]
pub struct Token {
    /// Which program owns the mint.
    pub program: TokenProgram,
    /// Only for Token-2022.
    pub transfer_fee: Option<TransferFeeConfig>,
    /// Balance of the pool's vault, accrued fees included.
    pub vault: u64,
}

impl Token {
    /// A token of SPL Token.
    #[must_use]
    pub const fn spl(vault: u64) -> Self {
        Self {
            program: TokenProgram::Spl,
            transfer_fee: None,
            vault,
        }
    }

    /// A Token-2022 token without extensions.
    #[must_use]
    pub const fn token_2022(vault: u64) -> Self {
        Self {
            program: TokenProgram::Token2022,
            transfer_fee: None,
            vault,
        }
    }

    /// A Token-2022 token that withholds a fee from every transfer.
    #[must_use]
    pub const fn with_fee(vault: u64, fee: TransferFeeConfig) -> Self {
        Self {
            program: TokenProgram::Token2022,
            transfer_fee: Some(fee),
            vault,
        }
    }

    /// The mint's data.
    #[must_use]
    pub fn mint(&self) -> Vec<u8> {
        let mint = Mint {
            transfer_fee: self.transfer_fee,
            ..Mint::plain(6, u64::MAX)
        };
        mint.encode(&address("mint authority"))
    }

    /// The data of an account of this token.
    #[must_use]
    pub fn account(&self, mint: Pubkey, owner: Pubkey, amount: u64) -> Vec<u8> {
        let kind = match self.transfer_fee {
            Some(_) => TokenAccountKind::WithTransferFee,
            None => TokenAccountKind::Plain,
        };
        TokenAccount {
            mint,
            owner,
            amount,
            frozen: false,
        }
        .encode(kind)
    }
}

/// A pool as a test wants it. The default has the rates of config 0 and nothing accrued.
#[derive(Clone, Debug)]
pub struct PoolSetup {
    /// Its tokens with the vaults' balances.
    pub tokens: PerToken<Token>,
    /// Its fee configuration.
    pub config: AmmConfig,
    /// Switches, counters and times; the addresses are filled in when it is opened.
    pub state: PoolState,
}

impl PoolSetup {
    /// A pool of these tokens.
    #[must_use]
    pub fn of(token_0: Token, token_1: Token) -> Self {
        Self {
            tokens: PerToken { token_0, token_1 },
            config: published_config(),
            state: blank_pool(),
        }
    }

    /// A pool in the state of this snapshot, whatever its addresses.
    ///
    /// # Panics
    /// When a token program of the snapshot is none.
    #[must_use]
    pub fn like(snapshot: PoolSnapshot) -> Self {
        let token = |program, mint: Mint, vault| Token {
            program: TokenProgram::from_id(&program).expect("a token program"),
            transfer_fee: mint.transfer_fee,
            vault,
        };
        let (programs, mints) = (snapshot.pool.token_programs, snapshot.mints);
        let vaults = snapshot.vault_amounts;
        Self {
            tokens: PerToken::new(
                token(programs.token_0, mints.token_0, vaults.token_0),
                token(programs.token_1, mints.token_1, vaults.token_1),
            ),
            config: snapshot.config,
            state: snapshot.pool,
        }
    }

    /// Two SPL tokens, a million and two million whole tokens of six decimals.
    #[must_use]
    pub fn plain() -> Self {
        Self::of(Token::spl(1_000_000_000_000), Token::spl(2_000_000_000_000))
    }
}

/// A pool on the chain.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Address of its state.
    pub address: Pubkey,
    /// Its state when it was opened; the addresses in it stay true.
    pub state: PoolState,
    /// Its tokens as set up.
    pub tokens: PerToken<Token>,
}

/// Somebody with an account of each of a pool's tokens.
pub struct User {
    /// Signs swaps and owns the accounts.
    pub keypair: Keypair,
    /// The token accounts.
    pub accounts: PerToken<Pubkey>,
}

impl Svm {
    /// Places a pool with all its accounts. Opening it again under the same name resets it.
    pub fn open(&mut self, name: &str, setup: &PoolSetup) -> Pool {
        let part = |part: &str| address(&format!("{name} {part}"));
        let mut mints = [part("mint a"), part("mint b")];
        mints.sort();
        let state = PoolState {
            amm_config: part("config"),
            vaults: PerToken::new(part("vault 0"), part("vault 1")),
            lp_mint: part("lp mint"),
            mints: PerToken::new(mints[0], mints[1]),
            token_programs: PerToken::new(
                setup.tokens.token_0.program.id(),
                setup.tokens.token_1.program.id(),
            ),
            observation: part("observation"),
            ..setup.state.clone()
        };
        let pool = part("pool");
        self.place(pool, ids::PROGRAM_ID, state.encode());
        self.place(state.amm_config, ids::PROGRAM_ID, setup.config.encode());
        self.place(
            state.observation,
            ids::PROGRAM_ID,
            observation_account(&pool),
        );
        for (token, mint, vault) in [
            (
                &setup.tokens.token_0,
                state.mints.token_0,
                state.vaults.token_0,
            ),
            (
                &setup.tokens.token_1,
                state.mints.token_1,
                state.vaults.token_1,
            ),
        ] {
            self.place(mint, token.program.id(), token.mint());
            let data = token.account(mint, ids::AUTHORITY, token.vault);
            self.place(vault, token.program.id(), data);
        }
        Pool {
            address: pool,
            state,
            tokens: setup.tokens.clone(),
        }
    }

    /// Gives the user of this name an account of each of the pool's tokens, holding `amounts`.
    pub fn fund(&mut self, name: &str, pool: &Pool, amounts: PerToken<u64>) -> User {
        let keypair = keypair(name);
        let accounts = PerToken::new(
            self.fund_one(name, pool, Direction::ZeroForOne, amounts.token_0),
            self.fund_one(name, pool, Direction::OneForZero, amounts.token_1),
        );
        User { keypair, accounts }
    }

    /// One account, of the token that `side` puts in.
    fn fund_one(&mut self, name: &str, pool: &Pool, side: Direction, amount: u64) -> Pubkey {
        let token = match side {
            Direction::ZeroForOne => &pool.tokens.token_0,
            Direction::OneForZero => &pool.tokens.token_1,
        };
        let mint = side.input(&pool.state.mints);
        let account = address(&format!("{name} account of {mint}"));
        let data = token.account(mint, keypair(name).pubkey(), amount);
        self.place(account, token.program.id(), data);
        account
    }
}

impl Pool {
    /// The accounts of a swap by `user`.
    #[must_use]
    pub fn swap_accounts(&self, user: &User, direction: Direction) -> SwapAccounts {
        SwapAccounts::of_pool(
            self.address,
            &self.state,
            direction,
            user.keypair.pubkey(),
            direction.input(&user.accounts),
            direction.output(&user.accounts),
        )
    }
}
