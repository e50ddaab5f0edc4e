//! Process `sluice serve`: API and indexer, with their configuration.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;
use reqwest::StatusCode;

use crate::{
    artifacts::Artifacts,
    ports::Ports,
    process::OwnedProcess,
    rest::{Health, Part, SluiceClient},
    validator::{PROGRESS_INTERVAL, Validator},
    workdir::WorkDir,
};

/// How long Sluice may take from start to ready. It needs about a second.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// Pause between two looks at a health endpoint.
const POLL: Duration = Duration::from_millis(200);

/// A running Sluice.
#[derive(Debug)]
pub struct Service {
    /// The process.
    pub process: OwnedProcess,
    client: SluiceClient,
}

impl Service {
    /// Writes the configuration and starts `sluice serve`. It is not ready yet: see [`Service::wait`].
    ///
    /// # Errors
    /// When the configuration cannot be written or the process cannot be started.
    pub fn spawn(
        artifacts: &Artifacts,
        validator: &Validator,
        ports: &Ports,
        dir: &WorkDir,
    ) -> anyhow::Result<Self> {
        let exchange = if artifacts.exchange_is_stand_in()? {
            "stand-in"
        } else {
            "raydium"
        };
        fs::write(
            dir.sluice_config(),
            configuration(exchange, validator, ports, dir),
        )?;
        let process = OwnedProcess::spawn(
            "Sluice",
            &artifacts.sluice,
            &[
                "serve".into(),
                "--config".into(),
                dir.sluice_config().into_os_string(),
            ],
            &[],
            &dir.sluice_log(),
        )?;
        let at = |port: u16| format!("http://127.0.0.1:{port}");
        Ok(Self {
            process,
            client: SluiceClient::new(at(ports.api), at(ports.indexer))?,
        })
    }

    /// Waits until API and indexer say they are ready.
    ///
    /// # Errors
    /// When Sluice dies, or is not ready in time.
    pub async fn wait(&mut self, progress: fn(&str)) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let mut next_word = begun + PROGRESS_INTERVAL;
        for part in [Part::Api, Part::Indexer] {
            loop {
                self.process.check()?;
                let health = self.client.ready(part).await;
                if matches!(&health, Ok(Health { status, .. }) if *status == StatusCode::OK) {
                    break;
                }
                let state = match health {
                    Ok(health) => health.body.to_string(),
                    Err(error) => error.to_string(),
                };
                ensure!(
                    begun.elapsed() < START_DEADLINE,
                    "{part:?} was not ready within {} s ({state}); see {}",
                    START_DEADLINE.as_secs(),
                    self.process.log().display()
                );
                if Instant::now() >= next_word {
                    progress(&format!("still waiting for {part:?}: {state}"));
                    next_word += PROGRESS_INTERVAL;
                }
                tokio::time::sleep(POLL).await;
            }
        }
        Ok(begun.elapsed())
    }

    /// A client of its REST interface.
    #[must_use]
    pub fn client(&self) -> &SluiceClient {
        &self.client
    }
}

/// How old the chain's own clock may be, seconds. It runs by the slots: where the machine is busy the validator makes fewer of
/// them, the clock falls behind by a second every few, and a quote is as exact as before.
const MAX_CLOCK_AGE_SECS: u64 = 600;

fn configuration(exchange: &str, validator: &Validator, ports: &Ports, dir: &WorkDir) -> String {
    // A TOML basic string escapes as JSON does.
    let text = |path: &Path| serde_json::Value::from(path.to_string_lossy()).to_string();
    let (database, wallet) = (text(&dir.database()), text(&dir.wallet()));
    format!(
        "# Written by sluice-localnet at every start.\n\
         [chain]\nrpc-url = \"{}\"\nexchange = \"{}\"\n\n\
         [freshness]\nmax-clock-age-secs = {MAX_CLOCK_AGE_SECS}\n\n\
         [[geyser.endpoints]]\nurl = \"{}\"\n\n\
         [store]\npath = {database}\n\n\
         [api]\nlisten = \"127.0.0.1:{}\"\nkeyless = true\ndemo-wallet = {wallet}\n\n\
         [indexer]\nlisten = \"127.0.0.1:{}\"\n\n\
         [webhooks]\nallow-http-loopback = true\n",
        validator.rpc_url(),
        exchange,
        validator.grpc_url(),
        ports.api,
        ports.indexer,
    )
}
