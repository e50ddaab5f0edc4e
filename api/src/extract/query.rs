//! Query strings without surprises: unknown and repeated parameters are refused, not ignored.

use std::collections::BTreeMap;

use url::form_urlencoded;

use crate::error::ApiError;

/// The parameters of one request, by name.
#[derive(Debug)]
pub struct QueryMap(BTreeMap<String, String>);

impl QueryMap {
    /// Reads a query string that may hold only `known` parameters.
    ///
    /// # Errors
    /// [`ApiError::UnknownField`] for any other parameter, [`ApiError::InvalidField`] for a repeated one.
    pub fn parse(query: &str, known: &[&str]) -> Result<Self, ApiError> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if !known.contains(&name.as_ref()) {
                return Err(ApiError::UnknownField {
                    field: name.into_owned(),
                    known: known.join(", "),
                });
            }
            let name = name.into_owned();
            if parameters
                .insert(name.clone(), value.into_owned())
                .is_some()
            {
                return Err(ApiError::invalid(name, "is given twice; give it once"));
            }
        }
        Ok(Self(parameters))
    }

    /// The value of an optional parameter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The value of a required parameter.
    ///
    /// # Errors
    /// [`ApiError::MissingField`] when it is absent.
    pub fn require(&self, name: &'static str) -> Result<&str, ApiError> {
        self.get(name).ok_or(ApiError::MissingField { field: name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_parameters_are_decoded() {
        let query = QueryMap::parse("a=1%202&b=", &["a", "b"]).expect("valid");
        assert_eq!(query.get("a"), Some("1 2"));
        assert_eq!(query.require("b").ok(), Some(""));
        assert!(matches!(
            query.require("c"),
            Err(ApiError::MissingField { field: "c" })
        ));
    }

    #[test]
    fn unknown_and_repeated_parameters_are_refused_by_name() {
        let unknown = QueryMap::parse("slipageBps=1", &["slippageBps"]).expect_err("misspelt");
        assert!(unknown.to_string().contains("slipageBps"));
        assert!(QueryMap::parse("a=1&a=2", &["a"]).is_err());
    }
}
