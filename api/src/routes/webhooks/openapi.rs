//! The part of the API's description that is about webhooks, put together from the handlers.

use std::collections::BTreeMap;

use utoipa::{
    IntoParams, IntoResponses, Modify, OpenApi, ToSchema,
    openapi::{
        ComponentsBuilder, Content, Header, Ref, RefOr, Required, Response, ResponseBuilder,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, Type},
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{
    create, delete, deliveries, events, get, keys, list, redeliver, schema, secret, stream, test,
    update,
};
use crate::error::ProblemBody;

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

/// The identifier in the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "describes a parameter")]
pub(super) struct WebhookPath {
    /// Its identifier.
    id: String,
}

/// The version that a change is based on.
pub(super) struct IfMatch;

impl IntoParams for IfMatch {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let version = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^(\\*|\"[0-9]+\")$"));
        let parameter = ParameterBuilder::new()
            .name("If-Match")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(
                "The ETag of an earlier answer: the request is refused with 412 when the webhook was written since.",
            ))
            .schema(Some(version));
        vec![parameter.build()]
    }
}

/// How every webhook route refuses.
pub(super) struct Refusals;

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let header = |description: &str| {
            let mut header = Header::default();
            header.description = Some(description.to_owned());
            header
        };
        let responses = [
            (
                "401",
                refusal("No API key, or not one that is accepted.").header(
                    "WWW-Authenticate",
                    header("Names the scheme, and whether the key was at fault."),
                ),
            ),
            (
                "429",
                refusal("Too many requests with this API key.").header(
                    "Retry-After",
                    header("Seconds until the next request is answered."),
                ),
            ),
            ("4XX", refusal("Refused; `code` says why.")),
            (
                "5XX",
                refusal("Not possible at the moment; `code` says why."),
            ),
        ];
        responses
            .into_iter()
            .map(|(status, response)| (status.to_owned(), response.build().into()))
            .collect()
    }
}

fn refusal(description: &str) -> ResponseBuilder {
    let problem = Ref::from_schema_name(ProblemBody::name());
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", Content::new(Some(problem)))
}
