//! Binary `sluice-indexer`: runs the indexer alone, as `sluice.toml` configures it.

use std::path::PathBuf;

use clap::Parser;

/// Follows the chain and delivers webhooks.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Configuration file; sluice.example.toml explains every key.
    #[arg(long, default_value = "sluice.toml")]
    config: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    service_kit::telemetry::init();
    let config = sluice_config::Config::load(&Arguments::parse().config)?;
    sluice_indexer::run(config, service_kit::shutdown::on_signal()?).await
}
