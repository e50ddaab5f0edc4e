//! Payloads: the body of a message as it is delivered, with its data or without (pure).

use std::borrow::Cow;

use sluice_store::DeliveryOptions;

/// What comes before the data of every message. The members before it are made of letters, digits and `_-:.`, so it is found
/// nowhere else before.
const BEFORE_DATA: &str = ",\"data\":";

/// The body to deliver: as it is stored; or, where these options ask for it, without `data`, and with `dataBytes`, the length of
/// what is left out, in its place.
#[must_use]
pub fn payload<'a>(body: &'a str, options: &DeliveryOptions) -> Cow<'a, str> {
    if !options.thins(body.len()) {
        return Cow::Borrowed(body);
    }
    match body.split_once(BEFORE_DATA) {
        Some((head, data)) => {
            let bytes = data.len().saturating_sub(1);
            Cow::Owned(format!("{head},\"dataBytes\":{bytes}}}"))
        }
        None => Cow::Borrowed(body),
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::Payload;

    use super::*;

    const BODY: &str =
        r#"{"type":"gap","sequence":3,"slot":4,"data":{"a":",\"data\":1","data":{}}}"#;

    fn options(payload: Payload, max_payload_bytes: Option<u32>) -> DeliveryOptions {
        DeliveryOptions {
            payload,
            max_payload_bytes,
            ..DeliveryOptions::default()
        }
    }

    #[test]
    fn a_thin_body_has_every_member_but_the_data_and_its_length() {
        let thin = payload(BODY, &options(Payload::Thin, None));
        assert_eq!(
            thin,
            r#"{"type":"gap","sequence":3,"slot":4,"dataBytes":29}"#
        );
    }

    #[test]
    fn a_body_within_the_limit_is_as_it_is_stored() {
        let length = u32::try_from(BODY.len()).expect("short");
        assert_eq!(payload(BODY, &DeliveryOptions::default()), BODY);
        assert_eq!(payload(BODY, &options(Payload::Full, Some(length))), BODY);
        let cut = payload(BODY, &options(Payload::Full, Some(length - 1)));
        assert!(cut.ends_with(r#""dataBytes":29}"#), "{cut}");
    }
}
