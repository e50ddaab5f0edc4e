//! API and indexer as two processes, each with a link of its own to the validator's stream.

use std::{
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use reqwest::StatusCode;
use sluice_localnet::{Artifacts, Localnet, process::OwnedProcess, rest::Part};
use sluice_testkit::network_link::NetworkLink;
use tokio::time::sleep;

/// How long the two may take to be ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between two looks at a health endpoint.
const POLL: Duration = Duration::from_millis(100);

/// The two processes and their links.
pub(super) struct Services {
    pub(super) api_link: Arc<NetworkLink>,
    pub(super) indexer_link: Arc<NetworkLink>,
    api: OwnedProcess,
    indexer: OwnedProcess,
    logs: [PathBuf; 2],
}

impl Services {
    /// Puts them in the place of the localnet's own service, with its configuration but for the stream's address.
    pub(super) async fn start(artifacts: &Artifacts, net: &mut Localnet) -> anyhow::Result<Self> {
        net.service.process.stop()?;
        let grpc_url = net.validator.grpc_url().to_owned();
        let server: SocketAddr = grpc_url
            .strip_prefix("http://")
            .and_then(|address| address.parse().ok())
            .with_context(|| format!("{grpc_url} is no address of this machine"))?;
        let configured = fs::read_to_string(net.dir.sluice_config())?;
        let root = net.dir.root().to_owned();
        let log = |role: &str| root.join(format!("{role}.log"));
        let spawn = |role: &'static str, link: &NetworkLink| -> anyhow::Result<OwnedProcess> {
            let config = root.join(format!("{role}.toml"));
            ensure!(
                configured.contains(&grpc_url),
                "no stream in:\n{configured}"
            );
            fs::write(&config, configured.replace(&grpc_url, &link.url()))?;
            let arguments: [OsString; 3] =
                [role.into(), "--config".into(), config.into_os_string()];
            let process = OwnedProcess::spawn(role, &artifacts.sluice, &arguments, &[], &log(role));
            Ok(process?)
        };
        let (api_link, indexer_link) = (
            NetworkLink::to(server).await?,
            NetworkLink::to(server).await?,
        );
        let services = Self {
            api: spawn("api", &api_link)?,
            indexer: spawn("indexer", &indexer_link)?,
            api_link: Arc::new(api_link),
            indexer_link: Arc::new(indexer_link),
            logs: [log("api"), log("indexer")],
        };
        for part in [Part::Api, Part::Indexer] {
            services.until_ready(net, part).await?;
        }
        Ok(services)
    }

    async fn until_ready(&self, net: &Localnet, part: Part) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let health = net.sluice().ready(part).await;
            if matches!(&health, Ok(health) if health.status == StatusCode::OK) {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "{part:?} is not ready: {health:?}\n{}",
                self.logs()
            );
            sleep(POLL).await;
        }
    }

    /// How often the indexer's stream had to be opened again.
    pub(super) async fn indexer_reconnects(&self, net: &Localnet) -> anyhow::Result<u64> {
        const ENDED: &str = "sluice_indexer_stream_sessions_ended_total";
        let url = format!("{}/metrics", net.sluice().indexer());
        let client = reqwest::Client::builder().timeout(PATIENCE).build()?;
        let answer = client.get(url).send().await?.error_for_status()?;
        let text = answer.text().await?;
        let mut reconnects = 0;
        for line in text.lines().filter(|line| line.starts_with(ENDED)) {
            let count = line
                .rsplit(' ')
                .next()
                .context("a metric without a value")?;
            reconnects += count.parse::<u64>().with_context(|| format!("{line:?}"))?;
        }
        Ok(reconnects)
    }

    /// The ends of both logs.
    pub(super) fn logs(&self) -> String {
        /// Lines of each that are shown.
        const LINES: usize = 40;
        let end = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let from = lines.len().saturating_sub(LINES);
            format!("{}:\n{}", path.display(), lines[from..].join("\n"))
        };
        self.logs.each_ref().map(end).join("\n")
    }

    /// Ends both in order.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.api.stop()?;
        self.indexer.stop()?;
        Ok(())
    }
}
