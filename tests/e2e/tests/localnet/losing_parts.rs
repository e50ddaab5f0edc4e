//! Sluice without its chain or its database: reports it and lives on.

use std::{fs, time::Duration};

use anyhow::ensure;
use sluice_localnet::rest::Part;

use crate::net::TestNet;

/// How long Sluice may take to notice that the chain is gone: the stream breaks at once.
const CHAIN_PATIENCE: Duration = Duration::from_secs(60);

/// How long Sluice may take to notice that its database is gone.
const DATABASE_PATIENCE: Duration = Duration::from_secs(60);

/// Sluice goes on for this long before it is looked at again, for a panic that comes with a retry.
const AFTERMATH: Duration = Duration::from_secs(3);

/// Whether a line of this level, or a worse one, contains the text.
fn has_line(log: &str, text: &str) -> bool {
    log.lines().any(|line| {
        (line.contains("WARN") || line.contains("ERROR")) && line.to_lowercase().contains(text)
    })
}

#[tokio::test]
async fn killing_the_validator_makes_sluice_not_ready_without_panic() -> anyhow::Result<()> {
    let mut net = TestNet::start().await?;
    net.net.validator.process.kill()?;
    for part in [Part::Api, Part::Indexer] {
        let health = net.until_not_ready(part, CHAIN_PATIENCE).await?;
        println!("{part:?}: {}", health.body);
        ensure!(
            health.body.to_string().contains("stream"),
            "{part:?} does not say that the stream is gone: {}",
            health.body
        );
    }
    tokio::time::sleep(AFTERMATH).await;
    net.net.service.process.check()?;
    let log = net.sluice_log()?;
    ensure!(!log.contains("panicked"), "{log}");
    ensure!(has_line(&log, "stream"), "no warning of it in:\n{log}");
    net.stop().await
}

#[tokio::test]
async fn deleting_the_database_makes_sluice_not_ready_without_panic() -> anyhow::Result<()> {
    let mut net = TestNet::start().await?;
    let database = net.net.dir.database();
    for suffix in ["", "-wal", "-shm"] {
        let mut file = database.clone().into_os_string();
        file.push(suffix);
        // The two beside the database exist only while SQLite has something in them.
        if fs::exists(&file)? {
            fs::remove_file(file)?;
        }
    }
    for part in [Part::Api, Part::Indexer] {
        let health = net.until_not_ready(part, DATABASE_PATIENCE).await?;
        println!("{part:?}: {}", health.body);
        ensure!(
            health.body.to_string().contains("database"),
            "{part:?} does not say that the database is gone: {}",
            health.body
        );
    }
    tokio::time::sleep(AFTERMATH).await;
    net.net.service.process.check()?;
    let log = net.sluice_log()?;
    ensure!(!log.contains("panicked"), "{log}");
    ensure!(has_line(&log, "database"), "no warning of it in:\n{log}");
    net.stop().await
}
