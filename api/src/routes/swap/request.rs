//! Request body of both swap endpoints, and the checked swap that it becomes.

mod platform;
mod quote_input;
mod version;

use cpmm::BasisPoints;
use serde::Deserialize;
use sluice_transaction::TransactionVersion;
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

pub use self::platform::Platform;
use self::{quote_input::QuoteInput, version::VersionName};
use crate::{
    error::{ApiError, SwapRefusal},
    extract::{Address, Amount, optional_object, parse_pubkey},
    pricing::{Ask, SwapMode},
    routes::quote::{SwapModeName, parse_slippage},
};

/// Most bytes of a body that are read: a quote is under 1 KiB, and nothing larger is meant.
pub(super) const BODY_LIMIT: usize = 16 * 1024;

/// Compute units for what wallets append, where the caller names none: seven assertions of some 800 each.
const DEFAULT_HEADROOM: u32 = 6_000;

/// The most of them: with the costliest swap it stays within the 1,400,000 that the chain gives any transaction.
const MOST_HEADROOM: u32 = 1_000_000;

/// The most bytes that are left free: the length of the longest transaction there is.
const MOST_SIZE_HEADROOM: usize = 4_096;

/// Body of `POST /v1/swap/transaction` and `POST /v1/swap/instruction`.
// Required fields are options, so that an absent one is refused by its name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SwapRequest {
    #[schema(required, nullable = false)]
    #[serde(default, deserialize_with = "optional_object")]
    quote: Option<QuoteInput>,
    /// Which amount the quote fixes, as it was asked for: `context.swapMode`. Default `ExactIn`. With `ExactOut` the chain
    /// enforces that exactly `outAmount` arrives and no more than `amountIn` is spent; SOL is wrapped up to `amountIn` in
    /// an account of the transaction's own, whose closing gives back what is not spent.
    swap_mode: Option<SwapModeName>,
    /// Address of the wallet that signs, and that pays and receives unless `feePayer` or `receiver` does.
    #[schema(required, nullable = false, value_type = Address)]
    user_public_key: Option<String>,
    /// Whether native SOL is wrapped before and unwrapped after the swap. Default true. Beside the bare
    /// instruction the set-up wraps and the clean-up unwraps.
    wrap_and_unwrap_sol: Option<bool>,
    /// How much native SOL is wrapped where wrapped SOL is there already: `missing` (the default), what it lacks; `always`, all
    /// that goes in, so that swaps which are built at the same time do not count one balance twice.
    #[schema(inline)]
    wrap_sol: Option<WrapSol>,
    /// What of `amountIn` another wallet gets before the swap, basis points: 0 to 9,999; rounded down. `amountIn` is all that
    /// the user pays, the pool is offered the rest, and of an exact output that rest is the most that it may take. A quote
    /// is to be asked for with the same. Default none.
    #[schema(value_type = Option<u16>, maximum = 9_999)]
    platform_fee_bps: Option<Amount>,
    /// The wallet that gets it, which `platformFeeBps` requires: as native SOL where SOL is wrapped for the swap, else in
    /// its associated account of the input token, which is created when absent.
    #[schema(value_type = Option<Address>)]
    fee_wallet: Option<String>,
    /// The most that the amount may move the price, fees excluded, basis points: 0 to 10,000. Beyond, the answer is
    /// `price_impact_too_high` with the impact. Default no limit.
    #[schema(value_type = Option<u16>, maximum = 10_000)]
    max_price_impact_bps: Option<Amount>,
    /// The most that the priority fee may be, lamports. Default 0. The unit price is
    /// `floor(priorityFeeLamports × 1,000,000 / computeUnitLimit)` micro-lamports, and the chain charges
    /// `ceil(price × limit / 1,000,000)` lamports, which is never more.
    priority_fee_lamports: Option<Amount>,
    /// Compute units beyond what the transaction uses, for the assertions that wallets append before they sign: 0 to
    /// 1,000,000. Default 6,000, enough for seven of them. The priority fee grows with the limit only in its price: it never
    /// exceeds `priorityFeeLamports`. Of a bare instruction they are in the limit beside it.
    #[schema(value_type = Option<u32>, maximum = 1_000_000)]
    compute_unit_headroom: Option<Amount>,
    /// Bytes that the transaction leaves free of what the network carries, for instructions that a wallet or a sponsor adds: 0
    /// to 4,096. Default 0. A transaction that cannot is `transaction_too_large`, with what makes it shorter. The bare
    /// instruction has no length of its own.
    #[schema(value_type = Option<u16>, maximum = 4_096)]
    size_headroom: Option<Amount>,
    /// Wire format of the transaction: `0`, `"legacy"`, or `1` (SIMD-0385): up to 4,096 bytes, with the limits and the
    /// priority fee in the message itself instead of instructions, and the fee exactly `priorityFeeLamports`. A cluster that
    /// does not take version 1 is `transaction_version_unsupported`. Default 0. The bare instruction is the same in all.
    #[schema(inline)]
    transaction_version: Option<VersionName>,
    /// Another name for `transactionVersion: "legacy"`; both may be given where they agree.
    as_legacy_transaction: Option<bool>,
    /// The last slot in which the chain executes the swap; 0 or absent for none. A quote names its own in
    /// `context.expirySlot`. When the slot has passed already, the answer is `quote_stale`.
    expiry_slot: Option<Amount>,
    /// Token account of the user that pays. Default is the associated one. It must exist; what is in it is swapped as it is,
    /// so SOL is not wrapped.
    #[schema(value_type = Option<Address>)]
    source_token_account: Option<String>,
    /// Token account of the user, or of `receiver`, that receives the output. Default is the associated one. It must
    /// exist; what arrives in it stays as it is, so SOL is not unwrapped.
    #[schema(value_type = Option<Address>)]
    destination_token_account: Option<String>,
    /// Whether a quote whose pool has moved, or that expired, is replaced by a fresh one of the same pool and the same
    /// slippage instead of being enforced or refused. Default false. The answer's `quote` says what is enforced.
    refresh: Option<bool>,
    /// Another wallet that gets the output: its associated token account, which is created when absent, or native SOL
    /// where SOL is unwrapped. With `destinationTokenAccount` that account must be this wallet's.
    #[schema(value_type = Option<Address>)]
    receiver: Option<String>,
    /// Another wallet that pays fees and rents, and signs first. It gets back the rent of what the transaction closes; the
    /// user needs no SOL. Of a bare instruction it pays what is beside it.
    #[schema(value_type = Option<Address>)]
    fee_payer: Option<String>,
    /// Nonce account whose value stands in the transaction in place of a recent blockhash, so that it lands whenever it is sent,
    /// but once. Its authority must be the user or `feePayer`. The first instruction advances it; `blockhash` is then the value,
    /// and `lastValidBlockHeight` null. Of a bare instruction it changes nothing. Default a recent blockhash.
    #[schema(value_type = Option<Address>)]
    nonce_account: Option<String>,
    /// Whether to refuse amounts beyond the wallet's balance. Default false.
    check_balance: Option<bool>,
    /// Whether the node executes the transaction in its newest state before it is answered: `simulation` then says what it
    /// used and moved, and one that fails is `simulation_failed` with the program's own error. Of a bare instruction it changes
    /// nothing. Default false.
    simulate: Option<bool>,
}

