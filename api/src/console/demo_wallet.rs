//! Demo wallet: the key pair of a localnet, which the console hands to its pages to sign with.
//!
//! A page that holds a key is what no wallet should be, so the setting is refused but where nothing is worth anything: on a chain
//! of this machine, for callers of this machine.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context, ensure};
use serde::Serialize;

/// Bytes of a key pair's file: the private key, then the public one.
const PAIR: usize = 64;

/// Bytes of one of the two.
const KEY: usize = 32;

/// A key pair.
#[derive(Clone)]
pub struct DemoWallet(Arc<[u8; PAIR]>);

/// The key pair, as a page takes it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownWallet {
    /// Base 58.
    public_key: String,
    /// Hexadecimal.
    private_key: String,
}

impl DemoWallet {
    /// Reads a file as Solana's tools write it: a list of 64 numbers.
    ///
    /// # Errors
    /// When it cannot be read, or is no such list. The text is not repeated.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read the key pair {name} (api.demo-wallet)"))?;
        let bytes: Vec<u8> = serde_json::from_str(&text).unwrap_or_default();
        ensure!(
            bytes.len() == PAIR,
            "{name} (api.demo-wallet) is no key pair: a JSON list of {PAIR} bytes, as `solana-keygen new` writes it"
        );
        let mut pair = [0; PAIR];
        pair.copy_from_slice(&bytes);
        Ok(Self(Arc::new(pair)))
    }

    pub(super) fn shown(&self) -> ShownWallet {
        let (private, public) = self.0.split_at(KEY);
        ShownWallet {
            public_key: bs58::encode(public).into_string(),
            private_key: hex::encode(private),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_pair_is_read_and_what_is_none_is_refused_without_being_repeated() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("wallet.json");
        let bytes: Vec<u8> = (0..64).collect();
        let write = |text: &str| fs::write(&path, text).expect("writable");
        write(&serde_json::to_string(&bytes).expect("JSON"));
        let shown = DemoWallet::read(&path).expect("a key pair").shown();
        assert_eq!(shown.private_key, hex::encode(&bytes[..32]));
        assert_eq!(shown.public_key, bs58::encode(&bytes[32..]).into_string());
        for bad in ["", "[1,2,3]", "\"s3cret\"", "[300]"] {
            write(bad);
            let error = DemoWallet::read(&path).err().expect("refused").to_string();
            assert!(error.contains("api.demo-wallet"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        let gone = DemoWallet::read(&folder.path().join("gone")).err();
        assert!(gone.is_some_and(|error| error.to_string().contains("gone")));
    }
}
