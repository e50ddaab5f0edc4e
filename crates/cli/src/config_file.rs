//! Configuration file of a command, and the one store that it names.

use std::{future::Future, path::PathBuf};

use clap::Args;
use secrecy::ExposeSecret;
use sluice_config::{Config, Database};
use sluice_store::{EncryptionKeys, Store};

/// Where the configuration is.
#[derive(Args)]
pub struct FileArguments {
    /// Configuration file; sluice.example.toml explains every key.
    #[arg(long, default_value = "sluice.toml")]
    pub config: PathBuf,
}

/// Opens the store of the configuration for `work`, and closes it when that has ended, well or not.
///
/// # Errors
/// When the file or the store cannot be read, and those of `work`.
pub async fn with_store<T, Work>(
    file: &FileArguments,
    work: impl FnOnce(Config, Store) -> Work,
) -> anyhow::Result<T>
where
    Work: Future<Output = anyhow::Result<T>>,
{
    let config = Config::load(&file.config)?;
    let keys = EncryptionKeys::parse(
        config.store.encryption_key(),
        config.store.previous_encryption_key(),
    )?;
    let store = match config.store.database() {
        Database::File(path) => Store::open(path).await?,
        Database::Server(url) => Store::connect(url.expose_secret()).await?,
    };
    let store = store.encrypted(keys).await?;
    let ended = work(config, store.clone()).await;
    store.close().await;
    ended
}
