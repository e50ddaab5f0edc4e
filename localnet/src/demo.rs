//! Demo: from an empty machine to a signed webhook about a guarded swap, every step checked.
//!
//! The first step that fails ends it.

mod events;
mod refusal;
mod swap;
mod transcript;

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;
use solana_pubkey::Pubkey;
use solana_signer::Signer;

use crate::{
    artifacts::Artifacts,
    net::{Localnet, NetOptions},
    receiver::Receiver,
    rest::{CreatedWebhook, Part, SluiceClient},
    scene::Scene,
};

use self::{swap::Leg, transcript::Transcript};

/// How long the indexer may take until a new webhook's filter is in force on the stream.
const FILTER_DEADLINE: Duration = Duration::from_secs(15);

/// Input of the first swap: 1.5 SOL.
const SOL_LEG_LAMPORTS: u64 = 1_500_000_000;

/// Pause between two looks at the filter.
const POLL: Duration = Duration::from_millis(20);

/// Runs the main job and prints each step with its figures.
///
/// # Errors
/// The first step that fails. What was started is stopped in any case.
pub async fn run(artifacts: &Artifacts, options: &NetOptions) -> anyhow::Result<()> {
    let mut transcript = Transcript::begin();
    transcript.step(
        "starting",
        "a validator, then Sluice in front of it; about 10 s",
    );
    let mut net = Localnet::start(artifacts, options).await?;
    announce(&mut transcript, &net);
    let receiver_port = match steps(&mut transcript, &net).await {
        Ok(port) => port,
        Err(error) => {
            // A child that died explains a failed step better than the step's own error.
            let error = match net.check() {
                Ok(()) => error,
                Err(death) => error.context(death),
            };
            let logs = net.dir.root().display().to_string();
            if let Err(stop) = net.stop().await {
                eprintln!("and stopping failed too: {stop:#}");
            }
            return Err(error.context(format!("logs are in {logs}")));
        }
    };
    let cleared = net.stop().await?;
    ensure!(
        crate::ports::is_free(receiver_port),
        "the receiver's port {receiver_port} is still taken"
    );
    transcript.step(
        "stopped",
        &format!(
            "in {:.1} s; no process and none of {} ports left",
            cleared.took.as_secs_f64(),
            cleared.ports + 1
        ),
    );
    transcript.end();
    Ok(())
}

fn announce(transcript: &mut Transcript, net: &Localnet) {
    let startup = &net.startup;
    transcript.step(
        "validator",
        &format!(
            "up in {:.1} s at slot {}, {}",
            startup.chain.took.as_secs_f64(),
            startup.chain.slot,
            net.validator.rpc_url()
        ),
    );
    transcript.detail(&format!("guard     {}", startup.guard));
    transcript.detail(&format!("exchange  {}", startup.exchange));
    transcript.detail(&format!("plugin    {}", startup.plugin));
    transcript.step(
        "Sluice",
        &format!(
            "ready in {:.1} s, {}",
            startup.service.as_secs_f64(),
            net.sluice().api()
        ),
    );
}

/// Everything between the start and the stop. Returns the port that the receiver had.
async fn steps(transcript: &mut Transcript, net: &Localnet) -> anyhow::Result<u16> {
    let scene = &net.scene;
    let mut receiver = Receiver::start(net.ports.receiver).await?;
    let webhook = subscribe(transcript, net.sluice(), scene, &receiver).await?;
    let legs = [
        Leg::new(scene.sol, scene.usd, SOL_LEG_LAMPORTS, 0),
        Leg::new(scene.alfa, scene.beta, scene.alfa.units(250), 1),
        Leg::new(scene.usd, scene.levy, scene.usd.units(40), 2),
    ];
    for leg in &legs {
        let swapped = swap::run(transcript, net, leg)
            .await
            .with_context(|| format!("swapping {}", leg.name()))?;
        events::expect(transcript, &mut receiver, &swapped)
            .await
            .with_context(|| format!("webhooks for {}", leg.name()))?;
    }
    refusal::run(transcript, net, &legs[1])
        .await
        .context("a swap that must be refused")?;
    net.sluice().delete_webhook(&webhook.id).await?;
    transcript.step("webhook deleted", &webhook.id);
    Ok(receiver.stop().await)
}

async fn subscribe(
    transcript: &mut Transcript,
    sluice: &SluiceClient,
    scene: &Scene,
    receiver: &Receiver,
) -> anyhow::Result<CreatedWebhook> {
    let pools: Vec<Pubkey> = scene.pools.iter().map(|pool| pool.address).collect();
    let programs = [swap_guard_interface::PROGRAM_ID];
    let before = Filter::of(sluice).await?;
    let webhook = sluice
        .create_webhook(&receiver.url(), &pools, &programs)
        .await
        .context("creating the webhook")?;
    receiver.set_secret(&webhook.secret);
    let took = wait_for_filter(sluice, before).await?;
    transcript.step(
        "webhook created",
        &format!(
            "{} for accountChange, transaction, programEvent; filter in force after {} ms",
            webhook.id,
            took.as_millis()
        ),
    );
    transcript.detail(&format!("wallet    {}", scene.wallet.pubkey()));
    Ok(webhook)
}

/// The filter of the indexer's stream: the set of webhooks it was made for, by revision.
#[derive(Clone, Copy, Debug)]
struct Filter {
    /// Of the webhooks there are, as far as the indexer has noticed.
    wanted: u64,
    /// Of the webhooks whose events the stream delivers.
    in_force: Option<u64>,
}

impl Filter {
    async fn of(sluice: &SluiceClient) -> anyhow::Result<Self> {
        let body = sluice.ready(Part::Indexer).await?.body;
        let revision = |name: &str| body.pointer(name).and_then(Value::as_u64);
        Ok(Self {
            wanted: revision("/filter/wantedRevision").with_context(|| {
                format!("the indexer's health says nothing of its filter: {body}")
            })?,
            in_force: revision("/filter/inForceRevision"),
        })
    }
}

/// Waits until the stream carries a newer filter than `before`, and the newest there is: the indexer
/// notices a new webhook a moment after the API has stored it.
async fn wait_for_filter(sluice: &SluiceClient, before: Filter) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    loop {
        let filter = Filter::of(sluice).await?;
        if filter.wanted > before.wanted && filter.in_force == Some(filter.wanted) {
            return Ok(begun.elapsed());
        }
        ensure!(
            begun.elapsed() < FILTER_DEADLINE,
            "the new webhook's filter was not in force within {} s: {before:?}, now {filter:?}",
            FILTER_DEADLINE.as_secs()
        );
        tokio::time::sleep(POLL).await;
    }
}
