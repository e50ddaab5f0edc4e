//! Extensions of a mint by their names, as answers show them.

use std::borrow::Cow;

use cpmm::{Mint, extension_name};
use serde::Serialize;
use utoipa::ToSchema;

/// Extensions of a mint, as Token-2022 names them, in the order of their numbers; one that this service does not know by its
/// number.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MintExtensions, value_type = Vec<String>)]
pub struct Extensions(Vec<Cow<'static, str>>);

impl Extensions {
    /// Those of a mint.
    #[must_use]
    pub fn of(mint: &Mint) -> Self {
        let known = mint.extensions();
        let name = |kind: u16| match extension_name(kind) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(kind.to_string()),
        };
        let unsupported = mint.unsupported_extension;
        let further = unsupported.filter(|kind| !known.iter().any(|other| other == *kind));
        Self(known.iter().chain(further).map(name).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_named_and_those_without_a_name_numbered() {
        let mut mint = Mint::plain(6, 1);
        assert_eq!(Extensions::of(&mint), Extensions(Vec::new()));
        mint.other_extensions = mint.other_extensions.with(63).with(14).with(18);
        mint.unsupported_extension = Some(700);
        let names = ["MetadataPointer", "63", "700"].map(Cow::from);
        let names = [Cow::from("TransferHook")].into_iter().chain(names);
        assert_eq!(Extensions::of(&mint), Extensions(names.collect()));
    }
}
