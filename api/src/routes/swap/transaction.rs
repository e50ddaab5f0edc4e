//! `POST /v1/swap/transaction`: builds a transaction that lacks only its signatures.

use axum::{extract::State, http::HeaderMap, response::Response};
use base64::{Engine, prelude::BASE64_STANDARD};
use sluice_transaction::{
    DurableNonce, NonceFault, PlatformFee, TokenSide, TransactionPlan, TransactionVersion,
    UnsignedTransaction, compute_table::TokenKind, size::Remedy,
};
use solana_hash::Hash;

use super::{
    executable::{ExecutableSwap, TokenAccountShape, executable_swap, unwraps_sol, wraps_sol},
    holdings::{Holdings, wallet_fault},
    request::{BODY_LIMIT, Swap, SwapRequest, WrapSol},
    response::TransactionResponse,
    simulated::simulated,
};
use crate::{
    answer,
    error::{ApiError, ProblemBody, SwapRefusal},
    extract::StrictJson,
    idempotency,
    rpc::{LatestBlockhash, SwapAccountsRead},
    state::AppState,
};

/// A ready-to-sign transaction
///
/// A quote with a pool is enforced as it stands; without a pool one is generated, for the best pool of the two mints, and is in
/// the answer. Its `minimumOut` is enforced on chain as it stands; the priority fee never exceeds `priorityFeeLamports`;
/// token accounts that are absent are created; a wrapped SOL account that was there before is never closed, and what it
/// holds is used for the swap but never unwrapped. Between two pools the user's token account is used, untouched when it is
/// there, created and closed when not. SOL for another wallet arrives native, by the token program's `unwrapLamports`, and
/// the rent of the account it was in goes back to the fee payer; where the service is set for a cluster without that
/// instruction, the account is closed to that wallet, which gets the rent too (`solOutput`, `costs.rent`). When the pool moves between this answer and the transaction's
/// execution, so far that less than `minimumOut` would arrive, the transaction fails with the guard's error 6000; an exact
/// output that would take more than `amountIn` fails with the exchange's error 6005. Either costs no more than the fee: ask
/// for a fresh quote then.
#[utoipa::path(
    post,
    path = "/v1/swap/transaction",
    tag = "swap",
    operation_id = "buildTransaction",
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, description = "Names the swap across its repetitions: for two minutes the same body gets the same answer, byte for byte, and another body of the same wallet is idempotency_key_reused."),
    ),
    request_body = SwapRequest,
    responses(
        (status = 200, description = "The transaction, and what it does and costs.", body = TransactionResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn transaction(
    State(state): State<AppState>,
    headers: HeaderMap,
    StrictJson(request): StrictJson<SwapRequest, BODY_LIMIT>,
) -> Result<Response, ApiError> {
    let swap = request.check(&state.rpc().exchange().program)?;
    let build = async { build(&state, swap).await?.text() };
    let text = match idempotency::key(&headers)? {
        None => build.await?,
        Some(key) => {
            // Two bodies ask for the same where everything that was read of them is the same.
            let asked = format!("{swap:?}");
            let name = (key, swap.user);
            state.answers().answer(name, asked, build).await?
        }
    };
    Ok(answer::json_text(text))
}

async fn build(state: &AppState, swap: Swap) -> Result<TransactionResponse, ApiError> {
    let Built {
        latest,
        executable,
        plan,
        unsigned,
    } = built(state, &swap, None).await?;
    let simulation = if swap.simulate {
        let slot = executable.confirmed_slot;
        Some(simulated(state.rpc(), &swap, &unsigned, slot).await?)
    } else {
        None
    };
    Ok(TransactionResponse::new(
        BASE64_STANDARD.encode(&unsigned.bytes),
        latest,
        executable,
        unsigned,
        &plan,
        simulation,
    ))
}

/// A transaction with all that decided it.
pub(super) struct Built {
    pub(super) latest: LatestBlockhash,
    pub(super) executable: ExecutableSwap,
    pub(super) plan: TransactionPlan,
    pub(super) unsigned: UnsignedTransaction,
}

/// The transaction of a swap, as the chain is now; with this blockhash, or else a recent one.
///
/// # Errors
/// Why the chain would refuse it, or why that cannot be known.
pub(super) async fn built(
    state: &AppState,
    swap: &Swap,
    blockhash: Option<Hash>,
) -> Result<Built, ApiError> {
    let executable = executable_swap(state, swap, false)?;
    let (latest, found, ()) = tokio::try_join!(
        state.rpc().latest_blockhash(),
        state.rpc().swap_accounts(executable.addresses(swap)),
        check_version(state, swap.version),
    )?;
    let holdings = Holdings::check(swap, &executable, &found)?;
    check_wallets(state, swap, &executable, &found, unwraps_sol(swap))?;
    let plan = TransactionPlan {
        nonce: durable_nonce(swap, &found)?,
        ..transaction_plan(state, swap, &executable, &holdings, &found)
    };
    let blockhash = blockhash.unwrap_or(latest.blockhash);
    let unsigned = plan
        .transaction(blockhash)
        .map_err(|error| ApiError::Internal(error.into()))?;
    check_size(state, &plan, &unsigned, blockhash).await?;
    if swap.check_balance {
        holdings.require_balance(swap, &executable, &unsigned.costs, &found)?;
    }
    Ok(Built {
        latest,
        executable,
        plan,
        unsigned,
    })
}

/// The nonce that was asked for, as it is now.
fn durable_nonce(
    swap: &Swap,
    found: &SwapAccountsRead,
) -> Result<Option<DurableNonce>, SwapRefusal> {
    let Some(account) = swap.nonce_account else {
        return Ok(None);
    };
    let signers = [swap.user, swap.fee_payer.unwrap_or(swap.user)];
    let read = match &found.nonce {
        None => Err(NonceFault::NotOne),
        Some(held) => DurableNonce::read(account, &held.program, &held.data, signers),
    };
    let unusable = |fault: NonceFault| SwapRefusal::NonceAccountUnusable {
        account: account.to_string(),
        fault: fault.to_string(),
    };
    read.map(Some).map_err(unusable)
}

/// Refuses a receiver or a platform's wallet that could not take what is for it.
pub(super) fn check_wallets(
    state: &AppState,
    swap: &Swap,
    executable: &ExecutableSwap,
    found: &SwapAccountsRead,
    unwraps_sol: bool,
) -> Result<(), SwapRefusal> {
    if swap.receiver.is_some() {
        let unwrapped = unwraps_sol.then(|| {
            let rent = if state.unwraps_lamports() {
                0
            } else {
                found.rent.exempt(TokenKind::Spl.account_len())
            };
            executable.terms.minimum_out.saturating_add(rent)
        });
        if let Some(fault) = wallet_fault(found.receiver.as_ref(), unwrapped, found.rent) {
            return Err(SwapRefusal::ReceiverUnusable { fault });
        }
    }
    let share = executable.platform_share.map_or(0, |share| share.amount);
    if executable.platform_account.is_some() {
        let native = wraps_sol(swap).then_some(share);
        if let Some(fault) = wallet_fault(found.platform_wallet.as_ref(), native, found.rent) {
            return Err(SwapRefusal::FeeWalletUnusable { fault });
        }
    }
    Ok(())
}

async fn check_version(state: &AppState, version: TransactionVersion) -> Result<(), ApiError> {
    if version == TransactionVersion::V1 && !state.rpc().takes_version_1().await? {
        return Err(SwapRefusal::VersionUnsupported.into());
    }
    Ok(())
}

async fn check_size(
    state: &AppState,
    plan: &TransactionPlan,
    unsigned: &UnsignedTransaction,
    blockhash: Hash,
) -> Result<(), SwapRefusal> {
    let size = unsigned.bytes.len();
    let limit = plan.version.size_limit();
    let headroom = plan.size_headroom;
    if size.saturating_add(headroom) <= limit {
        return Ok(());
    }
    let mut remedies = plan.remedies(blockhash);
    // The refusal is as true without a node that answers.
    if remedies.contains(&Remedy::WithVersion1)
        && !state.rpc().takes_version_1().await.unwrap_or(false)
    {
        remedies.retain(|remedy| *remedy != Remedy::WithVersion1);
    }
    Err(SwapRefusal::TransactionTooLarge {
        size,
        limit,
        headroom,
        remedies,
    })
}

pub(super) fn transaction_plan(
    state: &AppState,
    swap: &Swap,
    executable: &ExecutableSwap,
    holdings: &Holdings,
    found: &SwapAccountsRead,
) -> TransactionPlan {
    let side = |shape: TokenAccountShape, account| TokenSide {
        token: shape.token,
        bump: shape.bump,
        account,
    };
    TransactionPlan {
        route: executable.route.clone(),
        terms: executable.terms,
        input: side(executable.input, holdings.input),
        middle: executable.middle.map(|shape| side(shape, holdings.middle)),
        output: side(executable.output, holdings.output),
        fee_payer: swap.fee_payer.unwrap_or(swap.user),
        receiver: swap.receiver,
        platform_fee: platform_fee(swap, executable, holdings),
        nonce: None,
        apart: false,
        named_source: swap.source.is_some(),
        named_destination: swap.destination.is_some(),
        wrap_and_unwrap_sol: swap.wrap_and_unwrap_sol,
        wraps_all: swap.wrap_sol == WrapSol::Always,
        priority_fee: swap.priority_fee,
        unit_headroom: swap.unit_headroom,
        size_headroom: swap.size_headroom,
        version: swap.version,
        lookup_table: state.rpc().lookup_table(),
        rent: found.rent,
        exchange_units: executable.units,
        unwraps_lamports: state.unwraps_lamports(),
    }
}

fn platform_fee(
    swap: &Swap,
    executable: &ExecutableSwap,
    holdings: &Holdings,
) -> Option<PlatformFee> {
    let account = executable.platform_account?;
    Some(PlatformFee {
        amount: executable.platform_share?.amount,
        wallet: swap.platform?.wallet,
        account: account.address,
        bump: account.bump,
        is_there: holdings.platform_account,
        decimals: executable.input_decimals,
    })
}
