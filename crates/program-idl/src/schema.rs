//! IDL schema: the events of a program and the types of their fields (pure).
//!
//! The format is the one of Anchor 0.30 and later. An event whose type uses what is not understood here
//! (generics, other layouts than Borsh) is left undecoded; the rest of the file still counts.

use std::collections::HashMap;

use anchor_lang_idl_spec::{
    IdlArrayLen, IdlDefinedFields, IdlEvent, IdlSerialization, IdlType, IdlTypeDef, IdlTypeDefTy,
};
use serde::Deserialize;
use serde_json::Value;
use solana_pubkey::Pubkey;
use thiserror::Error;

/// Deepest nesting of types inside each other. Events of real programs have three or four levels.
pub const MAX_DEPTH: usize = 16;

/// Most events of a program: each of its events is compared with all of them. The largest have some dozens.
const MAX_EVENTS: usize = 1024;

/// Longest name of an event, a type, a field or a variant, bytes.
const MAX_NAME_BYTES: usize = 256;

/// How much of a name that is too long is shown.
const SHOWN_CHARS: usize = 40;

/// Most elements of a fixed array: an event of more could not be logged.
const MAX_ARRAY: usize = 64 * 1024;

/// Why a text is not an IDL.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// Not the JSON of an IDL.
    #[error("it is not an Anchor IDL of version 0.30 or later: {0}")]
    Format(#[from] serde_json::Error),
    /// The address is no key.
    #[error("its address {0:?} is not a base58 public key")]
    Address(String),
    /// An event without discriminator would match everything.
    #[error("the event {0:?} has an empty discriminator")]
    NoDiscriminator(String),
    /// More than anybody has.
    #[error("it has {count} events, more than {MAX_EVENTS}")]
    TooMany {
        /// How many events there are.
        count: usize,
    },
    /// Names are in every message that is decoded, as often as the values are.
    #[error("the name {start:?}… has {bytes} bytes, more than {MAX_NAME_BYTES}")]
    LongName {
        /// How it begins.
        start: String,
        /// How long it is.
        bytes: usize,
    },
}

/// The events of one program.
#[derive(Debug)]
pub struct Schema {
    /// Those with the longest discriminator first, so that none hides another.
    events: Vec<Event>,
    /// What [`Type::Defined`] refers to.
    definitions: Vec<Definition>,
    unsupported: Vec<(String, &'static str)>,
}

/// An event that can be decoded.
#[derive(Debug)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its first bytes.
    pub discriminator: Vec<u8>,
    /// What follows.
    pub content: Type,
}

/// What bytes mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned little-endian integer of this many bytes.
    Unsigned(usize),
    /// Signed little-endian integer of this many bytes.
    Signed(usize),
    /// IEEE 754, 4 bytes.
    F32,
    /// IEEE 754, 8 bytes.
    F64,
    /// 32 bytes.
    Pubkey,
    /// Length (u32), then UTF-8.
    String,
    /// Length (u32), then bytes.
    Bytes,
    /// One byte, 0 or 1, and with 1 the value.
    Option(Box<Self>),
    /// Length (u32), then values.
    Vec(Box<Self>),
    /// So many values.
    Array(Box<Self>, usize),
    /// The definition at this index.
    Defined(usize),
}

/// A named type.
#[derive(Debug)]
pub enum Definition {
    /// Fields one after the other.
    Struct(Fields),
    /// One byte says which variant, its fields follow.
    Enum(Vec<(String, Fields)>),
    /// Another name.
    Alias(Type),
    /// Not understood, for this reason.
    Unsupported(&'static str),
}

/// Fields of a struct or of a variant.
#[derive(Debug, PartialEq, Eq)]
pub enum Fields {
    /// With names, in camelCase.
    Named(Vec<(String, Type)>),
    /// By position.
    Tuple(Vec<Type>),
}

/// An IDL, as far as its events go.
#[derive(Deserialize)]
struct RawIdl {
    address: String,
    #[serde(default)]
    events: Vec<IdlEvent>,
    /// Parsed one by one: a type that is not understood leaves the others.
    #[serde(default)]
    types: Vec<Value>,
}

/// Why a type is not understood.
type Unsupported = &'static str;

impl Schema {
    /// Reads an IDL and says which program it describes.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn parse(text: &str) -> Result<(Pubkey, Self), SchemaError> {
        let raw: RawIdl = serde_json::from_str(text)?;
        let Ok(program) = raw.address.parse() else {
            return Err(SchemaError::Address(raw.address));
        };
        if raw.events.len() > MAX_EVENTS {
            let count = raw.events.len();
            return Err(SchemaError::TooMany { count });
        }
        let names: HashMap<&str, usize> = raw
            .types
            .iter()
            .enumerate()
            .filter_map(|(index, raw)| Some((raw.get("name")?.as_str()?, index)))
            .collect();
        let definitions: Vec<_> = raw
            .types
            .iter()
            .map(|raw| definition(raw, &names).unwrap_or_else(Definition::Unsupported))
            .collect();
        definitions.iter().try_for_each(check_names)?;
        let unsupported = unsupported(&definitions);
        let mut schema = Self {
            events: Vec::new(),
            definitions,
            unsupported: Vec::new(),
        };
        for event in raw.events {
            if event.discriminator.is_empty() {
                return Err(SchemaError::NoDiscriminator(event.name));
            }
            check_name(&event.name)?;
            schema.add(event, &names, &unsupported);
        }
        schema
            .events
            .sort_by_key(|event| std::cmp::Reverse(event.discriminator.len()));
        Ok((program, schema))
    }

