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
mod share_bodies;

use clap::{Parser, Subcommand, ValueEnum};
use service_kit::{CancellationToken, Clock, telemetry};
use sluice_config::Config;
use sluice_store::Store;

use self::config_file::{FileArguments, with_store};

/// Swaps through one exchange, guarded on chain, with webhooks for what happens there.
#[derive(Parser)]
#[command(version)]
#[command(
    after_help = "Examples:\n  sluice init --cluster localnet\n  sluice doctor --config sluice.toml\n  sluice serve --config sluice.toml"
)]
struct Arguments {
    /// How the log is written to standard error: lines for people, or a JSON object a line for collectors.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        env = "SLUICE_LOG_FORMAT"
    )]
    log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LogFormat {
    /// Lines of text.
    #[default]
    Text,
    /// An object a line.
    Json,
}

impl From<LogFormat> for telemetry::Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

#[derive(Subcommand)]
enum Command {
    /// API and indexer in one process.
    #[command(
        after_help = "Examples:\n  sluice serve --config sluice.toml\n  sluice --log-format json serve --config sluice.toml"
    )]
    Serve(FileArguments),
    /// The REST API alone.
    #[command(after_help = "Examples:\n  sluice api --config sluice.toml")]
    Api(FileArguments),
    /// The indexer alone.
    #[command(after_help = "Examples:\n  sluice indexer --config sluice.toml")]
    Indexer(FileArguments),
    /// Writes a configuration for a cluster, with every setting explained.
    #[command(
        after_help = "Examples:\n  sluice init --cluster localnet\n  sluice init --cluster devnet\n  sluice init --cluster mainnet --config sluice.toml"
    )]
    Init(init::Arguments),
    /// API keys: whose the webhooks are.
    #[command(
        subcommand,
        after_help = "Examples:\n  sluice keys add billing\n  sluice keys list\n  sluice keys revoke billing"
    )]
    Keys(api_keys::Command),
    /// Writes everything in the store, as of one moment, to a new file, while processes use it.
    #[command(after_help = "Examples:\n  sluice backup sluice-backup.db --config sluice.toml")]
    Backup(backup::Arguments),
    /// Fills an empty store with a backup, of the same kind of database or the other. No sluice may use the store.
    #[command(after_help = "Examples:\n  sluice restore sluice-backup.db --config new.toml")]
    Restore(backup::Arguments),
    /// Lets a store of an earlier release keep once what the webhooks of an event have in common, as a new one does. No process
    /// of that release may run any more: it would deliver the beginnings of messages alone, and overlook some.
    #[command(after_help = "Examples:\n  sluice share-bodies --config sluice.toml")]
    ShareBodies(FileArguments),
    /// Checks what a configuration names, from the node to the database, and says what to do where it is not well. Changes
    /// nothing; ends with an error when a check has failed.
    #[command(after_help = "Examples:\n  sluice doctor --config sluice.toml")]
    Doctor(FileArguments),
    /// The lookup table that makes transactions of version 0 smaller.
    #[command(
        subcommand,
        after_help = "Examples:\n  sluice lookup-table create --keypair payer.json"
    )]
    LookupTable(lookup_table::Command),
    /// Webhooks for a server on this machine: what a temporary webhook would deliver comes down one
    /// connection to the API and is posted, signed, to a local URL.
    #[command(
        after_help = "Examples:\n  sluice listen --forward http://127.0.0.1:3000/hook --programs CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C\n  sluice listen --forward http://127.0.0.1:3000/hook --programs CPMMoo8L3F4NbTegBCKVNunggL7H1ZpdTHKxQB5qKP1C --events transaction --bodies"
    )]
    Listen(Box<listen::Arguments>),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    telemetry::init(arguments.log_format.into());
    let shutdown = service_kit::shutdown::on_signal()?;
    match arguments.command {
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
        Command::ShareBodies(file) => share_bodies::run(&file).await,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// The examples of a command's help: the lines behind their title.
    fn examples(command: &clap::Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string);
        let text = text.unwrap_or_default();
        let lines = text.strip_prefix("Examples:\n").unwrap_or_default();
        lines.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn the_help_of_every_command_has_examples_that_it_takes() {
        let mut commands = vec![("sluice".to_owned(), Arguments::command())];
        while let Some((path, command)) = commands.pop() {
            let examples = examples(&command);
            assert!(!examples.is_empty(), "{path} --help has no example");
            for example in examples {
                let parsed = Arguments::try_parse_from(example.split(' '));
                assert!(parsed.is_ok(), "{example}: {:?}", parsed.err());
            }
            let below = command.get_subcommands();
            commands
                .extend(below.map(|below| (format!("{path} {}", below.get_name()), below.clone())));
        }
    }
}
