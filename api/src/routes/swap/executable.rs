//! Executable swap: a checked request priced now, with the terms and accounts that the chain would accept.

use cpmm::{FixedAmount, ids, instruction::SwapAccounts, minimum_out};
use serde_json::{Map, json};
use sluice_market::QuoteCommitment;
use sluice_transaction::{
    Associated, AssociatedAccounts, Route, SwapTerms,
    compute_table::TokenShape,
    compute_units::{ExchangeUnits, SwapShape},
};
use solana_pubkey::Pubkey;

use super::request::{Swap, WantedBound};
use crate::{
    error::{ApiError, SwapRefusal},
    extract::Digits,
    pricing::{
        PlatformShare, Priced, PricedHop, QUOTE_LIFETIME_SLOTS, SwapMode, Unpriced, best_route,
    },
    routes::quote::{Amounts, Bound, Quote},
    rpc::SwapAddresses,
    state::AppState,
};

/// What of a token account decides its creation.
#[derive(Clone, Copy, Debug)]
pub struct TokenAccountShape {
    /// The token.
    pub token: TokenShape,
    /// Bump of the associated address; of no meaning where another account was named.
    pub bump: u8,
}

/// A swap that the chain would execute now.
pub struct ExecutableSwap {
    /// The quote that is enforced.
    pub quote: Quote,
    /// For an exact output, what the pool takes now.
    pub expected_in: Option<u64>,
    /// What a platform gets of what is paid, if it asked for something.
    pub platform_share: Option<PlatformShare>,
    /// The platform's account of the input token, and its bump; none where nothing is paid to it.
    pub platform_account: Option<Associated>,
    /// Decimal places of the input token.
    pub input_decimals: u8,
    /// Unix time from which all its pools swap, seconds.
    pub open_time: u64,
    /// The slot that the market knew to be confirmed: a node of an older state might miss what the user has just done.
    pub confirmed_slot: u64,
    /// What is signed for.
    pub terms: SwapTerms,
    /// Accounts of the swap.
    pub route: Route,
    /// The user's account of the input mint.
    pub input: TokenAccountShape,
    /// The user's account between two pools.
    pub middle: Option<TokenAccountShape>,
    /// The account that receives.
    pub output: TokenAccountShape,
    /// What the exchange's part of it may use.
    pub units: ExchangeUnits,
    /// The wallet that the guard is to find as the owner of that account, if it is not the user's.
    pub receiver: Option<Pubkey>,
}

impl ExecutableSwap {
    /// The accounts that decide its transaction.
    #[must_use]
    pub fn addresses(&self, swap: &Swap) -> SwapAddresses {
        let (first, last) = (self.route.first(), self.route.last());
        SwapAddresses {
            user: swap.user,
            input: first.input_token_account,
            output: last.output_token_account,
            middle: self.middle.map(|_| last.input_token_account),
            fee_payer: swap.fee_payer,
            receiver: swap.receiver,
            least_slot: self.confirmed_slot,
            nonce: swap.nonce_account,
            platform: self.platform_account.and_then(|account| {
                let wallet = swap.platform?.wallet;
                Some((wallet, account.address))
            }),
        }
    }
}

