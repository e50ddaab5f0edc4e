//! Wallets of the examples: key pairs in files, as `solana-keygen` writes them, that sign what the service has built.
//!
//! Crates of Solana are here to sign with, and are no dependencies of the client.

use std::error::Error;

use base64::{Engine, prelude::BASE64_STANDARD};
use sluice_client::{
    Client,
    wire::{SendRequest, SwapRequest, TransactionStatusName as Status},
};
use solana_keypair::Keypair;
use solana_transaction::versioned::VersionedTransaction;

/// A swap that is confirmed.
pub struct Swapped {
    pub signature: String,
    /// What the chain paid, smallest units.
    pub received: u64,
}

/// Has the transaction of a swap built, signs and sends it, and follows it until it is confirmed.
pub async fn swap(
    sluice: &Client,
    request: &SwapRequest,
    wallets: &[&Keypair],
) -> Result<Swapped, Box<dyn Error>> {
    let built = sluice.build_transaction(request, None).await?;
    let body = SendRequest {
        transaction: signed(&built.transaction, wallets)?,
        last_valid_block_height: built.last_valid_block_height,
    };
    let signature = sluice.send_transaction(&body).await?.signature;
    let mut statuses = sluice.stream_transaction(&signature).await?;
    while let Some(known) = statuses.next().await? {
        if let Some(error) = known.error {
            return Err(format!("{signature} failed: {}", error.message).into());
        }
        match (known.status, known.received) {
            (Status::Confirmed | Status::Finalized, Some(received)) => {
                return Ok(Swapped {
                    signature,
                    received,
                });
            }
            (Status::Expired | Status::Unknown, _) => {
                return Err(format!("{signature} did not reach the chain").into());
            }
            _ => {}
        }
    }
    Err(format!("{signature} is not followed to its end: ask for its status").into())
}

/// The transaction with the signatures of all wallets. One that asks for others than theirs is refused.
fn signed(transaction: &str, wallets: &[&Keypair]) -> Result<String, Box<dyn Error>> {
    let bytes = BASE64_STANDARD.decode(transaction)?;
    let unsigned: VersionedTransaction = wincode::deserialize_exact(&bytes)?;
    let signed = VersionedTransaction::try_new(unsigned.message, wallets)?;
    Ok(BASE64_STANDARD.encode(wincode::serialize(&signed)?))
}
