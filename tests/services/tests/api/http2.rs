//! HTTP/2 without TLS: requests and streams side by side over one connection, its limits, and how it ends.

use std::time::Duration;

use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use bytes::Bytes;
use futures::{SinkExt, future::join_all};
use http_body_util::{BodyExt, Full};
use hyper::{
    Response,
    body::Incoming,
    client::conn::http2::{Builder, SendRequest},
    ext::Protocol,
    upgrade::{self, Upgraded},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
    time::sleep,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{CloseFrame, Role, frame::coding::CloseCode},
    },
};

use crate::{client::Client, crowd::soon, sockets::Socket};

/// After which an idle connection is ended, in the tests that wait for it.
const HEAD_TIMEOUT: Duration = Duration::from_millis(500);
const ENDS_SOON: &str = "[api.clients]\nhead-timeout-ms = 500";

/// A body that is refused by its head.
const TOO_LONG: usize = 20_000;

/// Bytes of a stream that are taken in before they are read: more than any of these tests sends.
const WIDE: u32 = 1 << 20;

/// A connection that speaks HTTP/2.
struct Multiplexed {
    requests: SendRequest<Full<Bytes>>,
    /// Ends with the connection.
    connection: JoinHandle<()>,
    authority: String,
}

/// A stream as its reader has it.
struct Stream {
    body: Incoming,
    text: String,
}

impl Client {
    async fn tcp(&self) -> TcpStream {
        let connected = TcpStream::connect(("127.0.0.1", self.harness.port)).await;
        connected.expect("a connection")
    }

    /// A connection of whose streams so many bytes are taken in before they are read.
    async fn multiplexed(&self, window: u32) -> Multiplexed {
        let mut builder = Builder::new(TokioExecutor::new());
        let builder = builder.initial_stream_window_size(window);
        let shaken = builder.handshake(TokioIo::new(self.tcp().await)).await;
        let (requests, connection) = shaken.expect("HTTP/2 is spoken");
        Multiplexed {
            requests,
            connection: tokio::spawn(async move {
                let _ = connection.await;
            }),
            authority: format!("127.0.0.1:{}", self.harness.port),
        }
    }
}

impl Multiplexed {
    /// The answer to this: status, headers and body.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> (StatusCode, HeaderMap, Incoming) {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.authority))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        let mut requests = self.requests.clone();
        let answer = soon(requests.send_request(request)).await;
        let (parts, body) = answer.expect("an answer").into_parts();
        (parts.status, parts.headers, body)
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        let (status, _, body) = self.ask(Method::GET, path, Vec::new()).await;
        let bytes = soon(body.collect()).await.expect("a body").to_bytes();
        (status, serde_json::from_slice(&bytes).expect("JSON"))
    }

    async fn stream(&self, path: &str) -> Stream {
        let (status, headers, body) = self.ask(Method::GET, path, Vec::new()).await;
        assert_eq!(status, 200);
        assert_eq!(headers[header::CONTENT_TYPE], "text/event-stream");
        Stream {
            body,
            text: String::new(),
        }
    }

    /// The answer to a request that its stream become one of this protocol, with this version of WebSocket.
    async fn connect(
        &self,
        path: &str,
        protocol: &'static str,
        version: &str,
    ) -> Response<Incoming> {
        let request = Request::connect(format!("http://{}{path}", self.authority))
            .extension(Protocol::from_static(protocol))
            .header(header::SEC_WEBSOCKET_VERSION, version)
            .body(Full::default())
            .expect("a request");
        let mut requests = self.requests.clone();
        let answer = soon(requests.send_request(request)).await;
        answer.expect("an answer")
    }

    /// The problem with which such a request is refused.
    async fn refused(&self, path: &str, protocol: &'static str, version: &str) -> (u16, Value) {
        let answer = self.connect(path, protocol, version).await;
        let status = answer.status().as_u16();
        assert!(answer.headers().contains_key("x-request-id"), "{answer:?}");
        let body = soon(answer.into_body().collect()).await.expect("a body");
        let problem = serde_json::from_slice(&body.to_bytes());
        (status, problem.expect("JSON"))
    }

    async fn socket(&self, path: &str) -> Socket<TokioIo<Upgraded>> {
        let answer = self.connect(path, "websocket", "13").await;
        assert_eq!(answer.status(), 200);
        let stream = soon(upgrade::on(answer)).await.expect("a stream");
        Socket(WebSocketStream::from_raw_socket(TokioIo::new(stream), Role::Client, None).await)
    }

    /// Waits until the server has ended it.
    async fn end(self) {
        let connection = self.connection;
        soon(connection).await.expect("it ends in order");
    }
}

