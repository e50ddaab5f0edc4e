//! Wallets that execute the API's transactions on the chain in memory, in every state of a wallet.

use cpmm::{
    Direction, Mint, PoolState, TokenAccount, TokenAccountKind, TokenProgram, ids,
    instruction::SwapAccounts,
};
use sluice_testkit::{
    names::{address, keypair},
    pool::{Pool, PoolSpec, TokenSpec, constant_fee},
    svm::{self, Executed, Refused, Svm},
};
use sluice_transaction::{
    Associated, Exchange, SwapTerms, TokenSide, TransactionPlan, UnsignedTransaction,
    compute_table::{TokenKind, TokenShape},
    rent::Rent,
};
use solana_account::Account;
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

/// Balance of each vault, smallest units.
const RESERVE: u64 = 1_000_000_000_000;

/// What the wallet swaps, smallest units.
const AMOUNT_IN: u64 = 1_000_000;

/// Transfer fee of the mints that have one, basis points.
const TRANSFER_FEE: u16 = 100;

/// The exchange that the chain in memory runs: the stand-in, or the binary that `CPMM_SO` names.
#[must_use]
pub fn exchange() -> Exchange {
    if svm::exchange() == svm::program("local_cpmm") {
        Exchange::StandIn
    } else {
        Exchange::Raydium
    }
}

/// What goes in or comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asset {
    /// SOL, wrapped in the pool.
    Sol,
    /// A token.
    Token(TokenKind),
}

impl Asset {
    /// Every asset.
    pub const ALL: [Self; 4] = [
        Self::Sol,
        Self::Token(TokenKind::Spl),
        Self::Token(TokenKind::Token2022),
        Self::Token(TokenKind::Token2022WithFee),
    ];

    fn token(self) -> TokenSpec {
        match self {
            Self::Sol | Self::Token(TokenKind::Spl) => TokenSpec::spl(RESERVE),
            Self::Token(TokenKind::Token2022) => TokenSpec::token_2022(RESERVE),
            Self::Token(TokenKind::Token2022WithFee) => {
                TokenSpec::with_fee(RESERVE, constant_fee(TRANSFER_FEE))
            }
        }
    }
}

/// One of a wallet's token accounts before the swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// There is none.
    Absent,
    /// It holds this much.
    Holding(u64),
}

/// What is asked of the API, and in which state the wallet is.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What goes in.
    pub input: Asset,
    /// What comes out.
    pub output: Asset,
    /// The associated account of the input.
    pub input_before: Before,
    /// The associated account of the output.
    pub output_before: Before,
    /// Whether another account of the wallet receives.
    pub named_destination: bool,
    /// Whether SOL is wrapped and unwrapped.
    pub wrap: bool,
    /// Whether the transaction has the legacy format.
    pub legacy: bool,
}

impl Case {
    /// Every case that the API can meet.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        for input in Asset::ALL {
            for output in Asset::ALL {
                if input == Asset::Sol && output == Asset::Sol {
                    continue;
                }
                cases.extend(Self::between(input, output));
            }
        }
        cases
    }

    fn between(input: Asset, output: Asset) -> Vec<Self> {
        let involves_sol = input == Asset::Sol || output == Asset::Sol;
        let inputs: &[Before] = match input {
            Asset::Sol => &[
                Before::Absent,
                Before::Holding(0),
                Before::Holding(AMOUNT_IN / 3),
                Before::Holding(AMOUNT_IN),
            ],
            Asset::Token(_) => &[Before::Holding(AMOUNT_IN)],
        };
        let mut cases = Vec::new();
        for wrap in [true, false] {
            if !wrap && !involves_sol {
                continue;
            }
            for input_before in inputs {
                // Without wrapping, nothing fills the account.
                if !wrap && *input_before != Before::Holding(AMOUNT_IN) {
                    continue;
                }
                for output_before in [Before::Absent, Before::Holding(0), Before::Holding(7)] {
                    for (named_destination, legacy) in
                        [(false, false), (false, true), (true, false), (true, true)]
                    {
                        cases.push(Self {
                            input,
                            output,
                            input_before: *input_before,
                            output_before,
                            named_destination,
                            wrap,
                            legacy,
                        });
                    }
                }
            }
        }
        cases
    }
}

/// A pool of a case, and a wallet in front of it.
pub struct Wallet {
    /// Signs and pays.
    pub keypair: Keypair,
    /// What the API would build for it.
    pub plan: TransactionPlan,
    pool: Pool,
    direction: Direction,
}

/// A transaction that was executed.
pub struct Ran {
    /// What the API built.
    pub unsigned: UnsignedTransaction,
    /// What the chain did.
    pub executed: Executed,
}

