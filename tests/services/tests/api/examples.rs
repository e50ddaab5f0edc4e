//! Examples of the API's document: each is sent as it stands, and what it answers has the described shape.
//!
//! With `SLUICE_RECORD_EXAMPLES=FILE` the answers are written to a file of the form of `api/src/openapi/examples.json`, whose
//! requests may then name what only a running service knows, such as `$webhook`.

mod schema;

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use reqwest::{Method, Response};
use serde_json::{Map, Value, json};
use sluice_store::{
    ApiKeyId, ApiKeySecret, BodyTemplate, Commit, Commitment, EventKind, MessageId, MessageKind,
    NewApiKey, NewMessage, Scope, Scopes, Store, Timestamp, WebhookId,
};
use sluice_testkit::{
    names::keypair,
    webhook_receiver::{Reply, WebhookReceiver},
};
use solana_transaction::versioned::VersionedTransaction;
use tokio::time::timeout;

use self::schema::faults;
use crate::client::{Client, wallet};

/// How long a stream may take to send its first message.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names the file to which answers are recorded.
const RECORD: &str = "SLUICE_RECORD_EXAMPLES";

/// All operations, in an order in which each finds what it needs.
const ORDER: [&str; 47] = [
    "live",
    "ready",
    "getQuote",
    "streamQuotes",
    "listPools",
    "getPool",
    "getMint",
    "getPriorityFees",
    "buildTransaction",
    "buildInstruction",
    "checkTransaction",
    "explainTransaction",
    "sendTransaction",
    "getTransaction",
    "streamTransaction",
    "createWebhook",
    "getWebhook",
    "replaceWebhook",
    "changeWebhook",
    "addAccounts",
    "removeAccounts",
    "addPrograms",
    "removePrograms",
    "listWebhooks",
    "getUsage",
    "rotateSecret",
    "listEvents",
    "getMessage",
    "listDeliveries",
    "redeliver",
    "skipMessage",
    "setOperations",
    "getOperations",
    "requestBackfill",
    "getBackfill",
    "requestDryRun",
    "getDryRun",
    "putIdl",
    "getIdl",
    "testWebhook",
    "openStream",
    "reportMessage",
    "deleteIdl",
    "deleteWebhook",
    "createKey",
    "listKeys",
    "revokeKey",
];

/// What is asked of an operation, and how the document describes it.
struct Operation {
    method: Method,
    path: String,
    description: Value,
}

impl Operation {
    fn all(document: &Value) -> Vec<Self> {
        let paths = document["paths"].as_object().expect("paths");
        let of_path = |(path, methods): (&String, &Value)| {
            let methods = methods.as_object().expect("operations").clone();
            let path = path.clone();
            methods.into_iter().map(move |(method, description)| Self {
                method: method.to_uppercase().parse().expect("a method"),
                path: path.clone(),
                description,
            })
        };
        paths.iter().flat_map(of_path).collect()
    }

    fn name(&self) -> &str {
        self.description["operationId"].as_str().expect("a name")
    }

    /// The parameters that have an example: name, place, value as text.
    fn parameters(&self) -> impl Iterator<Item = (&str, &str, String)> {
        let parameters = self.description["parameters"].as_array();
        let parameters = parameters.into_iter().flatten();
        parameters.filter_map(|parameter| {
            let value = match parameter.get("example")? {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let text = |name: &str| parameter[name].as_str().expect("a text");
            Some((text("name"), text("in"), value))
        })
    }

    fn body(&self) -> Option<&Value> {
        self.description
            .pointer("/requestBody/content/application~1json/example")
    }

    /// Status, schema and example of what is answered where all is well.
    fn answer(&self) -> (u16, Option<(&Value, &Value)>) {
        let responses = self.description["responses"].as_object();
        let mut responses = responses.expect("answers").iter();
        let well = responses.find(|(status, _)| status.starts_with('2'));
        let (status, response) = well.expect("an answer");
        let content = response["content"].as_object();
        let content = content.and_then(|content| content.values().next());
        let described = content.map(|content| (&content["schema"], &content["example"]));
        (status.parse().expect("a status"), described)
    }
}

/// A run through all examples: what stands in them, and what this service has in its place.
struct Run {
    client: Client,
    store: Store,
    known: Vec<(String, String)>,
    recorded: Map<String, Value>,
    /// The API key of those operations that need one.
    key: Option<String>,
}

impl Run {
    async fn start() -> Self {
        let client = Client::start_sending(&[]).await;
        client.enrich(10_000_000_000);
        let fees = (1..=100).map(|n| json!({ "slot": 100 + n, "prioritizationFee": n * 1_000 }));
        let fees: Vec<_> = fees.collect();
        let node = &client.harness.node;
        node.script("getRecentPrioritizationFees", json!(fees));
        let store = Store::open(&client.harness.database).await.expect("opens");
        let pool = &client.harness.sol_pool;
        let known = [
            ("$pool", pool.address),
            ("$mint", pool.state.mints.token_1),
            ("$wallet", wallet()),
        ];
        let known = known.map(|(name, address)| (name.to_owned(), address.to_string()));
        let messages = [1, 3].map(|number| {
            let id = MessageId::from_bytes([number; 32]);
            (format!("$message{number}"), id.to_string())
        });
        Self {
            known: known.into_iter().chain(messages).collect(),
            client,
            store,
            recorded: Map::new(),
            key: None,
        }
    }

