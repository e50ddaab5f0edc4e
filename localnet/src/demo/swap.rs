//! Swap of the demo: quote, transaction, signature, confirmation, and what was received.

use anyhow::{Context, ensure};
use serde_json::Value;
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_signer::Signer;

use crate::{
    chain::{Confirmed, sign_encoded},
    net::Localnet,
    rest::{Quote, QuoteRequest},
    scene::Token,
};

use super::transcript::Transcript;

/// Slippage that the demo allows, basis points.
const SLIPPAGE_BPS: u16 = 50;

/// What the demo pays for priority at most, lamports.
const PRIORITY_FEE_LAMPORTS: u64 = 10_000;

/// One swap of the demo.
#[derive(Clone, Copy, Debug)]
pub struct Leg {
    /// What goes in.
    pub from: Token,
    /// What comes out.
    pub to: Token,
    /// How much goes in, smallest units.
    pub amount: u64,
    /// Which of the scene's pools must be chosen.
    pub pool: usize,
}

/// A swap that went through.
#[derive(Clone, Copy, Debug)]
pub struct Swapped {
    /// Its transaction.
    pub signature: Signature,
    /// Its slot.
    pub slot: u64,
    /// The pool that paid.
    pub pool: Pubkey,
    /// What the wallet gained.
    pub received: u64,
}

impl Leg {
    /// A swap of `amount` smallest units.
    pub const fn new(from: Token, to: Token, amount: u64, pool: usize) -> Self {
        Self {
            from,
            to,
            amount,
            pool,
        }
    }

    /// `SOL to USDL`.
    pub fn name(&self) -> String {
        format!("{} to {}", self.from.symbol, self.to.symbol)
    }

    /// What is asked of the API.
    pub const fn request(&self) -> QuoteRequest {
        QuoteRequest {
            input_mint: self.from.mint,
            output_mint: self.to.mint,
            amount: self.amount,
            slippage_bps: SLIPPAGE_BPS,
        }
    }
}

/// Swaps, and checks that the wallet received what was quoted.
pub async fn run(
    transcript: &mut Transcript,
    net: &Localnet,
    leg: &Leg,
) -> anyhow::Result<Swapped> {
    let quote = quote(transcript, net, leg).await?;
    let wallet = net.scene.wallet.pubkey();
    let (chain, output) = (net.chain(), leg.to.account_of(&wallet));
    let before = chain.tokens(&output).await?;
    let answer = net
        .sluice()
        .swap_transaction(&quote, &wallet, PRIORITY_FEE_LAMPORTS)
        .await?;
    let transaction = sign_encoded(&answer.transaction, &net.scene.wallet)?;
    transcript.step(
        "transaction",
        &format!(
            "{} bytes, {} instructions, valid to block height {}",
            wincode::serialize(&transaction)?.len(),
            transaction.message.instructions().len(),
            answer.last_valid_block_height
        ),
    );
    let confirmed = chain.send_and_confirm(&transaction, true).await?;
    report(transcript, &confirmed);
    if let Some(error) = &confirmed.error {
        anyhow::bail!(
            "it failed on the chain: {error}; log: {:#?}",
            confirmed.logs
        );
    }
    let received = chain
        .tokens(&output)
        .await?
        .checked_sub(before)
        .context("the balance fell")?;
    ensure!(
        received >= quote.minimum_out,
        "received {received}, less than the minimum of {}",
        quote.minimum_out
    );
    // There is no other trader on this chain, so the pool stands where it stood when it was quoted.
    ensure!(
        received == quote.out_amount,
        "received {received}, but {} was quoted",
        quote.out_amount
    );
    transcript.step(
        "received",
        &format!(
            "{}: exactly as quoted, minimum was {}",
            leg.to.show(received),
            leg.to.show(quote.minimum_out)
        ),
    );
    Ok(Swapped {
        signature: confirmed.signature,
        slot: confirmed.slot,
        pool: quote.pool.parse()?,
        received,
    })
}

async fn quote(transcript: &mut Transcript, net: &Localnet, leg: &Leg) -> anyhow::Result<Quote> {
    let begun = std::time::Instant::now();
    let answer = net.sluice().quote(&leg.request()).await?;
    let took = begun.elapsed();
    let quote = answer.quote;
    let pool = net
        .scene
        .pools
        .get(leg.pool)
        .context("the scene has no such pool")?;
    let expected = (leg.amount, pool.address.to_string());
    ensure!(
        (quote.amount_in, quote.pool.clone()) == expected,
        "the quote is for another amount or pool: {quote:?}"
    );
    ensure!(
        0 < quote.minimum_out && quote.minimum_out <= quote.out_amount,
        "the quote's minimum is out of range: {quote:?}"
    );
    let slot = answer.context.get("slot").and_then(Value::as_u64);
    transcript.step(
        "quote",
        &format!(
            "{} for {}, pool {}, slot {}, {:.1} ms",
            leg.to.show(quote.out_amount),
            leg.from.show(leg.amount),
            pool.name(),
            slot.map_or_else(|| "?".to_owned(), |slot| slot.to_string()),
            took.as_secs_f64() * 1e3
        ),
    );
    Ok(quote)
}

/// Prints what became of a transaction.
pub fn report(transcript: &mut Transcript, confirmed: &Confirmed) {
    let outcome = if confirmed.error.is_some() {
        "failed on chain"
    } else {
        "confirmed"
    };
    transcript.step(
        outcome,
        &format!(
            "slot {}, {} CU, fee {} lamports, {} ms, {}",
            confirmed.slot,
            confirmed.compute_units,
            confirmed.fee,
            confirmed.took.as_millis(),
            confirmed.signature
        ),
    );
}