/// Prices the swap now and refuses it when the chain would: the caller pays for a failed transaction. `apart` where it is
/// for a transaction of the caller's own: it is signed for as the caller likes, so the user may be a program's address, and
/// SOL for another wallet arrives in that wallet's account instead of one of the user's, to be unwrapped from there.
///
/// # Errors
/// [`ApiError::MarketNotReady`]; as [`best_route`]; [`SwapRefusal::PoolMintMismatch`]; [`SwapRefusal::QuoteStale`] when
/// the pool pays less than the minimum, takes more than the maximum, or the quote is past its slot;
/// [`SwapRefusal::WalletOffCurve`].
pub fn executable_swap(
    state: &AppState,
    swap: &Swap,
    apart: bool,
) -> Result<ExecutableSwap, ApiError> {
    let priced = best_route(state.market(), &swap.ask).map_err(|unpriced| match unpriced {
        Unpriced::MintMismatch { pools } => SwapRefusal::PoolMintMismatch {
            pool: pools.to_string(),
        }
        .into(),
        Unpriced::Refused(refusal) => refusal,
    })?;
    let (bound, expiry_slot) = enforced_bound(&priced, swap)?;
    if bound == Bound::MinimumOut(0) {
        // The guard refuses a minimum of zero, which would guard nothing.
        return Err(ApiError::AmountTooSmall);
    }
    let quote = Quote::new(&priced, bound);
    let terms = SwapTerms {
        amount_in: priced.rest(quote.amount_in),
        minimum_out: quote.minimum_out,
        expiry_slot,
    };
    let platform_share = priced.platform_fee(quote.amount_in);
    let confirmed = state.market().view(QuoteCommitment::Confirmed);
    let confirmed_slot = confirmed.map_err(ApiError::from)?.slot().get();
    let receiver = swap.receiver.filter(|_| apart || !unwraps_sol(swap));
    let side = |wallet: Owner, hop: &PricedHop, side: Side| {
        token_account(state.associated(), wallet, hop, side)
    };
    let user = Owner::user(swap.user, apart);
    let named = |account: Pubkey, hop: &PricedHop, side: Side| {
        let token = shape(hop, side);
        (
            account,
            TokenAccountShape {
                token,
                bump: u8::MAX,
            },
        )
    };
    let (input_account, input) = match swap.source {
        Some(source) => named(source, &priced.first, Side::Input),
        None => side(user, &priced.first, Side::Input)?,
    };
    let middle = match &priced.second {
        Some(second) => Some(side(user, second, Side::Input)?),
        None => None,
    };
    let owner = receiver.map_or(user, Owner::receiver);
    let (output_account, output) = match swap.destination {
        Some(destination) => named(destination, priced.last(), Side::Output),
        None => side(owner, priced.last(), Side::Output)?,
    };
    Ok(ExecutableSwap {
        quote,
        platform_account: platform_account(state, swap, &priced, platform_share),
        platform_share,
        confirmed_slot,
        open_time: open_time(&priced),
        input_decimals: priced.first.input_token().decimals,
        expected_in: (priced.mode() == SwapMode::ExactOut).then(|| priced.amount_in().get()),
        terms,
        route: route(
            &priced,
            swap.user,
            input_account,
            middle.map(|(account, _)| account),
            output_account,
        ),
        input,
        middle: middle.map(|(_, shape)| shape),
        output,
        units: state.calibrator().units(&priced),
        receiver,
    })
}

fn open_time(priced: &Priced) -> u64 {
    let times = priced.hops().map(|hop| hop.view.snapshot.pool.open_time);
    times.max().unwrap_or(0)
}

/// Where a platform gets its share as tokens; none where there is nothing to get.
fn platform_account(
    state: &AppState,
    swap: &Swap,
    priced: &Priced,
    share: Option<PlatformShare>,
) -> Option<Associated> {
    let platform = swap
        .platform
        .filter(|_| share.is_some_and(|share| share.amount > 0))?;
    let hop = &priced.first;
    let programs = &hop.view.snapshot.pool.token_programs;
    let program = hop.direction.input(programs);
    let associated = state.associated();
    Some(associated.of_any(&platform.wallet, &hop.input_mint(), &program))
}

/// Whether SOL of this swap is wrapped in its transaction.
#[must_use]
pub fn wraps_sol(swap: &Swap) -> bool {
    swap.wrap_and_unwrap_sol && swap.ask.input_mint == ids::WRAPPED_SOL && swap.source.is_none()
}

/// Whether SOL of this swap is unwrapped in its transaction.
#[must_use]
pub fn unwraps_sol(swap: &Swap) -> bool {
    swap.wrap_and_unwrap_sol
        && swap.ask.output_mint == ids::WRAPPED_SOL
        && swap.destination.is_none()
}

