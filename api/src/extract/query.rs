//! Query strings, read strictly: unknown and repeated parameters are refused.

use std::{borrow::Cow, iter};

use memchr::{memchr, memchr2};
use url::form_urlencoded;

use super::echo::echoed;
use crate::error::ApiError;

/// The parameters of one request. No endpoint has more than a handful, so a list is searched faster than a map is
/// made; text without escapes is not copied.
#[derive(Debug)]
pub struct QueryMap<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> QueryMap<'a> {
    /// Reads a query string that may hold only `known` parameters.
    ///
    /// # Errors
    /// [`ApiError::UnknownField`] for any other parameter, [`ApiError::InvalidField`] for a repeated one.
    pub fn parse(query: &'a str, known: &[&str]) -> Result<Self, ApiError> {
        let mut parameters = Self(Vec::with_capacity(known.len()));
        for (name, value) in pairs(query) {
            if !known.contains(&name.as_ref()) {
                return Err(ApiError::UnknownField {
                    field: echoed(&name),
                    known: known.join(", "),
                });
            }
            if parameters.get(&name).is_some() {
                return Err(ApiError::invalid(
                    echoed(&name),
                    "is given twice; give it once",
                ));
            }
            parameters.0.push((name, value));
        }
        Ok(parameters)
    }

    /// The value of an optional parameter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut parameters = self.0.iter();
        let (_, value) = parameters.find(|(known, _)| known == name)?;
        Some(value)
    }

    /// The value of a required parameter.
    ///
    /// # Errors
    /// [`ApiError::MissingField`] when it is absent.
    pub fn require(&self, name: &'static str) -> Result<&str, ApiError> {
        self.get(name).ok_or(ApiError::MissingField { field: name })
    }
}

/// Names and values, decoded. Without an escape, which hardly any query of addresses and numbers has, they are where
/// they are.
fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    let (plain, escaped) = match memchr2(b'%', b'+', query.as_bytes()) {
        None => (query, ""),
        Some(_) => ("", query),
    };
    plain_pairs(plain)
        .map(|(name, value)| (name.into(), value.into()))
        .chain(form_urlencoded::parse(escaped.as_bytes()))
}

/// Names and values without escapes.
fn plain_pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = query;
    let pairs = iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (pair, others) = cut(rest, b'&');
        rest = others;
        Some(pair)
    });
    pairs
        .filter(|pair| !pair.is_empty())
        .map(|pair| cut(pair, b'='))
}

/// What is before the first such character, which is ASCII, and what behind it; everything and nothing where there is none.
fn cut(text: &str, character: u8) -> (&str, &str) {
    let at = memchr(character, text.as_bytes());
    at.and_then(|at| Some((text.get(..at)?, text.get(at + 1..)?)))
        .unwrap_or((text, ""))
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
    fn text_without_escapes_is_read_like_text_with_them() {
        for query in ["", "a", "a=", "=b", "a=b=c", "&&a=1&", "a=1&b=2&a=3"] {
            let escaped: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
            assert_eq!(pairs(query).collect::<Vec<_>>(), escaped, "{query:?}");
        }
    }

    #[test]
    fn unknown_and_repeated_parameters_are_refused_by_name() {
        let unknown = QueryMap::parse("slipageBps=1", &["slippageBps"]).expect_err("misspelt");
        assert!(unknown.to_string().contains("slipageBps"));
        assert!(QueryMap::parse("a=1&a=2", &["a"]).is_err());
    }
}
