//! `sluice doctor` on a whole localnet: a configuration that works, and one whose parts are away.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use anyhow::ensure;
use sluice_localnet::{Artifacts, artifacts::Overrides};

use crate::net::TestNet;

/// What stands in its lines when nothing is wrong. The clock of a validator that shares a busy machine may be late, and a
/// young stream has little to replay.
const FINDINGS: [&str; 10] = [
    "ok       RPC node: version ",
    " clock: ",
    "ok       list of pools: getProgramAccounts is served",
    "ok       exchange: ",
    "ok       guard: SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b",
    " stream 127.0.0.1:",
    " latency of stream 127.0.0.1:",
    "ok       limits of stream 127.0.0.1:",
    "ok       database: schema ",
    " open files: ",
];

/// An address at which nothing listens.
const NOWHERE: &str = "http://127.0.0.1:1";

#[tokio::test]
async fn the_doctor_finds_a_localnet_well_and_names_what_is_away() -> anyhow::Result<()> {
    let net = TestNet::start().await?;
    let config = net.net.dir.sluice_config();
    let well = doctor(&config)?;
    let said = String::from_utf8_lossy(&well.stdout).into_owned();
    for finding in FINDINGS {
        ensure!(said.contains(finding), "no {finding:?} in: {said}");
    }
    let mut failed = said.lines().filter(|line| line.starts_with("FAILED"));
    let late_clock = failed.next();
    ensure!(
        late_clock.is_none_or(|line| line.starts_with("FAILED   clock: ")),
        "{said}"
    );
    ensure!(failed.next().is_none(), "{said}");
    ensure!(well.status.success() == late_clock.is_none(), "{well:?}");

    let text = fs::read_to_string(&config)?;
    let away: String = text
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some((key @ ("rpc-url" | "url"), _)) => format!("{key} = {NOWHERE:?}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let other = net.net.dir.root().join("away.toml");
    fs::write(&other, away)?;
    let away = doctor(&other)?;
    let said = String::from_utf8_lossy(&away.stdout).into_owned();
    ensure!(!away.status.success(), "{away:?}");
    for line in [
        "FAILED   RPC node: ",
        "FAILED   stream 127.0.0.1:1: ",
        "to do: ",
        "ok       database: schema ",
    ] {
        ensure!(said.contains(line), "no {line:?} in: {said}");
    }
    Ok(())
}

fn doctor(config: &Path) -> anyhow::Result<Output> {
    let artifacts = Artifacts::find(&Overrides::default())?;
    let mut command = Command::new(artifacts.sluice);
    Ok(command.arg("doctor").arg("--config").arg(config).output()?)
}
