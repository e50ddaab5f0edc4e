//! Many questions at once: every stream shows what the quote answers to its own question, over HTTP and WebSocket alike.

use std::time::Duration;

use cpmm::ids;
use futures::future::join_all;
use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_testkit::pool::Pool;
use tokio::time::{sleep, timeout};

use crate::{client::Client, quote_stream::Stream, sockets::Socket};

/// How long a quote may take that is waited for; signs of life come meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// Amounts that are asked for of each pair, direction and mode.
const AMOUNTS: u64 = 25;

/// Room for all streams, and for the quotes that they are held against.
const SETTINGS: &str = "[api.clients]\nstreams = 1000";

/// One question, and the stream that answers it.
struct Asked {
    question: String,
    reader: Reader,
    /// Of the last event.
    id: u64,
    quote: Value,
    /// Whether it came back and was given nothing yet. While nobody asked this, nobody watched for changes: then the quote as it
    /// is may come once more.
    is_back: bool,
}

enum Reader {
    Events(Stream),
    Socket(Socket),
}

impl Reader {
    /// The next quote, with its id.
    async fn next(&mut self) -> (u64, Value) {
        match self {
            Self::Events(stream) => {
                let event = stream.quote().await;
                (event.id.expect("an id"), event.data)
            }
            Self::Socket(socket) => {
                let mut event = socket.event().await;
                assert_eq!(event["event"], "quote", "{event}");
                (event["id"].as_u64().expect("an id"), event["data"].take())
            }
        }
    }
}

impl Asked {
    /// Opens a stream, every other one as a WebSocket, where the last one ended.
    async fn open(client: &Client, number: usize, question: String, last: Option<u64>) -> Reader {
        let path = format!("/v1/quote/stream?{question}");
        let last = last.map(|id| id.to_string());
        if number.is_multiple_of(2) {
            let headers: Vec<_> = last.map(|id| ("last-event-id", id)).into_iter().collect();
            Reader::Events(client.stream(&path, &headers).await)
        } else {
            let last = last.map_or(String::new(), |id| format!("&lastEventId={id}"));
            Reader::Socket(client.socket(&format!("{path}{last}"), &[]).await)
        }
    }

    /// Reads up to the newest quote: what the quote answers now, in the same words. Every change is a new quote in a later slot.
    async fn follow(&mut self, answered: &Value) {
        let newest = amounts(answered);
        while self.quote != newest {
            let next = timeout(PATIENCE, self.reader.next()).await;
            let (id, data) = next.unwrap_or_else(|_| panic!("nothing comes: {}", self.question));
            let quote = amounts(&data);
            assert!(id > self.id, "{id} after {}: {}", self.id, self.question);
            assert_eq!(data["context"]["slot"], id, "{}", self.question);
            let is_new = quote != self.quote;
            assert!(is_new || self.is_back, "twice: {}", self.question);
            (self.id, self.quote, self.is_back) = (id, quote, false);
        }
    }
}

/// All that an answer says but for the slot in which it is true, and its time.
fn amounts(answer: &Value) -> Value {
    let context = &answer["context"];
    let kept = ["amounts", "fees", "priceImpactBps", "expectedIn", "hops"];
    let context = kept.map(|name| &context[name]);
    json!([answer["quote"], context])
}

/// Both directions of every pool and both pools in a row, in both modes where there are, for many amounts.
fn questions(client: &Client) -> Vec<String> {
    const MODES: [&str; 2] = ["maxHops=2", "swapMode=ExactOut"];
    let harness = &client.harness;
    let mints = |pool: &Pool| (pool.state.mints.token_0, pool.state.mints.token_1);
    let (sol, middle) = mints(&harness.sol_pool);
    let (one, other) = mints(&harness.far_pool);
    let far = if one == middle { other } else { one };
    let pairs = [
        (mints(&harness.sol_pool), &MODES[..]),
        (mints(&harness.fee_pool), &MODES),
        ((one, other), &MODES),
        // An exact output goes through one pool.
        ((sol, far), &MODES[..1]),
    ];
    let mut questions = Vec::new();
    for ((one, other), modes) in pairs {
        for (input, output) in [(one, other), (other, one)] {
            for mode in modes {
                questions.extend((1..=AMOUNTS).map(|number| {
                    let amount = number * 1_234_567;
                    format!("inputMint={input}&outputMint={output}&amount={amount}&{mode}")
                }));
            }
        }
    }
    questions
}

impl Client {
    /// Takes so much out of these pools, and waits until quotes of the last one show it.
    async fn shift(&self, pools: &[&Pool], taken: u64) {
        let last = pools.last().expect("a pool").state.mints;
        let probe = format!(
            "/v1/quote?inputMint={}&outputMint={}&amount=100000000",
            last.token_0, last.token_1
        );
        let before = self.get(&probe).await.body["quote"].clone();
        for pool in pools {
            let token = &pool.tokens.token_1;
            let mint = pool.state.mints.token_1;
            self.harness.chain.write(RawAccount {
                pubkey: pool.state.vaults.token_1,
                owner: token.program.id(),
                lamports: 2_039_280,
                data: token
                    .account(mint, ids::AUTHORITY, token.vault - taken)
                    .into(),
            });
        }
        while self.get(&probe).await.body["quote"] == before {
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Reads every stream up to what the quote answers to its question now.
    async fn follow_all(&self, all: &mut [Asked]) {
        for asked in all {
            let answer = self.get(&format!("/v1/quote?{}", asked.question)).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            asked.follow(&answer.body).await;
        }
    }
}

#[tokio::test]
async fn every_stream_of_hundreds_shows_its_own_quote_and_none_is_lost_when_all_come_back() {
    let client = Client::start_as(SETTINGS).await;
    let questions = questions(&client);
    assert_eq!(questions.len(), 350);
    let opened = questions
        .into_iter()
        .enumerate()
        .map(async |(number, question)| Asked {
            reader: Asked::open(&client, number, question.clone(), None).await,
            question,
            id: 0,
            quote: Value::Null,
            is_back: false,
        });
    let mut all = join_all(opened).await;
    client.follow_all(&mut all).await;

    let harness = &client.harness;
    let pools = [&harness.sol_pool, &harness.fee_pool, &harness.far_pool];
    client.shift(&pools, 100_000_000_000).await;
    client.follow_all(&mut all).await;

    // While nobody is there, one pool changes; then all come back at once, each to what it has missed.
    let left: Vec<_> = all
        .into_iter()
        .map(|asked| (asked.question, asked.id, asked.quote))
        .collect();
    client.shift(&pools[..1], 200_000_000_000).await;
    let back = left.into_iter().enumerate();
    let back = back.map(async |(number, (question, id, quote))| Asked {
        reader: Asked::open(&client, number, question.clone(), Some(id)).await,
        question,
        id,
        quote,
        is_back: true,
    });
    let mut all = join_all(back).await;
    client.follow_all(&mut all).await;
    // Where nothing was missed, they go on with the next change.
    client.shift(&pools, 300_000_000_000).await;
    client.follow_all(&mut all).await;
}
