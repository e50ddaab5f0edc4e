//! Client of the API under test: its requests, its answers, its wallet.

use std::time::Duration;

use bytes::Bytes;
use cpmm::{TokenAccount, TokenAccountKind, ids};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use sluice_chain_types::RawAccount;
use sluice_harness::api::{ApiHarness, Lines};
use sluice_testkit::{names::keypair, pool::Pool};
use sluice_transaction::Associated;
use solana_pubkey::Pubkey;
use solana_signer::Signer;

/// Deadline of the API's calls to its node: longer than a node that answers takes on the busiest machine.
const RPC_TIMEOUT: Duration = Duration::from_secs(30);

/// What is swapped, smallest units.
pub const AMOUNT: u64 = 1_000_000;

/// The API between doubles, and a client of it.
pub struct Client {
    pub harness: ApiHarness,
    pub http: reqwest::Client,
}

/// Status and body of an answer.
pub struct Answer {
    pub status: StatusCode,
    pub body: Value,
}

impl Answer {
    /// The code of a problem.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or("none")
    }
}

impl Client {
    pub async fn start() -> Self {
        Self::start_with(RPC_TIMEOUT).await
    }

    /// With a node that is given this long.
    pub async fn start_with(rpc_timeout: Duration) -> Self {
        Self::of(
            ApiHarness::start(rpc_timeout)
                .await
                .expect("the API starts"),
        )
    }

    /// With these lines more in the configuration.
    pub async fn start_set(settings: Lines<'_>) -> Self {
        let harness = ApiHarness::start_with(RPC_TIMEOUT, settings).await;
        Self::of(harness.expect("the API starts"))
    }

    fn of(harness: ApiHarness) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .build()
            .expect("a client");
        Self { harness, http }
    }

    pub async fn get(&self, path: &str) -> Answer {
        let response = self.http.get(format!("{}{path}", self.harness.url)).send();
        read(response.await.expect("an answer")).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_raw(path, "application/json", body.to_string())
            .await
    }

    pub async fn post_raw(&self, path: &str, kind: &str, body: impl Into<reqwest::Body>) -> Answer {
        let request = self.http.post(format!("{}{path}", self.harness.url));
        let response = request.header("content-type", kind).body(body).send();
        read(response.await.expect("an answer")).await
    }

    /// What asks this route for a quote of the SOL pool, SOL in.
    pub fn quote_path(&self, route: &str) -> String {
        let mints = self.harness.sol_pool.state.mints;
        let (input, output) = (mints.token_0, mints.token_1);
        format!("{route}?inputMint={input}&outputMint={output}&amount={AMOUNT}")
    }

    /// A quote of the SOL pool, SOL in.
    pub async fn quote(&self) -> Value {
        let answer = self.get(&self.quote_path("/v1/quote")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body["quote"].clone()
    }

    /// The body for a transaction of this quote.
    pub fn body(&self, quote: &Value) -> Value {
        json!({ "quote": quote, "userPublicKey": wallet().to_string() })
    }

    pub async fn transaction(&self, body: &Value) -> Answer {
        self.post("/v1/swap/transaction", body).await
    }

    /// Gives the wallet an account of a pool's token, in the node's memory.
    pub fn give(&self, address: Pubkey, owner: Pubkey, mint: Pubkey, amount: u64, frozen: bool) {
        let account = TokenAccount {
            mint,
            owner,
            amount,
            frozen,
        };
        self.harness.node.set(RawAccount {
            pubkey: address,
            owner: ids::SPL_TOKEN,
            lamports: 2_039_280,
            data: account.encode(TokenAccountKind::Plain).into(),
        });
    }

    /// Gives the wallet lamports.
    pub fn enrich(&self, lamports: u64) {
        self.harness.node.set(RawAccount {
            pubkey: wallet(),
            owner: Pubkey::default(),
            lamports,
            data: Bytes::new(),
        });
    }

    /// Leaves so much less of the SOL pool's other token than there was at first, in the next slot.
    pub fn take_out(&self, taken: u64) {
        let pool = &self.harness.sol_pool;
        let token = &pool.tokens.token_1;
        let left = token.vault - taken;
        let account = token.account(pool.state.mints.token_1, ids::AUTHORITY, left);
        self.harness.chain.write(RawAccount {
            pubkey: pool.state.vaults.token_1,
            owner: ids::SPL_TOKEN,
            lamports: 2_039_280,
            data: account.into(),
        });
    }

    /// Takes this share of the SOL pool's other token away, percent, and waits until the API knows.
    pub async fn drain(&self, percent: u64) {
        let before = self.quote().await;
        self.take_out(self.harness.sol_pool.tokens.token_1.vault / 100 * percent);
        while self.quote().await == before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Who swaps.
pub fn wallet() -> Pubkey {
    keypair("client").pubkey()
}

/// The wallet's associated account of a pool's second token.
pub fn output_account(pool: &Pool) -> Pubkey {
    let (mint, program) = (pool.state.mints.token_1, pool.state.token_programs.token_1);
    Associated::of(&wallet(), &mint, &program).address
}

async fn read(response: Response) -> Answer {
    let status = response.status();
    let kind = response.headers().get("content-type").cloned();
    let text = response.text().await.expect("a whole answer");
    let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let expected = if status.is_success() {
        "application/json"
    } else {
        "application/problem+json"
    };
    assert_eq!(
        kind.as_ref().and_then(|kind| kind.to_str().ok()),
        Some(expected),
        "{text}"
    );
    Answer { status, body }
}
