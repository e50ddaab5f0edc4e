//! Answering: what becomes of a call, from the provider in front of the node to the bytes of the answer.

use std::{
    borrow::Cow,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json,
    body::{Body, Bytes},
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::StreamExt;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json, value::RawValue};
use tokio::time::sleep;

use super::{
    Asked, Fault, Source, lock,
    provider::{Gateway, Verdict},
    too_long, wire,
};

/// Error code of a node that does not want to answer.
const UNHEALTHY: i64 = -32005;

/// Time between the first half of an answer and the end of its connection.
const BREAKING_OFF: Duration = Duration::from_millis(5);

/// Pieces of an answer that drips.
const DRIPS: usize = 10;

/// A call as it is sent. What is not looked at stays text: the node shares the machine with what is measured.
#[derive(Deserialize)]
pub(super) struct Request<'a> {
    #[serde(borrow)]
    pub id: &'a RawValue,
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "list_or_null")]
    pub params: Vec<&'a RawValue>,
}

/// The parameters of a call; one that takes none may say null, as the client's own do.
fn list_or_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<&'de RawValue>, D::Error> {
    let params = Option::<Vec<&'de RawValue>>::deserialize(deserializer)?;
    Ok(params.unwrap_or_default())
}

/// How a call wants to be answered.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestConfig {
    min_context_slot: Option<u64>,
}

impl Request<'_> {
    pub fn min_slot(&self) -> Option<u64> {
        let config = self.params.last()?.get();
        serde_json::from_str::<RequestConfig>(config)
            .ok()?
            .min_context_slot
    }

    pub fn params(&self) -> Value {
        let params = self.params.iter();
        let params = params.map(|param| serde_json::from_str(param.get()).unwrap_or_default());
        Value::Array(params.collect())
    }
}

pub(super) async fn answer(State(node): State<Arc<Asked>>, body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let lists = request.method == "getProgramAccounts";
    let reads_accounts = lists || request.method == "getMultipleAccounts";
    let Some(gateway) = node.gateway().filter(|_| reads_accounts) else {
        return answer_of_node(&node, &request).await;
    };
    let verdict = lock(&gateway).judge(lists);
    match verdict {
        Verdict::Refused(pause, retry_after) => {
            sleep(pause).await;
            too_many_requests(retry_after)
        }
        Verdict::Passed { delay, drops } => {
            let _in_flight = InFlight(gateway);
            sleep(delay).await;
            let answer = answer_of_node(&node, &request).await;
            if drops { broken(answer).await } else { answer }
        }
    }
}

/// A call that a provider has let through. Ends with the call, also when the client goes before.
struct InFlight(Arc<Mutex<Gateway>>);

impl Drop for InFlight {
    fn drop(&mut self) {
        lock(&self.0).ended();
    }
}

fn too_many_requests(retry_after: Option<&'static str>) -> Response {
    let refusal = (StatusCode::TOO_MANY_REQUESTS, "Too Many Requests");
    match retry_after {
        Some(seconds) => ([(header::RETRY_AFTER, seconds)], refusal).into_response(),
        None => refusal.into_response(),
    }
}

/// The first half of an answer, and then the end of the connection.
async fn broken(answer: Response) -> Response {
    let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await;
    let body = body.unwrap_or_default();
    let half = body.slice(..body.len() / 2);
    ending(half)
}

async fn answer_of_node(node: &Asked, request: &Request<'_>) -> Response {
    let least = request.min_slot();
    let (fault, fails, delay) = node.note(request, least);
    let id = serde_json::from_str(request.id.get()).unwrap_or(Value::Null);
    let mut drips = None;
    match fault {
        Some(Fault::Http(status)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            return status.into_response();
        }
        Some(Fault::Refused(code, text)) => {
            return Json(wire::refusal(&id, code, &text, Value::Null)).into_response();
        }
        Some(Fault::HangsUp) => return ending(Bytes::from_static(b"{\"jsonrpc\": \"2.0\", ")),
        Some(Fault::Garbage) => return "<html>Bad Gateway</html>".into_response(),
        Some(Fault::Slow(pause)) => sleep(pause).await,
        Some(Fault::Drips(pause)) => drips = Some(pause),
        None => {}
    }
    // The answer is that of the moment when the call came.
    let answer = if fails {
        Json(wire::refusal(
            &id,
            UNHEALTHY,
            "Node is unhealthy",
            Value::Null,
        ))
        .into_response()
    } else {
        node.answer(request, &id, least)
    };
    if !delay.is_zero() {
        sleep(delay).await;
    }
    match drips {
        Some(pause) => dripping(answer, pause).await,
        None => answer,
    }
}