/// How much native SOL is wrapped where wrapped SOL is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum WrapSol {
    /// What is missing.
    #[default]
    Missing,
    /// All that goes in.
    Always,
}

/// What bounds the swap beside the amount that is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedBound {
    /// Exactly what a quote of an exact input says; never recomputed.
    Minimum {
        /// The quote's minimum, smallest units.
        minimum_out: u64,
        /// What the quote expected, smallest units, if it says so.
        out_amount: Option<u64>,
    },
    /// Exactly what a quote of an exact output says.
    Maximum {
        /// The most that may go in, smallest units.
        amount_in: u64,
        /// Slippage of a fresh quote.
        slippage: BasisPoints,
    },
    /// What a fresh quote says, with this allowance.
    Slippage(BasisPoints),
}

/// A checked request.
#[derive(Clone, Copy, Debug)]
pub struct Swap {
    /// The swap that is asked for.
    pub ask: Ask,
    /// What bounds it.
    pub bound: WantedBound,
    /// The wallet that signs, and owns the input.
    pub user: Pubkey,
    /// The wallet that gets the output, if it is another.
    pub receiver: Option<Pubkey>,
    /// The wallet that pays fees and rents, if it is another.
    pub fee_payer: Option<Pubkey>,
    /// What a platform takes of all that the user pays.
    pub platform: Option<Platform>,
    /// Whether native SOL is wrapped and unwrapped.
    pub wrap_and_unwrap_sol: bool,
    /// How much of it is wrapped.
    pub wrap_sol: WrapSol,
    /// Ceiling of the priority fee, lamports.
    pub priority_fee: u64,
    /// Compute units for what a wallet appends.
    pub unit_headroom: u32,
    /// Bytes that the transaction leaves free.
    pub size_headroom: usize,
    /// Wire format of the transaction.
    pub version: TransactionVersion,
    /// Last slot of the swap; `None` when it has none of its own.
    pub expiry_slot: Option<u64>,
    /// The account that pays, if it was named.
    pub source: Option<Pubkey>,
    /// The account that receives, if it is not the associated one.
    pub destination: Option<Pubkey>,
    /// Whether a quote that is no longer true is replaced.
    pub refresh: bool,
    /// The nonce account in place of a recent blockhash, if it was named.
    pub nonce_account: Option<Pubkey>,
    /// Whether the balance is looked at.
    pub check_balance: bool,
    /// Whether the node executes the transaction first.
    pub simulate: bool,
}

