//! IDLs: decode the events of programs into named fields.
//!
//! [`Idls`] holds those that are built in, the guard's and the exchange's, those of the configuration, those that owners uploaded, each
//! for its own webhooks, and those that programs publish. An owner's own counts first, what a program publishes last.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::Value;
use sluice_program_idl::{Schema, SchemaError, decode};
use sluice_store::{StoredIdls, Tenant};
use solana_pubkey::Pubkey;
use thiserror::Error;

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

/// The programs whose events are decoded.
#[derive(Clone, Debug, Default)]
pub struct Idls {
    programs: HashMap<Pubkey, Arc<Schema>>,
    /// What decodes where none of `programs` is about the program: layouts by age, the newest first.
    exchange: Vec<(Pubkey, Arc<Schema>)>,
    /// What programs publish, for those that are among neither.
    chain: HashMap<Pubkey, Arc<Schema>>,
    /// Those of owners, for their own webhooks.
    uploaded: HashMap<Pubkey, HashMap<Tenant, Arc<Schema>>>,
}

/// What decodes events of a program for some webhooks: those of an owner with an IDL of its own, or all others.
#[derive(Clone, Copy, Debug)]
pub struct Decoder<'a> {
    idls: &'a Idls,
    own: Option<&'a Schema>,
}

impl Decoder<'_> {
    /// Name and fields of an event that `program` emitted, its discriminator included; `None` when it is
    /// not described, or does not fit its description.
    #[must_use]
    pub fn decode(&self, program: &Pubkey, data: &[u8]) -> Option<(&str, Value)> {
        match self.own {
            Some(schema) => decode::event(schema, data),
            None => self.idls.decode(program, data),
        }
    }
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
            let (program, schema) = parse(text, "of the exchange")?;
            idls.exchange.push((program, Arc::new(schema)));
        }
        Ok(idls)
    }

    /// The guard's, the exchange's, and those of the files, which may describe the exchange anew. `exchange` is the exchange's
    /// program, where it is not mainnet's.
    ///
    /// # Errors
    /// [`IdlError`].
    pub fn load(paths: &[PathBuf], exchange: Option<Pubkey>) -> Result<Self, IdlError> {
        let mut idls = Self::built_in()?;
        for (program, _) in &mut idls.exchange {
            *program = exchange.unwrap_or(*program);
        }
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
        if self.programs.insert(program, Arc::new(schema)).is_some() {
            return Err(IdlError::Twice {
                place: place.to_owned(),
                program,
            });
        }
        Ok(())
    }

    /// The same, with what is stored in the place of what was. What is not understood, though it was when it was stored, decodes
    /// nothing.
    #[must_use]
    pub fn with_stored(&self, stored: &StoredIdls) -> Self {
        let mut idls = Self {
            chain: HashMap::new(),
            uploaded: HashMap::new(),
            ..self.clone()
        };
        for (owner, program, text) in &stored.uploaded {
            match parse(text, "that was uploaded") {
                Ok((_, schema)) => {
                    let of_program = idls.uploaded.entry(*program).or_default();
                    of_program.insert(*owner, Arc::new(schema));
                }
                Err(error) => tracing::warn!(%program, %error, "a stored IDL decodes nothing"),
            }
        }
        for (program, text) in &stored.chain {
            match parse(text, "that the program publishes") {
                Ok((_, schema)) => {
                    idls.chain.insert(*program, Arc::new(schema));
                }
                Err(error) => tracing::warn!(%program, %error, "a stored IDL decodes nothing"),
            }
        }
        idls
    }

    /// Whether the program's IDL is built in or configured, so that none is read from the chain.
    #[must_use]
    pub fn is_fixed(&self, program: &Pubkey) -> bool {
        self.programs.contains_key(program) || self.is_exchange(program)
    }

    /// Whether the program is the exchange.
    #[must_use]
    pub fn is_exchange(&self, program: &Pubkey) -> bool {
        self.exchange
            .iter()
            .any(|(exchange, _)| exchange == program)
    }

    /// What decodes for the webhooks whose owner has no IDL of its own.
    #[must_use]
    pub const fn shared(&self) -> Decoder<'_> {
        Decoder {
            idls: self,
            own: None,
        }
    }

    /// What decodes a program's events for an owner's webhooks, where it has an IDL of its own.
    #[must_use]
    pub fn own(&self, owner: Tenant, program: &Pubkey) -> Option<Decoder<'_>> {
        let own = self.uploaded.get(program)?.get(&owner)?;
        Some(Decoder {
            idls: self,
            own: Some(own),
        })
    }

    /// Name and fields of an event that `program` emitted, for the webhooks whose owner has no IDL of its own.
    #[must_use]
    pub fn decode(&self, program: &Pubkey, data: &[u8]) -> Option<(&str, Value)> {
        if let Some(schema) = self.programs.get(program) {
            return decode::event(schema, data);
        }
        let layouts = self
            .exchange
            .iter()
            .filter(|(exchange, _)| exchange == program)
            .map(|(_, schema)| schema)
            .chain(self.chain.get(program));
        layouts
            .filter_map(|schema| decode::event(schema, data))
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
