//! Figures of quote streams, shown as a table and written as JSON to the file that the first argument names.
//!
//! A second argument is the number of readers.

use std::{env, path::Path};

use anyhow::{Context, bail};
use sluice_bench::quote_streams::{self, bare};
use sluice_testkit::figure;
use tokio::runtime;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (file, readers) = match arguments[..] {
        [quote_streams::CHILD] => return quote_streams::serve(),
        [bare::CHILD, length] => return bare::serve(length.parse().context("a length")?),
        [file] => (file, None),
        [file, readers] => (file, Some(readers.parse().context("a number of readers")?)),
        _ => bail!("usage: stream-figures <file to write> [readers]"),
    };
    let measured = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(quote_streams::figures(readers))?;
    figure::report(&measured, Path::new(file))
}
