//! IDLs: decode the events of registered programs into named fields.
//!
//! An Anchor program publishes an IDL, a JSON file that lists its events and the types of their fields.
//! [`Idls`] holds those that were registered, the guard's own among them, and turns the bytes of an event
//! into JSON: [`schema`] reads the file, [`decode`] the bytes.
//!
//! Names become camelCase, like everything else that Sluice writes. Integers of up to 64 bits become JSON
//! integers, larger ones decimal strings; keys base58; bytes base64; an absent option null; an enum its
//! variant's name, or an object of that name and its fields when it has any.
//!
//! Bytes that do not fit their description exactly, to the last one, are not decoded: a program that was
//! upgraded past its IDL is shown raw rather than wrong.

pub mod decode;
pub mod schema;

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;
use solana_pubkey::Pubkey;
use thiserror::Error;

use self::schema::{Schema, SchemaError};

/// Largest IDL file. The largest that are published have a few hundred kilobytes.
pub const MAX_IDL_BYTES: u64 = 4 * 1024 * 1024;

/// The guard's interface, as its program's build committed it.
const GUARD: &str = include_str!("../../../idls/swap_guard.json");

/// Why an IDL cannot be registered.
#[derive(Debug, Error)]
pub enum IdlError {
    /// The file cannot be read.
    #[error("cannot read the IDL {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The file is too large.
    #[error("the IDL {} has {bytes} bytes, more than {MAX_IDL_BYTES}", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The content is not understood.
    #[error("the IDL {place} is not understood: {source}")]
    Schema {
        /// Which.
        place: String,
        /// Cause.
        source: SchemaError,
    },
    /// Two files describe the same program.
    #[error("the IDL {place} describes {program}, which another one describes already")]
    Twice {
        /// Which.
        place: String,
        /// The program.
        program: Pubkey,
    },
}

/// The registered programs.
#[derive(Debug, Default)]
pub struct Idls {
    programs: HashMap<Pubkey, Schema>,
}

impl Idls {
    /// The guard's.
    ///
    /// # Errors
    /// None that a build with its tests passing can have.
    pub fn built_in() -> Result<Self, IdlError> {
        let mut idls = Self::default();
        idls.register(GUARD, "of swap-guard")?;
        Ok(idls)
    }

    /// The guard's, and those of the files.
    ///
    /// # Errors
    /// [`IdlError`].
    pub fn load(paths: &[PathBuf]) -> Result<Self, IdlError> {
        let mut idls = Self::built_in()?;
        for path in paths {
            idls.register(&read(path)?, &path.display().to_string())?;
        }
        Ok(idls)
    }

    /// Registers the program that an IDL describes; `place` names it in errors.
    ///
    /// # Errors
    /// [`IdlError::Schema`] and [`IdlError::Twice`].
    pub fn register(&mut self, text: &str, place: &str) -> Result<(), IdlError> {
        let (program, schema) = Schema::parse(text).map_err(|source| IdlError::Schema {
            place: place.to_owned(),
            source,
        })?;
        for (event, reason) in schema.unsupported() {
            tracing::warn!(%program, event, reason, "events of this kind are shown undecoded");
        }
        if self.programs.insert(program, schema).is_some() {
            return Err(IdlError::Twice {
                place: place.to_owned(),
                program,
            });
        }
        Ok(())
    }

    /// Name and fields of an event that `program` emitted, its discriminator included; `None` when it is
    /// not described, or does not fit its description.
    #[must_use]
    pub fn decode(&self, program: &Pubkey, data: &[u8]) -> Option<(&str, Value)> {
        decode::event(self.programs.get(program)?, data)
    }
}

fn read(path: &Path) -> Result<String, IdlError> {
    let fault = |source| IdlError::Read {
        path: path.to_owned(),
        source,
    };
    let bytes = fs::metadata(path).map_err(fault)?.len();
    if bytes > MAX_IDL_BYTES {
        return Err(IdlError::TooLarge {
            path: path.to_owned(),
            bytes,
        });
    }
    fs::read_to_string(path).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guards_idl_describes_the_guard_and_decodes_like_its_interface() {
        let idls = Idls::built_in().expect("understood");
        let mut data = swap_guard_interface::GUARDED_SWAP_DISCRIMINATOR.to_vec();
        data.extend((1..=4u8).flat_map(|key| [key; 32]));
        data.extend([u64::MAX, 6, 7, 8].into_iter().flat_map(u64::to_le_bytes));
        let swap = swap_guard_interface::GuardedSwap::decode(&data).expect("an event");
        let (name, fields) = idls
            .decode(&swap_guard_interface::PROGRAM_ID, &data)
            .expect("decoded");
        assert_eq!(name, "GuardedSwap");
        let expected = serde_json::json!({
            "user": swap.user.to_string(),
            "pool": swap.pool.to_string(),
            "inputMint": swap.input_mint.to_string(),
            "outputMint": swap.output_mint.to_string(),
            "amountIn": swap.amount_in,
            "minimumOut": swap.minimum_out,
            "received": swap.received,
            "slot": swap.slot,
        });
        assert_eq!(fields, expected);

        let mut data = swap_guard_interface::SWAPPED_DISCRIMINATOR.to_vec();
        data.extend((1..=2u8).flat_map(|key| [key; 32]));
        data.extend([u64::MAX, 4].into_iter().flat_map(u64::to_le_bytes));
        let swap = swap_guard_interface::Swapped::decode(&data).expect("an event");
        let (name, fields) = idls
            .decode(&swap_guard_interface::PROGRAM_ID, &data)
            .expect("decoded");
        assert_eq!(name, "Swapped");
        let expected = serde_json::json!({
            "user": swap.user.to_string(),
            "pool": swap.pool.to_string(),
            "spent": swap.spent,
            "received": swap.received,
        });
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_program_is_described_once() {
        let mut idls = Idls::built_in().expect("understood");
        assert!(matches!(
            idls.register(GUARD, "again"),
            Err(IdlError::Twice { .. })
        ));
    }

    #[test]
    fn a_file_that_is_missing_or_no_idl_is_named() {
        let missing = Idls::load(&[PathBuf::from("/nowhere/x.json")]).expect_err("missing");
        assert!(missing.to_string().contains("/nowhere/x.json"), "{missing}");
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("idl.json");
        fs::write(&path, "{}").expect("written");
        let wrong = Idls::load(std::slice::from_ref(&path)).expect_err("no IDL");
        assert!(wrong.to_string().contains("idl.json"), "{wrong}");
    }
}
