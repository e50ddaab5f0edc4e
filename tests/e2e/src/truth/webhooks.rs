//! Webhooks at each commitment, with filters edited all the time, and what they received of one account.

use std::{
    collections::{BTreeSet, HashSet},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use sluice_localnet::{
    Localnet,
    chain::Chain,
    receiver::{Message, Receiver},
    rest::{Part, SluiceClient},
};
use solana_commitment_config::CommitmentConfig;
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_rpc_client::rpc_client::GetConfirmedSignaturesForAddress2Config;
use solana_signature::Signature;
use solana_signer::Signer;
use tokio::{
    task::JoinHandle,
    time::{interval, sleep},
};
use tokio_util::sync::CancellationToken;

use super::report::{Commitment, Emitted};

/// How long a webhook may take to be followed.
const IN_FORCE_PATIENCE: Duration = Duration::from_secs(60);

/// How long the chain may take to finalize what it confirmed: 32 slots, and room for a busy machine.
const FINALITY_PATIENCE: Duration = Duration::from_secs(120);

/// How long after that the last message may arrive.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(120);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(250);

/// Most signatures that a node lists at a time.
const PAGE: usize = 1_000;

/// The webhooks with their receivers.
pub(super) struct Watch {
    account: Pubkey,
    sluice: SluiceClient,
    webhooks: Vec<Watched>,
}

struct Watched {
    commitment: Commitment,
    id: String,
    receiver: Receiver,
}

impl Watch {
    /// Creates them, and waits until the indexer follows them.
    pub(super) async fn create(net: &Localnet, commitments: &[Commitment]) -> anyhow::Result<Self> {
        let account = Keypair::new().pubkey();
        let sluice = net.sluice().clone();
        let mut webhooks = Vec::new();
        for commitment in commitments.iter().copied() {
            let receiver = Receiver::start(0).await?;
            let body = json!({
                "url": receiver.url(),
                "events": ["transaction"],
                "filters": { "accounts": [account.to_string()], "programs": [] },
                "commitment": commitment.name(),
                "active": true,
            });
            let answer = sluice
                .request(Method::POST, "/api/webhooks", Some(body))
                .await?;
            let text = |pointer: &str| {
                let found = answer.pointer(pointer).and_then(Value::as_str);
                found.with_context(|| format!("no {pointer} in {answer}"))
            };
            receiver.set_secret(text("/secret")?);
            let id = text("/webhook/id")?.to_owned();
            webhooks.push(Watched {
                commitment,
                id,
                receiver,
            });
        }
        until_in_force(&sluice, webhooks.len()).await?;
        Ok(Self {
            account,
            sluice,
            webhooks,
        })
    }

    /// The account that they watch, which does not exist yet.
    pub(super) const fn account(&self) -> Pubkey {
        self.account
    }

    /// Edits the filters in turn, one after each pause, until `stop`: an unused account comes, another goes. Returns how
    /// many edits there were.
    pub(super) fn spawn_edits(
        &self,
        pause: Duration,
        stop: CancellationToken,
    ) -> JoinHandle<anyhow::Result<u32>> {
        let (account, sluice) = (self.account, self.sluice.clone());
        let ids: Vec<String> = self
            .webhooks
            .iter()
            .map(|watched| watched.id.clone())
            .collect();
        tokio::spawn(async move {
            let mut edits = 0;
            let mut ticks = interval(pause);
            for id in ids.iter().cycle() {
                ticks.tick().await;
                if stop.is_cancelled() {
                    break;
                }
                let idle = Keypair::new().pubkey();
                let accounts = [account.to_string(), idle.to_string()];
                let body = json!({ "filters": { "accounts": accounts } });
                let path = format!("/api/webhooks/{id}");
                sluice.request(Method::PATCH, &path, Some(body)).await?;
                edits += 1;
            }
            Ok(edits)
        })
    }

    /// Waits until what landed is final, and until all of it was emitted or patience ends; then counts.
    pub(super) async fn count_emitted(
        &self,
        net: &Localnet,
        sent: &[Signature],
    ) -> anyhow::Result<Vec<Emitted>> {
        let landed = landed(&net.chain(), &self.account).await?;
        let sent: HashSet<String> = sent.iter().map(Signature::to_string).collect();
        ensure!(landed.is_subset(&sent), "the account was used by others");
        let begun = Instant::now();
        loop {
            let emitted: Vec<Emitted> = self
                .webhooks
                .iter()
                .map(|watched| watched.emitted(&landed))
                .collect();
            if emitted.iter().all(|emitted| emitted.lost.is_empty())
                || begun.elapsed() > DELIVERY_PATIENCE
            {
                return Ok(emitted);
            }
            sleep(POLL).await;
        }
    }
}

impl Watched {
    fn emitted(&self, landed: &HashSet<String>) -> Emitted {
        let received = self.receiver.received();
        let refused = received.refused.len();
        let text = |message: &Message, pointer: &str| {
            let found = message.body.pointer(pointer).and_then(Value::as_str);
            found.map(str::to_owned)
        };
        let messages = received.messages.iter();
        let of_kind = |kind: &'static str| messages.clone().filter(move |m| m.kind() == kind);
        let reverted: HashSet<String> = of_kind("reverted")
            .filter_map(|message| text(message, "/data/messageId"))
            .collect();
        let emitted: HashSet<String> = of_kind("transaction")
            .filter(|message| !reverted.contains(&message.id))
            .filter_map(|message| text(message, "/data/signature"))
            .collect();
        let ids: HashSet<&str> = messages
            .clone()
            .map(|message| message.id.as_str())
            .collect();
        let sequences: BTreeSet<u64> = messages
            .clone()
            .filter_map(|message| message.body.get("sequence").and_then(Value::as_u64))
            .collect();
        let contiguous = u64::try_from(sequences.len()).ok() == sequences.last().copied();
        Emitted {
            commitment: self.commitment,
            landed: landed.len(),
            emitted: emitted.intersection(landed).count(),
            lost: landed.difference(&emitted).cloned().collect(),
            invented: emitted.difference(landed).cloned().collect(),
            reverted: reverted.len(),
            gaps: of_kind("gap").count(),
            delivered_again: received.messages.len() - ids.len(),
            refused,
            contiguous,
        }
    }
}

/// Every transaction that names the account, once the newest of them is final.
async fn landed(chain: &Chain, account: &Pubkey) -> anyhow::Result<HashSet<String>> {
    let newest = signatures(chain, account, CommitmentConfig::confirmed()).await?;
    let last = newest.iter().map(|(_, slot)| *slot).max();
    let last = last.context("nothing landed at all")?;
    let begun = Instant::now();
    let finalized = CommitmentConfig::finalized();
    while chain.rpc().get_slot_with_commitment(finalized).await? <= last {
        ensure!(
            begun.elapsed() < FINALITY_PATIENCE,
            "slot {last} is not finalized"
        );
        sleep(POLL).await;
    }
    let landed = signatures(chain, account, finalized).await?;
    Ok(landed.into_iter().map(|(signature, _)| signature).collect())
}

async fn signatures(
    chain: &Chain,
    account: &Pubkey,
    commitment: CommitmentConfig,
) -> anyhow::Result<Vec<(String, u64)>> {
    let mut all = Vec::new();
    let mut before = None;
    loop {
        let config = GetConfirmedSignaturesForAddress2Config {
            before,
            until: None,
            limit: Some(PAGE),
            commitment: Some(commitment),
        };
        let rpc = chain.rpc();
        let page = rpc
            .get_signatures_for_address_with_config(account, config)
            .await?;
        let more = page.len() == PAGE;
        before = page.last().map(|last| last.signature.parse()).transpose()?;
        all.extend(page.into_iter().map(|found| (found.signature, found.slot)));
        if !more {
            return Ok(all);
        }
    }
}

async fn until_in_force(sluice: &SluiceClient, webhooks: usize) -> anyhow::Result<()> {
    let all = u64::try_from(webhooks)?;
    let begun = Instant::now();
    loop {
        let health = sluice.ready(Part::Indexer).await?;
        let revision = |name: &str| health.body.pointer(name).and_then(Value::as_u64);
        let wanted = revision("/filter/wantedRevision");
        if wanted >= Some(all) && revision("/filter/inForceRevision") == wanted {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < IN_FORCE_PATIENCE,
            "the webhooks are not followed: {}",
            health.body
        );
        sleep(POLL).await;
    }
}
