//! Figures of quotes, shown as a table and written as JSON to the file that the first argument names.
//!
//! Further arguments name the parts that are measured, all of them when there is none.

use std::{env, path::Path};

use anyhow::bail;
use sluice_bench as bench;
use sluice_testkit::figure;
use tokio::runtime::Runtime;

/// What can be measured by itself.
const PARTS: [&str; 8] = [
    "memory",
    "http",
    "crowd",
    "updates",
    "servers",
    "start",
    "resume",
    "strangers",
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [bench::start::CHILD, geyser, rpc] => {
            Runtime::new()?.block_on(bench::start::hold(geyser, rpc))
        }
        [bench::crowd::CHILD] => Runtime::new()?.block_on(bench::crowd::serve()),
        [bench::crowd::CROWD, said] => Runtime::new()?.block_on(bench::crowd::gather(said)),
        [bench::strangers::CHILD] => bench::strangers::watch(),
        [file, ref parts @ ..] => measure(Path::new(file), parts),
        [] => bail!(
            "usage: quote-figures <file to write> [{}]...",
            PARTS.join("|")
        ),
    }
}

fn measure(file: &Path, parts: &[&str]) -> anyhow::Result<()> {
    let mut figures = Vec::new();
    for part in if parts.is_empty() { &PARTS } else { parts } {
        figures.extend(match *part {
            "memory" => bench::memory::figures(),
            "http" => bench::http::figures()?,
            "crowd" => Runtime::new()?.block_on(bench::crowd::figures())?,
            "updates" => Runtime::new()?.block_on(bench::updates::figures())?,
            "start" => Runtime::new()?.block_on(bench::start::figures())?,
            "servers" => Runtime::new()?.block_on(bench::servers::figures())?,
            "resume" => Runtime::new()?.block_on(bench::resume::figures())?,
            "strangers" => bench::strangers::figures()?,
            unknown => bail!("there is no part {unknown}, only {}", PARTS.join(", ")),
        });
    }
    figure::report(&figures, file)
}
