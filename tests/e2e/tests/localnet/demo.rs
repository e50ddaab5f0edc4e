//! The demo, run as `cargo xtask localnet --demo` runs it.

use std::{fs, time::Duration};

use anyhow::ensure;
use sluice_localnet::{
    Artifacts,
    artifacts::{CPMM_SO, Fingerprint, Overrides},
};

use crate::binary::Run;

/// The demo may take this long from the second run on.
const DEMO_DEADLINE: Duration = Duration::from_secs(180);

/// Lines that a demo which skipped a step would not print.
const KEY_LINES: [&str; 11] = [
    "validator ",
    "Sluice ",
    "webhook created",
    "USDL for 1.5 SOL",
    "for 250 ALFA",
    "LEVY for 40 USDL",
    "exactly as quoted",
    "three kinds with good signatures",
    "by the guard SGdsaS58Xv2EgQwpXYxYA1jrXFnMuoRY4MEa3v2rx4b with 6000 SlippageExceeded",
    "no process and none of",
    "demo passed in",
];

#[test]
fn demo_runs_end_to_end() -> anyhow::Result<()> {
    let ended = Run::start(&["--demo"], &[])?.end(DEMO_DEADLINE)?;
    println!("{}", ended.stdout);
    ensure!(ended.status.success(), "{}: {}", ended.status, ended.stderr);
    for line in KEY_LINES {
        ensure!(ended.stdout.contains(line), "no {line:?} in the transcript");
    }
    let swaps = ended.stdout.matches("exactly as quoted").count();
    ensure!(swaps == 3, "{swaps} swaps instead of 3");
    Ok(())
}

#[test]
fn cpmm_so_replaces_the_stand_in() -> anyhow::Result<()> {
    let usual = Artifacts::find(&Overrides::default())?.cpmm;
    let folder = tempfile::tempdir()?;
    let other = folder.path().join("another_exchange.so");
    fs::copy(&usual, &other)?;
    let ended = Run::start(&["--demo"], &[(CPMM_SO, &other)])?.end(DEMO_DEADLINE)?;
    ensure!(ended.status.success(), "{}: {}", ended.status, ended.stderr);
    let line = format!("exchange  {}", Fingerprint::of(&other)?);
    ensure!(
        ended.stdout.contains(&line),
        "no {line:?} in: {}",
        ended.stdout
    );
    Ok(())
}

#[test]
fn a_missing_cpmm_so_is_named_with_the_command_that_makes_it() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let nowhere = folder.path().join("nowhere.so");
    let ended = Run::start(&["--demo"], &[(CPMM_SO, &nowhere)])?.end(DEMO_DEADLINE)?;
    ensure!(!ended.status.success());
    ensure!(ended.stderr.contains("nowhere.so"), "{}", ended.stderr);
    ensure!(
        ended.stderr.contains("cargo xtask localnet"),
        "{}",
        ended.stderr
    );
    Ok(())
}