    fn add(
        &mut self,
        event: IdlEvent,
        names: &HashMap<&str, usize>,
        unsupported: &[Option<Unsupported>],
    ) {
        let index = match names.get(event.name.as_str()) {
            Some(index) => *index,
            None => {
                self.unsupported.push((event.name, "its type is missing"));
                return;
            }
        };
        match unsupported.get(index).copied().flatten() {
            None => self.events.push(Event {
                name: event.name,
                discriminator: event.discriminator,
                content: Type::Defined(index),
            }),
            Some(reason) => self.unsupported.push((event.name, reason)),
        }
    }

    /// Names of the events that are decoded.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.events.iter().map(|event| event.name.as_str())
    }

    /// The event whose discriminator `data` begins with.
    #[must_use]
    pub fn event_of(&self, data: &[u8]) -> Option<&Event> {
        self.events
            .iter()
            .find(|event| data.starts_with(&event.discriminator))
    }

    /// What a [`Type::Defined`] refers to.
    #[must_use]
    pub fn definition(&self, index: usize) -> Option<&Definition> {
        self.definitions.get(index)
    }

    /// Events that are not decoded, and why.
    pub fn unsupported(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.unsupported
            .iter()
            .map(|(name, reason)| (name.as_str(), *reason))
    }
}

/// Why each definition is not understood, or one that it names, at any depth. Each is looked at once for each that names it:
/// an IDL may name its types in circles, and each type by many others.
fn unsupported(definitions: &[Definition]) -> Vec<Option<Unsupported>> {
    let mut named_by = vec![Vec::new(); definitions.len()];
    let mut reasons = vec![None; definitions.len()];
    let mut found = Vec::new();
    for (index, definition) in definitions.iter().enumerate() {
        if let Definition::Unsupported(reason) = definition {
            reasons[index] = Some(*reason);
            found.push((index, *reason));
        }
        for named in definition.types().filter_map(Type::defined) {
            if let Some(naming) = named_by.get_mut(named) {
                naming.push(index);
            }
        }
    }
    while let Some((index, reason)) = found.pop() {
        for naming in std::mem::take(&mut named_by[index]) {
            if reasons[naming].is_none() {
                reasons[naming] = Some(reason);
                found.push((naming, reason));
            }
        }
    }
    reasons
}

impl Type {
    /// The index of the definition that it is made of.
    fn defined(&self) -> Option<usize> {
        match self {
            Self::Defined(index) => Some(*index),
            Self::Option(inner) | Self::Vec(inner) | Self::Array(inner, _) => inner.defined(),
            _ => None,
        }
    }
}

impl Fields {
    fn types(&self) -> impl Iterator<Item = &Type> {
        let (named, tuple) = match self {
            Self::Named(named) => (named.as_slice(), [].as_slice()),
            Self::Tuple(tuple) => ([].as_slice(), tuple.as_slice()),
        };
        named.iter().map(|(_, kind)| kind).chain(tuple)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let named = match self {
            Self::Named(named) => named.as_slice(),
            Self::Tuple(_) => [].as_slice(),
        };
        named.iter().map(|(name, _)| name.as_str())
    }
}

impl Definition {
    /// The types that it names.
    fn types(&self) -> impl Iterator<Item = &Type> {
        let (alias, fields, variants) = match self {
            Self::Struct(fields) => (None, Some(fields), [].as_slice()),
            Self::Enum(variants) => (None, None, variants.as_slice()),
            Self::Alias(target) => (Some(target), None, [].as_slice()),
            Self::Unsupported(_) => (None, None, [].as_slice()),
        };
        let fields = fields.into_iter();
        let fields = fields.chain(variants.iter().map(|(_, fields)| fields));
        alias.into_iter().chain(fields.flat_map(Fields::types))
    }
}

fn check_name(name: &str) -> Result<(), SchemaError> {
    if name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    Err(SchemaError::LongName {
        start: name.chars().take(SHOWN_CHARS).collect(),
        bytes: name.len(),
    })
}

