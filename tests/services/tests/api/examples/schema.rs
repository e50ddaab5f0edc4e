//! Schema: whether a value is of the shape that a schema of the API's document describes (pure).

use serde_json::{Map, Value};

/// What of `value` is not as `schema` says, each with its place; empty when all is.
pub fn faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    judge(document, schema, value, "", &mut faults);
    faults
}

fn judge(document: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else {
        return;
    };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = document.pointer(reference.trim_start_matches('#'));
        let target = target.unwrap_or_else(|| panic!("{reference} leads nowhere"));
        judge(document, target, value, at, faults);
    }
    if let Some(kind) = schema.get("type")
        && !is_of(kind, value)
    {
        faults.push(format!("{at}: {value} is not of type {kind}"));
    }
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        faults.push(format!("{at}: {value} is none of {allowed:?}"));
    }
    judge_choices(document, schema, value, at, faults);
    if let Some(object) = value.as_object() {
        judge_object(document, schema, object, at, faults);
    }
    if let (Some(items), Some(list)) = (schema.get("items"), value.as_array()) {
        for (index, item) in list.iter().enumerate() {
            judge(document, items, item, &format!("{at}/{index}"), faults);
        }
    }
}

fn judge_choices(
    document: &Value,
    schema: &Map<String, Value>,
    value: &Value,
    at: &str,
    faults: &mut Vec<String>,
) {
    let listed = |name: &str| schema.get(name).and_then(Value::as_array);
    for part in listed("allOf").into_iter().flatten() {
        judge(document, part, value, at, faults);
    }
    for name in ["oneOf", "anyOf"] {
        let Some(choices) = listed(name) else {
            continue;
        };
        let mut nearest: Option<Vec<String>> = None;
        for choice in choices {
            let mut of_choice = Vec::new();
            judge(document, choice, value, at, &mut of_choice);
            if nearest
                .as_ref()
                .is_none_or(|nearest| of_choice.len() < nearest.len())
            {
                nearest = Some(of_choice);
            }
        }
        faults.extend(nearest.unwrap_or_default());
    }
}

fn judge_object(
    document: &Value,
    schema: &Map<String, Value>,
    object: &Map<String, Value>,
    at: &str,
    faults: &mut Vec<String>,
) {
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            faults.push(format!("{at}: {name} is missing"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    for (name, value) in object {
        let at = format!("{at}/{name}");
        match (properties.and_then(|known| known.get(name)), others) {
            (Some(known), _) => judge(document, known, value, &at, faults),
            (None, Some(Value::Bool(false))) => faults.push(format!("{at} is not described")),
            (None, Some(schema)) => judge(document, schema, value, &at, faults),
            (None, None) => {}
        }
    }
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| is_of(kind, value)),
        Value::String(kind) => match kind.as_str() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{other} is no type"),
        },
        other => panic!("{other} is no type"),
    }
}

#[test]
fn a_value_of_another_shape_is_noticed() {
    use serde_json::json;
    let document = json!({ "components": { "schemas": { "Name": { "type": "string" } } } });
    let schema = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "$ref": "#/components/schemas/Name" },
            "state": { "enum": ["on", "off"] },
            "amounts": { "type": "array", "items": { "type": ["integer", "null"] } },
            "more": { "oneOf": [{ "type": "null" }, { "type": "boolean" }] },
        },
        "additionalProperties": false,
    });
    let judged = |value: Value| faults(&document, &schema, &value).len();
    assert_eq!(
        judged(json!({ "name": "a", "amounts": [1, null], "more": null })),
        0
    );
    for wrong in [
        json!([]),
        json!({}),
        json!({ "name": 1 }),
        json!({ "name": "a", "state": "up" }),
        json!({ "name": "a", "amounts": ["1"] }),
        json!({ "name": "a", "more": 1 }),
        json!({ "name": "a", "other": 1 }),
    ] {
        assert_eq!(judged(wrong.clone()), 1, "{wrong}");
    }
}
