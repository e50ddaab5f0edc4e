//! Client of Sluice's REST interface, as an integrator would write one.

use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;

/// Deadline of one call; the service is on this machine.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where the two halves of Sluice listen.
#[derive(Clone, Debug)]
pub struct SluiceClient {
    http: reqwest::Client,
    api: String,
    indexer: String,
}

/// A quote, as the interface gives it and takes it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Quote {
    /// Input, smallest units.
    pub amount_in: u64,
    /// Input mint.
    pub input_mint: String,
    /// Least output the guard lets through, smallest units.
    pub minimum_out: u64,
    /// Expected output, smallest units.
    pub out_amount: u64,
    /// Output mint.
    pub output_mint: String,
    /// Pool that pays; of two hops both, joined by a comma.
    pub pool: String,
    /// Program that owns the pool.
    pub program: String,
}

/// What is asked of a quote.
#[derive(Clone, Copy, Debug)]
pub struct QuoteRequest {
    /// Input mint.
    pub input_mint: Pubkey,
    /// Output mint.
    pub output_mint: Pubkey,
    /// Input, smallest units.
    pub amount: u64,
    /// Allowed slippage, basis points.
    pub slippage_bps: u16,
}

impl QuoteRequest {
    /// Path and query of the request.
    #[must_use]
    pub fn path(&self) -> String {
        format!(
            "/v1/quote?inputMint={}&outputMint={}&amount={}&slippageBps={}",
            self.input_mint, self.output_mint, self.amount, self.slippage_bps
        )
    }
}

/// A quote with the moment it holds for.
#[derive(Clone, Debug, Deserialize)]
pub struct QuoteAnswer {
    /// The quote.
    pub quote: Quote,
    /// Slot and other circumstances.
    #[serde(default)]
    pub context: Value,
}

/// A pre-built transaction.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionAnswer {
    /// Base64 of an unsigned v0 transaction.
    pub transaction: String,
    /// Last block height at which it can land.
    pub last_valid_block_height: u64,
}

/// A webhook just created.
#[derive(Clone, Debug)]
pub struct CreatedWebhook {
    /// Its identifier.
    pub id: String,
    /// The signing secret, shown this once.
    pub secret: String,
}

/// One of Sluice's two health endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The REST API.
    Api,
    /// The indexer.
    Indexer,
}

/// A health answer.
#[derive(Clone, Debug)]
pub struct Health {
    /// 200 when ready, 503 when not.
    pub status: StatusCode,
    /// The whole body.
    pub body: Value,
}

