//! The processes of a localnet: started in order, watched, and stopped so that nothing is left.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use solana_keypair::write_keypair_file;

use crate::{
    artifacts::{Artifacts, Fingerprint},
    chain::Chain,
    ports::{self, Ports, Wanted},
    rest::SluiceClient,
    scene::Scene,
    service::Service,
    validator::{SlotLength, Started, Validator},
    workdir::WorkDir,
};

/// How long the system may keep a port after its listener's process is gone.
const PORT_DEADLINE: Duration = Duration::from_secs(5);

/// Pause between two looks at a port.
const POLL: Duration = Duration::from_millis(50);

/// Where and how a localnet runs.
#[derive(Clone, Debug)]
pub struct NetOptions {
    /// The folder it lives in.
    pub dir: PathBuf,
    /// Ports that are insisted on.
    pub ports: Wanted,
    /// How long slots last.
    pub slots: SlotLength,
    /// Receives a line when something takes long.
    pub progress: fn(&str),
}

/// A running localnet. Dropping it kills what runs; [`Localnet::stop`] ends it in order.
#[derive(Debug)]
pub struct Localnet {
    // Declared, and thereby dropped, in the order in which they must end.
    /// Sluice.
    pub service: Service,
    /// The validator.
    pub validator: Validator,
    /// The ports of all of them.
    pub ports: Ports,
    /// The folder of all of them.
    pub dir: WorkDir,
    /// What is on the chain.
    pub scene: Scene,
    /// What it took to start.
    pub startup: Startup,
}

/// Figures of a start.
#[derive(Clone, Debug)]
pub struct Startup {
    /// The guard that was loaded.
    pub guard: Fingerprint,
    /// The exchange that was loaded.
    pub exchange: Fingerprint,
    /// The Geyser plugin that was loaded.
    pub plugin: Fingerprint,
    /// The validator's.
    pub chain: Started,
    /// From the start of Sluice until both parts were ready.
    pub service: Duration,
}

/// What an orderly stop found.
#[derive(Clone, Copy, Debug)]
pub struct Cleared {
    /// From the request to the last freed port.
    pub took: Duration,
    /// Ports that were verified to be free.
    pub ports: usize,
}

impl Localnet {
    /// Boots everything and waits until Sluice is ready.
    ///
    /// # Errors
    /// When a part cannot be started or does not come up; parts already up are stopped.
    pub async fn start(artifacts: &Artifacts, options: &NetOptions) -> anyhow::Result<Self> {
        let dir = WorkDir::open(&options.dir)?;
        let ports = Ports::choose(&options.ports, std::process::id())?;
        let scene = Scene::new();
        write_keypair_file(&scene.wallet, dir.wallet())
            .map_err(|error| anyhow::anyhow!("cannot write the wallet's key pair: {error}"))?;
        let guard = Fingerprint::of(&artifacts.guard)?;
        let exchange = Fingerprint::of(&artifacts.cpmm)?;
        let plugin = Fingerprint::of(&artifacts.plugin)?;
        let mut validator = Validator::spawn(artifacts, &scene, &ports, &dir, options.slots)?;
        let chain = validator.wait(options.progress).await?;
        let mut service = Service::spawn(artifacts, &validator, &ports, &dir)?;
        let ready = service.wait(options.progress).await?;
        Ok(Self {
            service,
            validator,
            ports,
            dir,
            scene,
            startup: Startup {
                guard,
                exchange,
                plugin,
                chain,
                service: ready,
            },
        })
    }

    /// A client of the chain.
    #[must_use]
    pub fn chain(&self) -> Chain {
        self.validator.chain()
    }

    /// A client of Sluice.
    #[must_use]
    pub fn sluice(&self) -> &SluiceClient {
        self.service.client()
    }

    /// Confirms that every child still runs.
    ///
    /// # Errors
    /// When one died, with the end of its log.
    pub fn check(&mut self) -> anyhow::Result<()> {
        self.validator.process.check()?;
        self.service.process.check()?;
        Ok(())
    }

    /// Stops Sluice, then the validator, and verifies that no process and no port is left.
    ///
    /// # Errors
    /// When a process survives or a port stays taken.
    pub async fn stop(mut self) -> anyhow::Result<Cleared> {
        let begun = Instant::now();
        let service = self.service.process.stop();
        let validator = self.validator.process.stop();
        service.context("stopping Sluice")?;
        validator.context("stopping the validator")?;
        for process in [&self.service.process, &self.validator.process] {
            ensure!(
                !process.group_is_alive(),
                "process group {} is still alive",
                process.id()
            );
        }
        let listening = self.ports.listening();
        for (what, port) in listening {
            wait_until_free(what, port).await?;
        }
        self.dir
            .remove_chain()
            .context("cannot remove the ledger")?;
        Ok(Cleared {
            took: begun.elapsed(),
            ports: listening.len(),
        })
    }
}

async fn wait_until_free(what: &str, port: u16) -> anyhow::Result<()> {
    let deadline = Instant::now() + PORT_DEADLINE;
    while !ports::is_free(port) {
        ensure!(
            Instant::now() < deadline,
            "port {port} ({what}) is still taken"
        );
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}
