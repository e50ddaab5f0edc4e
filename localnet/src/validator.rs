//! Process `solana-test-validator`, with the real programs, on a chain of its own.

use std::{
    ffi::OsString,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use solana_commitment_config::CommitmentConfig;
use tokio::net::TcpStream;

use crate::{
    artifacts::Artifacts, chain::Chain, genesis, plugin_config, ports::Ports,
    process::OwnedProcess, scene::Scene, spinning_thread, workdir::WorkDir,
};

/// How long the validator may take to confirm its first slots. It needs about two seconds; a machine
/// that builds something else at the same time needs more.
const START_DEADLINE: Duration = Duration::from_secs(90);

/// How long the plugin may take to listen once the chain moves. It is loaded before the first slot.
const PLUGIN_DEADLINE: Duration = Duration::from_secs(10);

/// Pause between two looks at a starting validator.
const POLL: Duration = Duration::from_millis(100);

/// Time between two lines that say what is being waited for.
pub const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// Shreds of ledger kept on disk: minutes of an idle chain. Nothing here asks for older blocks.
const LEDGER_SHREDS: &str = "10000";

/// What the validator logs unless `RUST_LOG` says otherwise: its info level writes megabytes a minute.
const LOG_FILTER: &str = "warn,sluice_geyser_plugin=info";

/// How long the slots of the chain last.
#[derive(Clone, Copy, Debug)]
pub enum SlotLength {
    /// 400 ms, 64 ticks, as on the clusters.
    OfClusters,
    /// 200 ms, 32 ticks, as the clusters are to have: what waits for slots takes half as long.
    Half,
}

/// A running validator.
#[derive(Debug)]
pub struct Validator {
    /// The process.
    pub process: OwnedProcess,
    rpc_url: String,
    grpc: SocketAddr,
    plugin: PathBuf,
}

/// How far the chain was when it was declared up.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    /// Confirmed slot.
    pub slot: u64,
    /// From start to that slot.
    pub took: Duration,
}

impl Validator {
    /// Writes genesis and starts the validator. It is not up yet: see [`Validator::wait`].
    ///
    /// # Errors
    /// When files cannot be written or the process cannot be started.
    pub fn spawn(
        artifacts: &Artifacts,
        scene: &Scene,
        ports: &Ports,
        dir: &WorkDir,
        slots: SlotLength,
    ) -> anyhow::Result<Self> {
        genesis::write(&scene.accounts(), &dir.accounts()).context("cannot write genesis")?;
        let grpc = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), ports.grpc);
        let plugin_config = plugin_config::fill(&artifacts.plugin_config, &artifacts.plugin, grpc)?;
        fs::write(dir.plugin_config(), plugin_config)?;
        let filter = std::env::var("RUST_LOG").unwrap_or_else(|_| LOG_FILTER.to_owned());
        let process = OwnedProcess::spawn(
            "the validator",
            &artifacts.validator,
            &arguments(artifacts, scene, ports, dir, slots),
            &[("RUST_LOG", &filter)],
            &dir.validator_log(),
        )?;
        Ok(Self {
            process,
            rpc_url: format!("http://127.0.0.1:{}", ports.rpc),
            grpc,
            plugin: artifacts.plugin.clone(),
        })
    }

    /// Waits until the chain moves, the guard can be called and the plugin listens.
    ///
    /// # Errors
    /// When the validator dies or is not up in time; the end of its log is part of the message.
    pub async fn wait(&mut self, progress: fn(&str)) -> anyhow::Result<Started> {
        let started = self.wait_for_chain(progress).await?;
        spinning_thread::bound(self.process.id());
        self.wait_for_plugin().await?;
        Ok(started)
    }

    async fn wait_for_plugin(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while TcpStream::connect(self.grpc).await.is_err() {
            self.process.check()?;
            ensure!(
                begun.elapsed() < PLUGIN_DEADLINE,
                "the Geyser plugin {} does not listen on {} though the chain moves: does its configuration take the \
                 address from where {} stands? See {}",
                self.plugin.display(),
                self.grpc,
                plugin_config::ADDRESS,
                self.process.log().display()
            );
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    async fn wait_for_chain(&mut self, progress: fn(&str)) -> anyhow::Result<Started> {
        let begun = Instant::now();
        let chain = self.chain();
        let mut next_word = begun + PROGRESS_INTERVAL;
        loop {
            self.process.check()?;
            if let Some(slot) = first_confirmed_slot(&chain).await {
                return Ok(Started {
                    slot,
                    took: begun.elapsed(),
                });
            }
            ensure!(
                begun.elapsed() < START_DEADLINE,
                "the validator confirmed no slot within {} s; see {}",
                START_DEADLINE.as_secs(),
                self.process.log().display()
            );
            if Instant::now() >= next_word {
                progress("still waiting for the validator's first confirmed slot");
                next_word += PROGRESS_INTERVAL;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// A client of its JSON-RPC.
    #[must_use]
    pub fn chain(&self) -> Chain {
        Chain::new(&self.rpc_url)
    }

    /// JSON-RPC endpoint.
    #[must_use]
    pub fn rpc_url(&self) -> &str {
        &self.rpc_url
    }

    /// Yellowstone gRPC endpoint of the plugin.
    #[must_use]
    pub fn grpc_url(&self) -> String {
        format!("http://{}", self.grpc)
    }
}

/// Programs become callable one slot after the one they were deployed in, so slot 0 is not enough.
async fn first_confirmed_slot(chain: &Chain) -> Option<u64> {
    chain.rpc().get_health().await.ok()?;
    let commitment = CommitmentConfig::confirmed();
    let slot = chain
        .rpc()
        .get_slot_with_commitment(commitment)
        .await
        .ok()?;
    (slot > 0).then_some(slot)
}

fn arguments(
    artifacts: &Artifacts,
    scene: &Scene,
    ports: &Ports,
    dir: &WorkDir,
    slots: SlotLength,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut option = |name: &str, values: &[OsString]| {
        arguments.push(name.into());
        arguments.extend_from_slice(values);
    };
    option("--reset", &[]);
    // Not quiet: with a stream of log lines instead of a progress display.
    option("--log", &[]);
    option("--ledger", &[dir.ledger().into()]);
    option("--limit-ledger-size", &[LEDGER_SHREDS.into()]);
    option("--bind-address", &["127.0.0.1".into()]);
    option("--rpc-port", &[ports.rpc.to_string().into()]);
    option("--faucet-port", &[ports.faucet.to_string().into()]);
    option("--gossip-port", &[ports.gossip.to_string().into()]);
    let range = format!("{}-{}", ports.dynamic_start, ports.dynamic_end);
    option("--dynamic-port-range", &[range.into()]);
    option("--mint", &[scene.treasury.to_string().into()]);
    option("--account-dir", &[dir.accounts().into()]);
    option(
        "--bpf-program",
        &[
            swap_guard_interface::PROGRAM_ID.to_string().into(),
            artifacts.guard.clone().into(),
        ],
    );
    option(
        "--bpf-program",
        &[
            cpmm::ids::PROGRAM_ID.to_string().into(),
            artifacts.cpmm.clone().into(),
        ],
    );
    option("--geyser-plugin-config", &[dir.plugin_config().into()]);
    match slots {
        SlotLength::OfClusters => {}
        SlotLength::Half => option("--ticks-per-slot", &["32".into()]),
    }
    arguments
}