    /// What stands in the examples under this name is this now.
    fn learn(&mut self, name: &str, example: Option<&str>, now: &str) {
        let names = [Some(name), example].into_iter().flatten();
        self.known
            .extend(names.map(|name| (name.to_owned(), now.to_owned())));
    }

    fn filled(&self, text: &str) -> String {
        let fill = |text: String, (name, now): &(String, String)| text.replace(name, now);
        self.known.iter().fold(text.to_owned(), fill)
    }

    /// Sends the example of an operation, and holds the answer to its schema.
    async fn send(&mut self, document: &Value, operation: &Operation) -> (Value, Response) {
        let mut path = operation.path.clone();
        let (mut query, mut parameters) = (Vec::new(), Map::new());
        for (name, place, value) in operation.parameters() {
            let value = self.filled(&value);
            let plain = serde_json::from_str(&value).ok();
            let plain = plain.filter(|value: &Value| value.is_number() || value.is_boolean());
            parameters.insert(name.to_owned(), plain.unwrap_or_else(|| json!(value)));
            match place {
                "path" => path = path.replace(&format!("{{{name}}}"), &value),
                "query" => query.push(format!("{name}={value}")),
                _ => {}
            }
        }
        assert!(!path.contains('{'), "{path}: a parameter has no example");
        let url = format!("{}{path}?{}", self.client.harness.url, query.join("&"));
        let mut request = self.client.http.request(operation.method.clone(), url);
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let body = operation.body().map(|body| self.filled(&body.to_string()));
        let asks = &operation.description["requestBody"];
        assert!(asks.is_null() || body.is_some(), "{path}: no body");
        if let Some(body) = &body {
            request = request
                .header("content-type", "application/json")
                .body(body.clone());
        }
        let response = request.send().await.expect("an answer");
        let (status, described) = operation.answer();
        let name = operation.name();
        if response.status() != status {
            panic!("{name}: {} {:?}", response.status(), response.text().await);
        }
        let mut response = response;
        let answer = match described {
            Some((schema, example)) => {
                let answer = first(&mut response).await;
                let wrong = faults(document, schema, &answer);
                assert!(wrong.is_empty(), "{name}: {wrong:#?}");
                if std::env::var_os(RECORD).is_none() {
                    let wrong = faults(document, schema, example);
                    assert!(wrong.is_empty(), "the example of {name}: {wrong:#?}");
                }
                answer
            }
            None => Value::Null,
        };
        let body = body.map(|body| serde_json::from_str::<Value>(&body).expect("JSON"));
        let mut recorded = Map::new();
        if !parameters.is_empty() {
            recorded.insert("parameters".to_owned(), parameters.into());
        }
        recorded.extend(body.map(|body| ("body".to_owned(), body)));
        if !answer.is_null() {
            recorded.insert("answer".to_owned(), answer.clone());
        }
        self.recorded.insert(name.to_owned(), recorded.into());
        (answer, response)
    }

    /// Does what must be there before an operation is asked.
    #[expect(
        clippy::disallowed_methods,
        reason = "the key must be accepted by the API, whose clock is the system's"
    )]
    async fn prepare(&mut self, operation: &Operation, receiver: &WebhookReceiver) {
        match operation.name() {
            "listEvents" => {
                let webhook = self.filled("$webhook");
                self.messages(&webhook, 1..=2).await;
            }
            "testWebhook" => {
                let path = format!("/api/webhooks/{}", self.filled("$webhook"));
                let change = json!({ "url": receiver.url() }).to_string();
                let url = format!("{}{path}", self.client.harness.url);
                let request = self.client.http.patch(url).body(change);
                let changed = request.header("content-type", "application/json").send();
                assert_eq!(changed.await.expect("an answer").status(), 200);
            }
            "openStream" => {
                let body = json!({ "temporary": true, "events": ["transaction"], "filters": { "programs": [wallet().to_string()] } });
                let created = self.client.post("/api/webhooks", &body).await;
                assert_eq!(created.status, 201, "{}", created.body);
                let id = created.body["webhook"]["id"].as_str().expect("an id");
                let example = operation.parameters().next().map(|(_, _, id)| id);
                self.learn("$temporary", example.as_deref(), id);
                self.messages(id, 3..=3).await;
            }
            // Last of all: once there is a key, every caller needs one.
            "createKey" => {
                let secret = ApiKeySecret::from_random([7; 32]);
                let new = NewApiKey {
                    id: ApiKeyId::from_random([7; 8]),
                    name: "operator".to_owned(),
                    hash: secret.hash(),
                    created: Timestamp::from(SystemTime::now()),
                    expires: None,
                    scopes: Scopes::only(Scope::ALL),
                };
                self.store.create_api_key(&new).await.expect("stores");
                self.key = Some(secret.expose().to_owned());
            }
            _ => {}
        }
    }

    /// Stores messages for a webhook, as an indexer does.
    #[expect(
        clippy::disallowed_methods,
        reason = "the API, whose clock is the system's, must find the messages due"
    )]
    async fn messages(&self, webhook: &str, numbers: std::ops::RangeInclusive<u8>) {
        let webhook = WebhookId::parse(webhook).expect("an id");
        let message = |number: u8| NewMessage {
            id: MessageId::from_bytes([number; 32]),
            webhook: webhook.clone(),
            kind: MessageKind::Event(EventKind::Transaction),
            commitment: Commitment::Confirmed,
            slot: 7,
            order_key: None,
            body: BodyTemplate::new(
                format!(r#"{{"type":"transaction","webhookId":"{webhook}","sequence":"#),
                r#","data":{"slot":7,"isVote":false}}"#.to_owned().into(),
            ),
        };
        let slot = u64::from(*numbers.start());
        let messages: Vec<_> = numbers.map(message).collect();
        let now = Timestamp::from(SystemTime::now());
        let commit = Commit::slot(Commitment::Confirmed, slot, &messages, now);
        self.store.commit(&commit).await.expect("stores");
    }

    /// The transaction of an answer, signed by its wallet.
    fn signed(answer: &Value) -> (String, String) {
        let text = answer["transaction"].as_str().expect("a transaction");
        let bytes = BASE64.decode(text).expect("base64");
        let unsigned: VersionedTransaction =
            wincode::deserialize_exact(&bytes).expect("a transaction");
        let signed = VersionedTransaction::try_new(unsigned.message, &[keypair("client")]);
        let signed = signed.expect("the wallet is the only signer");
        let bytes = wincode::serialize(&signed).expect("bytes");
        (BASE64.encode(bytes), signed.signatures[0].to_string())
    }
}