impl Stream {
    /// Reads on until this has come.
    async fn until(&mut self, part: &str) {
        while !self.text.contains(part) {
            let frame = soon(self.body.frame()).await;
            let frame = frame
                .expect("more of the stream")
                .expect("an unbroken stream");
            let data = frame.into_data().expect("data");
            self.text.push_str(&String::from_utf8_lossy(&data));
        }
    }
}

/// The words of an event that names this output.
fn naming(quote: &Value) -> String {
    format!("\"outAmount\":{}", quote["outAmount"])
}

#[tokio::test]
async fn requests_and_streams_go_side_by_side_and_are_answered_as_over_http1() {
    const STREAMS: usize = 50;
    let client = Client::start().await;
    let connection = client.multiplexed(WIDE).await;
    let path = client.quote_path("/v1/quote/stream");
    let opened = (0..STREAMS).map(|_| connection.stream(&path));
    let mut streams = join_all(opened).await;
    let first = client.quote().await;
    for stream in &mut streams {
        stream.until(&naming(&first)).await;
    }
    let (status, answer) = connection.get(&client.quote_path("/v1/quote")).await;
    assert_eq!(status, 200);
    assert_eq!(answer["quote"], client.quote().await);
    let (status, problem) = connection.get("/v1/quote?amount=1").await;
    assert_eq!(status, 400);
    assert_eq!(problem["field"], "inputMint");
    // Its field is read, not the blanks before it alone.
    let body = format!("{}{{\"quotes\":1}}", " ".repeat(TOO_LONG / 2)).into_bytes();
    let path = "/v1/swap/transaction";
    let (status, _, body) = connection.ask(Method::POST, path, body).await;
    let body = soon(body.collect()).await.expect("a body").to_bytes();
    let problem: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(
        (status.as_u16(), &problem["field"]),
        (400, &"quotes".into())
    );
    client.drain(10).await;
    let second = client.quote().await;
    for stream in &mut streams {
        stream.until(&naming(&second)).await;
        assert_eq!(stream.text.matches("event: quote").count(), 2);
    }
    let stopped = client.harness.stop().await;
    stopped.expect("ends in order, its streams with it");
    for stream in &mut streams {
        stream.until("event: end").await;
        assert!(stream.text.contains("stopping"), "{}", stream.text);
    }
    connection.end().await;
}

#[tokio::test]
async fn sockets_share_a_connection_and_each_ends_by_itself() {
    const SOCKETS: usize = 20;
    let client = Client::start_as(ENDS_SOON).await;
    let connection = client.multiplexed(WIDE).await;
    // With the first answer comes that streams may be connected.
    connection.get(&client.quote_path("/v1/quote")).await;
    let path = client.quote_path("/v1/quote/stream");
    let mut sockets = join_all((0..SOCKETS).map(|_| connection.socket(&path))).await;
    for socket in &mut sockets {
        let event = socket.quote().await;
        assert_eq!(event["data"]["quote"], client.quote().await);
    }
    // While they are open their connection is not idle.
    sleep(4 * HEAD_TIMEOUT).await;
    client.drain(10).await;
    for socket in &mut sockets {
        let event = socket.quote().await;
        assert_eq!(event["data"]["quote"], client.quote().await);
    }
    let mut pinging = sockets.pop().expect("one of them");
    let ping = Message::Ping("are you there".into());
    pinging.0.send(ping).await.expect("an open stream");
    let pong = Some(Message::Pong("are you there".into()));
    while pinging.next().await != pong {}
    pinging.0.close(None).await.expect("an open stream");
    let mut asking = sockets.pop().expect("one of them");
    let message = Message::text("another quote");
    asking.0.send(message).await.expect("an open stream");
    asking.ends_with("unexpected_message", 1008).await;
    // No quote follows the goodbye to one that leaves while they change.
    for (change, mut leaving) in (1..).zip(sockets.split_off(SOCKETS / 2)) {
        client.take_out(change * 100_000_000);
        let farewell = CloseFrame {
            code: CloseCode::Normal,
            reason: "enough".into(),
        };
        let closing = leaving.0.close(Some(farewell)).await;
        closing.expect("an open stream");
        client.take_out(change * 100_000_000 + 50_000_000);
        let (_, code, reason) = leaving.end().await;
        assert_eq!((code, reason.as_str()), (1000, "enough"));
    }
    // It goes without a goodbye.
    drop(sockets.pop());
    let stopping = tokio::spawn(client.harness.stop());
    for socket in sockets {
        socket.ends_with("stopping", 1001).await;
    }
    let stopped = soon(stopping).await.expect("no panic");
    stopped.expect("ends in order, its sockets with it");
    connection.end().await;
}

