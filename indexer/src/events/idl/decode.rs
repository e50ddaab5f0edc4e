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
mod tests {
    use serde_json::json;

    use super::*;

    const IDL: &str = r#"{
        "address": "11111111111111111111111111111112",
        "events": [
            {"name": "Everything", "discriminator": [1]},
            {"name": "Empty", "discriminator": [2]},
            {"name": "Units", "discriminator": [3]},
            {"name": "Nested", "discriminator": [4]}
        ],
        "types": [
            {"name": "Everything", "type": {"kind": "struct", "fields": [
                {"name": "flag", "type": "bool"},
                {"name": "small", "type": "u8"},
                {"name": "minus", "type": "i16"},
                {"name": "most_u64", "type": "u64"},
                {"name": "least_i64", "type": "i64"},
                {"name": "huge", "type": "u128"},
                {"name": "low", "type": "i128"},
                {"name": "half", "type": "f64"},
                {"name": "key", "type": "pubkey"},
                {"name": "text", "type": "string"},
                {"name": "raw", "type": "bytes"},
                {"name": "some", "type": {"option": "u8"}},
                {"name": "none", "type": {"option": "u8"}},
                {"name": "list", "type": {"vec": {"defined": {"name": "Point"}}}},
                {"name": "pair", "type": {"array": ["u16", 2]}},
                {"name": "side", "type": {"defined": {"name": "Side"}}},
                {"name": "other", "type": {"defined": {"name": "Side"}}},
                {"name": "third", "type": {"defined": {"name": "Side"}}},
                {"name": "alias", "type": {"defined": {"name": "Lamports"}}}
            ]}},
            {"name": "Empty", "type": {"kind": "struct"}},
            {"name": "Units", "type": {"kind": "struct", "fields": [
                {"name": "units", "type": {"vec": {"defined": {"name": "Empty"}}}}]}},
            {"name": "Nested", "type": {"kind": "struct", "fields": [
                {"name": "next", "type": {"option": {"defined": {"name": "Nested"}}}}]}},
            {"name": "Point", "type": {"kind": "struct", "fields": ["u8", "u8"]}},
            {"name": "Side", "type": {"kind": "enum", "variants": [
                {"name": "Buy"},
                {"name": "Sell", "fields": [{"name": "at_least", "type": "u8"}]},
                {"name": "Swap", "fields": ["u8", "bool"]}
            ]}},
            {"name": "Lamports", "type": {"kind": "type", "alias": "u32"}}
        ]
    }"#;

    fn schema() -> Schema {
        Schema::parse(IDL).expect("an IDL").1
    }

    fn everything() -> Vec<u8> {
        let mut data = vec![1, 1, 200];
        data.extend((-2i16).to_le_bytes());
        data.extend(u64::MAX.to_le_bytes());
        data.extend(i64::MIN.to_le_bytes());
        data.extend(u128::MAX.to_le_bytes());
        data.extend(i128::MIN.to_le_bytes());
        data.extend(0.5f64.to_le_bytes());
        data.extend([7; 32]);
        data.extend([3, 0, 0, 0, b'a', 0xc3, 0xa4]);
        data.extend([2, 0, 0, 0, 0xff, 0x00]);
        data.extend([1, 9, 0]);
        data.extend([2, 0, 0, 0, 1, 2, 3, 4]);
        data.extend([5, 0, 6, 0]);
        data.extend([0]);
        data.extend([1, 8]);
        data.extend([2, 8, 1]);
        data.extend(1_000_000u32.to_le_bytes());
        data
    }

    #[test]
    fn every_type_is_read() {
        let schema = schema();
        let (name, fields) = event(&schema, &everything()).expect("fits");
        assert_eq!(name, "Everything");
        let expected = json!({
            "flag": true,
            "small": 200,
            "minus": -2,
            "mostU64": u64::MAX,
            "leastI64": i64::MIN,
            "huge": "340282366920938463463374607431768211455",
            "low": "-170141183460469231731687303715884105728",
            "half": 0.5,
            "key": Pubkey::new_from_array([7; 32]).to_string(),
            "text": "a\u{e4}",
            "raw": "/wA=",
            "some": 9,
            "none": null,
            "list": [[1, 2], [3, 4]],
            "pair": [5, 6],
            "side": "Buy",
            "other": {"Sell": {"atLeast": 8}},
            "third": {"Swap": [8, true]},
            "alias": 1_000_000,
        });
        assert_eq!(fields, expected);
    }

    #[test]
    fn small_numbers_of_wide_types_are_texts_too() {
        assert_eq!(unsigned(&5u128.to_le_bytes()), json!("5"));
        assert_eq!(signed(&(-5i128).to_le_bytes()), json!("-5"));
        assert_eq!(float(f64::NAN), json!("NaN"));
    }

    #[test]
    fn what_does_not_fit_to_the_last_byte_is_left_alone() {
        let (schema, whole) = (schema(), everything());
        for length in 0..whole.len() {
            assert_eq!(event(&schema, &whole[..length]), None, "{length}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert_eq!(event(&schema, &longer), None);
        let mut no_flag = whole;
        no_flag[1] = 2;
        assert_eq!(event(&schema, &no_flag), None, "a flag of 2");
        assert_eq!(event(&schema, &[9, 1]), None, "an unknown discriminator");
        assert_eq!(event(&schema, &[2]).map(|(name, _)| name), Some("Empty"));
    }

    #[test]
    fn lengths_that_lie_cost_nothing() {
        let schema = schema();
        assert_eq!(event(&schema, &[3, 0xff, 0xff, 0xff, 0xff]), None);
        let (_, fields) = event(&schema, &[3, 2, 0, 0, 0]).expect("two empty values");
        assert_eq!(fields, json!({"units": [[], []]}));
    }

    #[test]
    fn a_type_within_itself_is_followed_to_the_bound_and_no_further() {
        let schema = schema();
        assert!(event(&schema, &[4, 1, 1, 0]).is_some());
        let mut deep = vec![4];
        deep.extend([1; 10_000]);
        deep.push(0);
        assert_eq!(event(&schema, &deep), None);
    }

    #[test]
    fn random_bytes_never_panic() {
        let schema = schema();
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..20_000 {
            let mut data = Vec::new();
            for _ in 0..64 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                data.push(state.to_le_bytes()[3]);
            }
            data[0] = 1 + data[0] % 4;
            let _ = event(&schema, &data);
        }
    }
}
