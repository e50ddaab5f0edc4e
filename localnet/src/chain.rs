//! The chain over JSON-RPC, as a wallet uses it: balances, signing, sending, confirmation.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use solana_commitment_config::CommitmentConfig;
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_message::{VersionedMessage, v0};
use solana_pubkey::Pubkey;
use solana_rpc_client::nonblocking::rpc_client::RpcClient;
use solana_rpc_client_api::config::{RpcSendTransactionConfig, RpcTransactionConfig};
use solana_signature::Signature;
use solana_signer::Signer;
use solana_transaction::versioned::VersionedTransaction;
use solana_transaction_error::TransactionError;

/// Deadline of one RPC call; the validator is on this machine.
const RPC_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a transaction may take to be confirmed. A local validator needs about a second; a blockhash
/// lives for 150 blocks, after which waiting is pointless.
const CONFIRM_DEADLINE: Duration = Duration::from_secs(30);

/// A transaction is sent again after this long without a confirmation, as wallets do: the network gives no
/// promise to carry it. Sending it twice cannot make it happen twice.
const RESEND: Duration = Duration::from_secs(1);

/// Pause between two looks at a transaction's status: a quarter of a slot.
const POLL: Duration = Duration::from_millis(100);

/// Offset and length of the balance in a token account of either program.
const TOKEN_AMOUNT: std::ops::Range<usize> = 64..72;

/// RPC access at commitment `confirmed`.
pub struct Chain {
    rpc: RpcClient,
}

/// A transaction that was confirmed, whether it succeeded or not.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// Its signature.
    pub signature: Signature,
    /// The slot it landed in.
    pub slot: u64,
    /// Why it failed, if it did.
    pub error: Option<TransactionError>,
    /// Compute units it used.
    pub compute_units: u64,
    /// Fee paid, lamports.
    pub fee: u64,
    /// Program log.
    pub logs: Vec<String>,
    /// From sending to confirmation.
    pub took: Duration,
}

impl Confirmed {
    /// The program that failed first, the innermost one, from the log.
    #[must_use]
    pub fn failing_program(&self) -> Option<&str> {
        self.logs.iter().find_map(|line| {
            let (program, rest) = line.strip_prefix("Program ")?.split_once(' ')?;
            rest.starts_with("failed").then_some(program)
        })
    }
}

impl Chain {
    /// A client of this JSON-RPC endpoint.
    #[must_use]
    pub fn new(rpc_url: &str) -> Self {
        Self {
            rpc: RpcClient::new_with_timeout_and_commitment(
                rpc_url.to_owned(),
                RPC_TIMEOUT,
                CommitmentConfig::confirmed(),
            ),
        }
    }

    /// The underlying client.
    #[must_use]
    pub const fn rpc(&self) -> &RpcClient {
        &self.rpc
    }

    /// Lamports of an account, zero when it does not exist.
    ///
    /// # Errors
    /// When the RPC call fails.
    pub async fn lamports(&self, address: &Pubkey) -> anyhow::Result<u64> {
        Ok(self.rpc.get_balance(address).await?)
    }

    /// Balance of a token account in smallest units, zero when it does not exist.
    ///
    /// # Errors
    /// When the RPC call fails or the account is no token account.
    pub async fn tokens(&self, address: &Pubkey) -> anyhow::Result<u64> {
        let commitment = CommitmentConfig::confirmed();
        let answer = self
            .rpc
            .get_account_with_commitment(address, commitment)
            .await?;
        let Some(account) = answer.value else {
            return Ok(0);
        };
        let amount = account
            .data
            .get(TOKEN_AMOUNT)
            .and_then(|bytes| bytes.try_into().ok())
            .with_context(|| format!("{address} is no token account"))?;
        Ok(u64::from_le_bytes(amount))
    }