#[tokio::test]
async fn what_cannot_become_a_socket_is_answered_with_a_problem() {
    let client = Client::start().await;
    let connection = client.multiplexed(WIDE).await;
    let quote = client.quote_path("/v1/quote");
    connection.get(&quote).await;
    let path = client.quote_path("/v1/quote/stream");
    for (path, protocol, version, status, field) in [
        (&path[..], "connect-udp", "13", 400, Some(":protocol")),
        (&path, "websocket", "8", 400, Some("Sec-WebSocket-Version")),
        (
            "/v1/quote/stream",
            "websocket",
            "13",
            400,
            Some("inputMint"),
        ),
        // Where no stream is.
        (&quote, "websocket", "13", 405, None),
        ("/v1/nowhere", "websocket", "13", 404, None),
    ] {
        let (refused, problem) = connection.refused(path, protocol, version).await;
        assert_eq!(refused, status, "{path}: {problem}");
        assert_eq!(problem["field"].as_str(), field, "{path}");
    }
}

#[tokio::test]
async fn what_is_refused_before_its_body_is_read_is_in_no_other_requests_way() {
    let client = Client::start().await;
    let connection = client.multiplexed(WIDE).await;
    for _ in 0..3 {
        let body = vec![b' '; TOO_LONG];
        let path = "/v1/swap/transaction";
        let (status, headers, _) = connection.ask(Method::POST, path, body).await;
        assert_eq!(status, 413);
        assert!(headers.contains_key("x-request-id"), "{headers:?}");
    }
    let (status, _) = connection.get(&client.quote_path("/v1/quote")).await;
    assert_eq!(status, 200);
}

/// A page whose name resolves to this machine is no program of it, whatever a header says beside the name.
#[tokio::test]
async fn whom_a_request_names_is_judged_as_over_http1() {
    let client = Client::start().await;
    let mut connection = client.multiplexed(WIDE).await;
    let (own, _) = connection.get("/api/webhooks").await;
    assert_eq!(own, 200);
    connection.authority = "rebound.example".to_owned();
    let (foreign, problem) = connection.get("/api/webhooks").await;
    assert_eq!(foreign, 401, "{problem}");
}

#[tokio::test]
async fn a_reader_that_stands_still_is_given_the_newest_and_not_all_between() {
    const CHANGES: u64 = 60;
    const NARROW: u32 = 2_000;
    let client = Client::start().await;
    let path = client.quote_path("/v1/quote/stream");
    let connection = client.multiplexed(NARROW).await;
    let mut slow = connection.stream(&path).await;
    let wide = client.multiplexed(WIDE).await;
    let mut watched = wide.stream(&path).await;
    for change in 1..=CHANGES {
        let before = client.quote().await;
        client.take_out(change * 1_000_000_000);
        while client.quote().await == before {
            sleep(Duration::from_millis(5)).await;
        }
        watched.until(&naming(&client.quote().await)).await;
    }
    slow.until(&naming(&client.quote().await)).await;
    let given = u64::try_from(slow.text.matches("event: quote").count()).expect("a number");
    assert!(given < CHANGES / 2, "{given} of {CHANGES} had waited");
}

