//! Binary `sluice-api`: the REST API alone, as its own process.

use std::path::PathBuf;

use clap::Parser;
use secrecy::ExposeSecret;
use service_kit::Clock;
use sluice_config::{Config, Database};
use sluice_store::{EncryptionKeys, Store};

/// The Sluice REST API.
#[derive(Parser)]
struct Arguments {
    /// Configuration file.
    #[arg(long, default_value = "sluice.toml")]
    config: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    service_kit::telemetry::init(service_kit::telemetry::Format::Text);
    let config = Config::load(&Arguments::parse().config)?;
    let shutdown = service_kit::shutdown::on_signal()?;
    let keys = EncryptionKeys::parse(
        config.store.encryption_key(),
        config.store.previous_encryption_key(),
    )?;
    let store = match config.store.database() {
        Database::File(path) => Store::open(path).await?,
        Database::Server(url) => Store::connect(url.expose_secret()).await?,
    };
    let store = store.encrypted(keys).await?;
    let ended = sluice_api::run(config, store.clone(), Clock::system(), shutdown).await;
    store.close().await;
    ended
}
