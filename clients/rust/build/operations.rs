//! Operations: a method of the client for each operation of the document, and a trial that sends it (pure).

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::names::{comment, field, pascal, referred, snake};

/// What an answer is.
#[derive(Clone, Debug)]
enum Answer {
    Nothing,
    Json(String),
    /// Server-sent events with this name.
    Events(String),
    /// A line of JSON for each item.
    Lines(String),
}

/// One operation.
#[derive(Debug)]
pub struct Operation<'a> {
    pub id: &'a str,
    method: String,
    path: &'a str,
    summary: Option<&'a str>,
    parameters: Vec<&'a Value>,
    body: Option<&'a Value>,
    answer: Answer,
    /// Statuses with an answer of the same kind.
    statuses: Vec<u16>,
}

/// All operations, in the order of the document.
pub fn all(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.filter_map(move |(method, operation)| Operation::read(path, method, operation))
    });
    operations.collect()
}

/// The generated methods.
pub fn module(document: &Value) -> String {
    let mut code =
        "/// Every operation of the service, as its document describes it.\nimpl Client {\n"
            .to_owned();
    for operation in all(document) {
        code += &operation.code();
    }
    code += "}\n\n";
    code
}

/// The generated tests' calls: each operation with the examples of the document.
pub fn trials(document: &Value) -> String {
    let mut code = "/// Calls the operation with what its example says, and returns what was read.\nasync fn call(client: &Client, id: &str, trial: &Trial) -> Result<Value, Error> {\n    match id {\n".to_owned();
    for operation in all(document) {
        code += &operation.trial();
    }
    code += "        _ => Ok(Value::from(\"no method\")),\n    }\n}\n";
    code
}

impl<'a> Operation<'a> {
    fn read(path: &'a str, method: &str, operation: &'a Value) -> Option<Self> {
        let responses = operation["responses"].as_object()?;
        let (status, first) = responses
            .iter()
            .find(|(status, _)| status.starts_with('2'))?;
        let status: u16 = status.parse().ok()?;
        let mut statuses = vec![status];
        for (other, response) in responses {
            if let Ok(other) = other.parse()
                && other != status
                && response["content"]["application/json"]["schema"].is_object()
                && response["content"]["application/json"]["schema"]
                    == first["content"]["application/json"]["schema"]
            {
                statuses.push(other);
            }
        }
        Some(Self {
            id: operation["operationId"].as_str()?,
            method: method.to_ascii_uppercase(),
            path,
            summary: operation["summary"].as_str(),
            parameters: operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .collect(),
            body: operation.get("requestBody"),
            answer: answer(first),
            statuses,
        })
    }