/// The first JSON text of an answer: all of it, or of a stream the first message.
async fn first(response: &mut Response) -> Value {
    let kind = response.headers()["content-type"].to_str();
    let (begins, ends) = match kind.expect("a text") {
        "text/event-stream" => ("data: ", "\n\n"),
        "application/x-ndjson" => ("", "\n"),
        _ => {
            let mut whole = Vec::new();
            while let Some(chunk) = response.chunk().await.expect("an unbroken answer") {
                whole.extend_from_slice(&chunk);
            }
            return serde_json::from_slice(&whole).expect("JSON");
        }
    };
    let mut text = String::new();
    loop {
        let chunk = timeout(PATIENCE, response.chunk()).await.expect("in time");
        let chunk = chunk.expect("an unbroken stream").expect("a message");
        text.push_str(std::str::from_utf8(&chunk).expect("text"));
        let messages = text.rsplit_once(ends).map(|(messages, _)| messages);
        let mut lines = messages.into_iter().flat_map(str::lines);
        if let Some(json) = lines.find_map(|line| line.strip_prefix(begins))
            && !json.is_empty()
        {
            return serde_json::from_str(json).expect("JSON");
        }
    }
}

#[tokio::test]
async fn every_operation_has_an_example_that_is_answered_as_described() {
    let mut run = Run::start().await;
    let document = run.client.get("/openapi.json").await.body;
    let operations = Operation::all(&document);
    let names: BTreeSet<_> = operations.iter().map(Operation::name).collect();
    assert_eq!(
        names,
        BTreeSet::from(ORDER),
        "each has a place in the order"
    );
    let receiver = WebhookReceiver::always(Reply::Accept).await;
    let receiver = receiver.expect("a receiver");
    let mut relay = None;
    for name in ORDER {
        let operation = operations.iter().find(|operation| operation.name() == name);
        let operation = operation.expect("an operation");
        run.prepare(operation, &receiver).await;
        let (answer, response) = run.send(&document, operation).await;
        // What is reported came down a stream that is open still.
        if name == "openStream" {
            relay = Some(response);
        }
        let example = operation.answer().1.map(|(_, example)| example);
        let text = |value: &Value, pointer: &str| {
            value
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let mut learn = |name: &str, pointer: &str| {
            let known = example.and_then(|example| text(example, pointer));
            let now = text(&answer, pointer).expect("a text");
            run.learn(name, known.as_deref(), &now);
        };
        match name {
            "createWebhook" => learn("$webhook", "/webhook/id"),
            "createKey" => learn("$key", "/key/id"),
            "buildTransaction" => {
                learn("$transaction", "/transaction");
                let (signed, signature) = Run::signed(&answer);
                let of = |name: &str| operations.iter().find(|operation| operation.name() == name);
                let sending = of("sendTransaction").expect("it is there");
                let body = sending.body().and_then(|body| text(body, "/transaction"));
                run.learn("$signed", body.as_deref(), &signed);
                let example = sending.answer().1;
                let example = example.and_then(|(_, example)| text(example, "/signature"));
                run.learn("$signature", example.as_deref(), &signature);
            }
            _ => {}
        }
    }
    drop(relay);
    if let Some(file) = std::env::var_os(RECORD) {
        let text = serde_json::to_string_pretty(&run.recorded).expect("JSON");
        std::fs::write(file, text + "\n").expect("written");
    }
}
