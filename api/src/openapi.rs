//! The OpenAPI document: written from the types that the routes take and give, so that it cannot say something else.

use utoipa::OpenApi;

use crate::{
    error::ProblemBody,
    market::QuoteCommitment,
    routes::{health, quote, swap, webhooks},
};

/// Title and routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sluice",
        description = "Exact quotes, ready-to-sign transactions and bare instructions for swaps on one exchange, and \
                       signed webhooks about what happens there. Amounts are in smallest units. Every error is a \
                       problem document (RFC 9457) with a stable `code`.",
    ),
    paths(
        quote::get::get,
        swap::transaction::transaction,
        swap::instruction::instruction,
        health::live,
        health::ready,
    ),
    components(schemas(QuoteCommitment, ProblemBody)),
    tags(
        (name = "quote", description = "What the exchange pays."),
        (name = "swap", description = "Transactions and instructions under the guard."),
        (name = "webhooks", description = "Subscriptions to what happens on the chain."),
        (name = "health", description = "Whether Sluice works."),
    ),
)]
struct Document;

/// The document as JSON text, with a line break at its end.
///
/// # Panics
/// Never: the document consists of what JSON can say.
#[must_use]
pub fn document() -> String {
    let mut document = Document::openapi();
    document.merge(webhooks::Description::openapi());
    let mut text = document
        .to_pretty_json()
        .expect("the document consists of what JSON can say");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_route_is_in_the_document() {
        let document: Value = serde_json::from_str(&document()).expect("JSON");
        let router = include_str!("router.rs");
        let webhooks = include_str!("routes/webhooks/router.rs");
        let routes = [router, webhooks].into_iter().flat_map(|source| {
            source
                .split("\"/")
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .map(|path| format!("/{path}"))
        });
        let mut count = 0;
        for path in routes {
            count += 1;
            assert!(document["paths"][&path].is_object(), "{path} is missing");
        }
        assert_eq!(document["paths"].as_object().expect("paths").len(), count);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let text = document();
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let mut names = text
            .split("\"#/components/schemas/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .peekable();
        assert!(names.peek().is_some());
        for name in names {
            let schema = &document["components"]["schemas"][name];
            assert!(schema.is_object(), "{name} is missing");
        }
    }
}
