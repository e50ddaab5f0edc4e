//! Quotes against the chain: swaps go on while streams fail; in each pause a quote must equal a simulation.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use sluice_localnet::{
    Localnet,
    chain::Chain,
    rest::{QuoteRequest, SluiceClient},
    scene::Token,
};
use solana_commitment_config::CommitmentConfig;
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_rpc_client_api::config::{RpcSendTransactionConfig, RpcSimulateTransactionConfig};
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::Transaction;
use spl_associated_token_account_interface::instruction::create_associated_token_account_idempotent;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::report::QuoteCounts;

/// Swaps of a round, one direction and the other in turn.
const SWAPS: u64 = 8;

/// Pause between two of them.
const SWAP_PAUSE: Duration = Duration::from_millis(150);

/// How long the last swap of a round may take to land.
const LANDING_PATIENCE: Duration = Duration::from_secs(60);

/// How long quotes of a pool at rest are asked for in each round.
const ASKING: Duration = Duration::from_millis(1_500);

/// How long the first quote that can be judged may take once the links are whole.
const JUDGED_PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(25);

/// Whole tokens of each swap and of each quote; they pay some two of the other token.
const AMOUNT: u64 = 5;

/// What asks and swaps.
pub(super) struct Quotes {
    chain: Chain,
    sluice: SluiceClient,
    wallet: Keypair,
    ask: QuoteRequest,
    /// A swap and the reverse one, for at least one unit, as the API answers them.
    swaps: [Instruction; 2],
    counts: QuoteCounts,
}

impl Quotes {
    /// Has the API build both swaps, which then need it no more.
    pub(super) async fn prepare(net: &Localnet) -> anyhow::Result<Self> {
        let scene = &net.scene;
        let sluice = net.sluice().clone();
        let ask = QuoteRequest {
            input_mint: scene.alfa.mint,
            output_mint: scene.beta.mint,
            amount: scene.alfa.units(AMOUNT),
            slippage_bps: 50,
        };
        let reverse = QuoteRequest {
            input_mint: ask.output_mint,
            output_mint: ask.input_mint,
            // Less than the swaps before it paid out: the wallet has none to begin with.
            amount: scene.beta.units(1),
            ..ask
        };
        let user = scene.wallet.pubkey();
        create_accounts(net, [scene.alfa, scene.beta]).await?;
        let mut swaps = Vec::new();
        for request in [ask, reverse] {
            let mut quote = sluice.quote(&request).await?.quote;
            quote.minimum_out = 1;
            swaps.push(sluice.swap_instruction(&quote, &user).await?);
        }
        let swaps = swaps.try_into().ok().context("two swaps")?;
        Ok(Self {
            chain: net.chain(),
            sluice,
            wallet: scene.wallet.insecure_clone(),
            ask,
            swaps,
            counts: QuoteCounts::default(),
        })
    }

    /// Rounds until `stop`, and then until a quote could be judged: on a slow machine the market may not have been ready
    /// between two faults.
    pub(super) async fn run(mut self, stop: CancellationToken) -> anyhow::Result<Self> {
        while !stop.is_cancelled() {
            self.round().await?;
        }
        let whole = Instant::now();
        while self.counts.judged == 0 && whole.elapsed() < JUDGED_PATIENCE {
            self.round().await?;
        }
        Ok(self)
    }

    pub(super) fn counts(self) -> QuoteCounts {
        self.counts
    }

    async fn round(&mut self) -> anyhow::Result<()> {
        let mut last = None;
        for number in 0..SWAPS {
            last = Some(self.swap(number).await?);
            sleep(SWAP_PAUSE).await;
        }
        let last = last.context("at least one swap")?;
        let at_rest_from = self.landed(&last).await?;
        let pays = self.simulated().await?;
        self.counts.rounds += 1;
        let begun = Instant::now();
        while begun.elapsed() < ASKING {
            self.ask(at_rest_from, pays).await;
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Sends a swap, which differs from all others by its unit price.
    async fn swap(&self, number: u64) -> anyhow::Result<Signature> {
        let serial = self.counts.rounds * SWAPS + number;
        let swap = &self.swaps[usize::from(!number.is_multiple_of(2))];
        let instructions = [
            ComputeBudgetInstruction::set_compute_unit_price(serial + 1),
            swap.clone(),
        ];
        let rpc = self.chain.rpc();
        let blockhash = rpc.get_latest_blockhash().await?;
        let payer = self.wallet.pubkey();
        let transaction = Transaction::new_signed_with_payer(
            &instructions,
            Some(&payer),
            &[&self.wallet],
            blockhash,
        );
        let config = RpcSendTransactionConfig {
            skip_preflight: true,
            ..RpcSendTransactionConfig::default()
        };
        Ok(rpc
            .send_transaction_with_config(&transaction, config)
            .await?)
    }

    /// The slot in which a swap landed. All before it landed earlier, or never: the chain executes one wallet's
    /// transactions in the order in which a single node got them, or drops them.
    async fn landed(&self, signature: &Signature) -> anyhow::Result<u64> {
        let begun = Instant::now();
        loop {
            let statuses = self
                .chain
                .rpc()
                .get_signature_statuses(&[*signature])
                .await?;
            if let Some(Some(status)) = statuses.value.first()
                && status.satisfies_commitment(CommitmentConfig::confirmed())
            {
                ensure!(status.err.is_none(), "a swap failed: {:?}", status.err);
                return Ok(status.slot);
            }
            ensure!(
                begun.elapsed() < LANDING_PATIENCE,
                "swap {signature} did not land"
            );
            sleep(POLL).await;
        }
    }

    /// What the chain would pay: the return data of the guard.
    async fn simulated(&self) -> anyhow::Result<u64> {
        let payer = self.wallet.pubkey();
        let transaction = Transaction::new_with_payer(&[self.swaps[0].clone()], Some(&payer));
        let config = RpcSimulateTransactionConfig {
            replace_recent_blockhash: true,
            commitment: Some(CommitmentConfig::processed()),
            ..RpcSimulateTransactionConfig::default()
        };
        let rpc = self.chain.rpc();
        let simulated = rpc
            .simulate_transaction_with_config(&transaction, config)
            .await?
            .value;
        let returned = simulated
            .return_data
            .with_context(|| format!("nothing returned: {:?}", simulated.err))?;
        let bytes = BASE64.decode(returned.data.0)?;
        let bytes = bytes
            .try_into()
            .ok()
            .context("the guard returns eight bytes")?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Asks once, while the pool is at rest since a slot.
    async fn ask(&mut self, at_rest_from: u64, pays: u64) {
        let Ok(answer) = self.sluice.quote(&self.ask).await else {
            self.counts.not_ready += 1;
            return;
        };
        let slot = answer
            .context
            .get("slot")
            .and_then(serde_json::Value::as_u64);
        match slot {
            Some(slot) if slot >= at_rest_from => {
                self.counts.judged += 1;
                if answer.quote.out_amount != pays {
                    let quoted = answer.quote.out_amount;
                    self.counts
                        .wrong
                        .push(format!("slot {slot}: {quoted} quoted, {pays} paid"));
                }
            }
            _ => self.counts.older += 1,
        }
    }
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
