//! Genesis accounts, as the JSON files that the validator reads before its first slot.

use std::{fs, io, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::json;
use solana_pubkey::Pubkey;

/// Rent-exempt lamports per byte: 3,480 lamports per byte and year, two years.
const LAMPORTS_PER_BYTE: u64 = 6_960;

/// Bytes that every account is charged for beside its data.
const ACCOUNT_OVERHEAD: u64 = 128;

/// One account of genesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenesisAccount {
    /// Its address.
    pub address: Pubkey,
    /// Its balance.
    pub lamports: u64,
    /// The program that owns it.
    pub owner: Pubkey,
    /// Its data.
    pub data: Vec<u8>,
}

impl GenesisAccount {
    /// An account with just the lamports that exempt it from rent.
    #[must_use]
    pub fn rent_exempt(address: Pubkey, owner: Pubkey, data: Vec<u8>) -> Self {
        Self {
            address,
            lamports: rent_exempt(data.len()),
            owner,
            data,
        }
    }

    /// A nonce account of the current version: version, state, authority, value, and the fee of a signature.
    #[must_use]
    pub fn nonce(address: Pubkey, authority: &Pubkey) -> Self {
        let head = [1_u32; 2].map(u32::to_le_bytes).concat();
        let fee = 5_000_u64.to_le_bytes();
        let data = [&head[..], authority.as_ref(), &[1; 32], &fee].concat();
        Self::rent_exempt(address, Pubkey::default(), data)
    }

    fn to_json(&self) -> serde_json::Value {
        json!({
            "pubkey": self.address.to_string(),
            "account": {
                "lamports": self.lamports,
                "data": [BASE64.encode(&self.data), "base64"],
                "owner": self.owner.to_string(),
                "executable": false,
                // Exempt accounts carry the largest epoch: rent is never due.
                "rentEpoch": u64::MAX,
                "space": self.data.len(),
            },
        })
    }
}

/// Lamports that exempt an account of this many bytes from rent.
#[must_use]
pub const fn rent_exempt(len: usize) -> u64 {
    (ACCOUNT_OVERHEAD + len as u64) * LAMPORTS_PER_BYTE
}

/// Writes one file per account into `folder`, for the validator's `--account-dir`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(accounts: &[GenesisAccount], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for account in accounts {
        let path = folder.join(format!("{}.json", account.address));
        fs::write(path, account.to_json().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rent_is_what_the_chain_asks_for() {
        assert_eq!(rent_exempt(0), 890_880);
        assert_eq!(rent_exempt(165), 2_039_280);
    }

    #[test]
    fn files_have_the_form_the_validator_reads() {
        let account = GenesisAccount::rent_exempt(Pubkey::default(), Pubkey::default(), vec![1, 2]);
        let json = account.to_json();
        assert_eq!(json["account"]["data"][0], "AQI=");
        assert_eq!(json["account"]["rentEpoch"], u64::MAX);
    }
}
