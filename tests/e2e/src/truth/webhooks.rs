//! Webhooks at each commitment, with filters edited all the time, and what they were told.

use std::{
    collections::{BTreeSet, HashSet},
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use cpmm::ids;
use reqwest::Method;
use serde_json::{Value, json};
use sluice_localnet::{
    Localnet,
    receiver::{Message, Receiver},
    rest::{Part, SluiceClient},
    scene::PoolAddresses,
};
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signer::Signer;
use tokio::{
    task::{JoinHandle, JoinSet},
    time::{Instant as Tick, Interval, interval_at, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    facts::Fact,
    ledger::{Landed, Watching},
    report::{Commitment, Emitted},
};

/// How long a webhook may take to be followed.
const IN_FORCE_PATIENCE: Duration = Duration::from_secs(60);

/// How long after all that landed is final the last message may arrive.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(120);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(250);

/// The webhooks with their receivers.
pub(super) struct Watch {
    watching: Watching,
    sluice: SluiceClient,
    webhooks: Vec<Watched>,
}

struct Watched {
    commitment: Commitment,
    id: String,
    receiver: Receiver,
}

impl Watch {
    /// Creates them, and waits until the indexer follows them. They watch an account that does not exist yet, to which transfers
    /// may go, the pool of two tokens with its vaults, and the exchange.
    pub(super) async fn create(
        net: &Localnet,
        pool: &PoolAddresses,
        commitments: &[Commitment],
    ) -> anyhow::Result<Self> {
        let PoolAddresses { pool, vaults, .. } = pool;
        let watching = Watching {
            account: Keypair::new().pubkey(),
            pool: [*pool, vaults.token_0, vaults.token_1],
            program: ids::PROGRAM_ID,
        };
        let sluice = net.sluice().clone();
        let mut webhooks = Vec::new();
        for commitment in commitments.iter().copied() {
            let receiver = Receiver::start(0).await?;
            let body = json!({
                "url": receiver.url(),
                "events": ["transaction", "programEvent", "accountChange"],
                "filters": filters(&watching, None),
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
            watching,
            sluice,
            webhooks,
        })
    }

    /// What they watch.
    pub(super) const fn watching(&self) -> &Watching {
        &self.watching
    }

    /// Edits the filters in turn, one after each pause, until `stop`: an unused account comes, another goes. Each webhook's turn
    /// comes whether the others have had their answers or not, and one that was missed is made up for. Returns how many edits
    /// there were.
    pub(super) fn spawn_edits(
        &self,
        pause: Duration,
        stop: &CancellationToken,
    ) -> JoinHandle<anyhow::Result<u32>> {
        let begun = Tick::now();
        let webhooks = u32::try_from(self.webhooks.len()).unwrap_or(u32::MAX);
        let mut editors = JoinSet::new();
        for (watched, place) in self.webhooks.iter().zip(0_u32..) {
            let editor = Editor {
                sluice: self.sluice.clone(),
                path: format!("/api/webhooks/{}", watched.id),
                watching: self.watching.clone(),
                turns: interval_at(begun + pause * place, pause * webhooks),
            };
            editors.spawn(editor.run(stop.clone()));
        }
        tokio::spawn(async move {
            let mut all = 0;
            while let Some(edits) = editors.join_next().await {
                all += edits??;
            }
            Ok(all)
        })
    }

    /// Waits until all that landed was emitted and no number is missing, or patience ends; then counts.
    pub(super) async fn count_emitted(&self, landed: &Landed) -> Vec<Emitted> {
        let begun = Instant::now();
        loop {
            let webhooks = self.webhooks.iter();
            let emitted: Vec<Emitted> = webhooks.map(|watched| watched.emitted(landed)).collect();
            let are_complete = emitted.iter().all(Emitted::is_complete);
            if are_complete || begun.elapsed() > DELIVERY_PATIENCE {
                return emitted;
            }
            sleep(POLL).await;
        }
    }
}

/// Who edits one webhook's filter.
struct Editor {
    sluice: SluiceClient,
    path: String,
    watching: Watching,
    turns: Interval,
}

impl Editor {
    async fn run(mut self, stop: CancellationToken) -> anyhow::Result<u32> {
        let mut edits = 0;
        loop {
            self.turns.tick().await;
            if stop.is_cancelled() {
                return Ok(edits);
            }
            let idle = Keypair::new().pubkey();
            let body = json!({ "filters": filters(&self.watching, Some(idle)) });
            self.sluice
                .request(Method::PATCH, &self.path, Some(body))
                .await?;
            edits += 1;
        }
    }
}

/// What is watched as a webhook's filters, and an account more.
fn filters(watching: &Watching, more: Option<Pubkey>) -> Value {
    let accounts = watching.accounts().chain(more);
    let accounts: Vec<String> = accounts.map(|account| account.to_string()).collect();
    json!({ "accounts": accounts, "programs": [watching.program.to_string()] })
}

impl Watched {
    fn emitted(&self, landed: &Landed) -> Emitted {
        let received = self.receiver.received();
        let messages = received.messages.iter();
        let of_kind = |kind: &'static str| messages.clone().filter(move |m| m.kind() == kind);
        let reverted: HashSet<&str> = of_kind("reverted")
            .filter_map(|message| message.body.pointer("/data/messageId")?.as_str())
            .collect();
        let gaps: Vec<RangeInclusive<u64>> = of_kind("gap").filter_map(without_changes).collect();
        let mut ids: HashSet<&str> = HashSet::new();
        let (mut told, mut told_twice) = (HashSet::new(), Vec::new());
        for message in messages.clone() {
            let is_new = ids.insert(&message.id) && !reverted.contains(message.id.as_str());
            let fact = Fact::told_by(message).filter(|fact| is_new && fact.slot <= landed.last);
            // Under another id: one that is delivered again is no fault.
            if let Some(fact) = fact
                && let Some(fact) = told.replace(fact)
            {
                told_twice.push(fact);
            }
        }
        let missed = |fact: &&Fact| {
            fact.is_account_change() && gaps.iter().any(|gap| gap.contains(&fact.slot))
        };
        let (missed, lost): (Vec<&Fact>, Vec<&Fact>) =
            landed.facts.difference(&told).partition(missed);
        let sequences: BTreeSet<u64> = messages
            .clone()
            .filter_map(|message| message.body.get("sequence").and_then(Value::as_u64))
            .collect();
        Emitted {
            commitment: self.commitment,
            landed: landed.facts.len(),
            emitted: told.intersection(&landed.facts).count(),
            missed: missed.len(),
            lost: lost.into_iter().cloned().collect(),
            invented: told
                .difference(&landed.facts)
                .filter(|fact| !landed.possible.contains(fact))
                .cloned()
                .collect(),
            told_twice,
            reverted: reverted.len(),
            gaps: of_kind("gap").count(),
            delivered_again: received.messages.len() - ids.len(),
            refused: received.refused.len(),
            holes: holes(&sequences),
        }
    }
}

/// The numbers from 1 to the last one that are not among them.
fn holes(numbers: &BTreeSet<u64>) -> Vec<u64> {
    let last = numbers.last().copied().unwrap_or_default();
    let all = 1..=last;
    all.filter(|number| !numbers.contains(number)).collect()
}

/// The slots of a gap of which changes of accounts may be missing: no ledger has those.
fn without_changes(gap: &Message) -> Option<RangeInclusive<u64>> {
    let data = gap.body.get("data")?;
    let kinds = data.get("kinds")?.as_array()?;
    let slot = |name: &str| data.get(name).and_then(Value::as_u64);
    let has_changes = kinds.iter().any(|kind| kind == "accountChange");
    has_changes.then_some(slot("firstSlot")?..=slot("lastSlot")?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_below_what_arrived() {
        let holes = |numbers: &[u64]| holes(&numbers.iter().copied().collect());
        assert_eq!(holes(&[]), [0_u64; 0]);
        assert_eq!(holes(&[1, 2, 3]), [0_u64; 0]);
        assert_eq!(holes(&[2, 5]), [1, 3, 4]);
    }
}
