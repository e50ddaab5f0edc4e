//! `fetch`: downloads what tests take from npm and PyPI, exactly as their lock files name it; afterwards they need no network.

use anyhow::Result;

use crate::clients::python::Python;
use crate::repo::Repo;
use crate::{clients, deployment, prove};

/// The command's name.
pub const TASK: &str = "fetch";

/// Downloads and installs all of it.
pub fn run(repo: &Repo) -> Result<()> {
    let python = Python::find(repo)?;
    for sources in [deployment::checks(repo), prove::room(repo)] {
        python.environment(repo, &sources)?;
    }
    clients::fetch(repo, &python)
}
