//! Streams over WebSocket: the same events as over HTTP, what is refused before and after, limits, and how they end.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use reqwest::Response;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        handshake::client::{Request, generate_key},
        http::{HeaderName, HeaderValue},
    },
};

use crate::client::Client;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who asks, by what this test's proxy says of it.
const FORWARDED: &str = "x-forwarded-for";

/// A WebSocket as its reader has it.
pub struct Socket<C = TcpStream>(pub WebSocketStream<C>);

impl<C: AsyncRead + AsyncWrite + Unpin> Socket<C> {
    pub async fn next(&mut self) -> Option<Message> {
        let next = timeout(PATIENCE, self.0.next()).await;
        next.expect("in time").transpose().expect("a WebSocket")
    }

    /// The next event; pings are passed over.
    pub async fn event(&mut self) -> Value {
        loop {
            match self.next().await.expect("an open stream") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Ping(_) => {}
                other => panic!("no event but {other:?}"),
            }
        }
    }

    pub async fn quote(&mut self) -> Value {
        let event = self.event().await;
        assert_eq!(event["event"], "quote", "{event}");
        event
    }

    /// The last event, and code and reason of the closing.
    pub async fn end(mut self) -> (Option<Value>, u16, String) {
        let mut last = None;
        loop {
            match self.next().await.expect("a goodbye") {
                Message::Text(text) => last = serde_json::from_str(&text).ok(),
                Message::Close(close) => {
                    assert_eq!(self.next().await, None, "something after the goodbye");
                    let close = close.expect("a code");
                    return (last, close.code.into(), close.reason.to_string());
                }
                _ => {}
            }
        }
    }

    /// That it ends with this problem.
    pub async fn ends_with(self, code: &str, close: u16) {
        let (last, number, reason) = self.end().await;
        let last = last.expect("a last event");
        assert_eq!(last["event"], "end");
        assert_eq!(last["data"]["code"], code);
        assert_eq!((number, reason.as_str()), (close, code));
    }
}

impl Client {
    fn quotes(&self) -> String {
        self.quote_path("/v1/quote/stream")
    }

    fn handshake(&self, path: &str, headers: &[(&'static str, &str)]) -> Request {
        let url = format!("ws://127.0.0.1:{}{path}", self.harness.port);
        let mut request = url.into_client_request().expect("a request");
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).expect("a value");
            let name = HeaderName::from_static(name);
            request.headers_mut().insert(name, value);
        }
        request
    }

