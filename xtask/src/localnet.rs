//! `localnet`: sets up whatever is missing, then becomes `sluice-localnet`.

use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::command::{command, show};
use crate::repo::Repo;
use crate::{binaries, plugin, programs, system_packages, validator};

/// Replaces this process, so that Ctrl-C and the exit status are those of `sluice-localnet` itself.
pub fn run(repo: &Repo, cache: &Cache, demo: bool, extra: &[OsString]) -> Result<Infallible> {
    system_packages::require(repo, cache)?;
    let validator = validator::set_up(repo, cache)?;
    programs::build(repo, cache)?;
    plugin::build(repo)?;
    let binaries = binaries::build(repo)?;
    let mut localnet = command(repo, &binaries.localnet);
    localnet.stdin(Stdio::inherit());
    localnet.arg("--validator").arg(validator);
    localnet.arg("--plugin").arg(repo.plugin());
    localnet.arg("--guard").arg(repo.program("swap_guard"));
    localnet.arg("--cpmm").arg(exchange(repo)?);
    localnet.arg("--sluice").arg(binaries.sluice);
    if demo {
        localnet.arg("--demo");
    }
    localnet.args(extra);
    println!("==> Starting the local chain");
    let error = localnet.exec();
    Err(error).with_context(|| format!("cannot start `{}`", show(&localnet)))
}

/// The exchange's program: the file that `CPMM_SO` names, else the stand-in.
fn exchange(repo: &Repo) -> Result<PathBuf> {
    let Some(named) = env::var_os("CPMM_SO").filter(|value| !value.is_empty()) else {
        return Ok(repo.program("local_cpmm"));
    };
    let file = std::path::absolute(named)?;
    if !file.is_file() {
        bail!("CPMM_SO names {}, which is no file", file.display());
    }
    Ok(file)
}
