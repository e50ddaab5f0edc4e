//! Swaps through the guard in one pool, in one direction and the other in turn.

use std::time::Duration;

use anyhow::{Context, ensure};
use sluice_localnet::{
    Localnet,
    chain::Chain,
    rest::{QuoteRequest, SluiceClient},
    scene::Token,
};
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::Transaction;
use spl_associated_token_account_interface::instruction::create_associated_token_account_idempotent;
use tokio::{task::JoinHandle, time::interval};
use tokio_util::sync::CancellationToken;

use super::traffic;

/// Pause between two swaps.
pub(super) const PAUSE: Duration = Duration::from_millis(150);

/// Whole tokens of each swap there.
const AMOUNT: u64 = 5;

/// A swap and the reverse one, for at least one unit, as the API answers them; to send them it is needed no more.
pub(super) struct Swaps {
    chain: Chain,
    wallet: Keypair,
    /// What the swap there is quoted for.
    pub(super) ask: QuoteRequest,
    instructions: [Instruction; 2],
    sent: u64,
}

impl Swaps {
    /// Between a token that the wallet has, and one that it may not have.
    pub(super) async fn prepare(net: &Localnet, [from, to]: [Token; 2]) -> anyhow::Result<Self> {
        let ask = QuoteRequest {
            input_mint: from.mint,
            output_mint: to.mint,
            amount: from.units(AMOUNT),
            slippage_bps: 50,
        };
        let reverse = QuoteRequest {
            input_mint: ask.output_mint,
            output_mint: ask.input_mint,
            // Less than the swaps before it paid out: the wallet may have none to begin with.
            amount: to.units(1),
            ..ask
        };
        create_accounts(net, [from, to]).await?;
        let wallet = net.scene.wallet.insecure_clone();
        let mut instructions = Vec::new();
        for request in [ask, reverse] {
            instructions.push(instruction(net.sluice(), &request, &wallet).await?);
        }
        Ok(Self {
            chain: net.chain(),
            wallet,
            ask,
            instructions: instructions.try_into().ok().context("two swaps")?,
            sent: 0,
        })
    }

    /// The swap there.
    pub(super) const fn there(&self) -> &Instruction {
        &self.instructions[0]
    }

    /// Sends the next swap, which differs from all others by its unit price.
    pub(super) async fn send(&mut self) -> anyhow::Result<Signature> {
        let swap = &self.instructions[usize::from(!self.sent.is_multiple_of(2))];
        self.sent += 1;
        let instructions = [
            ComputeBudgetInstruction::set_compute_unit_price(self.sent),
            swap.clone(),
        ];
        let blockhash = self.chain.rpc().get_latest_blockhash().await?;
        let payer = self.wallet.pubkey();
        let transaction = Transaction::new_signed_with_payer(
            &instructions,
            Some(&payer),
            &[&self.wallet],
            blockhash,
        );
        traffic::send(&self.chain, &transaction).await
    }

    /// Sends at a steady rate until `stop`, and returns how many were sent.
    pub(super) fn spawn(mut self, stop: CancellationToken) -> JoinHandle<anyhow::Result<u64>> {
        tokio::spawn(async move {
            let mut ticks = interval(PAUSE);
            while !stop.is_cancelled() {
                ticks.tick().await;
                self.send().await?;
            }
            Ok(self.sent)
        })
    }
}

async fn instruction(
    sluice: &SluiceClient,
    request: &QuoteRequest,
    wallet: &Keypair,
) -> anyhow::Result<Instruction> {
    let mut quote = sluice.quote(request).await?.quote;
    quote.minimum_out = 1;
    sluice.swap_instruction(&quote, &wallet.pubkey()).await
}

/// Gives the wallet an account of each token, where it has none.
async fn create_accounts(net: &Localnet, tokens: [Token; 2]) -> anyhow::Result<()> {
    let (chain, wallet) = (net.chain(), &net.scene.wallet);
    let owner = wallet.pubkey();
    let creations = tokens.map(|token| {
        create_associated_token_account_idempotent(&owner, &owner, &token.mint, &token.program.id())
    });
    let transaction = chain.sign(&creations, wallet).await?;
    let created = chain.send_and_confirm(&transaction, true).await?;
    ensure!(created.error.is_none(), "{:?}", created.error);
    Ok(())
}