    /// Sends a signed transaction and waits until it is confirmed. Without `preflight` a transaction
    /// that is bound to fail is sent all the same, so that it fails on the chain.
    ///
    /// # Errors
    /// When it is refused on sending or not confirmed in time. A transaction that failed on the chain
    /// is no error here: see [`Confirmed::error`].
    pub async fn send_and_confirm(
        &self,
        transaction: &VersionedTransaction,
        preflight: bool,
    ) -> anyhow::Result<Confirmed> {
        let begun = Instant::now();
        let config = RpcSendTransactionConfig {
            skip_preflight: !preflight,
            // The newest state, which is also the one that Sluice quotes on.
            preflight_commitment: Some(CommitmentConfig::processed().commitment),
            ..RpcSendTransactionConfig::default()
        };
        let signature = self
            .rpc
            .send_transaction_with_config(transaction, config)
            .await
            .context("the validator refused the transaction")?;
        let again = RpcSendTransactionConfig {
            skip_preflight: true,
            ..config
        };
        let deadline = begun + CONFIRM_DEADLINE;
        let mut next_send = begun + RESEND;
        loop {
            let statuses = self.rpc.get_signature_statuses(&[signature]).await?.value;
            if let Some(Some(status)) = statuses.first()
                && status.satisfies_commitment(CommitmentConfig::confirmed())
            {
                let took = begun.elapsed();
                return self.outcome(signature, took, deadline).await;
            }
            ensure!(
                Instant::now() < deadline,
                "transaction {signature} was not confirmed within {} s",
                CONFIRM_DEADLINE.as_secs()
            );
            if Instant::now() >= next_send {
                self.rpc
                    .send_transaction_with_config(transaction, again)
                    .await?;
                next_send += RESEND;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The details of a confirmed transaction, which the validator may write a moment after its status.
    async fn outcome(
        &self,
        signature: Signature,
        took: Duration,
        deadline: Instant,
    ) -> anyhow::Result<Confirmed> {
        let config = RpcTransactionConfig {
            commitment: Some(CommitmentConfig::confirmed()),
            max_supported_transaction_version: Some(1),
            ..RpcTransactionConfig::default()
        };
        loop {
            match self
                .rpc
                .get_transaction_with_config(&signature, config)
                .await
            {
                Ok(found) => {
                    let Some(meta) = found.transaction.meta else {
                        bail!("the validator keeps no details of transaction {signature}");
                    };
                    return Ok(Confirmed {
                        signature,
                        slot: found.slot,
                        error: meta.err.map(Into::into),
                        compute_units: Option::from(meta.compute_units_consumed).unwrap_or(0),
                        fee: meta.fee,
                        logs: Option::from(meta.log_messages).unwrap_or_default(),
                        took,
                    });
                }
                Err(error) if Instant::now() >= deadline => return Err(error.into()),
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// A signed v0 transaction of these instructions, paid by `wallet`.
    ///
    /// # Errors
    /// When no blockhash can be had or the instructions do not fit.
    pub async fn sign(
        &self,
        instructions: &[Instruction],
        wallet: &Keypair,
    ) -> anyhow::Result<VersionedTransaction> {
        let blockhash = self.rpc.get_latest_blockhash().await?;
        let message = v0::Message::try_compile(&wallet.pubkey(), instructions, &[], blockhash)?;
        Ok(VersionedTransaction::try_new(
            VersionedMessage::V0(message),
            &[wallet],
        )?)
    }
}

/// Signs a base64 transaction as a wallet does: decodes it, checks that the wallet is the only signer
/// asked for, and puts its signature in place.
///
/// # Errors
/// When the text is no transaction, or asks for other signatures than the wallet's.
pub fn sign_encoded(transaction: &str, wallet: &Keypair) -> anyhow::Result<VersionedTransaction> {
    sign_encoded_by(transaction, &[wallet])
}

/// As [`sign_encoded`], by several wallets in the order of their signatures.
///
/// # Errors
/// As [`sign_encoded`].
pub fn sign_encoded_by(
    transaction: &str,
    wallets: &[&Keypair],
) -> anyhow::Result<VersionedTransaction> {
    let bytes = BASE64
        .decode(transaction)
        .context("the transaction is not base64")?;
    let unsigned: VersionedTransaction =
        wincode::deserialize_exact(&bytes).context("the bytes are no transaction")?;
    let signers = usize::from(unsigned.message.header().num_required_signatures);
    ensure!(
        signers == wallets.len(),
        "the transaction asks for {signers} signatures instead of {}",
        wallets.len()
    );
    Ok(VersionedTransaction::try_new(unsigned.message, wallets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_failing_program_is_found() {
        let logs = [
            "Program Outer111 invoke [1]",
            "Program Inner111 invoke [2]",
            "Program log: AnchorError",
            "Program Inner111 consumed 100 of 200 compute units",
            "Program Inner111 failed: custom program error: 0x1775",
            "Program Outer111 failed: custom program error: 0x1775",
        ];
        let confirmed = Confirmed {
            signature: Signature::default(),
            slot: 0,
            error: None,
            compute_units: 0,
            fee: 0,
            logs: logs.map(str::to_owned).to_vec(),
            took: Duration::ZERO,
        };
        assert_eq!(confirmed.failing_program(), Some("Inner111"));
    }

    #[test]
    fn garbage_is_no_transaction() {
        let wallet = Keypair::new_from_array([1; 32]);
        assert!(sign_encoded("not base64!", &wallet).is_err());
        assert!(sign_encoded("AAAA", &wallet).is_err());
    }
}
