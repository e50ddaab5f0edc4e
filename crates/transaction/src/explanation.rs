//! Explanation: what each instruction of a transaction does and may cost, read from its bytes alone (pure).
//!
//! It is for any transaction, not only for those of this service. What is not known is said to be unknown, and never guessed: who is to
//! sign must not take silence for harmlessness.

mod budget;
mod meaning;
mod programs;
mod swap;
mod system;
mod token;

use solana_hash::Hash;
use solana_message::VersionedMessage;
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use swap_guard_interface::PROGRAM_ID;

use self::{budget::Budget, meaning::Accounts};
pub use self::{
    budget::StatedCosts,
    meaning::{Argument, Spend, Spent},
    swap::NamedSwap,
};
use crate::{
    comparison::{NoTransaction, parse},
    lookup_table::LookupTable,
    signed::version,
    version::TransactionVersion,
};

/// What a transaction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Its wire format.
    pub version: TransactionVersion,
    /// Its length, bytes.
    pub size: usize,
    /// Who must sign, the fee payer first, and whether the transaction has a valid signature of theirs.
    pub signers: Vec<(Pubkey, bool)>,
    /// Its first signature, which names it; `None` while it has none.
    pub signature: Option<Signature>,
    /// A recent blockhash, or the value of a nonce.
    pub blockhash: Hash,
    /// Whether `blockhash` is the value of a nonce.
    pub has_nonce: bool,
    /// Every instruction, in its order.
    pub steps: Vec<Step>,
    /// What it charges, whatever its instructions do.
    pub costs: StatedCosts,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The program that it calls.
    pub program: Pubkey,
    /// What that program is called here; `None` for one that is not known.
    pub program_name: Option<&'static str>,
    /// What its program calls it; `None` where that is not known.
    pub name: Option<&'static str>,
    /// In words.
    pub says: String,
    /// Why to look twice, where there is a reason.
    pub caution: Option<&'static str>,
    /// What it is given beside accounts.
    pub arguments: Vec<Argument>,
    /// Its accounts.
    pub accounts: Vec<StepAccount>,
    /// What it takes from whom, where its data say so.
    pub spend: Option<Spend>,
    /// Its data.
    pub data: Vec<u8>,
}

/// An account of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepAccount {
    /// What the instruction takes it for; `None` where that is not known.
    pub role: Option<&'static str>,
    /// Its address; `None` where it stands in a lookup table that is not at hand.
    pub address: Option<Pubkey>,
    /// Whether it must sign.
    pub is_signer: bool,
    /// Whether the transaction may change it.
    pub is_writable: bool,
}

/// Where the addresses are that a transaction takes from lookup tables.
#[derive(Clone, Copy, Debug)]
pub enum LookedUp<'a> {
    /// As the chain resolved them: those of all tables that may be written, then the others.
    Resolved(&'a [Pubkey]),
    /// In a table, if it is this one.
    In(Option<&'a LookupTable>),
}

impl Explanation {
    /// Reads the wire bytes of a transaction, signed or not. `exchange` is the exchange's program.
    ///
    /// # Errors
    /// When they are no transaction, or one that no node would take.
    pub fn read(
        bytes: &[u8],
        looked_up: LookedUp<'_>,
        exchange: &Pubkey,
    ) -> Result<Self, NoTransaction> {
        let transaction = parse(bytes)?;
        transaction.sanitize().map_err(|_| NoTransaction)?;
        let message = &transaction.message;
        let addresses = addresses(message, looked_up);
        let version = version(message);
        let mut budget = Budget::of(message);
        let mut steps = Vec::with_capacity(message.instructions().len());
        for instruction in message.instructions() {
            let program_index = usize::from(instruction.program_id_index);
            // Programs are never looked up, and a sane message names those that it calls.
            let program = *message
                .static_account_keys()
                .get(program_index)
                .ok_or(NoTransaction)?;
            budget.count(&program, &instruction.data);
            let accounts = instruction.accounts.iter().map(|&index| usize::from(index));
            let accounts: Vec<_> = accounts
                .map(|index| StepAccount {
                    role: None,
                    address: addresses.get(index).copied().flatten(),
                    is_signer: message.is_signer(index),
                    is_writable: is_writable(message, index),
                })
                .collect();
            steps.push(Step::new(program, exchange, accounts, &instruction.data));
        }
        Ok(Self {
            version,
            size: bytes.len(),
            signers: signers(&transaction),
            signature: first_signature(&transaction),
            blockhash: *message.recent_blockhash(),
            has_nonce: transaction.uses_durable_nonce(),
            steps,
            costs: budget.costs(version),
        })
    }

    /// Whether every instruction is known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.steps.iter().all(|step| step.name.is_some())
    }

    /// Whether one of them is a swap of the guard.
    #[must_use]
    pub fn calls_guard(&self) -> bool {
        self.steps.iter().any(|step| step.program == PROGRAM_ID)
    }
}

