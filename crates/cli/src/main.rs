//! Binary `sluice`: API, indexer, or both; configurations, keys, backups, a lookup table, a doctor, a listener.
//!
//! The only crate that knows both the API and the indexer. It opens the one store of the process, and closes it.

mod api_keys;
mod backup;
mod config_file;
mod doctor;
mod init;
mod listen;
mod lookup_table;
mod node;

use clap::{Parser, Subcommand};
use service_kit::{CancellationToken, Clock};
use sluice_config::Config;
use sluice_store::Store;

use self::config_file::{FileArguments, with_store};

/// Swaps through one exchange, guarded on chain, with webhooks for what happens there.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// API and indexer in one process.
    Serve(FileArguments),
    /// The REST API alone.
    Api(FileArguments),
    /// The indexer alone.
    Indexer(FileArguments),
    /// Writes a configuration for a cluster, with every setting explained.
    Init(init::Arguments),
    /// API keys: whose the webhooks are.
    #[command(subcommand)]
    Keys(api_keys::Command),
    /// Writes everything in the store, as of one moment, to a new file, while processes use it.
    Backup(backup::Arguments),
    /// Fills an empty store with a backup, of the same kind of database or the other. No sluice may use the store.
    Restore(backup::Arguments),
    /// Checks what a configuration names, from the node to the database, and says what to do where it is not well. Changes
    /// nothing; ends with an error when a check has failed.
    Doctor(FileArguments),
    /// The lookup table that makes transactions of version 0 smaller.
    #[command(subcommand)]
    LookupTable(lookup_table::Command),
    /// Webhooks for a server on this machine: what a temporary webhook would deliver comes down one
    /// connection to the API and is posted, signed, to a local URL.
    Listen(Box<listen::Arguments>),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    service_kit::telemetry::init();
    let shutdown = service_kit::shutdown::on_signal()?;
    match Arguments::parse().command {
        Command::Serve(file) => {
            with_store(&file, |config, store| serve(config, store, shutdown)).await
        }
        Command::Api(file) => {
            with_store(&file, |config, store| {
                sluice_api::run(config, store, Clock::system(), shutdown)
            })
            .await
        }
        Command::Indexer(file) => {
            with_store(&file, |config, store| {
                sluice_indexer::run(config, store, Clock::system(), shutdown)
            })
            .await
        }
        Command::Init(arguments) => init::run(&arguments),
        Command::Keys(command) => api_keys::run(command, &Clock::system()).await,
        Command::Backup(arguments) => backup::back_up(arguments).await,
        Command::Restore(arguments) => backup::restore(arguments).await,
        Command::Doctor(file) => doctor::run(&file, &Clock::system()).await,
        Command::LookupTable(command) => lookup_table::run(command).await,
        Command::Listen(arguments) => listen::run(*arguments, Clock::system(), shutdown).await,
    }
}

/// Runs both until either ends, and takes the other along: half a service would look whole.
async fn serve(config: Config, store: Store, shutdown: CancellationToken) -> anyhow::Result<()> {
    let end_both = |token: CancellationToken| token.drop_guard();
    let api = {
        let (config, store, shutdown) = (config.clone(), store.clone(), shutdown.clone());
        async move {
            let _ends_the_other = end_both(shutdown.clone());
            sluice_api::run(config, store, Clock::system(), shutdown).await
        }
    };
    let indexer = async move {
        let _ends_the_other = end_both(shutdown.clone());
        sluice_indexer::run(config, store, Clock::system(), shutdown).await
    };
    let (api, indexer) = tokio::join!(api, indexer);
    api.and(indexer)
}
