//! Signed swap: a transaction that a wallet signed, checked as far as a node and the guard demand (pure).

use solana_message::VersionedMessage;
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_transaction::versioned::VersionedTransaction;
use swap_guard_interface::PROGRAM_ID;

use crate::{comparison::parse, version::TransactionVersion};

/// A transaction that calls the guard, with a valid signature of every signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedSwap {
    /// Its first signature, which names it.
    pub signature: Signature,
    /// Whether it lives by a durable nonce and so expires at no block height.
    pub has_nonce: bool,
}

/// Why bytes are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignedFault {
    /// Not the wire form of one transaction.
    #[error(
        "is no transaction of a known version; send the whole of it, signatures included, as base64"
    )]
    NoTransaction,
    /// The network carries none of this length.
    #[error("has {size} bytes, and the network carries {limit}; swap with fewer accounts")]
    TooLong {
        /// Its length.
        size: usize,
        /// The most there may be.
        limit: usize,
    },
    /// No instruction of its own calls the guard.
    #[error("does not call the guard {PROGRAM_ID}; send what is no swap of it to a node")]
    NoGuard,
    /// A signature is missing, or is not of these bytes.
    #[error(
        "has no valid signature of {0}; have every signer sign the transaction as it is, and change nothing after that"
    )]
    Unsigned(Pubkey),
}

impl SignedSwap {
    /// Reads and checks the wire bytes.
    ///
    /// # Errors
    /// Why a node, or this service, would not take it.
    pub fn read(bytes: &[u8]) -> Result<Self, SignedFault> {
        let transaction = parse(bytes).map_err(|_| SignedFault::NoTransaction)?;
        let sane = transaction.sanitize();
        sane.map_err(|_| SignedFault::NoTransaction)?;
        let limit = version(&transaction.message).size_limit();
        if bytes.len() > limit {
            let size = bytes.len();
            return Err(SignedFault::TooLong { size, limit });
        }
        if !calls_guard(&transaction.message) {
            return Err(SignedFault::NoGuard);
        }
        let signature = *transaction
            .signatures
            .first()
            .ok_or(SignedFault::NoTransaction)?;
        if let Some(signer) = unsigned(&transaction) {
            return Err(SignedFault::Unsigned(signer));
        }
        Ok(Self {
            signature,
            has_nonce: transaction.uses_durable_nonce(),
        })
    }
}

pub(crate) const fn version(message: &VersionedMessage) -> TransactionVersion {
    match message {
        VersionedMessage::Legacy(_) => TransactionVersion::Legacy,
        VersionedMessage::V0(_) => TransactionVersion::V0,
        VersionedMessage::V1(_) => TransactionVersion::V1,
    }
}

fn calls_guard(message: &VersionedMessage) -> bool {
    let keys = message.static_account_keys();
    message.instructions().iter().any(|instruction| {
        let program = keys.get(usize::from(instruction.program_id_index));
        program == Some(&PROGRAM_ID)
    })
}

/// The first signer whose signature is not valid.
fn unsigned(transaction: &VersionedTransaction) -> Option<Pubkey> {
    let message = transaction.message.serialize();
    let keys = transaction.message.static_account_keys();
    let signed = keys.iter().zip(&transaction.signatures);
    let mut unsigned = signed.filter(|(key, signature)| !signature.verify(key.as_ref(), &message));
    unsigned.next().map(|(key, _)| *key)
}
