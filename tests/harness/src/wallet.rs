//! Wallets that execute the API's transactions on the chain in memory, in every state of a wallet.

mod case;
mod route;
pub mod units;

use cpmm::{Direction, Mint, PoolState, TokenAccount, TokenAccountKind, TokenProgram, ids};
use sluice_testkit::{
    names::{address, keypair},
    pool::Pool,
    svm::{self, Executed, Refused, Svm},
};
use sluice_transaction::{
    ApartSwap, Associated, Exchange, PlatformFee, SwapTerms, TokenSide, TransactionPlan,
    UnsignedTransaction, compute_table::TokenShape, compute_units::ExchangeUnits, rent::Rent,
};
use solana_account::Account;
use solana_hash::Hash;
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;

pub use self::case::{AMOUNT_IN, Asset, Before, Case, Form};
use self::{route::Pools, units::Units};

/// What an exact output asks for, smallest units: less than its maximum buys with every fee.
const AMOUNT_OUT: u64 = 900_000;

/// The exchange that the chain in memory runs: the stand-in, or the binary that `CPMM_SO` names.
#[must_use]
pub fn exchange() -> Exchange {
    if svm::exchange() == svm::program("local_cpmm") {
        Exchange::StandIn
    } else {
        Exchange::Raydium
    }
}

/// The pools of a case, and a wallet in front of them.
pub struct Wallet {
    /// Signs, and owns what goes in.
    pub keypair: Keypair,
    /// Pays fees and rents: the wallet, or another one.
    pub fee_payer: Keypair,
    /// What the API would build for it.
    pub plan: TransactionPlan,
}

/// A transaction that was executed.
pub struct Ran {
    /// What the API built.
    pub unsigned: UnsignedTransaction,
    /// What the chain did.
    pub executed: Executed,
}

impl Wallet {
    /// Places the pools and a wallet of this name, and allows the exchange what `units` say.
    pub fn place(svm: &mut Svm, units: &Units, name: &str, case: Case) -> Self {
        let pools = Pools::open(svm, case);
        let keypair = keypair(name);
        let user = keypair.pubkey();
        let other = if case.fee_payer { "'s fee payer" } else { "" };
        let fee_payer = self::keypair(&format!("{name}{other}"));
        svm.enrich(user);
        svm.enrich(fee_payer.pubkey());
        let receiver = case
            .receiver
            .then(|| address(&format!("{name}'s receiver")));
        if let Some(receiver) = receiver {
            svm.enrich(receiver);
        }
        let (pool, way) = pools.first();
        let (paying, input) = associated_side(svm, pool, way, user, case.input_before);
        let platform_fee = platform_fee(svm, pool, way, name, case);
        let (pool, way) = pools.last();
        let middle = case.form.middle();
        let middle = middle.map(|(_, before)| associated_side(svm, pool, way, user, before));
        let back = opposite(way);
        let owner = receiver.filter(|_| !case.unwraps()).unwrap_or(user);
        let (mut receiving, mut output) =
            associated_side(svm, pool, back, owner, case.output_before);
        if case.named_destination {
            receiving = address(&format!("{name} destination"));
            output.account = hold(svm, pool, back, owner, receiving, Before::Holding(11));
        }
        let plan = TransactionPlan {
            route: pools.route(user, paying, middle.map(|(between, _)| between), receiving),
            terms: SwapTerms {
                amount_in: AMOUNT_IN - platform_fee.map_or(0, |fee| fee.amount),
                minimum_out: if case.form == Form::ExactOut {
                    AMOUNT_OUT
                } else {
                    1
                },
                expiry_slot: None,
            },
            input,
            middle: middle.map(|(_, middle)| middle),
            output,
            fee_payer: fee_payer.pubkey(),
            receiver,
            platform_fee,
            nonce: None,
            apart: false,
            named_source: false,
            named_destination: case.named_destination,
            wrap_and_unwrap_sol: case.wrap,
            wraps_all: false,
            priority_fee: 12_345,
            unit_headroom: 0,
            size_headroom: 0,
            version: case.version,
            lookup_table: None,
            rent: Rent {
                lamports_per_byte: svm.rent(1) - svm.rent(0),
            },
            exchange_units: ExchangeUnits::default(),
            unwraps_lamports: true,
        };
        let mut wallet = Self {
            keypair,
            fee_payer,
            plan,
        };
        wallet.allow(svm, units);
        wallet
    }

