//! Components of the webhook routes' description: schemas that no operation names, and the API key.

use utoipa::{
    Modify, OpenApi,
    openapi::{
        ComponentsBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::schema;

/// Schemas and security scheme.
#[derive(OpenApi)]
#[openapi(
    components(schemas(schema::EventKind, crate::extract::Address)),
    modifiers(&ApiKey),
)]
pub(super) struct Components;

struct ApiKey;

impl Modify for ApiKey {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "An API key of `sluice keys add`. While there are none, requests made on the server itself need none.",
            ));
        let components = document
            .components
            .get_or_insert_with(|| ComponentsBuilder::new().build());
        components.add_security_scheme("apiKey", SecurityScheme::Http(scheme.build()));
    }
}
