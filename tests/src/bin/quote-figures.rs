//! Measures quotes, shows a table, and writes the figures as JSON to the file that the first argument names. Further
//! arguments choose some of the parts, for whoever works on one of them.

use std::{env, fs, path::Path};

use anyhow::{Context, bail};
use sluice_tests::bench::{self, Figure};
use tokio::runtime::Runtime;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [bench::start::CHILD, geyser, rpc] => {
            Runtime::new()?.block_on(bench::start::hold(geyser, rpc))
        }
        [file, ref parts @ ..] => measure(Path::new(file), parts),
        [] => bail!("usage: quote-figures <file to write> [memory] [http] [updates] [start]"),
    }
}

fn measure(file: &Path, parts: &[&str]) -> anyhow::Result<()> {
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    let mut figures = Vec::new();
    if wanted("memory") {
        figures.extend(bench::memory::figures());
    }
    if wanted("http") {
        figures.extend(bench::http::figures()?);
    }
    let runtime = Runtime::new()?;
    if wanted("updates") {
        figures.extend(runtime.block_on(bench::updates::figures())?);
    }
    if wanted("start") {
        figures.extend(runtime.block_on(bench::start::figures())?);
    }
    show(&figures);
    let text = serde_json::to_string_pretty(&figures)? + "\n";
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn show(figures: &[Figure]) {
    println!("{:<48} {:>10} {:>10}  unit", "figure", "value", "must");
    for figure in figures {
        let missed = if figure.met { "" } else { "  NOT MET" };
        println!(
            "{:<48} {:>10.2} {:>10}  {}{missed}",
            figure.figure,
            figure.value,
            figure.must.shown(),
            figure.unit
        );
    }
}