/// What is enforced beside the fixed amount, and the slot up to which.
fn enforced_bound(priced: &Priced, swap: &Swap) -> Result<(Bound, Option<u64>), SwapRefusal> {
    let slot = priced.slot();
    let expired = swap.expiry_slot.is_some_and(|expiry| slot.get() > expiry);
    let wanted = Wanted::of(priced, swap.bound);
    if swap.refresh {
        let bound = if wanted.moved {
            wanted.renewed
        } else {
            wanted.given
        };
        let expiry_slot = if expired {
            Some(slot.plus(QUOTE_LIFETIME_SLOTS).get())
        } else {
            swap.expiry_slot
        };
        return Ok((bound, expiry_slot));
    }
    let stale = |reason| SwapRefusal::QuoteStale {
        reason,
        fresh: fresh(priced, wanted.renewed),
    };
    match (swap.expiry_slot, wanted.broken) {
        (Some(expiry), _) if expired => Err(stale(format!(
            "the slot is {slot}, past the quote's expirySlot {expiry}"
        ))),
        (_, Some(reason)) => Err(stale(reason)),
        (expiry_slot, None) => Ok((wanted.given, expiry_slot)),
    }
}

/// What the caller wants to be enforced, held against what the pools pay now.
struct Wanted {
    /// As it was given.
    given: Bound,
    /// With the same slippage for what the pools pay now.
    renewed: Bound,
    /// Whether the pools pay something else than was quoted.
    moved: bool,
    /// Why what was given cannot be enforced.
    broken: Option<String>,
}

impl Wanted {
    fn of(priced: &Priced, bound: WantedBound) -> Self {
        let (received, amount_in) = (priced.received().get(), priced.amount_in().get());
        match bound {
            WantedBound::Slippage(slippage) => {
                let bound = match priced.mode() {
                    SwapMode::ExactIn => {
                        Bound::MinimumOut(minimum_out(priced.received(), slippage).get())
                    }
                    SwapMode::ExactOut => Bound::with_slippage(priced, slippage),
                };
                Self {
                    given: bound,
                    renewed: bound,
                    moved: false,
                    broken: None,
                }
            }
            WantedBound::Minimum {
                minimum_out,
                out_amount,
            } => Self {
                given: Bound::MinimumOut(minimum_out),
                renewed: Bound::MinimumOut(scaled(received, minimum_out, out_amount)),
                moved: out_amount != Some(received),
                broken: (received < minimum_out).then(|| {
                    format!("the pool now pays {received}, less than minimumOut {minimum_out}")
                }),
            },
            WantedBound::Maximum {
                amount_in: most,
                slippage,
            } => Self {
                given: Bound::MaximumIn(most),
                renewed: Bound::with_slippage(priced, slippage),
                // What was quoted is not known, and while it suffices, the maximum need not change.
                moved: amount_in > priced.rest(most),
                broken: too_dear(priced, amount_in, most),
            },
        }
    }
}

/// Why the most that the user pays is short of what the pool takes.
fn too_dear(priced: &Priced, amount_in: u64, most: u64) -> Option<String> {
    let rest = priced.rest(most);
    let left = if rest == most {
        String::new()
    } else {
        format!(" less the platform's fee, {rest}")
    };
    (amount_in > rest)
        .then(|| format!("the pool now takes {amount_in}, more than amountIn {most}{left}"))
}

/// The minimum with the same slippage as a quote of `quoted` and `minimum`, for what is received now; rounded down. A
/// quote that does not say what it expected allowed none.
fn scaled(received: u64, minimum: u64, quoted: Option<u64>) -> u64 {
    let quoted = quoted.unwrap_or(minimum);
    let product = u128::from(received).saturating_mul(u128::from(minimum));
    let scaled = product.checked_div(u128::from(quoted)).unwrap_or(0);
    u64::try_from(scaled).map_or(received, |scaled| scaled.min(received))
}

