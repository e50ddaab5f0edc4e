//! Many clients: the limits of each, and connections that drip, take nothing in, or are too many.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use reqwest::{Response, header};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

use crate::client::Client;

/// Clients are told apart by what this test's proxy says of them.
const BEHIND_A_PROXY: &str = "[api.clients]
trusted-proxies = [\"127.0.0.1\"]
requests-per-minute = 60
requests-burst = 5
node-requests-per-minute = 60
node-requests-burst = 2";

const BUSY: &str = "198.51.100.1";
const CALM: &str = "198.51.100.2";

impl Client {
    async fn get_for(&self, path: &str, client: &str) -> Response {
        let request = self.http.get(format!("{}{path}", self.harness.url));
        let request = request.header("x-forwarded-for", client);
        request.send().await.expect("an answer")
    }

    async fn build_for(&self, body: &Value, client: &str) -> Response {
        let url = format!("{}/v1/swap/transaction", self.harness.url);
        let request = self.http.post(url).header("x-forwarded-for", client);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        request
            .body(body.to_string())
            .send()
            .await
            .expect("an answer")
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.harness.port))
    }

    /// A connection from this address of the loopback network.
    async fn connect_from(&self, last: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        let from = SocketAddr::from(([127, 0, 0, last], 0));
        socket.bind(from).expect("an address of this machine");
        socket.connect(self.address()).await.expect("a connection")
    }
}

fn text<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// Whether the server has ended this connection, at the latest after `patience`.
async fn ends(stream: &mut TcpStream, patience: Duration) -> bool {
    let mut bytes = [0; 1_024];
    let end = async { while let Ok(1..) = stream.read(&mut bytes).await {} };
    tokio::time::timeout(patience, end).await.is_ok()
}

#[tokio::test]
async fn a_client_beyond_its_limit_is_refused_and_others_are_not() {
    let client = Client::start_as(BEHIND_A_PROXY).await;
    let first = client.get_for("/v1/quote", BUSY).await;
    assert_eq!(text(&first, "ratelimit"), Some("\"requests\";r=4;t=1"));
    let policy = text(&first, "ratelimit-policy");
    assert_eq!(policy, Some("\"requests\";q=5;w=5"));
    let refused = loop {
        let answer = client.get_for("/v1/quote", BUSY).await;
        if answer.status() == 429 {
            break answer;
        }
        assert_eq!(answer.status(), 400);
    };
    assert_eq!(text(&refused, "retry-after"), Some("1"));
    assert_eq!(text(&refused, "ratelimit"), Some("\"requests\";r=0;t=1"));
    let kind = text(&refused, "content-type");
    assert_eq!(kind, Some("application/problem+json"));
    let problem = refused.text().await.expect("a body");
    assert!(problem.contains("\"code\":\"rate_limited\""), "{problem}");
    assert!(problem.contains("try again in 1 s"), "{problem}");
    assert_eq!(client.get_for("/v1/quote", CALM).await.status(), 400);
    // Who asks whether the service works must not be taken for a flood.
    assert_eq!(client.get_for("/health/live", BUSY).await.status(), 200);
    // What a client writes into the header itself stands before what the proxy adds.
    let disguised = format!("192.0.2.1, {BUSY}");
    let disguised = client.get_for("/v1/quote", &disguised).await;
    assert_eq!(disguised.status(), 429);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(client.get_for("/v1/quote", BUSY).await.status(), 400);
}

#[tokio::test]
async fn requests_that_ask_the_node_have_a_limit_of_their_own() {
    let client = Client::start_as(BEHIND_A_PROXY).await;
    let body = client.body(&client.quote().await);
    for _ in 0..2 {
        assert_eq!(client.build_for(&body, BUSY).await.status(), 200);
    }
    let refused = client.build_for(&body, BUSY).await;
    assert_eq!(refused.status(), 429);
    let left = text(&refused, "ratelimit").expect("a standing");
    assert!(left.starts_with("\"node-requests\";r=0"), "{left}");
    assert_eq!(client.get_for("/v1/quote", BUSY).await.status(), 400);
    assert_eq!(client.build_for(&body, CALM).await.status(), 200);
}

#[tokio::test]
async fn dripping_connections_end_and_leave_room_for_others() {
    let settings = "[api.clients]\nloopback = true\nconnections-per-client = 40\nhead-timeout-ms = 1500\n\
                    requests-per-minute = 100000\nrequests-burst = 100000";
    let client = Client::start_as(settings).await;
    let mut dripping = Vec::new();
    for _ in 0..400 {
        let mut stream = client.connect_from(2).await;
        // Refused connections may be closed by now.
        let _ = stream.write_all(b"GET /v1/quote HTTP/1.1\r\nx: ").await;
        dripping.push(stream);
    }
    let begun = Instant::now();
    let mut ended = 0;
    for stream in &mut dripping {
        let _ = stream.write_all(b"y").await;
        ended += u32::from(ends(stream, Duration::from_millis(1)).await);
    }
    assert!(ended >= 360, "only {ended} were refused");
    client.quote().await;
    for stream in &mut dripping {
        // A byte now and then keeps none open.
        let _ = stream.write_all(b"z").await;
        assert!(ends(stream, Duration::from_secs(10)).await);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    let mut again = client.connect_from(2).await;
    let request = b"GET /health/live HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    again.write_all(request).await.expect("room again");
    let mut answer = String::new();
    again.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn an_idle_connection_ends_and_one_that_takes_nothing_in_too() {
    let settings = "[api.clients]\nhead-timeout-ms = 500\nwrite-timeout-ms = 500";
    let client = Client::start_as(settings).await;
    let mut idle = client.connect_from(1).await;
    let request = b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n";
    idle.write_all(request).await.expect("a connection");
    assert!(ends(&mut idle, Duration::from_secs(10)).await);
    // Many answers are asked for and none is read, until the server can write no more.
    let mut deaf = client.connect_from(1).await;
    let document = b"GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n";
    let begun = Instant::now();
    let ask = async { while deaf.write_all(document).await.is_ok() {} };
    let given_up = tokio::time::timeout(Duration::from_secs(30), ask).await;
    assert!(given_up.is_ok(), "still open after {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_body_that_drips_is_refused() {
    let client = Client::start().await;
    let mut stream = client.connect_from(1).await;
    let head =
        b"POST /v1/swap/transaction HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
                 content-length: 9000\r\n\r\n{";
    stream.write_all(head).await.expect("a connection");
    let mut answer = [0; 12];
    let read = stream.read_exact(&mut answer);
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    read.expect("in time").expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 408");
}
