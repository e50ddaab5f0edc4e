//! Description parts that the webhook routes share: path parameter, `If-Match`, refusals.

use std::collections::BTreeMap;

use utoipa::{
    IntoParams, IntoResponses, ToSchema,
    openapi::{
        Content, Header, Ref, RefOr, Required, Response, ResponseBuilder,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::{ObjectBuilder, Type},
    },
};

use crate::error::ProblemBody;

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
                "403",
                refusal("The API key lacks a scope, which `scope` names."),
            ),
            (
                "429",
                refusal("Too many requests with this API key, or messages for it.").header(
                    "Retry-After",
                    header("Seconds until the request is worth repeating."),
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
