//! Measures the guard, shows a table, and writes the figures as JSON to the file that the one argument names.

use std::{env, fs, path::PathBuf};

use anyhow::Context;
use sluice_bench::guard;

fn main() -> anyhow::Result<()> {
    let file = env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .context("usage: guard-figures <file to write>")?;
    let figures = guard::figures();
    println!("{:<46} {:>8} {:>8}  unit", "figure", "value", "must");
    for figure in &figures {
        let missed = if figure.met { "" } else { "  NOT MET" };
        println!(
            "{:<46} {:>8} {:>8}  {}{missed}",
            figure.figure, figure.value, figure.must, figure.unit
        );
    }
    let text = serde_json::to_string_pretty(&figures)? + "\n";
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}
