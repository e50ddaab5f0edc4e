//! `sluice backup` and `sluice restore`: the whole store to one file, and from it into an empty one.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::Args;
use secrecy::ExposeSecret;
use sluice_config::{Config, Database};
use sluice_store::Store;

use crate::config_file::{FileArguments, with_store};

/// Arguments of both commands.
#[derive(Args)]
pub struct Arguments {
    /// The backup. It holds what the store holds, secrets too: those are encrypted where the store is, and the key is
    /// not in it.
    backup: PathBuf,
    #[command(flatten)]
    file: FileArguments,
}

/// Writes a backup, of whichever database, while processes use it.
///
/// # Errors
/// When there is no database of this release's schema, the file exists, or either cannot be used.
pub async fn back_up(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { backup: path, file } = arguments;
    ensure_no_migration(&Config::load(&file.config)?).await?;
    let backup = with_store(&file, |_, store| {
        let path = path.clone();
        async move { Ok(store.back_up(&path).await?) }
    });
    let backup = backup.await?;
    println!(
        "{} holds {} webhooks and {} messages, {} of them still to be delivered{}",
        path.display(),
        backup.webhooks,
        backup.messages,
        backup.pending,
        match backup.confirmed {
            Some(slot) => format!(", up to slot {slot}"),
            None => String::new(),
        }
    );
    Ok(())
}

/// Fills an empty store with a backup, of whichever database.
///
/// # Errors
/// When the store is not empty or a process leads in it, the backup is of a newer release, or either cannot be used.
pub async fn restore(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { backup: path, file } = arguments;
    let backup = with_store(
        &file,
        |_, store| async move { Ok(store.restore(&path).await?) },
    );
    let backup = backup.await?;
    println!(
        "restored {} webhooks and {} messages; {} are delivered once a sluice runs{}",
        backup.webhooks,
        backup.messages,
        backup.pending,
        match backup.confirmed {
            Some(slot) => format!(
                ", which reads the chain again from slot {slot} on: receivers may get messages twice, under the same ids"
            ),
            None => String::new(),
        }
    );
    Ok(())
}

/// Opening a store brings its schema up to date, which a backup, made before that perhaps, must not do.
async fn ensure_no_migration(config: &Config) -> anyhow::Result<()> {
    let schema = match config.store.database() {
        Database::File(path) => match Store::schema_of_file(path).await? {
            Some(schema) => schema,
            None => bail!(
                "there is no database at {}: correct store.path, or the configuration that --config names",
                path.display()
            ),
        },
        Database::Server(url) => Store::schema_of_server(url.expose_secret()).await?,
    };
    ensure!(
        schema.applied >= schema.known,
        "the database has schema {}, and this release {}: make the backup with the release that runs, or start this one first",
        schema.applied,
        schema.known
    );
    Ok(())
}
