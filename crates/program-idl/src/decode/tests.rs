//! Decoding by an IDL: every type, and data that does not fit it.

use serde_json::json;

use super::*;

const IDL: &str = r#"{
    "address": "11111111111111111111111111111112",
    "events": [
        {"name": "Everything", "discriminator": [1]},
        {"name": "Empty", "discriminator": [2]},
        {"name": "Units", "discriminator": [3]},
        {"name": "Nested", "discriminator": [4]}
    ],
    "types": [
        {"name": "Everything", "type": {"kind": "struct", "fields": [
            {"name": "flag", "type": "bool"},
            {"name": "small", "type": "u8"},
            {"name": "minus", "type": "i16"},
            {"name": "most_u64", "type": "u64"},
            {"name": "least_i64", "type": "i64"},
            {"name": "huge", "type": "u128"},
            {"name": "low", "type": "i128"},
            {"name": "half", "type": "f64"},
            {"name": "key", "type": "pubkey"},
            {"name": "text", "type": "string"},
            {"name": "raw", "type": "bytes"},
            {"name": "some", "type": {"option": "u8"}},
            {"name": "none", "type": {"option": "u8"}},
            {"name": "list", "type": {"vec": {"defined": {"name": "Point"}}}},
            {"name": "pair", "type": {"array": ["u16", 2]}},
            {"name": "side", "type": {"defined": {"name": "Side"}}},
            {"name": "other", "type": {"defined": {"name": "Side"}}},
            {"name": "third", "type": {"defined": {"name": "Side"}}},
            {"name": "alias", "type": {"defined": {"name": "Lamports"}}}
        ]}},
        {"name": "Empty", "type": {"kind": "struct"}},
        {"name": "Units", "type": {"kind": "struct", "fields": [
            {"name": "units", "type": {"vec": {"defined": {"name": "Empty"}}}}]}},
        {"name": "Nested", "type": {"kind": "struct", "fields": [
            {"name": "next", "type": {"option": {"defined": {"name": "Nested"}}}}]}},
        {"name": "Point", "type": {"kind": "struct", "fields": ["u8", "u8"]}},
        {"name": "Side", "type": {"kind": "enum", "variants": [
            {"name": "Buy"},
            {"name": "Sell", "fields": [{"name": "at_least", "type": "u8"}]},
            {"name": "Swap", "fields": ["u8", "bool"]}
        ]}},
        {"name": "Lamports", "type": {"kind": "type", "alias": "u32"}}
    ]
}"#;

fn schema() -> Schema {
    Schema::parse(IDL).expect("an IDL").1
}

fn everything() -> Vec<u8> {
    let mut data = vec![1, 1, 200];
    data.extend((-2i16).to_le_bytes());
    data.extend(u64::MAX.to_le_bytes());
    data.extend(i64::MIN.to_le_bytes());
    data.extend(u128::MAX.to_le_bytes());
    data.extend(i128::MIN.to_le_bytes());
    data.extend(0.5f64.to_le_bytes());
    data.extend([7; 32]);
    data.extend([3, 0, 0, 0, b'a', 0xc3, 0xa4]);
    data.extend([2, 0, 0, 0, 0xff, 0x00]);
    data.extend([1, 9, 0]);
    data.extend([2, 0, 0, 0, 1, 2, 3, 4]);
    data.extend([5, 0, 6, 0]);
    data.extend([0]);
    data.extend([1, 8]);
    data.extend([2, 8, 1]);
    data.extend(1_000_000u32.to_le_bytes());
    data
}

#[test]
fn every_type_is_read() {
    let schema = schema();
    let (name, fields) = event(&schema, &everything()).expect("fits");
    assert_eq!(name, "Everything");
    let expected = json!({
        "flag": true,
        "small": 200,
        "minus": -2,
        "mostU64": u64::MAX,
        "leastI64": i64::MIN,
        "huge": "340282366920938463463374607431768211455",
        "low": "-170141183460469231731687303715884105728",
        "half": 0.5,
        "key": Pubkey::new_from_array([7; 32]).to_string(),
        "text": "a\u{e4}",
        "raw": "/wA=",
        "some": 9,
        "none": null,
        "list": [[1, 2], [3, 4]],
        "pair": [5, 6],
        "side": "Buy",
        "other": {"Sell": {"atLeast": 8}},
        "third": {"Swap": [8, true]},
        "alias": 1_000_000,
    });
    assert_eq!(fields, expected);
}

#[test]
fn small_numbers_of_wide_types_are_texts_too() {
    assert_eq!(unsigned(&5u128.to_le_bytes()), json!("5"));
    assert_eq!(signed(&(-5i128).to_le_bytes()), json!("-5"));
    assert_eq!(float(f64::NAN), json!("NaN"));
}

#[test]
fn what_does_not_fit_to_the_last_byte_is_left_alone() {
    let (schema, whole) = (schema(), everything());
    for length in 0..whole.len() {
        assert_eq!(event(&schema, &whole[..length]), None, "{length}");
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert_eq!(event(&schema, &longer), None);
    let mut no_flag = whole;
    no_flag[1] = 2;
    assert_eq!(event(&schema, &no_flag), None, "a flag of 2");
    assert_eq!(event(&schema, &[9, 1]), None, "an unknown discriminator");
    assert_eq!(event(&schema, &[2]).map(|(name, _)| name), Some("Empty"));
}

#[test]
fn lengths_that_lie_cost_nothing() {
    let schema = schema();
    assert_eq!(event(&schema, &[3, 0xff, 0xff, 0xff, 0xff]), None);
    let (_, fields) = event(&schema, &[3, 2, 0, 0, 0]).expect("two empty values");
    assert_eq!(fields, json!({"units": [[], []]}));
}

#[test]
fn a_type_within_itself_is_followed_to_the_bound_and_no_further() {
    let schema = schema();
    assert!(event(&schema, &[4, 1, 1, 0]).is_some());
    let mut deep = vec![4];
    deep.extend([1; 10_000]);
    deep.push(0);
    assert_eq!(event(&schema, &deep), None);
}

#[test]
fn random_bytes_never_panic() {
    let schema = schema();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..20_000 {
        let mut data = Vec::new();
        for _ in 0..64 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            data.push(state.to_le_bytes()[3]);
        }
        data[0] = 1 + data[0] % 4;
        let _ = event(&schema, &data);
    }
}
