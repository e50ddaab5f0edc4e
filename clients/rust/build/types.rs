//! Types of the wire: a struct, an enumeration or an alias for each schema of the document (pure).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Map, Value};

use crate::names::{comment, field, pascal, referred, snake};

/// The schema whose members beside those that are listed say more.
const OPEN: &str = "Problem";

/// The body of a change, in which a member that is null is not the same as one that is absent.
const PARTIAL: &str = "ChangeBody";

/// Derived by every type.
const DERIVES: &str = "Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize";

/// The generated module.
pub fn module(document: &Value) -> String {
    let mut types = Types::new(document);
    let schemas = types.schemas;
    for (name, schema) in schemas {
        types.schema(name, schema);
    }
    types.queries(document);
    types.code
}

/// The members of an object's schema, in the order of the document.
fn members(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema["required"].as_array();
    required.is_some_and(|names| names.iter().any(|one| one == name))
}

struct Types<'a> {
    schemas: &'a Map<String, Value>,
    /// Types that have a default value, as far as that is known.
    defaults: BTreeMap<String, bool>,
    written: BTreeSet<String>,
    code: String,
}

/// One member of a struct as it is written.
struct Member {
    rust: String,
    has_default: bool,
}

impl<'a> Types<'a> {
    fn new(document: &'a Value) -> Self {
        static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        Self {
            schemas: document["components"]["schemas"]
                .as_object()
                .unwrap_or(&NONE),
            defaults: BTreeMap::new(),
            written: BTreeSet::new(),
            code: String::new(),
        }
    }

    fn schema(&mut self, name: &str, schema: &Value) {
        if !self.written.insert(name.to_owned()) {
            return;
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return self.composed(name, schema, parts);
        }
        if let Some(alternatives) = schema["oneOf"].as_array() {
            if alternatives.iter().all(|one| one["type"] == "object") {
                return self.alternatives(name, schema, alternatives);
            }
            // An amount may be sent as digits too; this client sends integers, which are exact here.
            return self.alias(name, schema, "u64");
        }
        if schema["type"] == "object" {
            let base = String::new();
            return self.structure(name, schema, schema, &base);
        }
        if schema["enum"].is_array() {
            return self.enumeration(name, schema);
        }
        let member = self.of_type(name, "", schema);
        self.alias(name, schema, &member.rust);
    }

    fn alias(&mut self, name: &str, schema: &Value, of: &str) {
        let doc = comment(
            schema["description"].as_str(),
            "A value of the service.",
            "",
        );
        let _ = write!(self.code, "{doc}pub type {name} = {of};\n\n");
    }

    /// All members of another schema, and these beside them.
    fn composed(&mut self, name: &str, schema: &Value, parts: &[Value]) {
        let base = parts.iter().find_map(referred);
        let own = parts.iter().find(|part| part["properties"].is_object());
        match (base, own) {
            (Some(base), Some(own)) => {
                let member = snake(base);
                let doc = comment(None, &format!("What it has of a `{base}`."), "    ");
                let flat = format!("{doc}    #[serde(flatten)]\n    pub {member}: {base},\n");
                self.structure(name, schema, own, &flat);
            }
            // Rules about the members of the other, which the service checks.
            (Some(base), None) => {
                let base = base.to_owned();
                self.alias(name, schema, &base);
            }
            _ => self.alias(name, schema, "serde_json::Value"),
        }
    }

    /// An object of one form or another, told apart by its members.
    fn alternatives(&mut self, name: &str, schema: &Value, forms: &[Value]) {
        let mut variants = String::new();
        for (at, form) in forms.iter().enumerate() {
            let required = form["required"].as_array().into_iter().flatten();
            let own = required.filter_map(Value::as_str).find(|one| {
                let others = forms.iter().enumerate().filter(|(other, _)| *other != at);
                others
                    .into_iter()
                    .all(|(_, other)| !is_required(other, one))
            });
            let inner = format!("{name}{}", own.map_or_else(|| at.to_string(), pascal));
            let variant = own.map_or_else(|| format!("Form{at}"), pascal);
            self.structure(&inner, form, form, "");
            let doc = comment(form["description"].as_str(), "One form of it.", "    ");
            let _ = writeln!(variants, "{doc}    {variant}({inner}),");
        }
        let doc = comment(schema["description"].as_str(), "One form or another.", "");
        let _ = write!(
            self.code,
            "{doc}#[derive({DERIVES})]\n#[serde(untagged)]\npub enum {name} {{\n{variants}}}\n\n"
        );
    }

    fn enumeration(&mut self, name: &str, schema: &Value) {
        let names = schema["enum"].as_array().into_iter().flatten();
        let names: Vec<&str> = names.filter_map(Value::as_str).collect();
        let (mut variants, mut taken) = (String::new(), BTreeSet::new());
        for one in names {
            // `filterRefused` is another message than `filter.refused`.
            let mut variant = pascal(one);
            if !taken.insert(variant.clone()) {
                variant = pascal(&one.replace('.', "_dot_"));
            }
            let _ = write!(
                variants,
                "    /// `{one}`.\n    #[serde(rename = \"{one}\")]\n    {variant},\n"
            );
        }
        let doc = comment(schema["description"].as_str(), "One of these names.", "");
        let _ = write!(
            self.code,
            "{doc}#[derive(Eq, {DERIVES})]\n#[non_exhaustive]\npub enum {name} {{\n{variants}    \
             /// A name of a later version of the service.\n    #[serde(untagged)]\n    Other(String),\n}}\n\n"
        );
        self.defaults.insert(name.to_owned(), false);
    }

