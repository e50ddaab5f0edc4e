//! Figures of webhooks, shown as a table and written as JSON to the file that the first argument names.
//!
//! Further arguments name the parts that are measured, all of them when there is none.

use std::{env, path::Path};

use anyhow::bail;
use sluice_bench::webhooks::{
    batching, deliveries, edits, fan_out, hanging, large, latency, matching, slow, start,
};
use sluice_testkit::figure::{self, Figure};
use tokio::runtime::Runtime;

/// What can be measured by itself.
const PARTS: [&str; 10] = [
    "matching",
    "deliveries",
    "fan-out",
    "batching",
    "large",
    "latency",
    "edits",
    "hanging",
    "slow",
    "start",
];

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [matching::CHILD, database] => {
            Runtime::new()?.block_on(matching::hold(Path::new(database)))
        }
        [start::CHILD, database, health] => {
            Runtime::new()?.block_on(start::run(Path::new(database), health))
        }
        [file, ref parts @ ..] => measure(Path::new(file), parts),
        [] => bail!(
            "usage: webhook-figures <file to write> [{}]...",
            PARTS.join("|")
        ),
    }
}

fn measure(file: &Path, parts: &[&str]) -> anyhow::Result<()> {
    let mut figures: Vec<Figure> = Vec::new();
    for part in if parts.is_empty() { &PARTS } else { parts } {
        // Each with a runtime of its own, so that none meets what another left running.
        let runtime = Runtime::new()?;
        figures.extend(match *part {
            "matching" => runtime.block_on(matching::figures())?,
            "deliveries" => runtime.block_on(deliveries::figures())?,
            "fan-out" => runtime.block_on(fan_out::figures())?,
            "batching" => runtime.block_on(batching::figures())?,
            "large" => runtime.block_on(large::figures())?,
            "latency" => runtime.block_on(latency::figures())?,
            "edits" => runtime.block_on(edits::figures())?,
            "hanging" => runtime.block_on(hanging::figures())?,
            "slow" => runtime.block_on(slow::figures())?,
            "start" => runtime.block_on(start::figures())?,
            unknown => bail!("there is no part {unknown}, only {}", PARTS.join(", ")),
        });
    }
    figure::report(&figures, file)
}
