//! Binary `sluice-localnet`: boots a whole Sluice on this machine; see `--help`.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use sluice_localnet::{
    Artifacts, NetOptions, SlotLength,
    artifacts::{Overrides, repository_root},
    demo, interactive,
    ports::{UsualPorts, Wanted},
};
use tokio::signal::unix::{SignalKind, signal};

/// Ports that people know by heart; taken when they are free and no other was asked for.
const USUAL_RPC: u16 = 8899;
const USUAL_FAUCET: u16 = 9900;
const USUAL_GRPC: u16 = 10_000;
const USUAL_API: u16 = 8787;
const USUAL_INDEXER: u16 = 8788;

/// Boots a validator with the swap guard, the exchange, pools and a funded wallet, then Sluice in front
/// of it. Stays until Ctrl-C, or runs the main job once with --demo.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Examples:\n  sluice-localnet --demo\n  sluice-localnet --dir /tmp/localnet --api-port 9000 --rpc-port 8999"
)]
struct Cli {
    /// Run the main job once, print each step, and end; non-zero at the first step that fails.
    #[arg(long)]
    demo: bool,
    /// solana-test-validator [default: $SLUICE_VALIDATOR, else the one on PATH]
    #[arg(long, value_name = "PATH")]
    validator: Option<PathBuf>,
    /// Geyser plugin; $GEYSER_SO wins over it, and $GEYSER_CONFIG is the template of its configuration
    /// [default: target/geyser-plugin/libsluice_geyser_plugin.so with geyser-plugin/config.json5]
    #[arg(long, value_name = "PATH")]
    plugin: Option<PathBuf>,
    /// The guard's program [default: target/programs/swap_guard.so]
    #[arg(long, value_name = "PATH")]
    guard: Option<PathBuf>,
    /// The exchange's program; $CPMM_SO wins over it [default: target/programs/local_cpmm.so]
    #[arg(long, value_name = "PATH")]
    cpmm: Option<PathBuf>,
    /// The sluice binary [default: beside this one]
    #[arg(long, value_name = "PATH")]
    sluice: Option<PathBuf>,
    /// Folder for ledger, database and logs [default: target/localnet, with --demo a folder in it]
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,
    /// JSON-RPC port; the next one serves its websocket [default: 8899 if free; any with --demo]
    #[arg(long, value_name = "PORT")]
    rpc_port: Option<u16>,
    /// Port of the REST API [default: 8787 if free; any with --demo]
    #[arg(long, value_name = "PORT")]
    api_port: Option<u16>,
    /// Port of the indexer's health [default: 8788 if free; any with --demo]
    #[arg(long, value_name = "PORT")]
    indexer_port: Option<u16>,
    /// Port of Yellowstone gRPC [default: 10000 if free; any with --demo]
    #[arg(long, value_name = "PORT")]
    grpc_port: Option<u16>,
    /// Port of the faucet [default: 9900 if free; any with --demo]
    #[arg(long, value_name = "PORT")]
    faucet_port: Option<u16>,
}

impl Cli {
    fn overrides(&self) -> Overrides {
        Overrides {
            validator: self.validator.clone(),
            plugin: self.plugin.clone(),
            guard: self.guard.clone(),
            cpmm: self.cpmm.clone(),
            sluice: self.sluice.clone(),
        }
    }

    /// `usual` is the claim on the usual ports, where this localnet may have them.
    fn options(&self, usual: Option<&UsualPorts>) -> NetOptions {
        let folder = if self.demo {
            "target/localnet/demo"
        } else {
            "target/localnet"
        };
        let free = |port| usual.and_then(|usual| usual.free(port));
        let rpc_pair = || free(USUAL_RPC + 1).and_then(|_| free(USUAL_RPC));
        NetOptions {
            dir: self
                .dir
                .clone()
                .unwrap_or_else(|| repository_root().join(folder)),
            ports: Wanted {
                rpc: self.rpc_port.or_else(rpc_pair),
                faucet: self.faucet_port.or_else(|| free(USUAL_FAUCET)),
                grpc: self.grpc_port.or_else(|| free(USUAL_GRPC)),
                api: self.api_port.or_else(|| free(USUAL_API)),
                indexer: self.indexer_port.or_else(|| free(USUAL_INDEXER)),
            },
            slots: SlotLength::OfClusters,
            progress: |line| eprintln!("{line}"),
        }
    }
}

// One thread: a child's death signal is bound to the thread that starts it, which must therefore be
// the one that lives as long as the process.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: &Cli) -> anyhow::Result<()> {
    let ended = ended()?;
    let artifacts = Artifacts::find(&cli.overrides())?;
    // Held until everything has ended.
    let usual = (!cli.demo).then(UsualPorts::claim).flatten();
    let options = cli.options(usual.as_ref());
    if !cli.demo {
        return interactive::run(&artifacts, &options, ended).await;
    }
    tokio::select! {
        outcome = demo::run(&artifacts, &options) => outcome,
        // The net is dropped with the demo's future, which ends its processes.
        reason = ended => anyhow::bail!("{reason} during the demo"),
    }
}

/// Completes when a signal ends this process. The handlers are in place when this returns, so that no
/// signal is lost between the first child's start and the first wait.
fn ended() -> std::io::Result<impl Future<Output = &'static str>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => "interrupted",
            _ = terminate.recv() => "terminated",
            _ = hangup.recv() => "the terminal is gone",
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_help_has_examples_that_it_takes() {
        let help = Cli::command();
        let text = help.get_after_help().map(ToString::to_string);
        let text = text.unwrap_or_default();
        let lines = text.strip_prefix("Examples:\n").unwrap_or_default();
        assert!(lines.contains("--demo"), "{text}");
        for line in lines.lines() {
            let parsed = Cli::try_parse_from(line.trim().split(' '));
            assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
        }
    }
}
