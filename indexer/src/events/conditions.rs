//! Conditions of webhooks: whether an event that touches a watched address is also what is asked for (pure).

use std::cell::OnceCell;

use sluice_geyser::{AccountUpdate, TransactionUpdate};
use sluice_store::{Conditions, InstructionPrefix, Memcmp, TransactionOutcome};
use solana_pubkey::Pubkey;

use super::{idl::Decoder, program_events::ProgramEvent};

/// Whether an account as it is after a change meets the conditions on accounts.
#[must_use]
pub fn account(conditions: &Conditions, account: &AccountUpdate) -> bool {
    let sized = conditions
        .data_size
        .is_none_or(|size| u64::try_from(account.data.len()) == Ok(size));
    sized
        && conditions
            .memcmp
            .iter()
            .all(|one| holds(&account.data, one))
}

fn holds(data: &[u8], memcmp: &Memcmp) -> bool {
    let from = usize::try_from(memcmp.offset)
        .ok()
        .and_then(|offset| data.get(offset..));
    from.is_some_and(|from| from.starts_with(&memcmp.bytes))
}

/// Whether a transaction meets the conditions on transactions.
#[must_use]
pub fn transaction(conditions: &Conditions, transaction: &TransactionUpdate) -> bool {
    let mentions = |address: &Pubkey| transaction.account_keys.contains(address);
    let outcome = match conditions.outcome {
        TransactionOutcome::Any => true,
        TransactionOutcome::Succeeded => transaction.error.is_none(),
        TransactionOutcome::Failed => transaction.error.is_some(),
    };
    let wanted = &conditions.instructions;
    outcome
        && !(conditions.without_votes && transaction.is_vote)
        && conditions.accounts_required.iter().all(mentions)
        && !conditions.accounts_excluded.iter().any(mentions)
        && (wanted.is_empty() || wanted.iter().any(|one| executes(transaction, one)))
}

/// Whether a transaction has an instruction, at any depth, that begins so.
fn executes(transaction: &TransactionUpdate, wanted: &InstructionPrefix) -> bool {
    let outer = transaction
        .instructions
        .iter()
        .map(|each| (each.program_index, &each.data));
    let inner = transaction
        .inner_instructions
        .iter()
        .flat_map(|(_, inner)| inner)
        .map(|each| (each.program_index, &each.data));
    outer.chain(inner).any(|(program, data)| {
        transaction.account_keys.get(usize::from(program)) == Some(&wanted.program)
            && data.starts_with(&wanted.discriminator)
    })
}

/// The name of an event of a program, decoded when the first webhook asks for it.
pub struct EventName<'a> {
    event: &'a ProgramEvent,
    decoder: Decoder<'a>,
    name: OnceCell<Option<String>>,
}

impl<'a> EventName<'a> {
    /// The name of `event` by `decoder`.
    #[must_use]
    pub const fn new(event: &'a ProgramEvent, decoder: Decoder<'a>) -> Self {
        Self {
            event,
            decoder,
            name: OnceCell::new(),
        }
    }

    /// Whether it is one of those asked for. An event that is not decoded has no name, and is none of them.
    #[must_use]
    pub fn is_wanted(&self, conditions: &Conditions) -> bool {
        let wanted = &conditions.event_names;
        wanted.is_empty()
            || self
                .get()
                .is_some_and(|name| wanted.iter().any(|one| one == name))
    }

    fn get(&self) -> Option<&str> {
        let name = self.name.get_or_init(|| {
            let decoded = self.decoder.decode(&self.event.program, &self.event.data);
            decoded.map(|(name, _)| name.to_owned())
        });
        name.as_deref()
    }
}

#[cfg(test)]
mod tests;
