//! Filters as requests write them: the addresses, and the conditions that events must meet beside, checked one by one.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use sluice_store::{
    Conditions, EventKinds, Filters, InstructionPrefix, Memcmp, TransactionOutcome,
    WebhookDefinition,
};
use utoipa::ToSchema;

use super::{Given, addresses, named, present};
use crate::{
    error::ApiError,
    extract::{Address, parse_pubkey},
    routes::webhooks::{schema, settings::Settings},
};

/// Most addresses that a transaction must or must not mention: each is looked for in every transaction that touches the filters.
const MAX_CONDITION_ADDRESSES: usize = 16;

/// Most instructions and names of events, of which one must be found.
const MAX_ALTERNATIVES: usize = 64;

/// Most bytes by which an instruction begins: longer ones than an Anchor discriminator tell apart a first argument.
const MAX_DISCRIMINATOR_BYTES: usize = 32;

/// Longest name of an event.
const MAX_EVENT_NAME_BYTES: usize = 100;

/// Most comparisons of an account's data, as many as RPC nodes take.
const MAX_MEMCMPS: usize = 4;

/// Most bytes of one comparison, as many as RPC nodes take.
const MAX_MEMCMP_BYTES: usize = 128;

/// Most bytes that an account holds.
const MAX_ACCOUNT_BYTES: u64 = 10 * 1024 * 1024;

/// What the events are about: at least one account, program or owner of token accounts. A list of these that is absent or null stays as it is; in a new
/// definition it is empty. The other members are conditions that an event must meet beside: an absent one stays as it is, null
/// takes it away.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::routes::webhooks) struct FiltersBody {
    #[schema(schema_with = schema::optional_accounts)]
    accounts: Option<Vec<String>>,
    #[schema(schema_with = schema::optional_programs)]
    programs: Option<Vec<String>>,
    /// Wallets and other owners of token accounts: a transaction matches in which a token account of theirs has a balance,
    /// before or after, although it may name that account alone.
    #[schema(schema_with = schema::optional_token_owners)]
    token_owners: Option<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = schema::optional_outcome)]
    outcome: Given<String>,
    /// Whether votes match; unless given they do.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<bool>, required = false)]
    votes: Given<bool>,
    /// Addresses that a transaction must mention, each of them.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<Address>>, required = false, max_items = 16)]
    accounts_required: Given<Vec<String>>,
    /// Addresses of which a transaction must mention none.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<Address>>, required = false, max_items = 16)]
    accounts_excluded: Given<Vec<String>>,
    /// Instructions of which a transaction must execute one, at any depth.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<InstructionBody>>, required = false, max_items = 64)]
    instructions: Given<Vec<InstructionBody>>,
    /// Names of which a program event must have one, by the IDL of its program.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<String>>, required = false, max_items = 64)]
    event_names: Given<Vec<String>>,
    /// What an account's data must hold, all of it, after the change.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<MemcmpBody>>, required = false, max_items = 4)]
    memcmp: Given<Vec<MemcmpBody>>,
    /// How many bytes of data an account must have after the change.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u64>, required = false, maximum = 10485760)]
    data_size: Given<u64>,
}

/// An instruction by its program and the beginning of its data.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = InstructionCondition)]
struct InstructionBody {
    #[schema(value_type = Address)]
    program_id: String,
    /// The first bytes of its data, 1 to 32, hexadecimal.
    #[schema(pattern = "^([0-9a-fA-F]{2}){1,32}$")]
    discriminator: String,
}

/// Bytes that an account's data must have.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(as = MemcmpCondition)]
struct MemcmpBody {
    /// Where they begin.
    #[schema(maximum = 10485760)]
    offset: u64,
    /// The bytes, 1 to 128.
    bytes: String,
    /// How they are written: `base58`, which it is unless given, or `base64`.
    #[schema(schema_with = schema::optional_encoding)]
    encoding: Option<String>,
}

impl FiltersBody {
    /// Lays what is given over the filters and conditions of `definition`.
    pub(super) fn over(
        self,
        definition: &mut WebhookDefinition,
        settings: &Settings,
    ) -> Result<(), ApiError> {
        let Filters {
            accounts,
            programs,
            token_owners,
        } = &mut definition.filters;
        if let Some(texts) = &self.accounts {
            *accounts = addresses("filters.accounts", texts, settings.addresses.accounts)?;
        }
        if let Some(texts) = &self.programs {
            *programs = addresses("filters.programs", texts, settings.addresses.programs)?;
        }
        if let Some(texts) = &self.token_owners {
            let limit = settings.addresses.token_owners;
            *token_owners = addresses("filters.tokenOwners", texts, limit)?;
        }
        let conditions = &mut definition.conditions;
        self.over_transactions(conditions)?;
        if let Some(given) = self.event_names {
            conditions.event_names = event_names(given.unwrap_or_default())?;
        }
        if let Some(given) = self.memcmp {
            conditions.memcmp = memcmps(&given.unwrap_or_default())?;
        }
        if let Some(size) = self.data_size {
            let size = size.map(|size| within_account("filters.dataSize", size));
            conditions.data_size = size.transpose()?;
        }
        Ok(())
    }

