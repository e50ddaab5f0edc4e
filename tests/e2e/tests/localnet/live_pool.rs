//! Pool opened while Sluice runs: quoted and swapped within seconds.

use std::time::{Duration, Instant};

use anyhow::ensure;
use sluice_localnet::{
    chain::sign_encoded,
    opening::Opening,
    rest::{QuoteAnswer, QuoteRequest},
};
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_signer::Signer;

use crate::net::TestNet;

/// Opening a pool creates seven accounts, which is more than the 200,000 units of one instruction.
const OPENING_UNITS: u32 = 600_000;

/// How long the new pool may take from its confirmation to its first quote. The exchange itself lets no
/// swap through for about a second after an opening.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_pool_opened_live_is_quoted() -> anyhow::Result<()> {
    let net = TestNet::start().await?;
    let (scene, chain, sluice) = (&net.net.scene, net.net.chain(), net.net.sluice());
    let wallet = scene.wallet.pubkey();
    let request = QuoteRequest {
        input_mint: scene.usd.mint,
        output_mint: scene.alfa.mint,
        amount: scene.usd.units(25),
        slippage_bps: 50,
    };
    let refusal = format!(
        "{:#}",
        sluice.quote(&request).await.expect_err("no such pool")
    );
    ensure!(refusal.contains("no_pool"), "{refusal}");

    let opening = Opening {
        creator: wallet,
        one: (scene.alfa, scene.alfa.units(20_000)),
        other: (scene.usd, scene.usd.units(10_000)),
        open_time: 0,
    };
    let instructions = [
        ComputeBudgetInstruction::set_compute_unit_limit(OPENING_UNITS),
        opening.instruction(),
    ];
    let transaction = chain.sign(&instructions, &scene.wallet).await?;
    let opened = chain.send_and_confirm(&transaction, true).await?;
    ensure!(
        opened.error.is_none(),
        "{:?}: {:#?}",
        opened.error,
        opened.logs
    );

    let begun = Instant::now();
    let QuoteAnswer { quote, .. } = loop {
        match sluice.quote(&request).await {
            Ok(answer) => break answer,
            Err(error) => ensure!(begun.elapsed() < PATIENCE, "{error:#}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    println!(
        "{} CU to open, quoted {} ms after confirmation",
        opened.compute_units,
        begun.elapsed().as_millis()
    );
    ensure!(quote.pool == opening.pool().to_string(), "{quote:?}");

    let output = scene.alfa.account_of(&wallet);
    let before = chain.tokens(&output).await?;
    let answer = sluice.swap_transaction(&quote, &wallet, 0).await?;
    let transaction = sign_encoded(&answer.transaction, &scene.wallet)?;
    let swapped = chain.send_and_confirm(&transaction, true).await?;
    ensure!(
        swapped.error.is_none(),
        "{:?}: {:#?}",
        swapped.error,
        swapped.logs
    );
    ensure!(chain.tokens(&output).await? - before == quote.out_amount);
    net.stop().await
}