    fn named_in(&self, place: &str) -> impl Iterator<Item = &'a str> {
        let parameters = self.parameters.iter().filter(move |one| one["in"] == place);
        parameters.filter_map(|one| one["name"].as_str())
    }

    /// The query's name as a type.
    pub fn query_name(&self) -> String {
        format!("{}Query", pascal(self.id))
    }

    /// The query as the schema of an object.
    pub fn query_schema(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for one in self.parameters.iter().filter(|one| one["in"] == "query") {
            let Some(name) = one["name"].as_str() else {
                continue;
            };
            let mut schema = one["schema"].clone();
            if let Some(description) = one.get("description") {
                schema["description"] = description.clone();
            }
            properties.insert(name.to_owned(), schema);
            if one["required"] == true {
                required.push(name);
            }
        }
        let description = format!("What `{}` may ask for.", self.id);
        json!({"description": description, "properties": properties, "required": required})
    }

    fn has_query(&self) -> bool {
        self.named_in("query").next().is_some()
    }

    /// The body's type, and whether one must be sent.
    fn body(&self) -> Option<(&'a str, bool)> {
        let schema = &self.body?["content"]["application/json"]["schema"];
        if let Some(name) = referred(schema) {
            return Some((name, true));
        }
        let forms = schema["oneOf"].as_array()?;
        Some((forms.iter().find_map(referred)?, false))
    }

    /// Whether one may be sent twice: it changes nothing, or twice the same as once.
    fn is_repeatable(&self) -> bool {
        self.method != "POST" && self.method != "PATCH" || self.path.starts_with("/v1/")
    }

    fn arguments(&self) -> String {
        let mut arguments = String::new();
        for name in self.named_in("path") {
            let _ = write!(arguments, ", {}: &str", field(name));
        }
        if self.has_query() {
            let _ = write!(arguments, ", query: &wire::{}", self.query_name());
        }
        match self.body() {
            Some((name, true)) => arguments += &format!(", body: &wire::{name}"),
            Some((name, false)) => arguments += &format!(", body: Option<&wire::{name}>"),
            None => {}
        }
        for name in self.named_in("header") {
            let _ = write!(arguments, ", {}: Option<&str>", field(name));
        }
        arguments
    }

    fn code(&self) -> String {
        let Self {
            id, method, path, ..
        } = self;
        let doc = comment(self.summary, id, "    ");
        let mut request = format!(
            "Request::new(reqwest::Method::{method}, \"{path}\", {})",
            self.is_repeatable()
        );
        for name in self.named_in("path") {
            let _ = write!(request, ".path(\"{name}\", {})", field(name));
        }
        if self.has_query() {
            request += ".query(query)";
        }
        match self.body() {
            Some((_, true)) => request += ".body(Some(body))",
            Some((_, false)) => request += ".body(body)",
            None => {}
        }
        for name in self.named_in("header") {
            let _ = write!(request, ".header(\"{name}\", {})", field(name));
        }
        let statuses: Vec<String> = self.statuses.iter().map(u16::to_string).collect();
        let (returned, send) = match &self.answer {
            Answer::Nothing => ("()".to_owned(), "self.carry_out(request).await".to_owned()),
            Answer::Json(name) => (
                format!("wire::{name}"),
                format!("self.call(request, &[{}]).await", statuses.join(", ")),
            ),
            Answer::Events(name) => (
                format!("Items<wire::{name}>"),
                "self.open(request, Framing::Events).await".to_owned(),
            ),
            Answer::Lines(name) => (
                format!("Items<wire::{name}>"),
                "self.open(request, Framing::Lines).await".to_owned(),
            ),
        };
        format!(
            "{doc}    ///\n    /// `{method} {path}`.\n    ///\n    /// # Errors\n    /// \
             [`Error`], with the service's problem where it refuses.\n    \
             pub async fn {}(&self{}) -> Result<{returned}, Error> {{\n        \
             let request = {request}.finish()?;\n        {send}\n    }}\n\n",
            snake(id),
            self.arguments(),
        )
    }

    fn trial(&self) -> String {
        let mut arguments: Vec<String> = Vec::new();
        for name in self.named_in("path") {
            arguments.push(format!("trial.text(\"{name}\")"));
        }
        if self.has_query() {
            arguments.push("&trial.query()".to_owned());
        }
        match self.body() {
            Some((_, true)) => arguments.push("&trial.body()".to_owned()),
            Some((_, false)) => arguments.push("Some(&trial.body())".to_owned()),
            None => {}
        }
        for name in self.named_in("header") {
            arguments.push(format!("Some(trial.text(\"{name}\"))"));
        }
        let call = format!("client.{}({}).await?", snake(self.id), arguments.join(", "));
        let read = match self.answer {
            Answer::Nothing => format!("{{ {call}; Ok(Value::Null) }}"),
            Answer::Json(_) => format!("Ok(json({call}))"),
            Answer::Events(_) | Answer::Lines(_) => {
                format!(
                    "{{ let mut items = {call}; Ok(items.next().await?.map_or(Value::Null, json)) }}"
                )
            }
        };
        format!("        \"{}\" => {read},\n", self.id)
    }
}

fn answer(response: &Value) -> Answer {
    let content = response["content"].as_object().into_iter().flatten();
    for (media, content) in content {
        let Some(name) = referred(&content["schema"]) else {
            continue;
        };
        let name = name.to_owned();
        return match media.as_str() {
            "text/event-stream" => Answer::Events(name),
            "application/x-ndjson" => Answer::Lines(name),
            _ => Answer::Json(name),
        };
    }
    Answer::Nothing
}