    /// Allows the exchange what `units` say of the pools as they are now.
    pub fn allow(&mut self, svm: &Svm, units: &Units) {
        self.plan.exchange_units = units.of_route(svm, &self.plan.route, self.plan.terms);
    }

    /// Signs and executes the swap as a transaction of the caller's own, of all that the API gives for one.
    ///
    /// # Errors
    /// The instruction that failed and why.
    ///
    /// # Panics
    /// When a signer is missing.
    pub fn run_apart(&self, svm: &mut Svm) -> Result<(ApartSwap, Executed), Refused> {
        let apart = self.plan.apart();
        let parts = apart.parts.clone().into_instructions();
        let planned = apart.budget.clone().into_iter().chain(parts);
        let instructions: Vec<_> = planned.map(|planned| planned.instruction).collect();
        let mut accounts = instructions
            .iter()
            .flat_map(|instruction| &instruction.accounts);
        // Another fee payer signs only where it pays for an account: the transaction's own fee is the chain's here.
        let pays = accounts.any(|meta| meta.is_signer && meta.pubkey == self.plan.fee_payer);
        let both = [&self.keypair, &self.fee_payer];
        let other = pays && self.plan.fee_payer != self.keypair.pubkey();
        let signers = if other { &both[..] } else { &both[..1] };
        let executed = svm.send(&instructions, signers)?;
        Ok((apart, executed))
    }

    /// Signs and executes what the API builds.
    ///
    /// # Errors
    /// The instruction that failed and why.
    ///
    /// # Panics
    /// When the API builds no transaction.
    pub fn run(&self, svm: &mut Svm) -> Result<Ran, Refused> {
        let (unsigned, signed) = self.signed(svm.next_block());
        let executed = svm.submit(signed)?;
        Ok(Ran { unsigned, executed })
    }

    /// What the API builds with this blockhash, and the same signed.
    ///
    /// # Panics
    /// When the API builds no transaction.
    #[must_use]
    pub fn signed(&self, blockhash: Hash) -> (UnsignedTransaction, VersionedTransaction) {
        let unsigned = self.plan.transaction(blockhash).expect("it fits");
        let transaction: VersionedTransaction =
            wincode::deserialize_exact(&unsigned.bytes).expect("a transaction");
        let both = [&self.fee_payer, &self.keypair];
        let signers = if self.plan.fee_payer == self.keypair.pubkey() {
            &both[1..]
        } else {
            &both[..]
        };
        let signed = VersionedTransaction::try_new(transaction.message, signers)
            .expect("fee payer and wallet are the only signers");
        (unsigned, signed)
    }
}

/// What the case's platform gets of all that the wallet swaps.
fn platform_fee(
    svm: &mut Svm,
    pool: &Pool,
    way: Direction,
    name: &str,
    case: Case,
) -> Option<PlatformFee> {
    let (rate, before) = case.platform?;
    let wallet = address(&format!("{name}'s platform"));
    svm.enrich(wallet);
    let (account, side) = associated_side(svm, pool, way, wallet, before);
    let mint = svm.account(way.input(&pool.state.mints)).data;
    Some(PlatformFee {
        amount: rate.of(AMOUNT_IN),
        wallet,
        account,
        bump: side.bump,
        is_there: side.account.is_some(),
        decimals: Mint::decode(&mint).expect("a mint").decimals,
    })
}

const fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::ZeroForOne => Direction::OneForZero,
        Direction::OneForZero => Direction::ZeroForOne,
    }
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
