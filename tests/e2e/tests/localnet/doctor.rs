//! `sluice doctor` on a whole localnet: a configuration that works, and one whose parts are away.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use anyhow::ensure;
use sluice_localnet::{Artifacts, artifacts::Overrides};

use crate::net::TestNet;

/// What stands at the beginnings of its lines when nothing is wrong.
const SUBJECTS: [&str; 8] = [
    "RPC node: version ",
    "clock: ",
    "list of pools: getProgramAccounts is served",
    "exchange: ",
    "guard: SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b",
    "stream 127.0.0.1:",
    "database: schema ",
    "open files: ",
];

#[tokio::test]
async fn the_doctor_finds_a_localnet_well_and_names_what_is_away() -> anyhow::Result<()> {
    let net = TestNet::start().await?;
    let config = net.net.dir.sluice_config();
    let well = doctor(&config)?;
    let said = String::from_utf8_lossy(&well.stdout).into_owned();
    ensure!(well.status.success(), "{well:?}");
    for subject in SUBJECTS {
        ensure!(said.contains(subject), "no {subject:?} in: {said}");
    }

    let text = fs::read_to_string(&config)?;
    let nowhere = text.replace("127.0.0.1:", "127.0.0.2:");
    ensure!(
        nowhere != text,
        "the configuration names no address: {text}"
    );
    let other = net.net.dir.root().join("nowhere.toml");
    fs::write(&other, nowhere)?;
    let away = doctor(&other)?;
    let said = String::from_utf8_lossy(&away.stdout).into_owned();
    ensure!(!away.status.success(), "{away:?}");
    for line in [
        "FAILED   RPC node: ",
        "FAILED   stream 127.0.0.2:",
        "to do: ",
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
