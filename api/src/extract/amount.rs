//! Token amounts in requests and answers: integers in smallest units, or their digits as strings.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        OneOfBuilder, RefOr, Schema,
        schema::{ObjectBuilder, Type},
    },
};

/// An amount in smallest units, 0 to 2^64 − 1: a JSON integer, or its decimal digits as a string for
/// callers whose numbers lose precision above 2^53. Floats, exponents and signs are refused, because
/// each of them has been a rounding error in somebody's money.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount(pub u64);

/// Pattern of the digits of an amount.
const DIGITS: &str = "^[0-9]{1,20}$";

/// An amount of an answer as a string of its digits, for callers whose numbers are exact only up to 2^53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits(pub u64);

impl Serialize for Digits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(itoa::Buffer::new().format(self.0))
    }
}

impl PartialSchema for Digits {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(DIGITS))
            .description(Some(
                "An amount in smallest units, 0 to 2^64 - 1: its digits.",
            ))
            .into()
    }
}

impl ToSchema for Digits {}

/// What every refusal of an amount says.
const RULE: &str =
    "must be an integer from 0 to 18446744073709551615, as a number or a string of digits";

impl Amount {
    /// Parses decimal digits.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits {
            return Err(RULE);
        }
        text.parse().map(Self).map_err(|_| RULE)
    }
}

/// The two forms of an amount.
fn schema(least: u64, digits: &str, description: &str) -> RefOr<Schema> {
    let integer = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(least))
        .maximum(Some(u64::MAX));
    let digits = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(digits));
    OneOfBuilder::new()
        .item(integer)
        .item(digits)
        .description(Some(description))
        .into()
}

impl PartialSchema for Amount {
    fn schema() -> RefOr<Schema> {
        schema(
            0,
            DIGITS,
            "An amount in smallest units, 0 to 2^64 - 1: a JSON integer or a string of its digits.",
        )
    }
}

impl ToSchema for Amount {}

/// Describes an [`Amount`] where zero is refused.
#[derive(Debug)]
pub struct PositiveAmount;

impl PartialSchema for PositiveAmount {
    fn schema() -> RefOr<Schema> {
        schema(
            1,
            "^0*[1-9][0-9]{0,19}$",
            "An amount in smallest units, 1 to 2^64 - 1: a JSON integer or a string of its digits.",
        )
    }
}

impl ToSchema for PositiveAmount {}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer from 0 to 18446744073709551615, or a string of its digits")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Amount, E> {
                Ok(Amount(value))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                Amount::parse(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_digit_strings_are_amounts() {
        for text in ["0", "18446744073709551615", "\"18446744073709551615\""] {
            assert!(serde_json::from_str::<Amount>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "1.0",
            "1e3",
            "-1",
            "18446744073709551616",
            "\"\"",
            "\"+1\"",
            "\"-1\"",
            "\"1.0\"",
            "\"1e3\"",
            "\" 1\"",
            "\"0x1\"",
            "null",
            "true",
            "[]",
        ] {
            assert!(serde_json::from_str::<Amount>(text).is_err(), "{text}");
        }
    }
}
