//! Transactions of the API, signed and confirmed on a real chain, with balances to the lamport.
//!
//! Wallets are in every state that the API can meet.

mod bench;
mod forms;
mod matrix;

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use sluice_localnet::{
    chain::sign_encoded,
    rest::{QuoteRequest, swap_body},
};
use solana_instruction::error::InstructionError;
use solana_signer::Signer;
use solana_transaction_error::TransactionError;
use swap_guard_interface::GuardError;

use self::{bench::Bench, matrix::Row};
use crate::net::TestNet;

/// Swaps under way at a time: each waits for its confirmation most of its time.
const PARALLEL: usize = 12;

/// Seven pairs of tokens, and every state of the wallet that is possible with them.
const LEAST_ROWS: usize = 100;

#[tokio::test]
async fn every_wallet_gets_what_it_signed_for() -> anyhow::Result<()> {
    let net = TestNet::start().await?;
    let bench = Bench::open(&net).await?;
    let rows = Row::all(&bench);
    let count = rows.len();
    let outcomes: Vec<_> = stream::iter(rows.into_iter().enumerate())
        .map(|(number, row)| {
            let bench = &bench;
            async move {
                let outcome = row.run(bench).await;
                outcome.with_context(|| format!("row {number}: {row:?}"))
            }
        })
        .buffer_unordered(PARALLEL)
        .try_collect()
        .await?;
    println!("{count} rows");
    ensure!(
        outcomes.len() == count && count >= LEAST_ROWS,
        "{count} rows"
    );
    net.stop().await
}

#[tokio::test]
async fn every_form_of_a_swap_moves_what_it_says_between_the_wallets_it_says() -> anyhow::Result<()>
{
    let net = TestNet::start().await?;
    let bench = Bench::open(&net).await?;
    let rows = forms::Row::all(&bench);
    let count = rows.len();
    stream::iter(rows.into_iter().enumerate())
        .map(|(number, row)| {
            let bench = &bench;
            async move {
                let outcome = row.run(bench).await;
                outcome.with_context(|| format!("row {number}: {row:?}"))
            }
        })
        .buffer_unordered(PARALLEL)
        .try_collect::<Vec<()>>()
        .await?;
    println!("{count} rows");
    net.stop().await
}

#[tokio::test]
async fn a_pool_that_moved_fails_the_swap_with_the_guards_code() -> anyhow::Result<()> {
    let net = TestNet::start().await?;
    let (scene, sluice, chain) = (&net.net.scene, net.net.sluice(), net.net.chain());
    let wallet = scene.wallet.pubkey();
    let quote = async |amount, slippage_bps| {
        let request = QuoteRequest {
            input_mint: scene.usd.mint,
            output_mint: scene.sol.mint,
            amount,
            slippage_bps,
        };
        anyhow::Ok(sluice.quote(&request).await?.quote)
    };
    let exact = quote(scene.usd.units(100), 0).await?;
    let promised = sluice.swap_transaction(&exact, &wallet, 0).await?;
    // Somebody else trades first.
    let other = quote(scene.usd.units(1_000), 50).await?;
    let moving = sluice.swap_transaction(&other, &wallet, 0).await?;
    let moving = sign_encoded(&moving.transaction, &scene.wallet)?;
    let moved = chain.send_and_confirm(&moving, true).await?;
    ensure!(moved.error.is_none(), "{:?}", moved.error);

    let before = chain.tokens(&scene.usd.account_of(&wallet)).await?;
    let late = sign_encoded(&promised.transaction, &scene.wallet)?;
    let failed = chain.send_and_confirm(&late, false).await?;
    let Some(TransactionError::InstructionError(_, InstructionError::Custom(code))) = failed.error
    else {
        anyhow::bail!("it did not fail with a code: {:?}", failed.error);
    };
    ensure!(code == GuardError::SlippageExceeded.code(), "code {code}");
    let guard = swap_guard_interface::PROGRAM_ID.to_string();
    ensure!(failed.failing_program() == Some(guard.as_str()));
    ensure!(chain.tokens(&scene.usd.account_of(&wallet)).await? == before);

    // The API refuses the same quote now, and gives the one to go on with.
    let refusal = sluice.swap_transaction(&exact, &wallet, 0).await;
    let refusal = format!("{:#}", refusal.err().context("the quote is stale")?);
    ensure!(refusal.contains("409 quote_stale"), "{refusal}");
    let mut body = swap_body(&exact, &wallet, 0);
    body["refresh"] = true.into();
    let renewed = sluice.swap(body).await?;
    let least = renewed["quote"]["minimumOut"].as_u64();
    ensure!(least.is_some_and(|least| least < exact.minimum_out));
    let text = renewed["transaction"].as_str().context("a transaction")?;
    let fresh = sign_encoded(text, &scene.wallet)?;
    let done = chain.send_and_confirm(&fresh, true).await?;
    ensure!(done.error.is_none(), "{:?}", done.error);
    net.stop().await
}
