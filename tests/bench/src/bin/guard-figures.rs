//! Figures of the guard, shown as a table and written as JSON to the file that the one argument names.

use std::{env, path::PathBuf};

use anyhow::Context;
use sluice_bench::guard;
use sluice_testkit::figure;

fn main() -> anyhow::Result<()> {
    let file = env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .context("usage: guard-figures <file to write>")?;
    figure::report(&guard::figures(), &file)
}
