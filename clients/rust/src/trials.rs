//! Trials: every operation is sent to a server that judges it by the document, and its example is read without loss.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use crate::{Client, Error};

include!(concat!(env!("OUT_DIR"), "/trials.rs"));

/// An operation as the document describes it.
#[derive(Clone)]
struct Trial {
    method: String,
    path: String,
    operation: Value,
}

/// What is sent where the document has no example of a parameter.
const SOMETHING: &str = "1";

impl Trial {
    fn all() -> Vec<Self> {
        let text = std::fs::read_to_string("openapi.json").expect("the document");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let paths = document["paths"].as_object().expect("paths").clone();
        let trials = paths.into_iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods").clone();
            methods.into_iter().map(move |(method, operation)| Self {
                method: method.to_ascii_uppercase(),
                path: path.clone(),
                operation,
            })
        });
        trials.collect()
    }

    fn id(&self) -> &str {
        self.operation["operationId"].as_str().expect("an id")
    }

    fn parameters(&self, place: &str) -> impl Iterator<Item = &Value> {
        let all = self.operation["parameters"]
            .as_array()
            .into_iter()
            .flatten();
        all.filter(move |one| one["in"] == place)
    }

    /// The example of a parameter in path or header.
    fn text(&self, name: &str) -> &str {
        let mut all = self.operation["parameters"]
            .as_array()
            .into_iter()
            .flatten();
        let found = all.find(|one| one["name"] == name).expect("a parameter");
        found["example"].as_str().unwrap_or(SOMETHING)
    }

    fn query_of_examples(&self) -> Map<String, Value> {
        let all = self.parameters("query");
        let with = all.filter_map(|one| {
            let name = one["name"].as_str()?.to_owned();
            Some((name, one.get("example")?.clone()))
        });
        with.collect()
    }

    fn query<T: DeserializeOwned>(&self) -> T {
        serde_json::from_value(Value::Object(self.query_of_examples())).expect("a query")
    }

    fn body<T: DeserializeOwned>(&self) -> T {
        let example =
            self.operation["requestBody"]["content"]["application/json"]["example"].clone();
        serde_json::from_value(example).expect("a body")
    }

    /// Media type and example of the answer.
    fn answer(&self) -> (String, Value) {
        let responses = self.operation["responses"].as_object().expect("responses");
        let mut all = responses.iter();
        let (_, first) = all
            .find(|(status, _)| status.starts_with('2'))
            .expect("a success");
        let mut content = first["content"].as_object().into_iter().flatten();
        content
            .next()
            .map_or((String::new(), Value::Null), |(media, content)| {
                (media.clone(), content["example"].clone())
            })
    }

    fn expected_path(&self) -> String {
        self.parameters("path")
            .fold(self.path.clone(), |path, one| {
                let name = one["name"].as_str().expect("a name");
                path.replace(&format!("{{{name}}}"), self.text(name))
            })
    }
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("JSON")
}

/// What was sent.
#[derive(Clone, Debug)]
struct Sent {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    headers: axum::http::HeaderMap,
    body: Value,
}

type Judge = (Trial, Arc<Mutex<Vec<Sent>>>);

async fn answer(State((trial, sent)): State<Judge>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    let url = url::Url::parse(&format!("http://host{}", parts.uri)).expect("a URL");
    sent.lock().expect("no panic").push(Sent {
        method: parts.method.to_string(),
        path: url.path().to_owned(),
        query: url.query_pairs().into_owned().collect(),
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or(Value::Null),
    });
    match trial.answer() {
        (media, _) if media.is_empty() => StatusCode::NO_CONTENT.into_response(),
        (media, example) => {
            let text = match media.as_str() {
                "text/event-stream" => format!("event: item\ndata: {example}\n\n"),
                _ => format!("{example}\n"),
            };
            ([(CONTENT_TYPE, media)], text).into_response()
        }
    }
}

async fn judged(trial: &Trial) -> (Result<Value, Error>, Vec<Sent>) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new()
        .fallback(answer)
        .with_state((trial.clone(), Arc::clone(&sent)));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let client = Client::new(&format!("http://{address}")).expect("a client");
    let read = call(&client, trial.id(), trial).await;
    server.abort();
    let sent = sent.lock().expect("no panic").clone();
    (read, sent)
}

#[tokio::test]
async fn every_operation_is_sent_as_described_and_its_example_read_without_loss() {
    let trials = Trial::all();
    assert!(trials.len() > 30, "{} operations", trials.len());
    for trial in trials {
        let id = trial.id().to_owned();
        let (read, sent) = judged(&trial).await;
        let read = read.unwrap_or_else(|error| panic!("{id}: {error}"));
        assert_eq!(
            read,
            trial.answer().1,
            "{id}: what was read, and the example"
        );
        let [sent] = &sent[..] else {
            panic!("{id}: {sent:?}");
        };
        assert_eq!(
            (&sent.method, &sent.path),
            (&trial.method, &trial.expected_path()),
            "{id}"
        );
        let text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        let query = trial.query_of_examples();
        let query: Vec<(String, String)> = query
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        assert_eq!(sent.query, query, "{id}");
        for header in trial.parameters("header") {
            let name = header["name"].as_str().expect("a name");
            let value = sent.headers.get(name).and_then(|value| value.to_str().ok());
            assert_eq!(value, Some(trial.text(name)), "{id}: {name}");
        }
        let body = &trial.operation["requestBody"]["content"]["application/json"]["example"];
        assert_eq!(&sent.body, body, "{id}: the body");
    }
}

#[test]
fn a_change_tells_null_from_absent() {
    let change: crate::wire::ChangeBody =
        serde_json::from_value(json!({"description": null, "gzip": true})).expect("a change");
    assert_eq!(json(&change), json!({"description": null, "gzip": true}));
    assert_eq!(json(crate::wire::ChangeBody::default()), json!({}));
}

#[test]
fn a_name_of_a_later_version_is_kept() {
    let code: crate::wire::ProblemCode =
        serde_json::from_value(json!("comet_near")).expect("a code");
    assert_eq!(json(&code), "comet_near");
    assert!(matches!(code, crate::wire::ProblemCode::Other(_)));
}
