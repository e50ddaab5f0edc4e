//! JSON bodies, read strictly: limited in size, and refused with the path of the faulty field.

use std::{fmt, marker::PhantomData, time::Duration};

use axum::{
    body::{Bytes, to_bytes},
    extract::{FromRequest, Request},
    http::header,
};
use http_body_util::LengthLimitError;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::echo::echoed;
use crate::error::ApiError;

/// How long a body may take to arrive: bodies fit into a few packets, and one that drips holds a connection.
const BODY_DEADLINE: Duration = Duration::from_secs(10);

/// Longest description of a fault that an error repeats, in characters: parsers quote what they were given.
const MAX_FAULT_CHARS: usize = 300;

/// A value that is written as an object. A derived type alone would also take an array of its fields, which no one means.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// Reads a field that is an object, null or absent.
///
/// # Errors
/// For an array or a plain value.
pub fn optional_object<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let object = Option::<Object<T>>::deserialize(deserializer)?;
    Ok(object.map(|Object(value)| value))
}

/// A JSON body of type `T`, refused with the path of the faulty field. `T` should deny unknown fields.
/// `LIMIT` is the most bytes that are read.
#[derive(Debug)]
pub struct StrictJson<T, const LIMIT: usize>(pub T);

impl<S: Send + Sync, T: DeserializeOwned, const LIMIT: usize> FromRequest<S>
    for StrictJson<T, LIMIT>
{
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        read_json(request, LIMIT).await.map(Self)
    }
}

/// Like [`StrictJson`], for a limit that is known only when the program runs.
///
/// # Errors
/// Another media type than JSON, a body longer than `limit` bytes, or one that is no `T`.
pub async fn read_json<T: DeserializeOwned>(request: Request, limit: usize) -> Result<T, ApiError> {
    if !is_json(&request) {
        return Err(ApiError::UnsupportedMediaType);
    }
    parse(&read(request, limit).await?)
}

/// Like [`read_json`], with a default for requests without a body, which need no media type either.
///
/// # Errors
/// As [`read_json`].
pub async fn read_optional_json<T: DeserializeOwned + Default>(
    request: Request,
    limit: usize,
) -> Result<T, ApiError> {
    let is_json = is_json(&request);
    let body = read(request, limit).await?;
    if body.is_empty() {
        return Ok(T::default());
    }
    if !is_json {
        return Err(ApiError::UnsupportedMediaType);
    }
    parse(&body)
}

async fn read(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let declared = request
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(ApiError::BodyTooLarge { limit });
    }
    // Not by extracting `Bytes`, which has a limit of its own.
    let read = tokio::time::timeout(BODY_DEADLINE, to_bytes(request.into_body(), limit)).await;
    let read = read.map_err(|_| ApiError::BodyTimeout)?;
    read.map_err(|error| {
        if error.into_inner().is::<LengthLimitError>() {
            ApiError::BodyTooLarge { limit }
        } else {
            ApiError::InvalidBody("the body could not be read".to_owned())
        }
    })
}

fn is_json(request: &Request) -> bool {
    request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_or_else(|_| parse_with_path(body), |Object(value)| Ok(value))
}

/// Parses as `serde_json::from_slice` does, but keeps track of where it is, which takes twice the time: for a body that is
/// faulty.
fn parse_with_path<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let parsed = serde_path_to_error::deserialize::<_, Object<T>>(&mut deserializer);
    let Object(value) = parsed.map_err(|error| {
        let path = error.path().to_string();
        let fault = error.inner().to_string();
        if let Some((field, known)) = unknown_field(&path, &fault) {
            ApiError::UnknownField { field, known }
        } else if let Some(field) = missing_field(&path, &fault) {
            ApiError::invalid(shortened(&field), "must be given")
        } else if path == "." || error.inner().is_syntax() || error.inner().is_eof() {
            ApiError::InvalidBody(shortened(&fault))
        } else {
            ApiError::invalid(shortened(&path), shortened(&fault))
        }
    })?;
    deserializer
        .end()
        .map_err(|_| ApiError::InvalidBody("the body goes on after its JSON value".to_owned()))?;
    Ok(value)
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_FAULT_CHARS).collect()
}