    async fn connect(&self, room: Option<u32>) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        if let Some(room) = room {
            socket.set_recv_buffer_size(room).expect("a small buffer");
        }
        let address = ([127, 0, 0, 1], self.harness.port).into();
        socket.connect(address).await.expect("a connection")
    }

    async fn try_socket(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Socket, Error> {
        let request = self.handshake(path, headers);
        let opened = client_async(request, self.connect(None).await).await;
        opened.map(|(socket, _)| Socket(socket))
    }

    pub async fn socket(&self, path: &str, headers: &[(&'static str, &str)]) -> Socket {
        let opened = self.try_socket(path, headers).await;
        opened.expect("an open WebSocket")
    }

    /// The answer to a handshake that is refused.
    async fn refused(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let key = generate_key();
        let usual = [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", key.as_str()),
        ];
        let mut request = self.http.get(format!("{}{path}", self.harness.url));
        for (name, value) in usual.iter().chain(headers) {
            request = request.header(*name, *value);
        }
        let answer: Response = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        let kind = answer.headers().get("content-type").cloned();
        assert_eq!(
            kind.as_ref().and_then(|kind| kind.to_str().ok()),
            Some("application/problem+json")
        );
        let text = answer.text().await.expect("a body");
        let problem: Value = serde_json::from_str(&text).expect("JSON");
        (status, problem["code"].as_str().expect("a code").to_owned())
    }

    /// The first event of a stream of server-sent events: its id and its data.
    async fn first_sent_event(&self, path: &str) -> (u64, Value) {
        let mut answer = self
            .http
            .get(format!("{}{path}", self.harness.url))
            .send()
            .await
            .expect("an answer");
        let mut text = String::new();
        loop {
            let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
            if let (Some(id), Some(data), true) =
                (line("id: "), line("data: "), text.ends_with("\n\n"))
            {
                let data = serde_json::from_str(data).expect("JSON");
                return (id.parse().expect("a slot"), data);
            }
            let chunk = timeout(PATIENCE, answer.chunk()).await.expect("in time");
            let chunk = chunk.expect("an unbroken stream").expect("an event");
            text.push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    }

    /// How many of these are open.
    pub async fn gauge(&self, name: &str) -> usize {
        let url = format!("{}/metrics", self.harness.url);
        let answer = self.http.get(url).send().await.expect("an answer");
        let text = answer.text().await.expect("a text");
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix(&format!("{name} ")));
        count.expect("a gauge").parse().expect("a count")
    }
}

#[tokio::test]
async fn a_socket_shows_the_quotes_that_server_sent_events_show() {
    let client = Client::start().await;
    let path = client.quotes();
    let mut socket = client.socket(&path, &[]).await;
    let mut last = 0;
    for percent in [0, 10, 20] {
        if percent > 0 {
            client.drain(percent).await;
        }
        let event = socket.quote().await;
        assert_eq!(event["data"]["quote"], client.quote().await);
        let (id, data) = client.first_sent_event(&path).await;
        assert_eq!(event["id"], id);
        assert_eq!(event["data"], data);
        assert_eq!(event["id"], event["data"]["context"]["slot"]);
        assert!(id > last, "{id} after {last}");
        last = id;
    }
}

#[tokio::test]
async fn who_comes_back_with_the_last_id_is_given_what_changed_since_alone() {
    let client = Client::start().await;
    let path = client.quotes();
    let mut first = client.socket(&path, &[]).await;
    let id = first.quote().await["id"].to_string();
    let by_parameter = format!("{path}&lastEventId={id}");
    let mut again = client.socket(&by_parameter, &[]).await;
    let mut by_header = client
        .socket(&path, &[("last-event-id", id.as_str())])
        .await;
    client.drain(10).await;
    for socket in [&mut again, &mut by_header] {
        let event = socket.quote().await;
        assert_eq!(event["data"]["quote"], client.quote().await);
        assert_ne!(event["id"].to_string(), id);
    }
    let faulty = format!("{path}&lastEventId=newest");
    let refused = client.refused(&faulty, &[]).await;
    assert_eq!(refused, (400, "invalid_field".to_owned()));
}

#[tokio::test]
async fn what_cannot_be_opened_is_answered_as_over_http() {
    let client = Client::start().await;
    let path = client.quotes();
    let is = |status: u16, code: &str| (status, code.to_owned());
    let missing = client.refused("/v1/quote/stream", &[]).await;
    assert_eq!(missing, is(400, "missing_field"));
    let unknown = client.refused(&format!("{path}&x=1"), &[]).await;
    assert_eq!(unknown, is(400, "unknown_field"));
    let following =
        "/v1/transactions/1111111111111111111111111111111111111111111111111111111111111111/stream";
    let not_followed = client.refused(following, &[]).await;
    assert_eq!(not_followed, is(404, "not_found"));
    // Where no stream is, nothing is opened.
    let elsewhere = client.refused("/v1/quote", &[]).await;
    assert_eq!(elsewhere, is(400, "missing_field"));
}

#[tokio::test]
async fn a_page_opens_a_socket_only_where_it_may_call() {
    const PAGE: &str = "https://shop.example";
    for (setting, other_is_let_in) in [
        ("cors-origins = [\"https://shop.example\"]", false),
        ("cors-origins = \"any\"", true),
    ] {
        let client = Client::start_as(setting).await;
        let path = client.quotes();
        client
            .socket(&path, &[("origin", PAGE)])
            .await
            .quote()
            .await;
        let own = client.harness.url.clone();
        client
            .socket(&path, &[("origin", own.as_str())])
            .await
            .quote()
            .await;
        let other = [("origin", "https://other.example")];
        if other_is_let_in {
            client.socket(&path, &other).await.quote().await;
        } else {
            let refused = client.refused(&path, &other).await;
            assert_eq!(refused, (403, "origin_refused".to_owned()));
        }
    }
    let client = Client::start_as("cors-origins = \"off\"").await;
    let refused = client.refused(&client.quotes(), &[("origin", PAGE)]).await;
    assert_eq!(refused, (403, "origin_refused".to_owned()));
}

#[tokio::test]
async fn a_socket_takes_no_messages() {
    let client = Client::start().await;
    let path = client.quotes();
    let mut asking = client.socket(&path, &[]).await;
    let message = Message::text("{\"subscribe\":\"quotes\"}");
    asking.0.send(message).await.expect("a connection");
    asking.ends_with("unexpected_message", 1008).await;
    let mut long = client.socket(&path, &[]).await;
    let message = Message::binary(vec![0; 64 * 1024]);
    long.0.send(message).await.expect("a connection");
    long.ends_with("message_too_large", 1009).await;
}

#[tokio::test]
async fn a_socket_ends_with_the_problem_when_the_pool_goes() {
    let client = Client::start().await;
    let mut socket = client.socket(&client.quotes(), &[]).await;
    socket.quote().await;
    client.close_pool();
    socket.ends_with("no_pool", 1008).await;
}

#[tokio::test]
async fn a_service_that_stops_says_so_and_waits_for_its_sockets() {
    let client = Client::start().await;
    let path = client.quotes();
    let mut sockets = Vec::new();
    for _ in 0..3 {
        let mut socket = client.socket(&path, &[]).await;
        socket.quote().await;
        sockets.push(socket);
    }
    // Who says nothing to the goodbye does not hold up the end.
    let silent = client.socket(&path, &[]).await;
    let stopping = tokio::spawn(client.harness.stop());
    for socket in sockets {
        socket.ends_with("stopping", 1001).await;
    }
    let stopped = timeout(PATIENCE, stopping).await.expect("in time");
    stopped.expect("no panic").expect("ends in order");
    // Everything was sent by then.
    silent.ends_with("stopping", 1001).await;
}

#[tokio::test]
async fn a_socket_counts_as_a_stream_and_as_a_connection_until_it_ends() {
    let settings = "[api.clients]\ntrusted-proxies = [\"127.0.0.1\"]\nstreams-per-client = 2";
    let client = Client::start_as(settings).await;
    let path = client.quotes();
    let busy = [(FORWARDED, "198.51.100.1")];
    let mut first = client.socket(&path, &busy).await;
    first.quote().await;
    let _second = client.socket(&path, &busy).await;
    let refused = client.refused(&path, &busy).await;
    assert_eq!(refused, (429, "too_many_streams".to_owned()));
    let _other = client.socket(&path, &[(FORWARDED, "198.51.100.2")]).await;
    assert_eq!(client.gauge("sluice_api_streams").await, 3);
    // And those of the requests that asked for metrics and for what was refused.
    assert!(client.gauge("sluice_api_connections").await >= 4);
    first.0.close(None).await.expect("a connection");
    assert!(matches!(first.next().await, Some(Message::Close(_))));
    drop(first);
    let room = async { while client.try_socket(&path, &busy).await.is_err() {} };
    timeout(PATIENCE, room).await.expect("room again");
}

#[tokio::test]
async fn a_socket_that_is_open_keeps_its_place_among_the_connections_of_its_client() {
    let settings = "[api.clients]\nloopback = true\nconnections-per-client = 3\nrequests-per-minute = 100000\nrequests-burst = 100000";
    let client = Client::start_as(settings).await;
    let path = client.quotes();
    let mut sockets = Vec::new();
    // The client of this test has kept a connection from when it waited for the API.
    while let Ok(mut socket) = client.try_socket(&path, &[]).await {
        socket.quote().await;
        sockets.push(socket);
        assert!(sockets.len() <= 3, "more than there is room for");
    }
    assert!(sockets.len() >= 2, "{}", sockets.len());
    sockets.pop();
    let room = async { while client.try_socket(&path, &[]).await.is_err() {} };
    timeout(PATIENCE, room).await.expect("room again");
}

#[tokio::test]
async fn a_reader_that_takes_nothing_in_is_cut_off() {
    const CHANGES: u64 = 4_000;
    let client = Client::start_as("[api.clients]\nwrite-timeout-ms = 300").await;
    let path = client.quotes();
    let request = client.handshake(&path, &[]);
    let connection = client.connect(Some(2_048)).await;
    let (deaf, _) = client_async(request, connection)
        .await
        .expect("a WebSocket");
    let mut watched = client.socket(&path, &[]).await;
    watched.quote().await;
    let mut left = false;
    for change in 1..=CHANGES {
        client.take_out(change * 100_000_000);
        watched.quote().await;
        left = client.gauge("sluice_api_streams").await == 1;
        if left {
            break;
        }
    }
    assert!(
        left,
        "it is served after {CHANGES} quotes that it did not read"
    );
    // What was on its way comes, and then the end of the connection without a goodbye.
    let mut deaf = deaf.into_inner();
    let mut bytes = [0; 4_096];
    let read = async { while let Ok(1..) = deaf.read(&mut bytes).await {} };
    timeout(PATIENCE, read).await.expect("an end");
}

#[tokio::test]
async fn a_ping_says_up_to_which_slot_the_quote_is_true() {
    let client = Client::start().await;
    let mut socket = client.socket(&client.quotes(), &[]).await;
    let quoted = socket.quote().await["id"].as_u64().expect("a slot");
    let Some(Message::Ping(words)) = socket.next().await else {
        panic!("no ping");
    };
    let words = std::str::from_utf8(&words).expect("text");
    let slot = words.strip_prefix("true in slot ").expect("a slot");
    assert!(slot.parse::<u64>().expect("a slot") > quoted, "{words}");
}
