//! IDLs: decode the events of registered programs into named fields.
//!
//! An Anchor program publishes an IDL, a JSON file that lists its events and the types of their fields.
//! [`Idls`] holds those that were registered, the guard's own and the exchange's among them, and turns the bytes of an
//! event into JSON: [`schema`] reads the file, [`decode`] the bytes.
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

/// The exchange's events, as it publishes and emits them, and as it did before fees and mints were among a swap's. A
/// layout of an event is known by its length.
const EXCHANGE: [&str; 2] = [
    include_str!("../../../idls/raydium_cp_swap.json"),
    include_str!("../../../idls/raydium_cp_swap_0_1.json"),
];

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
    /// What decodes where none of `programs` is about the program: layouts by age, the newest first.
    exchange: Vec<(Pubkey, Schema)>,
}

impl Idls {
    /// The guard's and the exchange's.
    ///
    /// # Errors
    /// None that a build with its tests passing can have.
    pub fn built_in() -> Result<Self, IdlError> {
        let mut idls = Self::default();
        idls.register(GUARD, "of swap-guard")?;
        for text in EXCHANGE {
            idls.exchange.push(parse(text, "of the exchange")?);
        }
        Ok(idls)
    }

    /// The guard's, the exchange's, and those of the files, which may describe the exchange anew.
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
        let (program, schema) = parse(text, place)?;
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
        if let Some(schema) = self.programs.get(program) {
            return decode::event(schema, data);
        }
        let layouts = self
            .exchange
            .iter()
            .filter(|(exchange, _)| exchange == program);
        layouts
            .filter_map(|(_, schema)| decode::event(schema, data))
            .next()
    }
}

fn parse(text: &str, place: &str) -> Result<(Pubkey, Schema), IdlError> {
    Schema::parse(text).map_err(|source| IdlError::Schema {
        place: place.to_owned(),
        source,
    })
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
mod tests;
