//! Comparison: where a transaction differs first from the planned one, blockhash and signatures aside (pure).

use solana_hash::Hash;
use solana_message::{VersionedMessage, compiled_instruction::CompiledInstruction};
use solana_transaction::versioned::VersionedTransaction;

use crate::unsigned::UnsignedTransaction;

/// The first difference of a transaction from the planned one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where, as a path into the message: `version`, `accounts[3]`, `instructions[2].data`.
    pub at: String,
    /// What is planned there.
    pub planned: String,
    /// What is there.
    pub found: String,
}

/// Why bytes cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is no transaction of a known version; send the whole of it, signatures included, as base64"
)]
pub struct NoTransaction;

/// Where `found` differs from the planned transaction first; `None` where it has no other difference than its blockhash and
/// its signatures.
///
/// # Errors
/// When `found` is no transaction, or more than one.
pub fn difference(
    planned: &UnsignedTransaction,
    found: &[u8],
) -> Result<Option<Difference>, NoTransaction> {
    let planned = parse(&planned.bytes)?;
    let found = parse(found)?;
    Ok(first(&planned, &found))
}

/// The blockhash of a transaction, from which the address of an account of its own follows.
///
/// # Errors
/// As [`difference`].
pub fn blockhash(found: &[u8]) -> Result<Hash, NoTransaction> {
    Ok(*parse(found)?.message.recent_blockhash())
}

pub(crate) fn parse(bytes: &[u8]) -> Result<VersionedTransaction, NoTransaction> {
    let parsed: VersionedTransaction =
        wincode::deserialize_exact(bytes).map_err(|_| NoTransaction)?;
    // Another spelling of the same transaction has other signatures, and is none that was built here.
    match wincode::serialize(&parsed) {
        Ok(same) if same == bytes => Ok(parsed),
        _ => Err(NoTransaction),
    }
}

fn first(planned: &VersionedTransaction, found: &VersionedTransaction) -> Option<Difference> {
    let (ours, theirs) = (&planned.message, &found.message);
    let mut differences = Differences(None);
    differences.of("version", version(ours), version(theirs));
    differences.of(
        "signatures.length",
        planned.signatures.len(),
        found.signatures.len(),
    );
    differences.of_header(ours, theirs);
    differences.of_lists(
        "accounts",
        ours.static_account_keys(),
        theirs.static_account_keys(),
        |differences, at, ours, theirs| differences.of(at, ours, theirs),
    );
    differences.of_lists(
        "instructions",
        ours.instructions(),
        theirs.instructions(),
        Differences::of_instruction,
    );
    differences.of(
        "addressTableLookups",
        format!("{:?}", ours.address_table_lookups()),
        format!("{:?}", theirs.address_table_lookups()),
    );
    differences.of("config", config(ours), config(theirs));
    // Whatever a message may hold beside all that: nothing is equal whose bytes differ.
    let mut same_life = theirs.clone();
    same_life.set_recent_blockhash(*ours.recent_blockhash());
    differences.of(
        "message",
        hex(&ours.serialize()),
        hex(&same_life.serialize()),
    );
    differences.0
}

/// The first difference that was found.
struct Differences(Option<Difference>);

impl Differences {
    fn of<T: PartialEq + ToString>(&mut self, at: &str, planned: T, found: T) {
        if self.0.is_none() && planned != found {
            self.0 = Some(Difference {
                at: at.to_owned(),
                planned: planned.to_string(),
                found: found.to_string(),
            });
        }
    }

    fn of_header(&mut self, ours: &VersionedMessage, theirs: &VersionedMessage) {
        let (ours, theirs) = (ours.header(), theirs.header());
        for (at, planned, found) in [
            (
                "header.numRequiredSignatures",
                ours.num_required_signatures,
                theirs.num_required_signatures,
            ),
            (
                "header.numReadonlySignedAccounts",
                ours.num_readonly_signed_accounts,
                theirs.num_readonly_signed_accounts,
            ),
            (
                "header.numReadonlyUnsignedAccounts",
                ours.num_readonly_unsigned_accounts,
                theirs.num_readonly_unsigned_accounts,
            ),
        ] {
            self.of(at, planned, found);
        }
    }

    fn of_lists<T>(
        &mut self,
        name: &str,
        ours: &[T],
        theirs: &[T],
        of_one: impl Fn(&mut Self, &str, &T, &T),
    ) {
        for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            of_one(self, &format!("{name}[{index}]"), ours, theirs);
        }
        self.of(&format!("{name}.length"), ours.len(), theirs.len());
    }

    fn of_instruction(
        &mut self,
        at: &str,
        ours: &CompiledInstruction,
        theirs: &CompiledInstruction,
    ) {
        self.of(
            &format!("{at}.programIdIndex"),
            ours.program_id_index,
            theirs.program_id_index,
        );
        self.of(
            &format!("{at}.accounts"),
            format!("{:?}", ours.accounts),
            format!("{:?}", theirs.accounts),
        );
        self.of(&format!("{at}.data"), hex(&ours.data), hex(&theirs.data));
    }
}

const fn version(message: &VersionedMessage) -> &'static str {
    match message {
        VersionedMessage::Legacy(_) => "legacy",
        VersionedMessage::V0(_) => "0",
        VersionedMessage::V1(_) => "1",
    }
}

/// The limits and the fee that version 1 has in its message.
fn config(message: &VersionedMessage) -> String {
    match message {
        VersionedMessage::V1(message) => format!("{:?}", message.config),
        VersionedMessage::Legacy(_) | VersionedMessage::V0(_) => String::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