    /// A struct with the members of `own`, behind the lines of `first`; `schema` describes it.
    fn structure(&mut self, name: &str, schema: &Value, own: &Value, first: &str) {
        let mut lines = first.to_owned();
        let mut has_default = first.is_empty();
        for (member, of) in members(own) {
            // Written by the service and passed over in requests.
            if of.get("type").is_none() && of.get("$ref").is_none() && of.get("oneOf").is_none() {
                continue;
            }
            let found = self.of_type(name, member, of);
            let is_partial = name == PARTIAL;
            let nullable = found.rust.starts_with("Option<");
            let required = is_required(own, member);
            let rust = match (required, nullable) {
                (true, _) => found.rust,
                (false, true) if is_partial => format!("Option<{}>", found.rust),
                (false, true) => found.rust,
                (false, false) => format!("Option<{}>", found.rust),
            };
            has_default &= rust.starts_with("Option<") || found.has_default;
            let mut serde = vec![format!("rename = \"{member}\"")];
            if !required {
                serde.push("default".to_owned());
                serde.push("skip_serializing_if = \"Option::is_none\"".to_owned());
                if nullable && is_partial {
                    serde.push("deserialize_with = \"crate::absent::or_null\"".to_owned());
                }
            }
            let doc = comment(of["description"].as_str(), &format!("`{member}`."), "    ");
            let _ = write!(
                lines,
                "{doc}    #[serde({})]\n    pub {}: {rust},\n",
                serde.join(", "),
                field(member)
            );
        }
        if name == OPEN {
            lines += "    /// The members that say more, depending on the code.\n    #[serde(flatten)]\n    \
                      pub more: serde_json::Map<String, serde_json::Value>,\n";
        }
        let derives = if has_default { "Default, " } else { "" };
        let doc = comment(schema["description"].as_str(), &format!("`{name}`."), "");
        let _ = write!(
            self.code,
            "{doc}#[derive({derives}{DERIVES})]\npub struct {name} {{\n{lines}}}\n\n"
        );
        self.defaults.insert(name.to_owned(), has_default);
    }

    /// The type of a member; what has no name of its own gets one of its owner's and its own.
    fn of_type(&mut self, owner: &str, member: &str, schema: &Value) -> Member {
        if let Some(name) = referred(schema) {
            return self.named(name);
        }
        if let Some(forms) = schema["oneOf"].as_array() {
            let of = forms.iter().find(|form| form["type"] != "null");
            let is_null = |form: &Value| form["type"] == "null";
            return match of {
                Some(of) if forms.len() == 2 && forms.iter().any(is_null) => {
                    let inner = self.of_type(owner, member, of).rust;
                    Member {
                        rust: format!("Option<{inner}>"),
                        has_default: true,
                    }
                }
                _ => Member {
                    rust: "serde_json::Value".to_owned(),
                    has_default: true,
                },
            };
        }
        let (kind, nullable) = match &schema["type"] {
            Value::Array(kinds) => {
                let kind = kinds
                    .iter()
                    .filter_map(Value::as_str)
                    .find(|kind| *kind != "null");
                (kind, kinds.iter().any(|kind| kind == "null"))
            }
            kind => (kind.as_str(), false),
        };
        let plain = self.plain(owner, member, kind, schema);
        if nullable {
            Member {
                rust: format!("Option<{}>", plain.rust),
                has_default: true,
            }
        } else {
            plain
        }
    }

    fn plain(&mut self, owner: &str, member: &str, kind: Option<&str>, schema: &Value) -> Member {
        let nested = format!("{owner}{}", pascal(member));
        let known = |rust: &str| Member {
            rust: rust.to_owned(),
            has_default: true,
        };
        match kind {
            Some("boolean") => known("bool"),
            Some("integer") => known(integer(schema)),
            Some("string") if schema["enum"].is_array() => {
                if self.written.insert(nested.clone()) {
                    self.enumeration(&nested, schema);
                }
                Member {
                    rust: nested,
                    has_default: false,
                }
            }
            Some("string") => known("String"),
            Some("array") => {
                let item = self.of_type(owner, member, &schema["items"]).rust;
                known(&format!("Vec<{item}>"))
            }
            Some("object") if schema["properties"].is_object() => {
                if self.written.insert(nested.clone()) {
                    self.structure(&nested, schema, schema, "");
                }
                let has_default = self.defaults.get(&nested).copied().unwrap_or(false);
                Member {
                    rust: nested,
                    has_default,
                }
            }
            Some("object") if schema["additionalProperties"].is_object() => {
                let item = self
                    .of_type(owner, member, &schema["additionalProperties"])
                    .rust;
                known(&format!("std::collections::BTreeMap<String, {item}>"))
            }
            _ => known("serde_json::Value"),
        }
    }

    fn named(&mut self, name: &str) -> Member {
        if !self.written.contains(name)
            && let Some(schema) = self.schemas.get(name)
        {
            self.schema(name, schema);
        }
        // An alias has no entry: what it stands for is a text or a number, which have defaults.
        let has_default = self.defaults.get(name).copied().unwrap_or(true);
        Member {
            rust: name.to_owned(),
            has_default,
        }
    }

    /// A struct for the query of each operation that has one.
    fn queries(&mut self, document: &Value) {
        for operation in crate::operations::all(document) {
            let query = operation.query_schema();
            if members(&query).next().is_some() {
                let name = operation.query_name();
                self.structure(&name, &query, &query, "");
            }
        }
    }
}

fn integer(schema: &Value) -> &'static str {
    let is_signed = schema["minimum"].as_i64().is_none_or(|least| least < 0);
    match (schema["format"].as_str(), is_signed) {
        (Some("int32"), true) => "i32",
        (Some("int32"), false) => "u32",
        (_, true) => "i64",
        (_, false) => "u64",
    }
}
