//! The part of the API's description that is about webhooks, put together from the handlers.

use utoipa::{
    Modify, OpenApi,
    openapi::{
        ComponentsBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{
    addresses, create, delete, deliveries, events, get, list, redeliver, relay, rotate_secret,
    schema, test, update,
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
        addresses::add_accounts,
        addresses::remove_accounts,
        addresses::add_programs,
        addresses::remove_programs,
        test::handler,
        rotate_secret::rotate,
        deliveries::handler,
        redeliver::handler,
        events::handler,
        relay::open,
        relay::report,
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
