//! The part of the API's description that is about webhooks, put together from the handlers.

use utoipa::{
    Modify, OpenApi,
    openapi::{
        ComponentsBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{
    create, delete, deliveries, events, get, keys, list, redeliver, schema, secret, stream, test,
    update,
};

/// The webhook routes and the key that they ask for.
#[derive(OpenApi)]
#[openapi(
    paths(
        list::handler,
        create::handler,
        get::handler,
        update::put,
        update::patch,
        delete::handler,
        keys::add_accounts,
        keys::remove_accounts,
        keys::add_programs,
        keys::remove_programs,
        test::handler,
        secret::rotate,
        deliveries::handler,
        redeliver::handler,
        events::handler,
        stream::open,
        stream::report,
    ),
    components(schemas(schema::EventKind, crate::extract::Address)),
    modifiers(&ApiKey),
)]
pub struct Description;

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
