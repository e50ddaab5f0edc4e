//! OpenAPI document, derived from the registered routes and from the types that they take and answer.

mod examples;

use std::sync::LazyLock;

use axum::{
    Router,
    http::{HeaderValue, header},
    response::IntoResponse,
    routing::get,
};
use utoipa::OpenApi;

use crate::{
    error::ProblemBody,
    router,
    routes::{keys, quote, webhooks},
};

/// Title, tags, and the schemas that no route names.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sluice",
        description = "Exact quotes, ready-to-sign transactions and bare instructions for swaps on one exchange, and \
                       signed webhooks about what happens there. Amounts are in smallest units. Every error is a \
                       problem document (RFC 9457) with a stable `code`.",
    ),
    components(schemas(quote::get::CommitmentParameter, ProblemBody)),
    tags(
        (name = "quote", description = "What the exchange pays."),
        (name = "swap", description = "Transactions and instructions under the guard."),
        (name = "transactions", description = "Signed swaps on their way to the chain."),
        (name = "pools", description = "Pools and mints as of a slot."),
        (name = "webhooks", description = "Subscriptions to what happens on the chain."),
        (name = "keys", description = "API keys of the installation, for those who run it."),
        (name = "health", description = "Whether Sluice works."),
    ),
)]
struct Document;

/// The route of the document, which does not describe itself.
pub(crate) fn route() -> Router {
    Router::new().route("/openapi.json", get(serve))
}

/// Serves the document, which is the same for as long as the process runs.
async fn serve() -> impl IntoResponse {
    static DOCUMENT: LazyLock<String> = LazyLock::new(document);
    let json = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, json)], DOCUMENT.as_str())
}

/// The document as JSON text, with a line break at its end.
///
/// # Panics
/// Never: the document consists of what JSON can say.
#[must_use]
pub fn document() -> String {
    let mut document = Document::openapi();
    document.merge(router::routes().into_openapi());
    document.merge(webhooks::description());
    document.merge(keys::description());
    examples::add(&mut document);
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

    #[test]
    fn every_operation_has_an_example_unless_nothing_goes_in_or_out() {
        let document: Value = serde_json::from_str(&document()).expect("JSON");
        let paths = document["paths"].as_object().expect("an object").values();
        for operation in paths.flat_map(|path| path.as_object().expect("operations").values()) {
            let name = &operation["operationId"];
            let responses = operation["responses"].as_object().expect("answers");
            let well = responses
                .iter()
                .filter(|(status, _)| status.starts_with('2'));
            let answered = well.filter_map(|(_, response)| response["content"].as_object());
            let asked = operation["requestBody"]["content"].as_object();
            for content in answered.chain(asked).flat_map(|content| content.values()) {
                assert!(!content["example"].is_null(), "{name}");
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let required = parameter["required"] == true;
                assert!(
                    !required || !parameter["example"].is_null(),
                    "{name}: {parameter}"
                );
            }
        }
    }

    #[test]
    fn every_operation_has_a_name_of_its_own() {
        let document: Value = serde_json::from_str(&document()).expect("JSON");
        let paths = document["paths"].as_object().expect("an object").values();
        let mut names: Vec<_> = paths
            .flat_map(|path| path.as_object().expect("operations").values())
            .map(|operation| operation["operationId"].as_str().expect("a name"))
            .collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    }
}
