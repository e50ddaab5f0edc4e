//! Schema of the transaction's body: a swap request whose quote is complete.
//!
//! Everything else of the two swap bodies is the same, and said once.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{Ref, RefOr, Schema, schema::Object},
};

use super::{SwapRequest, quote_input::QuoteInput};
use crate::extract::{PoolsText, PositiveAmount};

/// Body of `POST /v1/swap/transaction`: a [`SwapRequest`] whose quote is complete.
pub struct TransactionRequest;

impl PartialSchema for TransactionRequest {
    fn schema() -> RefOr<Schema> {
        changed(SwapRequest::schema(), |body| {
            body.description = Some("Body of `POST /v1/swap/transaction`.".to_owned());
            set(body, "quote", PinnedQuote::name().as_ref(), None);
        })
    }
}

impl ToSchema for TransactionRequest {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        SwapRequest::schemas(schemas);
        schemas.push((PinnedQuote::name().into_owned(), PinnedQuote::schema()));
    }
}

/// A [`QuoteInput`] that names its pool and its bounds.
struct PinnedQuote;

impl PartialSchema for PinnedQuote {
    fn schema() -> RefOr<Schema> {
        changed(QuoteInput::schema(), |quote| {
            quote.description = Some("A quote as `/v1/quote` answered it.".to_owned());
            set(
                quote,
                "minimumOut",
                PositiveAmount::name().as_ref(),
                Some("What the chain enforces, as it stands. At most `outAmount`."),
            );
            set(quote, "pool", PoolsText::name().as_ref(), None);
            let required = ["amountIn", "minimumOut", "pool"];
            quote.required.extend(required.map(str::to_owned));
        })
    }
}

impl ToSchema for PinnedQuote {}

fn changed(mut schema: RefOr<Schema>, change: impl FnOnce(&mut Object)) -> RefOr<Schema> {
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        change(object);
    }
    schema
}

fn set(object: &mut Object, property: &str, schema: &str, description: Option<&str>) {
    let mut reference = Ref::from_schema_name(schema);
    if let Some(description) = description {
        description.clone_into(&mut reference.description);
    }
    object
        .properties
        .insert(property.to_owned(), RefOr::Ref(reference));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn json<T: PartialSchema>() -> Value {
        serde_json::to_value(T::schema()).expect("a schema is JSON")
    }

    #[test]
    fn only_the_quote_of_a_transaction_must_be_complete() {
        let (body, quote) = (json::<TransactionRequest>(), json::<PinnedQuote>());
        assert_eq!(
            body["properties"]["quote"]["$ref"],
            "#/components/schemas/PinnedQuote"
        );
        assert_eq!(body["required"], json!(["quote", "userPublicKey"]));
        let required = ["inputMint", "outputMint", "amountIn", "minimumOut", "pool"];
        assert_eq!(quote["required"], json!(required));
        for schema in [body, quote, json::<QuoteInput>()] {
            assert_eq!(schema["additionalProperties"], false);
        }
    }
}
