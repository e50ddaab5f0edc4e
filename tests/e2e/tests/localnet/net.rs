//! Localnet inside the test's own process.

use std::time::{Duration, Instant};

use anyhow::ensure;
use sluice_localnet::{
    Artifacts, Localnet, NetOptions, SlotLength,
    artifacts::Overrides,
    ports::Wanted,
    rest::{Health, Part},
};
use tempfile::TempDir;

/// Pause between two looks at something that is expected to change.
const POLL: Duration = Duration::from_millis(100);

/// A localnet and the folder it lives in, which is removed after it.
pub struct TestNet {
    pub net: Localnet,
    _folder: TempDir,
}

impl TestNet {
    pub async fn start() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let artifacts = Artifacts::find(&Overrides::default())?;
        let options = NetOptions {
            dir: folder.path().to_owned(),
            ports: Wanted::default(),
            slots: SlotLength::Half,
            progress: |line| eprintln!("{line}"),
        };
        let net = Localnet::start(&artifacts, &options).await?;
        Ok(Self {
            net,
            _folder: folder,
        })
    }

    /// Sluice's log so far.
    pub fn sluice_log(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.net.dir.sluice_log())?)
    }

    /// Waits until a part answers that it is not ready.
    pub async fn until_not_ready(&self, part: Part, patience: Duration) -> anyhow::Result<Health> {
        let begun = Instant::now();
        loop {
            let health = self.net.sluice().ready(part).await?;
            if health.status.as_u16() == 503 {
                return Ok(health);
            }
            ensure!(
                begun.elapsed() < patience,
                "{part:?} still says it is ready: {health:?}; log:\n{}",
                self.sluice_log()?
            );
            tokio::time::sleep(POLL).await;
        }
    }

    pub async fn stop(self) -> anyhow::Result<()> {
        self.net.stop().await.map(drop)
    }
}
