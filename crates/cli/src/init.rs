//! `sluice init`: writes a configuration for a cluster, with every setting explained and a fresh encryption key.
//!
//! What is written is `sluice.example.toml` with a few values changed, so that no explanation stands in two places.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use anyhow::{Context, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::{Args, ValueEnum};
use sluice_config::Config;
use sluice_transaction::ExchangeIds;

/// Every setting, explained.
const EXAMPLE: &str = include_str!("../../../sluice.example.toml");

/// Its owner alone reads the file: it holds an encryption key, and will hold keys of providers.
const MODE: u32 = 0o600;

/// Bytes of an encryption key.
const KEY_LEN: usize = 32;

/// Settings that name this machine, and what stands for a provider in their place.
const PROVIDERS: [(&str, &str); 2] = [
    (
        "rpc-url = \"http://127.0.0.1:8899\"",
        "rpc-url = \"https://rpc.provider.invalid/?api-key=...\"",
    ),
    (
        "url = \"http://127.0.0.1:10000\"",
        "url = \"https://geyser.provider.invalid\"",
    ),
];

/// What is written, and where to.
#[derive(Args)]
pub struct Arguments {
    /// The cluster that Sluice is to serve.
    #[arg(long, value_enum)]
    cluster: Cluster,
    /// File that is written; one that is there already is left as it is.
    #[arg(long, default_value = "sluice.toml")]
    config: PathBuf,
}

/// A cluster that a configuration can be written for.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Cluster {
    /// A chain on this machine with the stand-in for the exchange.
    Localnet,
    /// Solana's devnet, by providers that are yet to be named in the file.
    Devnet,
    /// Solana's mainnet, by providers that are yet to be named in the file.
    Mainnet,
}

/// Writes the configuration, and prints what to do next.
///
/// # Errors
/// When the file is there already or cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { cluster, config } = arguments;
    let shown = config.display();
    let text = configuration(*cluster, rand::random())?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(config)
        .map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => anyhow::anyhow!(
                "{shown} is there already and stays as it is: name another file with --config, or move it away"
            ),
            _ => anyhow::Error::new(error).context(format!("cannot create {shown}")),
        })?;
    file.write_all(text.as_bytes())
        .with_context(|| format!("cannot write {shown}"))?;
    println!(
        "wrote {shown}, which its owner alone may read: it holds the key that encrypts secrets of webhooks"
    );
    if matches!(cluster, Cluster::Devnet) {
        println!(
            "the guard of devnet is target/programs/swap_guard_devnet.so of `cargo xtask build programs`: docs/guard.md"
        );
    }
    if !matches!(cluster, Cluster::Localnet) {
        println!("next: set chain.rpc-url and [[geyser.endpoints]] to your providers'");
    }
    println!("then: sluice doctor --config {shown}");
    Ok(())
}

/// The text of a configuration (pure but for the key, which is passed in).
fn configuration(cluster: Cluster, key: [u8; KEY_LEN]) -> anyhow::Result<String> {
    let key = format!("encryption-key = \"{}\"", STANDARD.encode(key));
    let exchange = format!("exchange-program = \"{}\"", ExchangeIds::DEVNET.program);
    let mut changes = vec![("# encryption-key = \"...\"", key.as_str())];
    match cluster {
        Cluster::Localnet => changes.extend([
            ("exchange = \"raydium\"", "exchange = \"stand-in\""),
            ("keyless = false", "keyless = true"),
            ("allow-http-loopback = false", "allow-http-loopback = true"),
        ]),
        Cluster::Devnet => {
            changes.extend(PROVIDERS);
            changes.push(("# exchange-program = \"...\"", exchange.as_str()));
        }
        Cluster::Mainnet => changes.extend(PROVIDERS),
    }
    let mut text = EXAMPLE.to_owned();
    for (from, to) in changes {
        text = replaced(&text, from, to)?;
    }
    Config::parse(&text, "sluice.example.toml".as_ref())
        .context("the written configuration is not well-formed")?;
    Ok(text)
}

/// The text with the one line `from` replaced.
fn replaced(text: &str, from: &str, to: &str) -> anyhow::Result<String> {
    if text.lines().filter(|line| *line == from).count() != 1 {
        bail!("sluice.example.toml does not have exactly one line {from}");
    }
    let lines = text
        .lines()
        .map(|line| if line == from { to } else { line });
    Ok(lines.flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use sluice_config::Exchange;

    use super::*;

    fn parsed(cluster: Cluster) -> Config {
        let text = configuration(cluster, [7; KEY_LEN]).expect("a configuration");
        Config::parse(&text, "test".as_ref()).expect("it is well-formed")
    }

    #[test]
    fn the_configuration_is_for_its_cluster() {
        let localnet = parsed(Cluster::Localnet);
        assert_eq!(localnet.chain.exchange, Exchange::StandIn);
        assert_eq!(localnet.chain.rpc_url.host_str(), Some("127.0.0.1"));
        assert!(localnet.api.keyless && localnet.webhooks.allow_http_loopback);
        let mainnet = parsed(Cluster::Mainnet);
        assert_eq!(mainnet.chain.exchange, Exchange::Raydium);
        assert!(!mainnet.api.keyless && !mainnet.webhooks.allow_http_loopback);
        for url in [&mainnet.chain.rpc_url, &mainnet.geyser.endpoints()[0].url] {
            assert_eq!(url.scheme(), "https", "{url}");
        }
        assert_eq!(mainnet.chain.exchange_program, None);
        let devnet = parsed(Cluster::Devnet);
        assert_eq!(devnet.chain.exchange, Exchange::Raydium);
        assert_eq!(
            devnet.chain.exchange_program,
            Some(ExchangeIds::DEVNET.program.to_string())
        );
        assert_eq!(devnet.chain.rpc_url, mainnet.chain.rpc_url);
        let key = STANDARD.encode([7; KEY_LEN]);
        assert_eq!(mainnet.store.encryption_key(), Some(key.as_str()));
    }

    #[test]
    fn every_setting_keeps_its_explanation() {
        let text = configuration(Cluster::Mainnet, [7; KEY_LEN]).expect("a configuration");
        assert_eq!(text.lines().count(), EXAMPLE.lines().count());
        let comments = |text: &str| text.lines().filter(|line| line.starts_with("# ")).count();
        assert_eq!(
            comments(&text) + 1,
            comments(EXAMPLE),
            "the key alone is set"
        );
    }
}
