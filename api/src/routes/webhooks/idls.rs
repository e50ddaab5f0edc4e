//! `/api/idls/{programId}`: the caller's own IDL of a program, by which its events are decoded for the caller's webhooks.

use axum::{
    Json,
    extract::{Path, Request, State as StateOf},
    http::StatusCode,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sluice_program_idl::{Schema, SchemaError};
use sluice_store::{MAX_IDL_BYTES, StoreError, Timestamp, UploadedIdl};
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use super::{
    parts::Refusals,
    problem::{missing, store_error},
    state::State,
};
use crate::{
    auth::Caller,
    error::ApiError,
    extract::{Address, parse_pubkey, read_json},
};

/// Most bytes of a body that are read: one with an IDL that is somewhat too long is still refused by the name of its field.
const MAX_BODY_BYTES: usize = 2 * MAX_IDL_BYTES;

/// An IDL to be uploaded.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewIdl)]
struct IdlBody {
    /// The IDL as Anchor 0.30 or later writes it, at most 1 MiB; its `address` is the program's.
    #[schema(value_type = Object)]
    idl: Box<RawValue>,
}

/// The IDL by which a program's events are decoded.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Idl)]
pub(super) struct IdlView {
    program_id: Address,
    source: IdlSource,
    /// When it was uploaded, or read from the chain: ISO 8601, UTC.
    #[schema(format = DateTime)]
    updated: String,
    /// Names of the events that are decoded by it.
    events: Vec<String>,
    /// Events that are not, and why.
    undecoded: Vec<UndecodedEvent>,
    #[schema(value_type = Object)]
    idl: Box<RawValue>,
}

/// Where an IDL comes from.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum IdlSource {
    /// The caller uploaded it.
    Uploaded,
    /// The program publishes it.
    Chain,
}

/// An event that is not decoded.
#[derive(Debug, Serialize, ToSchema)]
struct UndecodedEvent {
    name: String,
    reason: &'static str,
}

/// Uploads the IDL of a program, in the place of the one before
///
/// From a second later on it decodes the program's events for the caller's webhooks, whatever the program itself publishes, and
/// `filters.eventNames` go by it. Nobody else sees it. All IDLs of a key have at most 8 MiB together.
#[utoipa::path(
    put,
    path = "/api/idls/{programId}",
    tag = "webhooks",
    operation_id = "putIdl",
    params(("programId" = Address, Path, description = "The program's address.")),
    request_body = IdlBody,
    responses(
        (status = 200, description = "The IDL.", body = IdlView),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn put(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(program): Path<String>,
    request: Request,
) -> Result<Json<IdlView>, ApiError> {
    let program = parse_pubkey("programId", &program)?;
    let IdlBody { idl } = read_json(request, MAX_BODY_BYTES).await?;
    if idl.get().len() > MAX_IDL_BYTES {
        let fault = format!(
            "has {} bytes, but at most {MAX_IDL_BYTES} are allowed; leave out instructions and accounts, which are not read",
            idl.get().len()
        );
        return Err(ApiError::invalid("idl", fault));
    }
    let schema = schema(&program, idl.get())?;
    let uploaded = UploadedIdl {
        text: idl.get().to_owned(),
        uploaded: Timestamp::from(state.clock.now()),
    };
    let stored = state.store.upload_idl(&access, &program, &uploaded).await;
    stored.map_err(idl_error)?;
    let (source, updated) = (IdlSource::Uploaded, uploaded.uploaded);
    Ok(Json(view(&program, (source, updated), &schema, idl)))
}

/// The IDL by which a program's events are decoded for the caller's webhooks
///
/// The caller's own; where there is none, the one that the program publishes, once a webhook on its events has had it read. The guard's
/// and the exchange's are built in, and not shown.
#[utoipa::path(
    get,
    path = "/api/idls/{programId}",
    tag = "webhooks",
    operation_id = "getIdl",
    params(("programId" = Address, Path, description = "The program's address.")),
    responses(
        (status = 200, description = "The IDL.", body = IdlView),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn get(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(text): Path<String>,
) -> Result<Json<IdlView>, ApiError> {
    let program = parse_pubkey("programId", &text)?;
    let own = state.store.uploaded_idl(&access, &program).await;
    let (text, origin) = match own.map_err(store_error)? {
        Some(own) => (own.text, (IdlSource::Uploaded, own.uploaded)),
        None => {
            let chain = state.store.chain_idl(&program).await.map_err(store_error)?;
            let found = chain.and_then(|chain| Some((chain.text?, chain.read)));
            let (idl, read) = found.ok_or_else(|| missing("IDL of the program", &text))?;
            (idl, (IdlSource::Chain, read))
        }
    };
    let (_, schema) = Schema::parse(&text).map_err(|error| ApiError::Internal(error.into()))?;
    let idl = RawValue::from_string(text).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(Json(view(&program, origin, &schema, idl)))
}

/// Removes the caller's own IDL of a program
#[utoipa::path(
    delete,
    path = "/api/idls/{programId}",
    tag = "webhooks",
    operation_id = "deleteIdl",
    params(("programId" = Address, Path, description = "The program's address.")),
    responses(
        (status = 204, description = "It is gone: events are decoded by what the program publishes, if it does."),
        Refusals,
    ),
    security((), ("apiKey" = [])),
)]
pub(super) async fn delete(
    StateOf(state): StateOf<State>,
    Caller(access): Caller,
    Path(text): Path<String>,
) -> Result<StatusCode, ApiError> {
    let program = parse_pubkey("programId", &text)?;
    let removed = state.store.remove_idl(&access, &program).await;
    if removed.map_err(store_error)? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(missing("uploaded IDL of the program", &text))
}

/// The events that an IDL of this program describes.
fn schema(program: &Pubkey, text: &str) -> Result<Schema, ApiError> {
    let parsed = Schema::parse(text).map_err(|error| {
        let field = match &error {
            SchemaError::Format(_) => "idl",
            SchemaError::Address(_) => "idl.address",
            SchemaError::NoDiscriminator(_) | SchemaError::TooMany { .. } => "idl.events",
            SchemaError::LongName { .. } => "idl.types",
        };
        ApiError::invalid(field, format!("is not understood: {error}"))
    });
    let (described, schema) = parsed?;
    if described != *program {
        let fault = format!("is {described}, but must be the program of the path, {program}");
        return Err(ApiError::invalid("idl.address", fault));
    }
    Ok(schema)
}

fn idl_error(error: StoreError) -> ApiError {
    match error {
        StoreError::IdlQuota { bytes, limit } => {
            let fault = format!(
                "would make {bytes} bytes of IDLs, but at most {limit} are kept for a key; delete others, or leave out instructions \
                 and accounts, which are not read"
            );
            ApiError::invalid("idl", fault)
        }
        other => store_error(other),
    }
}

fn view(
    program: &Pubkey,
    (source, updated): (IdlSource, Timestamp),
    schema: &Schema,
    idl: Box<RawValue>,
) -> IdlView {
    let undecoded = schema.unsupported().map(|(name, reason)| UndecodedEvent {
        name: name.to_owned(),
        reason,
    });
    IdlView {
        program_id: Address::new(program),
        source,
        updated: updated.to_string(),
        events: schema.names().map(str::to_owned).collect(),
        undecoded: undecoded.collect(),
        idl,
    }
}
