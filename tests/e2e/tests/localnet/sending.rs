//! Swaps that the API sends and follows on the stream of a real validator, from their signing to their end.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::Method;
use serde_json::{Value, json};
use sluice_localnet::{
    chain::sign_encoded,
    rest::{QuoteRequest, SluiceClient, swap_body},
};
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use swap_guard_interface::{GuardError, PROGRAM_ID, Swapped};

use crate::net::TestNet;

/// Until a transaction of a chain that runs must have reached its end: it is final after 32 slots.
const PATIENCE: Duration = Duration::from_secs(240);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_swap_is_sent_and_followed_until_it_is_finalized() -> anyhow::Result<()> {
    let net = TestNet::start().await?;
    let (scene, sluice, chain) = (&net.net.scene, net.net.sluice(), net.net.chain());
    let wallet = scene.wallet.pubkey();
    let request = QuoteRequest {
        input_mint: scene.sol.mint,
        output_mint: scene.usd.mint,
        amount: 100_000_000,
        slippage_bps: 50,
    };
    let output = scene.usd.account_of(&wallet);
    let before = chain.tokens(&output).await?;
    // Two swaps of one quote: the second, which leaves the price no room, fails in the guard once the first has moved it.
    let quote = sluice.quote(&request).await?.quote;
    let built = sluice.swap(swap_body(&quote, &wallet, 0)).await?;
    let (signed, body) = self::signed(&built, &scene.wallet)?;
    let exact = QuoteRequest {
        slippage_bps: 0,
        ..request
    };
    let exact = sluice.quote(&exact).await?.quote;
    let built = sluice.swap(swap_body(&exact, &wallet, 0)).await?;
    let (late, late_body) = self::signed(&built, &scene.wallet)?;
    let sent = send(sluice, &body).await?;
    ensure!(sent["acceptedBy"] == 1, "{sent}");
    let path = format!("/v1/transactions/{}", signed.signatures[0]);
    let http = reqwest::Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .build()?;
    let stream = http
        .get(format!("{}{path}/stream", sluice.api()))
        .send()
        .await?;
    until(sluice, &path, |known| {
        known["commitment"] != "processed" && known["slot"].is_u64()
    })
    .await?;
    send(sluice, &late_body).await?;
    let known = until(sluice, &path, is_final).await?;
    ensure!(known["status"] == "finalized", "{known}");
    let gained = chain.tokens(&output).await? - before;
    ensure!(known["received"] == gained, "{known}, gained {gained}");
    ensure!(known["spent"] == quote.amount_in, "{known}");
    let event = event(&chain.send_and_confirm(&signed, false).await?.logs)?;
    ensure!(known["received"] == event.received && known["spent"] == event.spent);
    // The stream ended with the same.
    let text = stream.text().await?;
    let mut lines = text.lines().rev();
    let data = lines.find_map(|line| line.strip_prefix("data: "));
    let last: Value = serde_json::from_str(data.context("an event")?)?;
    ensure!(last == known, "{last} and {known}");

    let path = format!("/v1/transactions/{}", late.signatures[0]);
    let known = until(sluice, &path, is_final).await?;
    ensure!(known["status"] == "failed", "{known}");
    let error = &known["error"];
    ensure!(error["source"] == "guard", "{known}");
    ensure!(
        error["code"] == GuardError::SlippageExceeded.code(),
        "{known}"
    );
    net.stop().await
}

/// The signed transaction of an answer, and the body to send it with.
fn signed(
    built: &Value,
    wallet: &solana_keypair::Keypair,
) -> anyhow::Result<(VersionedTransaction, Value)> {
    let text = built["transaction"].as_str().context("a transaction")?;
    let signed = sign_encoded(text, wallet)?;
    let body = json!({
        "transaction": BASE64_STANDARD.encode(wincode::serialize(&signed)?),
        "lastValidBlockHeight": built["lastValidBlockHeight"],
    });
    Ok((signed, body))
}

async fn send(sluice: &SluiceClient, body: &Value) -> anyhow::Result<Value> {
    let sent = sluice.request(Method::POST, "/v1/transactions", Some(body.clone()));
    sent.await
}

/// Whether nothing more is expected of a transaction.
fn is_final(known: &Value) -> bool {
    let is_over = known["status"] == "expired" || known["status"] == "unknown";
    is_over || known["commitment"] == "finalized"
}

/// What is known of a transaction once this holds of it.
async fn until(
    sluice: &SluiceClient,
    path: &str,
    met: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    let begun = Instant::now();
    loop {
        let known: Value = sluice.request(Method::GET, path, None).await?;
        if met(&known) {
            return Ok(known);
        }
        ensure!(begun.elapsed() < PATIENCE, "still {known}");
        tokio::time::sleep(POLL).await;
    }
}

/// The guard's event of a transaction with these logs.
fn event(logs: &[String]) -> anyhow::Result<Swapped> {
    let data = logs
        .iter()
        .filter_map(|line| line.strip_prefix("Program data: "));
    let mut events = data.filter_map(|data| Swapped::decode(&BASE64_STANDARD.decode(data).ok()?));
    events
        .next()
        .with_context(|| format!("no event of {PROGRAM_ID} in {logs:?}"))
}