/// The members of a fresh quote. Nothing when its minimum would be zero, which the guard refuses.
fn fresh(priced: &Priced, bound: Bound) -> Map<String, serde_json::Value> {
    let slot = priced.slot();
    if bound == Bound::MinimumOut(0) {
        return Map::new();
    }
    let mut context = Map::new();
    context.insert("slot".to_owned(), json!(slot.get()));
    let expiry = slot.plus(QUOTE_LIFETIME_SLOTS).get();
    context.insert("expirySlot".to_owned(), json!(expiry));
    if priced.mode() == SwapMode::ExactOut {
        let expected_in = priced.amount_in().get();
        context.insert("expectedIn".to_owned(), json!(expected_in));
        context.insert("expectedInString".to_owned(), json!(Digits(expected_in)));
    }
    let quote = Quote::new(priced, bound);
    if let Some(share) = priced.platform_fee(quote.amount_in) {
        let amounts = [
            ("platformFee", share.amount),
            ("platformFeeReceived", share.received),
        ];
        for (name, amount) in amounts {
            context.insert(name.to_owned(), json!(amount));
            context.insert(format!("{name}String"), json!(Digits(amount)));
        }
    }
    context.insert("amounts".to_owned(), json!(Amounts::from(&quote)));
    let mut members = Map::new();
    members.insert("quote".to_owned(), json!(quote));
    members.insert("context".to_owned(), context.into());
    members
}

/// One side of a hop.
#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

/// The wallet that owns a token account, and the field that names it.
#[derive(Clone, Copy)]
struct Owner {
    wallet: Pubkey,
    field: &'static str,
    /// Whether it may be a program's address.
    any: bool,
}

impl Owner {
    const fn user(wallet: Pubkey, any: bool) -> Self {
        let field = "userPublicKey";
        Self { wallet, field, any }
    }

    const fn receiver(wallet: Pubkey) -> Self {
        let field = "receiver";
        let any = false;
        Self { wallet, field, any }
    }
}

/// A wallet's associated account of the mint on one side of a hop.
fn token_account(
    known: &AssociatedAccounts,
    owner: Owner,
    hop: &PricedHop,
    side: Side,
) -> Result<(Pubkey, TokenAccountShape), SwapRefusal> {
    let programs = &hop.view.snapshot.pool.token_programs;
    let (mint, program) = match side {
        Side::Input => (hop.input_mint(), hop.direction.input(programs)),
        Side::Output => (hop.output_mint(), hop.direction.output(programs)),
    };
    let found = if owner.any {
        Some(known.of_any(&owner.wallet, &mint, &program))
    } else {
        known.of(&owner.wallet, &mint, &program)
    };
    let Associated { address, bump } =
        found.ok_or(SwapRefusal::WalletOffCurve { field: owner.field })?;
    let token = shape(hop, side);
    Ok((address, TokenAccountShape { token, bump }))
}

fn shape(hop: &PricedHop, side: Side) -> TokenShape {
    // Tokens look the same to both instructions.
    let shape = SwapShape::of(&hop.view.snapshot, hop.direction, FixedAmount::In);
    match side {
        Side::Input => shape.input,
        Side::Output => shape.output,
    }
}

/// The accounts of the swap, its token accounts included.
fn route(
    priced: &Priced,
    user: Pubkey,
    input: Pubkey,
    middle: Option<Pubkey>,
    output: Pubkey,
) -> Route {
    let hop = |hop: &PricedHop, input, output| {
        SwapAccounts::of_pool(
            priced.exchange,
            hop.view.address,
            &hop.view.snapshot.pool,
            hop.direction,
            user,
            input,
            output,
        )
    };
    match (&priced.second, middle) {
        (Some(second), Some(middle)) => Route::two_hops(
            hop(&priced.first, input, middle),
            hop(second, middle, output),
        ),
        _ => {
            let accounts = hop(&priced.first, input, output);
            match priced.mode() {
                SwapMode::ExactIn => Route::ExactIn(accounts),
                SwapMode::ExactOut => Route::ExactOut(accounts),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_minimum_keeps_the_slippage() {
        assert_eq!(scaled(2_000, 995, Some(1_000)), 1_990);
        assert_eq!(scaled(500, 995, Some(1_000)), 497);
        assert_eq!(scaled(u64::MAX, u64::MAX, Some(u64::MAX)), u64::MAX);
        assert_eq!(scaled(u64::MAX, 5, Some(5)), u64::MAX);
        assert_eq!(scaled(7, 100, None), 7);
        assert_eq!(scaled(0, 100, Some(200)), 0);
    }
}