/// The same answer, in pieces with pauses before them.
async fn dripping(answer: Response, pause: Duration) -> Response {
    let (head, body) = answer.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await;
    let body = body.unwrap_or_default();
    let length = body.len().div_ceil(DRIPS).max(1);
    let pieces: Vec<Bytes> = body.chunks(length).map(Bytes::copy_from_slice).collect();
    let pieces = futures::stream::iter(pieces).then(move |piece| async move {
        sleep(pause).await;
        Ok::<_, io::Error>(piece)
    });
    Response::from_parts(head, Body::from_stream(pieces))
}

impl Asked {
    fn note(&self, request: &Request<'_>, least: Option<u64>) -> (Option<Fault>, bool, Duration) {
        let mut play = self.play();
        *play.counts.entry(request.method.to_string()).or_default() += 1;
        if let Some(least) = least {
            *play.demands.entry(request.method.to_string()).or_default() = least;
        }
        // A market asks for the newest slot all the time; what a script plays is meant for what it reads.
        let fault = (request.method != "getSlot").then(|| play.faults.pop_front());
        (fault.flatten(), play.fails, play.delay)
    }

    fn answer(&self, request: &Request<'_>, id: &Value, least: Option<u64>) -> Response {
        if request.method == "sendTransaction" {
            return match wire::sent(&request.params()) {
                Ok((bytes, signature)) => {
                    self.play().sent.push(bytes);
                    Json(json!({"jsonrpc": "2.0", "id": id, "result": signature})).into_response()
                }
                Err(what) => self.refuse(id, what),
            };
        }
        match lock(&self.blocks).answer(&request.method, &request.params()) {
            Ok(None) => {}
            Ok(Some(Ok(result))) => {
                return Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
            }
            Ok(Some(Err((code, text)))) => {
                return Json(wire::refusal(id, code, &text, Value::Null)).into_response();
            }
            Err(what) => return self.refuse(id, what),
        }
        if let Some(result) = self.scripted(request) {
            return Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response();
        }
        match &self.source {
            Source::Rendered(rendered) => {
                let answer = lock(rendered).answer(request, least, |length| self.sends(length));
                match answer {
                    Ok(Some(body)) => {
                        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
                    }
                    Ok(None) => Json(too_long(id)).into_response(),
                    Err(what) => self.refuse(id, what),
                }
            }
            Source::Chain(chain) => match wire::parse(&request.method, &request.params()) {
                Ok(call) => Json(self.answer_of_chain(chain, id, &call)).into_response(),
                Err(what) => self.refuse(id, what),
            },
        }
    }

    /// What a test has scripted for this method.
    fn scripted(&self, request: &Request<'_>) -> Option<Value> {
        let mut play = self.play();
        let scripted = play.scripted.get(&*request.method).cloned()?;
        play.params
            .insert(request.method.to_string(), request.params());
        Some(scripted)
    }

    fn refuse(&self, id: &Value, what: String) -> Response {
        let answer = Json(wire::unknown(id, &what)).into_response();
        self.play().unknown.push(what);
        answer
    }
}

/// An answer that begins like this, and then the end of the connection, late enough for the client to have the beginning.
fn ending(begun: Bytes) -> Response {
    let broken = async {
        sleep(BREAKING_OFF).await;
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    };
    let begun = futures::stream::iter([Ok(begun)]);
    Body::from_stream(begun.chain(futures::stream::once(broken))).into_response()
}