impl SwapRequest {
    /// Checks a request to swap at the exchange whose program is `exchange`. Its quote may lack the pool, in which case one is
    /// generated.
    ///
    /// # Errors
    /// The first field that is missing or unusable.
    pub fn check(self, exchange: &Pubkey) -> Result<Swap, ApiError> {
        let user = required("userPublicKey", self.user_public_key)?;
        let user = parse_pubkey("userPublicKey", &user)?;
        let quote = required("quote", self.quote)?;
        let mode = SwapMode::from(self.swap_mode.unwrap_or_default());
        let most = self.max_price_impact_bps;
        let most = most.map(|most| parse_slippage("maxPriceImpactBps", most));
        let platform = platform::platform(self.platform_fee_bps, self.fee_wallet.as_ref(), &user)?;
        let ask = Ask {
            platform_rate: platform.map(|platform| platform.rate),
            ..quote.ask(mode, most.transpose()?)?
        };
        check_program(quote.program.as_deref(), exchange)?;
        let refresh = self.refresh.unwrap_or(false);
        let bound = quote.bound(mode, refresh)?;
        let wallet = |field, text: Option<String>| {
            let parsed = text.map(|text| parse_pubkey(field, &text)).transpose();
            // The user's own is what it is without the field.
            parsed.map(|wallet| wallet.filter(|wallet| *wallet != user))
        };
        let fee_payer = wallet("feePayer", self.fee_payer)?;
        if fee_payer.is_some_and(|payer| !payer.is_on_curve()) {
            return Err(SwapRefusal::WalletOffCurve { field: "feePayer" }.into());
        }
        Ok(Swap {
            ask,
            bound,
            user,
            receiver: wallet("receiver", self.receiver)?,
            fee_payer,
            platform,
            wrap_and_unwrap_sol: self.wrap_and_unwrap_sol.unwrap_or(true),
            wrap_sol: self.wrap_sol.unwrap_or_default(),
            unit_headroom: headroom(self.compute_unit_headroom)?,
            size_headroom: size_headroom(self.size_headroom)?,
            priority_fee: self.priority_fee_lamports.map_or(0, |amount| amount.0),
            version: version::version(self.transaction_version, self.as_legacy_transaction)?,
            expiry_slot: self
                .expiry_slot
                .map(|slot| slot.0)
                .filter(|slot| *slot != swap_guard_interface::NO_EXPIRY),
            source: self
                .source_token_account
                .map(|account| parse_pubkey("sourceTokenAccount", &account))
                .transpose()?,
            destination: self
                .destination_token_account
                .map(|account| parse_pubkey("destinationTokenAccount", &account))
                .transpose()?,
            refresh,
            nonce_account: self
                .nonce_account
                .map(|account| parse_pubkey("nonceAccount", &account))
                .transpose()?,
            check_balance: self.check_balance.unwrap_or(false),
            simulate: self.simulate.unwrap_or(false),
        })
    }
}

const fn missing(field: &'static str) -> ApiError {
    ApiError::MissingField { field }
}

fn required<T>(field: &'static str, value: Option<T>) -> Result<T, ApiError> {
    value.ok_or(missing(field))
}

fn headroom(asked: Option<Amount>) -> Result<u32, ApiError> {
    let Some(Amount(asked)) = asked else {
        return Ok(DEFAULT_HEADROOM);
    };
    u32::try_from(asked)
        .ok()
        .filter(|headroom| *headroom <= MOST_HEADROOM)
        .ok_or_else(|| {
            let fault = format!("must be 0 to {MOST_HEADROOM} compute units");
            ApiError::invalid("computeUnitHeadroom", fault)
        })
}

fn size_headroom(asked: Option<Amount>) -> Result<usize, ApiError> {
    let asked = asked.map_or(Ok(0), |Amount(asked)| usize::try_from(asked));
    asked
        .ok()
        .filter(|headroom| *headroom <= MOST_SIZE_HEADROOM)
        .ok_or_else(|| {
            let fault = format!("must be 0 to {MOST_SIZE_HEADROOM} bytes");
            ApiError::invalid("sizeHeadroom", fault)
        })
}

fn check_program(program: Option<&str>, served: &Pubkey) -> Result<(), ApiError> {
    match program {
        Some(program) if parse_pubkey("quote.program", program)? != *served => {
            Err(SwapRefusal::WrongProgram {
                program: program.to_owned(),
                served: *served,
            }
            .into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
