//! Parameters of the previous release's statements, made up by the columns for which they are.

/// Rows in every table that the statements are mostly about, as both releases' schemas have them. `{bytes}` is 32 bytes, `{hash}` 64
/// digits.
pub const ROWS: &str = r#"
    INSERT INTO api_keys (ordinal, id, name, hash, created_at) VALUES (1, 'key_1', 'first', '{hash}', 1);
    INSERT INTO webhooks (ordinal, id, api_key, matched_revision, url, wants_account_change, wants_transaction,
        wants_program_event, commitment, delivery_order, headers, gzip, active, created_at, secret)
    VALUES (1, 'wh_1', 1, 1, 'https://example.com/', 1, 1, 0, 'confirmed', 'none', '[]', 0, 1, 1, 'whsec_1'),
        (2, 'wh_2', 1, 1, 'https://example.com/', 1, 1, 0, 'confirmed', 'none', '[]', 0, 1, 1, 'whsec_2');
    INSERT INTO filters (webhook, accounts, programs, digest) VALUES (1, {bytes}, {bytes}, '');
    INSERT INTO sequences (webhook, next) VALUES (1, 3);
    INSERT INTO endpoints (webhook) VALUES (1);
    INSERT INTO messages (webhook, sequence, id, kind, commitment, slot, order_key, body, created_at)
    VALUES (1, 1, 'msg_1', 'transaction', 'confirmed', 1, 'key', '{}', 1),
        (1, 2, 'msg_2', 'transaction', 'confirmed', 1, 'key', '{}', 1);
    INSERT INTO deliveries (webhook, sequence, due_at, lease_token, lane, created_at) VALUES (1, 1, 1, 1, 'key', 1);
    INSERT INTO attempts (webhook, sequence, number, url, started_at, duration_us, request_headers, response_cut)
    VALUES (1, 1, 1, 'https://example.com/', 1, 1, '[]', 0);
    UPDATE usage SET messages = 2, bytes = 4;
    INSERT INTO checkpoints (commitment, slot) VALUES ('confirmed', 1);
    INSERT INTO unconfirmed_slots (slot) VALUES (1);
    INSERT INTO filter_changes (revision) VALUES (1);
"#;

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    Null,
    Integer(i64),
    Text(String),
    /// 32 bytes.
    Bytes,
}

/// The parameters of a statement, in the order of their numbers.
pub fn parameters(statement: &str) -> Vec<Made> {
    let count = statement.matches('?').count().max(numbered(statement));
    let named = bound_columns(statement).or_else(|| inserted_columns(statement));
    (1..=count)
        .map(|number| match (&named, rows_of(statement)) {
            (Some(columns), _) => column(statement, columns.get(number - 1).copied()),
            (None, Some(columns)) if number == 1 => Made::Text(json(statement, &columns)),
            (None, _) => column(statement, compared(statement, number)),
        })
        .collect()
}

/// The greatest number of a parameter.
fn numbered(statement: &str) -> usize {
    let numbers = statement.split('$').skip(1).map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_default()
    });
    numbers.max().unwrap_or_default()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

fn names(list: &str) -> Vec<&str> {
    let names = list.split(',').map(str::trim);
    names.map(|name| name.trim_matches('"')).collect()
}

/// The columns of rows of which each value is a parameter.
fn bound_columns(statement: &str) -> Option<Vec<&str>> {
    if statement.contains("unnest(") {
        return between(statement, "AS t (", ")").map(names);
    }
    between(statement, "WITH v (", ")").map(names)
}

/// The columns of one row that is inserted.
fn inserted_columns(statement: &str) -> Option<Vec<&str>> {
    let list = between(statement, "(", ")").filter(|_| statement.contains("VALUES ($1"));
    list.map(names)
}

