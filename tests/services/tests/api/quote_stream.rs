//! The quote stream over HTTP: changes alone, in order; resuming, limits, slow readers, and how streams end.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use serde_json::Value;
use sluice_chain_types::RawAccount;
use solana_pubkey::Pubkey;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
    time::timeout,
};

use crate::client::Client;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// One server-sent event.
#[derive(Clone, Debug)]
pub struct Event {
    name: String,
    pub id: Option<u64>,
    pub data: Value,
}

/// A stream as its reader has it.
pub struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    /// The next event; comments are passed over.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = next_event(&mut self.text) {
                return Some(event);
            }
            let chunk = timeout(PATIENCE, self.response.chunk()).await;
            let chunk = chunk.expect("in time").expect("an unbroken stream")?;
            self.text
                .push_str(std::str::from_utf8(&chunk).expect("text"));
        }
    }

    pub async fn quote(&mut self) -> Event {
        let event = self.next().await.expect("an event");
        assert_eq!(event.name, "quote", "{event:?}");
        event
    }

    /// The code with which the stream ends.
    async fn end(&mut self) -> String {
        loop {
            let event = self.next().await.expect("an end");
            if event.name == "end" {
                assert!(self.next().await.is_none(), "something after the end");
                return event.data["code"].as_str().expect("a code").to_owned();
            }
        }
    }
}

/// Takes the first whole event out of the text.
fn next_event(text: &mut String) -> Option<Event> {
    loop {
        let end = text.find("\n\n")?;
        let block: String = text.drain(..end + 2).collect();
        let field = |name: &str| {
            let prefix = format!("{name}: ");
            let mut lines = block.lines();
            lines.find_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
        };
        if let Some(name) = field("event") {
            let data = field("data").expect("data");
            return Some(Event {
                name,
                id: field("id").map(|id| id.parse().expect("a slot")),
                data: serde_json::from_str(&data).expect("JSON"),
            });
        }
    }
}

impl Client {
    fn stream_path(&self) -> String {
        self.quote_path("/v1/quote/stream")
    }

    async fn open_with(&self, path: &str, headers: &[(&str, String)]) -> Response {
        let mut request = self.http.get(format!("{}{path}", self.harness.url));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        request.send().await.expect("an answer")
    }

    pub async fn stream(&self, path: &str, headers: &[(&str, String)]) -> Stream {
        let response = self.open_with(path, headers).await;
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str();
        assert_eq!(kind.ok(), Some("text/event-stream"));
        Stream {
            response,
            text: String::new(),
        }
    }

    /// Closes the SOL pool's account.
    pub fn close_pool(&self) {
        self.harness.chain.write(RawAccount {
            pubkey: self.harness.sol_pool.address,
            owner: Pubkey::default(),
            lamports: 0,
            data: Bytes::new(),
        });
    }
}

#[tokio::test]
async fn a_stream_shows_each_change_once_with_rising_ids_as_the_quote_would_answer() {
    let client = Client::start().await;
    let mut stream = client.stream(&client.stream_path(), &[]).await;
    let mut last = stream.quote().await;
    assert_eq!(last.data["quote"], client.quote().await);
    for percent in [10, 20, 30] {
        // Many slots pass without a change, and none of them is an event.
        client.drain(percent).await;
        let event = stream.quote().await;
        assert!(event.id > last.id, "{:?} after {:?}", event.id, last.id);
        assert_eq!(event.id, event.data["context"]["slot"].as_u64());
        assert_eq!(event.data["quote"], client.quote().await);
        assert_ne!(event.data["quote"], last.data["quote"]);
        last = event;
    }
}

#[tokio::test]
async fn who_comes_back_with_the_last_id_is_given_what_changed_since_alone() {
    let client = Client::start().await;
    let path = client.stream_path();
    let mut other = client.stream(&path, &[]).await;
    let mut stream = client.stream(&path, &[]).await;
    let last = |event: &Event| [("last-event-id", event.id.expect("an id").to_string())];
    other.quote().await;
    let first = stream.quote().await;
    drop(stream);
    client.drain(10).await;
    let mut again = client.stream(&path, &last(&first)).await;
    let second = again.quote().await;
    assert_eq!(second.data["quote"], client.quote().await);
    drop(again);
    let mut again = client.stream(&path, &last(&second)).await;
    client.drain(20).await;
    let third = again.quote().await;
    assert_eq!(third.data["quote"], client.quote().await);
    assert!(third.id > second.id);
    let ignored = [("last-event-id", "no number".to_owned())];
    assert_eq!(
        client.stream(&path, &ignored).await.quote().await.id,
        third.id
    );
}

