//! `localnet`: sets up whatever is missing, then becomes `sluice-localnet`.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use anyhow::{Context, Result};

use crate::cache::Cache;
use crate::command::{command, show};
use crate::output::say;
use crate::repo::Repo;
use crate::{binaries, exchange, plugin, programs, system_packages, validator};

/// Replaces this process, so that Ctrl-C and the exit status are those of `sluice-localnet` itself.
pub fn run(repo: &Repo, cache: &Cache, demo: bool, extra: &[OsString]) -> Result<Infallible> {
    let replacement = exchange::replacement()?;
    let geyser = plugin::Replacement::find(repo)?;
    system_packages::require(repo, cache, &[])?;
    let validator = validator::set_up(repo, cache)?;
    programs::build_served(repo, cache)?;
    plugin::provide(repo, &geyser)?;
    let binaries = binaries::build(repo)?;
    let mut localnet = command(repo, &binaries.localnet);
    localnet.stdin(Stdio::inherit());
    localnet.arg("--validator").arg(validator);
    localnet.arg("--plugin").arg(repo.plugin());
    localnet.arg("--guard").arg(repo.program("swap_guard"));
    let stand_in = repo.program("local_cpmm");
    localnet
        .arg("--cpmm")
        .arg(replacement.as_ref().unwrap_or(&stand_in));
    exchange::hand_on(replacement.as_deref(), &mut localnet);
    geyser.hand_on(&mut localnet);
    localnet.arg("--sluice").arg(binaries.sluice);
    if demo {
        localnet.arg("--demo");
    }
    localnet.args(extra);
    say!("==> Starting the local chain");
    let error = localnet.exec();
    Err(error).with_context(|| format!("cannot start `{}`", show(&localnet)))
}
