//! SOL in and out on a real chain: wrapping never costs the wallet a balance that it had.

use anyhow::{Context, ensure};
use cpmm::ids;
use sluice_localnet::{
    chain::{Confirmed, sign_encoded},
    rest::QuoteRequest,
    scene::Token,
};
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use spl_associated_token_account_interface::instruction::create_associated_token_account;
use spl_token_interface::instruction::{close_account, sync_native};

use crate::net::TestNet;

/// What the test wraps by hand, lamports.
const HELD: u64 = 400_000_000;

/// What it swaps at a time, lamports.
const SWAPPED: u64 = 1_000_000_000;

/// Ceiling of the priority fee of each swap, lamports.
const PRIORITY_FEE: u64 = 20_000;

/// One wallet's view of the chain.
struct Wallet<'a> {
    net: &'a TestNet,
    key: Pubkey,
    wrapped: Pubkey,
}

impl<'a> Wallet<'a> {
    fn of(net: &'a TestNet) -> Self {
        let scene = &net.net.scene;
        let key = scene.wallet.pubkey();
        Self {
            net,
            key,
            wrapped: scene.sol.account_of(&key),
        }
    }

    /// Lamports, and wrapped SOL; `None` when there is no account for it.
    async fn sol(&self) -> anyhow::Result<(u64, Option<u64>)> {
        let chain = self.net.net.chain();
        let exists = chain.lamports(&self.wrapped).await? > 0;
        let wrapped = chain.tokens(&self.wrapped).await?;
        Ok((chain.lamports(&self.key).await?, exists.then_some(wrapped)))
    }

    /// Swaps through the API's transaction. Returns what was received, by the quote, and the receipt.
    async fn swap(&self, from: Token, to: Token, amount: u64) -> anyhow::Result<(u64, Confirmed)> {
        let sluice = self.net.net.sluice();
        let request = QuoteRequest {
            input_mint: from.mint,
            output_mint: to.mint,
            amount,
            slippage_bps: 50,
        };
        let quote = sluice.quote(&request).await?.quote;
        let answer = sluice
            .swap_transaction(&quote, &self.key, PRIORITY_FEE)
            .await?;
        let transaction = sign_encoded(&answer.transaction, &self.net.net.scene.wallet)?;
        let confirmed = self.send(&transaction).await?;
        ensure!(
            confirmed.fee <= 5_000 + PRIORITY_FEE,
            "the priority fee passed its ceiling: {}",
            confirmed.fee
        );
        Ok((quote.out_amount, confirmed))
    }

    async fn send(
        &self,
        transaction: &solana_transaction::versioned::VersionedTransaction,
    ) -> anyhow::Result<Confirmed> {
        let confirmed = self
            .net
            .net
            .chain()
            .send_and_confirm(transaction, true)
            .await?;
        ensure!(
            confirmed.error.is_none(),
            "{:?}: {:#?}",
            confirmed.error,
            confirmed.logs
        );
        Ok(confirmed)
    }

    async fn act(&self, instructions: &[solana_instruction::Instruction]) -> anyhow::Result<()> {
        let chain = self.net.net.chain();
        let wallet = &self.net.net.scene.wallet;
        let transaction = chain.sign(instructions, wallet).await?;
        self.send(&transaction).await.map(drop)
    }

    /// Makes the wallet's wrapped SOL account and puts [`HELD`] into it.
    async fn wrap_by_hand(&self) -> anyhow::Result<()> {
        self.act(&[
            create_associated_token_account(
                &self.key,
                &self.key,
                &ids::WRAPPED_SOL,
                &ids::SPL_TOKEN,
            ),
            transfer(&self.key, &self.wrapped, HELD),
            sync_native(&ids::SPL_TOKEN, &self.wrapped)?,
        ])
        .await
    }

    async fn unwrap_by_hand(&self) -> anyhow::Result<()> {
        let close = close_account(&ids::SPL_TOKEN, &self.wrapped, &self.key, &self.key, &[])?;
        self.act(&[close]).await
    }
}

#[tokio::test]
async fn wrapping_never_costs_a_balance() -> anyhow::Result<()> {
    let net = TestNet::start().await?;
    let wallet = Wallet::of(&net);
    let (sol, usd) = (net.net.scene.sol, net.net.scene.usd);

    // No account before: one is made and closed, and the swap costs its amount and the fee, no rent.
    let (before, none) = wallet.sol().await?;
    ensure!(none.is_none(), "the scene's wallet has wrapped SOL");
    let (bought, receipt) = wallet.swap(sol, usd, SWAPPED).await?;
    let (after, none) = wallet.sol().await?;
    ensure!(none.is_none(), "the wrapped SOL account was left behind");
    ensure!(
        after == before - SWAPPED - receipt.fee,
        "{before} to {after}"
    );

    // The same way back: native SOL arrives, to the lamport.
    let (sold, receipt) = wallet.swap(usd, sol, bought).await?;
    let (end, none) = wallet.sol().await?;
    ensure!(none.is_none(), "the wrapped SOL account was left behind");
    ensure!(end == after + sold - receipt.fee, "{after} to {end}");

    // An account with a balance: it is used up first, the missing part wrapped, and it stays.
    wallet.wrap_by_hand().await?;
    let (before, held) = wallet.sol().await?;
    ensure!(held == Some(HELD), "{held:?}");
    let (bought, receipt) = wallet.swap(sol, usd, SWAPPED).await?;
    let (after, held) = wallet.sol().await?;
    ensure!(held == Some(0), "{held:?}");
    let missing = SWAPPED - HELD;
    ensure!(
        after == before - missing - receipt.fee,
        "{before} to {after}"
    );

    // SOL that comes out into it stays wrapped: closing it would take what else it holds along.
    let (sold, receipt) = wallet.swap(usd, sol, bought).await?;
    let (end, held) = wallet.sol().await?;
    ensure!(held == Some(sold), "{held:?}, {sold} were quoted");
    ensure!(end == after - receipt.fee, "{after} to {end}");

    wallet
        .unwrap_by_hand()
        .await
        .context("the account is whole")?;
    net.stop().await
}
