//! Transfers to one account at a steady rate, each a transaction of its own.

use std::time::Duration;

use sluice_localnet::{Localnet, chain::Chain};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_rpc_client_api::config::RpcSendTransactionConfig;
use solana_signature::Signature;
use solana_signer::Signer;
use solana_system_interface::instruction::transfer;
use solana_transaction::Transaction;
use tokio::{task::JoinHandle, time::interval};
use tokio_util::sync::CancellationToken;

/// Pause between two transfers: thirty in a second.
const PAUSE: Duration = Duration::from_millis(33);

/// After how many transfers a newer blockhash is taken: five seconds of them, where one lives for 150 blocks.
const BLOCKHASH_EVERY: u64 = 150;

/// What makes the account exist, lamports.
const FIRST: u64 = 1_000_000_000;

/// The sender.
pub(super) struct Transfers {
    chain: Chain,
    wallet: Keypair,
    to: Pubkey,
}

impl Transfers {
    /// Sends until `stop`, and returns how many were sent. What did not land is not missed by the judge.
    pub(super) fn spawn(
        net: &Localnet,
        to: Pubkey,
        stop: CancellationToken,
    ) -> JoinHandle<anyhow::Result<usize>> {
        let transfers = Self {
            chain: net.chain(),
            wallet: net.scene.wallet.insecure_clone(),
            to,
        };
        tokio::spawn(transfers.run(stop))
    }

    async fn run(self, stop: CancellationToken) -> anyhow::Result<usize> {
        let mut blockhash = self.chain.rpc().get_latest_blockhash().await?;
        let mut ticks = interval(PAUSE);
        let mut number = 0_u64;
        while !stop.is_cancelled() {
            ticks.tick().await;
            if number.is_multiple_of(BLOCKHASH_EVERY) {
                blockhash = self.chain.rpc().get_latest_blockhash().await?;
            }
            // No two alike: the chain takes equal transactions for one.
            let lamports = if number == 0 { FIRST } else { number };
            let payer = self.wallet.pubkey();
            let transfer = transfer(&payer, &self.to, lamports);
            let transaction = Transaction::new_signed_with_payer(
                &[transfer],
                Some(&payer),
                &[&self.wallet],
                blockhash,
            );
            send(&self.chain, &transaction).await?;
            number += 1;
        }
        Ok(usize::try_from(number)?)
    }
}

/// Sends a transaction without asking whether it would succeed.
pub(super) async fn send(chain: &Chain, transaction: &Transaction) -> anyhow::Result<Signature> {
    let config = RpcSendTransactionConfig {
        skip_preflight: true,
        ..RpcSendTransactionConfig::default()
    };
    let sent = chain
        .rpc()
        .send_transaction_with_config(transaction, config);
    Ok(sent.await?)
}
