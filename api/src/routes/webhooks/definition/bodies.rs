//! The three bodies that a [`DefinitionBody`] is read from, for the API's description: they differ in what must be there.

use serde_json::json;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        OneOfBuilder, RefOr, Schema,
        schema::{Object, ObjectBuilder, SchemaType, Type},
    },
};

use super::{DefinitionBody, STREAM_URL};

/// What only the service writes; a new webhook has none of it.
const WRITTEN_BY_SERVICE: [&str; 4] = ["id", "created", "lastTriggered", "status"];

/// Body of `POST /api/webhooks`.
pub(in super::super) struct NewWebhookBody;

impl PartialSchema for NewWebhookBody {
    fn schema() -> RefOr<Schema> {
        let lasting = new("A webhook.", &["url", "events", "filters"], |body| {
            set_temporary(body, vec![json!(false), json!(null)]);
        });
        let temporary = new(
            "A temporary webhook, whose messages go down its stream.",
            &["events", "filters", "temporary"],
            |body| {
                set_temporary(body, vec![json!(true)]);
                let url = ObjectBuilder::new()
                    .schema_type(Type::String)
                    .enum_values(Some([STREAM_URL]));
                body.properties.insert("url".to_owned(), url.into());
            },
        );
        OneOfBuilder::new()
            .item(lasting)
            .item(temporary)
            .description(Some("A new webhook."))
            .into()
    }
}

impl ToSchema for NewWebhookBody {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        parts(schemas);
    }
}

/// Body of `PUT /api/webhooks/{id}`.
pub(in super::super) struct ReplaceBody;

impl PartialSchema for ReplaceBody {
    fn schema() -> RefOr<Schema> {
        let about = "A whole definition. `url` is required too, unless the webhook is temporary.";
        definition(about, &["events", "filters"], |_| ())
    }
}

impl ToSchema for ReplaceBody {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        parts(schemas);
    }
}

/// Body of `PATCH /api/webhooks/{id}`.
pub(in super::super) struct ChangeBody;

impl PartialSchema for ChangeBody {
    fn schema() -> RefOr<Schema> {
        definition("What is to change.", &[], |_| ())
    }
}

impl ToSchema for ChangeBody {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        parts(schemas);
    }
}

/// The schemas that every body refers to.
fn parts(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    DefinitionBody::schemas(schemas);
}

fn new(about: &str, required: &[&str], change: impl FnOnce(&mut Object)) -> RefOr<Schema> {
    definition(about, required, |body| {
        for name in WRITTEN_BY_SERVICE {
            body.properties.remove(name);
        }
        change(body);
    })
}

fn set_temporary(body: &mut Object, values: Vec<serde_json::Value>) {
    let temporary = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .enum_values(Some(values))
        .description(Some("Whether its messages go down a stream."));
    body.properties
        .insert("temporary".to_owned(), temporary.into());
}

fn definition(about: &str, required: &[&str], change: impl FnOnce(&mut Object)) -> RefOr<Schema> {
    let mut schema = DefinitionBody::schema();
    if let RefOr::T(Schema::Object(body)) = &mut schema {
        body.description = Some(about.to_owned());
        body.required = required.iter().map(|&name| name.to_owned()).collect();
        change(body);
    }
    schema
}
