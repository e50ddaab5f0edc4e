//! Addresses and keys that are hashes of names, equal in every run.

use sha2::{Digest, Sha256};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;

/// The address that `name` stands for.
#[must_use]
pub fn address(name: &str) -> Pubkey {
    Pubkey::from(hash(name))
}

/// The key pair that `name` stands for.
#[must_use]
pub fn keypair(name: &str) -> Keypair {
    Keypair::new_from_array(hash(name))
}

fn hash(name: &str) -> [u8; 32] {
    Sha256::digest(name).into()
}
