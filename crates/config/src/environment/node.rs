//! Node: a value of the configuration, of the file or of a variable, from which settings are deserialized.
//!
//! A file says of each value whether it is text or a number; of a variable only its setting knows. So text is read as what
//! is asked of it.

use std::{collections::BTreeMap, fmt::Display, str::FromStr};

use serde::{
    Deserializer,
    de::{
        Error as _, IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use toml::de::Error;

/// A value, and what is below it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// Of a variable.
    Text(String),
    /// Of the file: no list and no table.
    Scalar(toml::Value),
    /// A list of either.
    List(Vec<Self>),
    /// A section of either.
    Table(BTreeMap<String, Self>),
}

impl Node {
    /// A section without settings.
    pub(super) const fn empty() -> Self {
        Self::Table(BTreeMap::new())
    }
}

impl From<toml::Value> for Node {
    fn from(value: toml::Value) -> Self {
        match value {
            toml::Value::Array(elements) => {
                Self::List(elements.into_iter().map(Self::from).collect())
            }
            toml::Value::Table(entries) => {
                let entries = entries.into_iter();
                Self::Table(entries.map(|(key, value)| (key, value.into())).collect())
            }
            scalar => Self::Scalar(scalar),
        }
    }
}

impl IntoDeserializer<'_, Error> for Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Text as a number or a flag.
fn parsed<T: FromStr<Err: Display>>(text: &str, wanted: &'static str) -> Result<T, Error> {
    // The text may be a secret that was given to the wrong setting.
    text.trim()
        .parse()
        .map_err(|_| Error::custom(format_args!("the variable's value is not {wanted}")))
}

/// Text as the file would write a value.
fn toml_value(text: &str) -> Option<toml::Value> {
    let mut table = toml::from_str::<toml::Table>(&format!("value = {text}")).ok()?;
    let value = table.remove("value");
    value.filter(|_| table.is_empty())
}

/// A method that reads text as text, and leaves all else to what it is.
macro_rules! text {
    ($($method:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self {
                Self::Text(text) => visitor.visit_string(text),
                other => other.deserialize_any(visitor),
            }
        }
    )*};
}

/// A method that reads text as a whole number, and leaves all else to what it is.
macro_rules! whole_number {
    ($($method:ident: $type:ty => $visit:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self {
                Self::Text(text) => visitor.$visit(parsed::<$type>(&text, "a whole number that fits")?),
                other => other.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Node {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            // A setting of several forms takes it as the file would: what is no TOML is text.
            Self::Text(text) => match toml_value(&text) {
                Some(value) => value.deserialize_any(visitor),
                None => visitor.visit_string(text),
            },
            Self::Scalar(value) => value.deserialize_any(visitor),
            Self::List(elements) => {
                let mut list = SeqDeserializer::new(elements.into_iter());
                let value = visitor.visit_seq(&mut list)?;
                list.end()?;
                Ok(value)
            }
            Self::Table(entries) => {
                let mut table = MapDeserializer::new(entries.into_iter());
                let value = visitor.visit_map(&mut table)?;
                table.end()?;
                Ok(value)
            }
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Text(text) => visitor.visit_bool(parsed(&text, "true or false")?),
            other => other.deserialize_any(visitor),
        }
    }

    text! {
        deserialize_str,
        deserialize_string,
    }

    whole_number! {
        deserialize_u8: u8 => visit_u8,
        deserialize_u16: u16 => visit_u16,
        deserialize_u32: u32 => visit_u32,
        deserialize_u64: u64 => visit_u64,
        deserialize_i8: i8 => visit_i8,
        deserialize_i16: i16 => visit_i16,
        deserialize_i32: i32 => visit_i32,
        deserialize_i64: i64 => visit_i64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    /// Text is a list as the file would write it.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let Self::Text(text) = self else {
            return self.deserialize_any(visitor);
        };
        match toml_value(&text).filter(toml::Value::is_array) {
            Some(list) => Self::from(list).deserialize_any(visitor),
            None => Err(Error::custom(
                "the variable's value is not a list such as [1, 2] or [\"a\", \"b\"]",
            )),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Text(text) | Self::Scalar(toml::Value::String(text)) => {
                visitor.visit_enum(text.into_deserializer())
            }
            _ => Err(Error::custom("must be one of the names that are listed")),
        }
    }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct map struct identifier ignored_any
    }
}