#[tokio::test]
async fn a_reader_that_takes_nothing_in_is_cut_off_and_those_beside_it_go_on() {
    const CHANGES: u64 = 4_000;
    const NARROW: u32 = 2_000;
    let client = Client::start_as("[api.clients]\nwrite-timeout-ms = 300").await;
    let path = client.quote_path("/v1/quote/stream");
    let connection = client.multiplexed(NARROW).await;
    connection.get(&client.quote_path("/v1/quote")).await;
    let mut watched = connection.stream(&path).await;
    let deaf = connection.stream(&path).await;
    let deaf_socket = connection.socket(&path).await;
    assert_eq!(client.gauge("sluice_api_streams").await, 3);
    let mut are_left = false;
    for change in 1..=CHANGES {
        client.take_out(change * 100_000_000);
        watched.until(&naming(&client.quote().await)).await;
        are_left = client.gauge("sluice_api_streams").await == 1;
        if are_left {
            break;
        }
    }
    assert!(are_left, "they are served after {CHANGES} quotes unread");
    let mut body = deaf.body;
    let read = async { while let Some(Ok(_)) = body.frame().await {} };
    soon(read).await;
    drop(deaf_socket);
    client.drain(10).await;
    watched.until(&naming(&client.quote().await)).await;
}

#[tokio::test]
async fn an_answer_longer_than_its_reader_has_room_for_comes_whole() {
    const NARROW: u32 = 2_000;
    let client = Client::start().await;
    let connection = client.multiplexed(NARROW).await;
    let path = "/openapi.json";
    let expected = client.http.get(format!("{}{path}", client.harness.url));
    let expected = expected.send().await.expect("an answer");
    let expected = expected.bytes().await.expect("a body");
    let (status, headers, body) = connection.ask(Method::GET, path, Vec::new()).await;
    assert_eq!(status, 200);
    assert_eq!(headers[header::CONTENT_LENGTH], expected.len().to_string());
    assert!(headers.contains_key(header::DATE), "{headers:?}");
    let body = soon(body.collect()).await.expect("a body").to_bytes();
    assert!(body == expected, "another description over HTTP/2");
    let (status, head, body) = connection.ask(Method::HEAD, path, Vec::new()).await;
    assert_eq!(status, 200);
    assert_eq!(
        head[header::CONTENT_LENGTH],
        headers[header::CONTENT_LENGTH]
    );
    let body = soon(body.collect()).await.expect("no body").to_bytes();
    assert!(body.is_empty());
}

#[tokio::test]
async fn a_connection_ends_when_nothing_is_asked_of_it_and_not_while_a_stream_is_open() {
    let client = Client::start_as(ENDS_SOON).await;
    let idle = client.multiplexed(WIDE).await;
    let busy = client.multiplexed(WIDE).await;
    let mut stream = busy.stream(&client.quote_path("/v1/quote/stream")).await;
    idle.end().await;
    sleep(4 * HEAD_TIMEOUT).await;
    client.drain(10).await;
    stream.until(&naming(&client.quote().await)).await;
    // Who gives its stream up is idle from then on.
    drop(stream);
    busy.end().await;
}

#[tokio::test]
async fn who_drips_or_breaks_off_the_first_words_of_the_protocol_is_waited_for_no_longer() {
    let client = Client::start_as(ENDS_SOON).await;
    for begin in [
        "P",
        "PR",
        "PRI * HTT",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "",
    ] {
        let mut stream = client.tcp().await;
        stream
            .write_all(begin.as_bytes())
            .await
            .expect("a connection");
        // It ends, or is broken off, since nobody reads what was said.
        let _ = soon(stream.read_to_end(&mut Vec::new())).await;
    }
    // A method that begins as the protocol does is none of it.
    let mut stream = client.tcp().await;
    let request = b"PROPFIND /v1/quote HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    for part in [&request[..2], &request[2..]] {
        stream.write_all(part).await.expect("a connection");
        sleep(Duration::from_millis(50)).await;
    }
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer))
        .await
        .expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
}

#[tokio::test]
async fn no_more_streams_are_taken_at_a_time_than_a_client_may_have() {
    let settings = "[api.clients]\nloopback = true\nstreams-per-client = 3";
    let client = Client::start_as(settings).await;
    let connection = client.multiplexed(WIDE).await;
    let path = client.quote_path("/v1/quote/stream");
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(connection.stream(&path).await);
    }
    let (status, problem) = connection.get(&path).await;
    assert_eq!(status, 429, "{problem}");
    streams.pop();
    let again = async {
        loop {
            let (status, _, _) = connection.ask(Method::GET, &path, Vec::new()).await;
            if status == 200 {
                break;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    soon(again).await;
}
