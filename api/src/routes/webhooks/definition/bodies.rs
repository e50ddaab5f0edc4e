//! Schemas of the three bodies read as a [`DefinitionBody`], which differ in what must be there.

use serde_json::json;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        AllOfBuilder, OneOfBuilder, Ref, RefOr, Schema,
        schema::{AnyOfBuilder, ArrayBuilder, Object, ObjectBuilder, SchemaType, Type},
    },
};

use super::{DefinitionBody, FiltersBody, STREAM_URL};
use crate::{extract::Address, routes::webhooks::schema};

/// What only the service writes; a new webhook has none of it.
const WRITTEN_BY_SERVICE: [&str; 4] = ["id", "created", "lastTriggered", "status"];

/// Body of `POST /api/webhooks`.
pub(in crate::routes::webhooks) struct NewWebhookBody;

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
                body.properties.remove("batch");
                body.properties.remove("delivery");
            },
        );
        OneOfBuilder::new()
            .item(lasting)
            .item(operational(without_what_the_service_writes))
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
pub(in crate::routes::webhooks) struct ReplaceBody;

impl PartialSchema for ReplaceBody {
    fn schema() -> RefOr<Schema> {
        let whole = definition(
            "A whole definition.",
            &["url", "events", "filters"],
            watch_something,
        );
        OneOfBuilder::new()
            .item(whole)
            .item(operational(|_| ()))
            .description(Some("A definition."))
            .into()
    }
}

impl ToSchema for ReplaceBody {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        parts(schemas);
    }
}

/// Body of `PATCH /api/webhooks/{id}`.
pub(in crate::routes::webhooks) struct ChangeBody;

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

/// The filters of a whole definition: at least one address, because there is nothing to which a list that is absent
/// could refer.
struct NewFilters;

impl PartialSchema for NewFilters {
    fn schema() -> RefOr<Schema> {
        let some = |list: &str| {
            let addresses = ArrayBuilder::new()
                .items(Ref::from_schema_name(Address::name()))
                .min_items(Some(1));
            ObjectBuilder::new()
                .property(list, addresses)
                .required(list)
        };
        let either = AnyOfBuilder::new()
            .item(some("accounts"))
            .item(some("programs"))
            .item(some("tokenOwners"));
        AllOfBuilder::new()
            .item(Ref::from_schema_name(FiltersBody::name()))
            .item(either)
            .description(Some("Filters that name at least one key."))
            .into()
    }
}

impl ToSchema for NewFilters {}

/// The schemas that every body refers to.
fn parts(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    DefinitionBody::schemas(schemas);
    schemas.push((NewFilters::name().into_owned(), NewFilters::schema()));
}

fn new(about: &str, required: &[&str], change: impl FnOnce(&mut Object)) -> RefOr<Schema> {
    definition(about, required, |body| {
        without_what_the_service_writes(body);
        watch_something(body);
        change(body);
    })
}

/// A definition that watches nothing: it is told of operations alone.
fn operational(change: impl FnOnce(&mut Object)) -> RefOr<Schema> {
    let about = "A webhook that is told of operations alone.";
    definition(about, &["url", "operations"], |body| {
        for name in ["events", "filters"] {
            body.properties.remove(name);
        }
        let operations = ArrayBuilder::from(schema::operations()).min_items(Some(1));
        body.properties
            .insert("operations".to_owned(), operations.into());
        change(body);
    })
}

fn without_what_the_service_writes(body: &mut Object) {
    for name in WRITTEN_BY_SERVICE {
        body.properties.remove(name);
    }
}

fn watch_something(body: &mut Object) {
    let filters = Ref::from_schema_name(NewFilters::name());
    body.properties.insert("filters".to_owned(), filters.into());
    let events = ArrayBuilder::from(schema::events()).min_items(Some(1));
    body.properties.insert("events".to_owned(), events.into());
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
