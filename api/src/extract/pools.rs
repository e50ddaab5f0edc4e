//! Pools of a route in requests and answers: one address, or two joined by a comma.

use serde::{Serialize, Serializer};
use solana_pubkey::Pubkey;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{ObjectBuilder, Type},
    },
};

use super::pubkey::{Address, parse_pubkey};
use crate::error::ApiError;

/// The pools that a swap goes through, in the order of the swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pools {
    /// One.
    One(Pubkey),
    /// Two, which have a token in common.
    Two(Pubkey, Pubkey),
}

impl Pools {
    /// Parses the value of `field`.
    ///
    /// # Errors
    /// [`ApiError::InvalidField`] when it is neither one address nor two different ones.
    pub fn parse(field: &str, text: &str) -> Result<Self, ApiError> {
        let Some((first, second)) = text.split_once(',') else {
            return parse_pubkey(field, text).map(Self::One);
        };
        let both = (parse_pubkey(field, first)?, parse_pubkey(field, second)?);
        if both.0 == both.1 {
            let fault = "names one pool twice; a route of two needs two different ones";
            return Err(ApiError::invalid(field, fault));
        }
        Ok(Self::Two(both.0, both.1))
    }

    /// The same, as it is written.
    #[must_use]
    pub fn text(self) -> PoolsText {
        match self {
            Self::One(pool) => PoolsText(Address::new(&pool), None),
            Self::Two(first, second) => {
                PoolsText(Address::new(&first), Some(Address::new(&second)))
            }
        }
    }
}

impl std::fmt::Display for Pools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::One(pool) => pool.fmt(f),
            Self::Two(first, second) => write!(f, "{first},{second}"),
        }
    }
}

/// [`Pools`] on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolsText(Address, Option<Address>);

impl PoolsText {
    /// The address of the only pool or of the first, and that of the second.
    #[must_use]
    pub const fn addresses(&self) -> (&Address, Option<&Address>) {
        (&self.0, self.1.as_ref())
    }
}

impl Serialize for PoolsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self(only, None) => only.serialize(serializer),
            Self(first, Some(second)) => {
                serializer.collect_str(&format_args!("{first:?},{second:?}"))
            }
        }
    }
}

impl PartialSchema for PoolsText {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(
                "^[1-9A-HJ-NP-Za-km-z]{32,44}(,[1-9A-HJ-NP-Za-km-z]{32,44})?$",
            ))
            .description(Some(
                "The pool of a swap; of two hops the addresses of both pools, in the order of the swap, joined by a comma.",
            ))
            .into()
    }
}

impl ToSchema for PoolsText {
    fn name() -> std::borrow::Cow<'static, str> {
        "Pools".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nothing_else_is() {
        let (a, b) = (Pubkey::from([1; 32]), Pubkey::from([2; 32]));
        for pools in [Pools::One(a), Pools::Two(a, b), Pools::Two(b, a)] {
            let text = serde_json::to_value(pools.text()).expect("a text");
            let text = text.as_str().expect("a text").to_owned();
            assert_eq!(text, pools.to_string());
            assert_eq!(Pools::parse("pool", &text).ok(), Some(pools));
        }
        let twice = format!("{a},{a}");
        let three = format!("{a},{b},{a}");
        for text in [
            "",
            ",",
            "A",
            &format!("{a},"),
            &format!(",{a}"),
            &format!("{a}, {b}"),
            &twice,
            &three,
        ] {
            let code = Pools::parse("pool", text).map_err(|error| error.code());
            assert_eq!(code, Err("invalid_field"), "{text}");
        }
    }
}
