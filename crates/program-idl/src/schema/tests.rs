//! Schemas: what IDLs say of events, and what is refused of them.

use super::*;

const PROGRAM: &str = "11111111111111111111111111111112";

fn parse(events: &str, types: &str) -> Result<(Pubkey, Schema), SchemaError> {
    Schema::parse(&format!(
        r#"{{"address": "{PROGRAM}", "events": [{events}], "types": [{types}]}}"#
    ))
}

#[test]
fn what_is_no_idl_is_refused_with_the_reason() {
    for text in [
        "",
        "[]",
        "{}",
        r#"{"address": 5}"#,
        r#"{"version": "0.1.0", "name": "old"}"#,
    ] {
        assert!(
            matches!(Schema::parse(text), Err(SchemaError::Format(_))),
            "{text}"
        );
    }
    let address = Schema::parse(r#"{"address": "0OIl"}"#);
    assert!(matches!(address, Err(SchemaError::Address(_))));
    let event = parse(r#"{"name": "E", "discriminator": []}"#, "");
    assert!(matches!(event, Err(SchemaError::NoDiscriminator(_))));
}

#[test]
fn an_event_that_is_not_understood_leaves_the_others() {
    let types = r#"
        {"name": "Good", "type": {"kind": "struct", "fields": [{"name": "a", "type": "u8"}]}},
        {"name": "Generic", "generics": [{"kind": "type", "name": "T"}],
         "type": {"kind": "struct", "fields": []}},
        {"name": "Raw", "serialization": "bytemuck", "type": {"kind": "struct", "fields": []}},
        {"name": "Deep", "type": {"kind": "struct", "fields":
            [{"name": "x", "type": {"option": {"defined": {"name": "Raw"}}}}]}},
        {"name": "Odd", "type": {"kind": "struct", "fields": [{"name": "x", "type": "u24"}]}},
        {"name": "Union", "type": {"kind": "union", "fields": []}},
        {"name": "Long", "type": {"kind": "struct", "fields":
            [{"name": "x", "type": {"array": ["u8", 99999999999]}}]}}"#;
    let events = [
        "Good", "Generic", "Raw", "Deep", "Odd", "Union", "Long", "Missing",
    ];
    let events = events
        .iter()
        .enumerate()
        .map(|(number, name)| format!(r#"{{"name": "{name}", "discriminator": [{number}]}}"#))
        .collect::<Vec<_>>()
        .join(",");
    let (_, schema) = parse(&events, types).expect("an IDL");
    assert_eq!(
        schema.event_of(&[0, 1]).map(|event| event.name.as_str()),
        Some("Good")
    );
    let unsupported: Vec<_> = schema.unsupported().map(|(name, _)| name).collect();
    assert_eq!(
        unsupported,
        ["Generic", "Raw", "Deep", "Odd", "Union", "Long", "Missing"]
    );
}

#[test]
fn the_longest_discriminator_wins() {
    let types =
        r#"{"name": "A", "type": {"kind": "struct"}}, {"name": "B", "type": {"kind": "struct"}}"#;
    let events = r#"{"name": "A", "discriminator": [1]}, {"name": "B", "discriminator": [1, 2]}"#;
    let (_, schema) = parse(events, types).expect("an IDL");
    let name = |data: &[u8]| schema.event_of(data).map(|event| event.name.clone());
    assert_eq!(name(&[1, 2, 3]).as_deref(), Some("B"));
    assert_eq!(name(&[1, 3]).as_deref(), Some("A"));
    assert_eq!(name(&[2]), None);
}

#[test]
fn types_in_circles_that_name_each_other_many_times_are_read_at_once() {
    let fields = |to: usize| {
        let field = |number: usize| {
            format!(r#"{{"name": "f{number}", "type": {{"defined": {{"name": "T{to}"}}}}}}"#)
        };
        (0..100).map(field).collect::<Vec<_>>().join(",")
    };
    let named = |number: usize| {
        let fields = fields((number + 1) % 20);
        format!(r#"{{"name": "T{number}", "type": {{"kind": "struct", "fields": [{fields}]}}}}"#)
    };
    let mut types: Vec<_> = (0..20).map(named).collect();
    let event = r#"{"name": "T0", "discriminator": [1]}"#;
    let (_, schema) = parse(event, &types.join(",")).expect("an IDL");
    assert_eq!(schema.names().collect::<Vec<_>>(), ["T0"]);
    // As deep as can be one that is not understood.
    types[19] =
        r#"{"name": "T19", "serialization": "bytemuck", "type": {"kind": "struct", "fields": []}}"#
            .to_owned();
    let (_, schema) = parse(event, &types.join(",")).expect("an IDL");
    assert_eq!(schema.unsupported().count(), 1);
}

#[test]
fn more_events_than_anybody_has_and_names_without_end_are_refused() {
    let event = |number: usize| format!(r#"{{"name": "E", "discriminator": [{}]}}"#, number % 256);
    let events = |count| (0..count).map(event).collect::<Vec<_>>().join(",");
    assert!(parse(&events(MAX_EVENTS), "").is_ok());
    let many = parse(&events(MAX_EVENTS + 1), "");
    assert!(matches!(many, Err(SchemaError::TooMany { count }) if count == MAX_EVENTS + 1));
    let named = |name: &str| {
        [
            parse(
                &format!(r#"{{"name": "{name}", "discriminator": [1]}}"#),
                "",
            ),
            parse(
                "",
                &format!(
                    r#"{{"name": "T", "type": {{"kind": "struct", "fields": [{{"name": "{name}", "type": "u8"}}]}}}}"#
                ),
            ),
            parse(
                "",
                &format!(
                    r#"{{"name": "T", "type": {{"kind": "enum", "variants": [{{"name": "{name}"}}]}}}}"#
                ),
            ),
        ]
    };
    assert!(named(&"n".repeat(MAX_NAME_BYTES)).iter().all(Result::is_ok));
    for refused in named(&"n".repeat(MAX_NAME_BYTES + 1)) {
        assert!(
            matches!(refused, Err(SchemaError::LongName { bytes, .. }) if bytes == MAX_NAME_BYTES + 1)
        );
    }
}

#[test]
fn names_become_camel_case() {
    for (name, expected) in [
        ("input_mint", "inputMint"),
        ("_reserved", "reserved"),
        ("a__b", "aB"),
        ("already", "already"),
        ("camelCase", "camelCase"),
    ] {
        assert_eq!(camel_case(name), expected);
    }
}