impl Step {
    fn new(
        program: Pubkey,
        exchange: &Pubkey,
        mut accounts: Vec<StepAccount>,
        data: &[u8],
    ) -> Self {
        let addresses: Vec<_> = accounts.iter().map(|account| account.address).collect();
        let program_name = programs::name(&program, exchange);
        let meaning = programs::meaning(&program, exchange, data, Accounts(&addresses));
        let Some(meaning) = meaning else {
            let says = match program_name {
                Some(name) => format!("calls {name}; what it does there is not known here"),
                None => format!("calls {program}; what that does is not known here"),
            };
            return Self {
                program,
                program_name,
                name: None,
                says,
                caution: Some("It is not known here what this does: sign only if you know."),
                arguments: Vec::new(),
                accounts,
                spend: None,
                data: data.to_vec(),
            };
        };
        for (account, role) in accounts.iter_mut().zip(meaning.roles) {
            account.role = Some(*role);
        }
        Self {
            program,
            program_name,
            name: Some(meaning.name),
            says: meaning.says,
            caution: meaning.caution,
            arguments: meaning.arguments,
            accounts,
            spend: meaning.spend,
            data: data.to_vec(),
        }
    }
}

/// Every address that the message names, in the order of its indices.
fn addresses(message: &VersionedMessage, looked_up: LookedUp<'_>) -> Vec<Option<Pubkey>> {
    let own = message.static_account_keys().iter().copied().map(Some);
    let lookups = message.address_table_lookups().unwrap_or_default();
    let writable = lookups.iter().flat_map(|lookup| {
        lookup
            .writable_indexes
            .iter()
            .map(|&index| (lookup.account_key, index))
    });
    let readonly = lookups.iter().flat_map(|lookup| {
        lookup
            .readonly_indexes
            .iter()
            .map(|&index| (lookup.account_key, index))
    });
    let others = writable
        .chain(readonly)
        .enumerate()
        .map(|(position, (table, index))| match looked_up {
            LookedUp::Resolved(addresses) => addresses.get(position).copied(),
            LookedUp::In(known) => known.and_then(|known| known.entry(&table, index)),
        });
    own.chain(others).collect()
}

/// Whether the message lets the account of this index be written.
fn is_writable(message: &VersionedMessage, index: usize) -> bool {
    let header = message.header();
    let of = |count: u8| usize::from(count);
    let (own, signers) = (
        message.static_account_keys().len(),
        of(header.num_required_signatures),
    );
    if index >= own {
        let lookups = message.address_table_lookups().unwrap_or_default();
        let writable = lookups.iter().map(|lookup| lookup.writable_indexes.len());
        return index.saturating_sub(own) < writable.sum();
    }
    if index < signers {
        return index < signers.saturating_sub(of(header.num_readonly_signed_accounts));
    }
    index < own.saturating_sub(of(header.num_readonly_unsigned_accounts))
}

/// Who must sign, and whether they did.
fn signers(transaction: &VersionedTransaction) -> Vec<(Pubkey, bool)> {
    let message = transaction.message.serialize();
    let keys = transaction.message.static_account_keys().iter();
    let signed = keys.zip(&transaction.signatures);
    signed
        .map(|(key, signature)| (*key, signature.verify(key.as_ref(), &message)))
        .collect()
}

fn first_signature(transaction: &VersionedTransaction) -> Option<Signature> {
    let first = transaction.signatures.first().copied();
    first.filter(|signature| *signature != Signature::default())
}

#[cfg(test)]
mod tests;
