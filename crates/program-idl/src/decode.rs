//! Event decoder: turns the bytes of an event into JSON fields (pure).
//!
//! The bytes come from any program, so nothing in them is believed: lengths are checked against what is
//! left, and depth and number of values are bounded.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Number, Value};
use solana_pubkey::Pubkey;

use super::schema::{Definition, Fields, MAX_DEPTH, Schema, Type};

/// Most values in one event. Values may take no bytes, so a length that is a lie could ask for billions of
/// them. The logs of a transaction hold ten kilobytes, an instruction of a program to itself the same.
const MAX_VALUES: usize = 16 * 1024;

/// Name and fields of an event, or `None` when it is not described or does not fit to the last byte.
#[must_use]
pub fn event<'a>(schema: &'a Schema, data: &[u8]) -> Option<(&'a str, Value)> {
    let event = schema.event_of(data)?;
    let mut reader = Reader {
        schema,
        rest: data.get(event.discriminator.len()..)?,
        values: 0,
    };
    let fields = reader.value(&event.content, 0)?;
    reader
        .rest
        .is_empty()
        .then_some((event.name.as_str(), fields))
}

struct Reader<'a> {
    schema: &'a Schema,
    rest: &'a [u8],
    values: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, kind: &Type, depth: usize) -> Option<Value> {
        self.values = self.values.saturating_add(1);
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return None;
        }
        let below = depth.saturating_add(1);
        Some(match kind {
            Type::Bool => Value::Bool(self.flag()?),
            Type::Unsigned(bytes) => unsigned(self.take(*bytes)?),
            Type::Signed(bytes) => signed(self.take(*bytes)?),
            Type::F32 => float(f32::from_le_bytes(self.array()?).into()),
            Type::F64 => float(f64::from_le_bytes(self.array()?)),
            Type::Pubkey => Pubkey::new_from_array(self.array()?).to_string().into(),
            Type::String => {
                let length = self.length()?;
                std::str::from_utf8(self.take(length)?).ok()?.into()
            }
            Type::Bytes => {
                let length = self.length()?;
                STANDARD.encode(self.take(length)?).into()
            }
            Type::Option(inner) => {
                if self.flag()? {
                    self.value(inner, below)?
                } else {
                    Value::Null
                }
            }
            Type::Vec(inner) => {
                let length = self.length()?;
                self.list(inner, length, below)?
            }
            Type::Array(inner, length) => self.list(inner, *length, below)?,
            Type::Defined(index) => {
                let definition = self.schema.definition(*index)?;
                self.defined(definition, below)?
            }
        })
    }

    fn defined(&mut self, definition: &Definition, depth: usize) -> Option<Value> {
        match definition {
            Definition::Struct(fields) => self.fields(fields, depth),
            Definition::Alias(kind) => self.value(kind, depth),
            Definition::Enum(variants) => {
                let [number] = self.array()?;
                let (name, fields) = variants.get(usize::from(number))?;
                if matches!(fields, Fields::Tuple(kinds) if kinds.is_empty()) {
                    return Some(name.as_str().into());
                }
                let fields = self.fields(fields, depth)?;
                Some(Map::from_iter([(name.clone(), fields)]).into())
            }
            Definition::Unsupported(_) => None,
        }
    }

    fn fields(&mut self, fields: &Fields, depth: usize) -> Option<Value> {
        match fields {
            Fields::Named(fields) => fields
                .iter()
                .map(|(name, kind)| Some((name.clone(), self.value(kind, depth)?)))
                .collect::<Option<Map<_, _>>>()
                .map(Value::Object),
            Fields::Tuple(kinds) => kinds
                .iter()
                .map(|kind| self.value(kind, depth))
                .collect::<Option<Vec<_>>>()
                .map(Value::Array),
        }
    }

    fn list(&mut self, kind: &Type, length: usize, depth: usize) -> Option<Value> {
        if length > MAX_VALUES {
            return None;
        }
        (0..length)
            .map(|_| self.value(kind, depth))
            .collect::<Option<Vec<_>>>()
            .map(Value::Array)
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

fn unsigned(bytes: &[u8]) -> Value {
    let mut wide = [0; 16];
    for (to, from) in wide.iter_mut().zip(bytes) {
        *to = *from;
    }
    let number = u128::from_le_bytes(wide);
    match u64::try_from(number) {
        Ok(small) if bytes.len() <= 8 => small.into(),
        _ => number.to_string().into(),
    }
}

fn signed(bytes: &[u8]) -> Value {
    let negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut wide = if negative { [0xff; 16] } else { [0; 16] };
    for (to, from) in wide.iter_mut().zip(bytes) {
        *to = *from;
    }
    let number = i128::from_le_bytes(wide);
    match i64::try_from(number) {
        Ok(small) if bytes.len() <= 8 => small.into(),
        _ => number.to_string().into(),
    }
}

/// JSON knows no infinities and no NaN; they become text.
fn float(number: f64) -> Value {
    Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
}

#[cfg(test)]
mod tests;