/// The columns of rows that are one parameter.
fn rows_of(statement: &str) -> Option<Vec<&str>> {
    if statement.contains("json_to_recordset(CAST($1") {
        let columns = between(statement, "AS t (", ")").map(names)?;
        let columns = columns.iter().filter_map(|column| column.split(' ').next());
        return Some(columns.filter(|column| *column != "nth").collect());
    }
    let columns = statement.split("value ->> '").skip(1);
    let columns: Vec<_> = columns.filter_map(|rest| rest.split('\'').next()).collect();
    (!columns.is_empty()).then_some(columns)
}

fn json(statement: &str, columns: &[&str]) -> String {
    let values = columns.iter().map(|name| {
        let value: serde_json::Value = match column(statement, Some(*name)) {
            Made::Integer(number) => number.into(),
            Made::Text(text) => text.into(),
            Made::Null | Made::Bytes => serde_json::Value::Null,
        };
        ((*name).to_owned(), value)
    });
    let row: serde_json::Map<_, _> = values.collect();
    serde_json::Value::from(vec![serde_json::Value::from(row)]).to_string()
}

/// The column with which a parameter is compared, or that is set to it.
fn compared(statement: &str, number: usize) -> Option<&str> {
    let parameter = format!("${number}");
    let mut places = statement.match_indices(&parameter).filter_map(|(at, _)| {
        let before = statement.get(..at)?.trim_end();
        let before = before
            .strip_suffix('=')?
            .trim_end_matches(['<', '>', '=', ' ']);
        let name = before.rsplit([' ', '(', '.', ',', '\n']).next()?;
        (!name.is_empty()).then_some(name)
    });
    places.next()
}

/// What a column of this name may hold in what a statement looks for, or inserts.
fn column(statement: &str, name: Option<&str>) -> Made {
    let words: Vec<_> = statement.split_whitespace().collect();
    let inserts = |table: &str| {
        let mut places = words.windows(3);
        places.any(|words| words[..2] == ["INSERT", "INTO"] && words[2].trim_matches('"') == table)
    };
    let is_new = statement.contains("INSERT INTO");
    let text = match name.unwrap_or_default() {
        "accounts" | "programs" => return Made::Bytes,
        // What is finished is due no more.
        "due_at" if statement.contains("state = v.state") => return Made::Null,
        "previous_secrets"
        | "previous_secrets_until"
        | "disabled_reason"
        | "conditions"
        | "idempotency_hash"
        | "idempotency_key"
        | "revoked_at"
        | "relay_until"
        | "error" => {
            return Made::Null;
        }
        "webhook"
            if ["endpoints", "sequences", "filters"]
                .into_iter()
                .any(inserts) =>
        {
            return Made::Integer(2);
        }
        "sequence" if inserts("messages") => return Made::Integer(3),
        "sequence" if inserts("deliveries") => return Made::Integer(2),
        "number" => return Made::Integer(2),
        "status" => return Made::Integer(200),
        "ordinal" if is_new => return Made::Integer(3),
        "id" if inserts("messages") => "msg_3",
        "id" if inserts("webhooks") => "wh_3",
        "id" if inserts("api_keys") => "key_3",
        "id" if statement.contains("FROM messages WHERE") => "msg_1",
        "id" if statement.contains("JOIN messages m ON m.id") => "msg_1",
        "id" if statement.contains("api_keys") && !statement.contains("w.id") => "key_1",
        "id" => "wh_1",
        "hash" => return Made::Text("b".repeat(64)),
        "name" => "another",
        "kind" => "transaction",
        "commitment" if inserts("account_gaps") => "finalized",
        "commitment" => "confirmed",
        "delivery_order" => "none",
        "state" => "delivered",
        "breaker" => "closed",
        "url" => "https://example.com/",
        "headers" | "request_headers" => "[]",
        "secret" => "whsec_1",
        "body" | "learned" => "{}",
        "lane" | "order_key" => "key",
        _ => return Made::Integer(1),
    };
    Made::Text(text.to_owned())
}