/// Refuses a definition whose names are too long.
fn check_names(definition: &Definition) -> Result<(), SchemaError> {
    match definition {
        Definition::Struct(fields) => fields.names().try_for_each(check_name),
        Definition::Enum(variants) => variants.iter().try_for_each(|(name, fields)| {
            check_name(name)?;
            fields.names().try_for_each(check_name)
        }),
        Definition::Alias(_) | Definition::Unsupported(_) => Ok(()),
    }
}

fn definition(raw: &Value, names: &HashMap<&str, usize>) -> Result<Definition, Unsupported> {
    let raw = IdlTypeDef::deserialize(raw).map_err(|_| "it uses an unknown type")?;
    if !raw.generics.is_empty() {
        return Err("it uses generic types");
    }
    if raw.serialization != IdlSerialization::Borsh {
        return Err("it is laid out otherwise than by Borsh");
    }
    Ok(match &raw.ty {
        IdlTypeDefTy::Struct { fields: raw } => Definition::Struct(fields(raw.as_ref(), names)?),
        IdlTypeDefTy::Enum { variants } => Definition::Enum(
            variants
                .iter()
                .map(|variant| {
                    let fields = match fields(variant.fields.as_ref(), names)? {
                        // An empty list looks like one with names.
                        Fields::Named(named) if named.is_empty() => Fields::Tuple(Vec::new()),
                        fields => fields,
                    };
                    Ok((variant.name.clone(), fields))
                })
                .collect::<Result<_, Unsupported>>()?,
        ),
        IdlTypeDefTy::Type { alias } => Definition::Alias(kind(alias, names, 0)?),
    })
}

fn fields(
    raw: Option<&IdlDefinedFields>,
    names: &HashMap<&str, usize>,
) -> Result<Fields, Unsupported> {
    Ok(match raw {
        None => Fields::Tuple(Vec::new()),
        Some(IdlDefinedFields::Named(raw)) => Fields::Named(
            raw.iter()
                .map(|field| Ok((camel_case(&field.name), kind(&field.ty, names, 0)?)))
                .collect::<Result<_, Unsupported>>()?,
        ),
        Some(IdlDefinedFields::Tuple(raw)) => Fields::Tuple(
            raw.iter()
                .map(|raw| kind(raw, names, 0))
                .collect::<Result<_, Unsupported>>()?,
        ),
    })
}

fn kind(raw: &IdlType, names: &HashMap<&str, usize>, depth: usize) -> Result<Type, Unsupported> {
    if depth > MAX_DEPTH {
        return Err("its types are nested too deeply");
    }
    let inner = |raw: &IdlType| kind(raw, names, depth.saturating_add(1)).map(Box::new);
    Ok(match raw {
        IdlType::Bool => Type::Bool,
        IdlType::U8 => Type::Unsigned(1),
        IdlType::U16 => Type::Unsigned(2),
        IdlType::U32 => Type::Unsigned(4),
        IdlType::U64 => Type::Unsigned(8),
        IdlType::U128 => Type::Unsigned(16),
        IdlType::I8 => Type::Signed(1),
        IdlType::I16 => Type::Signed(2),
        IdlType::I32 => Type::Signed(4),
        IdlType::I64 => Type::Signed(8),
        IdlType::I128 => Type::Signed(16),
        IdlType::F32 => Type::F32,
        IdlType::F64 => Type::F64,
        IdlType::Pubkey => Type::Pubkey,
        IdlType::String => Type::String,
        IdlType::Bytes => Type::Bytes,
        IdlType::Option(of) => Type::Option(inner(of)?),
        IdlType::Vec(of) => Type::Vec(inner(of)?),
        IdlType::Array(of, IdlArrayLen::Value(length)) if *length <= MAX_ARRAY => {
            Type::Array(inner(of)?, *length)
        }
        IdlType::Array(..) => return Err("an array's length is too large, or not a number"),
        IdlType::Defined { generics, .. } if !generics.is_empty() => {
            return Err("it uses generic types");
        }
        IdlType::Defined { name, .. } => {
            let index = names.get(name.as_str());
            Type::Defined(*index.ok_or("a type it names is missing")?)
        }
        _ => return Err("it uses an unknown type"),
    })
}

/// `input_mint` as `inputMint`.
fn camel_case(name: &str) -> String {
    let mut result = String::with_capacity(name.len());
    let mut upper = false;
    for character in name.chars() {
        if character == '_' {
            upper = !result.is_empty();
        } else if std::mem::take(&mut upper) {
            result.extend(character.to_uppercase());
        } else {
            result.push(character);
        }
    }
    result
}

#[cfg(test)]
mod tests;
