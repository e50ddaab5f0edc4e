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
    time::{sleep, timeout},
};

use crate::client::Client;

/// Clients are told apart by what this test's proxy says of them. A place becomes free every five seconds: none does
/// between two requests, also on a busy machine.
const BEHIND_A_PROXY: &str = "[api.clients]
trusted-proxies = [\"127.0.0.1\"]
requests-per-minute = 12
requests-burst = 5
node-requests-per-minute = 12
node-requests-burst = 2";

/// No step takes longer unless something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections that drip, and how many of them the server takes at a time, each for this long.
const DRIPPING: usize = 400;
const TAKEN: usize = 40;
const HEAD_TIMEOUT: Duration = Duration::from_secs(3);

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

    /// Connections that the server turned away for their client's limit.
    async fn connections_refused(&self) -> usize {
        const NAME: &str = "sluice_api_refusals_total{name=\"connections-per-client\"} ";
        let url = format!("{}/metrics", self.harness.url);
        let answer = self.http.get(url).send().await.expect("an answer");
        let text = answer.text().await.expect("a text");
        let count = text.lines().find_map(|line| line.strip_prefix(NAME));
        count.map_or(0, |count| count.parse().expect("a count"))
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

/// What this comes to, which nothing that works keeps waiting for.
pub async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("a step hangs")
}

/// Waits until the server has ended this connection.
async fn end(stream: &mut TcpStream) {
    let mut bytes = [0; 1_024];
    let end = async { while let Ok(1..) = stream.read(&mut bytes).await {} };
    soon(end).await;
}

#[tokio::test]
async fn a_client_beyond_its_limit_is_refused_and_others_are_not() {
    let client = Client::start_as(BEHIND_A_PROXY).await;
    let first = client.get_for("/v1/quote", BUSY).await;
    assert_eq!(text(&first, "ratelimit"), Some("\"requests\";r=4;t=5"));
    let policy = text(&first, "ratelimit-policy");
    assert_eq!(policy, Some("\"requests\";q=5;w=25"));
    let refused = loop {
        let answer = client.get_for("/v1/quote", BUSY).await;
        if answer.status() == 429 {
            break answer;
        }
        assert_eq!(answer.status(), 400);
    };
    let wait = text(&refused, "retry-after").expect("a pause");
    let seconds: u64 = wait.parse().expect("seconds");
    assert!((1..=5).contains(&seconds), "{seconds}");
    let left = format!("\"requests\";r=0;t={wait}");
    assert_eq!(text(&refused, "ratelimit"), Some(left.as_str()));
    let kind = text(&refused, "content-type");
    assert_eq!(kind, Some("application/problem+json"));
    let problem = refused.text().await.expect("a body");
    assert!(problem.contains("\"code\":\"rate_limited\""), "{problem}");
    let words = format!("try again in {seconds} s");
    assert!(problem.contains(&words), "{problem}");
    assert_eq!(client.get_for("/v1/quote", CALM).await.status(), 400);
    // Who asks whether the service works must not be taken for a flood.
    assert_eq!(client.get_for("/health/live", BUSY).await.status(), 200);
    // What a client writes into the header itself stands before what the proxy adds.
    let disguised = format!("192.0.2.1, {BUSY}");
    let disguised = client.get_for("/v1/quote", &disguised).await;
    assert_eq!(disguised.status(), 429);
    let let_in = async {
        while client.get_for("/v1/quote", BUSY).await.status() != 400 {
            sleep(Duration::from_millis(100)).await;
        }
    };
    soon(let_in).await;
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
    let settings = format!(
        "[api.clients]\nloopback = true\nconnections-per-client = {TAKEN}\nhead-timeout-ms = {}\n\
         requests-per-minute = 100000\nrequests-burst = 100000",
        HEAD_TIMEOUT.as_millis()
    );
    let client = Client::start_as(&settings).await;
    let mut dripping = Vec::new();
    let begun = Instant::now();
    for _ in 0..DRIPPING {
        let mut stream = client.connect_from(2).await;
        // Refused connections may be closed by now.
        let _ = stream.write_all(b"GET /v1/quote HTTP/1.1\r\nx: ").await;
        dripping.push(stream);
    }
    // Places become free while connections are still being opened, on a machine that takes longer for all of them.
    let rounds = begun.elapsed().as_millis() / HEAD_TIMEOUT.as_millis() + 2;
    let most = TAKEN * usize::try_from(rounds).expect("few");
    assert!(most < DRIPPING, "{rounds} rounds would take all");
    let refused = async {
        while client.connections_refused().await < DRIPPING - most {
            sleep(Duration::from_millis(20)).await;
        }
    };
    soon(refused).await;
    client.quote().await;
    for stream in &mut dripping {
        // A byte now and then keeps none open.
        let _ = stream.write_all(b"z").await;
        end(stream).await;
    }
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
    end(&mut idle).await;
    // Many answers are asked for and none is read, until the server can write no more.
    let mut deaf = client.connect_from(1).await;
    let document = b"GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n";
    soon(async { while deaf.write_all(document).await.is_ok() {} }).await;
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
    let read = soon(stream.read_exact(&mut answer)).await;
    read.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_request_that_is_refused_before_its_body_is_there_costs_the_next_one_nothing() {
    let client = Client::start().await;
    // Too long, and of another media type; bodies that are short enough to be taken in all the same.
    for (kind, length, status) in [("application/json", 20_000, 413), ("text/plain", 300, 415)] {
        let mut stream = client.connect_from(1).await;
        for _ in 0..3 {
            let head = format!(
                "POST /v1/swap/transaction HTTP/1.1\r\nhost: a\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
            );
            let written = stream.write_all(head.as_bytes()).await;
            written.expect("a connection");
            // The server has refused it when its body comes.
            sleep(Duration::from_millis(100)).await;
            let body = vec![b' '; length];
            stream.write_all(&body).await.expect("it is still open");
            assert_eq!(answer(&mut stream).await, status);
        }
    }
    // Of a body without an end not all is taken in, and the answer says so.
    let mut stream = client.connect_from(1).await;
    let head =
        b"POST /v1/swap/transaction HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
                 content-length: 90000000\r\n\r\n";
    stream.write_all(head).await.expect("a connection");
    let mut text = String::new();
    let read = soon(stream.read_to_string(&mut text)).await;
    read.expect("an answer");
    assert!(text.starts_with("HTTP/1.1 413"), "{text}");
    assert!(text.contains("\r\nconnection: close\r\n"), "{text}");
}

/// The status of an answer, which is read to its end.
async fn answer(stream: &mut TcpStream) -> u16 {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        text.push(char::from(soon(stream.read_u8()).await.expect("a head")));
    }
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .expect("a length");
    let mut body = vec![0; length.parse().expect("a number")];
    let read = soon(stream.read_exact(&mut body)).await;
    read.expect("a body");
    let status = text.split(' ').nth(1).expect("a status");
    status.parse().expect("a number")
}

#[tokio::test]
async fn who_comes_next_finds_room_also_where_many_clients_drip_on_every_place() {
    const PLACES: usize = 64;
    let settings =
        format!("[api.clients]\nloopback = true\nconnections = {PLACES}\nhead-timeout-ms = 600000");
    let client = Client::start_as(&settings).await;
    let mut streaming = client.connect_from(254).await;
    let ask = |route: &str| {
        let path = client.quote_path(route);
        format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")
    };
    let written = streaming
        .write_all(ask("/v1/quote/stream").as_bytes())
        .await;
    written.expect("a connection");
    let mut dripping = Vec::new();
    // Each of another client, so that only the limit of all is in their way.
    for last in 2..=250 {
        let mut stream = client.connect_from(last).await;
        if last % 2 == 0 {
            // Once it is answered, it is as idle as one that never asked.
            let written = stream.write_all(ask("/v1/quote").as_bytes()).await;
            written.expect("a connection");
            assert_eq!(answer(&mut stream).await, 200);
        }
        let _ = stream.write_all(b"GET /v1/quote HTTP/1.1\r\nx: ").await;
        dripping.push(stream);
        if last % 50 == 0 {
            // On a new connection each time.
            let mut next = client.connect_from(251).await;
            let request = b"GET /health/live HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
            next.write_all(request).await.expect("room");
            let mut answer = String::new();
            let read = soon(next.read_to_string(&mut answer)).await;
            read.expect("an answer");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }
    // The first have given way; the stream, which is older than all of them, has not.
    end(&mut dripping[0]).await;
    let mut bytes = [0; 1_024];
    let mut events = String::new();
    let read = async {
        while events.matches("event: quote").count() == 0 {
            let read = streaming.read(&mut bytes).await.expect("a stream");
            assert_ne!(read, 0, "the stream gave way");
            events.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        // It is not at its end either.
        let more = timeout(Duration::from_millis(100), streaming.read(&mut bytes)).await;
        assert!(!matches!(more, Ok(Ok(0) | Err(_))), "the stream gave way");
    };
    soon(read).await;
}
