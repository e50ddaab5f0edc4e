//! The API alone, as its own process.

use std::path::PathBuf;

use clap::Parser;
use sluice_config::Config;

/// The Sluice REST API.
#[derive(Parser)]
struct Arguments {
    /// Configuration file.
    #[arg(long, default_value = "sluice.toml")]
    config: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    service_kit::telemetry::init();
    let config = Config::load(&Arguments::parse().config)?;
    sluice_api::run(config, service_kit::shutdown::on_signal()?).await
}
