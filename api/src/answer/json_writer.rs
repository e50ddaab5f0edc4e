//! JSON writer: the text that `serde_json` writes, made for answers.
//!
//! Most of an answer is names of fields, which need no escape, and addresses and amounts, which hardly ever do. What has
//! none is copied as it is; of everything else `serde_json` makes the text.

use serde::{
    Serialize,
    ser::{self, Error as _, Serializer},
};
use serde_json::Error;

/// So many bytes of a text are looked at together.
const BLOCK: usize = 16;

/// Writes a value behind what is in the buffer.
///
/// # Errors
/// As `serde_json`: of a map whose keys are no texts.
pub fn write(text: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Error> {
    value.serialize(JsonWriter { text })
}

/// Writes one value.
struct JsonWriter<'a> {
    text: &'a mut Vec<u8>,
}

/// Writes what is between two brackets.
struct Members<'a> {
    text: &'a mut Vec<u8>,
    is_first: bool,
    closing: &'static [u8],
}

impl<'a> JsonWriter<'a> {
    fn open(self, opening: u8, closing: &'static [u8]) -> Members<'a> {
        self.text.push(opening);
        Members {
            text: self.text,
            is_first: true,
            closing,
        }
    }

    /// Opens an object of one member, whose value is to be written.
    fn variant(self, name: &'static str) -> Self {
        self.text.push(b'{');
        key(self.text, name);
        self
    }
}

/// The name of a field and what stands behind it. Names are those of our own types, and none has an escape.
#[inline]
fn key(text: &mut Vec<u8>, name: &'static str) {
    text.push(b'"');
    text.extend_from_slice(name.as_bytes());
    text.extend_from_slice(b"\":");
}

/// Whether a text is the same in JSON.
fn needs_no_escape(bytes: &[u8]) -> bool {
    let is_plain = |block: &[u8]| {
        let escaped = block.iter().fold(false, |escaped, byte| {
            escaped | (*byte < b' ') | (*byte == b'"') | (*byte == b'\\')
        });
        !escaped
    };
    // Blocks of one length are compared at once, not byte by byte; the last one reaches back into the one before.
    match bytes.last_chunk::<BLOCK>() {
        None => is_plain(bytes),
        Some(last) => {
            let (blocks, _) = bytes.as_chunks::<BLOCK>();
            blocks.iter().chain([last]).all(|block| is_plain(block))
        }
    }
}

impl<'a> Serializer for JsonWriter<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Members<'a>;
    type SerializeTuple = Members<'a>;
    type SerializeTupleStruct = Members<'a>;
    type SerializeTupleVariant = Members<'a>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Members<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        let word: &[u8] = if value { b"true" } else { b"false" };
        self.text.extend_from_slice(word);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), Error> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Error> {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(value).as_bytes();
        self.text.extend_from_slice(digits);
        Ok(())
    }

    fn serialize_u8(self, value: u8) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), Error> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(value).as_bytes();
        self.text.extend_from_slice(digits);
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        serde_json::to_writer(self.text, &value)
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        serde_json::to_writer(self.text, &value)
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        if !needs_no_escape(value.as_bytes()) {
            return serde_json::to_writer(self.text, value);
        }
        self.text.push(b'"');
        self.text.extend_from_slice(value.as_bytes());
        self.text.push(b'"');
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.text.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let Self { text } = self.variant(variant);
        write(text, &value)?;
        text.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.open(b'[', b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.open(b'[', b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.open(b'[', b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(self.variant(variant).open(b'[', b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, Error> {
        Ok(self.open(b'{', b"}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Members<'a>, Error> {
        Ok(self.open(b'{', b"}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Members<'a>, Error> {
        Ok(self.variant(variant).open(b'{', b"}}"))
    }
}

impl Members<'_> {
    #[inline]
    fn next(&mut self) {
        if !self.is_first {
            self.text.push(b',');
        }
        self.is_first = false;
    }

    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        self.next();
        write(self.text, &value)
    }

    #[inline]
    fn field(
        &mut self,
        name: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Error> {
        self.next();
        key(self.text, name);
        write(self.text, &value)
    }

    fn close(self) {
        self.text.extend_from_slice(self.closing);
    }
}

impl ser::SerializeSeq for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeTuple for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeTupleStruct for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeTupleVariant for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), Error> {
        self.next();
        let begin = self.text.len();
        write(self.text, &name)?;
        if self.text.get(begin) != Some(&b'"') {
            return Err(Error::custom("a key of a map is no text"));
        }
        self.text.push(b':');
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        write(self.text, &value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.field(name, value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeStructVariant for Members<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.field(name, value)
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Everything<'a> {
        nothing: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u8>,
        flags: (bool, bool, ()),
        least: (i8, i16, i32, i64),
        most: (u8, u16, u32, u64),
        broken: (f32, f64, f64),
        letter: char,
        variants: Vec<Variant>,
        none: [u8; 0],
        empty: BTreeMap<String, u8>,
        texts: Vec<&'a str>,
        value: serde_json::Value,
    }

    #[derive(Serialize)]
    struct Newtype(u8);

    #[derive(Serialize)]
    struct Pair(u8, u8);

    #[derive(Serialize)]
    enum Variant {
        Unit,
        Newtype(Newtype),
        Tuple(Pair, u8),
        Struct { a: u8, b: &'static str },
    }

    #[test]
    fn the_text_is_that_of_serde_json() {
        let texts = [
            "",
            "short",
            "exactly sixteen.",
            "an address of base58, which has forty-four..",
        ];
        let everything = Everything {
            nothing: None,
            left_out: None,
            flags: (true, false, ()),
            least: (i8::MIN, i16::MIN, i32::MIN, i64::MIN),
            most: (u8::MAX, u16::MAX, u32::MAX, u64::MAX),
            broken: (0.1, 1e300, f64::NAN),
            letter: '"',
            variants: vec![
                Variant::Unit,
                Variant::Newtype(Newtype(1)),
                Variant::Tuple(Pair(2, 3), 4),
                Variant::Struct { a: 5, b: "six" },
            ],
            none: [],
            empty: BTreeMap::new(),
            texts: texts.into(),
            value: json!({ "a \"key\"": [1, -1, 1.5, null, true, { "deep": {} }] }),
        };
        assert_same(&everything);
    }

    #[test]
    fn an_escape_is_found_wherever_it_stands() {
        for length in 0..50 {
            for at in 0..length {
                for escaped in ["\"", "\\", "\n", "\u{0}", "\u{1f}", "é", "\u{7f}", "🦥"] {
                    let mut text = "x".repeat(length);
                    text.replace_range(at..=at, escaped);
                    assert_same(&text);
                }
            }
        }
    }

    #[test]
    fn a_key_that_is_no_text_is_refused() {
        let of_number = BTreeMap::from([(7, "seven")]);
        assert!(write(&mut Vec::new(), &of_number).is_err());
    }

    fn assert_same(value: &impl Serialize) {
        let mut text = Vec::new();
        write(&mut text, value).expect("a text");
        let expected = serde_json::to_vec(value).expect("a text");
        assert_eq!(
            String::from_utf8_lossy(&text),
            String::from_utf8_lossy(&expected)
        );
    }
}
