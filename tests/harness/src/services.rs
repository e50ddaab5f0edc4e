//! Services as their binaries run them: each with a store of its own, closed at the end.

use std::future::Future;

use secrecy::ExposeSecret;
use service_kit::{CancellationToken, Clock};
use sluice_config::{Config, Database};
use sluice_store::{EncryptionKeys, Store};

/// Serves the API until `shutdown`.
///
/// # Errors
/// When the store cannot be opened, and those of the API.
pub async fn api(config: Config, shutdown: CancellationToken) -> anyhow::Result<()> {
    with_store(config, |config, store| {
        sluice_api::run(config, store, Clock::system(), shutdown)
    })
    .await
}

/// Runs the indexer until `shutdown`, on a host with this clock.
///
/// # Errors
/// When the store cannot be opened, and those of the indexer.
pub async fn indexer(
    config: Config,
    host: Clock,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    with_store(config, |config, store| {
        sluice_indexer::run(config, store, host, shutdown)
    })
    .await
}

async fn with_store<Service>(
    config: Config,
    service: impl FnOnce(Config, Store) -> Service,
) -> anyhow::Result<()>
where
    Service: Future<Output = anyhow::Result<()>>,
{
    let keys = EncryptionKeys::parse(
        config.store.encryption_key(),
        config.store.previous_encryption_key(),
    )?;
    let store = match config.store.database() {
        Database::File(path) => Store::open(path).await?,
        Database::Server(url) => Store::connect(url.expose_secret()).await?,
    };
    let store = store.encrypted(keys).await?;
    let ended = service(config, store.clone()).await;
    store.close().await;
    ended
}