/// The unknown field that serde's text is about, and the ones that it knows. The path is that of the field already.
fn unknown_field(path: &str, fault: &str) -> Option<(String, String)> {
    let (name, rest) = fault.strip_prefix("unknown field `")?.split_once('`')?;
    let known = rest.trim_start_matches(", expected ");
    let known = known.split(" at line ").next().unwrap_or(known);
    let field = if path == "." { name } else { path };
    Some((
        echoed(field),
        known.trim_start_matches("one of ").replace('`', ""),
    ))
}

/// The field without which serde's text says that there is no value. The path is that of the object that lacks it.
fn missing_field(path: &str, fault: &str) -> Option<String> {
    let (name, _) = fault.strip_prefix("missing field `")?.split_once('`')?;
    Some(match path {
        "." => name.to_owned(),
        object => format!("{object}.{name}"),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use axum::body::Body;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[expect(dead_code, reason = "only its parsing is looked at")]
        inner: Inner,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[expect(dead_code, reason = "only its parsing is looked at")]
        amount: u64,
    }

    fn request(body: String, declared: Option<usize>) -> Request {
        let mut request = Request::builder().header(header::CONTENT_TYPE, "application/json");
        if let Some(length) = declared {
            request = request.header(header::CONTENT_LENGTH, length);
        }
        request.body(Body::from(body)).expect("a request")
    }

    #[tokio::test]
    async fn the_limit_asked_for_is_the_one_that_holds() {
        const LIMIT: usize = 8 * 1024 * 1024;
        let text = |length: usize| format!("{{\"a\":\"{}\"}}", "a".repeat(length - 8));
        let read = async |length, declared| {
            let request = request(text(length), declared);
            let read = read_json::<HashMap<String, String>>(request, LIMIT).await;
            read.map(|read| read["a"].clone())
        };
        assert_eq!(read(LIMIT, None).await.expect("fits").len(), LIMIT - 8);
        for declared in [None, Some(LIMIT + 1)] {
            let error = read(LIMIT + 1, declared).await.expect_err("too long");
            assert_eq!(error.code(), "body_too_large");
        }
    }

    #[test]
    fn an_array_is_no_object_and_a_fault_is_not_repeated_at_length() {
        #[derive(Debug, Deserialize)]
        struct Whole {
            #[serde(default, deserialize_with = "optional_object")]
            part: Option<Inner>,
        }
        let error = |body: &str| parse::<Whole>(body.as_bytes()).expect_err("refused");
        assert_eq!(error("[null]").code(), "invalid_body");
        let nested = error(r#"{"part":[1]}"#);
        assert_eq!(nested.code(), "invalid_field");
        assert!(nested.to_string().starts_with("part: "), "{nested}");
        let long = error(&format!(
            r#"{{"part":{{"amount":"{}"}}}}"#,
            "x".repeat(9_000)
        ));
        assert!(long.to_string().len() < 400, "{long}");
        let parse = |body: &str| parse::<Whole>(body.as_bytes()).expect("an object").part;
        assert!(parse("{}").is_none() && parse(r#"{"part":null}"#).is_none());
        assert!(parse(r#"{"part":{"amount":7}}"#).is_some());
    }

    #[test]
    fn a_fault_names_the_path_of_its_field() {
        let error =
            parse_with_path::<Outer>(br#"{"inner":{"amount":"x"}}"#).expect_err("not a number");
        assert!(error.to_string().starts_with("inner.amount: "), "{error}");
        let error =
            parse_with_path::<Outer>(br#"{"inner":{"amount":1,"more":2}}"#).expect_err("unknown");
        assert_eq!(error.code(), "unknown_field");
        let text = error.to_string();
        assert!(
            text.starts_with("inner.more is not") && text.ends_with("amount"),
            "{text}"
        );
        let error = parse_with_path::<Outer>(br#"{"outer":1}"#).expect_err("unknown");
        assert!(error.to_string().starts_with("outer is not"), "{error}");
        for (body, missing) in [
            ("{}", "inner: must"),
            (r#"{"inner":{}}"#, "inner.amount: must"),
        ] {
            let error = parse_with_path::<Outer>(body.as_bytes()).expect_err("missing");
            assert_eq!(error.code(), "invalid_field");
            assert!(error.to_string().starts_with(missing), "{error}");
        }
        assert!(parse_with_path::<Outer>(br#"{"inner":{"amount":1}} x"#).is_err());
    }
}