    fn over_transactions(&self, conditions: &mut Conditions) -> Result<(), ApiError> {
        const ALL: [TransactionOutcome; 3] = TransactionOutcome::ALL;
        let few = |field, given: &Option<Vec<String>>| {
            let texts = given.as_deref().unwrap_or_default();
            addresses(field, texts, MAX_CONDITION_ADDRESSES)
        };
        if let Some(name) = &self.outcome {
            let parse = |name: &String| named("filters.outcome", name, &ALL, |each| each.name());
            conditions.outcome = name.as_ref().map(parse).transpose()?.unwrap_or_default();
        }
        if let Some(votes) = self.votes {
            conditions.without_votes = votes == Some(false);
        }
        if let Some(given) = &self.accounts_required {
            conditions.accounts_required = few("filters.accountsRequired", given)?;
        }
        if let Some(given) = &self.accounts_excluded {
            conditions.accounts_excluded = few("filters.accountsExcluded", given)?;
        }
        if let Some(given) = &self.instructions {
            conditions.instructions = instructions(given.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}

fn at_most(field: &str, count: usize, most: usize) -> Result<(), ApiError> {
    if count <= most {
        return Ok(());
    }
    let fault = format!("holds {count}, but at most {most} are allowed; use several webhooks");
    Err(ApiError::invalid(field, fault))
}

fn instructions(given: &[InstructionBody]) -> Result<Vec<InstructionPrefix>, ApiError> {
    at_most("filters.instructions", given.len(), MAX_ALTERNATIVES)?;
    let instruction = |(index, body): (usize, &InstructionBody)| {
        let field = |member| format!("filters.instructions[{index}].{member}");
        let bytes = hex::decode(&body.discriminator).ok();
        let fits = |bytes: &Vec<u8>| (1..=MAX_DISCRIMINATOR_BYTES).contains(&bytes.len());
        let discriminator = bytes.filter(fits).ok_or_else(|| {
            let rule = format!("must be 1 to {MAX_DISCRIMINATOR_BYTES} bytes in hexadecimal");
            ApiError::invalid(field("discriminator"), rule)
        })?;
        Ok(InstructionPrefix {
            program: parse_pubkey(&field("programId"), &body.program_id)?,
            discriminator,
        })
    };
    given.iter().enumerate().map(instruction).collect()
}

fn event_names(names: Vec<String>) -> Result<Vec<String>, ApiError> {
    at_most("filters.eventNames", names.len(), MAX_ALTERNATIVES)?;
    let fits = |name: &String| (1..=MAX_EVENT_NAME_BYTES).contains(&name.len());
    match names.iter().position(|name| !fits(name)) {
        None => Ok(names),
        Some(index) => {
            let rule = format!("must be 1 to {MAX_EVENT_NAME_BYTES} bytes long");
            Err(ApiError::invalid(
                format!("filters.eventNames[{index}]"),
                rule,
            ))
        }
    }
}

fn memcmps(given: &[MemcmpBody]) -> Result<Vec<Memcmp>, ApiError> {
    at_most("filters.memcmp", given.len(), MAX_MEMCMPS)?;
    let memcmp = |(index, body): (usize, &MemcmpBody)| {
        let refused = |member: &str, rule: &str| {
            ApiError::invalid(format!("filters.memcmp[{index}].{member}"), rule)
        };
        let (bytes, name) = match body.encoding.as_deref() {
            None | Some("base58") => (bs58::decode(&body.bytes).into_vec().ok(), "base58"),
            Some("base64") => (STANDARD.decode(&body.bytes).ok(), "base64"),
            Some(_) => return Err(refused("encoding", "must be one of base58, base64")),
        };
        let fits = |bytes: &Vec<u8>| (1..=MAX_MEMCMP_BYTES).contains(&bytes.len());
        let rule = || format!("must be 1 to {MAX_MEMCMP_BYTES} bytes in {name}");
        let bytes = bytes
            .filter(fits)
            .ok_or_else(|| refused("bytes", &rule()))?;
        let field = format!("filters.memcmp[{index}].offset");
        Ok(Memcmp {
            offset: within_account(field, body.offset)?,
            bytes,
        })
    };
    given.iter().enumerate().map(memcmp).collect()
}

/// A position in an account's data, or its length.
fn within_account(field: impl Into<String>, bytes: u64) -> Result<u64, ApiError> {
    if bytes <= MAX_ACCOUNT_BYTES {
        return Ok(bytes);
    }
    let rule = format!("must be at most {MAX_ACCOUNT_BYTES}, the most that an account holds");
    Err(ApiError::invalid(field, rule))
}

/// Conditions that are right by themselves may still be about kinds that are not asked for, or contradict each other.
pub(super) fn check_together(conditions: &Conditions, events: EventKinds) -> Result<(), ApiError> {
    let refused = |field: &str, fault: &str| Err(ApiError::invalid(field, fault));
    let about_accounts = [
        ("filters.memcmp", !conditions.memcmp.is_empty()),
        ("filters.dataSize", conditions.data_size.is_some()),
    ];
    for (field, is_given) in about_accounts {
        if is_given && !events.account_change {
            return refused(
                field,
                "needs accountChange in events; add it or leave this out",
            );
        }
    }
    if !conditions.event_names.is_empty() && !events.program_event {
        let fault = "needs programEvent in events; add it or leave this out";
        return refused("filters.eventNames", fault);
    }
    if conditions.restrict_transactions() && !events.transaction && !events.program_event {
        let fault = "has conditions on transactions, which need transaction or programEvent in events; add one or leave them out";
        return refused("filters", fault);
    }
    if conditions.outcome == TransactionOutcome::Failed && !events.transaction {
        let fault = "must not be failed without transaction in events: the chain undoes the events of a transaction that fails";
        return refused("filters.outcome", fault);
    }
    let excluded = &conditions.accounts_excluded;
    let required = &conditions.accounts_required;
    match excluded.iter().find(|address| required.contains(address)) {
        None => Ok(()),
        Some(both) => refused(
            "filters.accountsExcluded",
            &format!("names {both}, which accountsRequired names too; leave it out of one"),
        ),
    }
}
