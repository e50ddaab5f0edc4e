//! Quotes against the chain: of a pool in which swaps pause now and then, a quote in each pause must equal a simulation.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use sluice_localnet::{Localnet, chain::Chain, rest::SluiceClient};
use solana_commitment_config::CommitmentConfig;
use solana_pubkey::Pubkey;
use solana_rpc_client_api::config::RpcSimulateTransactionConfig;
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::Transaction;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{
    report::QuoteCounts,
    swaps::{self, Swaps},
};

/// Swaps of a round, one direction and the other in turn.
const SWAPS: u64 = 8;

/// How long the last swap of a round may take to land.
const LANDING_PATIENCE: Duration = Duration::from_secs(60);

/// How long quotes of a pool at rest are asked for in each round.
const ASKING: Duration = Duration::from_millis(1_500);

/// How long the first quote that can be judged may take once the links are whole.
const JUDGED_PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(25);

/// What asks and swaps.
pub(super) struct Quotes {
    chain: Chain,
    sluice: SluiceClient,
    wallet: Pubkey,
    swaps: Swaps,
    counts: QuoteCounts,
}

impl Quotes {
    /// Has the API build the swaps, which then need it no more.
    pub(super) async fn prepare(net: &Localnet) -> anyhow::Result<Self> {
        let scene = &net.scene;
        Ok(Self {
            chain: net.chain(),
            sluice: net.sluice().clone(),
            wallet: scene.wallet.pubkey(),
            swaps: Swaps::prepare(net, [scene.alfa, scene.beta]).await?,
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
        for _ in 0..SWAPS {
            last = Some(self.swaps.send().await?);
            sleep(swaps::PAUSE).await;
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
        let swap = self.swaps.there().clone();
        let transaction = Transaction::new_with_payer(&[swap], Some(&self.wallet));
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
        let Ok(answer) = self.sluice.quote(&self.swaps.ask).await else {
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
