//! Filters as answers show them: the addresses, and those conditions that are set.

use serde::Serialize;
use sluice_store::{Conditions, Filters, TransactionOutcome};
use solana_pubkey::Pubkey;
use utoipa::ToSchema;

use super::schema;
use crate::extract::Address;

/// What the events are about, and what else they must be. A condition that is absent is none.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookFilters)]
pub(super) struct FiltersView {
    #[schema(value_type = Vec<Address>)]
    accounts: Vec<String>,
    #[schema(value_type = Vec<Address>)]
    programs: Vec<String>,
    /// Owners of token accounts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Address>, required = false)]
    token_owners: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = schema::outcome)]
    outcome: Option<&'static str>,
    /// False where votes do not match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    votes: Option<bool>,
    /// Addresses that a transaction must mention, each of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Address>, required = false)]
    accounts_required: Vec<String>,
    /// Addresses of which a transaction must mention none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Address>, required = false)]
    accounts_excluded: Vec<String>,
    /// Instructions of which a transaction must execute one, at any depth.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    instructions: Vec<InstructionView>,
    /// Names of which a program event must have one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    event_names: Vec<String>,
    /// What an account's data must hold, all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    memcmp: Vec<MemcmpView>,
    /// How many bytes of data an account must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, required = false)]
    data_size: Option<u64>,
}

/// An instruction by its program and the beginning of its data.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookInstruction)]
struct InstructionView {
    #[schema(value_type = Address)]
    program_id: String,
    /// Hexadecimal.
    discriminator: String,
}

/// Bytes that an account's data must have.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookMemcmp)]
struct MemcmpView {
    offset: u64,
    /// Base58.
    bytes: String,
}

impl FiltersView {
    pub(super) fn of(filters: &Filters, conditions: &Conditions) -> Self {
        let texts = |list: &[Pubkey]| list.iter().map(ToString::to_string).collect();
        let instructions = conditions.instructions.iter().map(|one| InstructionView {
            program_id: one.program.to_string(),
            discriminator: hex::encode(&one.discriminator),
        });
        let memcmp = conditions.memcmp.iter().map(|one| MemcmpView {
            offset: one.offset,
            bytes: bs58::encode(&one.bytes).into_string(),
        });
        let outcome = conditions.outcome;
        Self {
            accounts: texts(&filters.accounts),
            programs: texts(&filters.programs),
            token_owners: texts(&filters.token_owners),
            outcome: (outcome != TransactionOutcome::Any).then(|| outcome.name()),
            votes: conditions.without_votes.then_some(false),
            accounts_required: texts(&conditions.accounts_required),
            accounts_excluded: texts(&conditions.accounts_excluded),
            instructions: instructions.collect(),
            event_names: conditions.event_names.clone(),
            memcmp: memcmp.collect(),
            data_size: conditions.data_size,
        }
    }
}