#[derive(Deserialize)]
struct InstructionAnswer {
    instruction: InstructionFields,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InstructionFields {
    accounts: String,
    data: Vec<u8>,
    program_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Key {
    pubkey: String,
    is_signer: bool,
    is_writable: bool,
}

impl SluiceClient {
    /// A client for these two addresses, each `http://host:port`.
    ///
    /// # Errors
    /// When the HTTP client cannot be built.
    pub fn new(api: String, indexer: String) -> anyhow::Result<Self> {
        // No proxy: the addresses are on this machine whatever the environment says.
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .no_proxy()
            .build()?;
        Ok(Self { http, api, indexer })
    }

    /// Address of the API, `http://host:port`.
    #[must_use]
    pub fn api(&self) -> &str {
        &self.api
    }

    /// Address of the indexer's health endpoints, `http://host:port`.
    #[must_use]
    pub fn indexer(&self) -> &str {
        &self.indexer
    }

    /// `GET /v1/quote`.
    ///
    /// # Errors
    /// When the call fails or the service refuses, with its `code`.
    pub async fn quote(&self, request: &QuoteRequest) -> anyhow::Result<QuoteAnswer> {
        self.quote_with(request, "").await
    }

    /// `GET /v1/quote` with more parameters, each `&name=value`.
    ///
    /// # Errors
    /// As [`SluiceClient::quote`].
    pub async fn quote_with(
        &self,
        request: &QuoteRequest,
        more: &str,
    ) -> anyhow::Result<QuoteAnswer> {
        let path = format!("{}{more}", request.path());
        self.call(Method::GET, &path, None).await
    }

    /// `POST /v1/swap/transaction`.
    ///
    /// # Errors
    /// When the call fails or the service refuses, with its `code`.
    pub async fn swap_transaction(
        &self,
        quote: &Quote,
        user: &Pubkey,
        priority_fee_lamports: u64,
    ) -> anyhow::Result<TransactionAnswer> {
        let body = swap_body(quote, user, priority_fee_lamports);
        self.call(Method::POST, "/v1/swap/transaction", Some(body))
            .await
    }

    /// `POST /v1/swap/transaction` with any body, and the whole answer.
    ///
    /// # Errors
    /// When the call fails or the service refuses, with its `code`.
    pub async fn swap(&self, body: Value) -> anyhow::Result<Value> {
        self.call(Method::POST, "/v1/swap/transaction", Some(body))
            .await
    }

    /// `POST /v1/swap/instruction`.
    ///
    /// # Errors
    /// When the call fails, the service refuses, or what it answers is no instruction.
    pub async fn swap_instruction(
        &self,
        quote: &Quote,
        user: &Pubkey,
    ) -> anyhow::Result<Instruction> {
        let body = swap_body(quote, user, 0);
        let answer: InstructionAnswer = self
            .call(Method::POST, "/v1/swap/instruction", Some(body))
            .await?;
        let fields = answer.instruction;
        let keys: Vec<Key> =
            serde_json::from_str(&fields.accounts).context("`accounts` is no JSON list of keys")?;
        let accounts = keys
            .iter()
            .map(|key| {
                Ok(AccountMeta {
                    pubkey: key.pubkey.parse()?,
                    is_signer: key.is_signer,
                    is_writable: key.is_writable,
                })
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Instruction {
            program_id: fields.program_id.parse()?,
            accounts,
            data: fields.data,
        })
    }

    /// `POST /api/webhooks`, subscribed to all three kinds of event.
    ///
    /// # Errors
    /// When the call fails or the service refuses, with its `code`.
    pub async fn create_webhook(
        &self,
        url: &str,
        accounts: &[Pubkey],
        programs: &[Pubkey],
    ) -> anyhow::Result<CreatedWebhook> {
        let text = |keys: &[Pubkey]| keys.iter().map(Pubkey::to_string).collect::<Vec<_>>();
        let body = json!({
            "url": url,
            "events": ["accountChange", "transaction", "programEvent"],
            "filters": { "accounts": text(accounts), "programs": text(programs) },
            "active": true,
        });
        let answer: Value = self.call(Method::POST, "/api/webhooks", Some(body)).await?;
        let field = |pointer: &str| {
            answer
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .with_context(|| format!("the answer has no {pointer}"))
        };
        Ok(CreatedWebhook {
            id: field("/webhook/id")?,
            secret: field("/secret")?,
        })
    }

    /// Any call of the API with any body, and the whole answer; null for an answer without a body.
    ///
    /// # Errors
    /// When the call fails or the service refuses, with its `code`.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let text = self.send(method, path, body).await?;
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).with_context(|| format!("{path} answered {text}"))
    }

    /// `DELETE /api/webhooks/{id}`.
    ///
    /// # Errors
    /// When the call fails or the service refuses, with its `code`.
    pub async fn delete_webhook(&self, id: &str) -> anyhow::Result<()> {
        let path = format!("/api/webhooks/{id}");
        self.send(Method::DELETE, &path, None).await.map(drop)
    }

    /// `GET /health/ready` of one part.
    ///
    /// # Errors
    /// When it cannot be reached. A part that is not ready is no error: see [`Health::status`].
    pub async fn ready(&self, part: Part) -> anyhow::Result<Health> {
        let base = match part {
            Part::Api => &self.api,
            Part::Indexer => &self.indexer,
        };
        let response = self.http.get(format!("{base}/health/ready")).send().await?;
        Ok(Health {
            status: response.status(),
            body: response.json().await.unwrap_or(Value::Null),
        })
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<T> {
        let text = self.send(method, path, body).await?;
        serde_json::from_str(&text).with_context(|| format!("{path} answered {text}"))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<String> {
        let mut request = self
            .http
            .request(method.clone(), format!("{}{path}", self.api));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        if !status.is_success() {
            bail!(
                "{method} {path} was refused: {}",
                describe_problem(status, &text)
            );
        }
        Ok(text)
    }
}

/// Body of the two swap requests, with SOL wrapped and unwrapped.
#[must_use]
pub fn swap_body(quote: &Quote, user: &Pubkey, priority_fee_lamports: u64) -> Value {
    json!({
        "quote": quote,
        "userPublicKey": user.to_string(),
        "wrapAndUnwrapSol": true,
        "priorityFeeLamports": priority_fee_lamports,
    })
}

/// `404 no_pool: …` from a problem document, or the status and the text of anything else.
fn describe_problem(status: StatusCode, text: &str) -> String {
    let problem: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    let field = |name: &str| problem.get(name).and_then(Value::as_str);
    match field("code") {
        Some(code) => {
            let detail = field("detail").or_else(|| field("title")).unwrap_or("");
            format!("{} {code}: {detail}", status.as_u16())
        }
        None => format!("{status}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_named_by_their_code() {
        let text = r#"{"code":"no_pool","title":"No pool","detail":"no pool pairs these mints"}"#;
        assert_eq!(
            describe_problem(StatusCode::NOT_FOUND, text),
            "404 no_pool: no pool pairs these mints"
        );
        assert_eq!(
            describe_problem(StatusCode::BAD_GATEWAY, "oops"),
            "502 Bad Gateway: oops"
        );
    }
}
