//! Transaction version as a body names it: `0`, `1`, or `"legacy"`.

use std::fmt;

use serde::{Deserialize, Deserializer, de};
use sluice_transaction::TransactionVersion;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        OneOfBuilder, RefOr, Schema,
        schema::{ObjectBuilder, Type},
    },
};

use crate::error::ApiError;

/// The version that a body asks for; a number, or its digit as a string.
#[derive(Clone, Copy, Debug)]
pub struct VersionName(TransactionVersion);

/// What every refusal of a version says.
const RULE: &str = r#"0, 1 or "legacy""#;

impl<'de> Deserialize<'de> for VersionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = VersionName;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(RULE)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<VersionName, E> {
                match number {
                    0 => Ok(VersionName(TransactionVersion::V0)),
                    1 => Ok(VersionName(TransactionVersion::V1)),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(number), &self)),
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<VersionName, E> {
                match text {
                    "legacy" => Ok(VersionName(TransactionVersion::Legacy)),
                    "0" => Ok(VersionName(TransactionVersion::V0)),
                    "1" => Ok(VersionName(TransactionVersion::V1)),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl PartialSchema for VersionName {
    fn schema() -> RefOr<Schema> {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .enum_values(Some([0, 1]));
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(["legacy", "0", "1"]));
        OneOfBuilder::new()
            .item(number)
            .item(text)
            .description(Some("Wire format of a transaction."))
            .into()
    }
}

impl ToSchema for VersionName {}

/// The version of a body, which `transactionVersion` and `asLegacyTransaction` may both name.
///
/// # Errors
/// When they contradict each other.
pub(super) fn version(
    named: Option<VersionName>,
    as_legacy: Option<bool>,
) -> Result<TransactionVersion, ApiError> {
    let Some(VersionName(version)) = named else {
        return Ok(match as_legacy {
            Some(true) => TransactionVersion::Legacy,
            Some(false) | None => TransactionVersion::default(),
        });
    };
    let is_legacy = version == TransactionVersion::Legacy;
    if as_legacy.is_some_and(|as_legacy| as_legacy != is_legacy) {
        let fault = "contradicts asLegacyTransaction; leave one of the two out";
        return Err(ApiError::invalid("transactionVersion", fault));
    }
    Ok(version)
}
