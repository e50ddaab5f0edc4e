//! `GET /v1/mints/{mint}`: a mint that is traded, as of the newest slot.

use axum::{
    Json,
    extract::{Path, RawQuery, State},
};
use cpmm::{Mint, TransferFee};
use serde::Serialize;
use sluice_market::QuoteCommitment;
use utoipa::ToSchema;

use crate::{
    error::{ApiError, ProblemBody},
    extract::{Address, Digits, Extensions, QueryMap, parse_pubkey},
    state::AppState,
};

/// A mint, as of a slot. Amounts are smallest units.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MintResponse {
    /// Slot whose end this is.
    slot: u64,
    mint: Address,
    token_program: Address,
    /// Decimal places of one whole token.
    decimals: u8,
    /// Tokens in existence, as last seen: the stream shows mints of Token-2022, and one of SPL Token is read once. Null until then.
    #[schema(required)]
    supply: Option<u64>,
    #[schema(required)]
    supply_string: Option<Digits>,
    extensions: Extensions,
    /// What the mint withholds from each transfer in this epoch; null where it takes nothing.
    #[schema(required)]
    transfer_fee: Option<TransferFeeBody>,
    /// Number of the first extension that keeps it from being traded; null where none does.
    #[schema(required)]
    unsupported_extension: Option<u16>,
    /// Pools that trade it and can be quoted.
    pools: usize,
}

/// What a mint withholds from a transfer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TransferFee)]
struct TransferFeeBody {
    basis_points: u16,
    /// The most that it withholds from one.
    maximum: u64,
    maximum_string: Digits,
}

impl From<&TransferFee> for TransferFeeBody {
    fn from(fee: &TransferFee) -> Self {
        Self {
            basis_points: fee.basis_points,
            maximum: fee.maximum_fee,
            maximum_string: Digits(fee.maximum_fee),
        }
    }
}

/// A mint
///
/// What decides how its token is traded. Only mints of pools are known.
#[utoipa::path(
    get,
    path = "/v1/mints/{mint}",
    tag = "pools",
    operation_id = "getMint",
    params(("mint" = Address, Path, description = "Address of the mint.")),
    responses(
        (status = 200, description = "The mint.", body = MintResponse),
        (status = "4XX", description = "Refused; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
        (status = "5XX", description = "Not possible at the moment; `code` says why.", body = ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn get(
    State(state): State<AppState>,
    Path(mint): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<MintResponse>, ApiError> {
    QueryMap::parse(query.as_deref().unwrap_or_default(), &[])?;
    let address = parse_pubkey("mint", &mint)?;
    let view = state.market().view(QuoteCommitment::Processed)?;
    let mut pools = view.addresses_of(&address);
    let first = pools.next().and_then(|pool| view.pool(&pool));
    let pool = first.ok_or_else(|| ApiError::NotFound {
        what: "pool that trades",
        id: address.to_string(),
    })?;
    let count = pools.count().saturating_add(1);
    let (snapshot, epoch) = (&pool.snapshot, pool.clock.epoch);
    let is_first = snapshot.pool.mints.token_0 == address;
    let (mint, token_program): (&Mint, _) = if is_first {
        (
            &snapshot.mints.token_0,
            snapshot.pool.token_programs.token_0,
        )
    } else {
        (
            &snapshot.mints.token_1,
            snapshot.pool.token_programs.token_1,
        )
    };
    let fee = mint.transfer_fee.as_ref().map(|config| config.at(epoch));
    Ok(Json(MintResponse {
        slot: view.slot().get(),
        mint: Address::new(&address),
        token_program: Address::new(&token_program),
        decimals: mint.decimals,
        supply: mint.supply,
        supply_string: mint.supply.map(Digits),
        extensions: Extensions::of(mint),
        transfer_fee: fee.map(TransferFeeBody::from),
        unsupported_extension: mint.unsupported_extension,
        pools: count,
    }))
}