#[tokio::test]
async fn a_stream_ends_with_a_problem_when_the_pool_goes_or_the_server_stops() {
    let client = Client::start().await;
    let path = client.stream_path();
    let mut stream = client.stream(&path, &[]).await;
    stream.quote().await;
    client.close_pool();
    assert_eq!(stream.end().await, "no_pool");
    let refused = client.get(&path).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (404, "no_pool"));

    let client = Client::start().await;
    let mut stream = client.stream(&client.stream_path(), &[]).await;
    let confirmed = format!("{}&commitment=confirmed", client.stream_path());
    let mut confirmed = client.stream(&confirmed, &[]).await;
    stream.quote().await;
    let stopped = client.harness.stop().await;
    stopped.expect("ends in order, its streams with it");
    assert_eq!(stream.end().await, "stopping");
    assert_eq!(confirmed.end().await, "stopping");
}

/// What an answer says of the limits: of the streams apart from the requests.
fn assert_left(answer: &Response, streams: &str) {
    let lines = |name: &str| {
        let lines = answer.headers().get_all(name).iter();
        let lines: Vec<_> = lines.map(|line| line.to_str().expect("text")).collect();
        lines.join(", ")
    };
    let (left, policy) = (lines("ratelimit"), lines("ratelimit-policy"));
    assert!(left.split(", ").any(|each| each == streams), "{left}");
    assert!(left.contains("\"requests\";r="), "{left}");
    let of_streams = "\"streams\";q=2;qu=\"concurrent-requests\"";
    assert!(policy.contains(of_streams), "{policy}");
    assert!(policy.contains("\"requests\";q="), "{policy}");
}

#[tokio::test]
async fn a_client_has_its_share_of_streams_and_an_ended_one_makes_room() {
    let settings =
        "[api.clients]\ntrusted-proxies = [\"127.0.0.1\"]\nstreams = 3\nstreams-per-client = 2";
    let client = Client::start_as(settings).await;
    let path = client.stream_path();
    let busy = [("x-forwarded-for", "198.51.100.1".to_owned())];
    let calm = [("x-forwarded-for", "198.51.100.2".to_owned())];
    let mut first = client.stream(&path, &busy).await;
    first.quote().await;
    let last = client.open_with(&path, &busy).await;
    assert_eq!(last.status(), 200);
    assert_left(&last, "\"streams\";r=0");
    let refused = client.open_with(&path, &busy).await;
    assert_eq!(refused.status(), 429);
    assert_left(&refused, "\"streams\";r=0");
    let problem = refused.text().await.expect("a body");
    assert!(problem.contains("\"too_many_streams\""), "{problem}");
    assert!(problem.contains("has 2 streams open"), "{problem}");
    let other = client.open_with(&path, &calm).await;
    assert_left(&other, "\"streams\";r=1");
    let refused = client.open_with(&path, &calm).await;
    let problem = refused.text().await.expect("a body");
    assert!(problem.contains("as this server serves"), "{problem}");
    drop(first);
    // The server learns of it when it reads the end of the connection.
    let room = async { while client.open_with(&path, &calm).await.status() != 200 {} };
    timeout(PATIENCE, room).await.expect("room again");
}

#[tokio::test]
async fn a_reader_that_stood_still_goes_on_with_the_newest_quote() {
    const CHANGES: u64 = 200;
    // So long that no machine cuts the reader off before all changes were made.
    let client = Client::start_as("[api.clients]\nwrite-timeout-ms = 600000").await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(2_048).expect("a small buffer");
    let address = ([127, 0, 0, 1], client.harness.port).into();
    let mut slow = socket.connect(address).await.expect("a connection");
    let head = format!("GET {} HTTP/1.1\r\nhost: a\r\n\r\n", client.stream_path());
    slow.write_all(head.as_bytes()).await.expect("writes");
    let mut watched = client.stream(&client.stream_path(), &[]).await;
    watched.quote().await;
    for change in 1..=CHANGES {
        client.take_out(change * 1_000_000_000);
        watched.quote().await;
    }
    let newest = client.quote().await["outAmount"].to_string();
    let newest = format!("\"outAmount\":{newest}");
    let mut text = String::new();
    let mut bytes = [0; 4_096];
    let read = async {
        while !text.contains(&newest) {
            let read = slow.read(&mut bytes).await.expect("an unbroken stream");
            assert_ne!(read, 0, "the stream ended");
            text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    };
    timeout(PATIENCE, read).await.expect("the newest quote");
    let given = u64::try_from(text.matches("event: quote").count()).expect("a number");
    assert!(given < CHANGES / 2, "{given} of {CHANGES} had waited");
}