impl Wallet {
    /// Places a pool and a wallet of this name.
    pub fn place(svm: &mut Svm, name: &str, case: Case) -> Self {
        let (pool, direction) = open(svm, case);
        let keypair = keypair(name);
        let user = keypair.pubkey();
        svm.enrich(user);
        let opposite = match direction {
            Direction::ZeroForOne => Direction::OneForZero,
            Direction::OneForZero => Direction::ZeroForOne,
        };
        let (paying, input) = associated_side(svm, &pool, direction, user, case.input_before);
        let (mut receiving, mut output) =
            associated_side(svm, &pool, opposite, user, case.output_before);
        if case.named_destination {
            receiving = address(&format!("{name} destination"));
            output.account = hold(svm, &pool, opposite, user, receiving, Before::Holding(11));
        }
        let plan = TransactionPlan {
            accounts: SwapAccounts::of_pool(
                pool.address,
                &pool.state,
                direction,
                user,
                paying,
                receiving,
            ),
            terms: SwapTerms {
                amount_in: AMOUNT_IN,
                minimum_out: 1,
                expiry_slot: None,
            },
            input,
            output,
            named_destination: case.named_destination,
            wrap_and_unwrap_sol: case.wrap,
            priority_fee: 12_345,
            legacy: case.legacy,
            rent: Rent {
                lamports_per_byte: svm.rent(1) - svm.rent(0),
            },
            exchange: exchange(),
        };
        Self {
            keypair,
            plan,
            pool,
            direction,
        }
    }

    /// Signs and executes what the API builds.
    ///
    /// # Errors
    /// The instruction that failed and why.
    ///
    /// # Panics
    /// When the API builds no transaction.
    pub fn run(&self, svm: &mut Svm) -> Result<Ran, Refused> {
        let unsigned = self.plan.transaction(svm.next_block()).expect("it fits");
        let transaction: VersionedTransaction =
            wincode::deserialize_exact(&unsigned.bytes).expect("a transaction");
        let signed = VersionedTransaction::try_new(transaction.message, &[&self.keypair])
            .expect("the wallet is the only signer");
        let executed = svm.submit(signed)?;
        Ok(Ran { unsigned, executed })
    }

    /// The pool, and which way the wallet swaps.
    #[must_use]
    pub const fn pool(&self) -> (&Pool, Direction) {
        (&self.pool, self.direction)
    }
}

/// Opens a pool of the case's assets. SOL is always the first token, because its mint's address is small.
fn open(svm: &mut Svm, case: Case) -> (Pool, Direction) {
    let (first, second, direction) = if case.output == Asset::Sol {
        (case.output, case.input, Direction::OneForZero)
    } else {
        (case.input, case.output, Direction::ZeroForOne)
    };
    let setup = PoolSpec::of(first.token(), second.token());
    let mut pool = svm.open("pool", &setup);
    if first == Asset::Sol {
        pool.wrap_first(svm);
        let vault = TokenAccount {
            mint: ids::WRAPPED_SOL,
            owner: ids::AUTHORITY,
            amount: RESERVE,
            frozen: false,
        };
        place_wrapped(svm, pool.state.vaults.token_0, &vault);
    }
    (pool, direction)
}

/// One side of a swap, paid from or into the wallet's associated account of that token, and where that is.
fn associated_side(
    svm: &mut Svm,
    pool: &Pool,
    side: Direction,
    user: Pubkey,
    before: Before,
) -> (Pubkey, TokenSide) {
    let state = &pool.state;
    let (mint, program) = (side.input(&state.mints), side.input(&state.token_programs));
    let associated = Associated::of(&user, &mint, &program);
    let account = hold(svm, pool, side, user, associated.address, before);
    let terms = TokenSide {
        token: shape(svm, state, side),
        bump: associated.bump,
        account,
    };
    (associated.address, terms)
}

/// Puts one of a wallet's token accounts into the state that a case asks for.
fn hold(
    svm: &mut Svm,
    pool: &Pool,
    side: Direction,
    owner: Pubkey,
    at: Pubkey,
    before: Before,
) -> Option<TokenAccount> {
    let account = match before {
        Before::Absent => None,
        Before::Holding(amount) => Some(TokenAccount {
            mint: side.input(&pool.state.mints),
            owner,
            amount,
            frozen: false,
        }),
    };
    place_account(svm, pool, side, at, account);
    account
}

/// The token that `side` puts in, as the table of compute units distinguishes tokens.
fn shape(svm: &Svm, state: &PoolState, side: Direction) -> TokenShape {
    let mint = svm.account(side.input(&state.mints)).data;
    let mint = Mint::decode(&mint).expect("a mint");
    let program = TokenProgram::from_id(&side.input(&state.token_programs));
    TokenShape::of(program.expect("a token program"), &mint)
}

fn place_account(
    svm: &mut Svm,
    pool: &Pool,
    side: Direction,
    at: Pubkey,
    account: Option<TokenAccount>,
) {
    let Some(account) = account else {
        svm.set(at, Account::default());
        return;
    };
    if account.mint == ids::WRAPPED_SOL {
        place_wrapped(svm, at, &account);
        return;
    }
    let token = match side {
        Direction::ZeroForOne => &pool.tokens.token_0,
        Direction::OneForZero => &pool.tokens.token_1,
    };
    let data = token.account(account.mint, account.owner, account.amount);
    svm.place(at, token.program.id(), data);
}

/// A wrapped SOL account owns its balance in lamports, on top of its rent.
fn place_wrapped(svm: &mut Svm, at: Pubkey, account: &TokenAccount) {
    let reserve = svm.rent(cpmm::TOKEN_ACCOUNT_LEN);
    let placed = Account {
        lamports: reserve + account.amount,
        data: account.encode(TokenAccountKind::Native { reserve }),
        owner: ids::SPL_TOKEN,
        ..Account::default()
    };
    svm.set(at, placed);
}
